//! From text to the tree, by sqlparser. Every struct is destructured in full, so that a field added to the parser breaks the build
//! here instead of letting something through.

use sightline_query::Order;
use sqlparser::ast::{
    GroupByExpr, Ident, LimitClause, ObjectName, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    OrderBySort, Query, Select as ParsedSelect, SelectFlavor, SelectItem, SetExpr, Statement, TableAlias, TableFactor,
    TableWithJoins,
};
use sqlparser::dialect::ClickHouseDialect;
use sqlparser::parser::Parser;

use crate::check::fault::{Fault, FaultKind};
use crate::check::{column, expression};
use crate::tree::Select;

/// Nesting the parser follows. The caps before it allow 12 brackets.
const RECURSION_LIMIT: usize = 40;

/// Reads one SELECT.
pub(crate) fn select(text: &str) -> Result<Select, Vec<Fault>> {
    let statements = Parser::new(&ClickHouseDialect {})
        .with_recursion_limit(RECURSION_LIMIT)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| vec![Fault::new(FaultKind::Syntax, error.to_string())])?;
    let mut statements = statements.into_iter();
    let (Some(Statement::Query(query)), None) = (statements.next(), statements.next()) else {
        return Err(vec![Fault::new(FaultKind::Statement, "not exactly one SELECT")]);
    };
    let mut reader = Reader { faults: Vec::new() };
    let select = reader.query(&query);
    match select {
        Some(select) if reader.faults.is_empty() => Ok(select),
        Some(_) | None => Err(reader.faults),
    }
}

struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn fault<T>(&mut self, kind: FaultKind, what: impl Into<String>) -> Option<T> {
        self.faults.push(Fault::new(kind, what));
        None
    }

    fn absent(&mut self, is_absent: bool, clause: &str) {
        if !is_absent {
            self.faults.push(Fault::new(FaultKind::Clause, format!("`{clause}` is no part of a query")));
        }
    }

    fn take<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                self.faults.push(fault);
                None
            }
        }
    }

    fn query(&mut self, query: &Query) -> Option<Select> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        self.absent(with.is_none(), "WITH");
        self.absent(fetch.is_none(), "FETCH");
        self.absent(locks.is_empty(), "FOR UPDATE");
        self.absent(for_clause.is_none(), "FOR");
        self.absent(settings.is_none(), "SETTINGS");
        self.absent(format_clause.is_none(), "FORMAT");
        self.absent(pipe_operators.is_empty(), "|>");
        let limit = self.limit(limit_clause.as_ref());
        let order_by = self.order(order_by.as_ref());
        let body = match &**body {
            SetExpr::Select(select) => self.body(select),
            SetExpr::Query(_) => self.fault(FaultKind::Subquery, "a query in brackets"),
            SetExpr::SetOperation { left: _, op, set_quantifier: _, right: _ } => {
                self.fault(FaultKind::Clause, format!("`{op}` is no part of a query"))
            }
            SetExpr::Values(_) => self.fault(FaultKind::Statement, "`VALUES` is no SELECT"),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                self.fault(FaultKind::Statement, "a statement that writes")
            }
            SetExpr::Table(_) => self.fault(FaultKind::Statement, "`TABLE` is no SELECT"),
        };
        let select = body?;
        Some(Select { order_by: order_by?, limit: limit?, ..select })
    }

    fn body(&mut self, select: &ParsedSelect) -> Option<Select> {
        let ParsedSelect {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify,
            value_table_mode,
            flavor,
        } = select;
        self.absent(optimizer_hints.is_empty(), "a hint");
        self.absent(distinct.is_none(), "DISTINCT");
        self.absent(select_modifiers.is_none(), "a modifier of SELECT");
        self.absent(top.is_none() && !top_before_distinct, "TOP");
        self.absent(exclude.is_none(), "EXCLUDE");
        self.absent(into.is_none(), "INTO");
        self.absent(lateral_views.is_empty(), "LATERAL VIEW");
        self.absent(connect_by.is_empty(), "CONNECT BY");
        self.absent(cluster_by.is_empty(), "CLUSTER BY");
        self.absent(distribute_by.is_empty(), "DISTRIBUTE BY");
        self.absent(sort_by.is_empty(), "SORT BY");
        self.absent(having.is_none(), "HAVING");
        self.absent(named_window.is_empty() && !window_before_qualify, "WINDOW");
        self.absent(qualify.is_none(), "QUALIFY");
        self.absent(value_table_mode.is_none(), "AS STRUCT");
        self.absent(*flavor == SelectFlavor::Standard, "FROM before SELECT");

        let relation = self.relation(from);
        let columns: Vec<_> = projection.iter().enumerate().map(|(index, item)| self.column(index, item)).collect();
        let prewhere = prewhere.as_ref().map(|condition| self.take(expression::conditions(condition)));
        let filters = selection.as_ref().map(|condition| self.take(expression::conditions(condition)));
        let group_by = self.group(group_by);
        let (database, table) = relation?;
        Some(Select {
            columns: columns.into_iter().collect::<Option<_>>()?,
            database,
            table,
            prewhere: prewhere.unwrap_or(Some(Vec::new()))?,
            filters: filters.unwrap_or(Some(Vec::new()))?,
            group_by: group_by?,
            order_by: Vec::new(),
            limit: 0,
        })
    }

    fn relation(&mut self, from: &[TableWithJoins]) -> Option<(String, String)> {
        let [TableWithJoins { relation, joins }] = from else {
            return self.fault(FaultKind::Relation, "not exactly one table");
        };
        self.absent(joins.is_empty(), "JOIN");
        let (name, alias) = match relation {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                if args.is_some() {
                    return self.fault(FaultKind::Relation, "a table function");
                }
                self.absent(with_hints.is_empty(), "a table hint");
                self.absent(version.is_none(), "a table version");
                self.absent(!with_ordinality, "WITH ORDINALITY");
                self.absent(partitions.is_empty(), "PARTITION");
                self.absent(json_path.is_none(), "a path into a table");
                self.absent(sample.is_none(), "SAMPLE");
                self.absent(index_directives.is_empty(), "an index hint");
                self.absent(inheritance.is_none(), "ONLY");
                (name, alias)
            }
            TableFactor::Derived { lateral: _, subquery: _, alias: _, sample: _ } => {
                return self.fault(FaultKind::Subquery, "a query in place of a table");
            }
            TableFactor::TableFunction { expr: _, alias: _ }
            | TableFactor::Function { lateral: _, name: _, args: _, with_ordinality: _, alias: _ } => {
                return self.fault(FaultKind::Relation, "a table function");
            }
            TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::UnpivotExpr { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => {
                return self.fault(FaultKind::Relation, "something that is no table");
            }
        };
        let is_t = match alias {
            Some(TableAlias { explicit, name, columns, at }) => {
                *explicit && is_plain(name, "t") && columns.is_empty() && at.is_none()
            }
            None => false,
        };
        if !is_t {
            return self.fault(FaultKind::Alias, "the table must be named `AS t`");
        }
        let ObjectName(parts) = name;
        match parts.as_slice() {
            [ObjectNamePart::Identifier(database), ObjectNamePart::Identifier(table)]
                if database.quote_style.is_none() && table.quote_style.is_none() =>
            {
                Some((database.value.clone(), table.value.clone()))
            }
            _ => self.fault(FaultKind::Relation, "a table must be written `database.table`, without quotes"),
        }
    }

    fn column(&mut self, index: usize, item: &SelectItem) -> Option<crate::tree::Column> {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                if !is_plain(alias, &format!("a{index}")) {
                    self.faults.push(Fault::new(FaultKind::Alias, format!("column {index} must be named `a{index}`")));
                }
                self.take(column::column(expr))
            }
            SelectItem::UnnamedExpr(expr) => {
                self.take(column::column(expr));
                self.fault(FaultKind::Alias, format!("column {index} must be named `a{index}`"))
            }
            SelectItem::ExprWithAliases { expr: _, aliases: _ } => {
                self.fault(FaultKind::Alias, "a column with several names")
            }
            SelectItem::QualifiedWildcard(_, _) | SelectItem::Wildcard(_) => {
                self.fault(FaultKind::Wildcard, "`*` in place of columns")
            }
        }
    }

    fn group(&mut self, group_by: &GroupByExpr) -> Option<Vec<usize>> {
        let GroupByExpr::Expressions(keys, modifiers) = group_by else {
            return self.fault(FaultKind::Clause, "`GROUP BY ALL` is no part of a query");
        };
        self.absent(modifiers.is_empty(), "WITH ROLLUP, CUBE or TOTALS");
        keys.iter().map(|key| self.take(expression::alias(key))).collect()
    }

    fn order(&mut self, order_by: Option<&OrderBy>) -> Option<Vec<(usize, Order)>> {
        let Some(OrderBy { kind, interpolate }) = order_by else { return Some(Vec::new()) };
        self.absent(interpolate.is_none(), "INTERPOLATE");
        let OrderByKind::Expressions(keys) = kind else {
            return self.fault(FaultKind::Clause, "`ORDER BY ALL` is no part of a query");
        };
        keys.iter().map(|key| self.order_key(key)).collect()
    }

    fn order_key(&mut self, key: &OrderByExpr) -> Option<(usize, Order)> {
        let OrderByExpr { expr, options, with_fill } = key;
        let OrderByOptions { sort, nulls_first } = options;
        self.absent(with_fill.is_none(), "WITH FILL");
        self.absent(nulls_first.is_none(), "NULLS FIRST");
        let order = match sort {
            None => Order::Ascending,
            Some(OrderBySort::Desc) => Order::Descending,
            Some(OrderBySort::Asc) => return self.fault(FaultKind::Form, "`ASC` is left out"),
            Some(OrderBySort::Using(_)) => return self.fault(FaultKind::Clause, "`USING` is no part of a query"),
        };
        Some((self.take(expression::alias(expr))?, order))
    }

    fn limit(&mut self, limit: Option<&LimitClause>) -> Option<u32> {
        match limit {
            None => self.fault(FaultKind::Limit, "there is no `LIMIT`"),
            Some(LimitClause::OffsetCommaLimit { offset: _, limit: _ }) => {
                self.fault(FaultKind::Limit, "`LIMIT` must be one plain number")
            }
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                self.absent(offset.is_none(), "OFFSET");
                self.absent(limit_by.is_empty(), "LIMIT BY");
                match limit.as_ref().and_then(expression::plain_number).and_then(|text| text.parse().ok()) {
                    Some(number) => Some(number),
                    None => self.fault(FaultKind::Limit, "`LIMIT` must be one plain number"),
                }
            }
        }
    }
}

/// Whether it is this name, unquoted.
pub(crate) fn is_plain(ident: &Ident, name: &str) -> bool {
    let Ident { value, quote_style, span: _ } = ident;
    quote_style.is_none() && value == name
}

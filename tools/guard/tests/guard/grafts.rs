//! The attack corpus grafted onto accepted texts of ours: what an attack does, done to a text that is otherwise as it should be, is
//! refused for the reason of its category.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sightline_guard::FaultKind;
use sightline_guard::FaultKind::{
    Alias, Clause, Column, Expression, Form, Function, Limit, Literal, Parameter, Relation, Statement, Subquery,
    Syntax, TooBig, Wildcard,
};

use crate::attacks::{Attack, corpus};
use crate::clauses::{Clauses, part};
use crate::sample::{admit, check, every_shape, params};

/// How the corpus bounds a query to its tenant, and what stands in its place while an attack is taken apart.
const SCOPE: &str = "tenant = 'tenant-a' AND ts >= toDateTime64('2026-01-01 00:00:00', 3, 'UTC') AND ts < toDateTime64('2026-01-01 01:00:00', 3, 'UTC')";
const MARK: &str = "_scope_";
/// The first devices of a place meet every shape, the others some: the checker is slow in a build for tests.
const ON_EVERY_SHAPE: usize = 3;
const STRIDE: usize = 11;

/// How what an attack does is cut out of its text, put into ours, and what that is refused for: each refusal gives one of the
/// reasons. `Syntax` stands beside a reason where the parser knows less than the engine; one that knew more must find the reason.
struct Graft {
    category: &'static str,
    place: &'static str,
    cut: fn(&Attack) -> Vec<String>,
    put: fn(&Clauses, &str) -> String,
    reasons: &'static [FaultKind],
}

const fn graft(
    category: &'static str,
    place: &'static str,
    cut: fn(&Attack) -> Vec<String>,
    put: fn(&Clauses, &str) -> String,
    reasons: &'static [FaultKind],
) -> Graft {
    Graft { category, place, cut, put, reasons }
}

const GRAFTS: [Graft; 55] = [
    graft("table_function", "table", relation, as_table, &[Relation, Syntax]),
    graft("table_function", "joined", relation, joined, &[Clause, Syntax]),
    graft("table_function", "behind IN", relation, behind_in, &[Relation, Expression, Syntax]),
    graft("table_function", "table and name", with_table, behind_table, &[Clause]),
    graft("table_function", "condition", condition, scoped, &[Relation, Expression, Column]),
    graft("table_function", "first column", columns, |o, d| first_column(o, d, " AS a0"), &[Expression, Literal]),
    graft("system_table", "table", relation, as_table, &[Relation]),
    graft("system_table", "joined", relation, joined, &[Clause]),
    graft("system_table", "behind IN", relation, behind_in, &[Relation, Expression]),
    graft("foreign_relation", "table", relation, as_table, &[Relation]),
    graft("foreign_relation", "joined", relation, joined, &[Clause]),
    graft("clause", "behind the table", with_table, behind_table, &[Clause, Syntax]),
    graft("clause", "with", |a| clause(a, "WITH"), |o, d| o.with("WITH", d).text(), &[Clause, Syntax]),
    graft("clause", "group by", |a| clause(a, "GROUP BY"), |o, d| o.with("GROUP BY", d).text(), &[Clause, Expression]),
    graft("clause", "order by", order, filled, &[Clause, Syntax]),
    graft("clause", "limit", |a| clause(a, "LIMIT"), limited, &[Clause, Limit, Syntax]),
    graft("clause", "settings", |a| clause(a, "SETTINGS"), |o, d| o.with("SETTINGS", d).text(), &[Clause, Syntax]),
    graft("clause", "format", |a| clause(a, "FORMAT"), |o, d| o.with("FORMAT", d).text(), &[Clause, Syntax]),
    graft("clause", "file", |a| clause(a, "INTO OUTFILE"), |o, d| o.with("INTO OUTFILE", d).text(), &[Clause, Syntax]),
    graft("clause", "no limit", unlimited, |o, _| o.without("LIMIT").text(), &[Limit]),
    graft("clause", "table", relation, as_table, &[Relation, Subquery, Clause, Syntax]),
    graft("clause", "columns", columns, |o, d| o.with("SELECT", d).text(), &[Clause, Alias]),
    graft("clause", "from first", from_first, |o, _| turned(o), &[Clause]),
    graft("cte", "with", |a| clause(a, "WITH"), |o, d| o.with("WITH", d).text(), &[Clause, Syntax]),
    graft("alias_shadow", "first column", columns, |o, d| first_column(o, d, ""), &[Alias, Syntax]),
    graft("alias_shadow", "condition", condition, scoped, &[Alias, Syntax, Column]),
    graft("alias_shadow", "behind the table", with_table, behind_table, &[Clause, Relation, Alias, Syntax]),
    graft("alias_shadow", "table", relation, as_table, &[Relation, Subquery, Alias]),
    graft("filter_logic", "condition", condition, scoped, &[Expression, Column, Function]),
    graft("filter_logic", "having", |a| clause(a, "HAVING"), |o, d| having(o, "HAVING", d), &[Clause]),
    graft("filter_logic", "qualify", |a| clause(a, "QUALIFY"), |o, d| having(o, "QUALIFY", d), &[Clause]),
    graft("filter_logic", "union", united, |o, d| o.without("LIMIT").without("ORDER BY").text() + " " + d, &[Clause]),
    graft("subquery_position", "table", subqueries, as_table, &[Subquery]),
    graft("subquery_position", "first column", subqueries, |o, d| first_column(o, d, " AS a0"), &[Subquery]),
    graft("subquery_position", "behind IN", subqueries, behind_in, &[Subquery]),
    graft("subquery_position", "compared", subqueries, |o, d| conjoined(o, &format!("t.tenant = {d}")), &[Subquery]),
    graft("subquery_position", "exists", subqueries, |o, d| conjoined(o, &format!("EXISTS {d}")), &[Subquery]),
    graft(
        "subquery_position",
        "argument",
        subqueries,
        |o, d| conjoined(o, &format!("startsWith(t.tenant, {d})")),
        &[Subquery],
    ),
    graft("subquery_position", "only argument", subqueries, |o, d| conjoined(o, &format!("empty({d})")), &[Subquery]),
    graft("subquery_position", "limit", subqueries, |o, d| o.with("LIMIT", d).text(), &[Limit]),
    graft("subquery_position", "order", subqueries, |o, d| o.with("ORDER BY", d).text(), &[Expression]),
    graft("subquery_position", "from first", from_first, |o, _| turned(o), &[Clause]),
    graft("subquery_position", "condition", condition, scoped, &[Subquery, Function, Expression, Clause, Column]),
    graft("subquery_position", "behind the table", with_table, behind_table, &[Clause, Syntax]),
    graft(
        "wildcard_column",
        "columns",
        |a| clause(a, "SELECT"),
        |o, d| o.with("SELECT", d).text(),
        &[Wildcard, Function, Column, Syntax],
    ),
    graft("function", "first column", columns, |o, d| first_column(o, d, " AS a0"), &[Function, Expression]),
    graft("function", "condition", condition, scoped, &[Function, Expression, Column]),
    graft("lexical", "columns", columns, |o, d| o.with("SELECT", d).text(), &[Literal, Alias, Syntax, TooBig]),
    graft("lexical", "in a space", |a| spaces(&a.sql), in_a_space, &[Form, Syntax, Limit, TooBig]),
    graft("lexical", "table", relation, as_table, &[Alias, Relation, Syntax]),
    graft("lexical", "condition", condition, scoped, &[Literal, Expression, Column, Parameter, Syntax, TooBig]),
    graft("lexical", "limit", |a| clause(a, "LIMIT"), limited, &[Alias, Syntax, Statement]),
    graft(
        "not_select",
        "before",
        |a| vec![a.sql.clone()],
        |o, d| format!("{d}; {}", o.text()),
        &[Statement, Syntax, Form],
    ),
    graft(
        "not_select",
        "behind",
        |a| vec![a.sql.clone()],
        |o, d| format!("{}; {d}", o.text()),
        &[Statement, Syntax, Form],
    ),
    graft(
        "not_select",
        "with",
        |a| vec![a.sql.clone()],
        |o, d| o.with("WITH", &format!("x AS ({d})")).text(),
        &[Clause, Syntax],
    ),
];

fn cut(attack: &Attack) -> Clauses {
    Clauses::of(&attack.sql.replace(SCOPE, MARK))
}

/// A clause that a plain query has not, or has otherwise.
fn clause(attack: &Attack, keyword: &str) -> Vec<String> {
    let is_plain = |text: &str| text.parse::<u32>().is_ok();
    cut(attack)
        .0
        .into_iter()
        .filter(|(found, text)| *found == keyword && !is_plain(text))
        .map(|(_, text)| text)
        .collect()
}

/// What is read, where it is not a table of the corpus.
fn relation(attack: &Attack) -> Vec<String> {
    let ours = ["obs.metrics", "obs.logs"];
    let from = clause(attack, "FROM");
    from.into_iter()
        .filter(|text| !ours.iter().any(|table| text == table || text.starts_with(&format!("{table} "))))
        .collect()
}

/// What stands behind a table of the corpus.
fn with_table(attack: &Attack) -> Vec<String> {
    let behind = |text: String| {
        let rest = text.strip_prefix("obs.metrics ")?;
        let rest = ["AS m ", "AS a "].iter().find_map(|name| rest.strip_prefix(name)).unwrap_or(rest);
        (!["AS m", "AS a"].contains(&rest)).then(|| rest.to_owned())
    };
    clause(attack, "FROM").into_iter().filter_map(behind).collect()
}

/// What is selected, where it is more than a plain column.
fn columns(attack: &Attack) -> Vec<String> {
    let lists =
        clause(attack, "SELECT").into_iter().map(|list| list.strip_prefix("value, ").unwrap_or(&list).to_owned());
    lists.filter(|list| !["*", "count()", "value", "node", "ts, value"].contains(&list.as_str())).collect()
}

fn condition(attack: &Attack) -> Vec<String> {
    clause(attack, "WHERE").into_iter().filter(|text| text != MARK).collect()
}

/// Queries in brackets.
fn subqueries(attack: &Attack) -> Vec<String> {
    let starts = attack.sql.match_indices("(SELECT ").map(|(at, _)| at);
    let bracket = |from: usize| {
        let mut depth = 0;
        part(&attack.sql, from..).char_indices().find_map(|(at, sign)| {
            depth += i32::from(sign == '(') - i32::from(sign == ')');
            (depth == 0).then(|| part(&attack.sql, from..=from + at).to_owned())
        })
    };
    starts.filter_map(bracket).collect()
}

/// Everything from the first UNION, EXCEPT or INTERSECT on.
fn united(attack: &Attack) -> Vec<String> {
    let clauses = cut(attack);
    let at = clauses.0.iter().position(|(keyword, _)| ["UNION", "EXCEPT", "INTERSECT"].contains(keyword));
    at.map(|at| Clauses(clauses.0[at..].to_vec()).text().replace(MARK, "1 = 1")).into_iter().collect()
}

/// An attack that has no limit.
fn unlimited(attack: &Attack) -> Vec<String> {
    let all = cut(attack).get("LIMIT").is_none();
    all.then(String::new).into_iter().collect()
}

/// An attack that begins with its table.
fn from_first(attack: &Attack) -> Vec<String> {
    attack.sql.starts_with("FROM ").then(String::new).into_iter().collect()
}

/// What stands behind an order, up to the end.
fn order(attack: &Attack) -> Vec<String> {
    attack.sql.split_once("ORDER BY ts ").map(|(_, rest)| rest.to_owned()).into_iter().collect()
}

/// What an attack has in place of a space, or hides in one.
fn spaces(sql: &str) -> Vec<String> {
    let found = |sign: &str| sql.contains(sign).then(|| sign.to_owned());
    let comment = |from: &str, to: &str| {
        let (_, rest) = sql.split_once(from)?;
        let (inside, _) = rest.split_once(to)?;
        Some(format!("{from}{inside}{to}"))
    };
    let comments = [comment("/*", "*/"), comment("--", "\n"), comment("#!", "\n"), comment("# ", "\n")];
    let signs =
        ["\u{a0}", "\u{200b}", "\u{feff}", "\0", "\u{2212}", "\u{2018}", "\u{201c}", ";;", "?", "$1", "${tenant}"]
            .map(found);
    comments.into_iter().chain(signs).flatten().collect()
}

fn as_table(ours: &Clauses, device: &str) -> String {
    // One that has a name keeps it.
    let named = device.rsplit(')').next().is_some_and(|tail| tail.contains(" AS "));
    ours.with("FROM", &format!("{device}{}", if named { "" } else { " AS t" })).text()
}

fn joined(ours: &Clauses, device: &str) -> String {
    behind_table(ours, &format!("JOIN {device} AS u ON t.time = u.time"))
}

fn behind_table(ours: &Clauses, device: &str) -> String {
    ours.with("FROM", &format!("{} {device}", ours.get("FROM").unwrap())).text()
}

fn behind_in(ours: &Clauses, device: &str) -> String {
    conjoined(ours, &format!("t.tenant IN {device}"))
}

/// One condition more, among those that decide what is read.
fn conjoined(ours: &Clauses, condition: &str) -> String {
    let mut conditions = ours.conditions("PREWHERE");
    conditions.push(condition.to_owned());
    ours.with_conditions("PREWHERE", &conditions).text()
}

/// The attack's condition, with our scope in place of its own.
fn scoped(ours: &Clauses, device: &str) -> String {
    ours.with("PREWHERE", &device.replace(MARK, ours.get("PREWHERE").unwrap())).text()
}

fn having(ours: &Clauses, keyword: &'static str, device: &str) -> String {
    ours.with(keyword, &device.replace(MARK, "t.tenant = {p0:String}")).text()
}

fn filled(ours: &Clauses, device: &str) -> String {
    ours.without("LIMIT").with("ORDER BY", &format!("a0 {device}")).text()
}

/// The table before the columns.
fn turned(ours: &Clauses) -> String {
    let rest = ours.without("FROM").text();
    let (columns, tail) = rest.split_once(" PREWHERE ").unwrap();
    format!("FROM {} {columns} PREWHERE {tail}", ours.get("FROM").unwrap())
}

fn limited(ours: &Clauses, device: &str) -> String {
    ours.with("LIMIT", device).text()
}

fn first_column(ours: &Clauses, device: &str, name: &str) -> String {
    let rest = ours.get("SELECT").unwrap().split_once(" AS a0").unwrap().1;
    ours.with("SELECT", &format!("{device}{name}{rest}")).text()
}

fn in_a_space(ours: &Clauses, device: &str) -> String {
    ours.text().replacen(" LIMIT ", &format!(" {device} LIMIT "), 1)
}

#[test]
fn what_each_attack_does_is_refused_in_our_text_for_the_reason_of_its_category() {
    let ours: Vec<(Clauses, BTreeMap<String, String>)> = every_shape()
        .into_iter()
        .map(|(_, query)| admit(&query).unwrap())
        .map(|query| (Clauses::of(query.sql()), params(&query)))
        .collect();
    let attacks = corpus();
    let (mut report, mut wrong) = (String::new(), Vec::new());
    let mut grafted: BTreeSet<&str> = BTreeSet::new();
    for Graft { category, place, cut, put, reasons } in GRAFTS {
        let mut given: BTreeSet<&str> = BTreeSet::new();
        let of_category = attacks.iter().filter(|attack| attack.category == category);
        let devices = of_category.flat_map(|attack| cut(attack).into_iter().map(|device| (attack.id.as_str(), device)));
        let mut number = 0;
        for (id, device) in devices {
            grafted.insert(id);
            let meets = |shape: usize| number < ON_EVERY_SHAPE || shape % STRIDE == number % STRIDE;
            for (clauses, params) in ours.iter().enumerate().filter(|(at, _)| meets(*at)).map(|(_, ours)| ours) {
                let text = put(clauses, &device);
                let kinds: BTreeSet<FaultKind> =
                    check(&text, params).err().into_iter().flatten().map(|fault| fault.kind()).collect();
                match reasons.iter().find(|reason| kinds.contains(reason)) {
                    Some(reason) => drop(given.insert(reason.as_str())),
                    None => wrong.push(format!("{category}, {place}, {id}: {kinds:?} for {text}")),
                }
            }
            number += 1;
        }
        let given: Vec<&str> = given.into_iter().collect();
        writeln!(report, "{category:<17} {place:<16} {number:>3} devices: {}", given.join(", ")).unwrap();
    }
    assert_eq!(wrong, Vec::<String>::new());
    // A category without a graft, or an attack that is taken apart by none of its category's, shows here.
    let ungrafted = attacks.iter().filter(|attack| !grafted.contains(attack.id.as_str()));
    assert_eq!(
        ungrafted.map(|attack| format!("{} {}", attack.category, attack.id)).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    insta::assert_snapshot!(report);
}

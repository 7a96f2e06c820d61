//! A SELECT cut at its outermost clauses, and put together again: how a text is changed in one place.

/// The clauses in their order; each without its keyword. What does not begin with one of them is a clause of its own.
const KEYWORDS: [&str; 16] = [
    "WITH",
    "SELECT",
    "FROM",
    "PREWHERE",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "QUALIFY",
    "ORDER BY",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "SETTINGS",
    "FORMAT",
    "INTO OUTFILE",
];

/// A text as keyword and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clauses(pub(crate) Vec<(&'static str, String)>);

impl Clauses {
    /// Cuts outside of brackets and of quotes.
    pub(crate) fn of(sql: &str) -> Self {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        let (mut depth, mut quoted, mut at, mut from) = (0_i32, false, 0, 0);
        let mut keyword = "";
        while at < sql.len() {
            let rest = part(sql, at..);
            let begins = rest.chars().next().unwrap();
            let boundary = at == 0 || part(sql, ..at).ends_with([' ', ')']) && !rest.starts_with("WITH ");
            let next = KEYWORDS.into_iter().find(|word| {
                rest.strip_prefix(word).is_some_and(|tail| tail.is_empty() || tail.starts_with([' ', '(']))
            });
            match next {
                Some(word) if depth == 0 && !quoted && boundary => {
                    if at > 0 {
                        found.push((keyword, part(sql, from..at).trim().to_owned()));
                    }
                    keyword = word;
                    at += word.len();
                    from = at;
                }
                Some(_) | None => {
                    match begins {
                        '\'' => quoted = !quoted,
                        '(' | '[' | '{' if !quoted => depth += 1,
                        ')' | ']' | '}' if !quoted => depth -= 1,
                        _ => {}
                    }
                    at += begins.len_utf8();
                }
            }
        }
        found.push((keyword, part(sql, from..).trim().to_owned()));
        Self(found)
    }

    /// What stands behind the first clause of that name.
    pub(crate) fn get(&self, keyword: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| *found == keyword).map(|(_, text)| text.as_str())
    }

    /// The same with that clause, at its place in the order.
    pub(crate) fn with(&self, keyword: &'static str, text: &str) -> Self {
        let mut changed = self.clone();
        let rank = |name: &str| KEYWORDS.iter().position(|word| *word == name);
        let place = changed.0.iter().position(|(found, _)| rank(found) >= rank(keyword)).unwrap_or(changed.0.len());
        if changed.0.get(place).is_some_and(|(found, _)| *found == keyword) {
            changed.0.remove(place);
        }
        changed.0.insert(place, (keyword, text.to_owned()));
        changed
    }

    /// The same without that clause.
    pub(crate) fn without(&self, keyword: &str) -> Self {
        Self(self.0.iter().filter(|(found, _)| *found != keyword).cloned().collect())
    }

    /// Together again.
    pub(crate) fn text(&self) -> String {
        let parts: Vec<String> =
            self.0.iter().map(|(keyword, text)| format!("{keyword} {text}").trim().to_owned()).collect();
        parts.join(" ")
    }

    /// The conditions of PREWHERE or WHERE: ours are joined by AND and hold none themselves.
    pub(crate) fn conditions(&self, keyword: &str) -> Vec<String> {
        self.get(keyword).map(|text| text.split(" AND ").map(str::to_owned).collect()).unwrap_or_default()
    }

    /// The same with these conditions; without the clause, if there are none.
    pub(crate) fn with_conditions(&self, keyword: &'static str, conditions: &[String]) -> Self {
        if conditions.is_empty() { self.without(keyword) } else { self.with(keyword, &conditions.join(" AND ")) }
    }

    /// The expressions of the output columns, without their names.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut rest = self.get("SELECT").unwrap();
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let (expression, tail) = rest.split_once(&format!(" AS a{}", columns.len())).unwrap();
            columns.push(expression.to_owned());
            rest = tail.strip_prefix(", ").unwrap_or(tail);
        }
        columns
    }

    /// The same with these output columns, named as ours are.
    pub(crate) fn with_columns(&self, columns: &[String]) -> Self {
        let named: Vec<String> = columns.iter().enumerate().map(|(at, text)| format!("{text} AS a{at}")).collect();
        self.with("SELECT", &named.join(", "))
    }
}

/// A part of a text, cut between signs.
pub(crate) fn part(text: &str, range: impl std::slice::SliceIndex<str, Output = str>) -> &str {
    text.get(range).unwrap()
}

#[test]
fn every_text_of_ours_is_put_together_again() {
    for (name, query) in crate::sample::every_shape() {
        let query = crate::sample::admit(&query).unwrap();
        let clauses = Clauses::of(query.sql());
        assert_eq!(clauses.text(), query.sql(), "{name}");
        assert_eq!(clauses.with_columns(&clauses.columns()), clauses, "{name}");
        let prewhere = clauses.conditions("PREWHERE");
        assert_eq!(clauses.with_conditions("PREWHERE", &prewhere), clauses, "{name}");
        assert!(prewhere.len() >= 3 && prewhere[0] == "t.tenant IN {p0:Array(String)}", "{name}");
    }
}

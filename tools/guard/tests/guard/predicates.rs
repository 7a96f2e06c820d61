//! Each condition of an accepted text dropped, widened or moved, and each pair of parameters swapped: refused, but where what is
//! left is another query that an asker may put. That one is held against the query that was meant in `src/check/meant_tests.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::clauses::Clauses;
use crate::sample::{admit, check, every_shape, params};

struct Ours {
    name: &'static str,
    clauses: Clauses,
    params: BTreeMap<String, String>,
}

fn ours() -> Vec<Ours> {
    let of = |(name, query)| {
        let query = admit(&query).unwrap();
        Ours { name, clauses: Clauses::of(query.sql()), params: params(&query) }
    };
    every_shape().into_iter().map(of).collect()
}

/// The parameters that a text names, each with its type.
fn named(text: &str) -> BTreeMap<usize, String> {
    let of = |part: &str| {
        let (index, rest) = part.split_once(':')?;
        let (ty, _) = rest.split_once('}')?;
        Some((index.parse().ok()?, ty.to_owned()))
    };
    text.split("{p").filter_map(of).collect()
}

/// The same with parameters numbered without gaps, and only those that the text names.
fn renumbered(text: &str, params: &BTreeMap<String, String>) -> (String, BTreeMap<String, String>) {
    let (mut renamed, mut kept) = (text.to_owned(), BTreeMap::new());
    for (new, old) in named(text).into_keys().enumerate() {
        renamed = renamed.replace(&format!("{{p{old}:"), &format!("{{p{new}:"));
        kept.insert(format!("p{new}"), params[&format!("p{old}")].clone());
    }
    (renamed, kept)
}

/// Whether a query without this condition is still one that an asker may put: every metric, every place, or without a filter.
fn may_be_left_out(keyword: &str, condition: &str) -> bool {
    match keyword {
        "PREWHERE" => condition.starts_with("t.metric IN ") || condition.starts_with("(t.node, t.gpu) IN "),
        _ => !condition.starts_with("isFinite("),
    }
}

#[test]
fn a_dropped_condition_is_refused_unless_what_is_left_is_an_honest_query() {
    let mut honest = BTreeSet::new();
    for Ours { name, clauses, params } in ours() {
        for keyword in ["PREWHERE", "WHERE"] {
            let conditions = clauses.conditions(keyword);
            for (at, condition) in conditions.iter().enumerate() {
                let mut fewer = conditions.clone();
                fewer.remove(at);
                let text = clauses.with_conditions(keyword, &fewer).text();
                let (renamed, kept) = renumbered(&text, &params);
                if kept.len() < params.len() {
                    assert!(check(&text, &params).is_err(), "{name}: a parameter too many for {text}");
                }
                let may = may_be_left_out(keyword, condition);
                assert_eq!(check(&renamed, &kept).is_ok(), may, "{name} without `{condition}`");
                if may {
                    honest.insert(condition.split(['{', '[']).next().unwrap().to_owned());
                }
            }
        }
    }
    // The filters of every kind are among them, so that the test would see a rule that is too strict.
    assert!(honest.len() >= 10, "{honest:?}");
}

#[test]
fn a_condition_that_is_widened_or_dressed_up_is_refused() {
    const DRESSES: [&str; 26] = [
        "NOT {}",
        "not({})",
        "({})",
        "(({}))",
        "{} OR 1",
        "{} OR 1 = 1",
        "({} OR t.time = t.time)",
        "or({}, 1)",
        "{} XOR 1",
        "1",
        "1 = 1",
        "true",
        "t.tenant = t.tenant",
        "indexHint({})",
        "ignore({})",
        "identity({})",
        "materialize({})",
        "toUInt8({})",
        "{} = 1",
        "{} IS NOT NULL",
        "{} IN (0, 1)",
        "if({}, 1, 1)",
        "CASE WHEN {} THEN 1 ELSE 1 END",
        "CAST({} AS UInt8)",
        "{}::UInt8",
        "arrayExists(x -> {}, [1])",
    ];
    for Ours { name, clauses, params } in ours() {
        for keyword in ["PREWHERE", "WHERE"] {
            let conditions = clauses.conditions(keyword);
            for at in 0..conditions.len() {
                for dress in DRESSES {
                    let mut changed = conditions.clone();
                    changed[at] = dress.replace("{}", &conditions[at]);
                    let text = clauses.with_conditions(keyword, &changed).text();
                    assert!(check(&text, &params).is_err(), "{name} accepted: {text}");
                }
                let mut twice = conditions.clone();
                twice.insert(at, conditions[at].clone());
                let text = clauses.with_conditions(keyword, &twice).text();
                // A filter may be said twice.
                let may = keyword == "WHERE" && !conditions[at].starts_with("isFinite(");
                assert_eq!(check(&text, &params).is_ok(), may, "{name}: {text}");
            }
        }
    }
}

#[test]
fn no_condition_of_the_scope_can_be_compared_otherwise() {
    let others = [
        " IN ",
        " NOT IN ",
        " = ",
        " != ",
        " < ",
        " <= ",
        " > ",
        " >= ",
        " GLOBAL IN ",
        " LIKE ",
        " <=> ",
        " == ",
        " <> ",
    ];
    for Ours { name, clauses, params } in ours() {
        let conditions = clauses.conditions("PREWHERE");
        for (at, condition) in conditions.iter().enumerate() {
            let found = others.into_iter().find(|operator| condition.contains(operator)).unwrap();
            for other in others.into_iter().filter(|other| *other != found) {
                let mut changed = conditions.clone();
                changed[at] = condition.replacen(found, other, 1);
                let text = clauses.with_conditions("PREWHERE", &changed).text();
                assert!(check(&text, &params).is_err(), "{name} accepted: {text}");
            }
        }
    }
}

#[test]
fn no_condition_can_change_places_between_prewhere_and_where() {
    for Ours { name, clauses, params } in ours() {
        let [scope, filters] = ["PREWHERE", "WHERE"].map(|keyword| clauses.conditions(keyword));
        let refused = |scope: &[String], filters: &[String]| {
            let text = clauses.with_conditions("PREWHERE", scope).with_conditions("WHERE", filters).text();
            assert!(check(&text, &params).is_err(), "{name} accepted: {text}");
        };
        for at in 0..scope.len() {
            let (mut fewer, mut more) = (scope.clone(), filters.clone());
            more.insert(0, fewer.remove(at));
            // What a metric is called can be a filter too.
            if !scope[at].starts_with("t.metric IN ") {
                refused(&fewer, &more);
            }
            let mut turned = scope.clone();
            turned.swap(at, (at + 1) % scope.len());
            refused(&turned, &filters);
        }
        for at in 0..filters.len() {
            let (mut fewer, mut more) = (filters.clone(), scope.clone());
            more.push(fewer.remove(at));
            refused(&more, &fewer);
        }
        refused(&[], &[scope.clone(), filters.clone()].concat());
        if !filters.is_empty() {
            refused(&[filters.clone(), scope.clone()].concat(), &[]);
        }
    }
}

#[test]
fn parameters_swapped_in_the_text_or_among_their_values_are_refused_unless_both_belong_to_filters() {
    let mut honest = 0;
    for Ours { name, clauses, params } in ours() {
        let text = clauses.text();
        let types = named(&text);
        // Tenants and the window's start: each bound by a condition of its own.
        let start = text.split_once(" >= {p").unwrap().1.split_once(':').unwrap().0.parse::<usize>().unwrap();
        for (one, ty) in &types {
            for (other, _) in types.range(one + 1..).filter(|(_, found)| *found == ty) {
                let [first, second] = [one, other].map(|index| format!("{{p{index}:{ty}}}"));
                let swapped = text.replace(&first, "\0").replace(&second, &first).replace('\0', &second);
                let may = *one != 0 && *one != start;
                assert_eq!(check(&swapped, &params).is_ok(), may, "{name}: {first} and {second}");
                let [first, second] = [one, other].map(|index| format!("p{index}"));
                let mut values = params.clone();
                values.insert(first.clone(), params[&second].clone());
                values.insert(second.clone(), params[&first].clone());
                assert_eq!(check(&text, &values).is_ok(), may, "{name}: the values of {first} and {second}");
                honest += usize::from(may);
            }
            for (other, found) in types.iter().filter(|(_, found)| *found != ty) {
                let swapped = text.replacen(&format!("{{p{one}:{ty}}}"), &format!("{{p{other}:{ty}}}"), 1);
                assert!(check(&swapped, &params).is_err(), "{name}: p{other}, a {found}, as {ty}");
            }
        }
    }
    assert!(honest >= 10, "{honest}");
}

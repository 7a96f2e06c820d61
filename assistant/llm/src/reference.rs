//! References: how a model names a number, a time or a thing without writing it.
//!
//! `{E1.max}` is a statistic over a piece of evidence, `{E1.s0.max}` of its first series, `{E1.s0.peers.median}` the median of the other series,
//! `{E1.s0.at_max}` when it was highest, `{E1.s0.node}` what it is about, `{E1.r0.value}`, `{E1.r0.time}`, `{E1.r0.body}` a row's. `{A -> B}` says how
//! the second differs from the first, `{A vs B}` how the first stands to the second: which way it goes is found here, from the evidence.

use std::collections::BTreeMap;

use sightline_core::ground::evaluate;
use sightline_model::{
    Comparison, DraftClaim, Evidence, EvidenceId, FactPath, FactRef, NumberFormat, NumberSlot, Quantity, Relation,
    Series, Stat, Unit,
};

use crate::digest::change_instant;

/// The most references of one sentence.
const MAX_REFERENCES: usize = 12;

/// A sentence of a model as a draft of a claim.
///
/// # Errors
/// What about it cannot be, in words the model can act on.
pub(crate) fn claim(text: &str, evidence: &[Evidence]) -> Result<DraftClaim, String> {
    let mut builder = Builder {
        evidence,
        claim: DraftClaim {
            text: String::new(),
            slots: BTreeMap::new(),
            comparisons: Vec::new(),
            citations: Vec::new(),
        },
    };
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inner, tail) = after.split_once('}').ok_or("a `{` without its `}`")?;
        builder.claim.text.push_str(before);
        builder.expression(inner.trim())?;
        rest = tail;
    }
    if rest.contains('}') {
        return Err("a `}` without its `{`".to_owned());
    }
    builder.claim.text.push_str(rest);
    if builder.claim.slots.is_empty() {
        return Err("it rests on no evidence; refer to some, like {E1.max}, or use a finding, like F1".to_owned());
    }
    Ok(builder.claim)
}

/// The words of a sentence without its references.
pub(crate) fn own_words(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        words.push_str(before);
        words.push(' ');
        rest = after.split_once('}').map_or("", |(_, tail)| tail);
    }
    words.push_str(rest);
    words
}

/// What a reference leads to.
enum Found {
    Number { quantity: Quantity, unit: Unit },
    Time(FactRef),
    Text(FactRef),
    Entity { evidence: EvidenceId, key: String, value: String },
}

struct Builder<'a> {
    evidence: &'a [Evidence],
    claim: DraftClaim,
}

impl Builder<'_> {
    fn expression(&mut self, text: &str) -> Result<(), String> {
        if let Some((from, to)) = text.split_once("->") {
            return self.change(from.trim(), to.trim());
        }
        if let Some((left, right)) = text.split_once(" vs ") {
            return self.versus(left.trim(), right.trim());
        }
        let slot = match self.find(text)? {
            Found::Number { quantity, unit } => self.number(quantity, unit)?,
            Found::Time(fact) => NumberSlot::Time(fact),
            Found::Text(fact) => NumberSlot::Quote(fact),
            Found::Entity { evidence, key, value } => NumberSlot::Entity { evidence, key, value },
        };
        self.put(slot)
    }

    /// "rose from 1 to 2 (100 %)", whichever way it went.
    fn change(&mut self, from: &str, to: &str) -> Result<(), String> {
        let (from, to, unit) = self.pair(from, to)?;
        let relation = self.relation(&to, &from)?;
        let verb = match relation {
            Relation::Above => "rose from ",
            Relation::Below => "fell from ",
            Relation::About | Relation::AtLeast | Relation::AtMost => "stayed about the same, from ",
        };
        self.claim.text.push_str(verb);
        let slot = self.number(from.clone(), unit)?;
        self.put(slot)?;
        self.claim.text.push_str(" to ");
        let slot = self.number(to.clone(), unit)?;
        self.put(slot)?;
        let percent = Quantity::PercentChange { from: Box::new(from.clone()), to: Box::new(to.clone()) };
        if relation != Relation::About && evaluate(&percent, self.evidence).is_ok() {
            self.claim.text.push_str(" (");
            let format = NumberFormat { decimals: 0, unit: Unit::Percent, magnitude: true };
            self.put(NumberSlot::Number { quantity: percent, format })?;
            self.claim.text.push(')');
        }
        self.claim.comparisons.push(Comparison { left: to, relation, right: from });
        Ok(())
    }

    /// "2, above 1", or of times "…, later than …".
    fn versus(&mut self, left: &str, right: &str) -> Result<(), String> {
        if let (Found::Time(left), Found::Time(right)) = (self.find(left)?, self.find(right)?) {
            let (first, second) = (Quantity::Fact(left.clone()), Quantity::Fact(right.clone()));
            let order = evaluate(&first, self.evidence).ok().zip(evaluate(&second, self.evidence).ok());
            let (relation, words) = match order.and_then(|(a, b)| a.partial_cmp(&b)) {
                Some(std::cmp::Ordering::Less) => (Relation::Below, ", earlier than "),
                Some(std::cmp::Ordering::Greater) => (Relation::Above, ", later than "),
                Some(std::cmp::Ordering::Equal) => (Relation::AtLeast, ", at the same time as "),
                None => return Err("one of the times is not there".to_owned()),
            };
            self.put(NumberSlot::Time(left))?;
            self.claim.text.push_str(words);
            self.put(NumberSlot::Time(right))?;
            self.claim.comparisons.push(Comparison { left: first, relation, right: second });
            return Ok(());
        }
        let (left, right, unit) = self.pair(left, right)?;
        let relation = self.relation(&left, &right)?;
        let words = match relation {
            Relation::Above => ", above ",
            Relation::Below => ", below ",
            Relation::About | Relation::AtLeast | Relation::AtMost => ", about the same as ",
        };
        let slot = self.number(left.clone(), unit)?;
        self.put(slot)?;
        self.claim.text.push_str(words);
        let slot = self.number(right.clone(), unit)?;
        self.put(slot)?;
        self.claim.comparisons.push(Comparison { left, relation, right });
        Ok(())
    }

    fn pair(&self, left: &str, right: &str) -> Result<(Quantity, Quantity, Unit), String> {
        match (self.find(left)?, self.find(right)?) {
            (Found::Number { quantity: a, unit }, Found::Number { quantity: b, unit: other }) if unit == other => {
                Ok((a, b, unit))
            }
            (Found::Number { .. }, Found::Number { .. }) => {
                Err(format!("`{left}` and `{right}` have different units and cannot be compared"))
            }
            (Found::Number { .. } | Found::Time(_) | Found::Text(_) | Found::Entity { .. }, _) => {
                Err(format!("`{left}` and `{right}` are not both numbers"))
            }
        }
    }

    fn relation(&self, left: &Quantity, right: &Quantity) -> Result<Relation, String> {
        let of = |quantity| evaluate(quantity, self.evidence).map_err(|reason| reason.to_string());
        let (left, right) = (of(left)?, of(right)?);
        // The line that grounding draws: what is within 2 % of the larger is "about the same".
        Ok(if (left - right).abs() <= 0.02 * left.abs().max(right.abs()) {
            Relation::About
        } else if left > right {
            Relation::Above
        } else {
            Relation::Below
        })
    }

    fn number(&self, quantity: Quantity, unit: Unit) -> Result<NumberSlot, String> {
        let value = evaluate(&quantity, self.evidence).map_err(|reason| reason.to_string())?;
        let decimals = match value.abs() {
            _ if value.fract() == 0.0 => 0,
            size if size >= 100.0 => 0,
            size if size >= 10.0 => 1,
            size if size >= 0.1 => 2,
            _ => 4,
        };
        Ok(NumberSlot::Number { quantity, format: NumberFormat { decimals, unit, magnitude: false } })
    }

    fn put(&mut self, slot: NumberSlot) -> Result<(), String> {
        if self.claim.slots.len() >= MAX_REFERENCES {
            return Err(format!("it has more than {MAX_REFERENCES} references; say it in two sentences"));
        }
        let name = format!("v{}", self.claim.slots.len());
        self.claim.text.push_str(&format!("{{{name}}}"));
        self.claim.slots.insert(name, slot);
        Ok(())
    }

    fn find(&self, text: &str) -> Result<Found, String> {
        let mut parts = text.split('.');
        let id = parts.next().unwrap_or_default();
        let evidence = self.evidence.iter().find(|e| e.id.as_str() == id);
        let evidence = evidence.ok_or_else(|| format!("there is no evidence `{}`", short(id)))?;
        let parts: Vec<&str> = parts.collect();
        let found = match parts.as_slice() {
            [field] => whole(evidence, field),
            [place, field] => match (indexed(place, 's'), indexed(place, 'r')) {
                (Some(index), _) => evidence.series.get(index).and_then(|s| of_series(evidence, s, field)),
                (None, Some(index)) => of_row(evidence, index, field),
                (None, None) => None,
            },
            [place, "peers", field] => indexed(place, 's')
                .and_then(|index| evidence.series.get(index))
                .and_then(|series| peers(evidence, series, field)),
            _ => None,
        };
        found.ok_or_else(|| format!("`{}` leads to nothing", short(text)))
    }
}

fn short(text: &str) -> String {
    crate::safe_text::value(&text.chars().take(40).collect::<String>())
}

fn indexed(part: &str, letter: char) -> Option<usize> {
    part.strip_prefix(letter)?.parse().ok()
}

fn fact(evidence: &Evidence, path: FactPath) -> FactRef {
    FactRef { evidence: evidence.id.clone(), path }
}

fn number(evidence: &Evidence, path: FactPath, unit: Unit) -> Option<Found> {
    Some(Found::Number { quantity: Quantity::Fact(fact(evidence, path)), unit })
}

fn unit_of(evidence: &Evidence, stat: Stat) -> Unit {
    if stat == Stat::Count { Unit::Count } else { evidence.unit }
}

fn whole(evidence: &Evidence, field: &str) -> Option<Found> {
    if let Some(stat) = Stat::parse(field) {
        let path = FactPath::Stat { entity: BTreeMap::new(), stat, within: None };
        return number(evidence, path, unit_of(evidence, stat));
    }
    match (field, evidence.series.as_slice()) {
        ("total", _) => return number(evidence, FactPath::Total, Unit::Count),
        ("returned", _) => return number(evidence, FactPath::Returned, Unit::Count),
        ("metric", _) => {
            let value = evidence.canonical_metric.clone().or_else(|| evidence.metric.clone())?;
            return Some(Found::Entity { evidence: evidence.id.clone(), key: "metric".to_owned(), value });
        }
        ("at_max" | "at_min" | "at_change" | "last_seen", [only]) => return of_series(evidence, only, field),
        _ => {}
    }
    let value = evidence.labels.get(field)?.clone();
    Some(Found::Entity { evidence: evidence.id.clone(), key: field.to_owned(), value })
}

fn of_series(evidence: &Evidence, series: &Series, field: &str) -> Option<Found> {
    let entity = series.entity.clone();
    if let Some(stat) = Stat::parse(field) {
        return number(evidence, FactPath::Stat { entity, stat, within: None }, unit_of(evidence, stat));
    }
    let at = |at| Some(Found::Time(fact(evidence, FactPath::Instant { entity: entity.clone(), at })));
    match field {
        "at_max" => at(series.points.iter().max_by(|a, b| a.max.total_cmp(&b.max))?.time),
        "at_min" => at(series.points.iter().min_by(|a, b| a.min.total_cmp(&b.min))?.time),
        "at_change" => at(change_instant(series)?),
        "last_seen" => Some(Found::Time(fact(evidence, FactPath::LastSeen { entity }))),
        key => {
            let value = series.entity.get(key)?.clone();
            Some(Found::Entity { evidence: evidence.id.clone(), key: key.to_owned(), value })
        }
    }
}

fn peers(evidence: &Evidence, series: &Series, field: &str) -> Option<Found> {
    let stat = Stat::parse(field)?;
    let path = FactPath::Peers { exclude: series.entity.clone(), stat, within: None };
    number(evidence, path, unit_of(evidence, stat))
}

fn of_row(evidence: &Evidence, row: usize, field: &str) -> Option<Found> {
    let found = evidence.rows.get(row)?;
    match field {
        "value" => number(evidence, FactPath::RowValue { row }, evidence.unit),
        "time" => Some(Found::Time(fact(evidence, FactPath::RowTime { row }))),
        key => match found.entity.get(key) {
            Some(value) => {
                Some(Found::Entity { evidence: evidence.id.clone(), key: key.to_owned(), value: value.clone() })
            }
            None if found.fields.contains_key(key) => {
                Some(Found::Text(fact(evidence, FactPath::RowField { row, field: key.to_owned() })))
            }
            None => None,
        },
    }
}

//! What `top_k` says: who is first, by how much, and whether that stands out at all.

use sightline_model::{Entity, Evidence, FactPath, Outcome, Relation};

use crate::args::OrderArg;
use crate::measure::Measure;
use crate::metric_range::subject;
use crate::reading::Ranked;
use crate::sentence::{Sentence, WHOLE, fact, format_for, row_value};
use crate::tool::ToolOutput;
use crate::top_k::groups::{COMPARED, MEAN};

/// So many of the ranked are named in sentences; the rows hold the rest.
const MAX_NAMED: usize = 5;
/// A group with less than this share of the usual number of samples may have stopped reporting. Chosen.
const FEW_SAMPLES: f64 = 0.5;

pub(super) fn output(
    measure: &Measure,
    evidence: Vec<Evidence>,
    ranked: &[Ranked],
    order: OrderArg,
    fixed: &Entity,
) -> ToolOutput {
    let mut output = ToolOutput { outcome: Some(Outcome::Answered), ..ToolOutput::default() };
    if let Some(values) = evidence.first() {
        let groups = evidence.last().map_or(values, |last| last);
        let mut sentences = describe(measure, values, ranked, order, fixed);
        sentences.extend(about_groups(groups, ranked, values.total));
        output.claims =
            sentences.into_iter().map(|s| evidence.iter().fold(s, |s, piece| s.cite(&piece.id)).finish()).collect();
        output.headline = output.claims.first().cloned();
        output.data_health = health(ranked);
    }
    output.evidence = evidence;
    output
}

fn describe(measure: &Measure, values: &Evidence, ranked: &[Ranked], order: OrderArg, fixed: &Entity) -> Vec<Sentence> {
    let (Some(first), Some(last)) = (ranked.first(), ranked.last()) else { return Vec::new() };
    let id = &values.id;
    let unit = measure.unit();
    let total = || fact(id, FactPath::Total);
    if first.value == last.value && ranked.len() > 1 {
        return vec![
            subject(measure, values, &Entity::new(), fixed)
                .say(" was the same for all ")
                .number(total(), WHOLE)
                .say(": ")
                .number(row_value(id, 0), format_for(first.value, unit)),
        ];
    }
    let (words, relation) = match order {
        OrderArg::Highest => (" was the highest of ", Relation::AtLeast),
        OrderArg::Lowest => (" was the lowest of ", Relation::AtMost),
    };
    let mut sentence = subject(measure, values, &first.entity, fixed)
        .say(words)
        .number(total(), WHOLE)
        .say(": ")
        .number(row_value(id, 0), format_for(first.value, unit));
    let shown = usize::try_from(values.returned).unwrap_or(usize::MAX);
    // Every listed row, and the rest, must bear out that this one comes first.
    for row in 1..shown {
        sentence = sentence.compare(row_value(id, 0), relation, row_value(id, row));
    }
    if let Some(rest) = values.rows.get(shown).and_then(|r| r.value) {
        let how = if measure.sums() { ", all others together " } else { ", the others " };
        sentence = sentence.say(how).number(row_value(id, shown), format_for(rest, unit));
    }
    let mut sentences = vec![sentence];
    for (row, r) in ranked.iter().enumerate().take(shown.min(MAX_NAMED)).skip(1) {
        sentences.push(
            Sentence::new()
                .say("then ")
                .entity(id, &r.entity)
                .say(": ")
                .number(row_value(id, row), format_for(r.value, unit))
                .compare(row_value(id, row - 1), relation, row_value(id, row)),
        );
    }
    sentences
}

/// How many of those compared are left, and what they come to.
fn about_groups(groups: &Evidence, ranked: &[Ranked], left: u64) -> Option<Sentence> {
    let id = &groups.id;
    let compared = groups.rows.get(COMPARED)?.value?;
    if ranked.is_empty() {
        let none = Sentence::new().say("none of the ").number(row_value(id, COMPARED), WHOLE);
        return Some(none.say(" groups fits `above`, `below` and `min_samples`"));
    }
    if compared <= left as f64 {
        return None;
    }
    let mean = groups.rows.get(MEAN)?.value?;
    Some(
        Sentence::new()
            .number(row_value(id, COMPARED), WHOLE)
            .say(" groups were compared; the mean of those within the bounds is ")
            .number(row_value(id, MEAN), format_for(mean, groups.unit)),
    )
}

fn health(ranked: &[Ranked]) -> Vec<String> {
    let counts: Vec<f64> = ranked.iter().map(|r| r.count as f64).collect();
    let Some(usual) = sightline_analysis::median(&counts) else { return Vec::new() };
    if counts.iter().any(|count| *count < FEW_SAMPLES * usual) {
        vec![
            "some of those ranked have far fewer samples than the others; what stopped reporting cannot be ranked fairly, \
             metric_range with the same group_by shows when"
                .to_owned(),
        ]
    } else {
        Vec::new()
    }
}

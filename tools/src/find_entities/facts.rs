//! What `find_entities` says.

use sightline_model::{
    Candidate, DraftClaim, Entity, Evidence, EvidenceRow, FactPath, Outcome, Quantity, Relation, Unit,
};

use crate::find_entities::{EntityKind, NAME, matching};
use crate::reading::{Content, evidence};
use crate::sentence::{Sentence, WHOLE, at, fact, format_for, row_value};
use crate::tool::{Fetched, ToolOutput};

/// So many are named in the sentence; the rows hold the rest.
const MAX_NAMED: usize = 5;

/// One piece of evidence a query: the first with what was found in all of them, the others for what they read.
pub(super) fn pieces(fetched: &[&Fetched], rows: Vec<EvidenceRow>) -> Vec<Evidence> {
    let mut contents = vec![rows];
    contents.resize_with(fetched.len().max(1), Vec::new);
    fetched
        .iter()
        .zip(contents)
        .zip(1..)
        .map(|((part, rows), n)| evidence(part, NAME, n, Content::Rows(rows)))
        .collect()
}

pub(super) fn found(kind: EntityKind, fetched: &[&Fetched], mut rows: Vec<EvidenceRow>, limit: usize) -> ToolOutput {
    let total = rows.len() as u64;
    rows.truncate(limit);
    let cut = fetched.iter().any(|f| f.result.truncated);
    let mut found = pieces(fetched, rows);
    let mut output = ToolOutput { outcome: Some(Outcome::Answered), ..ToolOutput::default() };
    if let Some(head) = found.first_mut() {
        head.total = total;
        head.truncated = cut;
        let count = if cut { fact(&head.id, FactPath::Returned) } else { fact(&head.id, FactPath::Total) };
        let mut sentence = Sentence::new().number(count, WHOLE).say(" ").say(kind.plural());
        sentence = sentence.say(if cut { " are listed, but there are more: " } else { " were seen in this window: " });
        for (index, row) in head.rows.iter().take(MAX_NAMED).enumerate() {
            if index > 0 {
                sentence = sentence.say("; ");
            }
            sentence = sentence.entity(&head.id, &row.entity);
        }
        if head.rows.len() > MAX_NAMED {
            sentence = sentence.say("; and more");
        }
        if kind == EntityKind::Job {
            head.unit = Unit::Seconds;
        }
        let mut claims = vec![sentence.cite(&head.id).finish()];
        if kind == EntityKind::Job {
            claims.extend((0..head.rows.len().min(MAX_NAMED)).filter_map(|place| about_job(head, place)));
        }
        if let [row] = head.rows.as_slice()
            && kind != EntityKind::Job
            && row.time.is_some()
        {
            let last = Sentence::new()
                .entity(&head.id, &row.entity)
                .say(" was last seen at ")
                .time(at(&head.id, FactPath::RowTime { row: 0 }));
            claims.push(last.finish());
        }
        output.headline = claims.first().cloned();
        output.claims = claims;
    }
    if cut {
        output.data_health.push("the list was cut; narrow it with `search` or a shorter window".to_owned());
    }
    output.evidence = found;
    output
}

/// What the scheduler says of a job: whose it is, its state, its size and its time.
fn about_job(head: &Evidence, place: usize) -> Option<DraftClaim> {
    let row = head.rows.get(place)?;
    let id = &head.id;
    let field = |sentence: Sentence, words: &'static str, key: &str| match row.fields.get(key) {
        Some(text) if !text.is_empty() => sentence.say(words).value(id, key, text),
        Some(_) | None => sentence,
    };
    let named: Entity =
        row.entity.iter().filter(|(key, _)| *key != "cluster").map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut sentence = Sentence::new().entity(id, &named);
    for (words, key) in [(", named ", "name"), (", of user ", "user"), (", state ", "state"), (", GPUs: ", "gpus")] {
        sentence = field(sentence, words, key);
    }
    if row.time.is_some() {
        sentence = sentence.say(", began at ").time(at(id, FactPath::RowTime { row: place }));
    }
    if let Some(seconds) = row.value {
        sentence = sentence.say(", ended at ").time(at(id, FactPath::RowField { row: place, field: "end".to_owned() }));
        sentence = sentence.say(", ran for ").number(row_value(id, place), format_for(seconds, Unit::Seconds));
    }
    Some(sentence.finish())
}

/// Nothing goes by that name, or there is nothing of the kind at all: the same words whether it is hidden or not there.
pub(super) fn none(
    kind: EntityKind,
    key: &str,
    words: Option<&str>,
    fetched: &[&Fetched],
    known: &[EvidenceRow],
    cut: bool,
) -> ToolOutput {
    let near = match words {
        // From a cut list the nearest name may be missing, and a wrong one would be offered.
        Some(words) if !cut => matching::near(key, words, known),
        Some(_) | None => Vec::new(),
    };
    let shown = known.iter().filter(|row| near.iter().any(|name| row.entity.get(key) == Some(name))).cloned().collect();
    let found = pieces(fetched, shown);
    let Some(head) = found.first() else { return ToolOutput::default() };
    // What was looked for by a name may only be called otherwise; what was counted is none.
    let mut sentence = match words {
        Some(_) => Sentence::new().say("no data: no such "),
        None => Sentence::new().number(fact(&head.id, FactPath::Returned), WHOLE).say(" such "),
    };
    sentence = sentence.say(kind.plural()).say(" were seen in this window");
    if near.is_empty() {
        sentence = sentence.compare(fact(&head.id, FactPath::Returned), Relation::AtMost, Quantity::Constant(0.0));
    } else {
        sentence = sentence.say("; close to it are ");
        for (index, name) in near.iter().enumerate() {
            if index > 0 {
                sentence = sentence.say(", ");
            }
            sentence = sentence.value(&head.id, key, name);
        }
    }
    let headline = sentence.cite(&head.id).finish();
    ToolOutput {
        claims: vec![headline.clone()],
        headline: Some(headline),
        outcome: Some(if near.is_empty() { Outcome::InsufficientData } else { Outcome::Clarify }),
        choices: near
            .into_iter()
            .map(|name| Candidate { question: format!("show {} {name}", kind.as_str()), label: name })
            .collect(),
        evidence: found,
        ..ToolOutput::default()
    }
}

/// None of the datasets that hold such things may be read.
pub(super) fn unreadable(kind: EntityKind) -> ToolOutput {
    ToolOutput {
        outcome: Some(Outcome::InsufficientData),
        data_health: vec![format!("no dataset that lists {} may be read", kind.plural())],
        ..ToolOutput::default()
    }
}

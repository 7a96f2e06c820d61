//! What is said of the entries: quotations, each from its entry.

use sightline_diagnosis::{Entry, EntryKind, Section};
use sightline_model::{DraftClaim, Evidence, FactPath, Quantity, Relation};

use crate::sentence::{Sentence, at, fact};

/// So many passages of the best entry are quoted; the rest stands in its evidence.
const MAX_QUOTED: usize = 7;

/// The best entry in quotations, then one sentence for each of the others.
pub(super) fn claims(hits: &[&Entry], pieces: &[Evidence]) -> Vec<DraftClaim> {
    let mut claims = Vec::new();
    for (place, (entry, piece)) in hits.iter().zip(pieces).enumerate() {
        let mut quoted = 0;
        for (row, passage) in entry.passages.iter().enumerate() {
            let first = row == 0;
            let is_source = passage.section == Section::Source;
            // Of the best entry the passages that answer and the source; of the others the first.
            let wanted = if place == 0 { is_source || quoted < MAX_QUOTED } else { first };
            if !wanted {
                continue;
            }
            quoted += 1;
            let mut sentence = Sentence::new();
            if first {
                let lead = if place == 0 { kind(entry.kind) } else { "see also " };
                sentence = sentence.say(lead).value(&piece.id, "title", &entry.title).say(": ");
                if entry.kind == EntryKind::Runbook {
                    sentence = sentence.say("when ");
                }
            } else {
                sentence = sentence.say(word(passage.section));
            }
            let text = at(&piece.id, FactPath::RowField { row, field: "text".to_owned() });
            claims.push(sentence.quote(text).finish());
        }
    }
    claims
}

/// That there is no entry.
pub(super) fn nothing(piece: &Evidence) -> DraftClaim {
    Sentence::new()
        .say("no runbook, code, metric or known pitfall answers that; name an Xid, a metric or what is wrong")
        .compare(fact(&piece.id, FactPath::Total), Relation::AtMost, Quantity::Constant(0.0))
        .cite(&piece.id)
        .finish()
}

/// What stands before the title of the best entry.
fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Runbook => "runbook ",
        EntryKind::Cause => "cause ",
        EntryKind::Line => "log line ",
        EntryKind::Metric => "metric ",
        EntryKind::Xid | EntryKind::Sxid | EntryKind::Throttle | EntryKind::Pitfall | EntryKind::Compat => "",
    }
}

/// What stands before a passage.
fn word(section: Section) -> &'static str {
    match section {
        Section::Meaning => "",
        Section::Instead => "instead: ",
        Section::GoodFor => "good for: ",
        Section::Misleads => "how it misleads: ",
        Section::Collection => "collection: ",
        Section::When => "when ",
        Section::CheckFirst => "check first: ",
        Section::Decide => "decide: ",
        Section::Do => "do: ",
        Section::Investigate => "then look into: ",
        Section::Verify => "verify: ",
        Section::Source => "source: ",
    }
}

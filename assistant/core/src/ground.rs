//! Grounding: every number and comparison of a draft is recomputed from the evidence; what fails is taken out and counted.

mod facts;
mod literals;
mod text;

pub use text::clean;

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use sightline_model::{
    Cause, CauseStatus, Claim, DraftCause, DraftClaim, Evidence, EvidenceId, FactRef, NumberSlot, Quantity,
    Verification,
};

use facts::{Fact, compute, holds, look_up};

/// Why a sentence was taken out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ungrounded {
    /// It names evidence that is not there.
    #[error("there is no evidence `{id}`")]
    NoEvidence {
        /// The id.
        id: String,
    },
    /// The evidence does not hold that fact.
    #[error("evidence `{id}` has nothing at {path}")]
    NoFact {
        /// The evidence.
        id: String,
        /// Where was looked.
        path: String,
    },
    /// A quantity has no finite value (text, a zero base, a constant that would be printed).
    #[error("a quantity of the sentence has no value")]
    NotANumber,
    /// A comparison does not hold.
    #[error("the sentence says `{relation}`, but the values are {left} and {right}")]
    ComparisonFails {
        /// The relation.
        relation: String,
        /// The left value.
        left: String,
        /// The right value.
        right: String,
    },
    /// A slot of the text is not filled, or a filled slot is not in the text.
    #[error("slot `{slot}` of the sentence does not match its text")]
    Slot {
        /// The slot.
        slot: String,
    },
    /// An entity does not stand in the evidence.
    #[error("`{value}` does not stand in evidence `{id}`")]
    NoEntity {
        /// The value.
        value: String,
        /// The evidence.
        id: String,
    },
    /// The words hold a number of their own.
    #[error("the words hold `{literal}`, which is no reference into evidence")]
    Literal {
        /// The literal.
        literal: String,
    },
    /// It cites nothing.
    #[error("the sentence cites no evidence")]
    NoCitation,
}

/// Grounds sentences against evidence, and counts.
pub struct Grounder<'a> {
    evidence: &'a [Evidence],
    question: &'a str,
    zone: TimeZone,
    next_claim: usize,
    verification: Verification,
}

impl<'a> Grounder<'a> {
    /// A grounder over this evidence. `question` is where literal numbers may come from; `zone` is how times are printed.
    pub fn new(evidence: &'a [Evidence], question: &'a str, zone: TimeZone) -> Self {
        Self { evidence, question, zone, next_claim: 1, verification: Verification::default() }
    }

    /// How the sentences fared so far.
    pub fn verification(&self) -> Verification {
        self.verification
    }

    /// A sentence with its numbers filled in, or `None`: it was taken out.
    pub fn claim(&mut self, draft: &DraftClaim) -> Option<Claim> {
        match self.try_claim(draft) {
            Ok((text, citations)) => {
                let id = format!("C{}", self.next_claim);
                self.next_claim += 1;
                self.verification.checked += 1;
                self.verification.passed += 1;
                Some(Claim { id, text, citations, verified: true })
            }
            Err(reason) => {
                tracing::warn!(%reason, "a sentence was taken out because the evidence does not bear it");
                self.verification.dropped += 1;
                None
            }
        }
    }

    /// A cause with its verified claims. A supported cause whose own sentence fails is not one: it is taken out. That sentence also stands
    /// first among the claims, since what it cites is what the cause was judged by.
    pub fn cause(&mut self, draft: &DraftCause) -> Option<Cause> {
        let why = self.claim(&draft.why)?;
        let mut claims: Vec<Claim> = draft.claims.iter().filter_map(|claim| self.claim(claim)).collect();
        let known = draft.components.iter().all(|component| self.knows_component(component));
        if draft.status == CauseStatus::Supported && !known {
            tracing::warn!(cause = %draft.id, "a cause was taken out because its component stands in no evidence");
            self.verification.checked -= 1 + claims.len() as u64;
            self.verification.passed -= 1 + claims.len() as u64;
            self.verification.dropped += 1 + claims.len() as u64;
            return None;
        }
        let cites = !why.citations.is_empty() && claims.iter().all(|claim| claim.text != why.text);
        if draft.status == CauseStatus::Supported && cites {
            claims.insert(0, why.clone());
        }
        Some(Cause {
            id: draft.id.clone(),
            status: draft.status,
            rank: draft.rank,
            components: draft.components.clone(),
            onset: draft.onset,
            why: why.text,
            claims,
        })
    }

    fn knows_component(&self, component: &sightline_model::Component) -> bool {
        component.iter().all(|(key, value)| self.evidence.iter().any(|e| holds_entity(e, key, value)))
    }

    /// The sentence filled in with its citations, or why not.
    ///
    /// # Errors
    /// The first thing about it that the evidence does not bear.
    pub fn try_claim(&self, draft: &DraftClaim) -> Result<(String, Vec<EvidenceId>), Ungrounded> {
        let text = self.fill(draft)?;
        for comparison in &draft.comparisons {
            let left = compute(&comparison.left, self.evidence)?;
            let right = compute(&comparison.right, self.evidence)?;
            if !holds(left, comparison.relation, right) {
                let relation = format!("{:?}", comparison.relation).to_lowercase();
                return Err(Ungrounded::ComparisonFails { relation, left: left.to_string(), right: right.to_string() });
            }
        }
        let citations = citations(draft);
        for id in &citations {
            if !self.evidence.iter().any(|e| e.id == *id) {
                return Err(Ungrounded::NoEvidence { id: id.to_string() });
            }
        }
        if citations.is_empty() && !draft.slots.is_empty() {
            return Err(Ungrounded::NoCitation);
        }
        Ok((text, citations))
    }

    fn fill(&self, draft: &DraftClaim) -> Result<String, Ungrounded> {
        let mut filled = String::new();
        let mut own_words = String::new();
        let mut used = BTreeSet::new();
        let mut rest = draft.text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (slot, tail) = after.split_once('}').ok_or_else(|| Ungrounded::Slot { slot: after.to_owned() })?;
            let value = draft.slots.get(slot).ok_or_else(|| Ungrounded::Slot { slot: slot.to_owned() })?;
            filled.push_str(before);
            own_words.push_str(before);
            // A space, so that words around a slot do not run together into a name.
            own_words.push(' ');
            filled.push_str(&self.print(value)?);
            used.insert(slot);
            rest = tail;
        }
        filled.push_str(rest);
        own_words.push_str(rest);
        if let Some(slot) = draft.slots.keys().find(|slot| !used.contains(slot.as_str())) {
            return Err(Ungrounded::Slot { slot: slot.clone() });
        }
        match literals::stray(&own_words, self.question) {
            Some(literal) => Err(Ungrounded::Literal { literal }),
            None => Ok(filled),
        }
    }

    fn print(&self, slot: &NumberSlot) -> Result<String, Ungrounded> {
        match slot {
            NumberSlot::Number { quantity, format } => {
                if matches!(quantity, Quantity::Constant(_)) {
                    return Err(Ungrounded::NotANumber);
                }
                let value = compute(quantity, self.evidence)?;
                if value.is_finite() { Ok(text::number(value, *format)) } else { Err(Ungrounded::NotANumber) }
            }
            NumberSlot::Time(fact) => match look_up(fact, self.evidence)? {
                Fact::Time(at) => Ok(text::time(at, &self.zone)),
                // A row holds further instants as text: when a job ended.
                Fact::Text(raw) => match raw.parse() {
                    Ok(at) => Ok(text::time(at, &self.zone)),
                    Err(_) => Err(Ungrounded::NotANumber),
                },
                Fact::Number(_) => Err(Ungrounded::NotANumber),
            },
            NumberSlot::Quote(fact) => match look_up(fact, self.evidence)? {
                Fact::Text(raw) => Ok(format!("“{}”", text::clean(&raw))),
                Fact::Number(_) | Fact::Time(_) => Err(Ungrounded::NotANumber),
            },
            NumberSlot::Entity { evidence, key, value } => {
                let stands = self.evidence.iter().any(|e| e.id == *evidence && holds_entity(e, key, value));
                if stands {
                    Ok(text::clean(value))
                } else {
                    Err(Ungrounded::NoEntity { value: value.clone(), id: evidence.to_string() })
                }
            }
        }
    }
}

/// A quantity's value from the evidence, for whoever words a sentence by it; the sentence is grounded all the same.
///
/// # Errors
/// When the evidence does not hold what it refers to, or it has no finite value.
pub fn evaluate(quantity: &Quantity, evidence: &[Evidence]) -> Result<f64, Ungrounded> {
    compute(quantity, evidence)
}

/// Whether the evidence names the entity: as the entity of a series or row, a row's field, a filter, or its metric.
fn holds_entity(evidence: &Evidence, key: &str, value: &str) -> bool {
    let is = |found: Option<&String>| found.is_some_and(|v| v == value);
    is(evidence.labels.get(key))
        || (key == "metric" && (is(evidence.metric.as_ref()) || is(evidence.canonical_metric.as_ref())))
        || evidence.series.iter().any(|s| is(s.entity.get(key)))
        || evidence.rows.iter().any(|r| is(r.entity.get(key)) || is(r.fields.get(key)))
        || evidence.entry_id.as_deref().is_some_and(|entry| key == "entry" && entry == value)
}

/// All evidence a sentence rests on, in order, each once.
fn citations(draft: &DraftClaim) -> Vec<EvidenceId> {
    let mut cited: Vec<EvidenceId> = Vec::new();
    let mut cite = |id: &EvidenceId| {
        if !cited.contains(id) {
            cited.push(id.clone());
        }
    };
    for id in &draft.citations {
        cite(id);
    }
    for slot in draft.slots.values() {
        match slot {
            NumberSlot::Number { quantity, .. } => facts_of(quantity, &mut |fact| cite(&fact.evidence)),
            NumberSlot::Time(fact) | NumberSlot::Quote(fact) => cite(&fact.evidence),
            NumberSlot::Entity { evidence, .. } => cite(evidence),
        }
    }
    for comparison in &draft.comparisons {
        facts_of(&comparison.left, &mut |fact| cite(&fact.evidence));
        facts_of(&comparison.right, &mut |fact| cite(&fact.evidence));
    }
    cited
}

fn facts_of(quantity: &Quantity, visit: &mut dyn FnMut(&FactRef)) {
    match quantity {
        Quantity::Fact(fact) => visit(fact),
        Quantity::Difference(left, right) | Quantity::Ratio(left, right) => {
            facts_of(left, visit);
            facts_of(right, visit);
        }
        Quantity::PercentChange { from, to } => {
            facts_of(from, visit);
            facts_of(to, visit);
        }
        Quantity::Constant(_) => {}
    }
}

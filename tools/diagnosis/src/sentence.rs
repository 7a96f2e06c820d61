//! Draft claims: sentences whose numbers are references into the evidence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::claim::Quantity;
use sightline_model::{
    Comparison, DraftClaim, Entity, Evidence, EvidenceId, FactPath, FactRef, NumberFormat, NumberSlot, Relation, Stat,
    TimeRange, Unit,
};

/// A statistic of one series.
pub(crate) fn stat(evidence: &Evidence, entity: &Entity, stat: Stat, within: Option<TimeRange>) -> Quantity {
    fact(evidence, FactPath::Stat { entity: entity.clone(), stat, within })
}

/// One quantity over another.
pub(crate) fn ratio(left: Quantity, right: Quantity) -> Quantity {
    Quantity::Ratio(Box::new(left), Box::new(right))
}

/// The median of the other series' statistic.
pub(crate) fn peers(evidence: &Evidence, exclude: &Entity, stat: Stat, within: Option<TimeRange>) -> Quantity {
    fact(evidence, FactPath::Peers { exclude: exclude.clone(), stat, within })
}

fn fact(evidence: &Evidence, path: FactPath) -> Quantity {
    Quantity::Fact(FactRef { evidence: evidence.id.clone(), path })
}

/// A sentence in the making.
#[derive(Clone, Debug)]
pub(crate) struct Sentence {
    claim: DraftClaim,
}

impl Sentence {
    /// A sentence with `{slot}` places and no digits.
    pub(crate) fn new(text: &str) -> Self {
        let claim = DraftClaim {
            text: text.to_owned(),
            slots: BTreeMap::new(),
            comparisons: Vec::new(),
            citations: Vec::new(),
        };
        Self { claim }
    }

    fn slot(mut self, name: &str, slot: NumberSlot) -> Self {
        self.claim.slots.insert(name.to_owned(), slot);
        self
    }

    /// Fills a place with a number.
    pub(crate) fn number(self, name: &str, quantity: Quantity, decimals: u8, unit: Unit) -> Self {
        self.slot(name, NumberSlot::Number { quantity, format: NumberFormat { decimals, unit, magnitude: false } })
    }

    /// Fills a place with a change in percent without its sign; the caller states the direction as a comparison.
    pub(crate) fn percent(self, name: &str, from: Quantity, to: Quantity) -> Self {
        let quantity = Quantity::PercentChange { from: Box::new(from), to: Box::new(to) };
        let format = NumberFormat { decimals: 0, unit: Unit::Percent, magnitude: true };
        self.slot(name, NumberSlot::Number { quantity, format })
    }

    /// Fills a place with the time of the point at exactly this instant.
    pub(crate) fn instant(self, name: &str, evidence: &Evidence, entity: &Entity, at: Timestamp) -> Self {
        let path = FactPath::Instant { entity: entity.clone(), at };
        self.slot(name, NumberSlot::Time(FactRef { evidence: evidence.id.clone(), path }))
    }

    /// Fills a place with the time of a series' last point.
    pub(crate) fn last_seen(self, name: &str, evidence: &Evidence, entity: &Entity) -> Self {
        let path = FactPath::LastSeen { entity: entity.clone() };
        self.slot(name, NumberSlot::Time(FactRef { evidence: evidence.id.clone(), path }))
    }

    /// Fills a place with the time of a row.
    pub(crate) fn row_time(self, name: &str, evidence: &Evidence, row: usize) -> Self {
        let path = FactPath::RowTime { row };
        self.slot(name, NumberSlot::Time(FactRef { evidence: evidence.id.clone(), path }))
    }

    /// Fills a place with the quoted text of a row's field.
    pub(crate) fn quote(self, name: &str, evidence: &Evidence, row: usize, field: &str) -> Self {
        let path = FactPath::RowField { row, field: field.to_owned() };
        self.slot(name, NumberSlot::Quote(FactRef { evidence: evidence.id.clone(), path }))
    }

    /// Fills `{node}`, `{gpu}`, `{rank}`, `{pod}` and the like with what the entity has of them.
    pub(crate) fn entity(mut self, evidence: &Evidence, entity: &Entity) -> Self {
        for key in ["node", "gpu", "rank", "pod", "engine", "service", "model"] {
            if let Some(value) = entity.get(key) {
                let slot =
                    NumberSlot::Entity { evidence: evidence.id.clone(), key: key.to_owned(), value: value.clone() };
                self.claim.slots.insert(key.to_owned(), slot);
            }
        }
        self
    }

    /// Fills a place with a value that stands in the evidence under that key: `service`, `pod`, `from`, `to`.
    pub(crate) fn named(self, name: &str, evidence: &Evidence, key: &str, value: &str) -> Self {
        let slot = NumberSlot::Entity { evidence: evidence.id.clone(), key: key.to_owned(), value: value.to_owned() };
        self.slot(name, slot)
    }

    /// States that one quantity relates to another.
    pub(crate) fn holds(mut self, left: Quantity, relation: Relation, right: Quantity) -> Self {
        self.claim.comparisons.push(Comparison { left, relation, right });
        self
    }

    /// Cites a piece of evidence that no place names.
    pub(crate) fn cite(mut self, evidence: &EvidenceId) -> Self {
        if !self.claim.citations.contains(evidence) {
            self.claim.citations.push(evidence.clone());
        }
        self
    }

    /// Cites everything that the claims rest on.
    pub(crate) fn cite_all(mut self, claims: &[DraftClaim]) -> Self {
        for claim in claims {
            for slot in claim.slots.values() {
                let id = match slot {
                    NumberSlot::Number { quantity, .. } => evidence_of(quantity),
                    NumberSlot::Time(fact) | NumberSlot::Quote(fact) => Some(fact.evidence.clone()),
                    NumberSlot::Entity { evidence, .. } => Some(evidence.clone()),
                };
                if let Some(id) = id {
                    self = self.cite(&id);
                }
            }
        }
        self
    }

    /// The claim. Places that the text does not use are taken out.
    pub(crate) fn claim(mut self) -> DraftClaim {
        let text = self.claim.text.clone();
        self.claim.slots.retain(|name, _| text.contains(&format!("{{{name}}}")));
        self.claim
    }
}

fn evidence_of(quantity: &Quantity) -> Option<EvidenceId> {
    match quantity {
        Quantity::Fact(fact) => Some(fact.evidence.clone()),
        Quantity::Difference(left, _) | Quantity::Ratio(left, _) => evidence_of(left),
        Quantity::PercentChange { from, .. } => evidence_of(from),
        Quantity::Constant(_) => None,
    }
}

/// What `{gpu}`, `{rank}` and `{node}` read like for an entity: `GPU {gpu} on {node}`, `rank {rank} on {node}`, `node {node}`,
/// `rank {rank}`, or the job.
pub(crate) fn who(entity: &Entity) -> &'static str {
    match (entity.contains_key("gpu"), entity.contains_key("node"), entity.contains_key("rank")) {
        (true, true, _) => "GPU {gpu} on {node}",
        (true, false, _) => "GPU {gpu}",
        (false, true, true) => "rank {rank} on {node}",
        (false, true, false) => "node {node}",
        (false, false, true) => "rank {rank}",
        (false, false, false) => "the job",
    }
}

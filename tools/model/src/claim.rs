//! Claims: sentences whose numbers are references into evidence and whose comparisons can be recomputed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::answer::{CauseStatus, Component};
use crate::dataset::Unit;
use crate::evidence::{Entity, Stat};
use crate::id::EvidenceId;
use crate::time::TimeRange;

/// Where in a piece of evidence a fact stands.
#[derive(Clone, Debug, PartialEq)]
pub enum FactPath {
    /// A statistic of the one series of this entity (empty: of all series together), within a window if given.
    Stat {
        /// The series' entity; every named key must match.
        entity: Entity,
        /// Which statistic.
        stat: Stat,
        /// Only points in this window.
        within: Option<TimeRange>,
    },
    /// The median over the other series of their statistic.
    Peers {
        /// The entity left out.
        exclude: Entity,
        /// Which statistic of each peer.
        stat: Stat,
        /// Only points in this window.
        within: Option<TimeRange>,
    },
    /// The time of the point of this series at exactly this instant.
    Instant {
        /// The series' entity.
        entity: Entity,
        /// The instant; a point must exist there.
        at: Timestamp,
    },
    /// The time of the last point of this series.
    LastSeen {
        /// The series' entity.
        entity: Entity,
    },
    /// The value of a row.
    RowValue {
        /// Index into `rows`.
        row: usize,
    },
    /// The time of a row.
    RowTime {
        /// Index into `rows`.
        row: usize,
    },
    /// A field or entity value of a row, as text: quoted, never interpreted.
    RowField {
        /// Index into `rows`.
        row: usize,
        /// The field's or entity key's name.
        field: String,
    },
    /// How many rows or series exist.
    Total,
    /// How many rows or series are here.
    Returned,
    /// How many series satisfy: statistic compared with a constant bound.
    SeriesWhere {
        /// Which statistic of each series.
        stat: Stat,
        /// How it is compared.
        relation: Relation,
        /// With what.
        bound: f64,
        /// Only points in this window.
        within: Option<TimeRange>,
    },
}

/// A fact: a place in a piece of evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct FactRef {
    /// Which evidence.
    pub evidence: EvidenceId,
    /// Where in it.
    pub path: FactPath,
}

/// A number computed from facts.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// The fact itself.
    Fact(FactRef),
    /// `left - right`.
    Difference(Box<Quantity>, Box<Quantity>),
    /// `left / right`; a zero or missing base fails the claim.
    Ratio(Box<Quantity>, Box<Quantity>),
    /// `(to - from) / |from| * 100`; a zero or missing base fails the claim.
    PercentChange {
        /// The base.
        from: Box<Quantity>,
        /// What it became.
        to: Box<Quantity>,
    },
    /// A constant, for comparisons only; it cannot be printed.
    Constant(f64),
}

/// How a number is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberFormat {
    /// Digits after the point.
    pub decimals: u8,
    /// The unit printed behind it.
    pub unit: Unit,
    /// Whether the sign is dropped (`fell by 5 %`); the direction must then be a comparison.
    pub magnitude: bool,
}

/// What fills one `{slot}` of a claim's text.
#[derive(Clone, Debug, PartialEq)]
pub enum NumberSlot {
    /// A number.
    Number {
        /// What.
        quantity: Quantity,
        /// How it is printed.
        format: NumberFormat,
    },
    /// A time, printed in the asker's zone.
    Time(FactRef),
    /// Text of a row, printed quoted and cleaned.
    Quote(FactRef),
    /// An entity's value that must stand in the cited evidence (as an entity value, filter label or row field).
    Entity {
        /// The evidence it stands in.
        evidence: EvidenceId,
        /// The canonical key, for example `node`.
        key: String,
        /// The value.
        value: String,
    },
}

/// How two quantities relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// left > right.
    Above,
    /// left < right.
    Below,
    /// left >= right.
    AtLeast,
    /// left <= right.
    AtMost,
    /// |left - right| is within 2 % of the larger magnitude ("about the same").
    About,
}

/// A comparison a claim asserts; grounding recomputes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Left side. Times compare as milliseconds since 1970.
    pub left: Quantity,
    /// The relation.
    pub relation: Relation,
    /// Right side.
    pub right: Quantity,
}

/// A sentence before it is grounded.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftClaim {
    /// Text with `{slot}` places and no digits of its own beyond names in `slots`.
    pub text: String,
    /// What fills the places.
    pub slots: BTreeMap<String, NumberSlot>,
    /// What it asserts beyond the numbers.
    pub comparisons: Vec<Comparison>,
    /// The evidence it rests on, besides what the slots name.
    pub citations: Vec<EvidenceId>,
}

/// A cause before its claims are grounded.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftCause {
    /// The cause id, for example `thermal_throttling`.
    pub id: String,
    /// Whether it holds.
    pub status: CauseStatus,
    /// Its place among the supported causes, from 1; 0 for those that are not supported.
    pub rank: u32,
    /// The culprits.
    pub components: Vec<Component>,
    /// The first sample at which the changed level holds.
    pub onset: Option<Timestamp>,
    /// One sentence for why it has this status and rank; grounded like any claim.
    pub why: DraftClaim,
    /// The claims that speak for or against it.
    pub claims: Vec<DraftClaim>,
    /// What to do next.
    pub next_steps: Vec<String>,
    /// Runbook ids.
    pub runbooks: Vec<String>,
}

/// A sentence as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name within the answer, `C1`, `C2`, ….
    pub id: String,
    /// The sentence with its numbers filled in.
    pub text: String,
    /// The evidence it rests on.
    pub citations: Vec<EvidenceId>,
    /// Always true in an answer as sent; what fails is dropped.
    pub verified: bool,
}

//! Plain data shared by every crate: ids, tenants, time ranges, rows, results, evidence, claims, answers.
//!
//! This crate has no logic beyond construction and formatting, does no I/O and reads no clock.

pub mod answer;
pub mod audit;
pub mod claim;
pub mod dataset;
pub mod evidence;
pub mod id;
pub mod principal;
pub mod result;
pub mod rows;
pub mod text;
mod time;

pub use answer::{Answer, AuditRef, Candidate, Cause, CauseStatus, Component, Cost, Outcome, Verification};
pub use claim::{
    Claim, Comparison, DraftCause, DraftClaim, FactPath, FactRef, NumberFormat, NumberSlot, Quantity, Relation,
};
pub use dataset::{Aggregation, Dataset, Dim, MetricKind, Unit};
pub use evidence::{Coverage, Entity, Evidence, EvidenceRow, Gap, Point, Read, Series, Stat, Stats};
pub use id::{AnswerId, ConversationId, EvidenceId, QueryId, QuestionId};
pub use principal::{Principal, Role, TenantScope};
pub use result::{Cell, Column, ColumnKind, ResultSet};
pub use text::is_invisible;
pub use time::{AskedRange, TimeRange};

/// A boxed, sendable future: what the ports return, so that they can be trait objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn std::future::Future<Output = T> + Send + 'a>>;

//! The stations of the line that a benchmark puts in: a clock that stands, numbered ids, and an audit log and planner that do
//! nothing. What is measured with them is the line without the time that those take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use sightline_core::{Ask, Clock, Gathered, Ids, Planner, PlannerError, Planning, Turn};
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{AuditRef, BoxFuture};

/// A wall clock that stands, and a monotonic one that runs.
pub(crate) struct StandingClock {
    pub(crate) at: Timestamp,
    pub(crate) started: Instant,
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        self.at
    }

    fn monotonic_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }
}

/// Ids that count.
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self) -> String {
        format!("bench-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Keeps nothing, allows everything, plans nothing.
pub(crate) struct Nothing;

impl AuditLog for Nothing {
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(AuditRef { question_id: record.question_id, seq: None, hash: String::new() })))
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn complete(&self, _: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn event(&self, _: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Planner for Nothing {
    fn name(&self) -> &'static str {
        "none"
    }

    fn begin<'a>(&'a self, _: &'a Ask) -> Box<dyn Planning + 'a> {
        Box::new(Self)
    }
}

impl Planning for Nothing {
    fn next<'a>(&'a mut self, _: &'a [Gathered]) -> BoxFuture<'a, Result<Turn, PlannerError>> {
        Box::pin(std::future::ready(Ok(Turn::Draft(Box::default()))))
    }
}

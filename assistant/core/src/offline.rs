//! The offline planner: no model, no network. It reads the question, makes the calls, and hands their sentences on.
//!
//! Stages, each in a file of its own: words, time, reading (mark and classify, with the subject of what is unwell), plan (calls; `why` for
//! causes), draft.

mod draft;
mod lexicon;
mod meaning;
mod plan;
mod reading;
mod subject;
mod time;
mod why;
mod words;

#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod time_tests;

use std::sync::Arc;

use jiff::tz::TimeZone;
use sightline_model::BoxFuture;
use sightline_query::Catalogue;

use crate::ports::{Ask, Gathered, Planner, PlannerError, Turn};

/// The built-in planner. It keeps nothing between turns: each turn is a function of the question and what was gathered.
pub struct OfflinePlanner {
    catalogue: Arc<Catalogue>,
}

impl OfflinePlanner {
    /// A planner over this catalogue.
    pub fn new(catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue }
    }

    fn turn(&self, ask: &Ask, gathered: &[Gathered]) -> Result<Turn, PlannerError> {
        let zone = TimeZone::get(&ask.time_zone).map_err(|error| PlannerError::Failed {
            planner: "offline",
            reason: format!("the zone `{}` is not known here ({error}); use an IANA name", ask.time_zone),
        })?;
        let reading = match reading::read(&ask.text, &self.catalogue, ask.as_of, &zone) {
            Ok(reading) => reading,
            Err(fault) => return Ok(Turn::Draft(Box::new(draft::time_fault(&fault)))),
        };
        Ok(plan::next(ask, &zone, &reading, &self.catalogue, gathered))
    }
}

impl Planner for OfflinePlanner {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn next<'a>(&'a self, ask: &'a Ask, gathered: &'a [Gathered]) -> BoxFuture<'a, Result<Turn, PlannerError>> {
        Box::pin(async move { self.turn(ask, gathered) })
    }
}

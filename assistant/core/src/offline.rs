//! The offline planner: no model, no network. It reads the question, makes the calls, and hands their sentences on.
//!
//! Stages, each in a file of its own: words (normalise), time, entities, limits, anchor and reading (mark), features and classify (by rules of
//! the lexicon), follow (what earlier questions make whole), resolve and windows (against what there is), plan (calls; `why` for causes),
//! draft. What people say is data: `lexicon/*.toml`.

mod anchor;
mod classify;
mod draft;
mod entities;
mod explain;
mod features;
mod follow;
mod lexicon;
mod limits;
mod meaning;
mod plan;
mod reading;
mod resolve;
mod site_words;
mod subject;
mod time;
mod why;
mod windows;
mod words;

#[cfg(test)]
mod follow_tests;
#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod phrasing_tests;
#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod time_tests;
#[cfg(test)]
mod wording_tests;

use std::sync::Arc;

use jiff::tz::TimeZone;
use sightline_model::{AskedRange, BoxFuture};
use sightline_query::Catalogue;

use crate::ports::{Ask, Gathered, Planner, PlannerError, Planning, Turn};
pub use explain::Explanation;
pub use lexicon::LexiconFault;
pub use site_words::{LiveWords, SiteWords, SiteWordsFaults};

/// The built-in planner. It keeps nothing between turns: each turn is a function of the question and what was gathered.
pub struct OfflinePlanner {
    catalogue: Arc<Catalogue>,
    words: Arc<LiveWords>,
}

impl OfflinePlanner {
    /// A planner over this catalogue, with the words that ship.
    ///
    /// # Errors
    /// When a word list that ships cannot be read.
    pub fn new(catalogue: Arc<Catalogue>) -> Result<Self, LexiconFault> {
        let words = Arc::new(LiveWords::new(Arc::clone(&catalogue))?);
        Ok(Self { catalogue, words })
    }

    /// A planner over this catalogue, with these words.
    pub fn over(catalogue: Arc<Catalogue>, words: Arc<LiveWords>) -> Self {
        Self { catalogue, words }
    }

    /// How a question is read, as far as its words alone tell.
    ///
    /// # Errors
    /// When the zone is not known, or a time expression has no meaning.
    pub fn explain(&self, ask: &Ask) -> Result<Explanation, PlannerError> {
        let (zone, lexicon) = (zone(ask)?, self.words.now());
        match follow::read(ask, &lexicon, &self.catalogue, &zone) {
            Ok(reading) => Ok(explain::explain(&reading)),
            Err(fault) => Err(PlannerError::Failed { planner: "offline", reason: fault.reason }),
        }
    }

    /// The windows that the question's time words mean; none where it has none, or they have no meaning.
    #[must_use]
    pub fn windows(&self, ask: &Ask) -> Vec<AskedRange> {
        let Ok(zone) = zone(ask) else { return Vec::new() };
        let Ok(reading) = follow::read(ask, &self.words.now(), &self.catalogue, &zone) else { return Vec::new() };
        let shown = reading.zone.clone().unwrap_or(zone);
        reading.times.iter().map(|time| time::asked(time.range, &time.typed, &shown)).collect()
    }

    fn turn(&self, ask: &Ask, gathered: &[Gathered]) -> Result<Turn, PlannerError> {
        let (zone, lexicon) = (zone(ask)?, self.words.now());
        let reading = match follow::read(ask, &lexicon, &self.catalogue, &zone) {
            Ok(reading) => reading,
            Err(fault) => return Ok(Turn::Draft(Box::new(unread(ask, &lexicon, &fault)))),
        };
        let shown = reading.zone.clone().unwrap_or(zone);
        let stage = plan::Stage {
            ask,
            zone: &shown,
            reading: &reading,
            catalogue: &self.catalogue,
            lexicon: &lexicon,
            gathered,
        };
        Ok(plan::next(&stage))
    }
}

/// What is said where a time has no meaning; `the weather tomorrow` is refused for what it is about.
fn unread(ask: &Ask, lexicon: &lexicon::Lexicon, fault: &time::TimeFault) -> crate::ports::Draft {
    let words = words::normalised(&ask.text, lexicon);
    if lexicon.refused.off_topic.any(&words) && !lexicon.meaning.field.any(&words) {
        return draft::cannot_yet();
    }
    draft::time_fault(&ask.text, fault)
}

fn zone(ask: &Ask) -> Result<TimeZone, PlannerError> {
    TimeZone::get(&ask.time_zone).map_err(|error| PlannerError::Failed {
        planner: "offline",
        reason: format!("the zone `{}` is not known here ({error}); use an IANA name", ask.time_zone),
    })
}

impl Planner for OfflinePlanner {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn zone(&self, ask: &Ask) -> Option<TimeZone> {
        let own = zone(ask).ok()?;
        follow::read(ask, &self.words.now(), &self.catalogue, &own).ok()?.zone
    }

    fn begin<'a>(&'a self, ask: &'a Ask) -> Box<dyn Planning + 'a> {
        Box::new(Turns { planner: self, ask })
    }
}

/// One question. There is nothing to remember: each turn is planned from the beginning.
struct Turns<'a> {
    planner: &'a OfflinePlanner,
    ask: &'a Ask,
}

impl Planning for Turns<'_> {
    fn next<'a>(&'a mut self, gathered: &'a [Gathered]) -> BoxFuture<'a, Result<Turn, PlannerError>> {
        Box::pin(std::future::ready(self.planner.turn(self.ask, gathered)))
    }
}

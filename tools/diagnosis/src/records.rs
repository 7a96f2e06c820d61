//! What was written down about the job: log lines and events, with the claims that quote them.

use jiff::Timestamp;
use sightline_model::{DraftClaim, Entity, Evidence, EvidenceRow};

use crate::case::{AFTER_END_MS, Case};
use crate::sentence::Sentence;
use crate::view::shift;

/// One line of a log or one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) at: Timestamp,
    pub(crate) evidence: &'a Evidence,
    pub(crate) row: usize,
    line: &'a EvidenceRow,
}

impl<'a> Record<'a> {
    pub(crate) fn body(&self) -> &'a str {
        self.line.fields.get("body").map_or("", String::as_str)
    }

    pub(crate) fn kind(&self) -> &'a str {
        self.line.fields.get("kind").map_or("", String::as_str)
    }

    /// A name it carries: `node`, `gpu`, `rank`, `job`, `service`.
    pub(crate) fn name(&self, key: &str) -> Option<&'a str> {
        self.line.entity.get(key).or_else(|| self.line.fields.get(key)).map(String::as_str)
    }

    /// The node it was written on.
    pub(crate) fn node(&self) -> Option<&'a str> {
        self.line.entity.get("node").map(String::as_str)
    }

    /// What was written, where and when.
    pub(crate) fn claim(&self) -> DraftClaim {
        let node = self.line.entity.get("node");
        let text = match (node.is_some(), self.evidence.dataset == "events") {
            (true, true) => "At {at} there was an event on {node}: {line}.",
            (false, true) => "At {at} there was an event: {line}.",
            (true, false) => "The log of {node} has {line} at {at}.",
            (false, false) => "A log has {line} at {at}.",
        };
        let mut sentence = Sentence::new(text).quote("line", self.evidence, self.row, "body");
        if let Some(node) = node {
            sentence = sentence.entity(self.evidence, &Entity::from([("node".to_owned(), node.clone())]));
        }
        sentence.row_time("at", self.evidence, self.row).claim()
    }
}

/// Every row of logs or events that has a time.
pub(crate) fn records<'a>(evidence: Option<&'a Evidence>) -> impl Iterator<Item = Record<'a>> {
    let rows =
        evidence.into_iter().flat_map(|evidence| evidence.rows.iter().enumerate().map(move |row| (evidence, row)));
    rows.filter_map(|(evidence, (row, line))| Some(Record { at: line.time?, evidence, row, line }))
}

/// The log lines of the job's nodes, while it ran and shortly after, that contain one of these texts; in order of time.
pub(crate) fn lines<'a>(case: &Case<'a>, texts: &[&str]) -> Vec<Record<'a>> {
    lines_since(case, texts, case.observations.job.start.min(case.window.from()))
}

/// The same with what was written before the job began, as far back as was read: what is wrong with a node from its boot on is
/// written once, at boot.
pub(crate) fn lines_before_too<'a>(case: &Case<'a>, texts: &[&str]) -> Vec<Record<'a>> {
    lines_since(case, texts, Timestamp::MIN)
}

fn lines_since<'a>(case: &Case<'a>, texts: &[&str], start: Timestamp) -> Vec<Record<'a>> {
    let job = &case.observations.job;
    let end = shift(case.window.to(), AFTER_END_MS);
    let mut found: Vec<Record<'a>> = records(case.observations.logs)
        .filter(|r| start <= r.at && r.at < end)
        .filter(|r| r.name("node").is_none_or(|node| job.placements.iter().any(|p| p.node == node)))
        // On a shared node, or before the job began there, another job wrote as well.
        .filter(|r| r.name("job").or_else(|| r.name("job_id")).is_none_or(|id| id == job.id))
        .filter(|r| texts.iter().any(|text| contains(r.body(), text)))
        .collect();
    found.sort_by_key(|r| r.at);
    found
}

/// The events of these kinds that concern the job: they name it, one of its nodes, or neither a job, a node nor a service; from
/// shortly before the job began.
pub(crate) fn events<'a>(case: &Case<'a>, kinds: &[&str]) -> Vec<Record<'a>> {
    let from = shift(case.observations.job.start, -TAKES_EFFECT_MS);
    events_before_too(case, kinds).into_iter().filter(|event| from <= event.at).collect()
}

/// The same with what happened before the job began, as far back as was read: a node keeps what was installed on it.
pub(crate) fn events_before_too<'a>(case: &Case<'a>, kinds: &[&str]) -> Vec<Record<'a>> {
    let job = &case.observations.job;
    let concerns = |r: &Record<'_>| match (r.name("job").or_else(|| r.name("job_id")), r.name("node")) {
        (Some(id), _) => id == job.id,
        (None, Some(node)) => job.placements.iter().any(|p| p.node == node),
        (None, None) => r.name("service").is_none(),
    };
    let mut found: Vec<Record<'a>> = records(case.observations.events)
        .filter(|r| kinds.iter().any(|kind| contains(r.kind(), kind)))
        .filter(concerns)
        .collect();
    found.sort_by_key(|r| r.at);
    found
}

/// A change shows at once, or when what runs was restarted for it: within a quarter of an hour. Sources are up to a minute
/// apart, and what is told of five minutes later may have happened before.
const TAKES_EFFECT_MS: i64 = 900_000;

/// The last of these events that came so shortly before the slowdown that it may have brought it.
pub(crate) fn before_slowdown<'a>(case: &Case<'a>, events: &[Record<'a>]) -> Option<Record<'a>> {
    let slowdown = case.pace.slowdown()?;
    let slower = slowdown.onset.as_ref()?.at;
    let early = shift(slower, -TAKES_EFFECT_MS.max(3 * slowdown.step_ms));
    // The onset is the first sample of the new level, so that it lags by up to a step and the minute sources are apart.
    let late = shift(slower, 60_000.max(slowdown.step_ms));
    events.iter().rfind(|e| early <= e.at && e.at <= late).copied()
}

/// Whether a text holds another, whatever the case of its letters.
pub(crate) fn contains(text: &str, part: &str) -> bool {
    text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

//! How a question was read, for `ask --explain`: marks, the classes that rules spoke for, and what it is limited to.

use std::fmt;

use super::reading::{MetricMention, Reading};

/// How many readings are shown beside the chosen one.
const RUNNERS_UP: usize = 2;

/// How the offline planner read a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    lines: Vec<(&'static str, String)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, said) in &self.lines {
            writeln!(f, "{what:<12} {}", crate::ground::clean(said))?;
        }
        Ok(())
    }
}

/// What was read.
pub(super) fn explain(reading: &Reading) -> Explanation {
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    let mut scores = reading.scores.iter();
    if let Some(best) = scores.next() {
        lines.push(("reading", format!("{} (score {}: {})", best.class.as_str(), best.score, best.rule)));
    }
    for other in scores.take(RUNNERS_UP) {
        lines.push(("held against", format!("{} (score {}: {})", other.class.as_str(), other.score, other.rule)));
    }
    for (typed, meant) in &reading.mended {
        lines.push(("spelling", format!("{typed} read as {meant}")));
    }
    for time in &reading.times {
        lines.push(("time", format!("{}: {} to {}", time.typed, time.range.from(), time.range.to())));
    }
    if let Some(anchor) = &reading.anchor {
        lines.push((
            "time",
            format!("{}: told by an event of kind {}", anchor.typed, anchor.kind.as_deref().unwrap_or("any")),
        ));
    }
    match &reading.metric {
        MetricMention::One(id) => lines.push(("metric", id.clone())),
        MetricMention::Several { typed, candidates } => {
            lines.push(("metric", format!("{typed}: {}", candidates.join(" or "))))
        }
        MetricMention::None { near, typed: Some(typed) } => {
            lines.push(("metric", format!("{typed}: none; near {}", near.join(", "))))
        }
        MetricMention::None { typed: None, .. } => {}
    }
    for limit in &reading.limits {
        lines.push(("limit", format!("{} ({} {}{})", limit.typed, limit.op, limit.amount, limit.unit)));
    }
    for mention in &reading.mentions {
        let kind = mention.kind.unwrap_or(if mention.written { "a name" } else { "perhaps a name" });
        lines.push(("entity", format!("{}: {kind}", mention.name)));
    }
    for user in &reading.users {
        lines.push(("entity", format!("{user}: user")));
    }
    if let Some(aggregation) = &reading.aggregation {
        lines.push(("aggregation", aggregation.clone()));
    }
    lines.push(("features", reading.features.join(" ")));
    Explanation { lines }
}

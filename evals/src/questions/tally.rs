//! How a set of labelled questions fared, by class.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::matched::Fault;

/// One question as it fared.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    /// Its id.
    pub id: String,
    /// Its class.
    pub class: String,
    /// The conversation.
    pub turns: Vec<String>,
    /// What is wrong, in words; empty where all is right.
    pub faults: Vec<String>,
    /// Whether something was answered that was not asked.
    pub confident: bool,
    /// How the answer ended.
    pub outcome: String,
    /// Its first sentence.
    pub headline: String,
    /// The calls that were made.
    pub calls: Vec<String>,
    /// How long it took, ms.
    pub wall_ms: f64,
}

impl Scored {
    /// Whether all is as the label says.
    pub fn is_right(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Whether faults are of a kind that misleads: an answer to something that was not asked.
pub fn misleads(faults: &[Fault], answered: bool) -> bool {
    let of_reading = |fault: &Fault| {
        matches!(
            fault,
            Fault::Tool | Fault::Metric | Fault::Time | Fault::Entities | Fault::Value(_) | Fault::Outcome(_)
        )
    };
    answered && faults.iter().any(of_reading)
}

/// All of them as one JSON document.
///
/// # Errors
/// When a number is none that JSON has.
pub fn json(all: &[Scored]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(all)
}

/// Sums of a set.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// By class: questions, right, misleading, given up.
    pub classes: BTreeMap<String, [usize; 4]>,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, scored: &Scored) {
        let counts = self.classes.entry(scored.class.clone()).or_default();
        let gave_up = !scored.is_right() && !scored.confident;
        for (slot, holds) in counts.iter_mut().zip([true, scored.is_right(), scored.confident, gave_up]) {
            *slot += usize::from(holds);
        }
    }

    /// All classes together.
    pub fn all(&self) -> [usize; 4] {
        self.classes.values().fold([0; 4], |mut sum, counts| {
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            sum
        })
    }

    /// A table, one line a class.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<12} {:>9} {:>7} {:>7} {:>11} {:>9}\n",
            "class", "questions", "right", "share", "misleading", "given up"
        );
        let all = ("all".to_owned(), self.all());
        for (class, [questions, right, confident, gave_up]) in
            self.classes.iter().map(|(class, counts)| (class.clone(), *counts)).chain([all])
        {
            let share = right as f64 / questions.max(1) as f64;
            let _ = writeln!(text, "{class:<12} {questions:>9} {right:>7} {share:>7.2} {confident:>11} {gave_up:>9}");
        }
        text
    }
}

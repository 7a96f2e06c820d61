//! A run beside an earlier one: another prompt, another model or another build over the same questions. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::planned::ModelTotals;
use crate::report::Report;
use crate::score::Share;

/// What is read of an earlier report.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Earlier {
    #[serde(default)]
    model: Option<ModelTotals>,
    questions: Vec<EarlierQuestion>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct EarlierQuestion {
    id: String,
    right: bool,
    #[serde(default)]
    said: Option<EarlierSaid>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct EarlierSaid {
    checked: u64,
}

/// Why a file is no report of an earlier run.
#[derive(Debug, thiserror::Error)]
#[error("this is no report of `sightline eval run --json`: {0}")]
pub struct NoReport(#[from] serde_json::Error);

impl Earlier {
    /// Reads the report that `--json` wrote.
    ///
    /// # Errors
    /// Where in the text it ceases to be one.
    pub fn read(text: &str) -> Result<Self, NoReport> {
        Ok(serde_json::from_str(text)?)
    }
}

/// Both runs over the questions that both asked, as text.
pub fn beside(report: &Report, earlier: &Earlier) -> String {
    let before: BTreeMap<&str, &EarlierQuestion> = earlier.questions.iter().map(|q| (q.id.as_str(), q)).collect();
    let both: Vec<_> = report.questions.iter().filter_map(|q| Some((q, *before.get(q.id.as_str())?))).collect();
    let (mut was, mut is) = (Share::default(), Share::default());
    let (mut checked_was, mut checked_is) = (0, 0);
    let (mut gained, mut lost) = (Vec::new(), Vec::new());
    for (now, then) in &both {
        was.count(then.right);
        is.count(now.right);
        checked_was += then.said.as_ref().map_or(0, |said| said.checked);
        checked_is += now.said.as_ref().map_or(0, |said| said.checked);
        match (then.right, now.right) {
            (false, true) => gained.push(now.id.as_str()),
            (true, false) => lost.push(now.id.as_str()),
            (true, true) | (false, false) => {}
        }
    }
    let mut text = format!("Beside the earlier run, over {} questions that both asked:\n", both.len());
    let mut line = |name: &str, was: String, is: String| {
        let _ = writeln!(text, "  {name:<22}{was:>28} -> {is}");
    };
    let of =
        |model: &Option<ModelTotals>, part: fn(&ModelTotals) -> String| model.as_ref().map_or("-".to_owned(), part);
    line("model", of(&earlier.model, |m| m.model.clone()), of(&report.model, |m| m.model.clone()));
    line("prompt", of(&earlier.model, |m| m.prompt.clone()), of(&report.model, |m| m.prompt.clone()));
    line("right", share(was), share(is));
    line("verified statements", checked_was.to_string(), checked_is.to_string());
    line("own drafts", of(&earlier.model, |m| share(m.own)), of(&report.model, |m| share(m.own)));
    line("tokens in", of(&earlier.model, |m| m.tokens_in.to_string()), of(&report.model, |m| m.tokens_in.to_string()));
    line(
        "tokens out",
        of(&earlier.model, |m| m.tokens_out.to_string()),
        of(&report.model, |m| m.tokens_out.to_string()),
    );
    for (what, ids) in [("right now", gained), ("no longer right", lost)] {
        if !ids.is_empty() {
            let _ = writeln!(text, "  {what}: {}", ids.join(", "));
        }
    }
    text
}

fn share(share: Share) -> String {
    share.fraction().map_or_else(|| "-".to_owned(), |part| format!("{}/{} {part:.2}", share.hit, share.of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planned::Planned;
    use crate::report::QuestionReport;

    fn run(prompt: &str, right: [bool; 3]) -> Report {
        let question = |(id, right): (&str, bool)| QuestionReport {
            id: id.to_owned(),
            right,
            planned: Some(Planned {
                model: "m".to_owned(),
                prompt: prompt.to_owned(),
                requests: 2,
                tokens_in: 2_000,
                tokens_out: 100,
                money: None,
                fell_back: (!right).then(|| "the model called no tool".to_owned()),
            }),
            ..QuestionReport::default()
        };
        Report::of(["a", "b", "c"].into_iter().zip(right).map(question).collect())
    }

    #[test]
    fn two_prompts_stand_side_by_side_with_what_changed() {
        let earlier = Earlier::read(&run("1-aaaa", [true, true, false]).json().unwrap()).unwrap();
        insta::assert_snapshot!("two_prompts", beside(&run("own-bbbb", [true, false, true]), &earlier));
        assert!(Earlier::read("{}").unwrap_err().to_string().contains("eval run --json"));
    }
}

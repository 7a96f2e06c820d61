//! The log as lines for a terminal. What people typed is cleaned first: a terminal obeys control characters.

use std::fmt::Write as _;

use serde::Serialize;
use sightline_audit::{Entry, QuestionRecord, UsageLine};
use sightline_core::{Replay, ReplayVerdict};
use sightline_model::audit::{ModelCall, ModelUse};
use sightline_model::is_invisible;

use crate::commands::{CommandError, failed};
use crate::output;
use crate::review::Verification;

/// Characters of a question in a list.
const A_LINE: usize = 90;

pub(super) fn json(value: &impl Serialize) -> Result<(), CommandError> {
    output::result(&escaped(&serde_json::to_string_pretty(value).map_err(failed)?)).map_err(failed)
}

/// The same document: what a terminal obeys is written as an escape. Outside of strings JSON has none of it but line ends.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_obeyed(c) {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _infallible = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

pub(super) fn entries(entries: &[Entry]) -> Result<(), CommandError> {
    let mut text = String::new();
    for entry in entries {
        line(&mut text, entry);
    }
    if entries.is_empty() {
        text.push_str("nothing in the log is so\n");
    }
    output::result(&text).map_err(failed)
}

fn line(text: &mut String, entry: &Entry) {
    let who = entry.who.as_deref().unwrap_or("-");
    let what = match (&entry.question, &entry.question_id) {
        (Some(question), Some(id)) => format!("{}  {}", clean(&id.to_string()), cut(question)),
        (Some(question), None) => cut(question),
        (None, _) => detail(entry),
    };
    let _infallible = writeln!(
        text,
        "{:>7}  {:.0}  {:<14} {:<20} {:<17} {what}",
        entry.seq,
        entry.at,
        clean(&entry.kind),
        clean(who),
        clean(&entry.outcome)
    );
}

fn detail(entry: &Entry) -> String {
    let facts: Vec<String> = entry.detail.iter().map(|(name, value)| format!("{name}={value}")).collect();
    cut(&facts.join(" "))
}

pub(super) fn question(record: &QuestionRecord) -> Result<(), CommandError> {
    let QuestionRecord { entry, records, complete, integrity } = record;
    let mut text = String::new();
    line(&mut text, entry);
    let _infallible = writeln!(text, "hash {}", entry.hash);
    for (name, value) in &entry.detail {
        let _infallible = writeln!(text, "  {}: {}", clean(name), clean(value));
    }
    for call in records {
        let record = &call.record;
        let decision = if record.decision.allowed { "allowed" } else { "denied" };
        let _infallible = writeln!(
            text,
            "\n{:>7}  {}  {decision} by {}  {} rows read, {} returned, {:.0} ms\n         arguments {}",
            call.seq,
            clean(&record.tool),
            clean(&record.decision.rules.join(", ")),
            record.rows_read,
            record.result_rows,
            record.wall_ms,
            clean(&record.arguments.to_string())
        );
        for reason in &record.decision.reasons {
            let _infallible = writeln!(text, "         {}", clean(reason));
        }
        if let Some(sql) = &record.sql {
            let _infallible = writeln!(text, "         {}", clean(sql));
        }
        for (name, value) in &record.params {
            let _infallible = writeln!(text, "         {name} = {}", clean(value));
        }
        if let Some(error) = &record.error {
            let _infallible = writeln!(text, "         error: {}", clean(error));
        }
        let _infallible = writeln!(text, "         digest {}", record.result_digest.as_deref().unwrap_or("-"));
    }
    if let Some(complete) = complete {
        let record = &complete.record;
        let _infallible = writeln!(
            text,
            "\n{:>7}  ended {}: {} statements checked, {} dropped, {} rows read, planner {}, {} tokens",
            complete.seq,
            clean(&record.outcome.to_string()),
            record.checked,
            record.dropped,
            record.rows_read,
            clean(&record.planner),
            record.llm_tokens
        );
        for line in record.model.iter().flat_map(model_lines) {
            let _infallible = writeln!(text, "         {line}");
        }
    }
    let whole = match integrity.first_bad {
        None => format!(
            "its {} records are as they were written; `sightline audit verify` checks the whole chain",
            integrity.records
        ),
        Some(seq) => format!("record {seq} is NOT as it was written; run `sightline audit verify`"),
    };
    let _infallible = writeln!(text, "\n{whole}");
    output::result(&text).map_err(failed)
}

/// What a model was asked for the question.
fn model_lines(used: &ModelUse) -> Vec<String> {
    let ModelUse { model, prompt, calls, money, fell_back } = used;
    let cost = money.map_or_else(String::new, |money| format!(", cost {money:.6}"));
    let mut lines = vec![format!("model {}, prompt {}{cost}", clean(model), clean(prompt))];
    for ModelCall { tokens_in, tokens_out, wall_ms, calls, outcome } in calls {
        let said = if *calls > 0 { format!("{calls} {}", clean(outcome)) } else { clean(outcome) };
        lines.push(format!("asked: {tokens_in} tokens in, {tokens_out} out, {wall_ms:.0} ms: {said}"));
    }
    lines.extend(fell_back.iter().map(|why| format!("the built-in planner answered in its place: {}", clean(why))));
    lines
}

pub(super) fn verification(found: &Verification) -> Result<(), CommandError> {
    let mut text = format!("{}\n", found.verdict);
    let _infallible =
        writeln!(text, "{} checkpoints; {} of a copy were compared with them", found.checkpoints, found.compared);
    if let Some(unrecorded) = &found.unrecorded {
        let _infallible = writeln!(text, "{}", clean(unrecorded));
    }
    for note in &found.notes {
        let place = note.seq.map_or_else(String::new, |seq| format!("record {seq}: "));
        let _infallible = writeln!(text, "note: {place}{}", clean(&note.what));
    }
    output::result(&text).map_err(failed)
}

pub(super) fn replay(replayed: &Replay) -> Result<(), CommandError> {
    let mut text = String::new();
    for call in &replayed.calls {
        let verdict = match &call.verdict {
            ReplayVerdict::Same => "same".to_owned(),
            ReplayVerdict::Different { recorded_rows, rows } => {
                format!("different: {recorded_rows} rows then, {rows} today")
            }
            ReplayVerdict::Gone { reason } => format!("gone: {reason}"),
            ReplayVerdict::NotAllowed { reason } => format!("not allowed: {reason}"),
            ReplayVerdict::NotRun { reason } => format!("not run: {reason}"),
            ReplayVerdict::Failed { reason } => format!("failed: {reason}"),
        };
        let query = call.query_id.as_ref().map_or("-", |id| id.as_str());
        let _infallible = writeln!(text, "{:<16} {query}  {}", clean(&call.tool), clean(&verdict));
    }
    let _infallible = writeln!(text, "{} of {} the same", replayed.same, replayed.calls.len());
    output::result(&text).map_err(failed)
}

pub(super) fn usage(usage: &[UsageLine]) -> Result<(), CommandError> {
    let mut text = String::new();
    for line in usage {
        let UsageLine { day, principal, tenants: _, questions, queries, rows_read, bytes_read, llm_tokens } = line;
        let _infallible = writeln!(
            text,
            "{day}  {:<24} {questions:>7} questions {queries:>8} queries {rows_read:>14} rows {bytes_read:>16} bytes {llm_tokens:>10} tokens",
            clean(principal)
        );
    }
    if usage.is_empty() {
        text.push_str("nothing was used in that time\n");
    }
    output::result(&text).map_err(failed)
}

fn cut(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= A_LINE {
        return text;
    }
    let cut: String = text.chars().take(A_LINE - 1).collect();
    format!("{cut}…")
}

/// Without characters that a terminal obeys, or that turn the direction of what follows.
fn clean(text: &str) -> String {
    text.chars().map(|c| if is_obeyed(c) { ' ' } else { c }).collect()
}

fn is_obeyed(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::{A_LINE, cut, escaped, is_obeyed};

    #[test]
    fn json_is_the_same_document_without_what_a_terminal_obeys() {
        let value = serde_json::json!({ "question": "a\u{202e}b\u{9b}31m\u{7f}\u{feff}\u{e0041}\n\"é", "n": [1] });
        let text = escaped(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.chars().all(|c| c == '\n' || !is_obeyed(c)), "{text:?}");
        assert!(
            text.contains("a\\u202eb\\u009b31m") && text.contains("\\udb40\\udc41") && text.contains('é'),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_question_is_one_line_that_no_terminal_obeys() {
        assert_eq!(cut("why\u{1b}[31m\nslow\u{202e}\u{061c}?"), "why [31m slow  ?");
        assert_eq!(cut(&"é".repeat(200)).chars().count(), A_LINE);
    }
}

//! Drafts: what tools found, handed on, and the plain words for all that needs no data.

use sightline_model::{AskedRange, Candidate, Outcome, Principal, TenantScope};
use sightline_tools::ToolOutput;

use super::time::TimeFault;
use crate::ports::Draft;

/// Questions that show what can be asked, for those who asked something else.
const EXAMPLES: [&str; 6] = [
    "Why was training job J123 slow yesterday?",
    "Why is service chat slow since 14:00?",
    "What was the GPU temperature of node atlas-n07 over the last 3 hours?",
    "Top 5 hottest GPUs in the last hour",
    "Compare GPU power today and yesterday",
    "Show Xid errors of node atlas-n07 in the last 2 hours",
];

/// A draft from a tool's output: its sentences and causes as they are.
pub(super) fn from_output(output: &ToolOutput, time_range: Option<AskedRange>) -> Draft {
    Draft {
        outcome: output.outcome.or(Some(Outcome::Answered)),
        time_range,
        headline: output.headline.clone(),
        plain_headline: "There is nothing to say from the data.".to_owned(),
        claims: output.claims.clone(),
        causes: output.causes.clone(),
        choices: output.choices.clone(),
        suggestions: output.suggestions.clone(),
        next_steps: output.next_steps.clone(),
        runbooks: output.runbooks.clone(),
        data_health: output.data_health.clone(),
    }
}

/// A call brought nothing: its sentence says why and what to ask instead.
pub(super) fn call_failed(sentence: &str, time_range: Option<AskedRange>) -> Draft {
    Draft { time_range, ..plain(Outcome::Refused, &format!("This could not be read: {sentence}.")) }
}

/// A time expression has no meaning here, or more than one.
pub(super) fn time_fault(text: &str, fault: &TimeFault) -> Draft {
    match &fault.readings {
        Some((typed, readings)) => {
            let choice =
                |reading: &String| Candidate { label: reading.clone(), question: text.replacen(typed, reading, 1) };
            clarify(&fault.reason, readings.iter().map(choice).collect())
        }
        None => plain(Outcome::InsufficientData, &fault.reason),
    }
}

/// A draft that is one plain sentence.
pub(super) fn plain(outcome: Outcome, sentence: &str) -> Draft {
    Draft { outcome: Some(outcome), plain_headline: sentence.to_owned(), ..Draft::default() }
}

/// One question back, with choices.
pub(super) fn clarify(sentence: &str, choices: Vec<Candidate>) -> Draft {
    Draft { choices, ..plain(Outcome::Clarify, sentence) }
}

/// The question is outside of what this planner can answer.
pub(super) fn cannot_yet() -> Draft {
    let sentence = "I cannot answer that yet; I can say why a training job or a service is or was slow or failed, give the value of a metric over a time \
                    range, rank GPUs, nodes or services by a metric, compare a metric between two time ranges, and list log lines, Xids and \
                    events.";
    Draft { suggestions: EXAMPLES.map(str::to_owned).to_vec(), ..plain(Outcome::Refused, sentence) }
}

/// The question commands a change.
pub(super) fn read_only() -> Draft {
    let sentence = "Sightline only reads and changes nothing; it can show what such a decision should rest on.";
    Draft { suggestions: EXAMPLES.map(str::to_owned).to_vec(), ..plain(Outcome::Refused, sentence) }
}

/// Something that is nobody's to read was asked for, or the rules ordered away.
pub(super) fn forbidden() -> Draft {
    let sentence = "I answer from telemetry only, and only from what you may see; secrets, other people's questions and other tenants' data are not \
                    mine to show, and nothing in a question changes that.";
    Draft { suggestions: EXAMPLES.map(str::to_owned).to_vec(), ..plain(Outcome::Refused, sentence) }
}

/// The question is SQL.
pub(super) fn no_sql() -> Draft {
    let sentence = "I take questions in plain words and run no SQL that is typed or pasted; ask, for example, for the metric, the node and the time.";
    Draft { suggestions: EXAMPLES.map(str::to_owned).to_vec(), ..plain(Outcome::Refused, sentence) }
}

/// What can be asked.
pub(super) fn abilities() -> Draft {
    let sentence = "I answer questions about your clusters from their telemetry: why a training job or a service is slow or failed and which GPU or \
                    node is to blame, the value of any metric over time, rankings, limits and how long they were passed, counts, comparisons of times, \
                    jobs and nodes, log lines, Xids, alerts and deploys, idle GPUs, jobs by owner and state, and what a metric or an Xid means. I only read.";
    Draft { suggestions: EXAMPLES.map(str::to_owned).to_vec(), ..plain(Outcome::Answered, sentence) }
}

/// A word stands where a name does and is the name of nothing that the asker may see. The words are the same whether or not there is a
/// tenant of that name.
pub(super) fn nothing_called(typed: &str, asker: &Principal) -> Draft {
    let clean = crate::ground::clean(typed);
    match &asker.tenants {
        TenantScope::All => {
            plain(Outcome::InsufficientData, &format!("There is nothing called `{clean}` that you may see."))
        }
        TenantScope::Only(own) => {
            let own = own.iter().cloned().collect::<Vec<_>>().join(", ");
            let sentence = format!("There is nothing called `{clean}` that you may see; you may ask about {own} only.");
            plain(Outcome::Refused, &sentence)
        }
    }
}

/// The question names a tenant that is not the asker's. The words are the same whether or not there is one of that name.
pub(super) fn other_tenant(own: &str) -> Draft {
    let sentence = format!("The question names a tenant that is not yours; you may ask about {own} only.");
    plain(Outcome::Refused, &sentence)
}

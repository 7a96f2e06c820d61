//! `sightline eval questions`: labelled questions, asked through the line over the demo fleet.

use jiff::Timestamp;
use sightline_evals::questions::{AS_OF, Call, Fault, Given, Labelled, Scored, Tally, faults, json, misleads, read};
use sightline_server::commands::CommandError;
use sightline_server::commands::questions::{FleetLine, Heard, Reply};
use sightline_server::{Config, Earlier, Outcome, output, render_text};

use crate::arguments::eval::QuestionsArguments;

/// Asks them and prints how they fared. A low score is no failure; a question that cannot be asked is.
///
/// # Errors
/// When there is nothing to ask, or the line meets a fault.
pub(crate) async fn run(config: &Config, arguments: &QuestionsArguments) -> Result<(), CommandError> {
    let labelled = read(&arguments.dir).map_err(failed)?;
    let every = usize::try_from(arguments.every).unwrap_or(1);
    let asked = labelled
        .iter()
        .filter(|label| arguments.only.as_ref().is_none_or(|text| label.id.contains(text.as_str())))
        .step_by(every);
    let as_of: Timestamp = AS_OF.parse().map_err(failed)?;
    let line = FleetLine::open(config, as_of).await?;
    let mut all: Vec<Scored> = Vec::new();
    for label in asked {
        match scored(&line, label).await {
            Ok(one) => all.push(one),
            // A fault of the line is a wrong answer to this question, and no reason to keep the others from being asked.
            Err(error) => all.push(failed_one(label, &error)),
        }
    }
    line.close().await;
    if all.is_empty() {
        return Err(CommandError::Usage("no question has an id with the text of --only in it".to_owned()));
    }
    let mut tally = Tally::default();
    all.iter().for_each(|one| tally.add(one));
    if let Some(file) = &arguments.json {
        let text = json(&all).map_err(failed)?;
        std::fs::write(file, text)
            .map_err(|error| CommandError::Failed(format!("cannot write `{}`: {error}", file.display())))?;
    }
    output::result(&tally.table()).map_err(failed)
}

async fn scored(line: &FleetLine, label: &Labelled) -> Result<Scored, CommandError> {
    let mut before: Vec<Earlier> = Vec::new();
    let mut last: Option<Heard> = None;
    for turn in &label.turns {
        if let Some(heard) = last.take() {
            before.push(Earlier::of(&heard.answer));
        }
        last = match line.ask(turn, &before, &label.principal, &label.zone).await? {
            Reply::Heard(heard) => Some(*heard),
            Reply::MayNotAsk(reason) => return Ok(turned_away(label, reason)),
        };
    }
    let heard = last.ok_or_else(|| CommandError::Failed("it has no turn".to_owned()))?;
    let value = match &label.value_sql {
        Some(sql) => line.number(sql).await?,
        None => None,
    };
    let calls: Vec<Call> =
        heard.calls.iter().map(|call| Call { tool: call.tool.clone(), arguments: call.arguments.clone() }).collect();
    let text = render_text(&heard.answer);
    let answer = &heard.answer;
    let found = faults(label, Given { answer, text: &text, calls: &calls, value });
    let answered = matches!(answer.outcome, Outcome::Answered | Outcome::NoFault);
    Ok(Scored {
        id: label.id.clone(),
        class: label.class.clone(),
        turns: label.turns.clone(),
        confident: misleads(&found, answered),
        faults: found.iter().map(told).collect(),
        outcome: answer.outcome.as_str().to_owned(),
        headline: answer.headline.clone(),
        calls: calls.iter().map(|call| format!("{} {}", call.tool, call.arguments)).collect(),
        wall_ms: answer.cost.wall_ms,
    })
}

/// Who may not ask is refused before anything is planned.
fn turned_away(label: &Labelled, reason: String) -> Scored {
    let due = label.outcome.contains(&Outcome::Refused);
    let faults = if due { Vec::new() } else { vec![told(&Fault::Outcome(Outcome::Refused.as_str().to_owned()))] };
    Scored { faults, outcome: Outcome::Refused.as_str().to_owned(), headline: reason, ..nothing(label) }
}

fn failed_one(label: &Labelled, error: &CommandError) -> Scored {
    Scored { faults: vec![format!("a fault: {error}")], outcome: "fault".to_owned(), ..nothing(label) }
}

/// A question of which nothing was heard.
fn nothing(label: &Labelled) -> Scored {
    Scored {
        id: label.id.clone(),
        class: label.class.clone(),
        turns: label.turns.clone(),
        confident: false,
        faults: Vec::new(),
        outcome: String::new(),
        headline: String::new(),
        calls: Vec::new(),
        wall_ms: 0.0,
    }
}

fn told(fault: &Fault) -> String {
    match fault {
        Fault::Outcome(outcome) => format!("ended {outcome}"),
        Fault::Tool => "tool".to_owned(),
        Fault::Metric => "metric".to_owned(),
        Fault::Time => "time".to_owned(),
        Fault::Entities => "entities".to_owned(),
        Fault::Arguments(name) => format!("argument {name}"),
        Fault::Value(value) => format!("value {value} is not stated"),
        Fault::Says(text) => format!("`{text}` is not said"),
    }
}

fn failed(error: impl std::error::Error) -> CommandError {
    CommandError::Failed(error.to_string())
}

//! `sightline audit replay`: are the numbers of an answer still the same?

use std::path::PathBuf;

use sightline_core::{NoEvents, ReplayRequest, ReplayVerdict, replay as run_again};
use sightline_model::QuestionId;
use sightline_model::audit::EventKind;
use sightline_policies::Action;

use super::{named, of_question, print, told};
use crate::commands::{CommandError, failed};
use crate::config::Config;
use crate::review::{AuditFiles, ReviewError, Reviewer};
use crate::stations::{Data, Stations};

pub(super) async fn replay(
    config: &Config,
    principal: Option<&str>,
    json: bool,
    question: &str,
    bundle: Option<PathBuf>,
) -> Result<(), CommandError> {
    let stations = Stations::open(config, bundle.map_or(Data::Own, Data::Bundle)).await.map_err(failed)?;
    let replayed = on(config, &stations, principal, json, question).await;
    stations.close().await;
    replayed
}

async fn on(
    config: &Config,
    stations: &Stations,
    principal: Option<&str>,
    json: bool,
    question: &str,
) -> Result<(), CommandError> {
    let assistant = &stations.assistant;
    let policies = assistant.policies.now();
    let principal = named(config, &policies, principal)?;
    let reviewer = Reviewer {
        principal: &principal,
        policies: &policies,
        log: stations.audit.as_ref(),
        clock: assistant.clock.as_ref(),
        entrance: "cli",
        denials: None,
    };
    reviewer.record(Action::ReplayAudit, EventKind::AuditReplayed, of_question(question)).await.map_err(told)?;
    let of = QuestionId::new(question);
    let id = of.clone();
    let found =
        AuditFiles::of(config, None).read(move |reader| Ok(reader.question_record(&id)?)).await.map_err(told)?;
    let record = found.ok_or_else(|| told(ReviewError::Unknown))?;
    let request = ReplayRequest {
        id: QuestionId::new(assistant.ids.next()),
        of,
        calls: record.records.into_iter().map(|call| call.record).collect(),
        reviewer: principal.clone(),
    };
    let replayed = run_again(assistant, &request, &NoEvents).await.map_err(failed)?;
    if json { print::json(&replayed) } else { print::replay(&replayed) }?;
    judge(replayed.calls.iter().map(|call| &call.verdict))
}

/// A script goes by the exit status: it is a success only where something could be compared and all of that is the same.
fn judge<'a>(verdicts: impl Iterator<Item = &'a ReplayVerdict>) -> Result<(), CommandError> {
    let (mut compared, mut same) = (0_u64, 0_u64);
    for verdict in verdicts {
        match verdict {
            ReplayVerdict::Same => (compared, same) = (compared + 1, same + 1),
            ReplayVerdict::Different { .. } | ReplayVerdict::Gone { .. } | ReplayVerdict::Failed { .. } => {
                compared += 1
            }
            ReplayVerdict::NotAllowed { .. } | ReplayVerdict::NotRun { .. } => {}
        }
    }
    match compared {
        0 => Err(CommandError::Failed("none of its calls could be run again, so nothing is known of them".to_owned())),
        _ if same == compared => Ok(()),
        _ => Err(CommandError::Failed(format!("{same} of {compared} calls gave the same rows as they did then"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_a_success_where_something_ran_and_all_of_it_is_the_same() {
        let reason = || "x".to_owned();
        let (same, not_run) = (ReplayVerdict::Same, ReplayVerdict::NotRun { reason: reason() });
        assert!(judge([&same, &same].into_iter()).is_ok());
        assert!(judge([&same, &not_run].into_iter()).is_ok());
        for other in [
            ReplayVerdict::Different { recorded_rows: 2, rows: 1 },
            ReplayVerdict::Gone { reason: reason() },
            ReplayVerdict::Failed { reason: reason() },
        ] {
            let said = judge([&same, &other].into_iter()).unwrap_err().to_string();
            assert!(said.contains("1 of 2 calls"), "{said}");
        }
        let denied = ReplayVerdict::NotAllowed { reason: reason() };
        for nothing in [vec![], vec![&not_run], vec![&denied, &not_run]] {
            assert!(judge(nothing.into_iter()).unwrap_err().to_string().contains("none of its calls"));
        }
    }
}

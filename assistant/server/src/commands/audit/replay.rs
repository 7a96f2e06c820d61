//! `sightline audit replay`: are the numbers of an answer still the same?

use std::path::PathBuf;

use sightline_core::{NoEvents, ReplayRequest, replay as run_again};
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
    if json { print::json(&replayed) } else { print::replay(&replayed) }
}

//! `sightline eval run`: the suite, asked through the line.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sightline_evals::answerer::{Answered, Answerer, Asked};
use sightline_evals::beside::{Earlier, beside};
use sightline_evals::report::Report;
use sightline_evals::run::{How, run};
use sightline_evals::score::Names;
use sightline_evals::suite::{self, Incident, Selection, SeriesShift, Stretch};
use sightline_server::commands::CommandError;
use sightline_server::commands::eval::{BundleLine, BundleQuestion};
use sightline_server::config::{LlmSettings, PlannerChoice, rules};
use sightline_server::model::LlmConfig;
use sightline_server::{BoxFuture, Config, output};

use crate::transcripts::Transcripts;

/// The built-in suite's folder below the data folder.
const SUITE_DIR: &str = "suite";

/// What the command line said.
#[derive(Clone, Debug)]
pub(crate) struct EvalOptions {
    /// A suite of one's own.
    pub(crate) suite: Option<PathBuf>,
    /// Where the whole report goes.
    pub(crate) json: Option<PathBuf>,
    /// What of the suite is asked.
    pub(crate) selection: Selection,
    /// How far the built-in suite's parameters are moved.
    pub(crate) stretch: Stretch,
    /// Whether metrics are taken away in turn.
    pub(crate) ablate: bool,
    /// Whether nothing is kept of the built-in suite.
    pub(crate) forget: bool,
    /// The report of an earlier run.
    pub(crate) baseline: Option<PathBuf>,
    /// Rules for a model in place of those that ship.
    pub(crate) prompt: Option<PathBuf>,
    /// Where a model's replies are kept.
    pub(crate) record: Option<PathBuf>,
    /// Where they come from.
    pub(crate) replay: Option<PathBuf>,
}

/// Asks the suite and prints how it fared. A low score is no failure; a question without an answer is.
///
/// # Errors
/// When there is nothing to ask, a file is no incident, or a question could not be asked.
pub(crate) async fn eval_run(mut config: Config, mut options: EvalOptions) -> Result<(), CommandError> {
    let earlier = options.baseline.as_deref().map(earlier).transpose()?;
    let transcripts = Transcripts::open(options.record.as_deref(), options.replay.as_deref())?;
    let prompt = options.prompt.as_deref().map(rules).transpose().map_err(CommandError::Usage)?;
    options.selection.among = transcripts.among();
    model(&mut config, transcripts.model(), prompt)?;
    let own = match &options.suite {
        Some(dir) => {
            let (dir, selection) = (dir.clone(), options.selection.clone());
            let read = tokio::task::spawn_blocking(move || suite::read(&dir, &selection)).await;
            Some(read.map_err(failed)?.map_err(failed)?)
        }
        None => None,
    };
    let line = Line { line: BundleLine::open(&config).await?, transcripts };
    let report = asked(&config, &line, own, &options).await;
    line.line.close().await;
    let report = report?;
    line.transcripts.write(report.model.as_ref())?;
    output::result(&report.text()).map_err(failed)?;
    if let Some(note) = line.transcripts.note(report.model.as_ref()) {
        output::note(&note);
    }
    if let Some(earlier) = earlier {
        output::result(&beside(&report, &earlier)).map_err(failed)?;
    }
    match report.totals.errors {
        0 => Ok(()),
        errors => Err(CommandError::Failed(format!(
            "{errors} of {} questions could not be asked; the list above says why",
            report.totals.questions
        ))),
    }
}

/// What is read of an earlier report.
fn earlier(file: &Path) -> Result<Earlier, CommandError> {
    let usage = |error: String| CommandError::Usage(format!("`{}`: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| usage(error.to_string()))?;
    Earlier::read(&text).map_err(|error| usage(error.to_string()))
}

/// The planner as the options have it: a replay needs no model to be configured.
fn model(config: &mut Config, replayed: Option<&str>, prompt: Option<String>) -> Result<(), CommandError> {
    if let Some(model) = replayed {
        config.planner = PlannerChoice::Llm;
        config.llm.get_or_insert_with(|| LlmSettings(LlmConfig::new(model)));
    }
    let Some(rules) = prompt else { return Ok(()) };
    match (config.planner, &mut config.llm) {
        (PlannerChoice::Llm, Some(LlmSettings(settings))) => settings.rules = Some(rules),
        (PlannerChoice::Offline, _) | (PlannerChoice::Llm, None) => {
            return Err(CommandError::Usage("`--prompt` is for a model: say `--planner llm` and name one".to_owned()));
        }
    }
    Ok(())
}

async fn asked(
    config: &Config,
    line: &Line,
    own: Option<Vec<Incident>>,
    options: &EvalOptions,
) -> Result<Report, CommandError> {
    let built_in = config.data_dir.join(SUITE_DIR);
    let incidents = match own {
        Some(incidents) => incidents,
        None => made(line, &built_in, options).await?,
    };
    let names = Names::builtin().map_err(failed)?;
    let how = How { ablate: options.ablate, forget: options.forget };
    let report = run(line, &incidents, &names, how, &output::note).await;
    if let Some(file) = &options.json {
        let text = report.json().map_err(failed)?;
        std::fs::write(file, text)
            .map_err(|error| CommandError::Failed(format!("cannot write `{}`: {error}", file.display())))?;
    }
    if options.forget && options.suite.is_none() {
        std::fs::remove_dir_all(&built_in)
            .map_err(|error| CommandError::Failed(format!("cannot remove `{}`: {error}", built_in.display())))?;
    }
    Ok(report)
}

async fn made(line: &Line, root: &Path, options: &EvalOptions) -> Result<Vec<Incident>, CommandError> {
    let Some(writer) = line.line.writer() else { return Ok(Vec::new()) };
    suite::built_in::make(writer, root, &options.selection, options.stretch, &output::note).await.map_err(failed)
}

/// The product's line, as the suite sees it.
struct Line {
    line: BundleLine,
    transcripts: Transcripts,
}

impl Answerer for Line {
    fn answer<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<Answered, String>> {
        let Asked { incident, bundle, text, principal, as_of, time_zone, without } = asked;
        Box::pin(async move {
            let exchange = self.transcripts.exchange(incident);
            let question = BundleQuestion { bundle, text, before: &[], principal, as_of, time_zone, without, exchange };
            let (answer, model) = self.line.answer(&question).await.map_err(|error| error.to_string())?;
            Ok(Answered { answer, model })
        })
    }

    fn prepare<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(self.line.prepare(bundle))
    }

    fn shifts<'a>(&'a self, bundle: &'a Path, split: Timestamp) -> BoxFuture<'a, Result<Vec<SeriesShift>, String>> {
        Box::pin(async move { self.line.shifts(bundle, split).await.map_err(|error| error.to_string()) })
    }

    fn forget<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.line.forget(bundle).await.map_err(|error| error.to_string()) })
    }
}

fn failed(error: impl std::error::Error) -> CommandError {
    CommandError::Failed(error.to_string())
}

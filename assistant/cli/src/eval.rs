//! `sightline eval run`: the suite, asked through the line.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sightline_evals::answerer::{Answerer, Asked};
use sightline_evals::report::Report;
use sightline_evals::run::{How, run};
use sightline_evals::score::Names;
use sightline_evals::suite::{self, Incident, Selection, SeriesShift, Stretch};
use sightline_server::commands::CommandError;
use sightline_server::commands::eval::{BundleLine, BundleQuestion};
use sightline_server::{Answer, BoxFuture, Config, output};

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
}

/// Asks the suite and prints how it fared. A low score is no failure; a question without an answer is.
///
/// # Errors
/// When there is nothing to ask, a file is no incident, or a question could not be asked.
pub(crate) async fn eval_run(config: &Config, options: &EvalOptions) -> Result<(), CommandError> {
    let own = match &options.suite {
        Some(dir) => {
            let (dir, selection) = (dir.clone(), options.selection.clone());
            let read = tokio::task::spawn_blocking(move || suite::read(&dir, &selection)).await;
            Some(read.map_err(failed)?.map_err(failed)?)
        }
        None => None,
    };
    let line = Line(BundleLine::open(config).await?);
    let report = asked(config, &line, own, options).await;
    line.0.close().await;
    let report = report?;
    output::result(&report.text()).map_err(failed)?;
    match report.totals.errors {
        0 => Ok(()),
        errors => Err(CommandError::Failed(format!(
            "{errors} of {} questions could not be asked; the list above says why",
            report.totals.questions
        ))),
    }
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
    let Some(writer) = line.0.writer() else { return Ok(Vec::new()) };
    suite::built_in::make(writer, root, &options.selection, options.stretch, &output::note).await.map_err(failed)
}

/// The product's line, as the suite sees it.
struct Line(BundleLine);

impl Answerer for Line {
    fn answer<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<Answer, String>> {
        let Asked { bundle, text, principal, as_of, time_zone, without } = asked;
        Box::pin(async move {
            let question = BundleQuestion { bundle, text, before: &[], principal, as_of, time_zone, without };
            self.0.answer(&question).await.map_err(|error| error.to_string())
        })
    }

    fn prepare<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(self.0.prepare(bundle))
    }

    fn shifts<'a>(&'a self, bundle: &'a Path, split: Timestamp) -> BoxFuture<'a, Result<Vec<SeriesShift>, String>> {
        Box::pin(async move { self.0.shifts(bundle, split).await.map_err(|error| error.to_string()) })
    }

    fn forget<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.0.forget(bundle).await.map_err(|error| error.to_string()) })
    }
}

fn failed(error: impl std::error::Error) -> CommandError {
    CommandError::Failed(error.to_string())
}

//! The command line of `sightline eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sightline_evals::suite::{Halves, Selection, Stretch};

use super::PlannerName;
use crate::eval::EvalOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum EvalSubcommand {
    /// Ask every question of a suite of recorded incidents, and say how the answers fared.
    ///
    /// The exit code is 0 whatever the scores, and 1 when a question could not be asked or there is none.
    Run(RunArguments),
    /// Ask labelled questions of the demo fleet, and say per class how they were understood.
    Questions(QuestionsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct QuestionsArguments {
    /// The folder of the labelled questions, one file a class; the repository has them in `evals/questions/`.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Write every question with its calls and faults there, as one JSON document.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Ask those only whose id holds this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Ask one in so many.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Which planner answers (default: `llm.planner` of the configuration, else offline).
    #[arg(long, value_enum, value_name = "PLANNER")]
    pub(crate) planner: Option<PlannerName>,
    /// A suite of your own: every folder below with an `incident.toml` (default: the suite that ships, made from seeds).
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Write the whole report there, with every question, as one JSON document.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Ask this half of the suite only.
    #[arg(long, value_enum, default_value_t = Half::All)]
    half: Half,
    /// Ask about incidents only whose id holds this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Ask about one in so many kinds of incident.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Move every drawn parameter of the suite that ships by up to this part, up or down; 0.3 is 30 %.
    #[arg(long, value_name = "PART", default_value_t = 0.0, value_parser = part, conflicts_with = "suite")]
    stretch: f64,
    /// Which draw of directions.
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "stretch")]
    stretch_seed: u64,
    /// Ask each question again without each metric that its answer was given from, one at a time.
    #[arg(long)]
    ablate: bool,
    /// Keep nothing of what was loaded, and nothing of the suite that was made.
    #[arg(long)]
    no_keep: bool,
    /// Say what changed since an earlier run, whose report `--json` wrote there: another prompt, model or build.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Ask a model with the rules in this file in place of the prompt that ships.
    #[arg(long, value_name = "FILE")]
    prompt: Option<PathBuf>,
    /// Keep what the model says there, one transcript an incident.
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Take what a model says from the transcripts there, and ask about their incidents only. Nothing is sent anywhere.
    #[arg(long, value_name = "DIR", conflicts_with = "planner")]
    replay: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Half {
    All,
    Tuning,
    HeldOut,
}

impl From<RunArguments> for EvalOptions {
    fn from(arguments: RunArguments) -> Self {
        let RunArguments { planner: _, suite, json, half, only, every, stretch, stretch_seed, ablate, no_keep, .. } =
            arguments;
        let RunArguments { baseline, prompt, record, replay, .. } = arguments;
        let halves = match half {
            Half::All => Halves::All,
            Half::Tuning => Halves::Tuning,
            Half::HeldOut => Halves::HeldOut,
        };
        let stretch = if stretch > 0.0 { Stretch { by: stretch, seed: stretch_seed } } else { Stretch::NONE };
        let selection = Selection { halves, only, every, among: None };
        Self { suite, json, selection, stretch, ablate, forget: no_keep, baseline, prompt, record, replay }
    }
}

/// A part of a whole, below 1: a parameter moved down by all of itself would be no incident.
fn part(text: &str) -> Result<f64, String> {
    let part: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..1.0).contains(&part) { Ok(part) } else { Err(format!("`{text}` is not from 0 to below 1")) }
}

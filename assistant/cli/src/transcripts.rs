//! Transcripts beside a suite: one file an incident, kept while a model is asked, or read so that none is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sightline_evals::planned::ModelTotals;
use sightline_server::commands::CommandError;
use sightline_server::model::{Exchange, Recording, Transcript};

/// Where a model's replies come from during a run.
#[derive(Default)]
pub(crate) enum Transcripts {
    /// From its server.
    #[default]
    None,
    /// From its server, and into this folder.
    Record { dir: PathBuf, made: Mutex<BTreeMap<String, Arc<Recording>>> },
    /// From files, by incident.
    Replay(BTreeMap<String, Arc<Transcript>>),
}

impl Transcripts {
    /// Those that the command line names.
    pub(crate) fn open(record: Option<&Path>, replay: Option<&Path>) -> Result<Self, CommandError> {
        match (record, replay) {
            (Some(dir), _) => {
                std::fs::create_dir_all(dir).map_err(|error| fault(dir, &error))?;
                Ok(Self::Record { dir: dir.to_owned(), made: Mutex::default() })
            }
            (None, Some(dir)) => read(dir).map(Self::Replay),
            (None, None) => Ok(Self::None),
        }
    }

    /// The incidents that can be asked about, where not all can.
    pub(crate) fn among(&self) -> Option<BTreeSet<String>> {
        match self {
            Self::Replay(transcripts) => Some(transcripts.keys().cloned().collect()),
            Self::None | Self::Record { .. } => None,
        }
    }

    /// The model of the transcripts.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::Replay(transcripts) => transcripts.values().next().map(|transcript| transcript.model.as_str()),
            Self::None | Self::Record { .. } => None,
        }
    }

    /// Where the replies about an incident come from.
    pub(crate) fn exchange(&self, incident: &str) -> Exchange {
        match self {
            Self::None => Exchange::Server,
            Self::Record { made, .. } => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                Exchange::Recorded(Arc::clone(made.entry(incident.to_owned()).or_default()))
            }
            Self::Replay(transcripts) => Exchange::Replayed(transcripts.get(incident).cloned().unwrap_or_default()),
        }
    }

    /// Writes what was recorded. Nothing else is written to the folder, and nothing in it is removed.
    pub(crate) fn write(&self, totals: Option<&ModelTotals>) -> Result<(), CommandError> {
        let (Self::Record { dir, made }, Some(totals)) = (self, totals) else { return Ok(()) };
        let made = made.lock().unwrap_or_else(PoisonError::into_inner);
        for (incident, recording) in made.iter() {
            let transcript = Transcript {
                about: "Recorded by `sightline eval run --record`.".to_owned(),
                model: totals.model.clone(),
                prompt: totals.prompt.clone(),
                questions: recording.questions(),
            };
            let file = dir.join(format!("{}.json", file_name(incident)));
            let text = transcript.text().map_err(|error| fault(&file, &error))?;
            std::fs::write(&file, text).map_err(|error| fault(&file, &error))?;
        }
        Ok(())
    }

    /// What to know about a replay: the prompt that the model saw, where today's is another.
    pub(crate) fn note(&self, totals: Option<&ModelTotals>) -> Option<String> {
        let (Self::Replay(transcripts), Some(totals)) = (self, totals) else { return None };
        let other: BTreeSet<&str> =
            transcripts.values().map(|t| t.prompt.as_str()).filter(|p| *p != totals.prompt).collect();
        let other: Vec<&str> = other.into_iter().collect();
        (!other.is_empty()).then(|| {
            format!(
                "The transcripts were recorded with prompt {}; today's is {}, which no model saw here.",
                other.join(", "),
                totals.prompt
            )
        })
    }
}

/// An id as a file's name: an id is free text.
fn file_name(incident: &str) -> String {
    incident.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}

fn read(dir: &Path) -> Result<BTreeMap<String, Arc<Transcript>>, CommandError> {
    let mut transcripts = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(|error| fault(dir, &error))? {
        let path = entry.map_err(|error| fault(dir, &error))?.path();
        let (Some(stem), Some("json")) =
            (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|e| e.to_str()))
        else {
            continue;
        };
        let text = std::fs::read_to_string(&path).map_err(|error| fault(&path, &error))?;
        let transcript = Transcript::read(&text).map_err(|error| fault(&path, &error))?;
        transcripts.insert(stem.to_owned(), Arc::new(transcript));
    }
    if transcripts.is_empty() {
        let what = format!("`{}` holds no transcripts; `--record` makes them, one file an incident", dir.display());
        return Err(CommandError::Failed(what));
    }
    Ok(transcripts)
}

fn fault(path: &Path, error: &dyn std::error::Error) -> CommandError {
    CommandError::Failed(format!("`{}`: {error}", path.display()))
}

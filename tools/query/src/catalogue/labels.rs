//! Labels: which stored spellings name a node, a GPU, a job, as data.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::error::{CatalogueError, Fault, Problem};

const BUILTIN: &str = include_str!("../../data/labels.toml");

/// What is put before a label's name when it is not what the canonical label of that name means.
const SCRAPED: &str = "scraped_";

/// How canonical labels are read from stored ones. Guaranteed: no spelling stands under two labels without a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelAliases {
    labels: Vec<Label>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Label {
    canonical: String,
    spellings: Vec<Spelling>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Spelling {
    name: String,
    form: Form,
    with: Option<String>,
    unless: Option<String>,
    written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    AsIs,
    WithoutPort,
    AfterPrefix(String),
}

/// Who put the labels there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A scraper, which adds labels of its own.
    Scraped,
    /// The writer of the record alone.
    Written,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    label: Vec<RawLabel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLabel {
    #[serde(default)]
    canonical: String,
    #[serde(default)]
    stored: Vec<RawSpelling>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a name, or a table with `name` and optionally `form`, `prefix`, `with`, `unless`, `written`"
)]
enum RawSpelling {
    Name(String),
    Table(RawTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    name: String,
    form: Option<String>,
    prefix: Option<String>,
    with: Option<String>,
    unless: Option<String>,
    #[serde(default)]
    written: bool,
}

impl LabelAliases {
    /// The aliases that ship.
    ///
    /// # Errors
    /// Every fault of the shipped file; a test holds that there is none.
    pub fn builtin() -> Result<Self, CatalogueError> {
        Self::from_toml("labels.toml", BUILTIN)
    }

    /// Aliases from a file.
    ///
    /// # Errors
    /// Every fault of the file, not only the first.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, CatalogueError> {
        let raw: RawFile =
            toml::from_str(text).map_err(|error| CatalogueError::new(vec![unreadable(file, text, &error)]))?;
        let mut faults = Vec::new();
        let mut labels: Vec<Label> = Vec::new();
        let mut owners: HashMap<(String, Option<String>, Option<String>), String> = HashMap::new();
        for RawLabel { canonical, stored } in raw.label {
            let entry = (!canonical.is_empty()).then(|| canonical.clone());
            let mut fault = |problem| faults.push(Fault { file: file.to_owned(), entry: entry.clone(), problem });
            if canonical.is_empty() {
                fault(Problem::Missing { key: "canonical" });
            }
            if stored.is_empty() {
                fault(Problem::Missing { key: "stored" });
            }
            if labels.iter().any(|label| label.canonical == canonical) {
                fault(Problem::DuplicateId { file: file.to_owned() });
            }
            let mut spellings = Vec::new();
            for raw in stored {
                match check_spelling(raw) {
                    Ok(spelling) => {
                        let key = (spelling.name.clone(), spelling.with.clone(), spelling.unless.clone());
                        if let Some(owner) = owners.insert(key, canonical.clone()) {
                            fault(Problem::SpellingTaken { name: spelling.name.clone(), owner });
                        }
                        spellings.push(spelling);
                    }
                    Err(problem) => fault(problem),
                }
            }
            labels.push(Label { canonical, spellings });
        }
        if faults.is_empty() { Ok(Self { labels }) } else { Err(CatalogueError::new(faults)) }
    }

    /// These aliases with more spellings in front, for example those of a bundle; an unknown canonical label is added.
    #[must_use]
    pub fn with_extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Self {
        let mut labels = self.labels.clone();
        for (canonical, names) in extra {
            let plain = names.iter().map(|name| Spelling::plain(name.clone()));
            match labels.iter_mut().find(|label| label.canonical == *canonical) {
                Some(label) => label.spellings = plain.chain(label.spellings.drain(..)).collect(),
                None => labels.push(Label { canonical: canonical.clone(), spellings: plain.collect() }),
            }
        }
        Self { labels }
    }

    /// The canonical labels, in order.
    pub fn canonical(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|label| label.canonical.as_str())
    }

    /// Adds canonical labels to those of a scraped row. Every stored label stays; one that only has a canonical label's name
    /// (Prometheus' scrape `job`, the exporter's own `pod`) is kept as `scraped_<name>`.
    pub fn canonicalise(&self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.apply(labels, Origin::Scraped)
    }

    /// The same for a record that nobody scraped (event, log line, span, job): its `job` is a job.
    pub fn canonicalise_written(&self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.apply(labels, Origin::Written)
    }

    fn apply(&self, labels: &BTreeMap<String, String>, origin: Origin) -> BTreeMap<String, String> {
        let mut all = labels.clone();
        for Label { canonical, spellings } in &self.labels {
            let value = spellings.iter().find_map(|spelling| spelling.read(labels, origin));
            let namesake = labels.get(canonical).filter(|own| !own.is_empty());
            if let Some(own) = namesake.filter(|own| value.as_ref() != Some(*own)) {
                all.remove(canonical);
                all.insert(format!("{SCRAPED}{canonical}"), own.clone());
            }
            if let Some(value) = value {
                all.insert(canonical.clone(), value);
            }
        }
        all
    }
}

impl Spelling {
    fn plain(name: String) -> Self {
        Self { name, form: Form::AsIs, with: None, unless: None, written: false }
    }

    /// The value of this spelling; an empty label is an absent one, as in Prometheus.
    fn read(&self, labels: &BTreeMap<String, String>, origin: Origin) -> Option<String> {
        if self.written && origin == Origin::Scraped {
            return None;
        }
        let value = labels.get(&self.name).filter(|value| !value.is_empty())?;
        if self.with.as_ref().is_some_and(|other| !labels.contains_key(other))
            || self.unless.as_ref().is_some_and(|other| labels.contains_key(other))
        {
            return None;
        }
        match &self.form {
            Form::AsIs => Some(value.clone()),
            Form::WithoutPort => without_port(value).map(str::to_owned),
            Form::AfterPrefix(prefix) => {
                let rest = value.strip_prefix(prefix.as_str())?;
                (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())).then(|| rest.to_owned())
            }
        }
    }
}

/// The host of `host:port`, `[v6]:port` or `host`; none for anything with a path.
fn without_port(address: &str) -> Option<&str> {
    if address.contains('/') {
        return None;
    }
    if let Some(rest) = address.strip_prefix('[') {
        return rest.split_once(']').map(|(host, _)| host);
    }
    match address.split_once(':') {
        // A bare IPv6 address has more than one colon and no port.
        Some((_, rest)) if rest.contains(':') => Some(address),
        Some((host, _)) => (!host.is_empty()).then_some(host),
        None => Some(address),
    }
}

fn check_spelling(raw: RawSpelling) -> Result<Spelling, Problem> {
    let table = match raw {
        RawSpelling::Name(name) => return Ok(Spelling::plain(name)),
        RawSpelling::Table(table) => table,
    };
    let RawTable { name, form, prefix, with, unless, written } = table;
    let form = match (form.as_deref(), prefix) {
        (None, None) => Form::AsIs,
        (Some("without_port"), None) => Form::WithoutPort,
        (Some("after_prefix"), Some(prefix)) => Form::AfterPrefix(prefix),
        (None | Some("without_port"), Some(_)) | (Some("after_prefix"), None) => {
            return Err(Problem::PrefixAndForm { name });
        }
        (Some(other), _) => {
            let known = vec!["without_port", "after_prefix"];
            return Err(Problem::Unknown { what: "form", value: other.to_owned(), known });
        }
    };
    Ok(Spelling { name, form, with, unless, written })
}

/// The fault of a file that is no TOML of the expected form.
pub(super) fn unreadable(file: &str, text: &str, error: &toml::de::Error) -> Fault {
    let start = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(start).filter(|b| *b == b'\n').count() + 1;
    let message = error.message().to_owned();
    Fault { file: file.to_owned(), entry: None, problem: Problem::Unreadable { line, message } }
}

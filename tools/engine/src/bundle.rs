//! A recorded incident on disk: its manifest, its files, and the hash that names its database.
//!
//! `incident.toml` belongs to the scorer. Nothing here opens it, and it is no part of the hash.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use sightline_model::Dataset;
use sightline_query::catalogue::LabelAliases;

use crate::native::{DatabaseName, NATIVE_VERSION};

/// Changes whenever the same files would be loaded into other rows, so that a newer binary loads them anew.
const INGEST_VERSION: u32 = 1;
/// The tenant and the cluster of rows that name none, in a bundle that names none either.
const DEFAULT_SCOPE: &str = "default";
/// Every Parquet file begins and ends with it.
const MAGIC: &[u8; 4] = b"PAR1";
/// Magic, footer length, magic: the least a Parquet file can be.
const LEAST: u64 = 12;
/// Longest footer taken, bytes. It holds the schema and some numbers for each column of each row group.
const MAX_FOOTER: u64 = 64 << 20;

/// What `bundle.toml` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The tenant of rows that name none.
    pub tenant: String,
    /// The cluster of rows that name none.
    pub cluster: String,
    /// Further spellings of canonical labels.
    pub label_aliases: BTreeMap<String, Vec<String>>,
    /// Further stored names of metrics, for `Catalogue::with_aliases`.
    pub metric_aliases: BTreeMap<String, Vec<String>>,
    /// What in it was not understood.
    pub warnings: Vec<String>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            tenant: DEFAULT_SCOPE.to_owned(),
            cluster: DEFAULT_SCOPE.to_owned(),
            label_aliases: BTreeMap::new(),
            metric_aliases: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

/// A bundle's files, found and looked at from outside.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The folder.
    pub dir: PathBuf,
    /// What `bundle.toml` says.
    pub manifest: Manifest,
    /// How its labels are read: the shipped aliases and the manifest's.
    pub aliases: LabelAliases,
    /// The data file of each dataset that has one.
    pub files: BTreeMap<Dataset, PathBuf>,
    /// The database that its content is loaded into.
    pub database: DatabaseName,
}

/// What is wrong with a bundle's files.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The folder is not there.
    #[error("`{dir}` is no folder; name the folder of a bundle, which holds `data/metrics.parquet` and the like")]
    NoFolder {
        /// The folder.
        dir: String,
    },
    /// No data file at all.
    #[error("`{dir}/data` holds none of {known}; a bundle needs at least one of them")]
    NoData {
        /// The folder.
        dir: String,
        /// The names that are looked for.
        known: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// `bundle.toml` is no TOML, or not of the expected form.
    #[error("`bundle.toml`, line {line}: {what}")]
    Manifest {
        /// The line.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A data file is no Parquet.
    #[error("`{file}` is no Parquet file: {what}; write it again")]
    NotParquet {
        /// The file.
        file: String,
        /// What it lacks.
        what: &'static str,
    },
}

/// The name of a dataset's file.
pub(crate) fn file_name(dataset: Dataset) -> String {
    format!("{dataset}.parquet")
}

impl Bundle {
    /// Looks at the folder and hashes its content. `aliases` are the ones that ship. Reads files, so call it where blocking is fine.
    ///
    /// # Errors
    /// When the folder is no bundle, or a file of it cannot be read.
    pub fn open(dir: &Path, aliases: &LabelAliases) -> Result<Self, BundleError> {
        if !dir.is_dir() {
            return Err(BundleError::NoFolder { dir: dir.display().to_string() });
        }
        let manifest_file = dir.join("bundle.toml");
        let manifest_text = if manifest_file.exists() {
            std::fs::read_to_string(&manifest_file).map_err(|source| unreadable(&manifest_file, source))?
        } else {
            String::new()
        };
        let manifest = read_manifest(&manifest_text)?;
        let files: BTreeMap<Dataset, PathBuf> = Dataset::ALL
            .into_iter()
            .map(|dataset| (dataset, dir.join("data").join(file_name(dataset))))
            .filter(|(_, file)| file.exists())
            .collect();
        if files.is_empty() {
            let known: Vec<String> =
                Dataset::ALL.into_iter().map(|dataset| format!("`{}`", file_name(dataset))).collect();
            return Err(BundleError::NoData { dir: dir.display().to_string(), known: known.join(", ") });
        }
        let aliases = aliases.with_extra(&manifest.label_aliases);
        let database = content_name(&manifest, &aliases, &files)?;
        Ok(Self { dir: dir.to_owned(), manifest, aliases, files, database })
    }
}

/// The database name of a bundle's content: equal content, equal name, wherever the folder lies.
fn content_name(
    manifest: &Manifest,
    aliases: &LabelAliases,
    files: &BTreeMap<Dataset, PathBuf>,
) -> Result<DatabaseName, BundleError> {
    let mut hash = Sha256::new();
    hash.update(format!("sightline bundle {INGEST_VERSION} {NATIVE_VERSION}\n"));
    // Metric aliases are applied when a question is asked, so they are no part of what is stored.
    let Manifest { tenant, cluster, label_aliases: _, metric_aliases: _, warnings: _ } = manifest;
    hash.update(format!("{tenant:?} {cluster:?} {aliases:?}\n"));
    for (dataset, path) in files {
        let mut file = std::fs::File::open(path).map_err(|source| unreadable(path, source))?;
        let length = file.metadata().map_err(|source| unreadable(path, source))?.len();
        hash.update(format!("{dataset} {length}\n"));
        let mut chunk = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut chunk).map_err(|source| unreadable(path, source))?;
            if read == 0 {
                break;
            }
            hash.update(chunk.get(..read).unwrap_or_default());
        }
    }
    let digest = hex::encode(hash.finalize());
    let name = format!("incident_{}", digest.get(..16).unwrap_or_default());
    DatabaseName::new(&name).map_err(|bad| BundleError::Manifest { line: 1, what: bad.to_string() })
}

/// The beginning and the footer of a Parquet file: all that is needed to tell its columns.
pub(crate) fn parquet_ends(path: &Path) -> Result<Vec<u8>, BundleError> {
    use std::io::{Seek as _, SeekFrom};
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let not = |what| BundleError::NotParquet { file: name.clone(), what };
    let mut file = std::fs::File::open(path).map_err(|source| unreadable(path, source))?;
    let length = file.metadata().map_err(|source| unreadable(path, source))?.len();
    if length == 0 {
        return Err(not("it is empty"));
    }
    if length < LEAST {
        return Err(not("it is too short"));
    }
    let mut begin = [0; 4];
    let mut end = [0; 8];
    file.read_exact(&mut begin).map_err(|source| unreadable(path, source))?;
    file.seek(SeekFrom::End(-8)).map_err(|source| unreadable(path, source))?;
    file.read_exact(&mut end).map_err(|source| unreadable(path, source))?;
    let [a, b, c, d, magic @ ..] = end;
    if &begin != MAGIC {
        return Err(not("it does not begin with `PAR1`"));
    }
    if &magic != MAGIC {
        return Err(not("it does not end with `PAR1`, so its end is missing"));
    }
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = length.checked_sub(footer + 8).filter(|start| *start >= 4 && footer <= MAX_FOOTER);
    let Some(start) = start else { return Err(not("its footer is longer than the file")) };
    file.seek(SeekFrom::Start(start)).map_err(|source| unreadable(path, source))?;
    let mut ends = MAGIC.to_vec();
    file.read_to_end(&mut ends).map_err(|source| unreadable(path, source))?;
    Ok(ends)
}

fn unreadable(file: &Path, source: std::io::Error) -> BundleError {
    BundleError::Unreadable { file: file.display().to_string(), source }
}

fn read_manifest(text: &str) -> Result<Manifest, BundleError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| BundleError::Manifest {
        line: error.span().map_or(1, |span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1),
        what: error.message().to_owned(),
    })?;
    let wrong = |key: &str, what: &str| {
        let last = key.rsplit('.').next().unwrap_or(key);
        let line = text.lines().position(|line| line.contains(last)).map_or(1, |index| index + 1);
        BundleError::Manifest { line, what: format!("`{key}` must be {what}") }
    };
    let mut manifest = Manifest::default();
    for (key, value) in &table {
        match (key.as_str(), value.as_table()) {
            ("defaults", Some(defaults)) => {
                for (key, value) in defaults {
                    let text = || {
                        let text = value.as_str().filter(|text| !text.trim().is_empty());
                        text.map(str::to_owned).ok_or_else(|| wrong(&format!("defaults.{key}"), "a text"))
                    };
                    match key.as_str() {
                        "tenant" => manifest.tenant = text()?,
                        "cluster" => manifest.cluster = text()?,
                        _ => manifest
                            .warnings
                            .push(format!("`bundle.toml`: `defaults.{key}` is not known and was ignored")),
                    }
                }
            }
            ("aliases", Some(aliases)) => {
                for (key, value) in aliases {
                    let what = "a table of lists of names, for example `node = [\"Hostname\"]`";
                    let read = || names(value).ok_or_else(|| wrong(&format!("aliases.{key}"), what));
                    match key.as_str() {
                        "labels" => manifest.label_aliases = read()?,
                        "metrics" => manifest.metric_aliases = read()?,
                        _ => manifest
                            .warnings
                            .push(format!("`bundle.toml`: `aliases.{key}` is not known and was ignored")),
                    }
                }
            }
            ("defaults" | "aliases", None) => return Err(wrong(key, "a table")),
            _ => manifest.warnings.push(format!("`bundle.toml`: `{key}` is not known and was ignored")),
        }
    }
    Ok(manifest)
}

fn names(value: &toml::Value) -> Option<BTreeMap<String, Vec<String>>> {
    let table = value.as_table()?;
    let list = |value: &toml::Value| {
        let items = value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned));
        items.collect::<Option<Vec<String>>>()
    };
    table.iter().map(|(key, value)| Some((key.clone(), list(value)?))).collect()
}

#[cfg(test)]
#[path = "bundle/bundle_tests.rs"]
mod bundle_tests;

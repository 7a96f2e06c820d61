//! Runbooks: Markdown files with a head of `key: value` lines and sections of short items.
//!
//! ```text
//! ---
//! id: thermal-throttling
//! title: Thermal throttling
//! causes: thermal_throttling
//! xids: 79, 94
//! keywords: hot, fan
//! ---
//!
//! ## When
//! - One GPU runs at a lower clock than its peers.
//! ```

use std::sync::LazyLock;

use super::entry::{Entry, EntryKind, MAX_PASSAGE, Section};

/// A runbook as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runbook {
    /// Its id, as causes name it.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// The causes it is for.
    pub causes: Vec<String>,
    /// The Xids it is for.
    pub xids: Vec<u32>,
    /// Words by which it is found.
    pub keywords: Vec<String>,
    /// The tenants it is for; empty where it is for everybody.
    pub tenants: Vec<String>,
    /// Its items in order.
    pub items: Vec<(Section, String)>,
}

/// What is wrong with a runbook's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunbookFault {
    /// The head is missing or not closed.
    #[error("it must begin with a head between two lines of `---`")]
    NoHead,
    /// A line of the head cannot be read.
    #[error("`{line}` in the head is not `key: value` with one of the keys id, title, causes, xids, keywords, tenants")]
    Head {
        /// The line.
        line: String,
    },
    /// The head lacks something.
    #[error("the head lacks `{key}`")]
    Lacks {
        /// What.
        key: &'static str,
    },
    /// The id is not made of small letters, digits and hyphens.
    #[error("the id `{id}` may hold small letters, digits and hyphens only")]
    Id {
        /// The id.
        id: String,
    },
    /// A section has no known name.
    #[error("`{heading}` is none of the sections When, Check first, Decide, Do, Verify")]
    Heading {
        /// The heading.
        heading: String,
    },
    /// There is nothing in it.
    #[error("it has no items (`- …`) under a section")]
    Empty,
    /// It is larger than anything a person would read at night.
    #[error("it has {bytes} bytes; at most {limit} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// The largest file, bytes: three pages.
const MAX_BYTES: usize = 16 * 1024;

/// Reads a runbook's file.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse_runbook(text: &str) -> Result<Runbook, RunbookFault> {
    if text.len() > MAX_BYTES {
        return Err(RunbookFault::TooLarge { bytes: text.len(), limit: MAX_BYTES });
    }
    let mut lines = text.lines().map(str::trim_end);
    if lines.next() != Some("---") {
        return Err(RunbookFault::NoHead);
    }
    let (mut id, mut title) = (String::new(), String::new());
    let (mut causes, mut keywords, mut xids, mut tenants) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    loop {
        let line = lines.next().ok_or(RunbookFault::NoHead)?;
        if line == "---" {
            break;
        }
        let fault = || RunbookFault::Head { line: line.chars().take(MAX_PASSAGE).collect() };
        let (key, value) = line.split_once(':').ok_or_else(fault)?;
        match key.trim() {
            "id" => id = value.trim().trim_matches('"').to_owned(),
            "title" => title = value.trim().trim_matches('"').to_owned(),
            "causes" => causes = list(value),
            "keywords" => keywords = list(value),
            // A runbook for nobody is a slip, and read as one for everybody it would be seen by everybody.
            "tenants" => {
                tenants = list(value);
                if tenants.is_empty() {
                    return Err(fault());
                }
            }
            "xids" => {
                xids = list(value).iter().map(|x| x.parse().map_err(|_| fault())).collect::<Result<_, _>>()?;
            }
            _ => return Err(fault()),
        }
    }
    if title.is_empty() {
        return Err(RunbookFault::Lacks { key: "title" });
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() {
        return Err(RunbookFault::Lacks { key: "id" });
    }
    if !id.chars().all(fits) {
        return Err(RunbookFault::Id { id: id.chars().take(MAX_PASSAGE).collect() });
    }
    let items = items(lines)?;
    if items.is_empty() {
        Err(RunbookFault::Empty)
    } else {
        Ok(Runbook { id, title, causes, xids, keywords, tenants, items })
    }
}

/// `a, b, c`, with or without brackets and quotation marks around.
fn list(value: &str) -> Vec<String> {
    let value = value.trim().trim_start_matches('[').trim_end_matches(']');
    let parts = value.split(',').map(|part| part.trim().trim_matches(['"', '\'']).to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// The items under each section; an item goes on over lines that are indented. Text outside of items is left out.
fn items<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<(Section, String)>, RunbookFault> {
    let mut items: Vec<(Section, String)> = Vec::new();
    let mut section = None;
    let mut goes_on = false;
    for line in lines {
        if let Some(heading) = line.strip_prefix("## ") {
            section = Some(section_of(heading)?);
            goes_on = false;
        } else if let (Some(section), Some(item)) = (section, line.strip_prefix("- ").or(line.strip_prefix("* "))) {
            items.push((section, item.trim().to_owned()));
            goes_on = true;
        } else if let (true, true, Some((_, last))) =
            (goes_on, line.starts_with([' ', '\t']) && !line.trim().is_empty(), items.last_mut())
        {
            last.push(' ');
            last.push_str(line.trim());
        } else {
            goes_on = false;
        }
    }
    Ok(items)
}

fn section_of(heading: &str) -> Result<Section, RunbookFault> {
    match heading.trim().to_lowercase().as_str() {
        "when" => Ok(Section::When),
        "check first" => Ok(Section::CheckFirst),
        "decide" => Ok(Section::Decide),
        "do" => Ok(Section::Do),
        "verify" => Ok(Section::Verify),
        _ => Err(RunbookFault::Heading { heading: heading.chars().take(MAX_PASSAGE).collect() }),
    }
}

impl Runbook {
    /// The runbook as an entry.
    pub(super) fn entry(&self) -> Entry {
        let mut entry = Entry::new(EntryKind::Runbook, &self.id, &self.title).found_by(&self.keywords);
        for (section, item) in &self.items {
            entry = entry.say(*section, item);
        }
        Entry { causes: self.causes.clone(), xids: self.xids.clone(), tenants: self.tenants.clone(), ..entry }
    }
}

/// The files that ship, by name.
macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../data/runbooks/", $name, ".md")))),*] };
}

const FILES: &[(&str, &str)] = files!(
    "ambient" "batching" "checkpoint-stall" "cold-start" "collective-hang" "compute-bound" "config-mismatch"
    "cpu-preprocessing" "data-loader" "driver-skew" "exporter-dead" "gpu-saturation" "host-to-device" "kernels"
    "kv-cache-pressure" "memory-leak" "network-congestion" "network-link" "node-drain" "node-failure"
    "noisy-neighbour" "nvlink" "out-of-memory" "pcie" "pipeline-imbalance" "power-capping" "preemption"
    "prefix-cache" "queue-saturation" "rate-limiting" "service-cpu" "service-dependency" "service-errors"
    "service-latency" "service-memory" "service-network" "slow-worker" "software-regression" "storage"
    "telemetry-artifact" "thermal-throttling" "tokenizer" "traffic-mix" "traffic-surge" "ttft-regression"
    "workload-imbalance" "xid" "xid-bus" "xid-memory"
);

static RUNBOOKS: LazyLock<Vec<Runbook>> =
    LazyLock::new(|| FILES.iter().filter_map(|(_, text)| parse_runbook(text).ok()).collect());

/// The runbooks that ship.
pub fn runbooks() -> &'static [Runbook] {
    &RUNBOOKS
}

#[cfg(test)]
#[path = "runbook_tests.rs"]
mod runbook_tests;

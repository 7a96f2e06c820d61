//! What log lines mean: Xids, SXids, NCCL, memory, network, storage and scheduler lines, from the table in `data/log_lines.toml`.

mod pattern;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::knowledge::KnowledgeError;
use crate::sxid::{SxidSeverity, sxid_info};
use crate::xid::{XidAction, XidClass, XidLine, XidSource, parse_bus_id, parse_xid_line, xid_info};
use pattern::Pattern;

/// What part of the system a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineClass {
    /// The program that ran.
    Application,
    /// Memory of the node.
    HostMemory,
    /// Memory of the GPU.
    GpuMemory,
    /// Network adapter, cable or switch.
    Network,
    /// NCCL and those who call it.
    Collective,
    /// Links and switches between GPUs.
    Nvlink,
    /// PCIe.
    Bus,
    /// Disks and file systems.
    Storage,
    /// The driver and versions that must fit it.
    Driver,
    /// On-board processors of the GPU.
    Firmware,
    /// Other hardware of the node.
    Hardware,
    /// What decides over jobs.
    Scheduler,
    /// A notice.
    Info,
}

/// Whether a line stands where the fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineRole {
    /// Where it is logged is where the fault is.
    Origin,
    /// It follows from a fault elsewhere.
    Consequence,
    /// A fact to be weighed.
    Notice,
}

/// A kind of line that the table knows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownLine {
    /// Its name, for example `nccl-ib-port-error`.
    pub id: String,
    /// Words with `{gaps}`; a line is of this kind when one of them fits.
    pub patterns: Vec<String>,
    /// What it is about.
    pub class: LineClass,
    /// Whether it names the culprit.
    pub role: LineRole,
    /// What it means. No digits: it may stand in a claim.
    pub meaning: String,
    /// What to do.
    pub action: String,
    /// Where that is known from.
    pub source: String,
}

/// A line that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedLine {
    /// What kind of line it is: an id of the table, `xid/79` or `sxid/20034`.
    pub id: String,
    /// What it is about.
    pub class: LineClass,
    /// Whether it names the culprit.
    pub role: LineRole,
    /// What it means; none for a code that no table explains.
    pub meaning: Option<&'static str>,
    /// What to do; none for a code that no table explains.
    pub action: Option<&'static str>,
    /// The Xid or SXid in it.
    pub xid: Option<XidLine>,
    /// PCI domain, bus and device, where it names one.
    pub pci: Option<(u32, u8, u8)>,
    /// What stood in the gaps of its pattern: untrusted text.
    pub found: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFile {
    line: Vec<KnownLine>,
}

/// The table with its patterns read.
static LINES: LazyLock<Vec<(KnownLine, Vec<Pattern>)>> = LazyLock::new(|| load().unwrap_or_default());

fn load() -> Result<Vec<(KnownLine, Vec<Pattern>)>, KnowledgeError> {
    let file: LineFile = toml::from_str(include_str!("../data/log_lines.toml"))
        .map_err(|source| KnowledgeError::Malformed { file: "log_lines.toml", source: Box::new(source) })?;
    let read = |line: KnownLine| {
        let patterns: Result<Vec<Pattern>, _> = line.patterns.iter().map(|p| Pattern::parse(p)).collect();
        patterns
            .map_err(|fault| KnowledgeError::Fault { file: "log_lines.toml", fault: format!("`{}`: {fault}", line.id) })
            .map(|patterns| (line, patterns))
    };
    file.line.into_iter().map(read).collect()
}

/// Every kind of line that the table knows.
pub fn known_lines() -> impl Iterator<Item = &'static KnownLine> {
    LINES.iter().map(|(line, _)| line)
}

/// The longest part of a line that is looked at, bytes: what it is about stands at its beginning.
const MAX_LINE: usize = 2_000;

/// What a log line means; none for one that no table knows. The text before (times, levels, host names) is free.
pub fn decode_line(line: &str) -> Option<DecodedLine> {
    if let Some(xid) = parse_xid_line(line) {
        return Some(decode_xid(xid));
    }
    let end = (0..=line.len().min(MAX_LINE)).rev().find(|end| line.is_char_boundary(*end))?;
    let line = line.get(..end)?;
    let folded = line.to_ascii_lowercase();
    LINES.iter().find_map(|(known, patterns)| {
        let found = patterns.iter().find_map(|pattern| pattern.fit(line, &folded))?;
        Some(DecodedLine {
            id: known.id.clone(),
            class: known.class,
            role: known.role,
            meaning: Some(&known.meaning),
            action: Some(&known.action),
            xid: None,
            pci: found.get("pci").and_then(|text| parse_bus_id(text)),
            found,
        })
    })
}

fn decode_xid(xid: XidLine) -> DecodedLine {
    let pci = Some((xid.domain, xid.bus, xid.device));
    let decoded = |id, class, role, meaning, action| DecodedLine {
        id,
        class,
        role,
        meaning,
        action,
        xid: Some(xid.clone()),
        pci,
        found: BTreeMap::new(),
    };
    match xid.source {
        XidSource::Gpu => {
            let info = xid_info(xid.code);
            let role = match info.map(|info| info.action) {
                Some(XidAction::FollowOther) => LineRole::Consequence,
                Some(XidAction::Ignore) => LineRole::Notice,
                _ if xid.caused_by.is_some() => LineRole::Consequence,
                _ => LineRole::Origin,
            };
            let class = info.map_or(LineClass::Info, |info| class_of(info.class));
            let meaning = info.map(|info| info.meaning.as_str());
            decoded(format!("xid/{}", xid.code), class, role, meaning, info.map(|info| info.action.as_words()))
        }
        XidSource::Switch => {
            let info = sxid_info(xid.code);
            let role = match info.map(|info| info.severity) {
                Some(SxidSeverity::Corrected) => LineRole::Notice,
                Some(SxidSeverity::Nonfatal | SxidSeverity::Fatal | SxidSeverity::AlwaysFatal) | None => {
                    LineRole::Origin
                }
            };
            let meaning = info.map(|info| info.meaning.as_str());
            let action = info.map(|info| info.severity.as_words());
            decoded(format!("sxid/{}", xid.code), LineClass::Nvlink, role, meaning, action)
        }
    }
}

fn class_of(class: XidClass) -> LineClass {
    match class {
        XidClass::Application => LineClass::Application,
        XidClass::Memory => LineClass::GpuMemory,
        XidClass::Nvlink => LineClass::Nvlink,
        XidClass::Bus => LineClass::Bus,
        XidClass::Firmware => LineClass::Firmware,
        XidClass::Hardware => LineClass::Hardware,
        XidClass::Info => LineClass::Info,
    }
}

#[cfg(test)]
#[path = "log_lines_tests.rs"]
mod log_lines_tests;

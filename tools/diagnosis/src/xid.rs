//! Xids: what the driver's error codes mean, and how to read them out of a kernel log line.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::knowledge::KnowledgeError;

/// What kind of trouble a code reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidClass {
    /// The program that ran.
    Application,
    /// Memory of the GPU.
    Memory,
    /// Links or switches between GPUs.
    Nvlink,
    /// The connection to the host.
    Bus,
    /// On-board processors and timeouts.
    Firmware,
    /// Other hardware.
    Hardware,
    /// A consequence or a notice.
    Info,
}

/// What to do about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidAction {
    /// Nothing.
    Ignore,
    /// Start the application again.
    RestartApp,
    /// Reset the GPU.
    ResetGpu,
    /// Reboot the node.
    RebootNode,
    /// Follow the NVLink workflow.
    CheckNvlink,
    /// Look at the other Xids around it.
    FollowOther,
    /// Watch whether it comes again.
    Watch,
}

impl XidAction {
    /// The action in words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::Ignore => "Nothing: it is a notice.",
            Self::RestartApp => "Restart the application; the same code on one GPU in several jobs is its hardware.",
            Self::ResetGpu => "Drain the node and reset the GPU; open a hardware case if it comes again.",
            Self::RebootNode => "Drain the node and power cycle it; open a hardware case if it comes again.",
            Self::CheckNvlink => {
                "Check the NVLinks of the node; drain it and reset its GPUs together if the fault is fatal."
            }
            Self::FollowOther => "Look for the Xid that it follows from, on this GPU and on the others of the node.",
            Self::Watch => "Watch whether it comes again; a pending remap takes effect at the next reset.",
        }
    }
}

/// What to look into after the immediate action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidInvestigation {
    /// The vendor's support.
    ContactSupport,
    /// The program.
    CheckApplication,
    /// Versions of driver and firmware.
    Software,
    /// The signal of the link.
    LinkSignal,
    /// Row remaps and ECC counters.
    MemoryWorkflow,
    /// The links of all GPUs of the node and the fabric manager.
    NvlinkWorkflow,
    /// The Xid that it follows from.
    FollowOther,
}

impl XidInvestigation {
    /// What to look into, in words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::ContactSupport => "If it comes again, the vendor's support, with the kernel log and a bug report.",
            Self::CheckApplication => {
                "The program: a debugger or sanitizer, and whether other nodes of the job say the same."
            }
            Self::Software => "Versions of driver and firmware, and whether it began with an upgrade.",
            Self::LinkSignal => "The signal of the link: error counters, seating, cable or board.",
            Self::MemoryWorkflow => "Remapped rows, pending remaps and ECC counters of this GPU.",
            Self::NvlinkWorkflow => {
                "The links of all GPUs of the node, the fabric manager's log, and the sub-code of the line."
            }
            Self::FollowOther => "The Xid that it follows from.",
        }
    }
}

/// Who is at fault as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum XidOrigin {
    /// The GPU, its links or its host.
    Hardware,
    /// The program that ran.
    Application,
    /// Either of them, or the driver.
    Either,
    /// Nobody: it reports on something else.
    Notice,
}

impl XidOrigin {
    /// The origin in words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::Hardware => "As a rule the hardware is at fault.",
            Self::Application => "As a rule the application is at fault.",
            Self::Either => "Hardware, driver or application may be at fault.",
            Self::Notice => "It is a notice or a consequence, no fault of its own.",
        }
    }
}

/// What is known about a code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XidInfo {
    /// The code.
    pub code: u32,
    /// Its class.
    pub class: XidClass,
    /// What it means.
    pub meaning: String,
    /// What to do at once.
    pub action: XidAction,
    /// What to look into afterwards, where the catalogue names something.
    #[serde(default)]
    pub investigate: Option<XidInvestigation>,
    /// Who is at fault as a rule.
    pub origin: XidOrigin,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct XidFile {
    xid: Vec<XidInfo>,
}

static XIDS: LazyLock<BTreeMap<u32, XidInfo>> = LazyLock::new(|| load().unwrap_or_default());

fn load() -> Result<BTreeMap<u32, XidInfo>, KnowledgeError> {
    let file: XidFile = toml::from_str(include_str!("../data/xid.toml"))
        .map_err(|source| KnowledgeError::Malformed { file: "xid.toml", source: Box::new(source) })?;
    Ok(file.xid.into_iter().map(|x| (x.code, x)).collect())
}

/// What is known about a code; `None` for codes that the catalogue does not explain.
pub fn xid_info(code: u32) -> Option<&'static XidInfo> {
    XIDS.get(&code)
}

/// Every code that the catalogue explains.
pub(crate) fn all() -> impl Iterator<Item = &'static XidInfo> {
    XIDS.values()
}

/// Who reports an Xid line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidSource {
    /// A GPU's driver (`NVRM: Xid`).
    Gpu,
    /// An NVSwitch (`nvidia-nvswitch0: SXid`); its codes are not Xids.
    Switch,
}

/// A decoded kernel log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidLine {
    /// Who reports it.
    pub source: XidSource,
    /// PCI domain.
    pub domain: u32,
    /// PCI bus.
    pub bus: u8,
    /// PCI device.
    pub device: u8,
    /// The code.
    pub code: u32,
    /// The earlier Xid that this one is a consequence of, if the line names it.
    pub caused_by: Option<u32>,
    /// What follows the code: untrusted text.
    pub detail: String,
}

/// Decodes one kernel log line; `None` when it holds no Xid. The text before the mark (time stamps, priorities) is free.
pub fn parse_xid_line(line: &str) -> Option<XidLine> {
    let (before, after) = line.split_once("Xid (")?;
    let source = if before.ends_with('S') { XidSource::Switch } else { XidSource::Gpu };
    let (address, rest) = after.split_once("):")?;
    let (domain, bus, device) = parse_bus_id(address)?;
    let rest = rest.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (code, detail) = rest.split_at_checked(digits)?;
    let code = code.parse().ok()?;
    let caused_by = detail.split_once("caused by previous Xid ").and_then(|(_, text)| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    });
    let detail = detail.trim_start_matches([',', ' ']).trim_end().to_owned();
    Some(XidLine { source, domain, bus, device, code, caused_by, detail })
}

/// Reads a PCI address in any of its spellings: `PCI:0000:0f:00`, `00000000:0F:00.0`, `0000:0f:00.0`.
pub fn parse_bus_id(text: &str) -> Option<(u32, u8, u8)> {
    let text = text.trim();
    let text = text.strip_prefix("PCI:").unwrap_or(text);
    let mut parts = text.split(':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
    let device = parts.next()?;
    let device = device.split_once('.').map_or(device, |(device, _)| device);
    let device = u8::from_str_radix(device, 16).ok()?;
    parts.next().is_none().then_some((domain, bus, device))
}

#[cfg(test)]
#[path = "xid_tests.rs"]
mod xid_tests;

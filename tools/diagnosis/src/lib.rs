//! Why a training job is slow: the causes, one file each, and the knowledge they rest on as data.
//!
//! This crate judges evidence that others fetched. It fetches nothing, knows no SQL, reads no clock, and prints no numbers:
//! what it says are draft claims whose numbers are references into the evidence. Every cause comes back supported, ruled out
//! or without data. Thresholds compare a GPU with its peers in the same job, or a series with its own past; where one is
//! absolute, its source stands beside it.

mod case;
mod cause;
mod causes;
mod clocks;
mod diagnose;
mod drivers;
mod host;
mod knowledge;
mod level;
mod lines;
mod log_lines;
mod observation;
mod pace;
mod ranking;
mod ranks;
mod records;
mod same_host;
mod sentence;
mod services;
mod serving;
mod signal;
mod stall;
mod sxid;
mod view;
mod xid;
mod xid_events;
mod xid_origins;

#[cfg(test)]
mod diagnose_tests;
#[cfg(test)]
mod drawn_tests;
#[cfg(test)]
mod endings_tests;
#[cfg(test)]
mod halts_tests;
#[cfg(test)]
mod hosts_tests;
#[cfg(test)]
mod judged;
#[cfg(test)]
mod look_alikes_tests;
#[cfg(test)]
mod measurement_tests;
#[cfg(test)]
mod training_pairs_tests;
#[cfg(test)]
mod training_tests;
#[cfg(test)]
mod training_worlds;
#[cfg(test)]
mod worlds;
#[cfg(test)]
mod worlds_history;

pub use cause::MIN_RELATIVE;
pub use diagnose::{Diagnosis, Focus, diagnose, focus};
pub use knowledge::{
    CauseInfo, CompatFact, Entry, EntryKind, Knowledge, KnowledgeError, MAX_PASSAGE, Passage, Pitfall, Runbook,
    RunbookFault, Section, SiteRunbook, ThrottleBit, ThrottleFault, cause_info, compat_facts, parse_runbook, pitfalls,
    runbooks, throttle_bits, version_at_least,
};
pub use log_lines::{DecodedLine, KnownLine, LineClass, LineRole, decode_line, known_lines};
pub use observation::{Attempt, EarlierRun, Job, Observations, Observed, OtherRun, Placement};
pub use same_host::failed as run_failed;
pub use services::{Call, Role, ServiceObservations, ServiceSeries, diagnose_service};
pub use serving::{
    Grain, How, ServingObservations, ServingObserved, ServingSignal, Span, diagnose_serving, serving_focus,
};
pub use signal::{Scope, Signal};
pub use sxid::{SxidInfo, SxidSeverity, sxid_info};
pub use xid::{
    XidAction, XidClass, XidInfo, XidInvestigation, XidLine, XidOrigin, XidSource, parse_bus_id, parse_xid_line,
    xid_info,
};
pub use xid_origins::xid_origins;

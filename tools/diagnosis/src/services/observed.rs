//! What was fetched about services: series by role, who calls whom, events, error lines.

use sightline_model::{Evidence, TimeRange};

use crate::services::role::Role;

/// One metric over all services, or over one where each has a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSeries<'a> {
    /// What it tells.
    pub role: Role,
    /// Which metric it is: the same for series of one metric that are kept apart, as where each service has a name of its own.
    pub family: &'a str,
    /// The days before, in coarse steps; none where nothing is recorded. Series name a `service` (and a `pod`), edges `from` and `to`.
    pub past: Option<&'a Evidence>,
    /// The window with a little before it, in fine steps.
    pub recent: &'a Evidence,
}

/// One service calls another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Who calls.
    pub caller: String,
    /// Who is called.
    pub callee: String,
}

/// Everything that is known about the services in the window.
#[derive(Clone, Debug)]
pub struct ServiceObservations<'a> {
    /// The service that was asked about; empty where none was named, and the one that users see is to be found.
    pub service: String,
    /// The window that was asked about.
    pub window: TimeRange,
    /// The series.
    pub series: Vec<ServiceSeries<'a>>,
    /// Who calls whom, as far as it is recorded or seen in traces.
    pub calls: Vec<Call>,
    /// The evidence for the calls: rows that name the callee as `service` and the caller as `called_by`.
    pub calls_evidence: Option<&'a Evidence>,
    /// Events (rows with fields `kind` and `body`); none when they were not read.
    pub events: Option<&'a Evidence>,
    /// Log lines of severity error in the window (rows with field `body`); none when they were not read.
    pub error_lines: Option<&'a Evidence>,
}

//! Small generated worlds: one incident, or two tenants side by side in one cluster's worth of rows.

#![allow(dead_code, reason = "each test file uses its part")]

use jiff::Timestamp;
use sightline_fixtures::{DcgmNames, H100, Incident, IncidentTruth, Kind};
use sightline_model::rows::{EventRow, JobRow, Labels, LogRow, Rows};

/// When the recordings end.
pub(crate) const END: &str = "2025-06-02T10:00:00Z";
/// Text that stands in every place of the other tenant's rows and in none of the asker's.
pub(crate) const CANARY: &str = "zyzzyva";

/// An incident of atlas with every choice fixed, so that its answer can be kept.
pub(crate) fn thermal() -> (Rows, IncidentTruth) {
    let recorded = incident(Kind::ThermalThrottling, 4, "atlas", "J4711", "atlas-n").build();
    (recorded.rows(), recorded.truth)
}

fn incident(kind: Kind, seed: u64, tenant: &str, job: &str, node_prefix: &str) -> Incident {
    Incident {
        nodes: 2,
        gpus_per_node: 4,
        model: &H100,
        step_s: 15,
        hours: 4.0,
        end: END.parse().unwrap(),
        onset: 0.5,
        names: DcgmNames::New,
        job_id: job.to_owned(),
        tenant: tenant.to_owned(),
        cluster: format!("{tenant}-east"),
        node_prefix: node_prefix.to_owned(),
        time_zone: "UTC".to_owned(),
        ..Incident::of(kind, seed)
    }
}

/// Atlas with the job `J4711`, and borealis with `J4712` and a canary in every text of its rows.
pub(crate) fn two_tenants() -> Rows {
    let mut rows = thermal().0;
    let mut other = incident(Kind::PowerCapping, 6, "borealis", "J4712", CANARY).build().rows();
    for job in &mut other.jobs {
        job.name = format!("{CANARY}-pretrain");
        job.user = format!("{CANARY}-user");
        job.labels.insert("image".to_owned(), CANARY.to_owned());
    }
    for metric in &mut other.metrics {
        metric.labels.insert("image".to_owned(), CANARY.to_owned());
    }
    other.jobs.push(job("borealis", &format!("{CANARY}-run-7")));
    for tenant in ["atlas", "borealis"] {
        let text = if tenant == "borealis" { CANARY } else { "quiet" };
        rows.logs.push(log(tenant, &format!("{text} out of memory")));
        rows.events.push(event(tenant, &format!("{text} driver upgrade")));
    }
    rows.metrics.extend(other.metrics);
    rows.logs.extend(other.logs);
    rows.events.extend(other.events);
    rows.jobs.extend(other.jobs);
    rows.job_gpus.extend(other.job_gpus);
    rows
}

fn instant() -> Timestamp {
    "2025-06-02T09:00:00Z".parse().unwrap()
}

fn labels(tenant: &str) -> Labels {
    let node = if tenant == "borealis" { format!("{CANARY}01") } else { "atlas-n01".to_owned() };
    [("tenant", tenant.to_owned()), ("cluster", format!("{tenant}-east")), ("node", node)]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

fn log(tenant: &str, body: &str) -> LogRow {
    LogRow {
        time: instant(),
        severity: "error".to_owned(),
        service: "kernel".to_owned(),
        labels: labels(tenant),
        body: body.to_owned(),
    }
}

fn event(tenant: &str, body: &str) -> EventRow {
    EventRow { time: instant(), kind: "driver_upgrade".to_owned(), labels: labels(tenant), body: body.to_owned() }
}

fn job(tenant: &str, id: &str) -> JobRow {
    JobRow {
        job_id: id.to_owned(),
        name: id.to_owned(),
        tenant: tenant.to_owned(),
        cluster: format!("{tenant}-east"),
        user: "someone".to_owned(),
        kind: "training".to_owned(),
        state: "running".to_owned(),
        submit: instant(),
        start: instant(),
        end: None,
        labels: Labels::new(),
    }
}

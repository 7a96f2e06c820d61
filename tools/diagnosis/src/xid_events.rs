//! Xids of the job's GPUs in the window: from the kernel log, else from the sticky gauge by the first sample of a new code.

use jiff::Timestamp;
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, Evidence, Relation, Stat};

use crate::case::Views;
use crate::observation::Observations;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{just_after, shift};
use crate::xid::{XidInfo, XidSource, parse_xid_line, xid_info};
use sightline_model::TimeRange;

/// Where an Xid was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// A row of the log.
    Log { evidence: &'a Evidence, row: usize },
    /// The gauge of the last code.
    Gauge { evidence: &'a Evidence, entity: &'a Entity },
}

/// One Xid on the job's nodes.
#[derive(Clone, Debug)]
pub(crate) struct XidEvent<'a> {
    pub(crate) at: Timestamp,
    pub(crate) node: String,
    /// The GPU's index, where the bus address could be matched.
    pub(crate) gpu: Option<String>,
    pub(crate) code: u32,
    /// Whether the line says that it follows from another Xid.
    pub(crate) follows: bool,
    pub(crate) seen: Seen<'a>,
}

impl XidEvent<'_> {
    pub(crate) fn info(&self) -> Option<&'static XidInfo> {
        xid_info(self.code)
    }

    pub(crate) fn component(&self) -> Component {
        let mut component = Component::from([("node".to_owned(), self.node.clone())]);
        if let Some(gpu) = &self.gpu {
            component.insert("gpu".to_owned(), gpu.clone());
        }
        component
    }

    /// What was seen, as a claim.
    pub(crate) fn claim(&self) -> DraftClaim {
        let meaning = self.info().map_or("which the catalogue does not explain", |info| info.meaning.as_str());
        match self.seen {
            Seen::Log { evidence, row } => {
                let text = format!("The kernel log of {{node}} has {{line}} at {{at}}: {meaning}.");
                Sentence::new(&text)
                    .entity(evidence, &Entity::from([("node".to_owned(), self.node.clone())]))
                    .quote("line", evidence, row, "body")
                    .row_time("at", evidence, row)
                    .claim()
            }
            Seen::Gauge { evidence, entity } => {
                let code = f64::from(self.code);
                let from_there = TimeRange::new(self.at, just_after(self.at));
                let last = stat(evidence, entity, Stat::Last, from_there);
                let text = format!(
                    "The last Xid of GPU {{gpu}} on {{node}} became {{code}} at {{at}}: {meaning}. \
                     The gauge keeps the last code only, so others may hide behind it."
                );
                Sentence::new(&text)
                    .entity(evidence, entity)
                    .number("code", last.clone(), 0, evidence.unit)
                    .instant("at", evidence, entity, self.at)
                    .holds(last.clone(), Relation::AtLeast, Quantity::Constant(code))
                    .holds(last, Relation::AtMost, Quantity::Constant(code))
                    .claim()
            }
        }
    }
}

/// Xids dated up to this long after the window are still taken as its own: a dying job's last words come late.
const AFTER_MS: i64 = 120_000;

pub(crate) fn xid_events<'a>(views: &Views<'a>, observations: &Observations<'a>) -> Vec<XidEvent<'a>> {
    let start = observations.job.start.min(observations.window.from());
    let end = shift(observations.window.to(), AFTER_MS);
    let mut events = Vec::new();
    if let Some(evidence) = observations.logs {
        events.extend(from_log(evidence, observations));
    }
    events.extend(from_gauge(views));
    events.retain(|e| start <= e.at && e.at < end);
    events.retain(|e| observations.job.placements.iter().any(|p| p.node == e.node));
    events.retain(|e| {
        // On a shared node another job's GPU is none of this job's business; a line without a match may be.
        e.gpu.as_ref().is_none_or(|gpu| observations.job.placements.iter().any(|p| p.node == e.node && p.gpu == *gpu))
    });
    events.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.code.cmp(&b.code)));
    events
}

fn from_log<'a>(evidence: &'a Evidence, observations: &Observations<'_>) -> Vec<XidEvent<'a>> {
    let mut events = Vec::new();
    for (row, line) in evidence.rows.iter().enumerate() {
        let (Some(at), Some(node), Some(body)) = (line.time, line.entity.get("node"), line.fields.get("body")) else {
            continue;
        };
        let Some(xid) = parse_xid_line(body).filter(|x| x.source == XidSource::Gpu) else { continue };
        let address = (node.clone(), xid.domain, xid.bus, xid.device);
        let gpu = observations.bus_ids.get(&address).cloned().or_else(|| line.entity.get("gpu").cloned());
        let follows = xid.caused_by.is_some();
        let seen = Seen::Log { evidence, row };
        events.push(XidEvent { at, node: node.clone(), gpu, code: xid.code, follows, seen });
    }
    events
}

fn from_gauge<'a>(views: &Views<'a>) -> Vec<XidEvent<'a>> {
    let Some(view) = views.coarse(Signal::LastXid) else { return Vec::new() };
    let mut events = Vec::new();
    for member in &view.members {
        let (Some(node), Some(gpu)) = (member.entity.get("node"), member.entity.get("gpu")) else { continue };
        // The first point tells what was there before; a code that never changes is an old one.
        for pair in member.points.windows(2) {
            let [before, after] = pair else { continue };
            if after.value != before.value && after.value > 0.0 {
                events.push(XidEvent {
                    at: after.time,
                    node: node.clone(),
                    gpu: Some(gpu.clone()),
                    code: after.value as u32,
                    follows: false,
                    seen: Seen::Gauge { evidence: view.evidence, entity: member.entity },
                });
            }
        }
    }
    events
}

//! A GPU or a link below a replica broke: the kernel of its node says so about when the service became worse.
//!
//! Needs the kernel lines of the replicas' nodes. Speaks for it: an Xid of the hardware at the time, which follows from no other. Rules it
//! out: no such line. Traps: an application's own Xid ends an engine too and is nobody's hardware; clean-ups (45) follow from others;
//! the replica that is left is the one that queues, and is not the one that broke.

use sightline_model::Entity;

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::Case;
use crate::serving::causes::{Found, ServingCheck};
use crate::view::shift;
use crate::xid::{XidAction, XidClass, XidInfo, XidLine, parse_xid_line, xid_info};
use crate::xid_origins::xid_origins;

pub(crate) const BUS: ServingCheck =
    ServingCheck { id: "gpu_fell_off_bus", assess: |case| assess(case, |info| info.class == XidClass::Bus) };

pub(crate) const LINK: ServingCheck =
    ServingCheck { id: "nvlink_fault", assess: |case| assess(case, |info| info.class == XidClass::Nvlink) };

pub(crate) const BOARD: ServingCheck = ServingCheck {
    id: "hardware_degradation",
    assess: |case| {
        assess(case, |info| matches!(info.class, XidClass::Memory | XidClass::Hardware | XidClass::Firmware))
    },
};

/// An engine that lost a GPU is gone within seconds; what callers see takes minutes to show, and sources differ by a minute.
const BEFORE_MS: i64 = 900_000;

/// Lines that are cited.
const CITED: usize = 3;

fn assess(case: &Case<'_>, is_kind: impl Fn(&XidInfo) -> bool) -> Finding {
    let Some(logs) = case.observations.logs else {
        return Finding::NoData(case.resting(Sentence::new("Not judged: the kernel logs of its nodes were not read.")));
    };
    if case.complaint().is_none() {
        return case.ruled_out("nothing is slower than usual", &[]);
    }
    let (from, to) = (shift(case.focus().from(), -BEFORE_MS), case.window.to());
    let read: Vec<(usize, XidLine)> = logs
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.time.is_some_and(|at| from <= at && at < to) && row.entity.contains_key("node"))
        .filter_map(|(row, line)| Some((row, parse_xid_line(line.fields.get("body")?)?)))
        .collect();
    let lines: Vec<XidLine> = read.iter().map(|(_, line)| line.clone()).collect();
    let harms = |line: &XidLine| {
        let info = xid_info(line.code).filter(|info| is_kind(info));
        info.filter(|info| !matches!(info.action, XidAction::Watch | XidAction::Ignore | XidAction::FollowOther))
    };
    let broken: Vec<(usize, &XidInfo)> = xid_origins(&lines)
        .into_iter()
        .filter_map(|place| read.get(place))
        .filter_map(|(row, line)| Some((*row, harms(line)?)))
        .collect();
    let placed = |row: usize| logs.rows.get(row).and_then(|row| Some((row.time?, row.entity.get("node")?.clone())));
    let first = broken.first().and_then(|(row, info)| Some((*row, *info, placed(*row)?)));
    let Some((first, info, (at, node))) = first else {
        let text = "Ruled out: the kernel logs of its nodes name no such fault of the hardware at the time.";
        return Finding::RuledOut(Sentence::new(text).cite(&logs.id).claim());
    };
    let place = Entity::from([("node".to_owned(), node)]);
    let claims = broken.iter().take(CITED).filter_map(|(row, info)| {
        let node = logs.rows.get(*row)?.entity.get("node")?.clone();
        let text = format!("The kernel log of {{node}} has {{line}} at {{at}}: {}.", info.meaning);
        let sentence = Sentence::new(&text)
            .entity(logs, &Entity::from([("node".to_owned(), node)]))
            .quote("line", logs, *row, "body")
            .row_time("at", logs, *row);
        Some(sentence.claim())
    });
    let text =
        format!("A GPU below the service broke on {{node}} at {{at}}, about when it became worse: {}.", info.meaning);
    let found = Found {
        strength: Strength::Proof,
        onset: Some(at),
        // It is what everything else follows from.
        magnitude: 20.0,
        components: vec![place.clone()],
        why: Sentence::new(&text).entity(logs, &place).row_time("at", logs, first).claim(),
        claims: claims.collect(),
    };
    found.finding(case)
}

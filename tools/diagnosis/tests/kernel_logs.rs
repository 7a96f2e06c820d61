//! Kernel logs recorded by others: which GPU failed, with which code. Skipped where they are not at hand.

#![cfg(test)]

use std::collections::BTreeMap;
use std::path::Path;

use sightline_diagnosis::{DecodedLine, LineClass, XidLine, decode_line, xid_origins};

/// The decoded lines of a recorded log; none where it is not there.
fn decoded(file: &str) -> Option<Vec<DecodedLine>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/kernel-logs").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: there is no {}", path.display());
        return None;
    };
    Some(text.lines().filter_map(decode_line).collect())
}

/// How many lines of each kind.
fn kinds(lines: &[DecodedLine]) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for line in lines {
        *kinds.entry(line.id.as_str()).or_insert(0) += 1;
    }
    kinds
}

/// Code and address (domain, bus) of the Xids that the others follow from, each once.
fn origins(lines: &[DecodedLine]) -> Vec<(u32, u32, u8)> {
    let xids: Vec<XidLine> = lines.iter().filter_map(|line| line.xid.clone()).collect();
    let mut found: Vec<_> = xid_origins(&xids)
        .into_iter()
        .filter_map(|place| xids.get(place))
        .map(|xid| (xid.code, xid.domain, xid.bus))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn a_gpu_that_fell_off_the_bus_is_named_and_the_switches_are_no_gpus() {
    let Some(lines) = decoded("xid79-sxid20034.log") else { return };
    assert_eq!(kinds(&lines), [("gpu-fell-off", 1), ("sxid/20034", 8), ("xid/79", 1)].into());
    assert_eq!(origins(&lines), [(79, 0, 0x91)]);
    let on_its_own = lines.iter().find(|line| line.id == "gpu-fell-off").unwrap();
    assert_eq!(on_its_own.pci, Some((0, 0x91, 0)), "the line without a code names the same GPU");
}

#[test]
fn link_events_are_the_origin_and_recovery_actions_follow() {
    let Some(lines) = decoded("nvlink5-xid149-xid154.log") else { return };
    assert_eq!(kinds(&lines), [("xid/149", 5), ("xid/154", 4)].into());
    // Four GPUs report; on two of them links failed.
    assert_eq!(origins(&lines), [(149, 0x8, 1), (149, 0x9, 1)]);
}

#[test]
fn gpus_that_only_used_the_link_are_told_from_those_whose_link_failed() {
    let Some(lines) = decoded("nvlink5-xid145-xid149.log") else { return };
    assert!(kinds(&lines).get("xid/145").is_some_and(|count| *count >= 6));
    let origins = origins(&lines);
    assert!(!origins.is_empty() && origins.iter().all(|(code, ..)| *code == 149), "{origins:?}");
}

#[test]
fn faults_of_the_program_are_told_from_memory_that_ran_out() {
    let Some(lines) = decoded("xid13-xid43-and-oom.log") else { return };
    let kinds = kinds(&lines);
    assert_eq!((kinds.get("xid/13"), kinds.get("xid/43")), (Some(&16), Some(&1)));
    assert_eq!((kinds.get("cgroup-out-of-memory"), kinds.get("kernel-out-of-memory")), (Some(&2), Some(&5)));
    assert_eq!(origins(&lines), [(13, 0, 0x38)]);
    let program = lines.iter().filter(|line| line.class == LineClass::Application).count();
    assert_eq!(program, 17);
}

#[test]
fn crashes_inside_nccl_and_freed_memory_are_known() {
    if let Some(lines) = decoded("nccl-segfault.log") {
        assert_eq!(kinds(&lines), [("nccl-segfault", 2)].into());
    }
    if let Some(lines) = decoded("peermem-kmsg.log") {
        assert_eq!(kinds(&lines), [("peermem-invalid-context", 7)].into());
    }
}

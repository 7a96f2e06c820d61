use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn the_table_is_well_formed() {
    let table = load().unwrap();
    let ids: BTreeSet<&str> = table.iter().map(|(line, _)| line.id.as_str()).collect();
    assert_eq!(ids.len(), table.len(), "ids are unique");
    for (line, patterns) in &table {
        assert!(!patterns.is_empty() && !line.source.is_empty(), "{}", line.id);
        // A meaning may stand in a claim, whose own words hold no digits and no places.
        assert!(!line.meaning.contains(|c: char| c.is_ascii_digit() || c == '{'), "{}", line.id);
        assert!(line.action.ends_with('.') && line.action.len() <= 200, "{}", line.id);
    }
}

/// A line, the kind it is of, and what must be read out of its gaps.
type Example = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// One line of each kind as it is written in the field.
const LINES: [Example; 24] = [
    ("node7:12:99 [3] NCCL WARN NET/IB : Got async event : port error", "nccl-ib-port-error", &[]),
    ("NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", "nccl-ib-completion-12", &[]),
    ("NCCL WARN NET/IB : Got completion with error 5, opcode 1", "nccl-ib-completion", &[("status", "5")]),
    ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41)", "nccl-watchdog", &[]),
    (
        "pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2",
        "nccl-segfault",
        &[("address", "7f797fe00000")],
    ),
    ("ncclRemoteError: A call failed possibly due to a network error", "nccl-remote-error", &[]),
    ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context", "peermem-invalid-context", &[]),
    ("RuntimeError: CUDA error: Error 802: system not yet initialized", "cuda-error-802", &[]),
    (
        "request to query NVSwitch device fabric manager NVIDIA interface version 530.30.02 don't match with driver version 530.41.03",
        "fabric-manager-mismatch",
        &[("manager", "530.30.02"), ("driver", "530.41.03")],
    ),
    (
        "NVRM: API mismatch: the client has the version 535.104, but this kernel module has the version 535.86.",
        "driver-api-mismatch",
        &[("client", "535.104"), ("module", "535.86.")],
    ),
    ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "gpu-fell-off", &[("pci", "0000:91:00.0")]),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has", "cuda-out-of-memory", &[]),
    ("Out of memory: Killed process 123, UID 48, (httpd)", "kernel-out-of-memory", &[("pid", "123")]),
    ("Memory cgroup out of memory: Killed process 77 (python)", "cgroup-out-of-memory", &[]),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),", "cgroup-out-of-memory", &[]),
    ("oom-kill:constraint=OTHER_CONSTRAINT", "kernel-out-of-memory", &[]),
    ("DataLoader worker (pid 41) is killed by signal: Killed.", "loader-killed", &[("pid", "41")]),
    (
        "mlx5_core 0000:9c:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at 0000:97:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
        "pcie-limited",
        &[("pci", "0000:9c:00.0"), ("limit", "32.0 GT/s PCIe x8"), ("capable", "504.112")],
    ),
    (
        "mlx5_core 0000:9c:00.0: Port module event: module 0, Cable unplugged",
        "mlx5-cable",
        &[("pci", "0000:9c:00.0"), ("module", "0")],
    ),
    ("EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2", "ext4-error", &[("device", "nvme0n1p2")]),
    ("nfs: server fs-1 not responding, still trying", "nfs-not-responding", &[("server", "fs-1")]),
    (
        "slurmstepd: error: *** JOB 991 ON n1 CANCELLED AT 2026-05-03T14:10:00 DUE TO PREEMPTION ***",
        "scheduler-preempted",
        &[("at", "2026-05-03T14:10:00")],
    ),
    ("INFO: task kworker/3:1:99 blocked for more than 120 seconds.", "hung-task", &[("seconds", "120")]),
    ("OSError: [Errno 28] No space left on device", "disk-full", &[]),
];

#[test]
fn lines_of_the_field_are_understood() {
    for (line, id, found) in LINES {
        let decoded = decode_line(line).unwrap_or_else(|| panic!("not understood: {line}"));
        assert_eq!(decoded.id, id, "{line}");
        for (name, value) in found {
            assert_eq!(decoded.found.get(*name).map(String::as_str), Some(*value), "{name} of {line}");
        }
    }
    let limited = LINES.iter().find(|(_, id, _)| *id == "pcie-limited").and_then(|(line, ..)| decode_line(line));
    assert_eq!(limited.and_then(|l| l.pci), Some((0, 0x9c, 0)));
}

#[test]
fn who_only_waited_is_told_from_who_is_at_fault() {
    let role = |line: &str| decode_line(line).map(|d| d.role);
    assert_eq!(role("NET/IB : Got async event : port error"), Some(LineRole::Origin));
    assert_eq!(role("NET/IB : Got completion with error 12, opcode 0"), Some(LineRole::Consequence));
    assert_eq!(role("NVRM: Xid (PCI:0000:0f:00): 149, NETIR_LINK_EVT Fatal"), Some(LineRole::Origin));
    assert_eq!(role("NVRM: Xid (PCI:0000:0f:00): 154, GPU recovery action changed"), Some(LineRole::Consequence));
    let follows = "NVRM: Xid (PCI:0000:dc:00): 145, pid=18, Ch 01 caused by previous Xid 149";
    assert_eq!(role(follows), Some(LineRole::Consequence));
}

#[test]
fn codes_keep_their_table_and_their_address() {
    let gpu = decode_line("NVRM: Xid (PCI:0000:91:00): 79, GPU has fallen off the bus.").unwrap();
    assert_eq!((gpu.id.as_str(), gpu.class, gpu.pci), ("xid/79", LineClass::Bus, Some((0, 0x91, 0))));
    assert!(gpu.meaning.is_some() && gpu.action.is_some());
    let switch =
        decode_line("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up").unwrap();
    assert_eq!((switch.id.as_str(), switch.class), ("sxid/20034", LineClass::Nvlink));
    let unknown = decode_line("NVRM: Xid (PCI:0000:91:00): 999, x").unwrap();
    assert_eq!((unknown.meaning, unknown.action), (None, None));
}

#[test]
fn other_lines_mean_nothing_here() {
    for line in ["", "epoch 3 done", "test", "NVRM: GPU at PCI:0000:91:00: GPU-b6c3", "server responding"] {
        assert_eq!(decode_line(line), None, "{line}");
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,120}") {
        let _ = decode_line(&text);
        let _ = decode_line(&format!("nfs: server {text} not responding"));
        let _ = decode_line(&"é".repeat(1_500));
    }
}

use jiff::Timestamp;
use proptest::prelude::*;
use sightline_model::rows::{Labels, LogRow};

use super::{KernelLogSource, read_kernel_log};

fn source() -> KernelLogSource {
    KernelLogSource {
        labels: Labels::from([("node".to_owned(), "n07".to_owned())]),
        boot: "2026-05-01T00:00:00Z".parse().unwrap(),
        read_at: "2026-05-04T10:00:00Z".parse().unwrap(),
    }
}

fn row(time: &str, severity: &str, body: &str) -> LogRow {
    LogRow {
        time: time.parse().unwrap(),
        severity: severity.to_owned(),
        service: "kernel".to_owned(),
        labels: source().labels,
        body: body.to_owned(),
    }
}

#[test]
fn iso_lines_give_time_level_and_text() {
    let text = "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>'\n";
    let expected = row("2025-01-21T04:41:44.283302Z", "warning", "NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>'");
    assert_eq!(read_kernel_log(text, &source()), [expected]);
}

#[test]
fn an_offset_in_an_iso_line_counts() {
    let text = "kern  :err   : 2025-01-21T06:41:44,5+02:00 text";
    assert_eq!(read_kernel_log(text, &source()), [row("2025-01-21T04:41:44.5Z", "error", "text")]);
}

#[test]
fn seconds_since_boot_count_from_boot() {
    let text = "[171167.620236] NVRM: Xid (PCI:0009:01:00): 149,  two  blanks\n[    0.000000] Linux version\nkern  :info  : [   12.5] x";
    let expected = [
        row("2026-05-02T23:32:47.620236Z", "", "NVRM: Xid (PCI:0009:01:00): 149,  two  blanks"),
        row("2026-05-01T00:00:00Z", "", "Linux version"),
        row("2026-05-01T00:00:12.5Z", "info", "x"),
    ];
    assert_eq!(read_kernel_log(text, &source()), expected);
}

#[test]
fn kmsg_records_give_time_and_level() {
    let text = "6,3973,227996636,-;nvidia-peermem: a;b\n3,1,1000000,c,caller=T1;tail ";
    let expected = [
        row("2026-05-01T00:03:47.996636Z", "info", "nvidia-peermem: a;b"),
        row("2026-05-01T00:00:01Z", "error", "tail "),
    ];
    assert_eq!(read_kernel_log(text, &source()), expected);
}

#[test]
fn a_line_without_a_time_takes_the_one_before_it() {
    let text = "NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT\n\n[1.0] a\n SUBSYSTEM=pci\r";
    let expected = [
        row("2026-05-04T10:00:00Z", "", "NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT"),
        row("2026-05-01T00:00:01Z", "", "a"),
        row("2026-05-01T00:00:01Z", "", " SUBSYSTEM=pci\r"),
    ];
    assert_eq!(read_kernel_log(text, &source()), expected);
}

#[test]
fn numbers_past_any_time_stay_in_the_text() {
    let text = "[99999999999999999999.0] a\n6,1,9223372036854775807,-;b";
    let expected = [
        row("2026-05-04T10:00:00Z", "", "[99999999999999999999.0] a"),
        row("2026-05-04T10:00:00Z", "", "6,1,9223372036854775807,-;b"),
    ];
    assert_eq!(read_kernel_log(text, &source()), expected);
}

fn head() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (0_u64..10_000_000, 0_u32..1_000_000).prop_map(|(s, us)| format!("[{s:>5}.{us:06}] ")),
        (0_u32..200, any::<u32>(), 0_u64..10_000_000_000).prop_map(|(p, n, us)| format!("{p},{n},{us},-;")),
        Just("kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ".to_owned()),
        "\\PC{0,30}",
    ]
}

proptest! {
    #[test]
    fn no_text_makes_it_fail(text in any::<String>()) {
        let rows = read_kernel_log(&text, &source());
        let lines = text.split('\n').filter(|line| !line.trim().is_empty()).count();
        prop_assert_eq!(rows.len(), lines);
    }

    #[test]
    fn the_text_of_a_line_is_kept_byte_for_byte(head in head(), body in "[^\\n]{0,80}") {
        let line = format!("{head}{body}");
        let lines: Vec<&str> = line.split('\n').filter(|line| !line.trim().is_empty()).collect();
        for (row, line) in read_kernel_log(&line, &source()).iter().zip(lines) {
            prop_assert!(line.ends_with(row.body.as_str()));
        }
    }

    #[test]
    fn a_known_head_is_taken_off_and_no_more(seconds in 0_u64..10_000_000, body in "[^\\n]{0,80}") {
        let line = format!("[{seconds}.000000] {body}");
        let rows = read_kernel_log(&line, &source());
        prop_assert_eq!(rows.len(), 1);
        prop_assert_eq!(rows[0].body.as_str(), body.as_str());
        let at: Timestamp = source().boot + jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap());
        prop_assert_eq!(rows[0].time, at);
    }
}

use proptest::prelude::*;

use super::*;

fn line(code: u32, bus: u8, caused_by: Option<u32>, detail: &str) -> XidLine {
    XidLine { source: XidSource::Gpu, domain: 0, bus, device: 0, code, caused_by, detail: detail.to_owned() }
}

#[test]
fn the_table_is_well_formed_and_knows_the_codes_that_end_a_job() {
    let table = load().unwrap();
    assert!(table.len() > 45 && table.values().all(|x| !x.meaning.is_empty()));
    // Meanings stand in claims, whose own words hold no digits and no places.
    assert!(table.values().all(|x| !x.meaning.contains(|c: char| c.is_ascii_digit() || c == '{')));
    let class = |code| xid_info(code).map(|x| (x.class, x.action));
    assert_eq!(class(79), Some((XidClass::Bus, XidAction::RebootNode)));
    assert_eq!(class(63), Some((XidClass::Memory, XidAction::Watch)));
    assert_eq!(class(13), Some((XidClass::Application, XidAction::RestartApp)));
    assert_eq!(class(45), Some((XidClass::Info, XidAction::FollowOther)));
    assert_eq!(class(33), None);
}

#[test]
fn driver_lines_are_decoded_in_every_time_format() {
    let fell =
        "[6781741.548779] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    let expected = line(79, 0x91, None, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
    assert_eq!(parse_xid_line(fell), Some(expected));
    let iso = "kern  :warn  : 2025-01-21T04:41:44,287197+00:00 NVRM: Xid (PCI:0000:38:00): 43, pid=29, name=main, Ch 8";
    assert_eq!(parse_xid_line(iso), Some(line(43, 0x38, None, "pid=29, name=main, Ch 8")));
    let follow = "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 01 caused by previous Xid 149";
    assert_eq!(parse_xid_line(follow).and_then(|l| l.caused_by), Some(149));
}

#[test]
fn a_switch_is_not_a_gpu() {
    let text =
        "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61 egress non-posted PRIV error (First)";
    assert_eq!(parse_xid_line(text).map(|l| (l.source, l.code, l.bus)), Some((XidSource::Switch, 12028, 0x85)));
}

#[test]
fn other_lines_are_not_decoded() {
    let others = [
        "",
        "NVRM: GPU at PCI:0000:91:00: GPU-b6c3",
        "NVRM: Xid (PCI:zz:00:00): 79, x",
        "NVRM: Xid (PCI:0000:91:00): many",
        "Xid (",
        "Xid ():",
    ];
    assert!(others.iter().all(|l| parse_xid_line(l).is_none()));
}

#[test]
fn one_address_in_three_spellings_is_one_address() {
    let spellings = ["PCI:0000:0f:00", "00000000:0F:00.0", "0000:0f:00.0"];
    assert!(spellings.iter().all(|s| parse_bus_id(s) == Some((0, 0x0f, 0))));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,80}") {
        let _ = parse_xid_line(&text);
        let _ = parse_xid_line(&format!("NVRM: Xid (PCI:{text}"));
        let _ = parse_xid_line(&format!("NVRM: Xid (PCI:0000:91:00): {text}"));
    }

    #[test]
    fn what_is_printed_is_read_back(domain in 0_u32..0xffff, bus: u8, device in 0_u8..32, code in 1_u32..200) {
        let text = format!("NVRM: Xid (PCI:{domain:04x}:{bus:02x}:{device:02x}): {code}, pid=1, name=x");
        let got = parse_xid_line(&text).unwrap();
        prop_assert_eq!((got.domain, got.bus, got.device, got.code), (domain, bus, device, code));
    }
}

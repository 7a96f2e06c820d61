//! Which of several Xids the others follow from.
//!
//! A fault of one GPU makes others report: the driver cleans up (45), recommends another recovery (154), and on NVLink 5 the GPUs
//! that talked over the lost link report 145 while the one whose link failed reports 149 (NVIDIA/open-gpu-kernel-modules#1150).
//! The most frequent code is mostly a consequence, and it is the one that the exporter's gauge keeps.

use crate::xid::{XidAction, XidClass, XidLine, XidSource, xid_info};

/// NVLink 5: an event of the network interface, on the GPU whose link it is.
const NETIR: u32 = 149;
/// NVLink 5: the request unit, also on GPUs that only used the link.
const REQUEST_UNIT: u32 = 145;

/// How near a line is to the fault, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// A fault that the line itself calls fatal, or one that no other explains.
    Origin,
    /// A fault of a kind that follows from others, or that the line calls nonfatal.
    Lesser,
    /// A consequence or a notice.
    Follows,
}

/// The places of the lines that the others follow from, in their order; all places when nothing tells them apart. Lines of switches
/// are passed over: they have an origin of their own.
pub fn xid_origins(lines: &[XidLine]) -> Vec<usize> {
    let gpus = || lines.iter().enumerate().filter(|(_, line)| line.source == XidSource::Gpu);
    // An earlier code that a line names is the origin, whatever else is there.
    let named: Vec<u32> = gpus().filter_map(|(_, line)| line.caused_by).collect();
    let has_netir = gpus().any(|(_, line)| line.code == NETIR);
    let standing = |line: &XidLine| {
        if line.caused_by.is_some() {
            return Standing::Follows;
        }
        if named.contains(&line.code) {
            return Standing::Origin;
        }
        let info = xid_info(line.code);
        match info.map(|info| (info.action, info.class)) {
            Some((XidAction::FollowOther | XidAction::Ignore, _)) => Standing::Follows,
            Some((_, XidClass::Nvlink)) if line.code == REQUEST_UNIT && has_netir => Standing::Follows,
            Some((_, XidClass::Nvlink)) if line.detail.contains("Nonfatal") => Standing::Lesser,
            Some(_) | None => Standing::Origin,
        }
    };
    let Some(best) = gpus().map(|(_, line)| standing(line)).min() else { return Vec::new() };
    gpus().filter(|(_, line)| standing(line) == best).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xid::parse_xid_line;

    fn origins(lines: &[&str]) -> Vec<(u32, u32, u8)> {
        let lines: Vec<XidLine> = lines.iter().filter_map(|line| parse_xid_line(line)).collect();
        xid_origins(&lines)
            .into_iter()
            .map(|place| (lines[place].code, lines[place].domain, lines[place].bus))
            .collect()
    }

    #[test]
    fn the_link_that_failed_is_told_from_those_who_used_it() {
        let lines = [
            "NVRM: Xid (PCI:0018:01:00): 145, pid=1, name=x, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)",
            "NVRM: Xid (PCI:0019:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6)",
            "NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226)",
            "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
        ];
        assert_eq!(origins(&lines), [(149, 0x19, 1)]);
    }

    #[test]
    fn what_a_line_names_as_its_cause_comes_first() {
        let lines = [
            "NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=python3, Ch 01 caused by previous Xid 149",
            "NVRM: Xid (PCI:0000:0f:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 00 (0x026001c6)",
            "NVRM: Xid (PCI:0000:dd:00): 45, pid=2, name=python3, Ch 01 caused by previous Xid 149",
        ];
        assert_eq!(origins(&lines), [(149, 0, 0x0f)]);
    }

    #[test]
    fn consequences_alone_are_all_there_is() {
        let lines = ["NVRM: Xid (PCI:0000:0f:00): 45, pid=1, name=x", "NVRM: Xid (PCI:0000:10:00): 45, pid=1, name=x"];
        assert_eq!(origins(&lines).len(), 2);
        assert_eq!(origins(&["nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48"]), []);
    }

    #[test]
    fn a_clean_up_hides_no_halt() {
        let lines = ["NVRM: Xid (PCI:0000:0f:00): 62, 1234", "NVRM: Xid (PCI:0000:0f:00): 45, pid=1, name=x"];
        assert_eq!(origins(&lines), [(62, 0, 0x0f)]);
    }
}

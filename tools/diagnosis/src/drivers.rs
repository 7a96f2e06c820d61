//! Which driver each node of the job runs, and which nodes run the newest.

use std::collections::BTreeMap;

use sightline_model::Evidence;

use crate::case::Case;

/// A node's driver as it was last seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver<'a> {
    pub(crate) version: &'a str,
    pub(crate) evidence: &'a Evidence,
    pub(crate) row: usize,
}

/// The driver of each node of the job that reports one: the last one seen.
pub(crate) fn drivers<'a>(case: &Case<'a>) -> BTreeMap<&'a str, Driver<'a>> {
    let mut found: BTreeMap<&str, (jiff::Timestamp, Driver<'_>)> = BTreeMap::new();
    let Some(evidence) = case.observations.drivers else { return BTreeMap::new() };
    for (row, line) in evidence.rows.iter().enumerate() {
        let (Some(node), Some(version), Some(at)) =
            (line.entity.get("node"), line.fields.get("driver_version"), line.time)
        else {
            continue;
        };
        let its = case.observations.job.placements.iter().any(|p| p.node == *node);
        if its && found.get(node.as_str()).is_none_or(|(seen, _)| *seen <= at) {
            found.insert(node, (at, Driver { version, evidence, row }));
        }
    }
    found.into_iter().map(|(node, (_, driver))| (node, driver)).collect()
}

/// The nodes with the newest driver and the others, where the job has both.
pub(crate) fn split<'a>(drivers: &BTreeMap<&'a str, Driver<'a>>) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
    let newest = drivers.values().map(|d| number(d.version)).max()?;
    let (newer, others): (Vec<_>, Vec<_>) = drivers.iter().partition(|(_, d)| number(d.version) == newest);
    let names = |side: Vec<(&&'a str, &Driver<'a>)>| side.into_iter().map(|(node, _)| *node).collect::<Vec<_>>();
    (!others.is_empty()).then(|| (names(newer), names(others)))
}

/// A version as numbers, so that `525.9` is older than `525.105`.
fn number(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_compared_by_number_and_not_by_letter() {
        assert!(number("525.105.17") > number("525.60.13") && number("530.41") > number("525.105.17"));
    }
}

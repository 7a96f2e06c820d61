//! Counts what keeps happening, so that the audit log has one record of it a minute and not one each time.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;

/// A record speaks for this long.
const EVERY_MS: f64 = 60_000.0;
/// The most that is remembered; what was quiet for longest goes, and is recorded first.
const MOST: usize = 4096;

/// What is to stand in the audit log as one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report<K> {
    /// Of whom or what.
    pub(crate) of: K,
    /// How often, by reason. Guaranteed: not empty.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

struct Entry {
    unreported: BTreeMap<&'static str, u64>,
    reported: Option<f64>,
}

/// The memory of what was counted. Times are the clock's monotonic milliseconds.
pub(crate) struct Tally<K> {
    entries: Mutex<LruCache<K, Entry>>,
}

impl<K: Clone + Eq + Hash> Default for Tally<K> {
    fn default() -> Self {
        Self { entries: Mutex::new(LruCache::new(MOST)) }
    }
}

impl<K> Report<K> {
    /// How often, for whatever reason.
    pub(crate) fn attempts(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The reasons in words, each with its number.
    pub(crate) fn reasons(&self) -> String {
        let reasons: Vec<String> = self.counts.iter().map(|(why, times)| format!("{why}: {times}")).collect();
        reasons.join(", ")
    }
}

impl<K: Clone + Eq + Hash> Tally<K> {
    /// Counts one, and gives back what is to be recorded now: the first at once, the next a minute later.
    pub(crate) fn count(&self, of: &K, why: &'static str, now_ms: f64) -> Vec<Report<K>> {
        let mut entries = self.entries();
        let mut reports = Vec::new();
        if !entries.contains_key(of) {
            let room = if entries.len() >= MOST { entries.remove_lru() } else { None };
            reports.extend(room.and_then(|(of, mut entry)| entry.take(&of)));
            entries.insert(of.clone(), Entry { unreported: BTreeMap::new(), reported: None });
        }
        if let Some(entry) = entries.get_mut(of) {
            *entry.unreported.entry(why).or_default() += 1;
            reports.extend(entry.due(of, now_ms));
        }
        reports
    }

    /// What is to be recorded now of what was counted and not recorded yet.
    pub(crate) fn due(&self, now_ms: f64) -> Vec<Report<K>> {
        self.entries().iter_mut().filter_map(|(of, entry)| entry.due(of, now_ms)).collect()
    }

    /// All of it, when the service ends.
    pub(crate) fn rest(&self) -> Vec<Report<K>> {
        self.entries().iter_mut().filter_map(|(of, entry)| entry.take(of)).collect()
    }

    /// A poisoned lock only means that a thread died between two whole states.
    fn entries(&self) -> MutexGuard<'_, LruCache<K, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn due<K: Clone>(&mut self, of: &K, now_ms: f64) -> Option<Report<K>> {
        if self.reported.is_some_and(|at| now_ms - at < EVERY_MS) {
            return None;
        }
        let report = self.take(of)?;
        self.reported = Some(now_ms);
        Some(report)
    }

    fn take<K: Clone>(&mut self, of: &K) -> Option<Report<K>> {
        let counts = std::mem::take(&mut self.unreported);
        (!counts.is_empty()).then(|| Report { of: of.clone(), counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts<K>(reports: &[Report<K>]) -> u64 {
        reports.iter().map(Report::attempts).sum()
    }

    #[test]
    fn what_happens_is_recorded_at_once_then_at_most_once_a_minute_and_none_is_lost() {
        let tally = Tally::default();
        let mut records = Vec::new();
        for second in 0..100 {
            let now = f64::from(second) * 1000.0;
            records.extend(tally.count(&"a", if second % 2 == 0 { "wrong" } else { "expired" }, now));
            records.extend(tally.due(now));
        }
        records.extend(tally.rest());
        assert_eq!(records.iter().map(Report::attempts).collect::<Vec<_>>(), [1, 60, 39]);
        assert_eq!(records[1].reasons(), "expired: 30, wrong: 30");
        assert_eq!(tally.rest(), []);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_let_go_is_recorded_first() {
        let tally = Tally::default();
        let mut recorded = 0;
        for index in 0..3 * MOST {
            for _ in 0..2 {
                recorded += attempts(&tally.count(&index, "wrong", 0.0));
            }
        }
        assert_eq!(tally.entries().len(), MOST);
        recorded += attempts(&tally.rest());
        assert_eq!(recorded, 6 * MOST as u64);
    }
}

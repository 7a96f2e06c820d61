//! The ledger's promises: across restarts, processes, crashes and any order of calls.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sightline_core::quota::Spend;

use super::ledger::{Entry, Ledger, LedgerError, Reserved};

const LIMIT: u64 = 1000;
const DAY: i64 = 20_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(DAY * 86_400 + second).unwrap()
}

fn entry(account: &str) -> Entry<'_> {
    Entry { account, day: DAY, spend: Spend::Bytes }
}

fn open(folder: &Path) -> Ledger {
    Ledger::open(&folder.join("budget.db"), DAY).unwrap()
}

fn reserve(ledger: &Ledger, amount: u64, now: Timestamp) -> Option<Reserved> {
    let expires = now.checked_add(SignedDuration::from_secs(60)).unwrap();
    ledger.reserve(entry("a"), amount, LIMIT, now, expires).unwrap()
}

fn left(ledger: &Ledger, now: Timestamp) -> u64 {
    ledger.left(entry("a"), LIMIT, now).unwrap()
}

#[test]
fn what_is_set_aside_is_taken_and_what_is_not_spent_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let first = reserve(&ledger, 600, at(0)).unwrap();
    assert_eq!((first.amount, left(&ledger, at(0))), (600, 400));
    let second = reserve(&ledger, 600, at(0)).unwrap();
    assert_eq!(second.amount, 400, "what is left where that is less");
    assert_eq!(reserve(&ledger, 1, at(0)), None);
    ledger.settle(first.id, entry("a"), 100, at(1)).unwrap();
    assert_eq!(left(&ledger, at(1)), 500);
    ledger.settle(second.id, entry("a"), 450, at(1)).unwrap();
    assert_eq!(left(&ledger, at(1)), 450, "what was read beyond is charged too");
}

#[test]
fn accounts_days_and_kinds_have_budgets_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let reserved = reserve(&ledger, LIMIT, at(0)).unwrap();
    ledger.settle(reserved.id, entry("a"), LIMIT, at(0)).unwrap();
    assert_eq!(left(&ledger, at(0)), 0);
    for other in [entry("b"), Entry { day: DAY + 1, ..entry("a") }, Entry { spend: Spend::Tokens, ..entry("a") }] {
        assert_eq!(ledger.left(other, LIMIT, at(0)).unwrap(), LIMIT, "{other:?}");
    }
}

#[test]
fn it_survives_a_restart_and_is_shared_by_several_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let reserved = reserve(&one, 300, at(0)).unwrap();
    assert_eq!(left(&other, at(0)), 700);
    one.settle(reserved.id, entry("a"), 200, at(0)).unwrap();
    drop((one, other));
    assert_eq!(left(&open(folder.path()), at(0)), 800);
}

#[test]
fn a_crash_does_not_eat_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let lost = reserve(&open(folder.path()), 900, at(0)).unwrap();
    let ledger = open(folder.path());
    assert_eq!(left(&ledger, at(59)), 100);
    assert_eq!(left(&ledger, at(60)), LIMIT);
    // One that was only slow is charged all the same.
    ledger.settle(lost.id, entry("a"), 50, at(61)).unwrap();
    assert_eq!(left(&ledger, at(61)), 950);
}

#[test]
fn it_is_its_owners_alone_and_an_older_program_refuses_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("budget.db");
    let ledger = open(folder.path());
    reserve(&ledger, 1, at(0)).unwrap();
    for name in ["budget.db", "budget.db-wal", "budget.db-shm"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(ledger);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 9).unwrap();
    newer.pragma_update(None, "journal_mode", "DELETE").unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    let error = Ledger::open(&path, DAY).err().unwrap();
    assert!(matches!(error, LedgerError::Newer { found: 9, .. }), "{error}");
    assert!(error.to_string().contains("use the newer `sightline`"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "and leaves it as it was");
}

#[test]
fn days_long_past_are_let_go_of() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    ledger.settle(0, entry("a"), 7, at(0)).unwrap();
    drop(ledger);
    let path = folder.path().join("budget.db");
    let kept = |today: i64| Ledger::open(&path, today).unwrap().left(entry("a"), LIMIT, at(0)).unwrap();
    assert_eq!((kept(DAY + 400), kept(DAY + 401)), (993, 1000));
}

/// What a test does to a ledger.
#[derive(Clone, Debug)]
enum Act {
    Reserve(u64),
    /// Settles the n-th open reservation by this share of it, in percent.
    Settle(usize, u64),
    /// The process ends without settling and another opens the file.
    Crash,
    /// Another process opens the same file and goes on with it.
    Reopen,
    Wait(i64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_u64..700).prop_map(Act::Reserve),
        4 => (any::<usize>(), 0_u64..150).prop_map(|(which, share)| Act::Settle(which, share)),
        1 => Just(Act::Crash),
        1 => Just(Act::Reopen),
        1 => (1_i64..40).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Against a model that adds and subtracts: what is left is always the limit less what was charged and what is open, and never
    /// does that pass the limit by more than what was read beyond the parts set aside.
    #[test]
    fn never_more_is_given_than_there_is(acts in proptest::collection::vec(act(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = open(folder.path());
        let mut second = 0;
        let mut open_ones: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
        let (mut spent, mut beyond) = (0_u64, 0_u64);
        for act in acts {
            let held = |open_ones: &BTreeMap<i64, (u64, i64)>, second: i64| -> u64 {
                open_ones.values().filter(|(_, expires)| *expires > second).map(|(amount, _)| amount).sum()
            };
            match act {
                Act::Reserve(amount) => {
                    let expected = LIMIT.saturating_sub(spent + held(&open_ones, second));
                    let reserved = reserve(&ledger, amount, at(second));
                    prop_assert_eq!(reserved.map(|r| r.amount), (expected > 0).then(|| amount.min(expected)));
                    if let Some(reserved) = reserved {
                        open_ones.insert(reserved.id, (reserved.amount, second + 60));
                    }
                }
                Act::Settle(which, share) => {
                    let Some(id) = open_ones.keys().copied().nth(which % open_ones.len().max(1)) else { continue };
                    let (amount, expires) = open_ones.remove(&id).unwrap();
                    let actual = amount * share / 100;
                    ledger.settle(id, entry("a"), actual, at(second)).unwrap();
                    spent += actual;
                    // What expired was given to others meanwhile, so all of it is beyond.
                    beyond += if expires > second { actual.saturating_sub(amount) } else { actual };
                }
                Act::Crash => {
                    drop(ledger);
                    ledger = open(folder.path());
                }
                Act::Reopen => ledger = open(folder.path()),
                Act::Wait(seconds) => second += seconds,
            }
            let used = spent + held(&open_ones, second);
            prop_assert!(used <= LIMIT + beyond, "{used} of {LIMIT}, {beyond} beyond");
            prop_assert_eq!(left(&ledger, at(second)), LIMIT.saturating_sub(used));
        }
    }
}

#[test]
fn many_at_once_are_given_no_more_than_there_is() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let path = folder.path();
    let given: u64 = std::thread::scope(|scope| {
        let take = || {
            let ledger = open(path);
            (0..50).map(|_| reserve(&ledger, 7, at(0)).map_or(0, |reserved| reserved.amount)).sum::<u64>()
        };
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!(given, LIMIT);
}

#[test]
fn what_a_query_costs_in_the_ledger_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = open(folder.path());
    let rounds = 1000;
    let started = Instant::now();
    for _ in 0..rounds {
        assert!(left(&ledger, at(0)) > 0);
        let reserved = reserve(&ledger, 1, at(0)).unwrap();
        ledger.settle(reserved.id, entry("a"), 0, at(0)).unwrap();
    }
    let each = started.elapsed() / rounds;
    println!("left, reserve and settle: {each:?} a query");
    assert_eq!(left(&ledger, at(0)), LIMIT, "all of it came back");
}

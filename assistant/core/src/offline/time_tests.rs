use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::time::{asked, find_times};
use super::words::words;

const ZONE: &str = "Europe/Berlin";

fn read(text: &str, as_of: &str) -> Vec<String> {
    let zone = TimeZone::get(ZONE).unwrap();
    let as_of: Timestamp = as_of.parse().unwrap();
    let words = words(text);
    match find_times(&words, as_of, &zone) {
        Ok(times) => times.iter().map(|t| asked(t.range, &t.typed, &zone).how).collect(),
        Err(fault) => vec![fault.reason],
    }
}

#[test]
fn expressions_become_windows_in_the_askers_zone() {
    let read = |text: &str| read(text, "2026-05-04T10:00:00Z").join(" | ");
    insta::assert_snapshot!(
        [
            "why was J1 slow yesterday",
            "why was J1 slow today",
            "what happened last night",
            "this morning",
            "the day before yesterday",
            "in the last 3 hours",
            "over the past 30m",
            "last hour",
            "last 2 days",
            "right now",
            "since yesterday at 18:00",
            "since 3pm",
            "between 14:00 and 16:30 yesterday",
            "between 8am and 9am",
            "from 2026-05-01 to 2026-05-02",
            "from 2026-05-01T12:00 to 2026-05-01T13:00",
            "from 2026-05-01T12:00:00Z to 2026-05-01T13:00:00Z",
            "throughput drop at 3pm",
            "around 14:10 yesterday",
            "yesterday at 14:10",
            "on monday",
            "on friday",
            "on 2026-05-03",
            "this week",
            "today and yesterday",
            "no time at all",
            "tomorrow",
            "from 16:00 to 14:00 yesterday",
            "since 2027-01-01",
        ]
        .map(|text| format!("{text:<52} {}", read(text)))
        .join("\n")
    );
}

#[test]
fn a_length_of_time_that_is_not_understood_is_told_and_not_passed_over() {
    for (text, typed) in [
        ("what was the temperature in the last -5 hours", "last -5 hours"),
        ("in the past 3 years", "past 3 years"),
        ("over the last 9999999999999999 days", "last 9999999999999999 days"),
        ("the last 0 minutes", "last 0 minutes"),
    ] {
        let read = read(text, "2026-05-04T10:00:00Z");
        assert_eq!(read.len(), 1, "{read:?}");
        assert!(read[0].starts_with(&format!("“{typed}” is no length of time")), "{read:?}");
    }
    assert_eq!(read("the last 5 requests", "2026-05-04T10:00:00Z"), Vec::<String>::new());
}

#[test]
fn a_day_on_which_the_clocks_change_has_its_own_length() {
    // Clocks went forward on 2026-03-29 in Berlin: 23 hours.
    let zone = TimeZone::get(ZONE).unwrap();
    let words = words("yesterday");
    let times = find_times(&words, "2026-03-30T10:00:00Z".parse().unwrap(), &zone).unwrap();
    assert_eq!(times[0].range.seconds(), 23.0 * 3600.0);
}

proptest! {
    #[test]
    fn any_text_gives_windows_that_end_by_now(text in ".{0,60}", at in 1_600_000_000_i64..1_900_000_000) {
        let as_of = Timestamp::from_second(at).unwrap();
        let words = words(&text);
        if let Ok(times) = find_times(&words, as_of, &TimeZone::get(ZONE).unwrap()) {
            for time in times {
                prop_assert!(time.range.from() < time.range.to() && time.range.to() <= as_of);
            }
        }
    }

    #[test]
    fn the_last_n_hours_end_now_and_are_n_hours_long(n in 1_i64..5000, at in 1_600_000_000_i64..1_900_000_000) {
        let as_of = Timestamp::from_second(at).unwrap();
        let text = format!("the last {n} hours");
        let words = words(&text);
        let times = find_times(&words, as_of, &TimeZone::get(ZONE).unwrap()).unwrap();
        prop_assert_eq!(times[0].range.seconds(), n as f64 * 3600.0);
    }
}

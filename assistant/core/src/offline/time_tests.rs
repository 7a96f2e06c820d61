use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::time::{Moment, asked, find_times};
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
            "at about 02:58 UTC",
            "since about 18:39 UTC",
            "around 01:49 UTC today",
            "at 23:30 UTC",
            "around 23:30 UTC yesterday",
            "between 03:00 and 04:00 America/New_York",
            "since 3pm UTC",
            "at 3pm PST",
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

#[test]
fn yesterday_is_as_long_as_the_clocks_made_it() {
    for (zone, as_of, hours) in [
        ("Europe/Berlin", "2026-03-30T10:00:00Z", 23.0),
        ("Europe/Berlin", "2026-10-26T10:00:00Z", 25.0),
        ("America/Los_Angeles", "2026-03-09T20:00:00Z", 23.0),
        ("America/Los_Angeles", "2026-11-02T20:00:00Z", 25.0),
        ("Australia/Lord_Howe", "2026-04-05T20:00:00Z", 24.5),
        ("UTC", "2026-03-30T10:00:00Z", 24.0),
    ] {
        let zone = TimeZone::get(zone).unwrap();
        let times = find_times(&words("why was J1 slow yesterday"), as_of.parse().unwrap(), &zone).unwrap();
        assert_eq!(times[0].range.seconds(), hours * 3600.0, "{zone:?} {as_of}");
    }
}

#[test]
fn what_kind_of_time_was_named_is_kept() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let moment =
        |text: &str| find_times(&words(text), "2026-05-04T10:00:00Z".parse().unwrap(), &zone).unwrap()[0].moment;
    assert_eq!(moment("at about 02:58 UTC"), Moment::Instant("2026-05-04T02:58:00Z".parse().unwrap()));
    assert_eq!(moment("around 01:49 UTC today"), Moment::Instant("2026-05-04T01:49:00Z".parse().unwrap()));
    assert_eq!(moment("since about 18:39 UTC"), Moment::Since("2026-05-03T18:39:00Z".parse().unwrap()));
    assert_eq!(moment("since 11:00"), Moment::Since("2026-05-04T09:00:00Z".parse().unwrap()));
    assert_eq!(moment("right now"), Moment::Now);
    assert_eq!(moment("yesterday"), Moment::Window);
}

#[test]
fn an_hour_alone_and_a_rough_time_are_times() {
    let read = |text: &str| read(text, "2026-05-04T10:00:00Z").join(" | ");
    for (text, start) in [
        ("code-llm streams stutter badly since 7ish, why", "07:00"),
        ("ours-17 slow since 9, is it the gpu", "09:00"),
        ("copilot answers are slow after 3", "03:00"),
        ("job 812377 is dragging since ~6", "06:00"),
        ("slow since 20", "20:00"),
    ] {
        assert!(read(text).contains(start), "{text}: {}", read(text));
    }
    assert!(read("TTFT went through the roof ~11:50").contains("11:20"), "{}", read("it went up ~11:50"));
    for text in ["it failed after 3 days", "slow since 2 steps", "it got slow after the deploy"] {
        assert_eq!(read(text), "", "{text}");
    }
}

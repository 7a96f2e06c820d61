//! Kept steps: when a text goes by them, and what keeps a window of them from letting other samples in.

use sightline_guard::FaultKind;
use sightline_model::TimeRange;
use sightline_query::Query;

use crate::sample::{admit, at, check, every_shape, params};

#[test]
fn a_window_of_kept_steps_begins_and_ends_with_one() {
    let (_, kept) = every_shape().into_iter().find(|(name, _)| *name == "metrics_series_of_kept_steps").unwrap();
    let sent = admit(&kept).unwrap();
    assert!(sent.sql().contains("toStartOfInterval(t.time, toIntervalMillisecond(300000)) >= "), "{}", sent.sql());
    assert_eq!(check(sent.sql(), &params(&sent)), Ok(()));
    // A sample past the window's end lies in a step that begins before it.
    let mut reaching = params(&sent);
    let end = reaching.values_mut().find(|text| text.starts_with("2026-05-04 00:00:00")).unwrap();
    *end = end.replace("00:00:00", "00:00:01");
    let faults = check(sent.sql(), &reaching).unwrap_err();
    assert!(faults.iter().any(|fault| fault.kind() == FaultKind::Window), "{faults:?}");
    // A window that is no whole number of them is read by its samples, and so is a short one.
    for (from, to) in
        [("2026-05-03T00:00:01Z", "2026-05-04T00:00:00Z"), ("2026-05-03T00:00:00Z", "2026-05-03T05:00:00Z")]
    {
        let other = Query { range: TimeRange::new(at(from), at(to)).unwrap(), ..kept.clone() };
        assert!(admit(&other).unwrap().sql().contains("t.time >= "), "{from} to {to}");
    }
    // No step but the kept one stands in a condition, and steps are made of whole ones.
    let changed = [
        sent.sql().replace("toIntervalMillisecond(300000)", "toIntervalMillisecond(600000)"),
        sent.sql().replace("toIntervalMillisecond(900000)", "toIntervalMillisecond(400000)"),
        sent.sql().replacen("toStartOfInterval(t.time, toIntervalMillisecond(300000)) <", "t.time <", 1),
    ];
    for text in changed {
        assert_ne!(text, sent.sql());
        assert!(check(&text, &params(&sent)).is_err(), "{text}");
    }
}

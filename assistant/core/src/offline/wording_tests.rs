//! Wordings beside the plain ones, by kind: what people leave out, add, turn round and hint at.

use super::phrasing_tests::{all, are};
use super::reading::{MetricMention, Reading};

fn one(text: &str) -> Reading {
    all(&[text]).remove(0)
}

fn windows(text: &str) -> Vec<String> {
    one(text).times.iter().map(|time| format!("{}/{}", time.range.from(), time.range.to())).collect()
}

#[test]
fn of_two_things_one_may_be_asked_for() {
    are(
        &["compare"],
        &[
            "n16 or n17, which of them had the warmer gpus in the past 4 hours",
            "chat-70b and code-7b, who of the two keeps more requests waiting, last 12h",
            "ib tx on n16 vs n17 yesterday 2pm-8pm, was one of them pulling less?",
            "has J133 been faster in the first six hours of today than in the last six of yesterday",
            "we moved the dataset of vit-g-pretrain yesterday at 21:40. any effect on tokens per second, before and after next to each other?",
        ],
    );
    are(&["top_k"], &["which gpus of n03 and n04 are the hottest", "the hottest gpus of n03 and n04"]);
}

#[test]
fn an_order_is_one_wherever_it_stands() {
    are(
        &["write"],
        &[
            "bump J125 to 16 dataloader workers",
            "n14 lost a gpu so could you go ahead and reboot it",
            "n05 and n06 are free so please move mkoch's J134 over there",
        ],
    );
    are(&["events"], &["deploy history pls, past 3 days", "maintenance events since saturday please"]);
}

#[test]
fn what_lies_idle_is_hinted_at() {
    are(
        &["waste", "count"],
        &[
            "whole nodes w/o any work in atlas-a the past 3 hours",
            "which boards in atlas-a have been loafing since breakfast?",
            "how many cards could i grab this minute without kicking anybody out",
            "any node in atlas-b with nobody on it?",
            "need 16 gpus tonight for the camera ready, what's free??",
            "nodes idle for more than 2 hours",
        ],
    );
    assert_eq!(windows("nodes idle for more than 2 hours"), ["2026-05-04T08:00:00Z/2026-05-04T10:00:00Z"]);
    // A ranking by something else is none, whatever is in use.
    are(&["top_k"], &["memory hogs please: the ten GPUs with most VRAM in use over the last hour"]);
    are(&["why_anything", "why_service"], &["summarize is backed up and the gpus are bored?!"]);
}

#[test]
fn a_changed_pace_asks_why_and_a_number_is_a_number() {
    are(
        &["why_job"],
        &[
            "step time of J132 doubled??",
            "J125 went from 3 it/s to 0.3",
            "explain me please reason for drop of tokens/s in J125 after 21:30 yesterday",
            "my run J123 had one bad apple on sunday, name it",
            "find the bad gpu in J123",
            "J201 has a weak link somewhere. which gpu?",
        ],
    );
    are(
        &["value"],
        &["tok/s of J123 past 6 hours, is it trending up or down", "J130 xput yesterday 22:00 to midnight"],
    );
    are(
        &["health"],
        &["did anything break this morning", "any fires overnight?", "everything really fine? pager is silent"],
    );
}

#[test]
fn what_words_mean_is_asked_in_many_ways() {
    are(
        &["meaning"],
        &[
            "never heard of \"row remapping\", is this something I must worry about?",
            "the log says Xid 74. bad?",
            "inter token latency?? eli5",
            "somebody in standup mentioned MFU and everybody nodded... what is it",
            "xid 48 - do I have to pull the board?",
            "new here, sorry if it's a silly one: what's an XID anyway?",
            "is xid 31 a hardware problem or does it come from my code",
        ],
    );
    are(&["abilities"], &["which kind of questions I may ask to you? it is my first day"]);
}

#[test]
fn people_and_their_jobs_are_asked_for_in_passing() {
    are(
        &["find_jobs"],
        &[
            "rlopez has what on the machines right now",
            "the protein one, has it ended already or still going",
            "did tanaka's clip thing finish or did it fall over?",
            "need a list of everything that started on sunday, job id + owner",
            "Who occupied atlas-n07 saturday at 4 pm? I need a name for the chargeback",
            "jobs that began later than saturday 20:00 but before sunday noon",
            "is anyone using n14?",
        ],
    );
    are(&["list"], &["on which nodes does multilingual-13b live?", "where does J132 run"]);
    // Machines and jobs have numbers, and are nobody.
    assert!(one("did n03's gpus ever go north of 90C").users.is_empty());
    assert!(one("is moe-8x22b running any faster").users.is_empty());
}

#[test]
fn windows_are_narrowed_by_what_stands_beside_them() {
    let last_night = "2026-05-03T21:00:00Z/2026-05-04T00:00:00Z";
    let eight_to_half_past_nine = "2026-05-04T06:00:00Z/2026-05-04T07:30:00Z";
    for (text, window) in [
        ("what made chat-70b so sluggish last night from 11pm till 2am", last_night),
        (
            "gpu power n12 from quarter past eight till half past nine this morning",
            "2026-05-04T06:15:00Z/2026-05-04T07:30:00Z",
        ),
        ("n18 pwr from 8 to half past 9 this morning", eight_to_half_past_nine),
        ("how busy was n18, 6 to 8 this morning", "2026-05-04T04:00:00Z/2026-05-04T06:00:00Z"),
        ("power of n18 between 11 and 1 last night", "2026-05-03T21:00:00Z/2026-05-03T23:00:00Z"),
        ("loading data in J125 from 21:00 yesterday to 1:00 today", "2026-05-03T19:00:00Z/2026-05-03T23:00:00Z"),
        ("maintenance on n03 from the weekend until now", "2026-05-01T22:00:00Z/2026-05-04T10:00:00Z"),
        ("min sm clock of n06 since yesterday noon", "2026-05-03T10:00:00Z/2026-05-04T10:00:00Z"),
        ("hottest HBM on n03 g5 in the past day and a half", "2026-05-02T22:00:00Z/2026-05-04T10:00:00Z"),
        ("gpu util of n12 today till now", "2026-05-03T22:00:00Z/2026-05-04T10:00:00Z"),
        ("temp of n03 since 3 days", "2026-05-01T10:00:00Z/2026-05-04T10:00:00Z"),
        ("power of n18 in the last six hours of yesterday", "2026-05-03T16:00:00Z/2026-05-03T22:00:00Z"),
        (
            "checkpoint save time of J130 lately, mean of the last six hours",
            "2026-05-04T04:00:00Z/2026-05-04T10:00:00Z",
        ),
    ] {
        assert_eq!(windows(text), [window], "{text}");
    }
    // Who sat on something did so on no Saturday.
    assert!(windows("jobs that sat on their cards").is_empty());
}

#[test]
fn limits_have_two_ends_and_steps_are_no_windows() {
    let band = one("between 500 and 650 watts: which cards of atlas-a averaged in that band during the last hour");
    let ends: Vec<(&str, f64)> = band.limits.iter().map(|limit| (limit.op, limit.amount)).collect();
    assert_eq!((ends, band.times.len()), (vec![("ge", 500.0), ("le", 650.0)], 1));
    let stepped = one("queue length of code-7b, 03:00 to 05:00 UTC today, in 10 minute buckets");
    assert_eq!((stepped.step, stepped.times.len()), (Some(600), 1));
    assert_eq!(one("power of n18 in the last hour").step, None);
    assert_eq!(one("which two nodes wrote the most to disk since 6 this morning").count, Some(2));
    let left_out = one("gpu power of atlas-a today except n05 and n06");
    assert_eq!(left_out.mentions.iter().filter(|mention| mention.excluded).count(), 2);
}

#[test]
fn a_metric_is_told_by_its_own_words_and_not_by_its_units() {
    for (text, metric) in [
        ("prompt tokens per sec into assist-70b since 9am", "prompt_tokens"),
        ("which service has the most requests in flight, now", "requests_running"),
        ("single bit ecc errors in borealis-a yesterday - which gpu collected the most?", "ecc_sbe_volatile"),
        ("since 6 this morning, which two nodes wrote the most to disk?", "disk_written_bytes"),
        ("ib tx on n16", "ib_transmit_bytes"),
        ("which 3 nodes push the most bytes over infiniband since midnight", "ib_transmit_bytes"),
        ("which job has the hottest memory (hbm) over the last 90 min", "gpu_memory_temperature"),
        ("highest load average that atlas-n08 has reached", "load_average_1m"),
    ] {
        assert_eq!(one(text).metric, MetricMention::One(metric.to_owned()), "{text}");
    }
    // A word that is no slip of another one is left alone.
    assert!(one("how long do i have to cook rice").mended.is_empty());
}

//! What people type, by what it asks for: kinds of phrasing, several ways each.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_query::Catalogue;
use sightline_query::catalogue::Metric;

use super::lexicon::Lexicon;
use super::reading::{MetricMention, Reading, read};

pub(super) fn all(texts: &[&str]) -> Vec<Reading> {
    let as_of: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
    let catalogue = Catalogue::builtin().unwrap();
    let lexicon = Lexicon::builtin(catalogue.metrics().flat_map(Metric::words)).unwrap();
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    texts.iter().map(|text| read(text, &lexicon, &catalogue, as_of, &zone).unwrap()).collect()
}

/// All of these are read as one of these classes; every one that is not is told.
pub(super) fn are(classes: &[&str], texts: &[&str]) {
    let wrong: Vec<String> = texts
        .iter()
        .zip(all(texts))
        .filter(|(_, reading)| !classes.contains(&reading.class.as_str()))
        .map(|(text, reading)| {
            let rule = reading.scores.first().map_or("", |best| best.rule.as_str());
            format!("{text}: {} ({rule}) [{}]", reading.class.as_str(), reading.features.join(" "))
        })
        .collect();
    assert!(wrong.is_empty(), "not {}:\n{}", classes.join(" or "), wrong.join("\n"));
}

#[test]
fn comparisons() {
    are(
        &["compare"],
        &[
            "compare J123 throughput today vs yesterday",
            "ttft for chat-70b before and after the feature-store deploy?",
            "did the driver upgrade change the sm clocks",
            "n03 vs n04 temps last night",
            "Is J130 slower per step than J132 in the last 3 hours?",
            "is J130 slower than J132",
            "avg gpu util since midnight: atlas-a or atlas-b, who's busier",
            "compare the gpu power of J124 before 15:30 sunday with after",
            "gpu power of J124 before and after 15:30 yesterday",
            "kv cache of chat-70b last night vs the night before",
            "throughput moe-8x22b last 6h vs previous 6h, any diff?",
            "is 2.14.0 of assist-70b better than what ran before? look at latency",
            "did power go up since the driver upgrade compared to before it?",
            "gpu temperature today against the same time yesterday",
            "which is hotter, n03 or n04?",
            "difference in gpu power between atlas-a and atlas-b in the last hour",
            "how does power of n01 compare to n02 today",
            "power this morning relative to yesterday morning",
            "step time of J130 vs J132",
            "gpu util atlas-a versus atlas-b since midnight",
            "was the gpu temp of n05 higher yesterday than today",
            "gpu power in the last hour vs the hour before it",
            "queue of code-7b this morning vs yesterday morning",
        ],
    );
}

#[test]
fn values() {
    are(
        &["value"],
        &[
            "temp n07 g3 last 2h",
            "What was the maximum temperature of gpu 5 on atlas-n03 yesterday, and when?",
            "how much vram is taken on borealis-n11 gpu 5",
            "tok/s of llama-70b-pretrain past 6 hours, is it trending up or down",
            "loss of J134 now?",
            "available host memory on borealis-n06, trend over 24 hours",
            "what is gpu 4 on node 12 clocking at?",
            "longest queue code-7b had this morning?",
            "peak power of any gpu in atlas-n18 this week",
            "gpu util n07 avg 1h",
            "show me sm clock of n03 for yesterday",
            "lowest sm clock borealis-n01 since the driver upgrade",
            "how hot is gpu 3 on n07",
            "current power draw of atlas-n18",
            "plot the step time of J125 over the last 6 hours",
            "power of n18, same time last week",
            "please be so kind and tell me what is energy consumption of atlas-n01 since Sunday 00:00",
            "mean step time J130 yesterday",
            "training throughput for J125 since it started",
            "p99 inter-token latency of chat-70b over the last hour",
        ],
    );
}

#[test]
fn rankings() {
    are(
        &["top_k"],
        &[
            "top 5 hottest gpus right now",
            "peak temperature yesterday, worst 3 gpus",
            "bottom 5 by sm clock last hour",
            "which nodes have least available RAM",
            "3 busiest nodes by network receive in last 30 min",
            "rank the jobs by training throughput today",
            "which job burned the most watts since midnight",
            "the eight least utilised gpus in atlas-b, last 2 hours",
            "nodes with most infiniband symbol errors yestreday",
            "Services by longest request queue last night, please",
            "worst kv cache usage per pod, last 24h, peak",
            "which rank of J123 computes the longest (forward+backward), last night",
            "who's the odd one out on n03 yesterday, going by clock",
            "which gpu's clock stays low in J204",
            "TOP 5 POWER LAST 5 MIN",
            "hottest node today",
            "which gpus draw the most power in atlas-a",
            "lowest peak power draw among the gpus of atlas-n01, 2 of them, last 3 hrs",
            "gpus of n03 sorted by temperature",
            "name the 4 coolest cards in J130 over the last half hour",
            "which node used the most power yesterday",
        ],
    );
}

#[test]
fn limits_on_a_measure() {
    are(
        &["threshold", "top_k", "count"],
        &[
            "when did gpu 5 on atlas-n03 go over 85 C yesterday?",
            "how long was n03 g5 above 85C last night",
            "did any GPU hit 95 degrees since saturday?",
            "which gpus were over 185F yesterday",
            "what fraction of last night was chat-70b's kv cache over 90%",
            "sm clock of j123 under 1.2 GHz yesterday -> at what times",
            "did power on any gpu of n18 ever pass 700W today",
            "since when is step time of J125 over 2 seconds",
            "how many minutes was the queue on code-7b longer than 50 this morning",
            "n05 gpu util < 10%, from what time today?",
            "any HBM temps beyond 95 in the past 12 hours? and how high was the worst",
            "was the throughput of llama-8b-sft below 500k tok/s at some point on sunday?",
            "infiniband receive over 2 GB/s on atlas-n17 - when, yesterday",
            "share of sunday that gpu 2 in atlas-n06 spent at over 390 W",
            "proportion of time above 80°c, atlas-n03 gpu 5, on 3 May",
            "in how many % of the last hour was J125's data loading above half a second",
            "has gpu 3 of n07 ever been hotter than 80 C today",
            "first time gpu 5 of n03 exceeded 85 C yesterday",
            "for how long did n18 pull more than 600 W today",
        ],
    );
}

#[test]
fn counts() {
    are(
        &["count", "find_jobs", "waste", "top_k"],
        &[
            "how many gpus are idle?",
            "how many jobs failed yesterday",
            "# of jobs running rn",
            "Number of nodes in atlas-b?",
            "xid count last night, kernel log",
            "How many alerts have fired since Sunday?",
            "howmany gpus draw above 500 W right now?",
            "jobs per user today, counts",
            "count checkpoints saved by J123 yesterday",
            "deploys this weekend: how many?",
            "total of completed jobs in the past two days",
            "how many gpus does mkoch hold",
            "how many different users have jobs running",
            "How many times did an infiniband link of atlas-n17 go down on Sunday?",
        ],
    );
}

#[test]
fn jobs() {
    are(
        &["find_jobs"],
        &[
            "mkoch's jobs",
            "what's running on atlas-n12?",
            "running jobs in atlas-a",
            "Which jobs finished yesterday?",
            "biggest job at the moment?",
            "jobs w/ more than 16 gpus",
            "any failed jobs this week",
            "which job of tanaka is the vit-g one",
            "find job reward model",
            "everything that runs for more than 40 hours already",
            "jobs running longer than a day",
            "which jobs are older than 2 days",
            "longest running job",
            "what did petrov run in the past 2 days",
            "all eval jobs since sunday 00:00",
            "whose is J132?",
            "who trains llama-3-405b",
            "who owns J132",
            "Is J126 finished, and when did it end?",
            "who is on n12",
            "which user has job J130",
            "jobs by size",
            "list the largest jobs",
        ],
    );
}

#[test]
fn lists() {
    are(
        &["events"],
        &[
            "show alerts from yesterday",
            "Please list all maintenance events since Saturday.",
            "what got deployed this weekend",
            "events on n03 in the last two days",
            "which alerts fired for chat-70b in the last day",
            "when was the cable on atlas-n17 replaced?",
            "when did the last driver upgrade happen",
            "EVENTS TODAY",
            "when was assist-70b last deployed",
        ],
    );
    are(
        &["logs"],
        &[
            "xid errors last 24h",
            "logs from atlas-n14 around 1:48am",
            "last 10 log lines of J131",
            "grep 'NCCL WARN' on node 17, sunday 13:00-15:00",
            "link down messages of atlas-n17 yesterday - just kernel stuff",
            "any OOM in the logs last night?",
            "gimme the watchdog timeouts of J131, last night",
            "checkpoint msgs J130 past 3 hours",
            "log lines per severity in atlas-a today",
        ],
    );
    are(
        &["list"],
        &[
            "what metrics do you have about power?",
            "which metrics are collected in atlas-a",
            "list the nodes of atlas-b",
        ],
    );
}

#[test]
fn meanings() {
    are(
        &["meaning"],
        &[
            "what does xid 79 mean",
            "XID 63?",
            "sm active vs gpu util - whats the difference",
            "Explain thermal throttling to me, please.",
            "what is kv cache usage and when is it bad",
            "why is gpu utilisation said to be misleading",
            "what do i do when a gpu has fallen off the bus",
            "meaning of DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
            "define straggler",
            "TTFT stands for what",
            "what is TTFT short for",
            "is xid 31 a hardware problem or does it come from my code",
            "runbook for infiniband link flapping pls",
            "single bit vs double bit ecc errors??",
            "what's mfu",
        ],
    );
}

#[test]
fn waste() {
    are(
        &["waste", "count"],
        &[
            "which gpus are allocated but idle?",
            "anyone sitting on gpus and not using them",
            "who is wasting gpus in borealis-a rn",
            "free gpus in atlas-a? i need 8 for an hour",
            "are n05 and n06 idle",
            "How many GPU hours went to waste yesterday?",
            "idle nodes in atlas-b, last 2 hours",
            "gpus with vram allocated but zero utilisation, last 30 minutes",
            "which of our jobs keep gpus without use them? last 6 hours pls",
            "UNUSED GPUS ATLAS-A LAST HOUR",
            "over the weekend, which gpus did basically nothing",
            "which job wastes the most gpus",
            "can i take node 14 or is somebody on it?",
            "are there any spare gpus",
        ],
    );
}

#[test]
fn health() {
    are(
        &["health", "why_host", "why_anything", "why_job", "why_service"],
        &[
            "anything on fire?",
            "is node 7 ok?",
            "Is atlas-n14 healthy?",
            "health check atlas-b pls",
            "hows J134 doing",
            "everything green in borealis-a?",
            "gpu 5 on n03 fine again?",
            "any problems with assist-70b rn",
            "good morning! just came on shift, what did I miss last night",
            "all gpus in atlas-n16 ok?",
            "fleet status",
            "IS CHAT-70B OK???",
            "borealis-n06 looks weird to me, is it sick",
            "sanity check on the moe job before i go to bed",
            "any hardware errors in the last twelve hours?",
            "did anything break this morning",
        ],
    );
}

#[test]
fn one_metric_is_meant_by_these_words() {
    for (text, metric) in [
        ("infiniband receive over 2 GB/s on atlas-n17", "ib_receive_bytes"),
        ("which job burned the most watts since midnight", "gpu_power"),
        ("what is gpu 4 on node 12 clocking at?", "sm_clock"),
        ("longest queue code-7b had this morning of requests waiting", "requests_waiting"),
        ("3 busiest nodes by network receive", "network_receive_bytes"),
        ("energy consumption of atlas-n01", "gpu_energy"),
    ] {
        assert_eq!(all(&[text])[0].metric, MetricMention::One(metric.to_owned()), "{text}");
    }
}

#[test]
fn a_unit_is_no_name_and_the_past_days_set_no_limit() {
    let read = all(&[
        "sm clock of j123 under 1.2 GHz yesterday -> at what times",
        "what did petrov run in the past 2 days",
        "jobs running longer than 2 days",
    ]);
    assert!(read[0].mentions.iter().all(|mention| mention.name != "GHz"), "{:?}", read[0].mentions);
    assert!(read[1].age.is_none() && read[1].limits.is_empty() && read[1].times.len() == 1, "{:?}", read[1]);
    assert!(read[2].age.is_some());
}

#[test]
fn clock_times_of_last_night_are_one_window() {
    for (text, from, to) in [
        ("p95 TTFT for chat-70b between 23:00 and midnight last night", "2026-05-03T21:00:00Z", "2026-05-03T22:00:00Z"),
        ("power of n03 from 22:00 to 02:00 last night", "2026-05-03T20:00:00Z", "2026-05-04T00:00:00Z"),
        ("power of n03 between 1am and 3am last night", "2026-05-03T23:00:00Z", "2026-05-04T01:00:00Z"),
    ] {
        let read = &all(&[text])[0];
        let ranges: Vec<(String, String)> =
            read.times.iter().map(|time| (time.range.from().to_string(), time.range.to().to_string())).collect();
        assert_eq!(ranges, [(from.to_owned(), to.to_owned())], "{text}");
        assert_eq!(read.class.as_str(), "value", "{text}");
    }
}

//! One world a cause, and the look-alikes that must not be taken for it.

use crate::judged::Judged;
use crate::serving::signal::ServingSignal as S;
use crate::serving::world::{World, verdict};

/// The minute at which things begin: within the window.
const T0: i64 = 200;

fn assert_cause(judged: &Judged, id: &str, components: &[&str], onset: Option<i64>) {
    let (outcome, first, found, began) = verdict(judged);
    assert_eq!(
        (outcome, first.as_str(), found),
        ("answered", id, components.iter().map(|c| (*c).to_owned()).collect()),
        "{:?}",
        judged.supported()
    );
    match (onset, began) {
        (Some(wanted), Some(found)) => assert!((wanted - found).abs() <= 1, "onset at minute {found}, not {wanted}"),
        (wanted, found) => assert_eq!(wanted, found),
    }
}

fn assert_no_fault(judged: &Judged) {
    assert_eq!((judged.outcome(), judged.supported()), ("no_fault", Vec::new()), "{}", judged.0.headline.text);
}

#[test]
fn a_healthy_service_is_not_blamed() {
    for replicas in [1, 2, 8] {
        assert_no_fault(&World::healthy(replicas).diagnose());
    }
}

#[test]
fn every_cause_comes_back_with_a_claim() {
    let judged = World::healthy(2).diagnose();
    let mut ids: Vec<&str> = judged.0.causes.iter().map(|c| c.id.as_str()).collect();
    ids.sort_unstable();
    let mut wanted = crate::serving::IDS.to_vec();
    wanted.sort_unstable();
    assert_eq!(ids, wanted);
    assert!(judged.0.causes.iter().all(|c| !c.why.text.is_empty()));
}

/// More of everything: the queue is how it shows, the traffic why.
#[test]
fn a_surge_of_traffic_is_told_from_the_queue_it_makes() {
    let mut world = World::healthy(2);
    world.from(T0, S::Served, 1.6).from(T0, S::PromptTokens, 1.6).from(T0, S::Running, 2.0);
    world.with(S::Finished, 2.7).from(T0, S::Finished, 1.5);
    world.to(T0, S::Waiting, 25.0).to(T0, S::QueueTime, 4.0).to(T0, S::FirstToken, 4.4);
    let judged = world.diagnose();
    assert!(judged.0.causes[0].claims.iter().any(|claim| claim.text.contains("rate of finished requests")));
    assert_cause(&judged, "traffic_surge", &["chat"], Some(T0));
    assert_eq!((judged.status("queue_saturation"), judged.status("kv_cache_pressure")), ("supported", "ruled_out"));
}

#[test]
fn more_traffic_that_nobody_feels_is_no_fault() {
    let mut world = World::healthy(2);
    world.from(T0, S::Served, 1.8).from(T0, S::PromptTokens, 1.8).from(T0, S::Running, 1.7);
    assert_no_fault(&world.diagnose());
}

/// Requests wait with an empty KV cache: the queue is bound by prefill (vLLM pull request 37307).
#[test]
fn long_prompts_fill_the_queue_and_not_the_cache() {
    let mut world = World::healthy(1);
    world.from(T0, S::PromptLength, 3.0).from(T0, S::PromptTokens, 2.2).from(T0, S::PrefillTime, 3.0);
    world.to(T0, S::Running, 10.0).to(T0, S::Waiting, 90.0).to(T0, S::KvUsage, 0.19);
    world.to(T0, S::FirstToken, 12.0).to(T0, S::QueueTime, 11.0).from(T0, S::GenerationTokens, 0.3);
    let judged = world.diagnose();
    assert_cause(&judged, "traffic_mix_shift", &["chat"], Some(T0));
    for id in ["kv_cache_pressure", "batching_inefficiency", "traffic_surge"] {
        assert_eq!(judged.status(id), "ruled_out", "{id}");
    }
}

/// Preempting, the time to first token is lower than before (vLLM pull request 44594).
#[test]
fn a_full_cache_that_preempts_is_told_although_first_tokens_come_earlier() {
    let mut world = World::healthy(2);
    world.to(T0, S::KvUsage, 0.985).to(T0, S::Preemptions, 0.8).from(T0, S::InterToken, 2.2);
    world.from(T0, S::DecodeTime, 2.2).from(T0, S::RequestLatency, 2.1).from(T0, S::FirstToken, 0.6);
    assert_cause(&world.diagnose(), "kv_cache_pressure", &["chat"], Some(T0));
}

/// A few requests in a hundred preempted once each are healthy (inference-sim 963).
#[test]
fn a_full_cache_with_few_preemptions_is_no_fault() {
    let mut world = World::healthy(2);
    world.with(S::KvUsage, 0.96).with(S::Preemptions, 0.1);
    assert_no_fault(&world.diagnose());
}

#[test]
fn a_lost_prefix_cache_is_told_by_its_hit_rate() {
    let mut world = World::healthy(4);
    world.to(T0, S::HitRate, 0.02).from(T0, S::PrefillTime, 2.3).from(T0, S::FirstToken, 2.2);
    world.event(T0, "deploy", "chat: engine 0.22.1");
    let judged = world.diagnose();
    assert_cause(&judged, "prefix_cache_loss", &["chat"], Some(T0));
    assert_eq!(judged.supported(), vec!["prefix_cache_loss", "software_regression"]);
}

/// Sampled at the same hours, other days have the same hit rate and latency.
#[test]
fn a_daily_peak_is_no_fault() {
    let mut world = World::healthy(2);
    let peak = |i: i64| (i - T0).rem_euclid(24 * 60) < 120;
    for (signal, factor) in [(S::FirstToken, 1.9), (S::Served, 1.8), (S::Waiting, 20.0), (S::QueueTime, 8.0)] {
        world.bend(signal, move |_, i, v| if peak(i) { v * factor } else { v });
    }
    let judged = world.diagnose();
    assert_no_fault(&judged);
    assert!(judged.0.headline.text.contains("same hours"), "{}", judged.0.headline.text);
}

#[test]
fn a_small_batch_while_requests_wait_is_no_matter_of_traffic() {
    let mut world = World::healthy(2);
    world.from(T0, S::Running, 0.3).to(T0, S::Waiting, 40.0).to(T0, S::QueueTime, 6.0).to(T0, S::FirstToken, 6.3);
    world.from(T0, S::GenerationTokens, 0.5).from(T0, S::KvUsage, 0.4).from(T0, S::PromptTokens, 0.6);
    let judged = world.diagnose();
    assert_cause(&judged, "batching_inefficiency", &["chat"], Some(T0));
    assert_eq!(judged.supported(), vec!["batching_inefficiency", "queue_saturation"]);
}

#[test]
fn a_slow_front_end_is_told_by_what_lies_outside_queue_and_prefill() {
    let mut world = World::healthy(2);
    world.to(T0, S::FrontEnd, 1.4).to(T0, S::FirstToken, 1.7);
    assert_cause(&world.diagnose(), "tokenizer_bottleneck", &["chat"], Some(T0));
}

/// Requests that still wait have recorded no queue time: the delay only seems to lie outside the queue.
#[test]
fn a_growing_queue_is_not_taken_for_a_slow_front_end() {
    let mut world = World::healthy(2);
    world.to(T0, S::FrontEnd, 1.4).to(T0, S::FirstToken, 1.7).to(T0, S::Waiting, 60.0);
    let judged = world.diagnose();
    assert_cause(&judged, "queue_saturation", &["chat"], Some(T0));
    assert_eq!(judged.status("tokenizer_bottleneck"), "ruled_out");
}

/// Nothing finishes in a stall, so every latency looks fine.
#[test]
fn a_stall_shows_in_what_waits_while_latencies_look_fine() {
    let mut world = World::healthy(1);
    world.bend(S::Waiting, |_, i, v| if i >= T0 { v + 6.0 * (i - T0 + 1) as f64 } else { v });
    world.from(T0, S::Served, 0.3);
    let judged = world.diagnose();
    let (outcome, id, _, _) = verdict(&judged);
    assert_eq!((outcome, id.as_str()), ("answered", "queue_saturation"));
}

#[test]
fn busy_gpus_with_larger_batches_are_saturated() {
    let mut world = World::healthy(2);
    world.with(S::SmActive, 0.55).to(T0, S::SmActive, 0.96);
    world.from(T0, S::InterToken, 2.0).from(T0, S::Running, 1.9).from(T0, S::RequestLatency, 1.9);
    assert_cause(&world.diagnose(), "gpu_saturation", &["chat"], Some(T0));
    let mut idle = World::healthy(2);
    idle.with(S::SmActive, 0.3).from(T0, S::InterToken, 2.0).from(T0, S::Running, 1.9);
    assert_eq!(idle.diagnose().status("gpu_saturation"), "ruled_out");
}

#[test]
fn a_replica_that_just_started_is_cold_and_named() {
    let mut world = World::healthy(4);
    world.born(3, T0 - 20).bend(S::FirstToken, |r, i, v| if r == 3 && i < T0 - 8 { v * 14.0 } else { v });
    world.bend(S::HitRate, |r, i, v| if r == 3 && i < T0 - 8 { 0.05 } else { v });
    let judged = world.diagnose();
    assert_cause(&judged, "cold_start", &["chat/chat-3"], Some(T0 - 20));
}

#[test]
fn a_replica_that_started_and_is_fast_is_no_fault() {
    let mut world = World::healthy(4);
    world.born(3, T0 - 20);
    assert_no_fault(&world.diagnose());
}

#[test]
fn refused_requests_are_told_although_the_engine_is_fast() {
    let mut world = World::healthy(2);
    world.with(S::Rejected, 0.0).to(T0, S::Rejected, 1.1).from(T0, S::Running, 0.5).from(T0, S::Served, 0.6);
    assert_cause(&world.diagnose(), "rate_limiting", &["chat"], Some(T0));
    let mut slow = World::healthy(2);
    slow.to(T0, S::Aborted, 0.9).to(T0, S::Waiting, 60.0).to(T0, S::FirstToken, 9.0).to(T0, S::QueueTime, 8.0);
    assert_eq!(slow.diagnose().status("rate_limiting"), "ruled_out");
}

/// Whole requests are faster and first tokens later (vLLM issue 14845).
#[test]
fn a_new_version_is_told_although_whole_requests_are_faster() {
    let mut world = World::healthy(2);
    world.to(T0, S::FirstToken, 0.9).from(T0, S::RequestLatency, 0.7).from(T0, S::InterToken, 0.68);
    world.from(T0, S::PrefillTime, 3.0).event(T0 - 2, "deploy", "chat: engine 0.7.0");
    assert_cause(&world.diagnose(), "software_regression", &["chat"], Some(T0));
    let mut config = World::healthy(2);
    config.to(T0, S::FirstToken, 0.9).event(T0 - 2, "config", "chat: max_num_batched_tokens 512");
    assert_cause(&config.diagnose(), "config_mismatch", &["chat"], Some(T0));
}

#[test]
fn one_slow_replica_of_many_is_named() {
    let mut world = World::healthy(6);
    for (signal, level) in [(S::FirstToken, 2.4), (S::QueueTime, 2.1), (S::Waiting, 18.0)] {
        world.bend(signal, move |r, i, v| if r == 4 && i >= T0 { level + v / 10.0 } else { v });
    }
    assert_cause(&world.diagnose(), "queue_saturation", &["chat/chat-4"], Some(T0));
}

#[test]
fn without_the_phases_a_slow_service_is_not_explained_and_they_are_named() {
    let mut world = World::healthy(1);
    world.from(T0, S::FirstToken, 3.0);
    world.without(&[S::QueueTime, S::PrefillTime, S::Waiting, S::KvUsage, S::HitRate, S::FrontEnd]);
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.supported()), ("insufficient_data", Vec::new()));
    let text = &judged.0.headline.text;
    assert!(text.contains("queue time, prefill time") && text.contains("prefix cache hit rate"), "{text}");
}

#[test]
fn without_any_latency_nothing_is_said_to_be_fine() {
    let mut world = World::healthy(1);
    world.without(&[S::FirstToken, S::InterToken, S::RequestLatency, S::QueueTime]);
    let judged = world.diagnose();
    assert_eq!(judged.outcome(), "insufficient_data");
    assert!(judged.0.headline.text.contains("time to first token"), "{}", judged.0.headline.text);
}

#[test]
fn the_diagnosis_of_a_full_cache_reads_well() {
    let mut world = World::healthy(2);
    world.to(T0, S::KvUsage, 0.985).to(T0, S::Preemptions, 0.8).from(T0, S::InterToken, 2.2);
    let judged = world.diagnose();
    let mut text = format!("{}\n", judged.0.headline.text);
    for cause in &judged.0.causes {
        text.push_str(&format!("{} {:?}: {}\n", cause.id, cause.status, cause.why.text));
        cause.claims.iter().for_each(|c| text.push_str(&format!("    {}\n", c.text)));
    }
    insta::assert_snapshot!(text);
}

/// A peak keeps the hour and neither the minute nor the height: a little more load makes a much longer queue.
#[test]
fn a_daily_peak_of_another_height_is_no_fault() {
    let mut world = World::healthy(1);
    let peak = |i: i64| match (i - T0).div_euclid(24 * 60) {
        0 if i >= T0 => Some(40.0),
        -1 if (0..30).contains(&(i + 24 * 60 - T0 - 25)) => Some(80.0),
        -2 if (0..30).contains(&(i + 48 * 60 - T0 + 10)) || (0..30).contains(&(i + 48 * 60 - T0 - 10)) => Some(12.0),
        _ => None,
    };
    for signal in [S::FirstToken, S::QueueTime, S::Waiting] {
        world.bend(signal, move |_, i, v| peak(i).map_or(v, |factor| v * factor));
    }
    assert_no_fault(&world.diagnose());
}

#[test]
fn bursts_like_those_of_the_hours_before_are_no_fault() {
    let mut world = World::healthy(2);
    for (signal, factor) in [(S::FirstToken, 4.0), (S::QueueTime, 30.0), (S::Waiting, 20.0)] {
        world.bend(signal, move |r, i, v| if (i + 17 * r as i64) % 40 < 5 { v * factor } else { v });
    }
    assert_no_fault(&world.diagnose());
}

/// The time to first token holds the queue; requests that gather and get through as ever are how a batch fills.
#[test]
fn a_queue_that_nobody_feels_is_no_fault() {
    let mut world = World::healthy(2);
    world.from(T0, S::QueueTime, 4.0).to(T0, S::Waiting, 9.0);
    assert_no_fault(&world.diagnose());
}

#[test]
fn replicas_that_went_away_are_no_surge_of_traffic() {
    let mut busy = World::healthy(2);
    busy.lose(1, T0).from(T0, S::Served, 2.0).from(T0, S::InterToken, 2.5).from(T0, S::Running, 4.0);
    busy.from(T0, S::RequestLatency, 2.5).from(T0, S::QueueTime, 3.5).from(T0, S::FirstToken, 1.5);
    busy.with(S::SmActive, 0.55).bend(S::SmActive, |r, i, v| match (r, i >= T0) {
        (_, false) => v,
        (1, true) => 0.0,
        (_, true) => 0.97,
    });
    let judged = busy.diagnose();
    assert_cause(&judged, "gpu_saturation", &["chat"], Some(T0));
    assert_eq!(judged.status("traffic_surge"), "ruled_out");
    assert!(judged.first().claims.iter().any(|c| c.text.starts_with("Fewer replicas")), "{:?}", judged.first().claims);
    let mut queued = World::healthy(2);
    queued.lose(1, T0).from(T0, S::Served, 1.7).to(T0, S::FirstToken, 30.0).to(T0, S::QueueTime, 29.0);
    queued.to(T0, S::Waiting, 300.0).from(T0, S::Running, 0.5);
    let judged = queued.diagnose();
    assert_cause(&judged, "queue_saturation", &["chat"], Some(T0));
    for id in ["traffic_surge", "batching_inefficiency"] {
        assert_eq!(judged.status(id), "ruled_out", "{id}");
    }
}

/// A limit is set at a restart, so the restart is where it begins and not what it is.
#[test]
fn what_is_slow_for_good_after_a_restart_is_no_cold_start() {
    let mut world = World::healthy(1);
    world.restart(0, T0 - 1).event(T0 - 2, "deploy", "chat: batch size");
    world.with(S::Running, 4.0).bend(S::Running, |_, i, v| match (i >= T0, i % 10) {
        (true, _) => 4.0,
        (false, 0) => 24.0,
        (false, _) => v,
    });
    world.to(T0, S::Waiting, 40.0).to(T0, S::QueueTime, 6.0).to(T0, S::FirstToken, 6.3);
    // What it no longer reaches was higher before, in the window too: that is no rise.
    for signal in [S::Served, S::PromptTokens, S::GenerationTokens] {
        world.from(T0, signal, 0.6);
    }
    let judged = world.diagnose();
    assert_cause(&judged, "batching_inefficiency", &["chat"], Some(T0));
    assert_eq!(judged.supported(), vec!["batching_inefficiency", "software_regression", "queue_saturation"]);
}

#[test]
fn a_hot_replica_is_named_and_its_heat_told_from_a_power_limit() {
    for (heat, id) in [(27.0, "thermal_throttling"), (-4.0, "power_capping")] {
        let mut world = World::healthy(4);
        world.with(S::SmClock, 1_980.0).with(S::GpuTemperature, 55.0);
        world.bend(S::SmClock, |r, i, _| if r == 2 && i >= T0 { 870.0 } else { 1_980.0 });
        world.bend(S::GpuTemperature, move |r, i, v| if r == 2 && i >= T0 { v + heat } else { v });
        for signal in [S::InterToken, S::FirstToken, S::RequestLatency] {
            world.bend(signal, |r, i, v| if r == 2 && i >= T0 { v * 2.2 } else { v });
        }
        assert_cause(&world.diagnose(), id, &["chat/chat-2"], Some(T0));
    }
}

#[test]
fn memory_that_grows_until_a_restart_is_a_leak_of_that_replica() {
    let mut world = World::healthy(2);
    world.with(S::Memory, 24e9);
    world.bend(S::Memory, |r, i, v| if r == 1 && i < T0 { 24e9 + 2e8 * i as f64 } else { v });
    world.restart(1, T0);
    assert_cause(&world.diagnose(), "memory_leak", &["chat/chat-1"], None);
    let mut filling = World::healthy(2);
    filling.with(S::Memory, 24e9).bend(S::Memory, |_, i, v| v + 8e9 * (1.0 - (-(i as f64) / 30.0).exp()));
    let judged = filling.diagnose();
    assert_no_fault(&judged);
    assert_eq!(judged.status("memory_leak"), "ruled_out");
}

/// Clients that give up may have waited for a slow engine; without latencies that cannot be told.
#[test]
fn aborted_requests_without_latencies_say_too_little() {
    let mut world = World::healthy(1);
    world.to(T0, S::Aborted, 0.4);
    world.without(&[S::FirstToken, S::InterToken, S::RequestLatency, S::QueueTime, S::PrefillTime, S::FrontEnd]);
    let judged = world.diagnose();
    assert_eq!((judged.outcome(), judged.status("rate_limiting")), ("insufficient_data", "no_data"));
}

/// A replica is gone because its GPU is: the one that is left queues, and is not to blame.
#[test]
fn a_gpu_that_fell_off_below_a_replica_is_why_the_other_queues() {
    let xid = "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
    let queueing = || {
        let mut world = World::healthy(2);
        world.lose(1, T0);
        world.to(T0, S::Waiting, 40.0).to(T0, S::QueueTime, 6.0).to(T0, S::FirstToken, 6.3);
        world
    };
    assert_eq!(queueing().diagnose().first().id, "queue_saturation");
    let mut broken = queueing();
    broken.kernel(T0, "inf-01", xid);
    let judged = broken.diagnose();
    assert_cause(&judged, "gpu_fell_off_bus", &["inf-01"], Some(T0));
    assert_eq!(judged.status("nvlink_fault"), "ruled_out");
    // Long before, or an application's own, it is no reason.
    let mut old = queueing();
    old.kernel(T0 - 60, "inf-01", xid).kernel(
        T0,
        "inf-01",
        "NVRM: Xid (PCI:0000:1b:00): 31, pid=7, name=python3, Ch 08",
    );
    assert_eq!(old.diagnose().first().id, "queue_saturation");
    let mut calm = World::healthy(2);
    calm.kernel(T0, "inf-01", xid);
    assert_no_fault(&calm.diagnose());
}

/// No token leaves, the batch stays, the GPUs spin.
#[test]
fn an_engine_that_stands_still_on_busy_gpus_hangs_in_a_collective() {
    let halted = |busy: f64| {
        let mut world = World::healthy(1);
        world.with(S::GpuUtilization, 97.0).to(T0, S::GpuUtilization, busy);
        world.to(T0, S::GenerationTokens, 0.0).to(T0, S::Served, 0.0).to(T0, S::Waiting, 120.0);
        world.bend(S::FirstToken, |_, i, v| if i >= T0 { f64::NAN } else { v });
        world.diagnose()
    };
    assert_cause(&halted(100.0), "collective_hang", &["chat"], Some(T0));
    assert_eq!(halted(3.0).status("collective_hang"), "ruled_out");
}

/// One replica was started with a tenth of the cache: nothing changes on it, and it throws out what its peers keep.
#[test]
fn a_replica_with_less_cache_than_its_peers_is_told_by_them() {
    let mut world = World::healthy(3);
    world.bend(S::Preemptions, |r, _, v| if r == 1 { 0.6 } else { v });
    world.bend(S::KvUsage, |r, _, v| if r == 1 { 0.97 } else { v });
    world.bend(S::QueueTime, |r, i, v| if r == 1 { if i >= T0 { 6.0 } else { 2.0 } } else { v });
    world.bend(S::FirstToken, |r, i, v| if r == 1 { if i >= T0 { 6.3 } else { 2.3 } } else { v });
    assert_cause(&world.diagnose(), "kv_cache_pressure", &["chat/chat-1"], None);
}

/// The cache is full and tokens come late at once; the queue, and the first tokens behind it, take a quarter of an hour more.
#[test]
fn what_began_with_any_of_the_complaints_began_with_them() {
    let mut world = World::healthy(2);
    world.from(T0, S::InterToken, 1.7).to(T0, S::Preemptions, 1.4).to(T0, S::KvUsage, 0.97);
    world.to(T0 + 12, S::Waiting, 22.0).to(T0 + 12, S::QueueTime, 9.0).to(T0 + 12, S::FirstToken, 9.3);
    assert_cause(&world.diagnose(), "kv_cache_pressure", &["chat"], Some(T0));
}

/// A release trades first tokens for the others: what its front end seems to take longer is its schedule.
#[test]
fn a_release_that_makes_tokens_faster_and_the_first_one_late_is_no_busy_front_end() {
    let traded = |recorded: bool| {
        let mut world = World::healthy(1);
        world.to(T0, S::FirstToken, 0.56).to(T0, S::FrontEnd, 0.29).from(T0, S::InterToken, 0.78);
        if recorded {
            world.event(T0 - 1, "deploy", "chat: engine rolled out");
        }
        world.diagnose()
    };
    assert_eq!(traded(true).first().id, "software_regression");
    assert_eq!(traded(false).first().id, "tokenizer_bottleneck");
}

/// The front end lets requests through one by one: one waits in the engine, which is no queue that holds seventeen seconds.
#[test]
fn a_queue_of_one_holds_no_delay_of_many_seconds() {
    let mut world = World::healthy(1);
    world.to(T0, S::FirstToken, 17.0).to(T0, S::FrontEnd, 16.5).to(T0, S::QueueTime, 0.08);
    world.to(T0, S::Waiting, 2.6).to(T0, S::Running, 10.0);
    let judged = world.diagnose();
    assert_cause(&judged, "tokenizer_bottleneck", &["chat"], Some(T0));
    assert_eq!((judged.status("batching_inefficiency"), judged.status("queue_saturation")), ("ruled_out", "ruled_out"));
}

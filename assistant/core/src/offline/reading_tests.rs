use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_query::Catalogue;

use super::reading::{Class, MetricMention, Reading, read};

fn reading(text: &str) -> Reading {
    let as_of: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
    read(text, &Catalogue::builtin().unwrap(), as_of, &TimeZone::get("Europe/Berlin").unwrap()).unwrap()
}

fn class(text: &str) -> Class {
    reading(text).class
}

#[test]
fn questions_about_slow_jobs_are_told_from_others() {
    for text in [
        "why was training job J123 slow yesterday?",
        "Why is J123 so slow",
        "is job J123 slower than usual",
        "why did J123's throughput drop at 3pm?",
        "what slowed job llama-70b last night",
        "is llama-70b slow",
        "Why did training job 80609 fail?",
        "why does job J9 hang",
        "Why did training job J131 stop making progress?",
        "Is power capping slowing down training job J133?",
    ] {
        assert_eq!(class(text), Class::WhySlow, "{text}");
    }
}

#[test]
fn the_job_is_found_however_it_is_written() {
    let job = |text: &str| reading(text).job;
    assert_eq!(job("why was training job J123 slow yesterday?").as_deref(), Some("J123"));
    assert_eq!(job("why did J123's throughput drop at 3pm?").as_deref(), Some("J123"));
    assert_eq!(job("is llama-70b slow").as_deref(), Some("llama-70b"));
    assert_eq!(job("why is the job slow"), None);
}

#[test]
fn values_rankings_and_comparisons_are_told_apart() {
    assert_eq!(class("what was the gpu temperature of node atlas-n07 over the last 3 hours"), Class::Value);
    assert_eq!(class("show DCGM_FI_DEV_SM_CLOCK for gpu 3 on node atlas-n07 yesterday"), Class::Value);
    assert_eq!(class("top 5 hottest gpus in the last hour"), Class::TopK);
    assert_eq!(class("which node has the highest gpu power today"), Class::TopK);
    assert_eq!(class("compare gpu power today and yesterday"), Class::Compare);
    assert_eq!(class("gpu power in the last hour compared with the hour before"), Class::Compare);
    assert_eq!(class("show xid errors of node atlas-n07 in the last 2 hours"), Class::Logs);
    assert_eq!(class("show DCGM_FI_DEV_XID_ERRORS of node atlas-n07"), Class::Value);
    assert_eq!(class("which alerts fired today"), Class::Events);
    assert_eq!(class("what is the meaning of life"), Class::Other);
    assert_eq!(class("restart job J123"), Class::Write);
    assert_eq!(class("can you kill job J123"), Class::Write);
}

#[test]
fn counts_entities_and_misspelt_metrics_are_marked() {
    let top = reading("5 coolest gpus on cluster atlas-a right now");
    assert_eq!((top.count, top.ascending, top.ranked.clone()), (Some(5), true, vec!["node", "gpu"]));
    let named = reading("what was the sm clock of gpu 3 on node atlas-n07 yesterday").named;
    assert_eq!(named, vec![("node", "atlas-n07".to_owned()), ("gpu", "3".to_owned())]);
    let MetricMention::None { near, typed } = reading("show DCGM_FI_DEV_GPU_TMP for node a-1").metric else {
        panic!("it is no metric");
    };
    assert_eq!(typed.as_deref(), Some("DCGM_FI_DEV_GPU_TMP"));
    assert!(near.iter().any(|n| n.contains("GPU_TEMP") || n == "gpu_temperature"), "{near:?}");
}

#[test]
fn a_named_tenant_is_marked() {
    assert_eq!(reading("why was job J9 of tenant borealis slow").tenant.as_deref(), Some("borealis"));
    assert_eq!(reading("why was job J9 slow").tenant, None);
}

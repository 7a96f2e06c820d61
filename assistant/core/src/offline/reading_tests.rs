use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_query::Catalogue;

use super::reading::{Class, MetricMention, Reading, Subject, read};

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
        assert_eq!(class(text), Class::Why(Subject::Job), "{text}");
    }
}

#[test]
fn every_way_to_say_that_a_job_is_unwell_is_read_as_one() {
    for text in [
        "why did J123 fail?",
        "why did job J123 hang",
        "why is job J123 hanging",
        "J123 is stuck, why?",
        "why has job 4711 crashed",
        "why did my training job die?",
        "which GPU slows down J123?",
        "Which rank is slowing down job J123?",
        "is anything wrong with J123?",
        "is J123 healthy?",
        "what is wrong with job J123",
        "Is power capping slowing down J123?",
        "Is training job J123 throttled?",
        "what is the root cause of the slow steps of job J123 since 14:00?",
    ] {
        assert_eq!(class(text), Class::Why(Subject::Job), "{text}");
    }
}

#[test]
fn services_are_told_from_jobs_and_from_numbers() {
    for (text, name) in [
        ("PetSite got slow at about 21:40 UTC. Which component behind it is the root cause?", Some("PetSite")),
        ("PetSite's availability dropped at about 02:58 UTC. Which component is the root cause?", Some("PetSite")),
        ("Since about 18:39 UTC some PetSite requests fail. Which component behind it is at fault?", Some("PetSite")),
        ("Latency of PetSite went up around 01:49 UTC today. Where does it come from?", Some("PetSite")),
        ("Why is service chat slow?", Some("chat")),
        ("Why is the time to first token of chat so high?", Some("chat")),
        ("Why does model llama-3-70b answer slowly since 14:00?", Some("llama-3-70b")),
        ("Is service PetSearch_AWS::ECS::Fargate healthy?", Some("PetSearch_AWS::ECS::Fargate")),
        ("Why did TTFT of checkout rise?", Some("checkout")),
        ("Why are requests slow?", None),
        ("What is wrong with service chat?", Some("chat")),
        ("Why did the latency of model qwen go up at 3pm?", Some("qwen")),
        ("TTFT of embed is up since 09:33 but queue times are as before. Where does the time go?", Some("embed")),
        ("Token latency of vision-11b has crept up. What limits it?", Some("vision-11b")),
        ("qa-docs had 90 requests waiting after 09:20. Is the KV cache too small?", Some("qa-docs")),
        ("What happened to the latency of dsk at about 08:42?", Some("dsk")),
    ] {
        let reading = reading(text);
        assert_eq!(reading.class, Class::Why(Subject::Service), "{text}");
        assert_eq!(reading.subject.as_deref(), name, "{text}");
    }
    for text in [
        "why is chat slow?",
        "is Checkout healthy",
        "what is wrong with 80609?",
        "why did frontend get slower at 14:10?",
        "Streaming from sum-70b became choppy. What is the bottleneck?",
    ] {
        assert_eq!(class(text), Class::Why(Subject::Anything), "{text}");
    }
    for text in [
        "what was the latency of service chat in the last hour",
        "show the request rate of service chat",
        "top 5 services by latency",
    ] {
        assert!(!matches!(class(text), Class::Why(_)), "{text}");
    }
}

#[test]
fn a_place_in_the_cluster_may_be_unwell_too() {
    for text in [
        "what is wrong with node n07?",
        "which GPU is slow in cluster c?",
        "is node atlas-n07 healthy?",
        "why is gpu 3 on node atlas-n07 slow",
        "how is the health of cluster atlas-a",
    ] {
        assert_eq!(class(text), Class::Why(Subject::Host), "{text}");
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

#[test]
fn the_wordings_that_people_use_are_read_as_they_are_meant() {
    let lines = [
        "why is J4711 slow",
        "why is run4711 slow",
        "why is 80609 slow",
        "Why was job run4711 slow between 10:55 and 11:20 today?",
        "Why has training job 80609 become slower?",
        "What is slowing down job 80609?",
        "What slowed down job J4711 yesterday?",
        "Which GPU slows down 80609?",
        "Which GPU slows down run4711?",
        "Why did the throughput of J4711 drop?",
        "Why did the throughput of 80609 drop?",
        "Why did the throughput of job-80609 drop?",
        "Why did job-80609 crash?",
        "What happened to job job-80609?",
        "Is anything wrong with 80609?",
        "Is training job 80609 healthy?",
        "Is the KV cache of code-complete too full?",
        "Is summarizer short of GPU capacity?",
        "Is seating short of CPU?",
        "Are there more errors than usual in catalog?",
        "Are preemptions slowing down code-complete?",
        "Did the deploy make code-complete slower?",
        "Did a deploy make storefront slower?",
        "Why does summarizer have such a long queue since 09:25?",
        "Why do so many calls to copilot fail since 03:15?",
        "Why did requests to assist fail around 07:15 UTC?",
        "Why are requests to portal failing?",
        "Why is the p99 latency of portal high since 09:40?",
        "Why is the inter-token latency of translate so high?",
        "Why is TTFT of chat-api high since 09:40?",
        "Why is translate slow since 09:35?",
        "Why is support-bot so slow since 06:35?",
        "Some answers of support-bot are slow since 10:15. Why?",
        "Time to first token of deepseek-coder-33b went up around 07:45 UTC. Why?",
        "ticket-web got slow at about 08:30 UTC. Which component behind it is the root cause?",
        "Was service storefront slow around 06:15 UTC?",
        "What is wrong with model mixtral-8x7b-instruct?",
        "which GPU is the slowest?",
        "What is the GPU temperature of node atlas-n07?",
        "show the latency of portal since 09:40",
        "which nodes have the most Xid errors today",
        "what does Xid 79 mean",
    ];
    let told = lines.map(|text| {
        let Reading { class, job, subject, .. } = reading(text);
        format!(
            "{text:<86} {class:?} · job {} · subject {}",
            job.as_deref().unwrap_or("-"),
            subject.as_deref().unwrap_or("-")
        )
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn everyday_wordings_about_services_ask_for_a_cause() {
    for text in [
        "is checkout ok?",
        "and is gw-large ok?",
        "why is the llm api slow",
        "code-llm streams stutter badly since 7ish, why",
        "summarize is backed up and the gpus are bored?!",
        "support-bot: first token takes ages since 11:30, any idea?",
        "rag ttft doubled after the deploy, rollback?",
        "embed-chat TTFT went through the roof ~14:50 but gpu util dropped, explain",
        "clients of gen-api complain about failed calls since 10:40, is it down?",
        "llm api (ask-docs) is super slow right now, since 20 to 10 or so",
        "what happened to translate yesterday between 2 and 3 pm?",
        "is vision-api leaking memory?",
        "search-llm queue exploded at 19:02, whats the root cause",
        "persona slow since 11:10 what is going on",
        "big-chat not answering at all since 9:30, p99 looks fine tho",
        "one of the legal-llm replicas is way slower than the others, why",
        "why are the tokens of assist getting slower and slower today",
        "did the pricing deploy break checkout?",
        "checkout goes bad every half hour or so today, what is it",
        "petsite p95 jumped around ten to three. root cause?",
        "checkout throwing 500s since the deploy?",
        "checkout down!! everything 500, why",
        "web p99 bad since 6:38, p50 fine. which pod?",
        "feed latency up since the deploy, whose fault",
        "users could not log in to web yesterday around 9pm, what happened?",
        "limits shows cpu throttling, is web ok?",
        "tons of requests on faq-bot this morning, is it ok?",
    ] {
        assert!(matches!(class(text), Class::Why(Subject::Service | Subject::Anything)), "{text}: {:?}", class(text));
    }
}

#[test]
fn a_machine_that_only_goes_by_its_name_is_asked_about_as_well() {
    for (text, name) in [
        ("gpus on a100-62 look frozen, temp exactly the same for an hour. hung?", "a100-62"),
        ("no gpu metrics from gpu-g02 between 13:10 and 13:50, did the node die?", "gpu-g02"),
        ("metrics of node-32 look shifted by some minutes vs node-31, whats up", "node-32"),
        ("ecc errors on a100-82, should i drain it? ner-de runs there", "a100-82"),
        ("saw pcie gen1 on all gpus of node-9 around half past 10, broken riser?", "node-9"),
    ] {
        let read = reading(text);
        assert_eq!((read.class, read.subject.as_deref()), (Class::Why(Subject::Anything), Some(name)), "{text}");
    }
}

#[test]
fn a_contraction_is_two_words() {
    assert_eq!(class("what's going on with J123?"), Class::Why(Subject::Job));
    assert_eq!(class("whats wrong with theirs-4"), Class::Why(Subject::Anything));
    assert_eq!(reading("J123's throughput dropped, why").job.as_deref(), Some("J123"));
}

#[test]
fn a_job_may_stand_far_from_the_word() {
    let read = reading("tensor active on embed-train is only 9%, is the job broken?");
    assert_eq!((read.class, read.job.as_deref()), (Class::Why(Subject::Job), Some("embed-train")));
}

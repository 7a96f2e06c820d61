use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_query::Catalogue;

use super::lexicon::Lexicon;
use super::reading::{Class, Subject, read};
use sightline_query::catalogue::Metric;

fn class(text: &str) -> Class {
    let as_of: Timestamp = "2026-05-04T10:00:00Z".parse().unwrap();
    let catalogue = Catalogue::builtin().unwrap();
    let lexicon = Lexicon::builtin(catalogue.metrics().flat_map(Metric::words)).unwrap();
    read(text, &lexicon, &catalogue, as_of, &TimeZone::get("Europe/Berlin").unwrap()).unwrap().class
}

#[test]
fn questions_about_meaning_are_told_from_others() {
    for text in [
        "why can GPU util be 100 % while the job hangs?",
        "GPU util or SM activity?",
        "should I use GPU util or SM activity?",
        "what does Xid 79 mean?",
        "what is Xid 79?",
        "what is SXid 20034",
        "what is the throttle bit 0x40?",
        "what does DCGM_FI_PROF_SM_ACTIVE measure?",
        "what does DCGM_FI_DEV_FOO_BAR measure?",
        "explain SM activity, what does it measure",
        "what is the difference between SM activity and tensor activity",
        "what is tensor activity",
        "why does GPU utilization show 100 % when nothing is computed",
        "why can GPU util of job J123 be 100 % while it hangs?",
        "what should I do about Xid 94",
        "how do I drain a node?",
        "runbook for thermal throttling",
        "which metric tells that a GPU works",
        "is it normal that the power cap throttle bit is set",
    ] {
        assert_eq!(class(text), Class::Meaning, "{text}");
    }
}

#[test]
fn questions_for_data_stay_what_they_are() {
    for (text, wanted) in [
        ("why was training job J123 slow yesterday?", Class::Why(Subject::Job)),
        ("why does job J9 hang", Class::Why(Subject::Job)),
        ("Why did training job J131 stop making progress?", Class::Why(Subject::Job)),
        ("what was the gpu temperature of node atlas-n07 over the last 3 hours", Class::Value),
        ("what is the gpu temperature", Class::Value),
        ("what is the gpu utilization of node a-1 right now", Class::Value),
        ("which node has the highest gpu power today", Class::TopK),
        ("compare gpu power today and yesterday", Class::Compare),
        ("show xid errors of node atlas-n07 in the last 2 hours", Class::Logs),
        ("what is the meaning of life", Class::Other),
        ("Why are requests slow?", Class::Why(Subject::Service)),
        ("what does the fox say", Class::Other),
        ("drain node atlas-n07", Class::Write),
    ] {
        assert_eq!(class(text), wanted, "{text}");
    }
}

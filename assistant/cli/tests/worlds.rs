//! Thirty worlds drawn anew, each asked through the real binary: is the cause right, and the culprit?

#![cfg(test)]

mod harness;
#[path = "harness/rerun.rs"]
mod rerun;

use harness::Lab;
use serde_json::Value;
use sightline_fixtures::{IncidentTruth, draw_world};

/// How many worlds are drawn, and how many must be right.
const WORLDS: u64 = 30;
const RIGHT: usize = 27;
/// Where drawing begins. Nothing in the product was tuned on these.
const FIRST_SEED: u64 = 7_000;

#[tokio::test(flavor = "multi_thread")]
async fn cause_and_culprit_are_right_in_nearly_all_worlds_and_every_number_can_be_read_again() {
    let lab = Lab::start();
    let mut wrong = Vec::new();
    let (mut held, mut compared) = (0, 0);
    for seed in FIRST_SEED..FIRST_SEED + WORLDS {
        let (rows, truth) = draw_world(seed);
        let bundle = lab.bundle(&format!("world-{seed}"), &rows, "").await;
        let as_of = truth.as_of.to_string();
        let answer = lab.ask(&bundle, &["--as", &truth.principal, "--as-of", &as_of], &truth.question);
        hold_verification(&answer);
        let (pieces, numbers) = rerun::hold(&lab.address, &answer).await;
        held += pieces;
        compared += numbers;
        if let Some(fault) = fault(&answer, &truth) {
            wrong.push(format!("{} (seed {seed}): {fault}", truth.id));
        }
    }
    // A diagnosis rests on a dozen series and more; each has a smallest and a largest sample to compare.
    let worlds = usize::try_from(WORLDS).unwrap();
    assert!(held >= 10 * worlds && compared >= 10 * worlds, "{held} pieces of evidence, {compared} numbers read again");
    let right = worlds - wrong.len();
    println!("{right} of {WORLDS} worlds right\n{}", wrong.join("\n"));
    assert!(right >= RIGHT, "{right} of {WORLDS} are right:\n{}", wrong.join("\n"));
}

fn hold_verification(answer: &Value) {
    let verification = &answer["verification"];
    assert_eq!(verification["checked"], verification["passed"], "{answer}");
}

/// What is wrong with an answer; none if outcome, cause and component are as the world was made.
fn fault(answer: &Value, truth: &IncidentTruth) -> Option<String> {
    let outcome = answer["outcome"].as_str().unwrap();
    let headline = answer["headline"].as_str().unwrap();
    if answer["verification"]["checked"] == 0 {
        return Some(format!("nothing was said that could be verified: {headline}"));
    }
    if outcome != truth.outcome {
        return Some(format!("outcome {outcome} instead of {}: {headline}", truth.outcome));
    }
    let top = answer["causes"].as_array().unwrap().iter().find(|c| c["rank"] == 1);
    let cause = truth.cause?;
    let Some(top) = top else { return Some(format!("no cause instead of {cause}: {headline}")) };
    let found = top["id"].as_str().unwrap();
    if found != cause && !truth.accept_causes.contains(&found) {
        return Some(format!("cause {found} instead of {cause}: {headline}"));
    }
    let components = top["components"].as_array().unwrap();
    let names = |wanted: &str| {
        components.iter().any(|c| {
            wanted
                .split(',')
                .all(|pair| pair.split_once('=').is_some_and(|(key, value)| c[key].as_str() == Some(value)))
        })
    };
    let missing: Vec<&String> = truth.components.iter().filter(|wanted| !names(wanted)).collect();
    (!missing.is_empty()).then(|| format!("{cause} names {components:?} instead of {missing:?}"))
}

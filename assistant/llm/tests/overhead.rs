//! What our loop adds to a turn of a model that answers at once: `make bench` prints it.

#![cfg(test)]

mod harness;

use std::time::{Duration, Instant};

use harness::server::{Reaction, Server, answer, calls, events};
use harness::{Line, QUESTION, config, fell_back};
use serde_json::{Value, json};

const QUESTIONS: usize = 60;
const WARM_UP: usize = 5;

/// Three turns of calls, then the answer.
fn step(turn: usize) -> Value {
    let window = json!({ "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z" });
    match turn {
        0 => calls(&[("job_correlation", json!({ "job": "J4711" }))]),
        1 => calls(&[(
            "metric_range",
            json!({ "metric": "gpu_temperature", "from": window["from"], "to": window["to"], "job": "J4711" }),
        )]),
        2 => calls(&[("search_logs", window.clone()), ("list_events", window)]),
        _ => answer(json!({
            "headline": "Thermal throttling on {E1.s0.node} slowed the job J4711: its GPU {E1.s0.first -> E1.s0.last}.",
            "claims": ["F1", "The peers stayed cool: {E1.s0.max vs E1.s0.peers.median}.", "It began at {E1.s0.at_change}."],
            "causes": ["thermal_throttling"],
        })),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints times: `make bench`"]
async fn our_loop_per_turn() {
    // Whole replies in one piece each: the server is to take no time of its own.
    let server = Server::start(|request, _| {
        let made = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "assistant").count();
        let pieces = vec![events(&step(made)).into_bytes()];
        let kind = "text/event-stream".to_owned();
        Reaction::Raw { status: 200, kind, pieces, pause: Duration::ZERO, hangs: false }
    })
    .await;
    let (line, offline) = (Line::new(config(&server)), Line::offline());
    let mut took = [Vec::new(), Vec::new()];
    for round in 0..QUESTIONS + WARM_UP {
        for (line, took) in [&line, &offline].into_iter().zip(&mut took) {
            let started = Instant::now();
            let answered = line.ask(QUESTION).await.unwrap();
            assert!(!fell_back(&answered), "{:?}", answered.data_health);
            if round >= WARM_UP {
                took.push(started.elapsed().as_secs_f64() * 1000.0);
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [asked, offline] = took.map(median);
    println!(
        "a question of four turns, the model answering at once {asked:8.2} ms; by the built-in planner {offline:.2} ms"
    );
    println!("our loop a turn of the model                          {:8.2} ms   (bound: 10)", asked / 4.0);
}

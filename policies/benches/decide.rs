//! How long a decision takes.
//!
//! `cargo bench -p sightline-policies`

use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use sightline_model::Dataset;
use sightline_policies::{Policies, Request};

const ROUNDS: usize = 200;

fn median_micros(mut run: impl FnMut(usize)) -> f64 {
    let mut micros: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let started = Instant::now();
            run(round);
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    micros.get(ROUNDS / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let policies = Policies::builtin()?;
    let mut out = std::io::stdout();
    writeln!(out, "policies: loaded in {:.1} ms", started.elapsed().as_secs_f64() * 1e3)?;
    for (id, dataset, tenants) in [
        ("viewer@atlas", Dataset::Metrics, 2),
        ("viewer@atlas", Dataset::Logs, 2),
        ("operator@atlas", Dataset::Logs, 2),
        ("admin", Dataset::Metrics, 2),
        ("admin", Dataset::Metrics, 200),
    ] {
        let principal = policies.principal(id).ok_or("the principal is missing")?;
        let known_tenants: BTreeSet<String> = (0..tenants).map(|index| format!("tenant-{index:03}")).collect();
        let request =
            Request { principal: &principal, tool: "metric_range", dataset, known_tenants: &known_tenants, job: None };
        // A tool that was not heard of before is a decision that was not made before.
        let tools: Vec<String> = (0..ROUNDS).map(|round| format!("tool-{round}")).collect();
        let first = median_micros(|round| {
            let tool = tools.get(round).map_or("", String::as_str);
            black_box(policies.decide(black_box(&Request { tool, ..request })));
        });
        let again = median_micros(|_round| {
            black_box(policies.decide(black_box(&request)));
        });
        let verdict = if policies.decide(&request).allowed() { "allowed" } else { "denied" };
        writeln!(
            out,
            "policies: {id} reads {dataset} among {tenants} tenants, {verdict}: {first:.1} us the first time, {again:.1} us again"
        )?;
    }
    Ok(())
}

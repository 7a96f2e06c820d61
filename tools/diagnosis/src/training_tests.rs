//! What slows training apart from broken hardware: each cause against its own world and against the worlds of all others.

use sightline_model::CauseStatus;

use crate::training_worlds::{
    cpu_preprocessing, deploy, fabric_manager, gpu_oom, host_to_device, kernels, newer_driver, stages, storage, uneven,
    verdict, watched,
};
use crate::worlds::World;

fn worlds() -> Vec<(&'static str, World)> {
    vec![
        ("cpu_preprocessing_bottleneck", cpu_preprocessing()),
        ("storage_bottleneck", storage()),
        ("host_to_device_bottleneck", host_to_device()),
        ("out_of_memory", gpu_oom()),
        ("inefficient_kernels", kernels()),
        ("workload_imbalance", uneven()),
        ("pipeline_stage_imbalance", stages()),
        ("driver_regression", newer_driver()),
        ("software_regression", deploy()),
        ("config_mismatch", fabric_manager()),
    ]
}

#[test]
fn each_world_has_its_cause_its_culprit_and_its_onset() {
    let whole: &[&str] = &["J123"];
    let expected: [(&[&str], Option<usize>); 10] = [
        (whole, Some(110)),
        (whole, Some(110)),
        (whole, Some(100)),
        (&["n1/3"], Some(239)),
        (whole, Some(90)),
        (whole, Some(80)),
        (&["n0/4", "n0/5", "n0/6", "n0/7"], None),
        (&["n1", "n3"], None),
        (whole, Some(130)),
        (&["n1"], Some(2)),
    ];
    for ((cause, world), (who, onset)) in worlds().into_iter().zip(expected) {
        assert_eq!(world.diagnose().verdict(), verdict("answered", cause, who, onset));
    }
}

#[test]
fn no_cause_holds_in_the_world_of_another_but_the_loader_that_feels_it() {
    for (cause, world) in worlds() {
        let judged = world.diagnose();
        // The loader's timer tells that input is late, whoever makes it late.
        let also: &[&str] = match cause {
            "cpu_preprocessing_bottleneck" | "storage_bottleneck" => &["data_loader_bottleneck"],
            "pipeline_stage_imbalance" | "driver_regression" | "config_mismatch" => &["compute_bound"],
            _ => &[],
        };
        let others: Vec<&str> = judged.supported().into_iter().filter(|c| *c != cause).collect();
        assert_eq!(others, also, "{cause}");
    }
}

#[test]
fn a_healthy_watched_job_is_at_no_fault_and_every_new_cause_says_why_not() {
    let judged = watched(2, 8).diagnose();
    assert_eq!(judged.verdict(), verdict("no_fault", "compute_bound", &["J123"], None));
    for (cause, _) in worlds() {
        assert_eq!(judged.status(cause), "ruled_out", "{cause}");
    }
}

#[test]
fn every_verdict_on_every_cause_comes_with_a_sentence() {
    for (_, world) in worlds() {
        for cause in world.diagnose().0.causes {
            assert!(!cause.why.text.is_empty(), "{}", cause.id);
            let supported = cause.status == CauseStatus::Supported;
            assert!(!supported || !cause.claims.is_empty() || cause.id == "telemetry_gap", "{}", cause.id);
        }
    }
}

//! A job that is as fast as its GPUs' memory is: an explanation, not a fault.
//!
//! Speaks for it: level pace, busy GPUs, memory activity high and above tensor activity. Rules it out: memory activity that is low.

use sightline_model::{Component, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::compute_bound::healthy_and_busy;
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "memory_bandwidth_bound", assess };

/// NVIDIA's DCGM guide: 0.8 is about the most that memory activity reaches in practice; three quarters of that is near it.
const NEAR_PEAK: f64 = 0.6;

fn assess(case: &Case<'_>) -> Finding {
    let (Some(dram), Some(tensor), Some(healthy)) =
        (case.view(Signal::DramActive), case.view(Signal::TensorActive), healthy_and_busy(case))
    else {
        return case.no_data(&[Signal::DramActive, Signal::TensorActive]);
    };
    let (Some(memory), Some(math)) = (dram.typical(case.window), tensor.typical(case.window)) else {
        return case.no_data(&[Signal::DramActive, Signal::TensorActive]);
    };
    let all = Entity::new();
    let dram_mean = stat(dram.evidence, &all, Stat::Mean, Some(case.window));
    let tensor_mean = stat(tensor.evidence, &all, Stat::Mean, Some(case.window));
    if !healthy || memory < NEAR_PEAK || memory <= math {
        let why =
            Sentence::new("Not the explanation: memory activity is {dram} and tensor activity {tensor} at the mean.")
                .number("dram", dram_mean, 2, dram.unit())
                .number("tensor", tensor_mean, 2, tensor.unit());
        return Finding::RuledOut(why.claim());
    }
    let claim = Sentence::new("Memory activity was {dram} at the mean, tensor activity {tensor}.")
        .number("dram", dram_mean.clone(), 2, dram.unit())
        .number("tensor", tensor_mean.clone(), 2, tensor.unit())
        .holds(dram_mean, Relation::Above, tensor_mean)
        .claim();
    let why = Sentence::new("The job runs at a level pace and keeps the GPUs' memory busier than their math units.")
        .cite(&dram.evidence.id);
    Finding::Supported(Box::new(Support {
        strength: Strength::Proof,
        coincides: None,
        magnitude: memory,
        components: vec![Component::from([("job".to_owned(), case.observations.job.id.clone())])],
        onset: None,
        why: why.claim(),
        claims: vec![claim],
        fault: false,
    }))
}

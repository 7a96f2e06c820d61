//! Input that comes late because the hosts' CPUs cannot prepare it fast enough.
//!
//! Needs a sign of late input and one of the CPUs. Speaks for it: the job waits for its input, and on most of its nodes the CPUs are
//! used up while it does, or on those whose ranks all others wait for. Rules it out: CPUs with time to spare; nodes that wait for I/O, which is storage; input in time. Trap: the
//! load average counts tasks that wait for I/O, and a loader that waits for storage leaves its CPUs idle.

use sightline_model::{Component, DraftClaim};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::data_loader_bottleneck;
use crate::host::{CpuUse, cpu_use, nodes};
use crate::sentence::Sentence;
use crate::signal::Signal;

pub(crate) const CHECK: Check = Check { id: "cpu_preprocessing_bottleneck", assess };

fn assess(case: &Case<'_>) -> Finding {
    let before = case.pace.slowdown().map(|s| s.good);
    let known: Vec<(&str, CpuUse)> =
        nodes(case).into_iter().filter_map(|node| Some((node, cpu_use(case, node, case.focus(), before)?))).collect();
    let Some((_, first)) = known.first() else {
        return case.no_data(&[Signal::CpuTime, Signal::CpuPressure]);
    };
    let short: Vec<&(&str, CpuUse)> = known.iter().filter(|(_, cpus)| cpus.saturated).collect();
    // A few nodes are enough where it is their ranks that all others wait for.
    let waited_for = data_loader_bottleneck::late_nodes(case);
    let few = !waited_for.is_empty() && waited_for.iter().all(|node| short.iter().any(|(own, _)| own == node));
    let worst = short.iter().find(|(node, _)| !few || waited_for.contains(node));
    let Some((_, worst)) = worst.filter(|_| few || short.len() * 2 > known.len()) else {
        let text = format!("Ruled out, the CPUs of the job's nodes have time to spare: {}", first.claim.text);
        return Finding::RuledOut(DraftClaim { text, ..first.claim.clone() });
    };
    let late = match data_loader_bottleneck::judge(case) {
        Finding::Supported(late) => late,
        Finding::NoData(why) => return Finding::NoData(why),
        Finding::RuledOut(_) => {
            let why = Sentence::new("Ruled out: the CPUs are busy, but the job does not wait for its input.");
            return Finding::RuledOut(why.cite_all(std::slice::from_ref(&worst.claim)).claim());
        }
    };
    let mut claims = vec![worst.claim.clone()];
    claims.extend(late.claims);
    let why = Sentence::new(match few {
        true => "The job waits for the input of some nodes' ranks, and the CPUs that prepare it there are used up.",
        false => "The job waits for its input, and the CPUs that prepare it are used up on most of its nodes.",
    });
    let node = |n: &&str| Component::from([("node".to_owned(), (*n).to_owned())]);
    Finding::Supported(Box::new(Support {
        // The timer or the GPUs tell that input came late, the CPUs tell why: the reason goes first.
        strength: Strength::Proof,
        coincides: late.coincides,
        magnitude: 1.0 + late.magnitude,
        components: if few { waited_for.iter().map(node).collect() } else { case.whole_job() },
        onset: late.onset,
        why: why.cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}

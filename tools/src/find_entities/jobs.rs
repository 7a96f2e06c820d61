//! Jobs: how long each ran, and how many there are by what they have in common.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, Entity, Evidence, EvidenceRow, FactPath, Outcome, Unit};
use sightline_query::{Filter, Match, MetricPart, Query, Shape};

use super::NAME;
use super::kinds::Wanted;
use crate::absence::distinct_rows;
use crate::list_rows::{list_rows, text_of};
use crate::reading::{Content, entity_key, evidence};
use crate::sentence::{Sentence, WHOLE, fact, format_for, row_value};
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput, evidence_id};

/// The label in which schedulers' exporters write how many GPUs a job holds.
const GPUS: &str = "gpus";
/// So many groups are told in sentences; the rows hold the rest.
const MAX_TOLD: usize = 4;

/// What jobs are listed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOrder {
    /// By the GPUs they hold, the most first.
    Gpus,
    /// By how long they ran, the longest first; of a job that still runs, until now.
    Duration,
}

impl JsonSchema for JobOrder {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JobOrder".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": ["gpus", "duration"] })
    }
}

/// Puts the largest or the longest first; those that do not say how large they are come last.
pub(super) fn sort(rows: &mut [EvidenceRow], order: JobOrder, as_of: Timestamp) {
    let key = |row: &EvidenceRow| match order {
        JobOrder::Gpus => labelled_gpus(row).unwrap_or(-1.0),
        JobOrder::Duration => row.value.or_else(|| Some(as_of.duration_since(row.time?).as_secs_f64())).unwrap_or(-1.0),
    };
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| a.entity.cmp(&b.entity)));
}

/// Jobs as rows; the value of one that ended is how long it ran, seconds.
pub(super) fn rows(fetched: &Fetched, started_from: Option<Timestamp>) -> Result<Vec<EvidenceRow>, ToolError> {
    let mut rows = list_rows(fetched)?;
    // A job that began earlier and still ran is in the window, but did not begin in it.
    rows.retain(|row| started_from.is_none_or(|from| row.time.is_some_and(|began| began >= from)));
    for row in &mut rows {
        let end = row.fields.get("end").and_then(|end| end.parse::<Timestamp>().ok());
        row.value = row.time.zip(end).map(|(began, end)| end.duration_since(began).as_secs_f64());
    }
    Ok(rows)
}

/// The jobs of several queries, each once.
fn all_rows(fetched: &[&Fetched], started_from: Option<Timestamp>) -> Result<Vec<EvidenceRow>, ToolError> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for part in fetched {
        all.extend(rows(part, started_from)?.into_iter().filter(|row| seen.insert((row.entity.clone(), row.time))));
    }
    Ok(all)
}

/// So many jobs are asked for by their ids, which is as long as a list in a query may be.
const MAX_LISTED: usize = 1000;

/// What to ask for jobs that do not say how many GPUs they hold: which they held. Only the intervals of those are read, so that few
/// jobs are not lost in what all others held; of more than can be listed, everything in the window is.
pub(super) fn gpus_query(
    context: &ToolContext<'_>,
    wanted: &Wanted<'_>,
    fetched: &[Fetched],
    started_from: Option<Timestamp>,
) -> Result<Option<Query>, ToolError> {
    let jobs = all_rows(&fetched.iter().collect::<Vec<_>>(), started_from)?;
    let silent: BTreeSet<&str> =
        jobs.iter().filter(|job| labelled_gpus(job).is_none()).map(|job| text_of(job, "job")).collect();
    let ids = silent.iter().map(|id| (*id).to_owned()).collect();
    let listed = (silent.len() <= MAX_LISTED).then_some(Filter::Dim { dim: Dim::JobId, matches: Match::In(ids) });
    Ok((!silent.is_empty() && context.may_read(Dataset::JobGpus)).then(|| Query {
        dataset: Dataset::JobGpus,
        metric: None,
        part: MetricPart::Samples,
        range: wanted.range,
        filters: listed.into_iter().collect(),
        placement: None,
        threshold: None,
        shape: Shape::Distinct { of: vec![Dim::Cluster, Dim::JobId, Dim::Node, Dim::Gpu], limit: context.max_rows },
    }))
}

pub(super) fn labelled_gpus(job: &EvidenceRow) -> Option<f64> {
    job.fields.get(GPUS)?.parse().ok().filter(|gpus: &f64| gpus.is_finite())
}

/// What the jobs of a group come to.
#[derive(Default)]
struct Group {
    jobs: u64,
    gpus: Option<f64>,
    seconds: f64,
    ended: u64,
}

/// Jobs by group: their number, the GPUs they hold together, and how long those that ended ran on average.
pub(super) fn counted(
    by: &[Dim],
    fetched: &[&Fetched],
    held: Option<&Fetched>,
    started_from: Option<Timestamp>,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolError> {
    if fetched.iter().copied().chain(held).any(|part| part.result.truncated) {
        return Err(ToolError::Cut {
            what: "the jobs to count".to_owned(),
            limit: context.max_rows,
            narrow: "ask for a shorter window, or narrow it with `filters`".to_owned(),
        });
    }
    // Each cluster numbers its own jobs.
    let named = |row: &EvidenceRow| ["cluster", "job"].map(|key| text_of(row, key).to_owned());
    let mut holdings: BTreeMap<[String; 2], f64> = BTreeMap::new();
    for row in held.map(distinct_rows).transpose()?.unwrap_or_default() {
        *holdings.entry(named(&row)).or_default() += 1.0;
    }
    let mut groups: BTreeMap<Entity, Group> = BTreeMap::new();
    let mut silent = 0_u64;
    for job in all_rows(fetched, started_from)? {
        let told = by.iter().map(|dim| (entity_key(dim).to_owned(), text_of(&job, entity_key(dim)).to_owned()));
        let group = groups.entry(told.filter(|(_, text)| !text.is_empty()).collect()).or_default();
        group.jobs += 1;
        match labelled_gpus(&job).or_else(|| holdings.get(&named(&job)).copied()) {
            Some(gpus) => *group.gpus.get_or_insert(0.0) += gpus,
            None => silent += 1,
        }
        if let Some(seconds) = job.value {
            group.seconds += seconds;
            group.ended += 1;
        }
    }
    let mut sorted: Vec<(Entity, Group)> = groups.into_iter().collect();
    sorted.sort_by(|a, b| b.1.jobs.cmp(&a.1.jobs).then_with(|| a.0.cmp(&b.0)));
    Ok(ToolOutput {
        data_health: (silent > 0)
            .then(|| "some jobs do not say how many GPUs they hold; the sums of GPUs leave them out".to_owned())
            .into_iter()
            .collect(),
        ..told(pieces(fetched, held, &sorted))
    })
}

fn pieces(fetched: &[&Fetched], held: Option<&Fetched>, groups: &[(Entity, Group)]) -> Vec<Evidence> {
    let Some((jobs, others)) = fetched.split_first() else { return Vec::new() };
    let piece = |n: usize, from: &Fetched, what: &str, unit: Unit, value: &dyn Fn(&Group) -> Option<f64>| {
        let row = |(entity, group): &(Entity, Group)| {
            Some(EvidenceRow { entity: entity.clone(), value: Some(value(group)?), ..EvidenceRow::default() })
        };
        let mut piece = evidence(from, NAME, n, Content::Rows(groups.iter().filter_map(row).collect()));
        piece.aggregation = Some(what.to_owned());
        piece.unit = unit;
        piece.coverage.seen = groups.iter().map(|(_, group)| group.jobs).sum();
        piece
    };
    let mut list = vec![
        piece(1, jobs, "number of jobs", Unit::Count, &|group| Some(group.jobs as f64)),
        piece(2, jobs, "GPUs of the jobs", Unit::Count, &|group| group.gpus),
        piece(3, jobs, "mean duration of the jobs that ended", Unit::Seconds, &|group| {
            (group.ended > 0).then(|| group.seconds / group.ended as f64)
        }),
    ];
    // What else was read for it: jobs found by another name, and which GPUs they held.
    for part in others.iter().copied().chain(held) {
        list.push(evidence(part, NAME, list.len() + 1, Content::Rows(Vec::new())));
    }
    list
}

fn told(pieces: Vec<Evidence>) -> ToolOutput {
    let mut claims = Vec::new();
    if let [jobs, gpus, seconds, ..] = pieces.as_slice() {
        for (index, row) in jobs.rows.iter().enumerate().take(MAX_TOLD) {
            let mut sentence = Sentence::new();
            if !row.entity.is_empty() {
                sentence = sentence.entity(&jobs.id, &row.entity).say(": ");
            }
            sentence = sentence.number(row_value(&jobs.id, index), WHOLE).say(" jobs");
            let of = |piece: &Evidence| piece.rows.iter().position(|other| other.entity == row.entity);
            if let Some(at) = of(gpus) {
                sentence = sentence.say(", ").number(row_value(&gpus.id, at), WHOLE).say(" GPUs");
            }
            if let Some((at, mean)) = of(seconds).and_then(|at| Some((at, seconds.rows.get(at)?.value?))) {
                let mean_of = row_value(&seconds.id, at);
                sentence = sentence.say(", those that ended ran ").number(mean_of, format_for(mean, Unit::Seconds));
                sentence = sentence.say(" on average");
            }
            claims.push(pieces.iter().fold(sentence, |sentence, piece| sentence.cite(&piece.id)).finish());
        }
        if jobs.rows.len() > 1 {
            let more = Sentence::new().number(fact(&evidence_id(1), FactPath::Total), WHOLE);
            claims.push(more.say(" groups in all").finish());
        }
    }
    ToolOutput {
        headline: claims.first().cloned(),
        claims,
        outcome: Some(Outcome::Answered),
        evidence: pieces,
        ..ToolOutput::default()
    }
}

//! What a small world's job has behind it: the drivers of its nodes, and earlier runs of the same name.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use sightline_model::{Entity, Evidence, EvidenceRow, Point, Series};

use crate::observation::{EarlierRun, OtherRun};
use crate::signal::Signal;
use crate::worlds::{World, at, blank, node, noise};

impl World {
    /// The rows and series that are no signals: the nodes' drivers, the runs of the same name and their pace.
    pub(crate) fn beside(&self, all: &mut Vec<(Option<Signal>, Evidence)>) {
        let entity = |key: &str, value: &str| Entity::from([(key.to_owned(), value.to_owned())]);
        let mut drivers = blank(all.len() + 1, "drivers");
        drivers.rows = self
            .drivers
            .iter()
            .enumerate()
            .map(|(n, version)| EvidenceRow {
                entity: entity("node", &node(n)),
                time: Some(at(0)),
                fields: BTreeMap::from([("driver_version".to_owned(), (*version).to_owned())]),
                ..EvidenceRow::default()
            })
            .collect();
        if !self.drivers.is_empty() {
            all.push((None, drivers));
        }
        if self.runs.is_empty() {
            if !self.siblings.is_empty() {
                let mut history = blank(all.len() + 1, "history");
                history.rows = self.siblings().iter().map(row_of).collect();
                all.push((None, history));
            }
            return;
        }
        let mut history = blank(all.len() + 1, "history");
        let hours = |n: usize| at(0).checked_sub(SignedDuration::from_hours(i64::try_from(n).unwrap())).unwrap();
        let mut paces = Vec::new();
        for (index, (image, pace)) in self.runs.iter().enumerate() {
            let (id, ago) = (format!("J{}", 100 + index), 10 * (self.runs.len() - index));
            let end = ("end".to_owned(), hours(ago - 5).to_string());
            let fields = BTreeMap::from([("image".to_owned(), (*image).to_owned()), end]);
            let time = Some(hours(ago));
            history.rows.push(EvidenceRow { entity: entity("job", &id), time, fields, ..EvidenceRow::default() });
            let points = (0..60).map(|i| {
                let value = pace + 0.01 * noise(index, 3, i);
                let time = hours(ago).checked_add(SignedDuration::from_mins(i64::try_from(i).unwrap())).unwrap();
                Point { time, value, min: value, max: value, count: 1 }
            });
            let mut evidence = blank(all.len() + 2 + index, "earlier");
            evidence.series.push(Series { entity: entity("job", &id), points: points.collect() });
            paces.push((None, evidence));
        }
        history.rows.push(EvidenceRow {
            entity: entity("job", "J123"),
            time: Some(at(0)),
            fields: BTreeMap::from([("image".to_owned(), self.image.to_owned())]),
            ..EvidenceRow::default()
        });
        all.push((None, history));
        all.append(&mut paces);
    }

    /// The runs of the same name whose nodes are known.
    pub(crate) fn siblings(&self) -> Vec<OtherRun> {
        let run = |(row, (nodes, state)): (usize, &(Vec<usize>, &'static str))| OtherRun {
            job: format!("J{}", 200 + row),
            name: "sweep".to_owned(),
            from: at(row),
            to: Some(at(row + 100)),
            state: (*state).to_owned(),
            nodes: nodes.iter().map(|n| node(*n)).collect(),
            row,
        };
        self.siblings.iter().enumerate().map(run).collect()
    }

    /// The earlier runs, each on as many GPUs as the job.
    pub(crate) fn earlier<'a>(&self, evidence: &'a [(Option<Signal>, Evidence)]) -> Vec<EarlierRun<'a>> {
        let paces = evidence.iter().map(|(_, e)| e).filter(|e| e.dataset == "earlier");
        paces.enumerate().map(|(row, pace)| EarlierRun { row, gpus: self.nodes * self.gpus, pace }).collect()
    }
}

fn row_of(run: &OtherRun) -> EvidenceRow {
    EvidenceRow {
        entity: Entity::from([("job".to_owned(), run.job.clone())]),
        time: Some(run.from),
        fields: BTreeMap::from([
            ("state".to_owned(), run.state.clone()),
            ("end".to_owned(), run.to.map(|to| to.to_string()).unwrap_or_default()),
        ]),
        ..EvidenceRow::default()
    }
}

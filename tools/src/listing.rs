//! Rows of logs or events as a list, with how many there are in all: what `search_logs` and `list_events` share.

use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceRow, FactPath, Outcome, TimeRange};
use sightline_query::{Filter, MetricPart, Order, Query, Shape};

use crate::absence::Missing;
use crate::list_rows::list_rows;
use crate::reading::{Content, Ranked, evidence, read_rank, sort_ranked};
use crate::sentence::{Sentence, WHOLE, fact, row_value};
use crate::tool::{Fetched, Step, ToolContext, ToolError, ToolOutput};

/// How many rows come back unless said otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// The most that come back: what a person or a model can still look through.
const MAX_LIMIT: u32 = 1000;
/// So many groups of a count are listed; the total says how many there are.
const MAX_GROUPS: usize = 100;

/// What is listed.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) tool: &'static str,
    pub(crate) dataset: Dataset,
    pub(crate) range: TimeRange,
    pub(crate) filters: Vec<Filter>,
    pub(crate) order: Order,
    pub(crate) limit: u32,
    pub(crate) count_by: Vec<Dim>,
}

/// What was listed, and how many there are.
pub(crate) struct Listed {
    /// The rows, then their number, then their number by group.
    pub(crate) evidence: Vec<Evidence>,
    /// Whether rows beyond these exist.
    pub(crate) cut: bool,
}

/// The limit that was asked for, within its bounds.
pub(crate) fn limit(tool: &'static str, asked: Option<u32>, context: &ToolContext<'_>) -> Result<u32, ToolError> {
    let limit = asked.unwrap_or(DEFAULT_LIMIT);
    if limit == 0 || limit > MAX_LIMIT {
        let reason = format!("`limit` is {limit}; between 1 and {MAX_LIMIT} can be listed");
        return Err(ToolError::Arguments { tool, reason });
    }
    Ok(limit.min(context.max_rows))
}

impl Listing {
    fn query(&self, shape: Shape) -> Query {
        Query {
            dataset: self.dataset,
            metric: None,
            part: MetricPart::Samples,
            range: self.range,
            filters: self.filters.clone(),
            placement: None,
            threshold: None,
            shape,
        }
    }

    fn missing(&self) -> Missing {
        Missing { dataset: self.dataset, metric: None, range: self.range, filtered: !self.filters.is_empty() }
    }

    /// The rows and their count at once; when there are none, why.
    pub(crate) fn plan(&self, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        if fetched.is_empty() {
            let count = |group_by: Vec<Dim>| Shape::Rank {
                group_by,
                aggregation: Aggregation::Count,
                order: Order::Descending,
                limit: context.max_rows,
            };
            let rows = Shape::Rows { order: self.order, limit: self.limit };
            let mut shapes = vec![rows, count(Vec::new())];
            if !self.count_by.is_empty() {
                shapes.push(count(self.count_by.clone()));
            }
            return Ok(Step::Fetch(shapes.into_iter().map(|shape| self.query(shape)).collect()));
        }
        let missing = self.missing();
        let empty = rows_of(fetched).is_some_and(|rows| rows.result.rows.is_empty());
        if empty && missing.probed(fetched).is_empty() {
            return Ok(Step::Fetch(missing.probes(context)));
        }
        Ok(Step::Done)
    }

    /// The rows with their count, or, when there are none, the whole answer why.
    pub(crate) fn read(
        &self,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
        describe: impl Fn(&mut EvidenceRow),
    ) -> Result<Result<Listed, ToolOutput>, ToolError> {
        let counts = counts_of(fetched);
        let (Some(rows), [count, groups @ ..]) = (rows_of(fetched), counts.as_slice()) else {
            return Ok(Err(ToolOutput { outcome: Some(Outcome::InsufficientData), ..ToolOutput::default() }));
        };
        if rows.result.rows.is_empty() {
            return self.missing().explain_or_empty(self.tool, rows, fetched).map(Err);
        }
        let mut list = list_rows(rows)?;
        list.iter_mut().for_each(describe);
        let total = read_rank(count, &[], Aggregation::Count)?;
        let mut listed = evidence(rows, self.tool, 1, Content::Rows(list));
        listed.total = total.iter().map(|r| r.count).sum();
        listed.truncated = rows.result.truncated || listed.returned < listed.total;
        let cut = listed.truncated;
        let mut pieces = vec![listed, evidence(count, self.tool, 2, Content::Rows(counted(&total, false)))];
        for group in groups {
            pieces.push(self.grouped(context, group)?);
        }
        Ok(Ok(Listed { evidence: pieces, cut }))
    }

    fn grouped(&self, context: &ToolContext<'_>, groups: &Fetched) -> Result<Evidence, ToolError> {
        if groups.result.truncated {
            return Err(ToolError::Cut {
                what: "the counts by group".to_owned(),
                limit: context.max_rows,
                narrow: "count by fewer dimensions, or narrow it with `filters`".to_owned(),
            });
        }
        let mut ranked = read_rank(groups, &self.count_by, Aggregation::Count)?;
        sort_ranked(&mut ranked, Order::Descending);
        let total = ranked.len() as u64;
        ranked.truncate(MAX_GROUPS);
        let mut piece = evidence(groups, self.tool, 3, Content::Rows(counted(&ranked, true)));
        piece.total = total;
        Ok(piece)
    }
}

fn counted(ranked: &[Ranked], with_rank: bool) -> Vec<EvidenceRow> {
    ranked
        .iter()
        .zip(1..)
        .map(|(r, rank)| EvidenceRow {
            entity: r.entity.clone(),
            value: Some(r.value),
            rank: with_rank.then_some(rank),
            ..EvidenceRow::default()
        })
        .collect()
}

impl Listed {
    /// How many there are, and with what most of them are.
    pub(crate) fn totals(&self, what: &'static str) -> Vec<Sentence> {
        let [rows, counted, groups @ ..] = self.evidence.as_slice() else { return Vec::new() };
        let mut sentence = Sentence::new().number(row_value(&counted.id, 0), WHOLE).say(what);
        if self.cut {
            sentence = sentence.say("; ").number(fact(&rows.id, FactPath::Returned), WHOLE).say(" of them are listed");
        }
        let mut sentences = vec![sentence.cite(&rows.id).cite(&counted.id)];
        for piece in groups {
            let Some(first) = piece.rows.first() else { continue };
            sentences.push(
                Sentence::new()
                    .say("the most are with ")
                    .entity(&piece.id, &first.entity)
                    .say(": ")
                    .number(row_value(&piece.id, 0), WHOLE)
                    .say(" of ")
                    .number(row_value(&counted.id, 0), WHOLE)
                    .say(", in ")
                    .number(fact(&piece.id, FactPath::Total), WHOLE)
                    .say(" groups"),
            );
        }
        sentences
    }
}

fn rows_of(fetched: &[Fetched]) -> Option<&Fetched> {
    fetched.iter().find(|f| matches!(f.query.query().shape, Shape::Rows { .. }))
}

/// The count of all, then the counts by group.
fn counts_of(fetched: &[Fetched]) -> Vec<&Fetched> {
    fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Rank { .. })).collect()
}

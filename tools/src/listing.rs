//! Rows of logs or events as a list, with how many there are in all, by group and over time: what `search_logs` and
//! `list_events` share.

mod groups;
mod steps;

use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceRow, FactPath, Outcome, TimeRange};
use sightline_query::{Filter, MetricPart, Order, Query, Shape};

use crate::absence::Missing;
use crate::list_rows::list_rows;
use crate::reading::{Content, evidence, read_rank, sort_ranked};
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
    /// The length of the steps they are counted in, seconds; 0 is the window.
    pub(crate) step_seconds: Option<u32>,
    /// The limit is of each group of these.
    pub(crate) per: Vec<Dim>,
}

/// What was listed, and how many there are.
pub(crate) struct Listed {
    /// The rows, then their number, then, where asked for, their number by group and over time.
    pub(crate) evidence: Vec<Evidence>,
    /// Whether rows beyond these exist.
    pub(crate) cut: bool,
    /// Which piece counts by group.
    groups: Option<usize>,
    /// Which piece counts over time.
    steps: Option<usize>,
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
            // The first of each group can only be told from all rows.
            let limit = if self.per.is_empty() { self.limit } else { context.max_rows };
            let mut shapes = vec![Shape::Rows { order: self.order, limit }, count(Vec::new())];
            if !self.count_by.is_empty() {
                shapes.push(count(self.count_by.clone()));
            }
            shapes.extend(self.step_shape(context));
            return Ok(Step::fetch(shapes.into_iter().map(|shape| self.query(shape)).collect()));
        }
        let missing = self.missing();
        let empty = rows_of(fetched).is_some_and(|rows| rows.result.rows.is_empty());
        if empty && missing.probed(fetched).is_empty() {
            return Ok(Step::fetch(missing.probes(context)));
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
        if !self.per.is_empty() {
            if rows.result.truncated {
                return Err(self.cut(context, "the rows to take the first of each group from"));
            }
            list = groups::first_of_each(list, &self.per, self.limit);
        }
        list.iter_mut().for_each(describe);
        let total = read_rank(count, &[], Aggregation::Count)?;
        let mut listed = evidence(rows, self.tool, 1, Content::Rows(list));
        listed.total = total.iter().map(|r| r.count).sum();
        listed.truncated = rows.result.truncated || listed.returned < listed.total;
        let cut = listed.truncated;
        let sum = listed.total;
        let mut pieces = vec![listed, evidence(count, self.tool, 2, Content::Rows(groups::counted(&total, None)))];
        let mut by_group = None;
        for group in groups {
            by_group = Some(pieces.len());
            pieces.push(self.grouped(context, group, sum, pieces.len() + 1)?);
        }
        let mut steps = None;
        for counted in fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Series { .. })) {
            steps = Some(pieces.len());
            pieces.push(self.stepped(context, counted, pieces.len() + 1)?);
        }
        Ok(Ok(Listed { evidence: pieces, cut, groups: by_group, steps }))
    }

    fn grouped(&self, context: &ToolContext<'_>, counted: &Fetched, sum: u64, n: usize) -> Result<Evidence, ToolError> {
        if counted.result.truncated {
            return Err(self.cut(context, "the counts by group"));
        }
        let mut ranked = groups::merge_heads(read_rank(counted, &self.count_by, Aggregation::Count)?);
        sort_ranked(&mut ranked, Order::Descending);
        let total = ranked.len() as u64;
        ranked.truncate(MAX_GROUPS);
        let mut piece = evidence(counted, self.tool, n, Content::Rows(groups::counted(&ranked, Some(sum))));
        piece.total = total;
        Ok(piece)
    }

    fn cut(&self, context: &ToolContext<'_>, what: &str) -> ToolError {
        ToolError::Cut {
            what: what.to_owned(),
            limit: context.max_rows,
            narrow: "ask for fewer dimensions, a longer step or a shorter window, or narrow it with `filters`"
                .to_owned(),
        }
    }
}

impl Listed {
    /// How many there are, and with what most of them are.
    pub(crate) fn totals(&self, what: &'static str) -> Vec<Sentence> {
        let [rows, counted, ..] = self.evidence.as_slice() else { return Vec::new() };
        let mut sentence = Sentence::new().number(row_value(&counted.id, 0), WHOLE).say(what);
        if self.cut {
            sentence = sentence.say("; ").number(fact(&rows.id, FactPath::Returned), WHOLE).say(" of them are listed");
        }
        let mut sentences = vec![sentence.cite(&rows.id).cite(&counted.id)];
        let piece = |index: Option<usize>| index.and_then(|index| self.evidence.get(index));
        if let Some((piece, first)) = piece(self.groups).and_then(|piece| Some((piece, piece.rows.first()?))) {
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
        sentences.extend(piece(self.steps).and_then(steps::told));
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

//! `search_runbooks`: what the product knows: runbooks, Xids, throttle bits, pitfalls of metrics, the catalogue of metrics, versions that
//! fit together, log lines and causes. A site's own runbooks stand beside ours and are quoted like telemetry.
//!
//! It asks the engine for nothing: its evidence has an entry's id in the place of a query.

mod evidence;
mod rank;
mod told;

use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_diagnosis::{Entry, EntryKind, Knowledge, Section, throttle_bits};
use sightline_model::{Dataset, Outcome};
use sightline_query::Catalogue;
use sightline_query::catalogue::Metric;

use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput};
use rank::Index;

const NAME: &str = "search_runbooks";
/// So many entries come back.
const MAX_ENTRIES: usize = 4;
/// The longest question that is searched for, characters: the rest adds no word that matters.
const MAX_QUERY: usize = 400;
/// Beside the best, what has less than this share of its score is not about the question.
const MIN_SHARE: f64 = 0.4;
/// The share of the question's rare words that an entry must have, weighed by how rare they are: below it there is no entry.
const MIN_COVERED: f64 = 0.34;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRunbooksArgs {
    query: String,
    /// A cause's id.
    #[serde(default)]
    cause: Option<String>,
    #[serde(default)]
    xid: Option<u32>,
    #[serde(default)]
    metric: Option<String>,
}

static BUILTIN: LazyLock<Arc<Knowledge>> = LazyLock::new(|| Arc::new(Knowledge::builtin()));

/// The knowledge that ships with the product.
pub fn builtin_knowledge() -> Arc<Knowledge> {
    Arc::clone(&BUILTIN)
}

/// The knowledge in force: read by every call, replaced as a whole when a site's runbooks change.
#[derive(Debug)]
pub struct LiveKnowledge {
    current: RwLock<Arc<Shelf>>,
}

/// Everything that is searched.
#[derive(Debug)]
struct Shelf {
    knowledge: Arc<Knowledge>,
    /// The metrics of the catalogue as entries: made when the first question comes. A process has one catalogue.
    metrics: OnceLock<Vec<Entry>>,
    /// All entries by word, for those who may see all of them.
    index: OnceLock<Index>,
}

impl LiveKnowledge {
    /// Begins with this.
    pub fn new(knowledge: Arc<Knowledge>) -> Self {
        Self { current: RwLock::new(Shelf::new(knowledge)) }
    }

    /// Puts this in the place of what is in force.
    pub fn replace(&self, knowledge: Arc<Knowledge>) {
        // A poisoned lock only means that a thread died between two whole shelves.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Shelf::new(knowledge);
    }

    fn now(&self) -> Arc<Shelf> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shelf {
    fn new(knowledge: Arc<Knowledge>) -> Arc<Self> {
        Arc::new(Self { knowledge, metrics: OnceLock::new(), index: OnceLock::new() })
    }

    /// The entries that the asker may see, in the order in which they are indexed.
    fn entries(&self, context: &ToolContext<'_>) -> Vec<&Entry> {
        let metrics = self.metrics.get_or_init(|| context.catalogue.metrics().map(metric_entry).collect());
        self.knowledge.seen_by(context.runbooks_of).into_iter().chain(metrics).collect()
    }

    /// Their index. Where some are hidden it is made anew: how rare a word is must not tell of a text that may not be seen.
    fn indexed<T>(&self, entries: &[&Entry], search: impl FnOnce(&Index) -> T) -> T {
        let all = self.knowledge.entries().iter().all(|entry| entry.tenants.is_empty());
        if all { search(self.index.get_or_init(|| Index::new(entries))) } else { search(&Index::new(entries)) }
    }
}

/// Runbooks and reference.
#[derive(Debug)]
pub struct SearchRunbooks {
    knowledge: Arc<LiveKnowledge>,
}

impl Default for SearchRunbooks {
    fn default() -> Self {
        Self::new(Arc::new(LiveKnowledge::new(builtin_knowledge())))
    }
}

impl SearchRunbooks {
    /// The tool over this knowledge.
    pub fn new(knowledge: Arc<LiveKnowledge>) -> Self {
        Self { knowledge }
    }
}

impl Tool for SearchRunbooks {
    type Args = SearchRunbooksArgs;

    const NAME: &'static str = NAME;
    /// It reads nobody's rows.
    const DATASETS: &'static [Dataset] = &[];
    const DESCRIPTION: &'static str = "What metrics, Xids and causes mean, and runbooks.";

    fn plan(&self, args: &Self::Args, _: &ToolContext<'_>, _: &[Fetched]) -> Result<Step, ToolError> {
        if args.query.trim().is_empty() && args.cause.is_none() && args.xid.is_none() && args.metric.is_none() {
            let reason = "`query` is empty; say in words what is looked for, or name a cause, Xid or metric".to_owned();
            return Err(ToolError::Arguments { tool: NAME, reason });
        }
        Ok(Step::Done)
    }

    fn interpret(&self, args: &Self::Args, context: &ToolContext<'_>, _: &[Fetched]) -> Result<ToolOutput, ToolError> {
        let asked: String = args.query.chars().take(MAX_QUERY).collect();
        let shelf = self.knowledge.now();
        let entries = shelf.entries(context);
        let hits = shelf.indexed(&entries, |index| hits(args, &asked, &entries, index, context.catalogue));
        let pieces: Vec<_> =
            hits.iter().zip(1..).map(|(entry, n)| evidence::of_entry(NAME, entry, n, context.as_of)).collect();
        if pieces.is_empty() {
            return Ok(nothing(&asked, entries.len(), context));
        }
        let claims = told::claims(&hits, &pieces);
        Ok(ToolOutput {
            outcome: Some(Outcome::Answered),
            headline: claims.first().cloned(),
            claims,
            runbooks: runbooks(&hits),
            evidence: pieces,
            ..ToolOutput::default()
        })
    }
}

/// The entries for a question, best first: those that it names, then those that have its words.
fn hits<'a>(
    args: &SearchRunbooksArgs,
    asked: &str,
    entries: &[&'a Entry],
    index: &Index,
    catalogue: &Catalogue,
) -> Vec<&'a Entry> {
    let mut ids: Vec<String> = Vec::new();
    ids.extend(args.xid.map(|code| format!("xid/{code}")));
    ids.extend(args.cause.as_ref().map(|cause| format!("cause/{cause}")));
    if let Some(metric) = args.metric.as_deref().and_then(|name| catalogue.meant(name).into_iter().next()) {
        ids.push(format!("metric/{}", metric.id()));
    }
    ids.extend(named(asked));
    let by_id = |id: &String| entries.iter().find(|entry| entry.id == *id).copied();
    let mut found: Vec<&Entry> = Vec::new();
    for entry in ids.iter().filter_map(by_id) {
        push(&mut found, entry);
    }
    // A code that no table explains has no entry, and no other one is an answer for it.
    let all_codes = ids.iter().all(|id| id.starts_with("xid/") || id.starts_with("sxid/"));
    if found.is_empty() && !ids.is_empty() && all_codes {
        return found;
    }
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Runbook) {
        let for_cause = args.cause.as_ref().is_some_and(|cause| entry.causes.contains(cause));
        if for_cause {
            push(&mut found, entry);
        }
    }
    if !asked.trim().is_empty() {
        let scored = index.search(asked);
        let best = scored.first().map_or(0.0, |hit| hit.score);
        for hit in scored.into_iter().filter(|hit| hit.score >= MIN_SHARE * best) {
            if ((hit.covered >= MIN_COVERED && hit.named) || !found.is_empty())
                && let Some(entry) = entries.get(hit.place)
            {
                push(&mut found, entry);
            }
            if found.len() >= MAX_ENTRIES {
                break;
            }
        }
    }
    found.truncate(MAX_ENTRIES);
    found
}

fn push<'a>(found: &mut Vec<&'a Entry>, entry: &'a Entry) {
    if !found.iter().any(|there| there.id == entry.id) {
        found.push(entry);
    }
}

/// The entries that a question names by a code: `Xid 79`, `SXid 20034`, `throttle bit 0x48` (each bit of it).
fn named(asked: &str) -> Vec<String> {
    let folded = asked.to_lowercase();
    let words: Vec<&str> = folded.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut ids = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let kind = match *word {
            "xid" | "xids" => "xid",
            "sxid" | "sxids" => "sxid",
            _ => continue,
        };
        let after = words.iter().skip(place + 1).take(3).filter(|word| !matches!(**word, "error" | "code" | "number"));
        ids.extend(after.map_while(|word| word.parse::<u32>().ok()).map(|code| format!("{kind}/{code}")));
    }
    let about_clocks = ["throttle", "throttling", "clock", "clocks", "reason", "reasons", "bit", "bits"];
    if words.iter().any(|word| about_clocks.contains(word)) {
        for mask in words.iter().filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()) {
            let bits = throttle_bits().iter().filter(|bit| bit.value & mask != 0);
            ids.extend(bits.map(|bit| format!("throttle/{}", bit.name)));
        }
    }
    ids
}

/// A metric of the catalogue as an entry.
fn metric_entry(metric: &Metric) -> Entry {
    let stored = metric.stored().next().unwrap_or(metric.id());
    let title = format!("{} ({stored})", metric.id().replace('_', " "));
    let mut entry = Entry::new(EntryKind::Metric, metric.id(), &title)
        .say(Section::Meaning, metric.meaning())
        .say(Section::GoodFor, metric.good_for())
        .say(Section::Misleads, metric.misleads())
        .found_by(metric.stored())
        .found_by(metric.words());
    if let Some(collection) = metric.collection() {
        entry = entry.say(Section::Collection, collection);
    }
    Entry { metrics: vec![metric.id().to_owned()], ..entry }
}

/// The runbooks among them, and those for their causes and Xids.
fn runbooks(hits: &[&Entry]) -> Vec<String> {
    let of_kind = hits.iter().filter(|entry| entry.kind == EntryKind::Runbook);
    of_kind.filter_map(|entry| entry.id.split_once('/')).map(|(_, name)| name.to_owned()).collect()
}

fn nothing(asked: &str, looked_at: usize, context: &ToolContext<'_>) -> ToolOutput {
    let piece = evidence::of_nothing(NAME, asked, looked_at, context.as_of);
    let claim = told::nothing(&piece);
    ToolOutput {
        outcome: Some(Outcome::InsufficientData),
        headline: Some(claim.clone()),
        claims: vec![claim],
        evidence: vec![piece],
        ..ToolOutput::default()
    }
}

#[cfg(test)]
#[path = "search_runbooks_tests.rs"]
mod tests;

//! What rules may ask for besides word lists: what the marks of a question come to.

use super::classify::{Features, of_words};
use super::lexicon::Lexicon;
use super::limits::Limit;
use super::reading::{MetricMention, Reading};
use super::subject;
use super::time::Moment;
use super::words::{Word, any, at, find};
use super::{classify::Subject, meaning};

/// Everything that is known of a question, by name.
pub(super) fn features(
    words: &[Word<'_>],
    reading: &Reading,
    about: Option<Subject>,
    lexicon: &Lexicon,
) -> Features<'static> {
    let mut features = of_words(words, lexicon);
    // The alert of `in the hour after the alert` tells a time, and none is asked for.
    if let Some(anchor) = reading.anchor.as_ref().filter(|anchor| anchor.kind.as_deref() != Some("start")) {
        let (before, behind) = (words.get(..anchor.first), words.get(anchor.first + anchor.length..));
        if !before.into_iter().chain(behind).any(|part| lexicon.what.events.any(part)) {
            features.remove("events");
        }
    }
    let mut add = |name: &'static str, holds: bool| {
        if holds {
            features.insert(name);
        }
    };
    let has_metric = !matches!(reading.metric, MetricMention::None { .. });
    let written_metric = words.iter().any(|w| w.folded.contains('_') || w.folded.contains(':')) && has_metric;
    let names = |kinds: &[&str]| reading.named.iter().any(|(kind, _)| kinds.contains(kind));
    let joined = reading.subject.as_deref().is_some_and(subject::is_joined_name);
    // `ok, and the night before?` says of nothing that it is ok.
    let said = words.get(super::classify::begins(words, lexicon)..).unwrap_or_default();
    let symptom = subject::is_symptom(said, lexicon);
    let ranks_by = lexicon.stands_for.ranks_by.keys().any(|word| find(words, word).is_some());
    let ranks = (lexicon.what.most.any(words) || lexicon.what.least.any(words) || ranked_first(words))
        && !(joined && lexicon.unwell.seeks.any(words) && !has_metric);
    add("metric", has_metric);
    add("metric_named", written_metric);
    add("near_metric", matches!(reading.metric, MetricMention::None { typed: Some(_), .. }));
    add("limit", !reading.limits.is_empty());
    add("limit_on_other", reading.limits.iter().any(|limit| is_of_things(limit, words)));
    let moved = lexicon.unwell.moved.any(words) || lexicon.what.went.any(words);
    let of_pace = |list: &super::lexicon::Phrases| match &reading.metric {
        MetricMention::One(id) => list.has(id),
        MetricMention::Several { candidates, .. } => candidates.iter().any(|id| list.has(id)),
        MetricMention::None { .. } => false,
    };
    // `which gpu's clock stays low in J204`
    let picks = has_metric
        && !reading.ranked.is_empty()
        && reading.limits.is_empty()
        && any(words, &["which"])
        && any(words, &["low", "lower", "high", "higher", "hot", "hotter", "cold", "cooler"]);
    // `the SM clock, GPU by GPU: who is the laggard`; of the pace of a job a cause is asked for.
    let straggles = any(words, &["laggard", "straggler", "black sheep", "weakest link", "odd one"]);
    let told_apart = straggles && has_metric && !of_pace(&lexicon.unwell.pace_job);
    let ranks = ranks || picks || told_apart;
    let of_use = |id: &String| {
        matches!(id.as_str(), "gpu_utilization" | "sm_active" | "tensor_active" | "graphics_engine_active")
    };
    let metrics = match &reading.metric {
        MetricMention::One(id) => std::slice::from_ref(id),
        MetricMention::Several { candidates, .. } => candidates.as_slice(),
        MetricMention::None { .. } => &[],
    };
    add("ranks_other", ranks && has_metric && !metrics.iter().chain(&reading.also).any(of_use));
    add("ranks", ranks || ranks_by);
    add("ranks_by_word", ranks_by && !lexicon.what.compare.any(words));
    add("ranks_metric", ranks_by || (ranks && has_metric));
    add("compares", lexicon.what.compare.any(words));
    add(
        "compares_windows",
        lexicon.what.compare.any(words) && (reading.times.len() > 1 || lexicon.what.before.any(words)),
    );
    add("has_time", !reading.times.is_empty());
    add("two_times", reading.times.len() > 1);
    add("two_things", reading.sides().is_some());
    add("or_than", any(words, &["or", "than", "and", "vs", "versus"]));
    add("since_event", reading.anchor.as_ref().is_some_and(|anchor| anchor.both_sides));
    add("same_time", reading.shifted.is_some());
    add("either_side", either_side(words, reading, lexicon));
    // `n16 or n17, which of them`, `chat and code, who has more`; `which GPUs of n03 and n04` are ranked.
    let which_of = any(words, &["who", "which"]) && reading.ranked.is_empty() && reading.kind_many.is_none();
    add("either_or", reading.sides().is_some() && (lexicon.what.held_against.any(words) || which_of));
    add("says_line", lexicon.stands_for.lines.keys().any(|said| find(words, said).is_some()));
    add("ages", reading.age.is_some());
    add("metrics_asked", metrics_asked(words, reading, lexicon));
    add("job", about == Some(Subject::Job));
    add("named_job", reading.job.is_some());
    add("service", about == Some(Subject::Service));
    let mentions = |kinds: &[&str]| reading.mentions.iter().any(|m| m.kind.is_some_and(|kind| kinds.contains(&kind)));
    add("host", names(&["node", "gpu", "cluster", "rack"]) || mentions(&["node", "gpu", "cluster", "rack"]));
    add(
        "one_place",
        names(&["node", "gpu", "rank"])
            || mentions(&["node", "gpu", "rank"])
            || reading.job.is_some()
            || names(&["service", "model"]),
    );
    add("about_job", about == Some(Subject::Job));
    add("about_service", about == Some(Subject::Service));
    add("about_host", about == Some(Subject::Host));
    add("about_anything", about == Some(Subject::Anything));
    add("about_nothing", about.is_none());
    add("joined_name", joined);
    add("pace_job_moved", moved && of_pace(&lexicon.unwell.pace_job));
    add("pace_service_moved", moved && of_pace(&lexicon.unwell.pace_service));
    add("symptom", symptom);
    add("is_unwell", subject::is_unwell(said, lexicon));
    add("commands", commands(words, lexicon));
    add(
        "meaning",
        meaning::asks(
            words,
            lexicon,
            &meaning::Asked {
                has_metric,
                has_two: has_metric && !reading.also.is_empty(),
                has_job: about == Some(Subject::Job) || subject::is_unwell(words, lexicon),
                is_named: reading.job.is_some()
                    || reading.mentions.iter().any(|mention| mention.kind.is_some() || mention.written),
                has_time: !reading.times.is_empty(),
                has_moved: moved && (of_pace(&lexicon.unwell.pace_job) || of_pace(&lexicon.unwell.pace_service)),
            },
        ),
    );
    add("kind_many", !reading.ranked.is_empty() || reading.kind_many.is_some());
    add("any_of", any(words, &["any gpu", "any gpus", "any node", "any nodes", "any host", "any of"]));
    add(
        "counts_things",
        reading.kind_many.is_some()
            || has_metric
            || lexicon.what.logs.any(words)
            || lexicon.what.events.any(words)
            || lexicon.names.jobs.any(words)
            || lexicon.names.people.any(words)
            || lexicon.stands_for.lines.keys().any(|said| find(words, said).is_some()),
    );
    add(
        "any_time",
        any(
            words,
            &[
                "ever",
                "at any time",
                "at some point",
                "at any point",
                "dropped below",
                "fell below",
                "drop below",
                "fall below",
            ],
        ),
    );
    add("who_holds", lexicon.names.people.any(words) || any(words, &["anyone", "anybody", "somebody", "someone"]));
    add("finding", finding(words, reading, lexicon));
    add("states", lexicon.stands_for.states.keys().any(|state| find(words, state).is_some()));
    add("of_somebody", !reading.users.is_empty() || reading.own);
    add("started", any(words, &["started", "start", "began", "launched", "submitted", "begun"]));
    add("ended", any(words, &["finished", "ended", "completed", "done"]));
    add("slow_not_state", slow_not_state(words, lexicon));
    add(
        "listing_logs",
        lexicon.what.shows.begin(words.get(super::classify::begins(words, lexicon)..).unwrap_or_default())
            && lexicon.what.logs.any(words),
    );
    add("plain_value", plain_value(words, lexicon, has_metric));
    add("aggregates", reading.aggregation.is_some());
    add("causal", any(words, &["why", "what caused", "root cause", "reason"]));
    features
}

/// `before 15:30 with after`, `since 14:00 against before it`: both sides of one instant.
fn either_side(words: &[Word<'_>], reading: &Reading, lexicon: &Lexicon) -> bool {
    let [only] = reading.times.as_slice() else { return false };
    let both = any(words, &["before and after", "before or after", "before vs after", "before versus after"]);
    let of_instant = match only.moment {
        Moment::Since(_) | Moment::Until(_) => true,
        // `we moved it at 21:40, before and after please`
        Moment::Instant(_) => both,
        Moment::Window | Moment::Now => false,
    };
    let held = both || lexicon.what.compare.any(words);
    of_instant && held && any(words, &["before"]) && any(words, &["after", "since", "from"])
}

/// `what metrics do you have about power`, `which metrics are collected`.
fn metrics_asked(words: &[Word<'_>], reading: &Reading, lexicon: &Lexicon) -> bool {
    let said = words.get(super::classify::begins(words, lexicon)..).unwrap_or_default();
    reading.kind_many == Some("metric")
        && (lexicon.what.asks.begin(said) || lexicon.what.shows.begin(said) || lexicon.what.exists.any(words))
        && !lexicon.meaning.means.any(words)
}

/// `the 5 hottest`, `worst 3`, `rank the jobs by`: `by` with a plural ranks too.
fn ranked_first(words: &[Word<'_>]) -> bool {
    any(
        words,
        &[
            "rank",
            "ranked by",
            "sorted by",
            "order by",
            "longest",
            "shortest",
            "worst",
            "odd one out",
            "outlier",
            "outliers",
            "minimum of",
            "least utilised",
        ],
    ) && !any(words, &["rank is", "which rank is"])
}

/// A limit on things and not on a measure: `more than 16 gpus`, `over 40 hours`.
fn is_of_things(limit: &Limit, words: &[Word<'_>]) -> bool {
    let behind = words.get(limit.first + limit.length).map(|word| word.folded.as_str());
    limit.unit.is_empty() && matches!(behind, Some("gpus" | "gpu" | "nodes" | "hours" | "days" | "times" | "jobs"))
}

/// Words that are a command before a thing, and a noun before these: `power of n18`, `increase in memory`.
const OF_A_NOUN: &[&str] = &[
    "of",
    "in",
    "draw",
    "usage",
    "consumption",
    "capping",
    "limit",
    "since",
    "on",
    "at",
    "by",
    "per",
    "time",
    "cap",
    "last",
    "today",
    "yesterday",
    "rate",
];
/// Behind these any such word is a noun: `deploy history`, `drain events`.
const OF_RECORDS: &[&str] = &[
    "history", "events", "event", "log", "logs", "list", "notes", "status", "count", "counts", "times", "errors",
    "rates", "windows",
];
const NOUNS: &[&str] = &[
    "power", "run", "increase", "change", "start", "throttle", "update", "move", "free", "scale", "reset", "restart",
    "stop", "lock", "turn",
];
/// Words that are a command only before one of these.
const SELDOM_COMMANDS: &[&str] = &["power", "free", "run", "throttle", "turn", "lock"];
const COMMANDED: &[&str] = &["off", "on", "down", "cycle", "up", "this", "the", "job", "node", "gpu", "clocks", "it"];

/// A word that changes the world stands where the command does: at the beginning, or behind `can you` and the like, wherever that stands
/// (`n14 lost a GPU, so could you go ahead and reboot it`).
fn commands(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    let start = super::classify::begins(words, lexicon);
    let inside = (start + 1..words.len()).filter(|place| lexicon.what.begs.at(words, *place).is_some());
    let asks = lexicon.what.asks.begin(words.get(start..).unwrap_or_default());
    std::iter::once(start).filter(|_| !asks).chain(inside).any(|place| commands_at(words, place, lexicon))
}

/// Whether a command stands there, behind any number of words that ask for one.
fn commands_at(words: &[Word<'_>], place: usize, lexicon: &Lexicon) -> bool {
    let said = words.get(place..).unwrap_or_default();
    let mut lead = 0;
    while let Some(length) = lexicon.what.command_leads.at(said, lead).or_else(|| lexicon.what.begs.at(said, lead)) {
        lead += length;
    }
    let (Some(verb), Some(next)) = (said.get(lead), said.get(lead + 1)) else { return false };
    let (verb, next) = (verb.folded.as_str(), next.folded.as_str());
    let noun = NOUNS.contains(&verb) && OF_A_NOUN.contains(&next) || OF_RECORDS.contains(&next);
    // `power this morning`
    let of_time = next == "this"
        && said.get(lead + 2).is_some_and(|word| {
            matches!(word.folded.as_str(), "morning" | "afternoon" | "evening" | "week" | "month" | "weekend" | "hour")
        });
    let seldom = of_time || SELDOM_COMMANDS.contains(&verb) && !COMMANDED.contains(&next);
    lexicon.what.writes.has(verb) && !noun && !seldom
}

/// Jobs are asked for, not what is wrong with one: a plural, or a question about who runs what.
fn finding(words: &[Word<'_>], reading: &Reading, lexicon: &Lexicon) -> bool {
    let about_jobs = lexicon.names.jobs.any(words);
    let who = any(
        words,
        &[
            "who owns",
            "who runs",
            "who is running",
            "whose job",
            "who started",
            "who submitted",
            "what is running",
            "which job runs",
            "what runs on",
            "which job is running",
            "which job is on",
            "what job",
            "which job of",
            "find job",
            "what did",
            "everything that runs",
            "biggest job",
            "largest job",
            "longest running",
            "oldest job",
        ],
    );
    let asked = lexicon.what.finds.any(words)
        || lexicon.names.mine.any(words)
        || !reading.users.is_empty()
        || lexicon.stands_for.states.keys().any(|state| find(words, state).is_some());
    (about_jobs && asked && reading.job.is_none()) || (who && !lexicon.unwell.unwell.any(words))
}

/// `which jobs failed` asks for jobs in a state; `why did jobs fail` does not.
fn slow_not_state(words: &[Word<'_>], lexicon: &Lexicon) -> bool {
    words.iter().enumerate().any(|(place, _)| {
        let slow = lexicon.unwell.slow.at(words, place).is_some();
        slow && !lexicon.stands_for.states.keys().any(|state| at(words, place, state))
    })
}

/// `show the latency of chat`, `p95 ttft of chat last night`: a number is asked for, whatever it did.
fn plain_value(words: &[Word<'_>], lexicon: &Lexicon, has_metric: bool) -> bool {
    let start = super::classify::begins(words, lexicon);
    let said = words.get(start..).unwrap_or_default();
    let causal = lexicon.what.why.any(words)
        || lexicon.unwell.slow.any(words)
        || lexicon.unwell.unwell.any(words)
        || lexicon.unwell.seeks.any(words);
    let shows = lexicon.what.shows.begin(said) || lexicon.what.value.begin(said);
    let aggregates = lexicon.stands_for.aggregation.keys().any(|word| find(words, word).is_some());
    has_metric && !causal && (shows || aggregates || lexicon.what.trend.any(words))
}

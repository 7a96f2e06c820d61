//! Resolving names against what there is and what the asker may see: part of a name, a number, words of a name.

use jiff::Timestamp;
use serde_json::json;
use sightline_model::{Candidate, EvidenceRow, TenantScope};

use super::draft;
use super::entities::Mention;
use super::lexicon::Lexicon;
use super::plan::{MAX_CHOICES, Stage};
use super::reading::Reading;
use super::words::{Word, normalised};
use crate::ports::{Draft, Gathered, ToolCall};

/// How far back jobs are looked for: a quarter, after which a scheduler's ids are often used again.
const JOBS_BACK_DAYS: i64 = 90;
/// How far back other things are looked for, at the least.
const BACK_HOURS: i64 = 24;

/// What a question is limited to, by canonical dimension, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// The job.
    pub(super) job: Option<String>,
    /// Everything else: a dimension with its values.
    pub(super) filters: Vec<(&'static str, Vec<String>)>,
    /// What is left out, in the same form.
    pub(super) without: Vec<(&'static str, Vec<String>)>,
    /// People who were named without a word for it.
    pub(super) users: Vec<String>,
    /// What lines have to say: a name that is nothing's, where lines are asked for.
    pub(super) contains: Option<String>,
    /// A word that several jobs' names have, where jobs are asked for.
    pub(super) jobs_called: Option<String>,
    /// Two things that are held against each other: their dimension and names.
    pub(super) sides: Option<(&'static str, [String; 2])>,
    /// When the job began, and when it ended if it has.
    pub(super) job_time: Option<(Timestamp, Option<Timestamp>)>,
}

impl Scope {
    /// Adds what is named, or what is left out.
    fn put(&mut self, mention: &Mention, kind: &'static str, value: String) {
        if !mention.excluded {
            return self.add(kind, value);
        }
        match self.without.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, values)) => values.push(value),
            None => self.without.push((kind, vec![value])),
        }
    }

    fn add(&mut self, kind: &'static str, value: String) {
        match self.filters.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, values)) => {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            None => self.filters.push((kind, vec![value])),
        }
    }

    /// The values of a dimension.
    pub(super) fn of(&self, kind: &str) -> &[String] {
        self.filters.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, values)| values.as_slice())
    }
}

/// What comes of resolving.
pub(super) enum Resolved {
    /// All names are known.
    Scope(Box<Scope>),
    /// These have to be looked up first.
    Look(Vec<ToolCall>),
    /// A name is none, or may be several.
    Ask(Box<Draft>),
}

/// A thing that exists.
#[derive(Clone, Debug)]
struct Known {
    kind: &'static str,
    name: String,
    /// What it is called besides: a job's name.
    called: String,
    row: EvidenceRow,
}

/// The kinds that are looked up, in the order in which one name is taken for one of them.
const KINDS: [&str; 6] = ["job", "node", "cluster", "service", "model", "rack"];

/// Resolves the names of a question, or says what has to be looked up for it.
pub(super) fn resolve(stage: &Stage<'_>) -> Resolved {
    let reading = stage.reading;
    let wanted = wanted(reading);
    let missing: Vec<&str> = wanted.iter().copied().filter(|kind| looked_up(stage.gathered, kind).is_none()).collect();
    if !missing.is_empty() {
        return Resolved::Look(missing.iter().map(|kind| look_up(stage, kind)).collect());
    }
    let mut known: Vec<Known> = wanted.iter().flat_map(|kind| known(stage.gathered, kind)).collect();
    let owners = owners(&known);
    if let Some(stranger) = stranger(stage, &owners, &known) {
        return Resolved::Ask(Box::new(stranger));
    }
    known.extend(owners);
    place(stage, &known)
}

/// The kinds of things that have to be known for this question.
fn wanted(reading: &Reading) -> Vec<&'static str> {
    let mut wanted: Vec<&'static str> = Vec::new();
    let mut want = |kind: &'static str| {
        if !wanted.contains(&kind) {
            wanted.push(kind);
        }
    };
    if !reading.users.is_empty()
        || reading.job.is_some()
        || reading.anchor.as_ref().is_some_and(|a| a.kind.as_deref() == Some("start"))
    {
        want("job");
    }
    for mention in reading.mentions.iter().filter(|mention| !is_whole(mention)) {
        match mention.kind {
            Some("gpu" | "rank" | "user" | "pod") => {}
            Some("service" | "model") => {
                want("service");
                want("model");
            }
            Some(kind) => KINDS.into_iter().filter(|known| *known == kind).for_each(&mut want),
            None => ["job", "node", "cluster", "service", "model"].into_iter().for_each(&mut want),
        }
    }
    // `the llama job`, `mkoch's run`: told by words of its name.
    if reading.has("about_job") {
        want("job");
    }
    wanted
}

/// `node atlas-n07`, `cluster atlas-a`: a name in full, which needs no look-up; that there is no such node the tools say themselves.
fn is_whole(mention: &Mention) -> bool {
    matches!(mention.kind, Some("node" | "cluster")) && mention.name.contains(['-', '_', '.'])
}

fn look_up(stage: &Stage<'_>, kind: &str) -> ToolCall {
    let hours = if kind == "job" { 24 * JOBS_BACK_DAYS } else { BACK_HOURS };
    let mut from = stage.ask.as_of.checked_sub(jiff::SignedDuration::from_hours(hours)).unwrap_or(stage.ask.as_of);
    if let Some(time) = stage.reading.times.first() {
        from = from.min(time.range.from());
    }
    let arguments = json!({ "kind": kind, "from": from.to_string(), "to": stage.ask.as_of.to_string(), "limit": 1000 });
    ToolCall { tool: "find_entities".to_owned(), arguments }
}

fn looked_up<'a>(gathered: &'a [Gathered], kind: &str) -> Option<&'a Gathered> {
    let is_it = |g: &&Gathered| {
        let argument = |name: &str| g.call.arguments.get(name);
        g.call.tool == "find_entities"
            && argument("kind").and_then(|k| k.as_str()) == Some(kind)
            && argument("search").is_none()
            && argument("filters").is_none()
            && argument("count_by").is_none()
    };
    gathered.iter().find(is_it)
}

fn known(gathered: &[Gathered], kind: &'static str) -> Vec<Known> {
    let Some(Ok(output)) = looked_up(gathered, kind).map(|g| g.outcome.as_ref()) else { return Vec::new() };
    let rows = output.evidence.iter().flat_map(|piece| &piece.rows);
    rows.filter_map(|row| {
        let name = row.entity.get(kind).or_else(|| row.fields.get(kind))?.clone();
        let called = if kind == "job" { row.fields.get("name").cloned().unwrap_or_default() } else { String::new() };
        Some(Known { kind, name, called, row: row.clone() })
    })
    .collect()
}

/// Who owns the jobs that are known.
fn owners(known: &[Known]) -> Vec<Known> {
    let mut owners: Vec<Known> = Vec::new();
    for job in known.iter().filter(|known| known.kind == "job") {
        let user = job.row.fields.get("user").or_else(|| job.row.entity.get("user"));
        if let Some(user) = user.filter(|user| !owners.iter().any(|owner| owner.name == **user)) {
            owners.push(Known { kind: "user", name: user.clone(), called: String::new(), row: job.row.clone() });
        }
    }
    owners
}

/// Whose jobs are asked for and who has none that the asker may see: told so, in the same words whoever it is.
fn stranger(stage: &Stage<'_>, owners: &[Known], known: &[Known]) -> Option<Draft> {
    use super::reading::Class;
    let reading = stage.reading;
    if owners.is_empty() || !matches!(reading.class, Class::FindJobs | Class::Count | Class::Waste) {
        return None;
    }
    let is_there = |user: &&String| owners.iter().any(|owner| owner.name.eq_ignore_ascii_case(user));
    let named =
        |user: &&String| reading.mentions.iter().any(|m| m.name == **user && m.kind.is_some_and(|kind| kind != "user"));
    let is_thing = |user: &&String| known.iter().any(|known| fit(user, known, None) >= 90);
    let user = reading.users.iter().find(|user| !is_there(user) && !named(user) && !is_thing(user))?;
    Some(unknown(stage, Some("user"), user, owners))
}

/// How well a typed name fits one that exists, 0 to 100; 60 and more is meant.
fn fit(typed: &str, known: &Known, said_kind: Option<&str>) -> u32 {
    let typed = typed.to_lowercase();
    let of = |name: &str| -> u32 {
        let name = name.to_lowercase();
        if name.is_empty() {
            return 0;
        }
        let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        if name == typed {
            return 100;
        }
        if plain(&name) == plain(&typed) {
            return 96;
        }
        let digits = typed.bytes().all(|b| b.is_ascii_digit());
        let trailing: String =
            name.chars().rev().take_while(char::is_ascii_digit).collect::<Vec<_>>().into_iter().rev().collect();
        if digits && said_kind == Some("node") {
            let same = trailing.parse::<u64>().ok().zip(typed.parse::<u64>().ok()).is_some_and(|(a, b)| a == b);
            return if same { 92 } else { 0 };
        }
        if digits {
            return 0;
        }
        // `n7` for `atlas-n07`
        if let (Some(number), Some(own)) =
            (typed.strip_prefix('n').and_then(|n| n.parse::<u64>().ok()), trailing.parse::<u64>().ok())
            && known.kind == "node"
        {
            return if number == own { 90 } else { 0 };
        }
        let boundary = |at: usize| at == 0 || name.as_bytes().get(at - 1).is_some_and(|b| !b.is_ascii_alphanumeric());
        let ends = |at: usize| at >= name.len() || name.as_bytes().get(at).is_some_and(|b| !b.is_ascii_alphanumeric());
        match name.find(&typed) {
            Some(at) if typed.len() >= 3 && boundary(at) && ends(at + typed.len()) => 80,
            Some(0) if typed.len() >= 4 => 66,
            Some(at) if typed.len() >= 4 && boundary(at) => 62,
            Some(_) if typed.len() >= 6 => 60,
            _ => 0,
        }
    };
    of(&known.name).max(of(&known.called).saturating_sub(1))
}

/// Puts each mention where it belongs.
fn place(stage: &Stage<'_>, known: &[Known]) -> Resolved {
    let reading = stage.reading;
    let mut scope = Scope::default();
    let mut sides: Vec<(&'static str, String)> = Vec::new();
    let mut job: Option<&Known> = None;
    for mention in &reading.mentions {
        if let Some(kind @ ("gpu" | "rank" | "pod")) = mention.kind {
            scope.put(mention, kind, mention.name.clone());
            sides.push((kind, mention.name.clone()));
            continue;
        }
        if let (Some(kind), true) = (mention.kind, is_whole(mention)) {
            scope.put(mention, kind, mention.name.clone());
            sides.push((kind, mention.name.clone()));
            continue;
        }
        let is_person =
            known.iter().any(|known| known.kind == "user" && known.name.eq_ignore_ascii_case(&mention.name));
        // `atlas-b's GPUs`: what is called so may be somebody or something.
        let is_thing = known.iter().any(|known| known.kind != "user" && fit(&mention.name, known, mention.kind) >= 90);
        if (reading.users.contains(&mention.name) && (is_person || !is_thing)) || is_own_tenant(stage, mention) {
            continue;
        }
        if mention.kind == Some("user") {
            if mention.excluded {
                scope.put(mention, "user", mention.name.clone());
            }
            continue;
        }
        let of_kind = |k: &&Known| match mention.kind {
            Some("service" | "model") => matches!(k.kind, "service" | "model"),
            Some(kind) => k.kind == kind,
            None => true,
        };
        let mut fits: Vec<(u32, &Known)> = known
            .iter()
            .filter(of_kind)
            .map(|k| (fit(&mention.name, k, mention.kind), k))
            .filter(|(score, _)| *score >= 60)
            .collect();
        // A plain word is a name only where it is a whole part of one.
        if mention.kind.is_none() && !mention.written {
            fits.retain(|(score, _)| *score >= 79);
        }
        // Nobody is called by a part of a name.
        fits.retain(|(score, known)| known.kind != "user" || *score >= 96);
        fits.sort_by_key(|(score, k)| {
            (std::cmp::Reverse(*score), KINDS.iter().position(|kind| *kind == k.kind), k.name.clone())
        });
        fits.dedup_by(|a, b| a.1.kind == b.1.kind && a.1.name == b.1.name);
        let best = fits.first().map(|(score, _)| *score);
        let same: Vec<&Known> = fits.iter().filter(|(score, _)| Some(*score) == best).map(|(_, k)| *k).collect();
        match same.as_slice() {
            // `the lines that mention mlx5_1`, `every GpuHot alert`: a name of nothing that runs is what the records say.
            [] if mention.kind.is_none() && mention.written && asks_for_lines(stage) => {
                scope.contains = Some(mention.name.clone());
            }
            [] if mention.kind.is_none() && mention.written && is_event_name(stage, mention) => {
                scope.put(mention, "alertname", mention.name.clone());
            }
            [] if mention.kind.is_none() && !mention.written => {
                if stands_as_a_place(stage, mention) {
                    return Resolved::Ask(Box::new(draft::nothing_called(&mention.name, &stage.ask.principal)));
                }
            }
            [] => {
                if reading.job.as_deref() == Some(mention.name.as_str()) && !known.iter().any(|k| k.kind == "job") {
                    continue;
                }
                // A node may write logs and report no metric: what was said to be one is looked for as such.
                match (mention.kind, unknown(stage, mention.kind, &mention.name, known)) {
                    (Some(kind @ ("node" | "cluster" | "rack")), draft)
                        if draft.choices.is_empty() && !is_number(&mention.name) =>
                    {
                        scope.add(kind, mention.name.clone());
                        sides.push((kind, mention.name.clone()));
                    }
                    (_, draft) => return Resolved::Ask(Box::new(draft)),
                }
                continue;
            }
            // One service that is known under both kinds is one.
            [first, rest @ ..] if rest.iter().all(|other| other.name == first.name || other.kind != first.kind) => {
                if first.kind == "user" {
                    if mention.excluded {
                        scope.put(mention, "user", first.name.clone());
                    } else {
                        scope.users.push(first.name.clone());
                    }
                } else if mention.excluded {
                    scope.put(mention, first.kind, first.name.clone());
                } else if first.kind == "job" {
                    if let Some(other) = job.filter(|other| other.name != first.name) {
                        sides.push(("job", other.name.clone()));
                    }
                    sides.push(("job", first.name.clone()));
                    job = Some(first);
                } else {
                    scope.add(first.kind, first.name.clone());
                    sides.push((first.kind, first.name.clone()));
                }
            }
            // `all eval jobs`: every job that is called so.
            several if asks_for_jobs(stage) && several.iter().all(|known| known.kind == "job") => {
                scope.jobs_called = Some(mention.name.clone());
            }
            several => return Resolved::Ask(Box::new(which(stage, &mention.name, several))),
        }
    }
    if job.is_none() && !asks_for_jobs(stage) {
        match by_words(stage, known) {
            Ok(found) => job = found,
            Err(ask) => return Resolved::Ask(ask),
        }
    }
    if let Some(job) = job {
        scope.job = Some(job.name.clone());
        let told = |key: &str| job.row.fields.get(key).and_then(|text| text.parse::<Timestamp>().ok());
        scope.job_time = told("start").or(job.row.time).map(|start| (start, told("end")));
    }
    let mut kinds = ["job", "node", "cluster", "service", "model", "gpu", "rank"].into_iter();
    let pair = kinds.find_map(|kind| {
        let mut of: Vec<String> = sides.iter().filter(|(k, _)| *k == kind).map(|(_, name)| name.clone()).collect();
        of.dedup();
        <[String; 2]>::try_from(of).ok().map(|pair| (kind, pair))
    });
    scope.sides = pair.filter(|(_, [a, b])| a != b);
    Resolved::Scope(Box::new(scope))
}

/// Whether log lines are asked for.
fn asks_for_lines(stage: &Stage<'_>) -> bool {
    stage.reading.class == super::reading::Class::Logs
}

/// `GpuHot` where events are asked for: alerts are named as nothing else is.
fn is_event_name(stage: &Stage<'_>, mention: &Mention) -> bool {
    let events = stage.reading.class == super::reading::Class::Events || stage.reading.has("events");
    let capitals = mention.name.chars().filter(|c| c.is_uppercase()).count();
    events && capitals >= 2 && mention.name.chars().all(char::is_alphanumeric)
}

/// Whether jobs are asked for, and not one of them.
fn asks_for_jobs(stage: &Stage<'_>) -> bool {
    stage.reading.has("jobs") && stage.reading.job.is_none()
}

/// `the borealis side`: the asker's own tenant narrows nothing down.
fn is_own_tenant(stage: &Stage<'_>, mention: &Mention) -> bool {
    mention.kind.is_none()
        && match &stage.ask.principal.tenants {
            TenantScope::Only(own) => own.iter().any(|tenant| tenant.eq_ignore_ascii_case(&mention.name)),
            TenantScope::All => false,
        }
}

/// `the temperatures of borealis`: a word that names nothing stands where a place does, and to leave it out would answer for all there is.
fn stands_as_a_place(stage: &Stage<'_>, mention: &Mention) -> bool {
    let words = normalised(&stage.ask.text, stage.lexicon);
    let before = mention.place.checked_sub(1).and_then(|place| words.get(place)).map(|word| word.folded.as_str());
    let next = mention.place + 1;
    let ends = next >= words.len() || stage.reading.times.iter().any(|time| time.first == next);
    let is_there = words.get(mention.place).is_some_and(|word| word.typed == mention.name);
    is_there && !mention.inherited && ends && matches!(before, Some("of" | "in" | "on" | "from" | "at"))
}

/// `the llama job`, `the reward model run`: the job whose name has most of the words, where no other has as many.
fn by_words<'k>(stage: &Stage<'_>, known: &'k [Known]) -> Result<Option<&'k Known>, Box<Draft>> {
    let reading = stage.reading;
    if !(reading.has("about_job") || reading.has("job") || reading.mentions.iter().any(|m| m.kind == Some("job")))
        || reading.job.is_some() && !reading.job_guessed
    {
        return Ok(None);
    }
    let words = normalised(&stage.ask.text, stage.lexicon);
    let jobs: Vec<&Known> = known.iter().filter(|k| k.kind == "job").collect();
    let scored: Vec<(usize, &Known)> = jobs
        .iter()
        .map(|job| (words_of_name(&job.called, &words, stage.lexicon), *job))
        .filter(|(n, _)| *n > 0)
        .collect();
    let Some(best) = scored.iter().map(|(n, _)| *n).max() else { return Ok(None) };
    let mut same: Vec<&Known> = scored.iter().filter(|(n, _)| *n == best).map(|(_, job)| *job).collect();
    if reading.users.len() == 1 {
        let of_user =
            |job: &&Known| job.row.fields.get("user").or_else(|| job.row.entity.get("user")) == reading.users.first();
        if same.iter().any(of_user) {
            same.retain(of_user);
        }
    }
    match same.as_slice() {
        [only] => Ok(Some(only)),
        several => Err(Box::new(which(stage, "", several))),
    }
}

/// How many of a job name's own words stand in the question.
pub(super) fn words_of_name(name: &str, words: &[Word<'_>], lexicon: &Lexicon) -> usize {
    let name = name.to_lowercase();
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| part.len() >= 2);
    parts
        .filter(|part| {
            !lexicon.names.plain.has(part)
                && words
                    .iter()
                    .any(|word| word.folded == *part || word.folded.split('-').any(|own| own == *part && own.len() > 2))
        })
        .count()
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

fn unknown(stage: &Stage<'_>, kind: Option<&str>, typed: &str, known: &[Known]) -> Draft {
    let clean = crate::ground::clean(typed);
    let what = kind.unwrap_or("node, job or service");
    let of_kind = |k: &&Known| {
        kind.is_none_or(|kind| k.kind == kind || matches!((kind, k.kind), ("model", "service") | ("service", "model")))
    };
    let typed_low = typed.to_lowercase();
    let mut near: Vec<(f64, &str)> = known
        .iter()
        .filter(of_kind)
        .map(|k| {
            (
                strsim::jaro_winkler(&typed_low, &k.name.to_lowercase())
                    .max(strsim::jaro_winkler(&typed_low, &k.called.to_lowercase())),
                k.name.as_str(),
            )
        })
        .filter(|(score, _)| *score >= 0.8)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    let choices: Vec<Candidate> = near
        .iter()
        .take(MAX_CHOICES)
        .map(|(_, name)| Candidate { label: (*name).to_owned(), question: stage.ask.text.replacen(typed, name, 1) })
        .collect();
    if choices.is_empty() {
        let sentence = format!("There is no {what} `{clean}` among those you may see.");
        return draft::plain(sightline_model::Outcome::InsufficientData, &sentence);
    }
    draft::clarify(
        &format!("There is no {what} `{clean}` among those you may see; did you mean one of these?"),
        choices,
    )
}

fn which(stage: &Stage<'_>, typed: &str, several: &[&Known]) -> Draft {
    let choices = several.iter().take(MAX_CHOICES).map(|known| {
        let label =
            if known.called.is_empty() { known.name.clone() } else { format!("{} ({})", known.name, known.called) };
        let question = if typed.is_empty() {
            format!("{} (job {})", stage.ask.text.trim_end_matches('?'), known.name)
        } else {
            stage.ask.text.replacen(typed, &known.name, 1)
        };
        Candidate { label, question }
    });
    let sentence = if typed.is_empty() {
        "Several jobs go by those words; which one do you mean?".to_owned()
    } else {
        format!("`{}` can be several things that you may see; which one do you mean?", crate::ground::clean(typed))
    };
    draft::clarify(&sentence, choices.collect())
}

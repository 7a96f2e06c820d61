//! One question with a model: requests within budgets, repeats cut, one repair, and the offline planner where nothing else helps.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sightline_core::quota::{Budget, Spend, account};
use sightline_core::{Ask, Gathered, Planner as _, PlannerError, Planning, ToolCall, Turn};
use sightline_model::audit::{ModelCall, ModelUse};
use sightline_model::{AskedRange, BoxFuture};

use crate::answer::{first_object, read};
use crate::budget::{Meter, Room};
use crate::conversation::{Exchange, Form, Made, Told, fitted};
use crate::digest::{Detail, digest};
use crate::draft::{Compiled, Stage, compile};
use crate::fault::ModelFault;
use crate::findings::Findings;
use crate::planner::LlmPlanner;
use crate::prompt::{Prompt, question};
use crate::pseudonyms::Pseudonyms;
use crate::reply::{Called, Reply};
use crate::schemas::{ANSWER, step_format};
use crate::steps::{is_id, shown_arguments, shown_name, steps};
use crate::tokens::estimate;
use crate::wire::{Most, Request, StreamOptions};

/// The most calls of one turn: as many as the line makes.
const CALLS_A_TURN: usize = 8;
/// How often the model may only repeat itself, or say nothing of use, before it is cut off.
const PATIENCE: u32 = 2;
/// The least room for a reply that can be an answer.
const LEAST_REPLY: u64 = 64;

/// One question in the model's hands.
pub(crate) struct Session<'a> {
    planner: &'a LlmPlanner,
    ask: &'a Ask,
    zone: TimeZone,
    windows: Vec<AskedRange>,
    prompt: Prompt,
    form: Form,
    names: Pseudonyms,
    findings: Findings,
    exchanges: Vec<Exchange>,
    ids: BTreeSet<String>,
    meter: Meter,
    /// Replies that came, which a transcript counts by.
    replies: usize,
    began_ms: f64,
    idle: u32,
    repaired: bool,
    used: ModelUse,
    /// Answers in the model's place, with how much was gathered before.
    offline: Option<(Box<dyn Planning + 'a>, usize)>,
}

impl Planning for Session<'_> {
    fn next<'a>(&'a mut self, gathered: &'a [Gathered]) -> BoxFuture<'a, Result<Turn, PlannerError>> {
        Box::pin(self.turn(gathered))
    }

    fn model(&self) -> Option<ModelUse> {
        Some(self.used.clone())
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(planner: &'a LlmPlanner, ask: &'a Ask) -> Self {
        let zone = TimeZone::get(&ask.time_zone).unwrap_or(TimeZone::UTC);
        let windows = planner.parts.offline.windows(ask);
        let policies = planner.parts.policies.now();
        let own = planner.config.rules.as_deref();
        let prompt = Prompt::new(own, ask, &zone, &windows, &policies, &planner.parts.tools, &planner.sent);
        let mut names = Pseudonyms::new(planner.config.pseudonyms);
        names.learn_question(&ask.text);
        for earlier in &ask.before {
            names.learn_question(&earlier.text);
            names.learn_entity(&earlier.focus.iter().cloned().collect());
        }
        let used =
            ModelUse { model: planner.config.model.clone(), prompt: planner.version.clone(), ..ModelUse::default() };
        Self {
            planner,
            ask,
            zone,
            windows,
            prompt,
            form: planner.form(),
            names,
            findings: Findings::default(),
            exchanges: Vec::new(),
            ids: BTreeSet::new(),
            meter: Meter::default(),
            replies: 0,
            began_ms: planner.parts.clock.monotonic_ms(),
            idle: 0,
            repaired: false,
            used,
            offline: None,
        }
    }

    async fn turn(&mut self, gathered: &[Gathered]) -> Result<Turn, PlannerError> {
        if self.offline.is_none() {
            self.take_in(gathered);
            match self.ask_model().await {
                Ok(turn) => return Ok(turn),
                Err(fault) => self.fall_back(&fault, gathered.len()),
            }
        }
        let Some((offline, own)) = &mut self.offline else { return Err(no_planner()) };
        // The offline planner finds its way by its own calls; the model's would mislead it.
        let mut turn = offline.next(gathered.get(*own..).unwrap_or_default()).await?;
        if let (Turn::Draft(draft), Some(why)) = (&mut turn, &self.used.fell_back) {
            draft.data_health.insert(0, format!("the built-in planner answered in the model's place: {why}"));
        }
        Ok(turn)
    }

    fn take_in(&mut self, gathered: &[Gathered]) {
        let datasets = &self.planner.config.datasets;
        let before = self.findings.evidence.len();
        self.findings.absorb(gathered, datasets, &self.ask.text, &self.zone);
        self.names.learn(self.findings.evidence.get(before..).unwrap_or_default());
    }

    fn fall_back(&mut self, fault: &ModelFault, gathered: usize) {
        tracing::warn!(%fault, model = %self.used.model, "the offline planner answers in the model's place");
        self.used.fell_back = Some(fault.to_string());
        self.offline = Some((self.planner.parts.offline.begin(self.ask), gathered));
    }

    /// Asks until there are calls to run or an answer that holds.
    async fn ask_model(&mut self) -> Result<Turn, ModelFault> {
        loop {
            let room = self.room()?;
            let form = self.form;
            let reply = match self.request(form, room).await {
                // A server that knows no tools refuses the request; it is asked the other way, once.
                Err(ModelFault::Rejected { .. }) if self.changes_over() => continue,
                reply => reply?,
            };
            if let Some(turn) = self.use_reply(form, reply, room.is_last)? {
                return Ok(turn);
            }
        }
    }

    fn room(&self) -> Result<Room, ModelFault> {
        let config = &self.planner.config;
        let spent_ms = (self.planner.parts.clock.monotonic_ms() - self.began_ms).max(0.0);
        self.meter.room(&config.budgets, &config.prices.unwrap_or_default(), Duration::from_secs_f64(spent_ms / 1000.0))
    }

    /// Asks for JSON from here on; false where it does so already or may not.
    fn changes_over(&mut self) -> bool {
        let changes = self.form == Form::Tools && self.planner.may_change();
        if changes {
            self.form = Form::Json;
        }
        changes
    }

    /// One request, paid for from the day's tokens.
    async fn request(&mut self, form: Form, room: Room) -> Result<Reply, ModelFault> {
        let planner = self.planner;
        let config = &planner.config;
        let most = room.tokens_in.min(config.context_tokens);
        let asked = self.names.out(&question(self.ask));
        let results = self.findings.taken.len();
        let text = |n: usize, detail: Detail| self.result_text(n, detail);
        let (messages, tokens_in) = fitted(form, &self.prompt, &asked, &self.exchanges, results, most, text)
            .ok_or(ModelFault::Budget { what: "tokens" })?;
        let max_completion_tokens = room.tokens_out;
        if max_completion_tokens < LEAST_REPLY {
            return Err(ModelFault::Budget { what: "tokens" });
        }
        let format = match form {
            Form::Tools => None,
            Form::Json => Some(step_format(&self.prompt.tools, room.is_last)),
        };
        let request = Request {
            model: &config.model,
            messages: &messages,
            tools: if form == Form::Tools { &self.prompt.protocol } else { &[] },
            response_format: format.as_ref(),
            most: Most::new(config.reply_limit(), max_completion_tokens),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        };
        let parts = &planner.parts;
        let limit = parts.policies.now().limits(&self.ask.principal).tokens_per_day;
        let payer = account(&self.ask.principal);
        let day = Budget { account: &payer, now: parts.clock.now(), spend: Spend::Tokens, limit };
        let wanted = tokens_in.saturating_add(max_completion_tokens);
        let quota = |error: sightline_core::quota::QuotaError| ModelFault::Quota { reason: error.to_string() };
        let mut reserved = parts.quota.reserve(day, wanted).await.map_err(quota)?;
        if reserved.amount() < tokens_in.saturating_add(LEAST_REPLY) {
            return Err(ModelFault::Budget { what: "tokens a day" });
        }
        reserved.begin();
        self.meter.turns += 1;
        let started = parts.clock.monotonic_ms();
        let place = Some((self.ask.text.as_str(), self.replies));
        let outcome = planner.client.reply(&request, place, room.time).await;
        self.replies += usize::from(outcome.is_ok());
        let wall_ms = parts.clock.monotonic_ms() - started;
        let counted = |reply: &Reply| {
            let words = estimate(&reply.content) + reply.calls.iter().map(|c| estimate(&c.arguments) + 8).sum::<u64>();
            (reply.tokens_in.unwrap_or(tokens_in), reply.tokens_out.unwrap_or(words))
        };
        // A reply that broke off was paid for, as far as can be told, with what was sent.
        let (took_in, took_out) = outcome.as_ref().map_or((tokens_in, 0), counted);
        reserved.settle(took_in.saturating_add(took_out));
        self.meter.tokens_in = self.meter.tokens_in.saturating_add(took_in);
        self.meter.tokens_out = self.meter.tokens_out.saturating_add(took_out);
        let said = match &outcome {
            Ok(reply) if !reply.calls.is_empty() => "calls",
            Ok(_) => "words",
            Err(fault) => fault.code(),
        };
        let outcome_of = said.to_owned();
        let call = ModelCall { tokens_in: took_in, tokens_out: took_out, wall_ms, calls: 0, outcome: outcome_of };
        self.used.calls.push(call);
        self.used.money = config.prices.map(|prices| prices.of(self.meter.tokens_in, self.meter.tokens_out));
        outcome
    }

    fn result_text(&self, n: usize, detail: Detail) -> String {
        let config = &self.planner.config;
        let Some(taken) = self.findings.taken.get(n) else { return String::new() };
        if let Some(correction) = &taken.correction {
            return self.names.out(&format!("failed: {}", crate::safe_text::value(correction)));
        }
        let shown = self.findings.shown(n, &config.datasets, &self.ask.text, &self.zone);
        shown.map_or_else(String::new, |shown| self.names.out(&digest(&shown, detail, config.result_tokens)))
    }

    /// Calls to run, an answer, or nothing yet: then the model was told why and is asked again.
    fn use_reply(&mut self, form: Form, reply: Reply, is_last: bool) -> Result<Option<Turn>, ModelFault> {
        if reply.refused {
            return Err(ModelFault::Declined);
        }
        let cut = reply.cut_calls;
        // Calls by the protocol are taken also where JSON was asked for: they are as good.
        let by_protocol = !reply.calls.is_empty();
        let (calls, words) =
            if by_protocol { (reply.calls, String::new()) } else { (steps(&reply.content), reply.content) };
        if calls.is_empty() {
            return self.no_step(form, words).map(|()| None);
        }
        match (by_protocol, form) {
            (true, Form::Tools) => self.planner.learn(Form::Tools),
            (true, Form::Json) => {}
            (false, _) => self.planner.learn(Form::Json),
        }
        if let Some(answer) = calls.iter().find(|call| call.name == ANSWER) {
            return self.answered(answer, is_last);
        }
        self.called(calls, cut)
    }

    /// A reply without a step.
    fn no_step(&mut self, form: Form, words: String) -> Result<(), ModelFault> {
        // A model whose server drops tool calls talks instead: it is asked the other way, once.
        if self.meter.turns == 1 && self.changes_over() {
            return Ok(());
        }
        self.lose_patience(ModelFault::NoCalls)?;
        let told = match form {
            Form::Tools => "Call a tool, or `answer` to hand in the answer; words beside that are not read.",
            Form::Json => "Reply with one JSON object: {\"calls\":[…]} or {\"answer\":{…}}.",
        };
        let said = crate::safe_text::value(&words);
        let said = if said.is_empty() { "(nothing)".to_owned() } else { said };
        self.exchanges.push(Exchange::Words { said, told: told.to_owned() });
        Ok(())
    }

    fn lose_patience(&mut self, fault: ModelFault) -> Result<(), ModelFault> {
        self.idle += 1;
        if self.idle >= PATIENCE { Err(fault) } else { Ok(()) }
    }

    /// New calls are run; a repeated one is answered with a pointer to its result.
    fn called(&mut self, calls: Vec<Called>, cut: usize) -> Result<Option<Turn>, ModelFault> {
        if let Some(last) = self.used.calls.last_mut() {
            last.calls = (calls.len() + cut) as u64;
            last.outcome = "calls".to_owned();
        }
        let left = self.planner.config.budgets.calls.saturating_sub(self.meter.calls) as usize;
        if left == 0 {
            return Err(ModelFault::Budget { what: "calls" });
        }
        let most = left.min(CALLS_A_TURN);
        let too_many = calls.len().saturating_sub(most) + cut;
        let mut made: Vec<Made> = Vec::new();
        let mut run: Vec<ToolCall> = Vec::new();
        for call in calls.into_iter().take(most) {
            let number = self.findings.taken.len() + run.len();
            let tool_call = ToolCall { tool: call.name.clone(), arguments: self.arguments(&call.arguments) };
            let id = self.own_id(&call.id);
            let before =
                self.findings.taken.iter().map(|taken| &taken.call).chain(&run).position(|known| *known == tool_call);
            let told = match before {
                Some(_) => Told::Said("this call was made before; its result stands there".to_owned()),
                None => {
                    run.push(tool_call);
                    Told::Ran(number)
                }
            };
            made.push(Made { id, tool: shown_name(&call.name), arguments: shown_arguments(&call.arguments), told });
        }
        if too_many > 0
            && let Some(Made { told: told @ Told::Said(_), .. }) = made.last_mut()
        {
            *told = Told::Said(format!("this call was made before; {too_many} more were cut"));
        }
        self.exchanges.push(Exchange::Calls(made));
        if too_many > 0 {
            let told = format!("At most {CALLS_A_TURN} calls are made at once; {too_many} were left out.");
            self.exchanges.push(Exchange::Words { said: "(more calls)".to_owned(), told });
        }
        if run.is_empty() {
            self.lose_patience(ModelFault::Loop)?;
            return Ok(None);
        }
        self.meter.calls = self.meter.calls.saturating_add(u32::try_from(run.len()).unwrap_or(u32::MAX));
        Ok(Some(Turn::Calls(run)))
    }

    /// Untrusted text as JSON; what is none goes on as text, so that the tool's refusal stands in the audit log.
    fn arguments(&self, text: &str) -> Value {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let parsed = serde_json::from_str(text).unwrap_or_else(|_| json!(crate::safe_text::value(text)));
        // A null is what models write for an argument that they leave out.
        let parsed = match parsed {
            Value::Object(fields) => Value::Object(fields.into_iter().filter(|(_, field)| !field.is_null()).collect()),
            other => other,
        };
        self.names.back_in(parsed)
    }

    fn answered(&mut self, answer: &Called, is_last: bool) -> Result<Option<Turn>, ModelFault> {
        if let Some(last) = self.used.calls.last_mut() {
            last.outcome = "answer".to_owned();
        }
        if self.findings.evidence.is_empty() {
            // Nothing was looked up, so nothing can be said.
            return Err(ModelFault::NoCalls);
        }
        let parsed = first_object(&answer.arguments).map(|value| self.names.back_in(value));
        let stage = Stage {
            ask: self.ask,
            zone: &self.zone,
            findings: &self.findings,
            vocabulary: &self.planner.vocabulary,
            windows: &self.windows,
        };
        let compiled = read(&parsed.unwrap_or(Value::Null)).map(|answer| compile(stage, &answer));
        let failed = match &compiled {
            Ok(Compiled { failed, .. }) => failed.clone(),
            Err(reason) => vec![("the answer".to_owned(), reason.clone())],
        };
        let may_repair = !self.repaired && !is_last && self.room().is_ok_and(|room| room.tokens_out > LEAST_REPLY);
        if !failed.is_empty() && may_repair {
            self.repaired = true;
            self.repair(answer, &failed);
            return Ok(None);
        }
        match compiled {
            Ok(Compiled { mut draft, held, failed }) if held > 0 => {
                if !failed.is_empty() {
                    draft.data_health.push(format!(
                        "{} of the model's statements were not borne out and were left out",
                        failed.len()
                    ));
                }
                Ok(Some(Turn::Draft(Box::new(draft))))
            }
            Ok(_) | Err(_) => Err(ModelFault::Ungrounded),
        }
    }

    /// The model's id of a call, or one of ours where that is none or was used before: some models count anew each turn.
    fn own_id(&mut self, id: &str) -> String {
        let own = if is_id(id) && !self.ids.contains(id) { id.to_owned() } else { format!("call_{}", self.ids.len()) };
        self.ids.insert(own.clone());
        own
    }

    /// Tells the model which parts failed, and why.
    fn repair(&mut self, answer: &Called, failed: &[(String, String)]) {
        let lines: Vec<String> = failed.iter().take(8).map(|(which, why)| format!("{which}: {why}")).collect();
        let told = self.names.out(&format!("These do not hold: {}. Hand in the whole answer again.", lines.join("; ")));
        let id = self.own_id(&answer.id);
        let arguments = shown_arguments(&answer.arguments);
        self.exchanges.push(Exchange::Calls(vec![Made {
            id,
            tool: ANSWER.to_owned(),
            arguments,
            told: Told::Said(told),
        }]));
    }
}

fn no_planner() -> PlannerError {
    PlannerError::Failed { planner: "llm", reason: "the offline planner is missing; report this".to_owned() }
}

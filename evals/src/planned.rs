//! What a model had to do with the answers: whose words they are, which prompt it had, and what it took. Pure.

use serde::{Deserialize, Serialize};
use sightline_model::audit::ModelUse;

use crate::report::QuestionReport;
use crate::score::Share;

/// A model's part in one answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// The model.
    pub model: String,
    /// The version of the prompt.
    pub prompt: String,
    /// Requests that were made.
    pub requests: usize,
    /// Tokens sent.
    pub tokens_in: u64,
    /// Tokens received.
    pub tokens_out: u64,
    /// What they cost, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
    /// Why the built-in planner answered in its place; none where the answer is the model's own draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fell_back: Option<String>,
}

impl From<ModelUse> for Planned {
    fn from(used: ModelUse) -> Self {
        let ModelUse { model, prompt, calls, money, fell_back } = used;
        let sum = |of: fn(&sightline_model::audit::ModelCall) -> u64| calls.iter().map(of).sum();
        Self {
            model,
            prompt,
            requests: calls.len(),
            tokens_in: sum(|call| call.tokens_in),
            tokens_out: sum(|call| call.tokens_out),
            money,
            fell_back,
        }
    }
}

/// A model's part in all answers of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    /// The model.
    pub model: String,
    /// The version of the prompt.
    pub prompt: String,
    /// Answers that are the model's own draft; the others are the built-in planner's.
    pub own: Share,
    /// Requests, over all questions.
    pub requests: usize,
    /// Tokens sent, over all questions.
    pub tokens_in: u64,
    /// Tokens received, over all questions.
    pub tokens_out: u64,
    /// What it cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

impl ModelTotals {
    /// Over the questions; none where no model was asked.
    pub(crate) fn of(questions: &[QuestionReport]) -> Option<Self> {
        let mut totals: Option<Self> = None;
        for planned in questions.iter().filter_map(|question| question.planned.as_ref()) {
            let totals = totals.get_or_insert_with(|| Self {
                model: planned.model.clone(),
                prompt: planned.prompt.clone(),
                own: Share::default(),
                requests: 0,
                tokens_in: 0,
                tokens_out: 0,
                money: None,
            });
            totals.own.count(planned.fell_back.is_none());
            totals.requests += planned.requests;
            totals.tokens_in += planned.tokens_in;
            totals.tokens_out += planned.tokens_out;
            totals.money = planned.money.map(|money| totals.money.unwrap_or(0.0) + money).or(totals.money);
        }
        totals
    }

    /// For a terminal.
    pub(crate) fn line(&self) -> String {
        let Self { model, prompt, own, requests, tokens_in, tokens_out, money } = self;
        let cost = money.map_or_else(String::new, |money| format!(", cost {money:.4}"));
        let share = own.fraction().map_or_else(String::new, |part| format!(" {part:.2}"));
        format!(
            "Model {model}, prompt {prompt}: own drafts {}/{}{share}, {requests} requests, {tokens_in} tokens in, {tokens_out} out{cost}",
            own.hit, own.of
        )
    }
}

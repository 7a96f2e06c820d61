//! The `[llm]` section: which planner answers, how a model is reached, what it may be told and what a question may spend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use sightline_llm::{Budgets, LlmConfig, Mode, Prices, ReplyLimit};

/// Which planner answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlannerChoice {
    /// The built-in one.
    #[default]
    Offline,
    /// The one that asks a model.
    Llm,
}

impl PlannerChoice {
    /// The planner of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "offline" => Some(Self::Offline),
            "llm" => Some(Self::Llm),
            _ => None,
        }
    }
}

/// The section as it is written. Numbers stand in quotes, as everywhere, so that each key can come from the environment too.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLlm {
    planner: Option<String>,
    base_url: Option<String>,
    model: Option<String>,
    key: Option<String>,
    azure_api_version: Option<String>,
    mode: Option<String>,
    reply_limit: Option<String>,
    prompt_file: Option<PathBuf>,
    timeout_seconds: Option<String>,
    tries: Option<String>,
    proxy: Option<String>,
    ca_file: Option<PathBuf>,
    max_turns: Option<String>,
    max_calls: Option<String>,
    max_tokens_in: Option<String>,
    max_tokens_out: Option<String>,
    max_seconds: Option<String>,
    max_money: Option<String>,
    prices: Option<BTreeMap<String, String>>,
    context_tokens: Option<String>,
    datasets: Option<String>,
    pseudonyms: Option<String>,
}

/// How a model is reached. Guaranteed: comparing and printing it tells nothing of the key.
#[derive(Clone)]
pub struct LlmSettings(pub LlmConfig);

impl PartialEq for LlmSettings {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Eq for LlmSettings {}

impl std::fmt::Debug for LlmSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl RawLlm {
    /// The environment wins over the file: every key as `SIGHTLINE_LLM_…`, the address and the key also by the names that everybody uses.
    pub(super) fn overlay(self, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str, file: Option<String>| env(&format!("SIGHTLINE_LLM_{name}")).or(file);
        Self {
            planner: env("SIGHTLINE_PLANNER").or_else(|| text("PLANNER", self.planner)),
            base_url: text("BASE_URL", env("OPENAI_BASE_URL").or(self.base_url)),
            model: text("MODEL", self.model),
            key: text("KEY", env("OPENAI_API_KEY").or(self.key)),
            azure_api_version: text("AZURE_API_VERSION", self.azure_api_version),
            mode: text("MODE", self.mode),
            reply_limit: text("REPLY_LIMIT", self.reply_limit),
            prompt_file: env("SIGHTLINE_LLM_PROMPT_FILE").map(PathBuf::from).or(self.prompt_file),
            timeout_seconds: text("TIMEOUT_SECONDS", self.timeout_seconds),
            tries: text("TRIES", self.tries),
            proxy: text("PROXY", self.proxy),
            ca_file: env("SIGHTLINE_LLM_CA_FILE").map(PathBuf::from).or(self.ca_file),
            max_turns: text("MAX_TURNS", self.max_turns),
            max_calls: text("MAX_CALLS", self.max_calls),
            max_tokens_in: text("MAX_TOKENS_IN", self.max_tokens_in),
            max_tokens_out: text("MAX_TOKENS_OUT", self.max_tokens_out),
            max_seconds: text("MAX_SECONDS", self.max_seconds),
            max_money: text("MAX_MONEY", self.max_money),
            prices: env("SIGHTLINE_LLM_PRICES").map(|text| table(&text)).or(self.prices),
            context_tokens: text("CONTEXT_TOKENS", self.context_tokens),
            datasets: text("DATASETS", self.datasets),
            pseudonyms: text("PSEUDONYMS", self.pseudonyms),
        }
    }

    /// The planner, and the model's settings where one is named. What cannot be used is added to the faults.
    pub(super) fn check(self, faults: &mut Vec<String>) -> (PlannerChoice, Option<LlmSettings>) {
        let planner = match self.planner.as_deref().map(PlannerChoice::parse) {
            None => PlannerChoice::Offline,
            Some(Some(planner)) => planner,
            Some(None) => {
                faults.push("`llm.planner` must be `offline` or `llm`".to_owned());
                PlannerChoice::Offline
            }
        };
        let Some(model) = self.model.filter(|model| !model.trim().is_empty()) else { return (planner, None) };
        let mut config = LlmConfig::new(model.trim());
        if let Some(url) = self.base_url {
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                faults.push("`llm.base_url` must begin with `http://` or `https://`".to_owned());
            }
            config.base_url = url;
        }
        config.key = self.key.filter(|key| !key.trim().is_empty()).map(Into::into);
        config.azure_api_version = self.azure_api_version;
        config.proxy = self.proxy.map(Into::into);
        config.ca_file = self.ca_file;
        match self.mode.as_deref().map(Mode::parse) {
            None => {}
            Some(Some(mode)) => config.mode = mode,
            Some(None) => faults.push("`llm.mode` must be `auto`, `tools` or `json`".to_owned()),
        }
        match self.reply_limit.as_deref().map(ReplyLimit::parse) {
            None => {}
            Some(Some(limit)) => config.reply_limit = Some(limit),
            Some(None) => faults.push("`llm.reply_limit` must be `max_tokens` or `max_completion_tokens`".to_owned()),
        }
        if let Some(file) = self.prompt_file {
            match rules(&file) {
                Ok(rules) => config.rules = Some(rules),
                Err(fault) => faults.push(fault),
            }
        }
        match self.pseudonyms.as_deref() {
            None | Some("false") => {}
            Some("true") => config.pseudonyms = true,
            Some(_) => faults.push("`llm.pseudonyms` must be `true` or `false`, in quotes".to_owned()),
        }
        if let Some(names) = self.datasets {
            config.datasets = datasets(&names, faults);
        }
        let Budgets { turns, calls, tokens_in, tokens_out, time, money } = config.budgets;
        let seconds = |faults: &mut Vec<String>, key: &str, text: Option<String>, default: Duration| {
            Duration::from_secs(number(faults, key, text, default.as_secs(), 1, 3_600))
        };
        config.timeout = seconds(faults, "timeout_seconds", self.timeout_seconds, config.timeout);
        config.pause = config.pause.min(config.timeout);
        config.tries = number(faults, "tries", self.tries, config.tries, 1, 10);
        config.context_tokens =
            number(faults, "context_tokens", self.context_tokens, config.context_tokens, 2_000, 1_000_000);
        config.budgets = Budgets {
            turns: number(faults, "max_turns", self.max_turns, turns, 1, 8),
            calls: number(faults, "max_calls", self.max_calls, calls, 1, 64),
            tokens_in: number(faults, "max_tokens_in", self.max_tokens_in, tokens_in, 1, 10_000_000),
            tokens_out: number(faults, "max_tokens_out", self.max_tokens_out, tokens_out, 1, 1_000_000),
            time: seconds(faults, "max_seconds", self.max_seconds, time),
            money: self.max_money.map(|text| number(faults, "max_money", Some(text), 0.0, 0.0, 1e6)).or(money),
        };
        config.prices = prices(&self.prices.unwrap_or_default(), &config.model, faults);
        if config.budgets.money.is_some() && config.prices.is_none() {
            let model = &config.model;
            faults.push(format!("`llm.max_money` needs the model's price: set `llm.prices`, like `\"{model}\" = \"0.40 1.60\"`, per million tokens in and out"));
        }
        (planner, Some(LlmSettings(config)))
    }
}

/// Rules in place of those that ship.
///
/// # Errors
/// When the file cannot be read or holds none, in a line for whoever named it.
pub fn rules(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("the prompt `{}` cannot be read: {error}", file.display()))?;
    match text.trim() {
        "" => Err(format!(
            "the prompt `{}` is empty; `assistant/llm/src/prompt.txt` is the one that ships",
            file.display()
        )),
        _ => Ok(text),
    }
}

/// The table as one line of the environment: `model=0.40 1.60, other=2 8`.
fn table(text: &str) -> BTreeMap<String, String> {
    let entry = |entry: &str| {
        let (model, prices) = entry.split_once('=').unwrap_or((entry, ""));
        (model.trim().to_owned(), prices.trim().to_owned())
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(entry).collect()
}

/// What the model costs: its own entry, else that of `*`.
fn prices(table: &BTreeMap<String, String>, model: &str, faults: &mut Vec<String>) -> Option<Prices> {
    let read = |text: &str| {
        let numbers: Vec<f64> = text.split_whitespace().map_while(|part| part.parse().ok()).collect();
        match numbers.as_slice() {
            [tokens_in, tokens_out] if [tokens_in, tokens_out].into_iter().all(|price| (0.0..=1e6).contains(price)) => {
                Some(Prices { per_million_in: *tokens_in, per_million_out: *tokens_out })
            }
            _ => None,
        }
    };
    for (name, text) in table {
        if read(text).is_none() {
            faults.push(format!("`llm.prices` gives {name} no prices; write two numbers, per million tokens in and out, like `0.40 1.60`"));
        }
    }
    table.get(model).or_else(|| table.get("*")).and_then(|text| read(text))
}

/// A number within its bounds, or what holds without one.
fn number<T: FromStr + PartialOrd + std::fmt::Display + Copy>(
    faults: &mut Vec<String>,
    key: &str,
    text: Option<String>,
    default: T,
    least: T,
    most: T,
) -> T {
    let Some(text) = text else { return default };
    match text.trim().parse::<T>() {
        Ok(number) if number >= least && number <= most => number,
        Ok(_) | Err(_) => {
            faults.push(format!("`llm.{key}` must be a number from {least} to {most}, in quotes"));
            default
        }
    }
}

fn datasets(names: &str, faults: &mut Vec<String>) -> BTreeSet<String> {
    let names: BTreeSet<String> =
        names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| !LlmConfig::DATASETS.contains(&name.as_str())) {
        faults.push(format!(
            "`llm.datasets` names `{unknown}`; there are {}, divided by commas",
            LlmConfig::DATASETS.join(", ")
        ));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Flags};
    use super::*;

    fn with(values: &'static [(&'static str, &'static str)]) -> Result<Config, super::super::ConfigError> {
        let env = |name: &str| values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::load(&Flags::default(), &env)
    }

    #[test]
    fn a_model_is_reached_by_the_names_that_everybody_uses_and_its_key_is_never_printed() {
        let config = with(&[
            ("OPENAI_API_KEY", "sk-hunter2"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
            ("SIGHTLINE_LLM_MODEL", "m"),
            ("SIGHTLINE_PLANNER", "llm"),
            ("SIGHTLINE_LLM_DATASETS", "metrics, events"),
            ("SIGHTLINE_LLM_MAX_MONEY", "0.05"),
            ("SIGHTLINE_LLM_PRICES", "other=2 8, m=0.40 1.60"),
        ])
        .unwrap();
        assert_eq!(config.planner, PlannerChoice::Llm);
        let LlmSettings(llm) = config.llm.clone().unwrap();
        assert_eq!((llm.base_url.as_str(), llm.model.as_str()), ("http://127.0.0.1:8080/v1", "m"));
        assert_eq!((llm.datasets.len(), llm.budgets.money), (2, Some(0.05)));
        assert_eq!(llm.prices, Some(Prices { per_million_in: 0.4, per_million_out: 1.6 }));
        assert!(!format!("{config:?}").contains("hunter2"));
        // Without a model's name a key alone changes nothing.
        let config = with(&[("OPENAI_API_KEY", "sk-hunter2")]).unwrap();
        assert_eq!((config.planner, config.llm), (PlannerChoice::Offline, None));
    }

    #[test]
    fn what_cannot_be_used_is_told_at_once() {
        let error = with(&[
            ("SIGHTLINE_LLM_MODEL", "m"),
            ("SIGHTLINE_PLANNER", "oracle"),
            ("SIGHTLINE_LLM_BASE_URL", "ftp://x"),
            ("SIGHTLINE_LLM_MODE", "xml"),
            ("SIGHTLINE_LLM_MAX_TURNS", "99"),
            ("SIGHTLINE_LLM_DATASETS", "metrics,secrets"),
            ("SIGHTLINE_LLM_PSEUDONYMS", "yes"),
            ("SIGHTLINE_LLM_REPLY_LIMIT", "few"),
            ("SIGHTLINE_LLM_PROMPT_FILE", "/nowhere/prompt.txt"),
            ("SIGHTLINE_LLM_PRICES", "m=cheap"),
            ("SIGHTLINE_LLM_MAX_MONEY", "1"),
        ])
        .unwrap_err();
        assert_eq!(error.faults.len(), 10, "{error}");
    }
}

//! What a model is told before a question. The words are an artefact: a golden file holds them, and their version stands in audit and evaluation.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sightline_core::Ask;
use sightline_model::{AskedRange, Dataset, TenantScope};
use sightline_policies::{Action, Policies};
use sightline_tools::{AnyTool, SentTool};

use crate::safe_text::value;
use crate::schemas;

/// The number of the prompt's version; the words' own digest stands behind it.
pub const PROMPT_VERSION: &str = "1";

const RULES: &str = include_str!("prompt.txt");

/// In place of tool calls, for a model that knows none.
const STEPS: &str = "Reply with one JSON object and nothing else: {\"calls\":[{\"tool\":\"…\",\"arguments\":{…}}]} to call tools, or \
                     {\"answer\":{\"headline\":\"…\",\"claims\":[\"…\"],\"causes\":[{\"id\":\"…\",\"why\":\"…\"}]}} to hand in the answer.\n";

/// The prompt of one question.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    /// For a model that calls tools.
    pub(crate) with_tools: String,
    /// For one that writes its steps as JSON.
    pub(crate) as_json: String,
    /// The tools that this principal can use.
    pub(crate) tools: Vec<SentTool>,
    /// The same in the form of the protocol.
    pub(crate) protocol: Vec<Value>,
}

/// The version of the prompt and the tools, for records.
pub(crate) fn version(own: Option<&str>, tools: &[SentTool]) -> String {
    let mut digest = Sha256::new();
    digest.update(own.unwrap_or(RULES));
    digest.update(STEPS);
    for tool in schemas::protocol(tools) {
        digest.update(tool.to_string());
    }
    let digest = hex::encode(digest.finalize());
    let number = if own.is_some() { "own" } else { PROMPT_VERSION };
    format!("{number}-{}", digest.get(..8).unwrap_or_default())
}

impl Prompt {
    /// What this principal's question begins with, by the rules that ship or by one's own.
    pub(crate) fn new(
        own_rules: Option<&str>,
        ask: &Ask,
        zone: &TimeZone,
        windows: &[AskedRange],
        policies: &Policies,
        registry: &[Box<dyn AnyTool>],
        sent: &[SentTool],
    ) -> Self {
        let may_read =
            |dataset: Dataset, tool: &str| policies.check(&ask.principal, Action::Read(dataset), tool).allowed();
        let usable = |tool: &SentTool| {
            let known = registry.iter().find(|known| known.name() == tool.name);
            known.is_some_and(|known| {
                known.datasets().is_empty() || known.datasets().iter().any(|d| may_read(*d, tool.name))
            })
        };
        let tools: Vec<SentTool> = sent.iter().filter(|tool| usable(tool)).cloned().collect();
        let readable =
            Dataset::ALL.into_iter().filter(|dataset| tools.iter().any(|tool| may_read(*dataset, tool.name)));
        let readable: Vec<&str> = readable.map(Dataset::as_str).collect();
        let mut about = String::new();
        let local = ask.as_of.to_zoned_datetime(zone.clone());
        let _ = writeln!(
            about,
            "Now it is {:.0}, {} in the asker's zone {}. Arguments take UTC.",
            ask.as_of,
            local.strftime("%A %Y-%m-%d %H:%M"),
            ask.time_zone
        );
        for window in windows {
            let _ = writeln!(
                about,
                "The question's words mean {}: from {:.0} to {:.0}.",
                value(&window.how),
                window.from,
                window.to
            );
        }
        let whose = match &ask.principal.tenants {
            TenantScope::Only(tenants) => {
                format!("tenant {}", tenants.iter().map(|t| value(t)).collect::<Vec<_>>().join(", "))
            }
            TenantScope::All => "every tenant".to_owned(),
        };
        let own = if ask.principal.jobs_of.is_some() { ", own jobs only" } else { "" };
        let _ = writeln!(
            about,
            "The asker, role {}, sees {whose}{own}: {}.",
            ask.principal.role.as_str(),
            readable.join(", ")
        );
        let rules = own_rules.unwrap_or(RULES);
        Self {
            with_tools: format!("{rules}Call `{}` to hand in the answer.\n{about}", schemas::ANSWER),
            as_json: format!("{rules}{STEPS}The tools:\n{}\n{about}", schemas::in_words(&tools)),
            protocol: schemas::protocol(&tools),
            tools,
        }
    }
}

/// The question with those before it.
pub(crate) fn question(ask: &Ask) -> String {
    let mut text = String::new();
    for earlier in ask.before.iter().rev().take(3).rev() {
        let focus: Vec<String> =
            earlier.focus.iter().map(|(key, name)| format!("{}={}", value(key), value(name))).collect();
        let _ = writeln!(text, "Asked before: {} (about {})", earlier.text, focus.join(" "));
    }
    text.push_str(&ask.text);
    text
}

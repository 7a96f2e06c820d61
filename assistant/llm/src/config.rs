//! How a model is reached, what it may be told, and what a question may spend on it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::budget::{Budgets, Prices};
use crate::transcript::Exchange;

/// How the model is asked to call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Tools first; the other way once the server shows that it knows none.
    #[default]
    Auto,
    /// With the protocol's own tool calls.
    Tools,
    /// As JSON after a schema, for servers whose models know no tool calls.
    Json,
}

impl Mode {
    /// The mode of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "tools" => Some(Self::Tools),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The name by which a server takes the most tokens of a reply. One that does not know the name takes it for nothing and writes on, or refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyLimit {
    /// Servers of one's own, and OpenAI's older models.
    MaxTokens,
    /// OpenAI and Azure, whose newer models refuse the other.
    MaxCompletionTokens,
}

impl ReplyLimit {
    /// The limit of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "max_tokens" => Some(Self::MaxTokens),
            "max_completion_tokens" => Some(Self::MaxCompletionTokens),
            _ => None,
        }
    }

    /// The one that the server at an address knows.
    fn of(base_url: &str) -> Self {
        let host = base_url.split("//").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
        let is_theirs = |domain: &str| host.strip_suffix(domain).is_some_and(|before| before.ends_with('.'));
        if ["openai.com", "azure.com"].into_iter().any(is_theirs) { Self::MaxCompletionTokens } else { Self::MaxTokens }
    }
}

/// The settings of the planner that asks a model.
#[derive(Clone, Debug)]
pub struct LlmConfig {
    /// Where the API is, up to and without `/chat/completions`.
    pub base_url: String,
    /// The model's name; the deployment's with Azure.
    pub model: String,
    /// The key; none for a server that asks for none.
    pub key: Option<SecretString>,
    /// The API version of Azure, which changes the form of addresses and the header of the key.
    pub azure_api_version: Option<String>,
    /// How it is asked to call tools.
    pub mode: Mode,
    /// The name of the most tokens of a reply; found by the address without.
    pub reply_limit: Option<ReplyLimit>,
    /// The longest one answer may take.
    pub timeout: Duration,
    /// The longest pause within an answer.
    pub pause: Duration,
    /// How often a request is tried.
    pub tries: u32,
    /// A proxy to go through, which may hold a password; those of the environment are not used.
    pub proxy: Option<SecretString>,
    /// A certificate authority of the site's own, a PEM file, trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// What a question may spend.
    pub budgets: Budgets,
    /// What tokens of this model cost; none where nobody said.
    pub prices: Option<Prices>,
    /// Rules in place of the prompt that ships, to compare the two.
    pub rules: Option<String>,
    /// Whether the server is asked, and what becomes of its replies.
    pub exchange: Exchange,
    /// The most tokens that one request may send, results and all.
    pub context_tokens: u64,
    /// The most tokens that one result may take.
    pub result_tokens: u64,
    /// The datasets whose content may leave for the model; of the others it learns that something was found.
    pub datasets: BTreeSet<String>,
    /// Whether names of users and hosts are replaced on the way out.
    pub pseudonyms: bool,
}

/// Where OpenAI's own API is.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

impl LlmConfig {
    /// Every dataset's name, with that of knowledge, which is no one's data.
    pub const DATASETS: [&'static str; 7] = ["metrics", "logs", "spans", "events", "jobs", "job_gpus", "knowledge"];

    /// The settings for a model, with what holds unless told otherwise.
    #[must_use]
    pub fn new(model: &str) -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            model: model.to_owned(),
            key: None,
            azure_api_version: None,
            mode: Mode::Auto,
            reply_limit: None,
            timeout: Duration::from_secs(60),
            pause: Duration::from_secs(20),
            tries: 3,
            proxy: None,
            ca_file: None,
            budgets: Budgets::default(),
            prices: None,
            rules: None,
            exchange: Exchange::Server,
            context_tokens: 12_000,
            result_tokens: 900,
            datasets: Self::DATASETS.into_iter().map(str::to_owned).collect(),
            pseudonyms: false,
        }
    }

    /// The name of the most tokens of a reply, as this server takes it.
    pub(crate) fn reply_limit(&self) -> ReplyLimit {
        match self.reply_limit {
            Some(named) => named,
            None if self.azure_api_version.is_some() => ReplyLimit::MaxCompletionTokens,
            None => ReplyLimit::of(&self.base_url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_is_told_the_most_tokens_by_the_name_that_it_knows() {
        for (url, limit) in [
            ("https://api.openai.com/v1", ReplyLimit::MaxCompletionTokens),
            ("https://us.api.openai.com/v1", ReplyLimit::MaxCompletionTokens),
            ("https://x.openai.azure.com/openai/v1", ReplyLimit::MaxCompletionTokens),
            ("http://localhost:11434/v1", ReplyLimit::MaxTokens),
            ("http://openai.com.internal/v1", ReplyLimit::MaxTokens),
            ("http://notopenai.com/v1", ReplyLimit::MaxTokens),
        ] {
            assert_eq!(LlmConfig { base_url: url.to_owned(), ..LlmConfig::new("m") }.reply_limit(), limit, "{url}");
        }
        let gateway = LlmConfig { reply_limit: Some(ReplyLimit::MaxTokens), ..LlmConfig::new("m") };
        assert_eq!(gateway.reply_limit(), ReplyLimit::MaxTokens);
    }
}

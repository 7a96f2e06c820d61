//! How a model is reached, what it may be told, and what a question may spend on it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::budget::{Budgets, Prices};

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
    /// What tokens cost.
    pub prices: Prices,
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
            timeout: Duration::from_secs(60),
            pause: Duration::from_secs(20),
            tries: 3,
            proxy: None,
            ca_file: None,
            budgets: Budgets::default(),
            prices: Prices::default(),
            context_tokens: 12_000,
            result_tokens: 900,
            datasets: Self::DATASETS.into_iter().map(str::to_owned).collect(),
            pseudonyms: false,
        }
    }
}

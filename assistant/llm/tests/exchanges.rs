//! Each provider's way of saying the same, replayed from `fixtures/exchanges/` against the true line.

#![cfg(test)]

mod harness;

use std::path::PathBuf;
use std::time::Duration;

use harness::server::{Reaction, Server};
use harness::{Line, QUESTION, config, fell_back, said};
use serde::Deserialize;
use sightline_llm::{LlmConfig, ReplyLimit};

/// One file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    provider: String,
    source: String,
    /// What stands behind the server's address in `llm.base_url`.
    base: String,
    /// What every request is for.
    target: String,
    /// The header that holds the key.
    header: String,
    /// The name of the most tokens of a reply.
    limit: String,
    #[serde(default)]
    azure_api_version: Option<String>,
    tokens: [u64; 2],
    reply: Vec<Reply>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    status: u16,
    content_type: String,
    body: String,
}

fn files() -> Vec<PathBuf> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/exchanges");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "toml"));
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn every_provider_is_understood_and_asked_in_its_own_way() {
    let mut providers = Vec::new();
    for file in files() {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let exchange: Exchange = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(exchange.source.starts_with("https://") && text.contains("not recorded"), "{name}: where it is from");
        let replies = exchange.reply.clone();
        let server = Server::start(move |_, number| {
            let Reply { status, content_type, body } = replies[number.min(replies.len() - 1)].clone();
            // Cut where it suits nobody.
            let pieces = body.as_bytes().chunks(61).map(<[u8]>::to_vec).collect();
            Reaction::Raw { status, kind: content_type, pieces, pause: Duration::ZERO, hangs: false }
        })
        .await;
        let limit = ReplyLimit::parse(&exchange.limit).unwrap();
        let named = (limit == ReplyLimit::MaxCompletionTokens && exchange.azure_api_version.is_none()).then_some(limit);
        let line = Line::new(LlmConfig {
            base_url: format!("{}{}", server.root(), exchange.base),
            azure_api_version: exchange.azure_api_version,
            // By the address alone a server on loopback is one of one's own.
            reply_limit: named,
            ..config(&server)
        });
        let answered = line.ask(QUESTION).await.unwrap();
        assert_eq!(server.faults(), Vec::<String>::new(), "{name}");
        assert!(!fell_back(&answered), "{name}: {:?}", answered.data_health);
        assert!(answered.headline.starts_with("The hottest GPU reached 92.2"), "{name}: {}", answered.headline);
        let words = said(&answered);
        assert!(words.contains("The GPU was hot: rose from 61 °C to 92 °C"), "{name}: {words}");
        assert!(!words.contains("4242"), "{name}: a model's thoughts are not read");
        assert!(server.targets().iter().all(|target| *target == exchange.target), "{name}: {:?}", server.targets());
        assert_eq!(server.requests().len(), exchange.reply.len(), "{name}");
        for (headers, request) in server.headers().iter().zip(server.requests()) {
            assert!(headers[&exchange.header].ends_with("sk-test-key"), "{name}: {headers:?}");
            let others = ["max_tokens", "max_completion_tokens"].into_iter().filter(|name| *name != exchange.limit);
            assert!(request[&exchange.limit].as_u64().is_some_and(|most| most > 0), "{name}: {request}");
            assert!(others.into_iter().all(|other| request.get(other).is_none()), "{name}: {request}");
        }
        let used = line.last_complete().model.unwrap();
        let counted = used.calls.iter().filter(|call| call.outcome != "rejected");
        let counted = counted.fold([0, 0], |[i, o], call| [i + call.tokens_in, o + call.tokens_out]);
        assert_eq!(counted, exchange.tokens, "{name}: {used:?}");
        providers.push(exchange.provider);
    }
    providers.dedup();
    assert_eq!(providers, ["Azure OpenAI", "llama.cpp", "Ollama", "OpenAI", "vLLM"]);
}

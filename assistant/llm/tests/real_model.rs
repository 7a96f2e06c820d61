//! A real model, on demand: `make test-model`. It is small and says much nonsense in well-formed JSON, which is what we want to see stopped.

#![cfg(test)]

mod harness;

use std::collections::BTreeSet;
use std::time::Duration;

use harness::server::Server;
use harness::{Line, QUESTION, config, fell_back, said};
use sightline_llm::{Budgets, LlmConfig, Mode};

const QUESTIONS: [&str; 5] = [
    QUESTION,
    "What was the GPU temperature of job J4711 yesterday?",
    "Top 5 hottest GPUs yesterday",
    "Were there errors in the logs of job J4711 yesterday?",
    "Compare the GPU temperature of today and yesterday",
];

/// Every run of digits outside of what is quoted.
fn numbers(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a model's server: `make test-model`"]
async fn a_small_models_inventions_reach_nobody() {
    let url = std::env::var_os("SIGHTLINE_TEST_MODEL_URL").expect("`make test-model` sets SIGHTLINE_TEST_MODEL_URL");
    // Only its settings are used.
    let nobody = Server::replies(vec![serde_json::json!({ "content": "" })]).await;
    let mut own = 0;
    for mode in [Mode::Json, Mode::Auto] {
        let line = Line::new(LlmConfig {
            base_url: url.to_str().unwrap().to_owned(),
            model: "smollm2-135m".to_owned(),
            key: None,
            mode,
            budgets: Budgets { turns: 4, tokens_out: 1_200, time: Duration::from_secs(240), ..Budgets::default() },
            ..config(&nobody)
        });
        for question in QUESTIONS {
            let answered = line.ask(question).await.unwrap();
            let offline = Line::offline().ask(question).await.unwrap();
            let used = line.last_complete().model.unwrap();
            own += usize::from(!fell_back(&answered));
            println!(
                "{mode:?} “{question}”\n  {}\n  {} requests, {} tokens, {:?}",
                answered.headline,
                used.calls.len(),
                used.tokens(),
                used.fell_back
            );
            assert_eq!(answered.verification.checked, answered.verification.passed);
            assert!(!used.calls.is_empty(), "it was asked");
            // What stands there in digits stands in what tools found or in the question.
            let known = format!("{}{}", serde_json::to_string(&answered.evidence).unwrap(), said(&offline));
            let known = numbers(&format!("{known}{question}"));
            let strange: Vec<String> = numbers(&said(&answered)).difference(&known).cloned().collect();
            assert!(strange.iter().all(|number| number.len() < 4), "{strange:?} in {}", said(&answered));
        }
    }
    println!("{own} of {} answers are the model's own draft", 2 * QUESTIONS.len());
}

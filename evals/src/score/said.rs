//! What an answer asserts.

use sightline_model::{Answer, CauseStatus};

/// Words that turn what follows them in a clause into its opposite: who says that it is not the network has not blamed the network.
const DENIALS: [&str; 12] =
    ["not", "no", "nor", "neither", "never", "without", "cannot", "rules", "ruled", "excludes", "unlike", "instead"];

/// The forbidden phrases that are asserted, with the sentence that says them. Sentences of causes that are ruled out assert nothing.
pub(super) fn forbidden(answer: &Answer, phrases: &[String]) -> Vec<String> {
    let mut sentences = vec![answer.headline.clone()];
    for cause in answer.causes.iter().filter(|cause| cause.status == CauseStatus::Supported) {
        sentences
            .push(sightline_tools::cause_title(&cause.id).map_or_else(|| cause.id.replace('_', " "), str::to_owned));
        sentences.push(cause.why.clone());
        sentences.extend(cause.claims.iter().map(|claim| claim.text.clone()));
    }
    let mut hits = Vec::new();
    for phrase in phrases {
        if let Some(sentence) = sentences.iter().find(|sentence| asserts(sentence, phrase)) {
            hits.push(format!("“{phrase}” in “{sentence}”"));
        }
    }
    hits
}

/// Whether the phrase stands in the sentence, in a clause that does not deny it.
fn asserts(sentence: &str, phrase: &str) -> bool {
    let sentence = sentence.to_lowercase();
    sentence.match_indices(phrase).any(|(at, _)| {
        let before = sentence.get(..at).unwrap_or_default();
        let clause = before.rsplit([',', ';', ':', '.', '(']).next().unwrap_or_default();
        !clause.split(|c: char| !c.is_alphanumeric()).any(|word| DENIALS.contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_denies_does_not_assert() {
        for (sentence, asserted) in [
            ("The data loader keeps the job waiting.", true),
            ("It is not the data loader.", false),
            ("Not one GPU is hot, the data loader is slow.", true),
            ("The GPUs wait, which rules out the data loader", false),
            ("The DATA LOADER is slow, not the network", true),
        ] {
            assert_eq!(asserts(sentence, "data loader"), asserted, "{sentence}");
        }
        assert!(!asserts("The GPUs are hot.", "data loader"));
    }
}

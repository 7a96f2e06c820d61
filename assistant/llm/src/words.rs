//! A sentence's own words: no number, time, name, link or mark-up, and nothing that asserts a direction, which is for a comparison to say.
//!
//! Grounding refuses digits; a model can also write numbers in words, times of the day, names without digits, and "fell" where it rose. What is
//! refused here is refused for its form, so that it needs no understanding of the sentence; a model has references to say all of it.

use std::collections::BTreeSet;

use sightline_query::Catalogue;
use sightline_tools::builtin_knowledge;

/// The lists of words, as data.
const LISTS: &str = include_str!("words.txt");

/// The list of that name.
pub(crate) fn list(name: &str) -> BTreeSet<&'static str> {
    let named = LISTS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    named.into_iter().flat_map(str::split_whitespace).collect()
}

/// The words that a site's catalogue, tools and causes are written in: what stands there is a term and no name of a thing.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    numbers: BTreeSet<&'static str>,
    times: BTreeSet<&'static str>,
    directions: BTreeSet<&'static str>,
    totals: BTreeSet<&'static str>,
    kinds: BTreeSet<&'static str>,
    after_kinds: BTreeSet<&'static str>,
    terms: BTreeSet<String>,
    causes: Vec<(String, String)>,
}

impl Vocabulary {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let mut terms = BTreeSet::new();
        for metric in catalogue.metrics() {
            for text in
                [metric.id(), metric.meaning(), metric.good_for(), metric.misleads()].into_iter().chain(metric.words())
            {
                terms.extend(split(text).map(str::to_lowercase));
            }
        }
        let mut causes = Vec::new();
        for entry in builtin_knowledge().entries() {
            let Some(id) = entry.id.strip_prefix("cause/") else { continue };
            let title = entry.title.trim_end_matches('.').to_lowercase();
            terms.extend(split(&title).map(str::to_owned));
            terms.insert(id.to_owned());
            causes.push((id.to_owned(), title));
        }
        Self {
            numbers: list("numbers"),
            times: list("times"),
            directions: list("directions"),
            totals: list("totals"),
            kinds: list("kinds"),
            after_kinds: list("after_kinds"),
            terms,
            causes,
        }
    }

    fn knows(&self, word: &str) -> bool {
        self.terms.contains(&word.to_lowercase())
    }
}

/// Whether a sentence's own words may stand, given the question and the causes that are supported.
///
/// # Errors
/// Which word may not, and what to write instead.
pub(crate) fn check(
    own: &str,
    question: &str,
    vocabulary: &Vocabulary,
    supported: &BTreeSet<&str>,
) -> Result<(), String> {
    if let Some(mark) = own.chars().find(|c| !may_stand(*c)) {
        return Err(format!("the sign `{}` may not stand in a sentence", crate::safe_text::value(&mark.to_string())));
    }
    let lower = own.to_lowercase();
    if ["http", "www", "://", "mailto", "javascript"].iter().any(|link| lower.contains(link)) {
        return Err("links are not written".to_owned());
    }
    let asked: BTreeSet<String> = split(question).map(str::to_lowercase).collect();
    let mut before: Option<String> = None;
    for (index, word) in split(own).enumerate() {
        let plain = word.to_lowercase();
        one_word(word, &plain, index == 0, &asked, vocabulary)?;
        if before.as_deref().is_some_and(|kind| vocabulary.kinds.contains(kind))
            && !vocabulary.after_kinds.contains(plain.as_str())
            && !asked.contains(&plain)
            && !vocabulary.knows(&plain)
        {
            return Err(format!("`{}` reads as a name; refer to it, like {{E1.s0.node}}", shown(word)));
        }
        before = Some(plain);
    }
    for (id, title) in &vocabulary.causes {
        let named =
            lower.contains(title.as_str()) || lower.contains(&id.replace('_', " ")) || lower.contains(id.as_str());
        if named && !supported.contains(id.as_str()) {
            return Err(format!("the cause {id} is not among those that the evidence supports"));
        }
    }
    Ok(())
}

fn one_word(
    word: &str,
    plain: &str,
    begins: bool,
    asked: &BTreeSet<String>,
    vocabulary: &Vocabulary,
) -> Result<(), String> {
    let parts: Vec<&str> = plain.split('-').collect();
    let among = |list: &BTreeSet<&'static str>| parts.iter().any(|part| list.contains(part));
    if among(&vocabulary.numbers) {
        return Err(format!("`{}` is a number; refer to evidence, like {{E1.max}}", shown(word)));
    }
    if among(&vocabulary.times) && !asked.contains(plain) {
        return Err(format!("`{}` is a time; refer to it, like {{E1.s0.at_max}}", shown(word)));
    }
    if among(&vocabulary.directions) {
        return Err(format!("`{}` compares; write {{A -> B}} or {{A vs B}} with two references", shown(word)));
    }
    if among(&vocabulary.totals) {
        return Err(format!("`{}` says it of all or none; use a finding, like F1", shown(word)));
    }
    if plain.chars().any(|c| c.is_numeric()) {
        // A name from the question may stand; an amount from it says nothing that was checked.
        let is_name = plain.chars().any(char::is_alphabetic) && (asked.contains(plain) || vocabulary.knows(plain));
        let is_amount = plain.starts_with(|c: char| c.is_numeric());
        if !is_name || is_amount {
            return Err(format!("`{}` holds a number; refer to evidence, like {{E1.max}}", shown(word)));
        }
        return Ok(());
    }
    let odd = plain.contains(['-', '_', '.', '/', '@', ':']) || (!begins && word.chars().any(char::is_uppercase));
    if odd && !asked.contains(plain) && !vocabulary.knows(plain) && !is_acronym(word) {
        return Err(format!("`{}` reads as a name; refer to it, like {{E1.s0.node}}, or use plain words", shown(word)));
    }
    Ok(())
}

/// Known abbreviations stand in the catalogue; these few do not.
fn is_acronym(word: &str) -> bool {
    ["GPU", "GPUs", "CPU", "CPUs", "SM", "HBM", "PCIe", "NVLink", "NCCL", "ECC", "Xid", "Xids", "TTFT", "KV", "I"]
        .contains(&word)
}

fn may_stand(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, ' ' | '.' | ',' | ';' | ':' | '-' | '_' | '\'' | '(' | ')' | '?' | '/' | '’' | '–' | '%' | '@')
}

fn shown(word: &str) -> String {
    crate::safe_text::value(&word.chars().take(40).collect::<String>())
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '?' | '!' | '"' | '“' | '”' | '–' | '%')
    })
    .map(|word| word.trim_matches(|c: char| matches!(c, '.' | ':' | '\'' | '’' | '`' | '-' | '/')))
    .map(|word| word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word))
    .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    const QUESTION: &str = "Why was training job J4711 slow yesterday at 14:00, above 90 C?";

    fn said(own: &str) -> Result<(), String> {
        static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::new(&Catalogue::builtin().unwrap()));
        check(own, QUESTION, &VOCABULARY, &BTreeSet::from(["thermal_throttling"]))
    }

    #[test]
    fn every_list_is_there() {
        for name in ["numbers", "times", "directions", "totals", "kinds", "after_kinds"] {
            assert!(list(name).len() > 10, "{name}");
        }
    }

    #[test]
    fn plain_words_terms_and_names_of_the_question_may_stand() {
        for own in [
            "The GPU ran hot and throttled its clock, which slows the whole job J4711.",
            "Thermal throttling explains it: the temperature reached  while the peers stayed near .",
            "Job J4711 was slow yesterday because its node waits for the collective.",
        ] {
            assert_eq!(said(own), Ok(()), "{own}");
        }
    }

    #[test]
    fn numbers_times_names_directions_links_and_causes_that_were_not_found_may_not() {
        for own in [
            "It reached ninety degrees",
            "It was 90 there",
            "It was 14:00 then",
            "It ran at half speed",
            "a twenty-one node job",
            "It began at noon",
            "It took hours",
            "Node zeus is to blame",
            "the user bob did it",
            "gpu-alpha ran hot",
            "then Zeus ran hot",
            "The temperature fell",
            "Its clock was higher than that of its peers",
            "There were no errors",
            "All ranks waited",
            "see http //evil",
            "[click](x)",
            "<b>bold</b>",
            "![image](x)",
            "a `command` to run",
            "½ of it",
            "neun\u{200b}zig",
            "девяносто",
            "九十",
            "A data loader bottleneck explains it",
            "memory_leak explains it",
        ] {
            assert!(said(own).is_err(), "{own}");
        }
    }
}

//! Message templates: lines that differ in numbers, names and addresses only are one message.
//!
//! A tree of fixed depth after Drain (He et al., "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017): lines
//! are told apart by their number of words and their first word, then join the template that has the most words in common with
//! them, if that is at least half. What differs becomes a gap. What is obviously a value is masked before that.

mod mask;

use std::collections::HashMap;

use mask::masked;

/// What stands for words that differ.
pub const GAP: &str = "<*>";

/// How lines are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemplateOptions {
    /// The share of equal words from which a line joins a template; Drain's authors use 0.4 to 0.6.
    pub similarity: f64,
    /// So many words of a line are looked at; the rest is one gap.
    pub max_words: usize,
    /// So many templates may share length and first word; what fits none of them after that is one rest.
    pub max_alike: usize,
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self { similarity: 0.5, max_words: 60, max_alike: 100 }
    }
}

/// Finds templates, line by line. The same lines in the same order give the same templates.
#[derive(Clone, Debug, Default)]
pub struct TemplateMiner {
    options: TemplateOptions,
    templates: Vec<Vec<String>>,
    leaves: HashMap<Leaf, Vec<usize>>,
}

/// Where templates stand that a line may join: what the caller tells apart, the number of words, the first word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Leaf {
    group: String,
    words: usize,
    first: String,
}

impl TemplateMiner {
    /// A miner with these options.
    pub fn new(options: TemplateOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The template that a line belongs to, as its place among the templates; places stay. Lines of different groups never share
    /// one: a group is what the caller knows to be different, for example an error code that would be masked as a number.
    pub fn add(&mut self, group: &str, line: &str) -> usize {
        let words = self.words(line);
        let first = words.first().filter(|word| !word.contains('<')).cloned().unwrap_or_default();
        let leaf = self.leaves.entry(Leaf { group: group.to_owned(), words: words.len(), first }).or_default();
        let alike = leaf.iter().filter_map(|place| {
            let share = similarity(self.templates.get(*place)?, &words);
            Some((*place, share))
        });
        let best = alike.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let full = leaf.len() >= self.options.max_alike;
        match best {
            Some((place, share)) if share >= self.options.similarity || full => {
                if let Some(template) = self.templates.get_mut(place) {
                    join(template, &words);
                }
                place
            }
            Some(_) | None => {
                let place = self.templates.len();
                leaf.push(place);
                self.templates.push(words);
                place
            }
        }
    }

    /// The template at that place, as text.
    pub fn template(&self, place: usize) -> Option<String> {
        self.templates.get(place).map(|words| words.join(" "))
    }

    /// How many templates there are.
    pub fn len(&self) -> usize {
        self.templates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    fn words(&self, line: &str) -> Vec<String> {
        let mut words: Vec<String> = masked(line);
        if words.len() > self.options.max_words {
            words.truncate(self.options.max_words);
            words.push(GAP.to_owned());
        }
        words
    }
}

/// The share of words that are equal. A gap is equal to a gap only, as in Drain, so that templates do not swallow everything.
fn similarity(template: &[String], words: &[String]) -> f64 {
    if words.is_empty() {
        return 1.0;
    }
    let equal = template.iter().zip(words).filter(|(a, b)| a == b).count();
    equal as f64 / words.len() as f64
}

fn join(template: &mut [String], words: &[String]) {
    for (there, word) in template.iter_mut().zip(words) {
        if there != word {
            GAP.clone_into(there);
        }
    }
}

#[cfg(test)]
#[path = "templates_tests.rs"]
mod templates_tests;

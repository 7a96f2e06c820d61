//! An entry of the knowledge: something with a name that answers a question, in short passages that can be quoted.

/// The longest passage, characters: what a quotation shows whole.
pub const MAX_PASSAGE: usize = 200;

/// What kind of entry it is; it stands before the name in the entry's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// What to do in a situation.
    Runbook,
    /// A GPU's error code.
    Xid,
    /// A switch's error code.
    Sxid,
    /// A bit of the clock event reasons.
    Throttle,
    /// How a metric misleads.
    Pitfall,
    /// What fits together and what does not.
    Compat,
    /// A log line.
    Line,
    /// A cause of the diagnosis.
    Cause,
    /// A metric of the catalogue.
    Metric,
}

impl EntryKind {
    /// Its name in entry ids.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runbook => "runbook",
            Self::Xid => "xid",
            Self::Sxid => "sxid",
            Self::Throttle => "throttle",
            Self::Pitfall => "pitfall",
            Self::Compat => "compat",
            Self::Line => "line",
            Self::Cause => "cause",
            Self::Metric => "metric",
        }
    }
}

/// What a passage says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What it is.
    Meaning,
    /// What to use or do instead.
    Instead,
    /// What it is good for.
    GoodFor,
    /// How it misleads.
    Misleads,
    /// Whether it is collected.
    Collection,
    /// When it applies.
    When,
    /// What to look at first.
    CheckFirst,
    /// How to tell what it is.
    Decide,
    /// What to do.
    Do,
    /// What to look into afterwards.
    Investigate,
    /// How to see that it worked.
    Verify,
    /// Where that is known from.
    Source,
}

impl Section {
    /// Its name in evidence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Meaning => "meaning",
            Self::Instead => "instead",
            Self::GoodFor => "good for",
            Self::Misleads => "misleads",
            Self::Collection => "collection",
            Self::When => "when",
            Self::CheckFirst => "check first",
            Self::Decide => "decide",
            Self::Do => "do",
            Self::Investigate => "investigate",
            Self::Verify => "verify",
            Self::Source => "source",
        }
    }
}

/// A short text of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What it says.
    pub section: Section,
    /// The text, at most [`MAX_PASSAGE`] characters.
    pub text: String,
}

/// Something that can be looked up and cited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id: kind and name, for example `xid/79` or `runbook/thermal-throttling`.
    pub id: String,
    /// Its kind.
    pub kind: EntryKind,
    /// What it is called.
    pub title: String,
    /// What it says, in the order it is read.
    pub passages: Vec<Passage>,
    /// Words by which it is found besides those in its texts.
    pub keywords: Vec<String>,
    /// The metrics it is about, by canonical id.
    pub metrics: Vec<String>,
    /// The causes it is about.
    pub causes: Vec<String>,
    /// The Xids it is about.
    pub xids: Vec<u32>,
    /// The tenants it is for; empty where it is for everybody.
    pub tenants: Vec<String>,
    /// Whether it came from the site's own folder: as little trusted as telemetry.
    pub of_site: bool,
}

impl Entry {
    /// An entry without passages, of the product's own.
    pub fn new(kind: EntryKind, name: &str, title: &str) -> Self {
        Self {
            id: format!("{}/{name}", kind.as_str()),
            kind,
            title: title.to_owned(),
            passages: Vec::new(),
            keywords: Vec::new(),
            metrics: Vec::new(),
            causes: Vec::new(),
            xids: Vec::new(),
            tenants: Vec::new(),
            of_site: false,
        }
    }

    /// Adds a text, in passages of whole sentences where it is long. An empty text is left out.
    #[must_use]
    pub fn say(mut self, section: Section, text: &str) -> Self {
        for text in sentences(text) {
            self.passages.push(Passage { section, text });
        }
        self
    }

    /// Adds words by which it is found.
    #[must_use]
    pub fn found_by<T: AsRef<str>>(mut self, words: impl IntoIterator<Item = T>) -> Self {
        self.keywords.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }
}

/// A text in passages that are short enough to be quoted: whole sentences as far as they fit, else cut between words.
fn sentences(text: &str) -> Vec<String> {
    let mut passages: Vec<String> = Vec::new();
    let fits = |text: &str| text.chars().count() <= MAX_PASSAGE;
    for sentence in text.split_inclusive(". ").map(str::trim).filter(|s| !s.is_empty()) {
        match passages.last_mut() {
            Some(last) if fits(&format!("{last} {sentence}")) => {
                last.push(' ');
                last.push_str(sentence);
            }
            Some(_) | None if fits(sentence) => passages.push(sentence.to_owned()),
            Some(_) | None => passages.extend(cut(sentence)),
        }
    }
    passages
}

fn cut(sentence: &str) -> Vec<String> {
    let mut parts: Vec<String> = vec![String::new()];
    for word in sentence.split_whitespace() {
        let word: String = word.chars().take(MAX_PASSAGE).collect();
        match parts.last_mut() {
            Some(last) if last.is_empty() => *last = word,
            Some(last) if last.chars().count() + 1 + word.chars().count() <= MAX_PASSAGE => {
                last.push(' ');
                last.push_str(&word);
            }
            Some(_) | None => parts.push(word),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_become_passages_of_whole_sentences() {
        let text = format!("{} one. Two is short. Three.", "word ".repeat(38).trim());
        let passages = sentences(&text);
        assert_eq!(passages.len(), 2, "{passages:?}");
        assert_eq!(passages[1], "Two is short. Three.");
        let endless = "x".repeat(500);
        assert!(sentences(&endless).iter().all(|p| p.chars().count() <= MAX_PASSAGE));
        assert!(sentences("  ").is_empty());
    }
}

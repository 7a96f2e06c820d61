//! Patterns of log lines: words in an order, with named gaps between them.

use std::collections::BTreeMap;

/// The longest text that a gap keeps, bytes: a name or a number, not the rest of a dump.
const MAX_GAP: usize = 120;

/// A pattern, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What must stand there, in lower case, each with the name of the gap before it.
    parts: Vec<(Option<String>, String)>,
    /// The gap after the last word, up to the next white space.
    tail: Option<String>,
}

/// Why a pattern cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternFault {
    /// A brace is not closed, or a gap has no name.
    #[error("a gap is written `{{name}}`")]
    Gap,
    /// There is no word to look for, or two gaps touch.
    #[error("there must be words, and words between gaps")]
    NoWords,
}

impl Pattern {
    /// Reads `words {gap} words`.
    pub(super) fn parse(text: &str) -> Result<Self, PatternFault> {
        let mut parts: Vec<(Option<String>, String)> = Vec::new();
        let mut gap: Option<String> = None;
        let mut rest = text;
        loop {
            let (words, after) = match rest.split_once('{') {
                Some((words, after)) => (words, Some(after)),
                None => (rest, None),
            };
            if !words.is_empty() {
                parts.push((gap.take(), words.to_ascii_lowercase()));
            } else if gap.is_some() && after.is_some() {
                return Err(PatternFault::NoWords);
            }
            let Some(after) = after else { break };
            let (name, tail) = after.split_once('}').ok_or(PatternFault::Gap)?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase()) {
                return Err(PatternFault::Gap);
            }
            gap = Some(name.to_owned());
            rest = tail;
        }
        if parts.is_empty() { Err(PatternFault::NoWords) } else { Ok(Self { parts, tail: gap }) }
    }

    /// What stands in the gaps of a line that fits. `folded` is the line in ASCII lower case, so that places are the same in both.
    pub(super) fn fit(&self, line: &str, folded: &str) -> Option<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        let mut place = 0;
        for (index, (gap, words)) in self.parts.iter().enumerate() {
            let at = place + folded.get(place..)?.find(words.as_str())?;
            if let Some(name) = gap {
                // A gap before the first words reaches back to the white space before it.
                let before = line.get(place..at)?;
                let kept = if index == 0 { before.trim_end().rsplit(char::is_whitespace).next()? } else { before };
                keep(&mut found, name, kept)?;
            }
            place = at + words.len();
        }
        if let Some(name) = &self.tail {
            let rest = line.get(place..)?.trim_start();
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).unwrap_or(rest.len());
            keep(&mut found, name, rest.get(..end)?)?;
        }
        Some(found)
    }
}

fn keep(found: &mut BTreeMap<String, String>, name: &str, text: &str) -> Option<()> {
    (text.len() <= MAX_GAP).then_some(())?;
    found.insert(name.to_owned(), text.trim().to_owned());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &str, line: &str) -> Option<Vec<(String, String)>> {
        let found = Pattern::parse(pattern).unwrap().fit(line, &line.to_ascii_lowercase())?;
        Some(found.into_iter().collect())
    }

    fn pairs(all: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn words_stand_in_order_and_gaps_are_kept() {
        assert_eq!(fit("killed process {pid}", "Out of memory: Killed process 12, UID 3"), pairs(&[("pid", "12")]));
        assert_eq!(fit("server {name} not responding", "nfs: server fs-1 not responding"), pairs(&[("name", "fs-1")]));
        assert_eq!(fit("{device}: link down", "kernel: eth0: Link Down"), pairs(&[("device", "eth0")]));
        assert_eq!(fit("not responding {x}", "responding not"), None);
        assert_eq!(fit("a {x} b {y} c", "c b a"), None);
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        assert_eq!(Pattern::parse(""), Err(PatternFault::NoWords));
        assert_eq!(Pattern::parse("{a}{b} x"), Err(PatternFault::NoWords));
        assert_eq!(Pattern::parse("x {"), Err(PatternFault::Gap));
        assert_eq!(Pattern::parse("x {A}"), Err(PatternFault::Gap));
    }

    #[test]
    fn letters_that_change_length_when_folded_do_not_move_places() {
        assert_eq!(fit("ok {x}", "İİİ OK şş"), pairs(&[("x", "şş")]));
    }
}

//! Everything that can be looked up: the product's own tables and runbooks, and a site's runbooks.

use std::collections::BTreeSet;

use super::entry::{Entry, EntryKind, Section};
use super::runbook::{RunbookFault, parse_runbook, runbooks};
use super::{causes, compat_facts, pitfalls, throttle_bits};
use crate::log_lines::known_lines;
use crate::{sxid, xid};

/// A runbook's file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteRunbook {
    /// The file's name, for messages.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// The entries. Metrics stand in their own catalogue and are looked up beside these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    entries: Vec<Entry>,
}

impl Knowledge {
    /// What ships with the product.
    pub fn builtin() -> Self {
        let mut entries: Vec<Entry> = runbooks().iter().map(super::Runbook::entry).collect();
        entries.extend(xid::all().map(xid_entry));
        entries.extend(sxid::all().map(sxid_entry));
        entries.extend(throttle_bits().iter().map(throttle_entry));
        entries.extend(pitfalls().iter().map(pitfall_entry));
        entries.extend(compat_facts().iter().map(compat_entry));
        entries.extend(known_lines().map(line_entry));
        entries.extend(causes().map(|(id, info)| cause_entry(id, info)));
        Self { entries }
    }

    /// With a site's own runbooks; one with the id of a shipped one takes its place for whoever may see it. What cannot be read is left
    /// out and told.
    #[must_use]
    pub fn with_site(mut self, files: &[SiteRunbook]) -> (Self, Vec<(String, RunbookFault)>) {
        let mut faults = Vec::new();
        for SiteRunbook { file, text } in files {
            match parse_runbook(text) {
                Ok(runbook) => {
                    let entry = Entry { of_site: true, ..runbook.entry() };
                    // Of two that everybody may see the later one is meant; one for some tenants leaves the other to the rest.
                    self.entries
                        .retain(|known| known.id != entry.id || !entry.tenants.is_empty() || !known.tenants.is_empty());
                    self.entries.push(entry);
                }
                Err(fault) => faults.push((file.clone(), fault)),
            }
        }
        (self, faults)
    }

    /// The entries that somebody may see who may read the runbooks of these tenants: what is for everybody, and what is for one of them,
    /// which stands in the place of another with its id.
    pub fn seen_by(&self, tenants: &BTreeSet<String>) -> Vec<&Entry> {
        let mine = |entry: &Entry| entry.tenants.iter().any(|tenant| tenants.contains(tenant));
        let own: BTreeSet<&str> =
            self.entries.iter().filter(|entry| mine(entry)).map(|entry| entry.id.as_str()).collect();
        let seen =
            |entry: &&Entry| if entry.tenants.is_empty() { !own.contains(entry.id.as_str()) } else { mine(entry) };
        self.entries.iter().filter(seen).collect()
    }

    /// Every entry.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that id.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

fn xid_entry(info: &xid::XidInfo) -> Entry {
    let code = info.code.to_string();
    let mut entry = Entry::new(EntryKind::Xid, &code, &format!("Xid {code}"))
        .say(Section::Meaning, &sentence(&info.meaning))
        .say(Section::Do, info.action.as_words())
        .say(Section::Decide, info.origin.as_words())
        .found_by([format!("xid {code}")]);
    if let Some(investigate) = info.investigate {
        entry = entry.say(Section::Investigate, investigate.as_words());
    }
    let source = "NVIDIA Xid catalogue (docs.nvidia.com/deploy/xid-errors), as collected in leptonai/gpud";
    Entry { xids: vec![info.code], ..entry.say(Section::Source, source) }
}

fn sxid_entry(info: &sxid::SxidInfo) -> Entry {
    let code = info.code.to_string();
    Entry::new(EntryKind::Sxid, &code, &format!("SXid {code}"))
        .say(Section::Meaning, &sentence(&info.meaning))
        .say(Section::Do, info.severity.as_words())
        .say(Section::Source, "NVIDIA Fabric Manager user guide, as collected in leptonai/gpud")
        .found_by([format!("sxid {code}"), "nvswitch".to_owned()])
}

fn throttle_entry(bit: &super::ThrottleBit) -> Entry {
    let hex = format!("0x{:x}", bit.value);
    let entry = Entry::new(EntryKind::Throttle, &bit.name, &format!("Throttle bit {hex} ({})", bit.name))
        .say(Section::Meaning, &sentence(&bit.meaning))
        .say(Section::CheckFirst, &bit.check)
        .say(Section::Source, "DCGM field 112 in dcgm_fields.h of NVIDIA/DCGM")
        // Two digits are written as often as one.
        .found_by([hex, format!("0x{:02x}", bit.value), "clock event reason".to_owned(), "throttle reason".to_owned()]);
    Entry { metrics: vec!["clock_event_reasons".to_owned()], ..entry }
}

fn pitfall_entry(pitfall: &super::Pitfall) -> Entry {
    let entry = Entry::new(EntryKind::Pitfall, &pitfall.id, &pitfall.title)
        .say(Section::Meaning, &pitfall.pitfall)
        .say(Section::Instead, &pitfall.instead)
        .say(Section::Source, &pitfall.source)
        .found_by(&pitfall.keywords);
    Entry { metrics: pitfall.metrics.clone(), ..entry }
}

fn compat_entry(fact: &super::CompatFact) -> Entry {
    Entry::new(EntryKind::Compat, &fact.id, &fact.id.replace('-', " "))
        .say(Section::Meaning, &fact.statement)
        .say(Section::Source, &fact.source)
        .found_by([fact.product.replace('_', " ")])
}

fn line_entry(line: &crate::log_lines::KnownLine) -> Entry {
    Entry::new(EntryKind::Line, &line.id, &line.id.replace('-', " "))
        .say(Section::Meaning, &sentence(&line.meaning))
        .say(Section::Do, &line.action)
        .say(Section::Source, &line.source)
        .found_by(&line.patterns)
}

fn cause_entry(id: &str, info: &super::CauseInfo) -> Entry {
    let mut entry = Entry::new(EntryKind::Cause, id, &sentence(&info.title)).found_by([id.replace('_', " ")]);
    entry.passages.push(super::Passage { section: Section::Meaning, text: sentence(&info.title) });
    for step in &info.next_steps {
        entry = entry.say(Section::Do, step);
    }
    Entry { causes: vec![id.to_owned()], ..entry }
}

/// A phrase of a table as a sentence.
fn sentence(phrase: &str) -> String {
    let mut chars = phrase.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let end = if phrase.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::MAX_PASSAGE;

    #[test]
    fn a_tenants_runbook_is_seen_by_those_alone_who_may_read_it_and_leaves_the_shipped_one_to_others() {
        let text = "---\nid: storage\ntitle: Atlas filers\ntenants: atlas\n---\n## Do\n- Call atlas' storage team.\n";
        let files = [SiteRunbook { file: "storage.md".to_owned(), text: text.to_owned() }];
        let (knowledge, faults) = Knowledge::builtin().with_site(&files);
        assert_eq!(faults, []);
        let titles = |tenants: &[&str]| -> Vec<String> {
            let tenants = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
            let seen = knowledge.seen_by(&tenants);
            seen.iter().filter(|entry| entry.id == "runbook/storage").map(|entry| entry.title.clone()).collect()
        };
        assert_eq!(titles(&["atlas", "borealis"]), ["Atlas filers"]);
        assert_eq!((titles(&["borealis"]).len(), titles(&[]).len()), (1, 1));
        assert_ne!(titles(&["borealis"]), ["Atlas filers"]);
        let nobody = SiteRunbook { file: "n.md".to_owned(), text: text.replace("tenants: atlas", "tenants:") };
        assert_eq!(Knowledge::builtin().with_site(&[nobody]).1.len(), 1, "a runbook for nobody is a slip");
    }

    #[test]
    fn every_entry_has_an_id_of_its_own_and_can_be_quoted() {
        let knowledge = Knowledge::builtin();
        let ids: BTreeSet<&str> = knowledge.entries().iter().map(|e| e.id.as_str()).collect();
        assert_eq!(ids.len(), knowledge.entries().len());
        assert!(ids.len() > 200, "{}", ids.len());
        for entry in knowledge.entries() {
            assert!(!entry.passages.is_empty() && !entry.of_site, "{}", entry.id);
            assert!(entry.passages.iter().all(|p| p.text.chars().count() <= MAX_PASSAGE), "{}", entry.id);
        }
        let fell = knowledge.get("xid/79").unwrap();
        assert_eq!(fell.passages[0].text, "The GPU has fallen off the bus: the host cannot reach it any more.");
    }

    #[test]
    fn a_sites_runbook_takes_the_place_of_ours_and_a_broken_one_is_told() {
        let text = "---\nid: storage\ntitle: Our filers\n---\n## Do\n- Call the storage team.\n";
        let files = [
            SiteRunbook { file: "storage.md".to_owned(), text: text.to_owned() },
            SiteRunbook { file: "broken.md".to_owned(), text: "# nothing".to_owned() },
        ];
        let (knowledge, faults) = Knowledge::builtin().with_site(&files);
        let storage = knowledge.get("runbook/storage").unwrap();
        assert_eq!((storage.title.as_str(), storage.of_site), ("Our filers", true));
        assert_eq!(faults, [("broken.md".to_owned(), RunbookFault::NoHead)]);
        assert_eq!(knowledge.entries().len(), Knowledge::builtin().entries().len());
    }
}

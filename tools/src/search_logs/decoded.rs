//! Log lines with what they mean, and the sentences that say it.

use std::collections::{BTreeMap, BTreeSet};

use sightline_diagnosis::{DecodedLine, LineRole, XidLine, XidSource, decode_line, parse_xid_line, xid_origins};
use sightline_model::{Evidence, EvidenceRow, FactPath};

use crate::listing::Listed;
use crate::sentence::{Sentence, at};

/// So many different Xids are named in sentences.
const MAX_XIDS: usize = 4;
/// So many other kinds of known lines are named in sentences.
const MAX_KNOWN: usize = 4;
/// So many origins of a burst of Xids are named in sentences.
const MAX_ORIGINS: usize = 4;

/// Adds what is known of a line.
pub(super) fn decode(row: &mut EvidenceRow) {
    let Some(line) = row.fields.get("body").and_then(|body| decode_line(body)) else { return };
    row.fields.extend(fields(&line));
}

/// What is known of a line, as fields of a row.
pub(super) fn fields(line: &DecodedLine) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::from([("line".to_owned(), line.id.clone())]);
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    let meaning_key = match line.xid.as_ref().map(|xid| xid.source) {
        Some(XidSource::Gpu) => "xid_meaning",
        // A switch's codes are numbered apart from a GPU's.
        Some(XidSource::Switch) => "sxid_meaning",
        None => "meaning",
    };
    put(meaning_key, line.meaning.map(str::to_owned));
    put("action", line.action.map(str::to_owned));
    put("pci", line.pci.map(|(domain, bus, device)| format!("{domain:04x}:{bus:02x}:{device:02x}")));
    put("role", (line.role == LineRole::Consequence).then(|| "consequence".to_owned()));
    if let Some(xid) = &line.xid {
        let key = match xid.source {
            XidSource::Gpu => "xid",
            XidSource::Switch => "sxid",
        };
        put(key, Some(xid.code.to_string()));
        put("caused_by_xid", xid.caused_by.map(|code| code.to_string()));
    }
    fields
}

/// One sentence for each Xid, for each kind of known line, and for the Xids that the others follow from. Only a whole list in time
/// order can say which line was the first.
pub(super) fn told(rows: &Evidence, listed: &Listed, latest: bool) -> Vec<Sentence> {
    let dated = if latest || listed.cut { " at " } else { " first at " };
    let mut sentences = codes(rows, dated, "xid", "Xid ", "xid_meaning");
    sentences.extend(codes(rows, dated, "sxid", "switch error SXid ", "sxid_meaning"));
    sentences.extend(origins(rows));
    sentences.extend(known(rows, dated));
    sentences
}

fn field(rows: &Evidence, row: usize, field: &str) -> sightline_model::FactRef {
    at(&rows.id, FactPath::RowField { row, field: field.to_owned() })
}

fn codes(
    rows: &Evidence,
    dated: &'static str,
    key: &'static str,
    word: &'static str,
    meaning: &'static str,
) -> Vec<Sentence> {
    let mut named = BTreeSet::new();
    let mut sentences = Vec::new();
    for (index, row) in rows.rows.iter().enumerate() {
        let Some(code) = row.fields.get(key) else { continue };
        if sentences.len() == MAX_XIDS || !named.insert(code) {
            continue;
        }
        let mut sentence = Sentence::new()
            .say(word)
            .value(&rows.id, key, code)
            .say(dated)
            .time(at(&rows.id, FactPath::RowTime { row: index }));
        if !row.entity.is_empty() {
            sentence = sentence.say(" on ").entity(&rows.id, &row.entity);
        }
        if let Some(address) = row.fields.get("pci") {
            sentence = sentence.say(", bus address ").value(&rows.id, "pci", address);
        }
        if row.fields.contains_key(meaning) {
            sentence = sentence.say(": ").quote(field(rows, index, meaning));
        }
        sentences.push(sentence);
    }
    sentences
}

/// Where there are Xids that others follow from, on each node, which they are.
fn origins(rows: &Evidence) -> Vec<Sentence> {
    let mut by_node: BTreeMap<Option<&String>, Vec<(usize, XidLine)>> = BTreeMap::new();
    for (index, row) in rows.rows.iter().enumerate() {
        let Some(line) = row.fields.get("body").and_then(|body| parse_xid_line(body)) else { continue };
        by_node.entry(row.entity.get("node")).or_default().push((index, line));
    }
    let mut sentences = Vec::new();
    let mut named = BTreeSet::new();
    for lines in by_node.values() {
        let all: Vec<XidLine> = lines.iter().map(|(_, line)| line.clone()).collect();
        let found = xid_origins(&all);
        let gpus = all.iter().filter(|line| line.source == XidSource::Gpu);
        let differ = gpus.map(|line| (line.code, line.domain, line.bus)).collect::<BTreeSet<_>>().len() > 1;
        if !differ || found.len() == all.len() {
            continue;
        }
        for (index, line) in found.iter().filter_map(|place| lines.get(*place)) {
            let Some(row) = rows.rows.get(*index) else { continue };
            let Some(address) = row.fields.get("pci") else { continue };
            let Some(code) = row.fields.get("xid") else { continue };
            if sentences.len() == MAX_ORIGINS || !named.insert((row.entity.get("node"), line.code, address)) {
                continue;
            }
            let mut sentence = Sentence::new().say("the others follow from Xid ").value(&rows.id, "xid", code);
            sentence = sentence.say(" of the GPU at ").value(&rows.id, "pci", address);
            if let Some(node) = row.entity.get("node") {
                sentence = sentence.say(" of node ").value(&rows.id, "node", node);
            }
            sentences.push(sentence.say(", at ").time(at(&rows.id, FactPath::RowTime { row: *index })));
        }
    }
    sentences
}

/// One sentence for each kind of known line; those that stand where the fault is come first.
fn known(rows: &Evidence, dated: &'static str) -> Vec<Sentence> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, row) in rows.rows.iter().enumerate() {
        if let (Some(id), true) = (row.fields.get("line"), row.fields.contains_key("meaning")) {
            first.entry(id).or_insert(index);
        }
    }
    let mut kinds: Vec<usize> = first.into_values().collect();
    let follows = |index: &usize| rows.rows.get(*index).is_some_and(|row| row.fields.contains_key("role"));
    kinds.sort_by_key(|index| (follows(index), *index));
    let sentence = |index: usize| {
        let mut sentence = Sentence::new().quote(field(rows, index, "meaning")).say(",").say(dated);
        sentence = sentence.time(at(&rows.id, FactPath::RowTime { row: index }));
        if let Some(row) = rows.rows.get(index).filter(|row| !row.entity.is_empty()) {
            sentence = sentence.say(" on ").entity(&rows.id, &row.entity);
        }
        let sentence = sentence.say(": ").quote(field(rows, index, "body"));
        if follows(&index) { sentence.say("; it follows from a fault elsewhere") } else { sentence }
    };
    kinds.into_iter().take(MAX_KNOWN).map(sentence).collect()
}

//! Bytes read as choices: JSON that mostly fits a schema, and cells of a kind. When they run out, every choice is the first.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sightline_model::{Cell, Column, ColumnKind, TimeRange};
use sightline_query::Catalogue;

/// The day that is taken as today, in days since 1970.
pub(crate) const DAY: i64 = 20_576;
/// How deep a made-up value may nest.
const DEPTH: usize = 6;
/// Words that a tool may have a use for.
const WORDS: [&str; 30] = [
    "node",
    "gpu",
    "cluster",
    "job",
    "J123",
    "atlas-n07",
    "3",
    "0",
    "",
    "state",
    "severity",
    "pod",
    "le",
    "host",
    "rank",
    "user",
    "gpu temperature",
    "tenant",
    "borealis",
    "atlas",
    "*",
    "Xid.*79",
    "(",
    "it's",
    "\\",
    "a\tb",
    "node=atlas-n07",
    "kind",
    "error",
    "ünï",
];
const HOSTILE: &str = include_str!("../../../../fixtures/redteam/hostile_values.jsonl");

/// Bytes, read from the front.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    catalogue: &'a Catalogue,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8], catalogue: &'a Catalogue) -> Self {
        Self { rest, catalogue }
    }

    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// A number under `bound`, of one byte; 0 when there are no more bytes.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.next()) % bound.max(1)
    }

    fn one<'b, T>(&mut self, of: &'b [T]) -> Option<&'b T> {
        of.get(self.below(of.len()))
    }

    fn wide(&mut self) -> i64 {
        let bytes = [(); 8].map(|()| self.next());
        i64::from_le_bytes(bytes)
    }

    fn text(&mut self) -> String {
        match self.below(8) {
            0..4 => self.one(&WORDS).copied().unwrap_or_default().to_owned(),
            4 | 5 => self.metric(),
            6 => {
                let at = self.below(27);
                let line: Option<Value> = HOSTILE.lines().nth(at).and_then(|line| serde_json::from_str(line).ok());
                line.as_ref().and_then(|line| line.get("value")?.as_str()).unwrap_or_default().to_owned()
            }
            _ => {
                let length = self.below(24).min(self.rest.len());
                let (text, rest) = self.rest.split_at(length);
                self.rest = rest;
                String::from_utf8_lossy(text).into_owned()
            }
        }
    }

    /// A name of the catalogue.
    fn metric(&mut self) -> String {
        let at = usize::from(self.next()) * 3 + self.below(3);
        let names: Vec<&str> = self.catalogue.metrics().map(|metric| metric.id()).collect();
        names.get(at % names.len().max(1)).copied().unwrap_or_default().to_owned()
    }

    fn number(&mut self) -> f64 {
        match self.below(8) {
            0..4 => f64::from(self.next()),
            4 | 5 => f64::from(self.next()) / 100.0 - 1.0,
            6 => -1e9 * f64::from(self.next()),
            // Any finite number there is.
            _ => Some(f64::from_bits(self.wide() as u64)).filter(|n| n.is_finite()).unwrap_or(0.0),
        }
    }

    fn whole(&mut self) -> i64 {
        match self.below(8) {
            0..6 => i64::from(self.next()),
            6 => i64::from(self.next()) * 60,
            _ => match self.below(4) {
                0 => -1,
                1 => 0,
                _ => self.wide(),
            },
        }
    }

    /// An instant within a fortnight of today, or, seldom, any.
    fn instant(&mut self) -> Timestamp {
        let today = Timestamp::from_second(DAY * 86_400).unwrap_or_default();
        match self.below(16) {
            15 => Timestamp::from_second(self.wide() % 300_000_000_000).unwrap_or(today),
            _ => {
                let minutes = i64::from(self.next()) * 60 + i64::from(self.next()) % 60;
                today.checked_add(SignedDuration::from_mins(720 - minutes)).unwrap_or(today)
            }
        }
    }

    /// A value that fits the schema but for one in some dozen parts of it.
    pub(crate) fn json(&mut self, schema: &Value) -> Value {
        self.part(schema, schema, DEPTH)
    }

    fn part(&mut self, root: &Value, schema: &Value, depth: usize) -> Value {
        if depth == 0 || self.below(48) == 47 {
            return self.anything();
        }
        let below = depth - 1;
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|path| root.pointer(path)).cloned();
            return found.map_or(Value::Null, |found| self.part(root, &found, below));
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            return self.one(choices).cloned().unwrap_or_default();
        }
        if let Some(one) = schema.get("const") {
            return one.clone();
        }
        if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()) {
            let choice = self.one(choices).cloned().unwrap_or_default();
            return self.part(root, &choice, below);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => self.one(kinds).and_then(Value::as_str).unwrap_or_default().to_owned(),
            kind => kind.and_then(Value::as_str).unwrap_or_default().to_owned(),
        };
        match kind.as_str() {
            "string" if schema.get("format").is_some() => json!(self.instant().to_string()),
            "string" => json!(self.text()),
            "integer" => json!(self.whole()),
            "number" => json!(self.number()),
            "boolean" => json!(self.below(2) == 1),
            "array" => {
                let items = schema.get("items").cloned().unwrap_or_default();
                let count = self.below(4);
                (0..count).map(|_| self.part(root, &items, below)).collect()
            }
            "object" => self.object(root, schema, below),
            _ => Value::Null,
        }
    }

    fn object(&mut self, root: &Value, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        // Few arguments make sense with all others, so that most calls have few.
        let one_in = [8, 3, 12, 1][self.below(4)];
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Of a window both ends or none.
            let begun = name.strip_suffix("_to").map(|stem| object.contains_key(&format!("{stem}_from")));
            let is_there = match begun {
                Some(begun) => begun != (self.below(32) == 31),
                None if name.ends_with("_from") => self.below(2) == 1,
                None if required.contains(&json!(name)) => self.below(64) != 63,
                None => self.below(one_in) == one_in - 1,
            };
            if is_there {
                let value = match name.as_str() {
                    "metric" if self.below(8) != 7 => json!(self.metric()),
                    _ => self.part(root, property, depth),
                };
                object.insert(name.clone(), value);
            }
        }
        if self.below(64) == 63 {
            object.insert(self.text(), self.anything());
        }
        // Windows the right way round, as most are.
        for (from, to) in [("from", "to"), ("base_from", "base_to")] {
            if let (Some(Value::String(begins)), Some(Value::String(ends))) = (object.get(from), object.get(to))
                && begins > ends
                && self.below(16) != 15
            {
                let (first, last) = (json!(ends), json!(begins));
                object.insert(from.to_owned(), first);
                object.insert(to.to_owned(), last);
            }
        }
        Value::Object(object)
    }

    fn anything(&mut self) -> Value {
        match self.below(7) {
            0 => Value::Null,
            1 => json!(self.below(2) == 1),
            2 => json!(self.whole()),
            3 => json!(self.number()),
            4 => json!(self.text()),
            5 => json!([self.text()]),
            _ => json!({ "from": self.text(), "x": self.whole() }),
        }
    }

    /// A cell of that column, as the engine could give it for that window; what is no instant but an interval may reach out of it.
    pub(crate) fn cell(&mut self, column: &Column, window: TimeRange, reaches_out: bool) -> Cell {
        if self.below(24) == 23 {
            return Cell::Null;
        }
        match column.kind {
            // No engine counts more rows than there can be.
            ColumnKind::Int if column.name == "count" || column.name == "value" => {
                Cell::Int(i64::from(self.next()) << self.below(32))
            }
            ColumnKind::Text => Cell::Text(self.text().into()),
            ColumnKind::Float => Cell::Float(self.number()),
            ColumnKind::Int => Cell::Int(self.whole()),
            ColumnKind::Time => {
                let part = i64::from(self.next()) * window.millis() / 256;
                let inside = window.from().checked_add(SignedDuration::from_millis(part)).unwrap_or(window.from());
                Cell::Time(if reaches_out && self.below(4) == 3 { self.instant() } else { inside })
            }
            ColumnKind::Labels => {
                let count = self.below(4);
                Cell::Labels((0..count).map(|_| (self.text(), self.text())).collect())
            }
        }
    }
}

/// Some bytes that are the same for the same number.
pub(crate) fn stream(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
    let byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(byte).take(2000).collect()
}

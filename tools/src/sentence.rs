//! Sentences that carry their proof: static words, and slots for everything that was measured or comes from outside.

use std::collections::BTreeMap;

use sightline_model::{
    Comparison, DraftClaim, Entity, EvidenceId, FactPath, FactRef, NumberFormat, NumberSlot, Quantity, Relation, Stat,
    Unit,
};

/// A claim as it is put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sentence {
    text: String,
    slots: BTreeMap<String, NumberSlot>,
    comparisons: Vec<Comparison>,
    citations: Vec<EvidenceId>,
}

impl Sentence {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Words of ours: never text from outside.
    pub(crate) fn say(mut self, words: &'static str) -> Self {
        self.text.push_str(words);
        self
    }

    fn slot(mut self, slot: NumberSlot) -> Self {
        let name = letters(self.slots.len());
        self.text.push('{');
        self.text.push_str(&name);
        self.text.push('}');
        self.slots.insert(name, slot);
        self
    }

    pub(crate) fn number(self, quantity: Quantity, format: NumberFormat) -> Self {
        self.slot(NumberSlot::Number { quantity, format })
    }

    pub(crate) fn time(self, fact: FactRef) -> Self {
        self.slot(NumberSlot::Time(fact))
    }

    pub(crate) fn quote(self, fact: FactRef) -> Self {
        self.slot(NumberSlot::Quote(fact))
    }

    pub(crate) fn value(self, evidence: &EvidenceId, key: &str, value: &str) -> Self {
        self.slot(NumberSlot::Entity { evidence: evidence.clone(), key: key.to_owned(), value: value.to_owned() })
    }

    /// An entity in words, for example `GPU {a} of node {b}`; nothing for an empty one.
    pub(crate) fn entity(mut self, evidence: &EvidenceId, entity: &Entity) -> Self {
        let mut keys: Vec<&String> = entity.keys().collect();
        keys.sort_by_key(|key| (place(key), (*key).clone()));
        for (index, key) in keys.into_iter().enumerate() {
            if index > 0 {
                self = self.say(", ");
            }
            let value = entity.get(key).map_or("", String::as_str);
            self = self.say(word(key)).value(evidence, key, value);
        }
        self
    }

    /// Goes on with the words of another one.
    pub(crate) fn append(mut self, other: Sentence) -> Self {
        let mut text = other.text;
        for (name, slot) in other.slots {
            let own = letters(self.slots.len());
            // Slot names are letters, so that a marked one cannot be another's prefix.
            text = text.replace(&format!("{{{name}}}"), &format!("{{_{own}}}"));
            self.slots.insert(own, slot);
        }
        self.text.push_str(&text.replace("{_", "{"));
        self.comparisons.extend(other.comparisons);
        other.citations.iter().fold(self, |sentence, id| sentence.cite(id))
    }

    pub(crate) fn compare(mut self, left: Quantity, relation: Relation, right: Quantity) -> Self {
        self.comparisons.push(Comparison { left, relation, right });
        self
    }

    pub(crate) fn cite(mut self, evidence: &EvidenceId) -> Self {
        if !self.citations.contains(evidence) {
            self.citations.push(evidence.clone());
        }
        self
    }

    pub(crate) fn finish(self) -> DraftClaim {
        let Self { text, slots, comparisons, citations } = self;
        DraftClaim { text, slots, comparisons, citations }
    }
}

/// The n-th slot name, `a`, `b`, …, `z`, `ba`, …: letters only, as claim text holds no digits.
fn letters(mut n: usize) -> String {
    let mut name = String::new();
    loop {
        let letter = u8::try_from(n % 26).unwrap_or(0);
        name.insert(0, char::from(b'a' + letter));
        n /= 26;
        if n == 0 {
            return name;
        }
    }
}

/// The most telling part of an entity comes first.
fn place(key: &str) -> usize {
    ["job", "rank", "gpu", "node", "model", "service", "pod", "rack", "cluster", "tenant"]
        .iter()
        .position(|known| *known == key)
        .unwrap_or(usize::MAX)
}

/// What stands before an entity's value. Keys may come from outside, so unknown ones are not printed.
fn word(key: &str) -> &'static str {
    match key {
        "job" => "job ",
        "rank" => "rank ",
        "gpu" => "GPU ",
        "node" => "node ",
        "model" => "model ",
        "service" => "service ",
        "pod" => "pod ",
        "rack" => "rack ",
        "cluster" => "cluster ",
        "tenant" => "tenant ",
        "user" => "user ",
        "kind" => "kind ",
        "severity" => "severity ",
        "state" => "state ",
        "metric" => "",
        _ => "label value ",
    }
}

/// A statistic of a series.
pub(crate) fn stat_of(evidence: &EvidenceId, entity: &Entity, stat: Stat) -> Quantity {
    fact(evidence, FactPath::Stat { entity: entity.clone(), stat, within: None })
}

/// A row's value.
pub(crate) fn row_value(evidence: &EvidenceId, row: usize) -> Quantity {
    fact(evidence, FactPath::RowValue { row })
}

/// A place in evidence.
pub(crate) fn at(evidence: &EvidenceId, path: FactPath) -> FactRef {
    FactRef { evidence: evidence.clone(), path }
}

/// A fact as a number.
pub(crate) fn fact(evidence: &EvidenceId, path: FactPath) -> Quantity {
    Quantity::Fact(at(evidence, path))
}

/// A whole number of things.
pub(crate) const WHOLE: NumberFormat = NumberFormat { decimals: 0, unit: Unit::Count, magnitude: false };

/// Three significant digits, or whole numbers from a hundred up: finer than any sensor here, short enough to read.
pub(crate) fn format_for(value: f64, unit: Unit) -> NumberFormat {
    let size = value.abs();
    let decimals = if size >= 100.0 || size == 0.0 || value == value.trunc() {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else if size >= 0.1 {
        3
    } else if size >= 0.01 {
        4
    } else {
        6
    };
    NumberFormat { decimals, unit, magnitude: false }
}

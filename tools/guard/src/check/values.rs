//! Parameters' values read back from the exact text that is sent: the inverse of [`ParamValue::as_text`], strict.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::check::fault::{Fault, FaultKind};
use crate::check::rules::binds;
use crate::param::{ParamType, ParamValue};
use crate::tree::Select;

/// Reads the value of every parameter that the text names.
pub(crate) fn decode(
    select: &Select,
    params: &BTreeMap<String, String>,
) -> Result<Vec<(String, ParamValue)>, Vec<Fault>> {
    let types: BTreeMap<String, ParamType> =
        binds(select).into_iter().map(|bind| (format!("p{}", bind.index), bind.ty)).collect();
    let mut values = Vec::new();
    let mut faults = Vec::new();
    for (name, ty) in &types {
        match params.get(name) {
            None => faults.push(Fault::new(FaultKind::Parameter, format!("parameter `{name}` has no value"))),
            Some(text) => match value(*ty, text) {
                Some(value) => values.push((name.clone(), value)),
                None => {
                    let what = format!("the value of parameter `{name}` is not a {} as it is sent", ty.as_sql());
                    faults.push(Fault::new(FaultKind::Parameter, what));
                }
            },
        }
    }
    for name in params.keys().filter(|name| !types.contains_key(*name)) {
        faults.push(Fault::new(
            FaultKind::Parameter,
            format!("parameter `{name}` is given, and the text does not name it"),
        ));
    }
    if faults.is_empty() { Ok(values) } else { Err(faults) }
}

/// The value in a text of that type.
pub(crate) fn value(ty: ParamType, text: &str) -> Option<ParamValue> {
    match ty {
        ParamType::Text => {
            let mut cursor = Cursor { rest: text };
            let value = cursor.escaped(None)?;
            Some(ParamValue::Text(value))
        }
        ParamType::TextList => {
            let mut cursor = Cursor { rest: text };
            let list = cursor.list(Cursor::quoted)?;
            cursor.end(ParamValue::TextList(list))
        }
        ParamType::PairList => {
            let mut cursor = Cursor { rest: text };
            let list = cursor.list(Cursor::pair)?;
            cursor.end(ParamValue::PairList(list))
        }
        ParamType::Time => time(text),
        ParamType::Number => {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e'));
            let number: f64 = text.parse().ok().filter(|_| is_plain)?;
            number.is_finite().then_some(ParamValue::Number(number))
        }
    }
}

/// `2026-05-03 14:10:00.000`, nothing shorter or longer.
fn time(text: &str) -> Option<ParamValue> {
    if text.len() != "2026-05-03 14:10:00.000".len() {
        return None;
    }
    let civil = DateTime::strptime("%Y-%m-%d %H:%M:%S%.3f", text).ok()?;
    let value = ParamValue::Time(Offset::UTC.to_timestamp(civil).ok()?);
    (value.as_text() == text).then_some(value)
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn eat(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    fn end<T>(&self, value: T) -> Option<T> {
        self.rest.is_empty().then_some(value)
    }

    /// Text up to the closing sign, or to the end where there is none.
    fn escaped(&mut self, closing: Option<char>) -> Option<String> {
        let mut out = String::new();
        loop {
            match self.next() {
                None => return closing.is_none().then_some(out),
                Some(character) if Some(character) == closing => return Some(out),
                Some('\\') => out.push(match self.next()? {
                    '\\' => '\\',
                    '\'' => '\'',
                    '0' => '\0',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    // The engine knows more escapes; we never send them.
                    _ => return None,
                }),
                // These would end the field.
                Some('\0' | '\n' | '\r' | '\t') => return None,
                Some(other) => out.push(other),
            }
        }
    }

    fn quoted(&mut self) -> Option<String> {
        self.eat('\'')?;
        self.escaped(Some('\''))
    }

    fn pair(&mut self) -> Option<(String, String)> {
        self.eat('(')?;
        let first = self.quoted()?;
        self.comma()?;
        let second = self.quoted()?;
        self.eat(')')?;
        Some((first, second))
    }

    /// A comma, with the space that people put behind it.
    fn comma(&mut self) -> Option<()> {
        self.eat(',')?;
        self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
        Some(())
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.eat('[')?;
        let mut items = Vec::new();
        if self.eat(']').is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(']').is_some() {
                return Some(items);
            }
            self.comma()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::value;
    use crate::param::{ParamType, ParamValue};

    #[test]
    fn what_is_sent_is_escaped_once() {
        let text = |text: &str| ParamValue::Text(text.to_owned()).as_text();
        assert_eq!(text(r"a\b"), r"a\\b");
        assert_eq!(text("a\tb\nc\0"), r"a\tb\nc\0");
        let list = ParamValue::TextList(vec!["it's".to_owned(), r"\".to_owned(), String::new()]);
        assert_eq!(list.as_text(), r"['it\'s','\\','']");
        let pairs = ParamValue::PairList(vec![("n1".to_owned(), "0".to_owned())]);
        assert_eq!(pairs.as_text(), "[('n1','0')]");
        let noon = Timestamp::from_millisecond(1_777_896_000_007).unwrap();
        assert_eq!(ParamValue::Time(noon).as_text(), "2026-05-04 12:00:00.007");
        assert_eq!(ParamValue::Number(1e300).as_text(), "1e300");
        assert_eq!(ParamValue::Number(-0.5).as_text(), "-0.5");
    }

    #[test]
    fn what_the_engine_would_read_otherwise_is_refused() {
        for (ty, text) in [
            (ParamType::Text, "a\tb"),
            (ParamType::Text, r"\x41"),
            (ParamType::Text, r"\N"),
            (ParamType::Text, r"\"),
            (ParamType::TextList, "['a' 'b']"),
            (ParamType::TextList, "['a'], 'b'"),
            (ParamType::TextList, "[a]"),
            (ParamType::PairList, "[('a')]"),
            (ParamType::PairList, "[('a','b','c')]"),
            (ParamType::Number, "inf"),
            (ParamType::Number, "nan"),
            (ParamType::Number, "0x1"),
            (ParamType::Number, "1 "),
            (ParamType::Number, "1e999"),
            (ParamType::Time, "1777896000"),
        ] {
            assert_eq!(value(ty, text), None, "{text}");
        }
    }

    fn any_value() -> impl Strategy<Value = ParamValue> {
        let pairs = prop::collection::vec((any::<String>(), any::<String>()), 0..4);
        prop_oneof![
            any::<String>().prop_map(ParamValue::Text),
            prop::collection::vec(any::<String>(), 0..4).prop_map(ParamValue::TextList),
            pairs.prop_map(ParamValue::PairList),
            (0..9_000_000_000_000i64).prop_map(|ms| ParamValue::Time(Timestamp::from_millisecond(ms).unwrap())),
            prop::num::f64::NORMAL.prop_map(ParamValue::Number),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_value_comes_back_from_the_text_that_is_sent(sent in any_value()) {
            prop_assert_eq!(value(sent.ty(), &sent.as_text()), Some(sent));
        }
    }
}

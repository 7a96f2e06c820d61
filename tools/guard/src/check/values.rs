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

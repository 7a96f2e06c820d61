//! Bound parameters: the only way a value travels to the engine.

use jiff::Timestamp;

use crate::literal;

/// The types a parameter may have. Closed: an `Identifier` or an expression in its place is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// One text.
    Text,
    /// A list of texts.
    TextList,
    /// A list of pairs of texts.
    PairList,
    /// An instant, millisecond precision, UTC.
    Time,
    /// A finite number.
    Number,
}

impl ParamType {
    /// Every type.
    pub const ALL: [Self; 5] = [Self::Text, Self::TextList, Self::PairList, Self::Time, Self::Number];

    /// How it is written in SQL.
    pub fn as_sql(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::TextList => "Array(String)",
            Self::PairList => "Array(Tuple(String, String))",
            Self::Time => "DateTime64(3, 'UTC')",
            Self::Number => "Float64",
        }
    }
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// One text.
    Text(String),
    /// A list of texts.
    TextList(Vec<String>),
    /// A list of pairs of texts.
    PairList(Vec<(String, String)>),
    /// An instant; sent with millisecond precision.
    Time(Timestamp),
    /// A finite number.
    Number(f64),
}

impl ParamValue {
    /// Its type.
    pub fn ty(&self) -> ParamType {
        match self {
            Self::Text(_) => ParamType::Text,
            Self::TextList(_) => ParamType::TextList,
            Self::PairList(_) => ParamType::PairList,
            Self::Time(_) => ParamType::Time,
            Self::Number(_) => ParamType::Number,
        }
    }

    /// The exact text sent as `param_<name>`.
    ///
    /// The engine reads a parameter as one field of a tab-separated file: a plain text has backslashes and control characters
    /// escaped once; the texts inside a list are quoted literals instead.
    pub fn as_text(&self) -> String {
        match self {
            Self::Text(text) => literal::field(text),
            Self::TextList(texts) => {
                let items: Vec<String> = texts.iter().map(|text| literal::quoted(text)).collect();
                format!("[{}]", items.join(","))
            }
            Self::PairList(pairs) => {
                let items: Vec<String> =
                    pairs.iter().map(|(a, b)| format!("({},{})", literal::quoted(a), literal::quoted(b))).collect();
                format!("[{}]", items.join(","))
            }
            Self::Time(time) => time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
            // The debug form keeps an exponent where the plain one would print hundreds of digits.
            Self::Number(number) => format!("{number:?}"),
        }
    }
}

/// A bound parameter of an [`crate::ExecutableQuery`].
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    name: String,
    value: ParamValue,
    text: String,
}

impl Param {
    pub(crate) fn new(index: usize, value: ParamValue) -> Self {
        let text = value.as_text();
        Self { name: format!("p{index}"), value, text }
    }

    /// Its name: `p0`, `p1`, …
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type.
    pub fn ty(&self) -> ParamType {
        self.value.ty()
    }

    /// Its value.
    pub fn value(&self) -> &ParamValue {
        &self.value
    }

    /// The exact text sent as `param_<name>`: already escaped, to be put on the wire byte for byte.
    pub fn text(&self) -> &str {
        &self.text
    }
}

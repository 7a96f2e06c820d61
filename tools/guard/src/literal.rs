//! Escaping of text for the engine, complete for every string: nothing inside can end the literal or the field.

/// The text as one field of a tab-separated row.
pub(crate) fn field(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(text, &mut out);
    out
}

/// The text as a single-quoted literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push('\'');
    escape_into(text, &mut out);
    out.push('\'');
    out
}

fn escape_into(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            // A quote is escaped in a plain field too: the engine reads `\'` back as a quote there.
            '\'' => out.push_str("\\'"),
            '\0' => out.push_str("\\0"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
}

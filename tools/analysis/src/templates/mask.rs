//! Masking: numbers, addresses, ids, paths and quoted texts are values, not message.

/// The longest quoted text that is taken for a value, characters; a lone quotation mark is not the beginning of one.
const MAX_QUOTED: usize = 200;

/// The words of a line with their values masked. Control characters and what turns the direction of text are left out.
pub(super) fn masked(line: &str) -> Vec<String> {
    let clean: String = line.chars().filter(|c| c.is_whitespace() || !is_hidden(*c)).collect();
    unquoted(&clean).split_whitespace().map(word).collect()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The line with each quoted text as `<text>`. A quotation mark opens only at the beginning of a word or after `=`, `:` and the like.
fn unquoted(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or("");
        let opens =
            matches!(c, '"' | '\'') && (before.is_whitespace() || matches!(before, '=' | ':' | '(' | '[' | '{' | ','));
        let closed = if opens { after.char_indices().take(MAX_QUOTED).find(|(_, end)| *end == c) } else { None };
        match closed {
            Some((end, _)) => {
                out.push_str("<text>");
                rest = after.get(end + 1..).unwrap_or("");
            }
            None => {
                out.push(c);
                rest = after;
            }
        }
        before = c;
    }
    out
}

/// A word with its value masked; punctuation around it and a key before `=` stay.
fn word(word: &str) -> String {
    if let Some((key, value)) = word.split_once('=')
        && !key.is_empty()
        && !value.is_empty()
    {
        return format!("{key}={}", self::word(value));
    }
    let is_edge =
        |c: char| matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | ':' | '.' | '"' | '\'' | '!' | '?');
    let core = word.trim_matches(is_edge);
    if core.is_empty() {
        return word.to_owned();
    }
    let start = word.find(core).unwrap_or(0);
    let (head, tail) = (word.get(..start).unwrap_or(""), word.get(start + core.len()..).unwrap_or(""));
    format!("{head}{}{tail}", value(core))
}

/// What a word without punctuation is masked as.
fn value(core: &str) -> String {
    if is_path(core) {
        return "<path>".to_owned();
    }
    if is_address(core) {
        return "<address>".to_owned();
    }
    if is_uuid(core) {
        return "<id>".to_owned();
    }
    let mut out = String::with_capacity(core.len());
    let mut run = String::new();
    for c in core.chars() {
        if c.is_alphanumeric() || c == '_' {
            run.push(c);
        } else {
            out.push_str(&token(&run));
            run.clear();
            out.push(c);
        }
    }
    out.push_str(&token(&run));
    // A decimal number is one number, and so is a version.
    while out.contains("<num>.<num>") {
        out = out.replace("<num>.<num>", "<num>");
    }
    out
}

/// `/var/log/x`, `http://host/x`, `a/b/c`; `NET/IB` is a name.
fn is_path(text: &str) -> bool {
    let slashes = text.matches('/').count();
    text.contains("://") || (text.starts_with('/') && text.len() > 1) || slashes >= 2
}

/// Addresses with colons or points: PCI (`0000:91:00.0`, `PCI:0000:0f:00`), MAC, IPv6, a clock, IPv4 with or without a port.
fn is_address(text: &str) -> bool {
    let text = text.strip_prefix("PCI:").unwrap_or(text);
    let is_hex = |part: &str| !part.is_empty() && part.len() <= 8 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let last = text.split_once('.').map_or(text, |(before, _)| before);
    let groups: Vec<&str> = last.split(':').collect();
    if groups.len() >= 3 && groups.iter().all(|part| part.is_empty() || is_hex(part)) {
        return true;
    }
    let host = text.split_once(':').map_or(text, |(host, _)| host);
    let octets: Vec<&str> = host.split('.').collect();
    octets.len() == 4 && octets.iter().all(|part| part.parse::<u8>().is_ok())
}

/// `GPU-b6c3b2be-c55b-d076-fa0e-d464e4c7e08b`, with or without a name before it.
fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.rsplit('-').take(5).collect();
    let lengths = [12, 4, 4, 4, 8];
    parts.len() == 5
        && parts.iter().zip(lengths).all(|(part, n)| part.len() == n && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A run of letters and digits: a number (with its unit), a hexadecimal one, or a name whose number at the end is a value.
fn token(run: &str) -> String {
    let digits = run.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        return run.to_owned();
    }
    let all_hex = run.bytes().all(|b| b.is_ascii_hexdigit());
    if run.starts_with("0x") || (all_hex && run.len() >= 6 && digits < run.len()) {
        return "<hex>".to_owned();
    }
    if run.starts_with(|c: char| c.is_ascii_digit()) {
        let unit = run.trim_start_matches(|c: char| c.is_ascii_digit());
        // `0kB` keeps its unit; `9c` or `3af` is a piece of something hexadecimal.
        let is_unit = unit.len() <= 3 && unit.chars().all(|c| c.is_ascii_alphabetic()) && (unit.is_empty() || !all_hex);
        return if is_unit { format!("<num>{unit}") } else { "<hex>".to_owned() };
    }
    // `GPU5`, `node07`: the name stays. A digit inside a name (`mlx5_core`) belongs to it.
    let name = run.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.len() < run.len() { format!("{name}<num>") } else { run.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_and_words_stay() {
        for (line, expected) in [
            (
                "NVRM: Xid (PCI:0000:91:00): 79, pid=1234, name=python3",
                "NVRM: Xid (<address>): <num>, pid=<num>, name=python<num>",
            ),
            ("NVRM: GPU at PCI:0000:91:00: GPU-b6c3b2be-c55b-d076-fa0e-d464e4c7e08b", "NVRM: GPU at <address>: <id>"),
            ("mlx5_core 0000:9c:00.0: 252.056 Gb/s available", "mlx5_core <address>: <num> Gb/s available"),
            (
                "segfault at 7f797fe00000 ip 00007f7c7ac69996 error 4 in libnccl.so.2",
                "segfault at <hex> ip <hex> error <num> in libnccl.so.<num>",
            ),
            ("opened /var/lib/x for 10.0.0.7:8080 in 12ms", "opened <path> for <address> in <num>ms"),
            ("read \"a b c\" and can't stop", "read <text> and can't stop"),
            ("pid='<unknown>', rss:0kB", "pid=<text>, rss:<num>kB"),
            ("NET/IB : Got completion with error 12", "NET/IB : Got completion with error <num>"),
            ("(0x00041 0xffff)", "(<hex> <hex>)"),
            ("at 12:30:45 on node07", "at <address> on node<num>"),
            ("", ""),
        ] {
            assert_eq!(masked(line).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn what_is_not_seen_is_left_out() {
        assert_eq!(masked("a\u{202e}b\u{7}c \u{200b}d").join(" "), "abc d");
    }
}

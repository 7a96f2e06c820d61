//! Cuts ClickHouse SQL into tokens, so far as the front must understand it: where strings, names and comments end.
//!
//! It works on bytes, since data may follow a query in the same body. Where it cannot be sure that the engine would cut
//! in the same place (comments, heredocs, curly quotes) it says so with a token kind of its own, and the callers refuse
//! rather than guess.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A bare word: keyword, name or function.
    Word,
    /// A name in backticks or double quotes.
    QuotedName,
    /// A string in single quotes.
    Text,
    /// A run of digits, with dots and exponents.
    Number,
    /// One byte of punctuation.
    Punctuation(u8),
    /// A comment of any style.
    Comment,
    /// `$tag$ … $tag$`.
    Heredoc,
    /// A byte outside ASCII, outside any string.
    Foreign,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    /// The bytes of the token in the text that it was cut from.
    pub(super) fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether it is this keyword, in any case.
    pub(super) fn is_word(&self, text: &[u8], word: &str) -> bool {
        self.kind == TokenKind::Word && self.of(text).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether it is this byte of punctuation.
    pub(super) fn is_byte(&self, byte: u8) -> bool {
        self.kind == TokenKind::Punctuation(byte)
    }
}

/// A string, name or comment that does not end.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string, name or comment that begins at byte {0} does not end")]
pub(super) struct Unterminated(pub(super) usize);

/// Gives the tokens of a text one by one.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// All tokens of a text.
    pub(super) fn all(text: &'a [u8]) -> Result<Vec<Token>, Unterminated> {
        let mut lexer = Self::new(text);
        let mut tokens = Vec::new();
        while let Some(token) = lexer.next_token()? {
            tokens.push(token);
        }
        Ok(tokens)
    }

    pub(super) fn next_token(&mut self) -> Result<Option<Token>, Unterminated> {
        while self.byte(self.at).is_some_and(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
            self.at += 1;
        }
        let start = self.at;
        let Some(first) = self.byte(start) else { return Ok(None) };
        let (kind, end) = match first {
            b'\'' => (TokenKind::Text, self.quoted_end(start, first)?),
            b'"' | b'`' => (TokenKind::QuotedName, self.quoted_end(start, first)?),
            b'-' if self.byte(start + 1) == Some(b'-') => (TokenKind::Comment, self.line_end(start)),
            b'#' => (TokenKind::Comment, self.line_end(start)),
            b'/' if self.byte(start + 1) == Some(b'/') => (TokenKind::Comment, self.line_end(start)),
            b'/' if self.byte(start + 1) == Some(b'*') => (TokenKind::Comment, self.block_comment_end(start)?),
            b'$' => self.dollar(start)?,
            byte if byte.is_ascii_digit() => (TokenKind::Number, self.run_end(start, is_number_byte)),
            byte if is_word_byte(byte) => (TokenKind::Word, self.run_end(start, is_word_byte)),
            byte if byte.is_ascii() => (TokenKind::Punctuation(byte), start + 1),
            _ => (TokenKind::Foreign, start + 1),
        };
        self.at = end;
        Ok(Some(Token { kind, start, end }))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn quoted_end(&self, start: usize, quote: u8) -> Result<usize, Unterminated> {
        let mut at = start + 1;
        loop {
            match self.byte(at) {
                None => return Err(Unterminated(start)),
                Some(b'\\') => at += 2,
                Some(byte) if byte == quote && self.byte(at + 1) == Some(quote) => at += 2,
                Some(byte) if byte == quote => return Ok(at + 1),
                Some(_) => at += 1,
            }
        }
    }

    fn line_end(&self, start: usize) -> usize {
        self.run_end(start, |byte| byte != b'\n')
    }

    fn block_comment_end(&self, start: usize) -> Result<usize, Unterminated> {
        let mut depth = 1;
        let mut at = start + 2;
        while depth > 0 {
            match (self.byte(at), self.byte(at + 1)) {
                (None, _) => return Err(Unterminated(start)),
                (Some(b'/'), Some(b'*')) => (depth, at) = (depth + 1, at + 2),
                (Some(b'*'), Some(b'/')) => (depth, at) = (depth - 1, at + 2),
                (Some(_), _) => at += 1,
            }
        }
        Ok(at)
    }

    fn dollar(&self, start: usize) -> Result<(TokenKind, usize), Unterminated> {
        let tag_end = self.run_end(start + 1, |byte| is_word_byte(byte) && byte != b'$');
        if self.byte(tag_end) != Some(b'$') {
            return Ok((TokenKind::Foreign, start + 1));
        }
        let tag = self.text.get(start..=tag_end).unwrap_or_default();
        let rest = self.text.get(tag_end + 1..).unwrap_or_default();
        match rest.windows(tag.len()).position(|window| window == tag) {
            Some(at) => Ok((TokenKind::Heredoc, tag_end + 1 + at + tag.len())),
            None => Err(Unterminated(start)),
        }
    }

    fn run_end(&self, start: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|byte| belongs(**byte)).count()
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_'
}

/// The text of a string token without its quotes and escapes. `None` for an escape that it does not know.
pub(super) fn unquote(token: &[u8]) -> Option<Vec<u8>> {
    let inner = token.get(1..token.len().checked_sub(1)?)?;
    let quote = *token.first()?;
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        let value = match byte {
            b'\\' => match bytes.next()? {
                escaped @ (b'\\' | b'\'' | b'"' | b'`') => escaped,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'0' => 0,
                _ => return None,
            },
            byte if byte == quote => bytes.next()?,
            byte => byte,
        };
        plain.push(value);
    }
    Some(plain)
}

/// A string literal of ClickHouse for any bytes.
pub(crate) fn string_literal(value: &[u8]) -> Vec<u8> {
    let mut literal = Vec::with_capacity(value.len() + 2);
    literal.push(b'\'');
    for byte in value {
        match byte {
            b'\\' => literal.extend_from_slice(b"\\\\"),
            b'\'' => literal.extend_from_slice(b"\\'"),
            0 => literal.extend_from_slice(b"\\0"),
            b'\n' => literal.extend_from_slice(b"\\n"),
            b'\r' => literal.extend_from_slice(b"\\r"),
            b'\t' => literal.extend_from_slice(b"\\t"),
            byte => literal.push(*byte),
        }
    }
    literal.push(b'\'');
    literal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Lexer, TokenKind, Unterminated, string_literal, unquote};

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        let tokens = Lexer::all(text.as_bytes()).unwrap();
        tokens.iter().map(|token| (token.kind, std::str::from_utf8(token.of(text.as_bytes())).unwrap())).collect()
    }

    #[test]
    fn strings_names_and_comments_end_where_the_engine_ends_them() {
        use TokenKind::{Comment, Foreign, Heredoc, Number, Punctuation, QuotedName, Text, Word};
        assert_eq!(
            kinds(r"SELECT 'a\'b''c;' , `d\`e`, 1.5e3 -- x;"),
            vec![
                (Word, "SELECT"),
                (Text, r"'a\'b''c;'"),
                (Punctuation(b','), ","),
                (QuotedName, r"`d\`e`"),
                (Punctuation(b','), ","),
                (Number, "1.5e3"),
                (Comment, "-- x;"),
            ]
        );
        assert_eq!(kinds("/* a /* b */ ; */ x"), vec![(Comment, "/* a /* b */ ; */"), (Word, "x")]);
        assert_eq!(kinds("$t$ a ; $t$"), vec![(Heredoc, "$t$ a ; $t$")]);
        assert_eq!(kinds("# x\n1"), vec![(Comment, "# x"), (Number, "1")]);
        assert_eq!(Lexer::all("‘a".as_bytes()).unwrap()[0].kind, Foreign);
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert_eq!(Lexer::all(b"SELECT 'a\\'"), Err(Unterminated(7)));
        assert_eq!(Lexer::all(b"/* /* */"), Err(Unterminated(0)));
        assert_eq!(Lexer::all(b"$a$ $b$"), Err(Unterminated(0)));
    }

    proptest! {
        #[test]
        fn a_literal_is_one_token_and_decodes_to_the_value(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let literal = string_literal(&value);
            let tokens = Lexer::all(&literal).unwrap();
            prop_assert_eq!(tokens.len(), 1);
            prop_assert_eq!(tokens[0].kind, TokenKind::Text);
            prop_assert_eq!(unquote(&literal), Some(value));
        }

        #[test]
        fn tokens_never_overlap(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tokens) = Lexer::all(&text) {
                let mut last = 0;
                for token in tokens {
                    prop_assert!(last <= token.start && token.start < token.end && token.end <= text.len());
                    last = token.end;
                }
            }
        }
    }
}

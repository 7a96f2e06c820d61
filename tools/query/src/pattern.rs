//! Regular expressions as the engine's RE2 takes them. A pattern is compiled here before it is bound: the engine was seen to
//! match every row for a pattern that does not compile.

use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem};

/// RE2 refuses repetitions above this, those within others multiplied.
const MAX_REPEAT: u32 = 1000;
/// Most Unicode classes, each as often as it is repeated. RE2 took 300 of `\p{L}` and found 900 too large.
const MAX_UNICODE: u64 = 200;
/// The Unicode classes that both engines know by the same name.
const GENERAL_CATEGORIES: [&str; 36] = [
    "C", "Cc", "Cf", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "Cs",
];

/// Checks that a pattern compiles and means the same under RE2, and to the engine, which looks for a text that every match must
/// contain before it asks RE2: it was seen to misread what is refused here for that, and to find nothing or everything.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let tree = ast::parse::Parser::new().parse(pattern).map_err(|e| e.kind().to_string())?;
    let mut walk = Walk::default();
    walk.tree(&tree, 1)?;
    if walk.unicode_classes > MAX_UNICODE {
        return Err(format!("its Unicode classes are repeated too often; {MAX_UNICODE} in all are taken"));
    }
    regex_syntax::Parser::new().parse(pattern).map(|_| ()).map_err(|_| "it does not compile".to_owned())
}

#[derive(Default)]
struct Walk {
    unicode_classes: u64,
}

impl Walk {
    /// `repeats`: how often at most the repetitions around it repeat it.
    fn tree(&mut self, tree: &Ast, repeats: u32) -> Result<(), String> {
        match tree {
            Ast::Empty(_) | Ast::Dot(_) | Ast::ClassPerl(_) => Ok(()),
            Ast::ClassUnicode(class) => self.unicode(class, repeats),
            Ast::Literal(literal) => self::literal(literal),
            Ast::Assertion(assertion) => self::assertion(assertion),
            Ast::Flags(set) => flags(&set.flags),
            Ast::ClassBracketed(class) => self.class_set(&class.kind, repeats),
            Ast::Repetition(repetition) => {
                if matches!(*repetition.ast, Ast::Repetition(_)) {
                    return Err(
                        "a repetition of a repetition is not supported; put `(?:…)` around the first".to_owned()
                    );
                }
                let highest = match &repetition.op.kind {
                    ast::RepetitionKind::Range(
                        ast::RepetitionRange::Exactly(n)
                        | ast::RepetitionRange::AtLeast(n)
                        | ast::RepetitionRange::Bounded(_, n),
                    ) => *n,
                    ast::RepetitionKind::ZeroOrOne
                    | ast::RepetitionKind::ZeroOrMore
                    | ast::RepetitionKind::OneOrMore => 1,
                };
                let repeats = repeats.saturating_mul(highest.max(1));
                if repeats > MAX_REPEAT {
                    return Err(format!("a repetition of {repeats} is too large; at most {MAX_REPEAT} is taken"));
                }
                self.tree(&repetition.ast, repeats)
            }
            Ast::Group(group) => {
                match &group.kind {
                    ast::GroupKind::NonCapturing(set) => flags(set)?,
                    ast::GroupKind::CaptureIndex(_) => {}
                    ast::GroupKind::CaptureName { .. } => {
                        return Err("a group cannot have a name; leave it out".to_owned());
                    }
                }
                self.tree(&group.ast, repeats)
            }
            Ast::Alternation(alternation) => alternation.asts.iter().try_for_each(|part| self.tree(part, repeats)),
            Ast::Concat(concat) => concat.asts.iter().try_for_each(|part| self.tree(part, repeats)),
        }
    }

    fn unicode(&mut self, class: &ast::ClassUnicode, repeats: u32) -> Result<(), String> {
        self.unicode_classes = self.unicode_classes.saturating_add(u64::from(repeats));
        match &class.kind {
            ast::ClassUnicodeKind::OneLetter(letter) => {
                Err(format!("`\\p{letter}` is not supported; write `\\p{{{letter}}}`"))
            }
            ast::ClassUnicodeKind::Named(name) if GENERAL_CATEGORIES.contains(&name.as_str()) => Ok(()),
            ast::ClassUnicodeKind::Named(name) | ast::ClassUnicodeKind::NamedValue { name, .. } => {
                Err(format!("the Unicode class `{name}` is not supported; `\\p{{L}}`, `\\p{{Lu}}` and the like are"))
            }
        }
    }

    fn class_set(&mut self, set: &ClassSet, repeats: u32) -> Result<(), String> {
        match set {
            // RE2 reads `&&`, `--` and `~~` in a class as plain characters: the two engines would disagree.
            ClassSet::BinaryOp(_) => Err("set operations in a character class are not supported".to_owned()),
            ClassSet::Item(item) => self.class_item(item, repeats),
        }
    }

    fn class_item(&mut self, item: &ClassSetItem, repeats: u32) -> Result<(), String> {
        match item {
            // RE2 reads an inner `[` as a plain character.
            ClassSetItem::Bracketed(_) => Err("nested character classes are not supported".to_owned()),
            ClassSetItem::Union(union) => union.items.iter().try_for_each(|item| self.class_item(item, repeats)),
            ClassSetItem::Literal(literal) => class_literal(literal),
            ClassSetItem::Range(range) => {
                class_literal(&range.start)?;
                class_literal(&range.end)
            }
            ClassSetItem::Unicode(class) => self.unicode(class, repeats),
            ClassSetItem::Empty(_) | ClassSetItem::Ascii(_) | ClassSetItem::Perl(_) => Ok(()),
        }
    }
}

fn literal(literal: &ast::Literal) -> Result<(), String> {
    if literal.c == '\0' {
        return Err("a NUL cannot be searched for".to_owned());
    }
    match literal.kind {
        ast::LiteralKind::HexFixed(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong)
        | ast::LiteralKind::HexBrace(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong) => {
            Err("`\\u` is not supported; write `\\x{…}`".to_owned())
        }
        ast::LiteralKind::Verbatim
        | ast::LiteralKind::Meta
        | ast::LiteralKind::Superfluous
        | ast::LiteralKind::Octal
        | ast::LiteralKind::HexFixed(ast::HexLiteralKind::X)
        | ast::LiteralKind::HexBrace(ast::HexLiteralKind::X)
        | ast::LiteralKind::Special(_) => Ok(()),
    }
}

fn class_literal(found: &ast::Literal) -> Result<(), String> {
    if found.c == ']' && found.kind == ast::LiteralKind::Verbatim {
        return Err("a `]` in a character class needs a backslash: `\\]`".to_owned());
    }
    literal(found)
}

fn assertion(assertion: &ast::Assertion) -> Result<(), String> {
    match assertion.kind {
        ast::AssertionKind::StartLine
        | ast::AssertionKind::EndLine
        | ast::AssertionKind::StartText
        | ast::AssertionKind::EndText
        | ast::AssertionKind::WordBoundary
        | ast::AssertionKind::NotWordBoundary => Ok(()),
        ast::AssertionKind::WordBoundaryStart
        | ast::AssertionKind::WordBoundaryEnd
        | ast::AssertionKind::WordBoundaryStartAngle
        | ast::AssertionKind::WordBoundaryEndAngle
        | ast::AssertionKind::WordBoundaryStartHalf
        | ast::AssertionKind::WordBoundaryEndHalf => {
            Err("half word boundaries are not supported; use `\\b`".to_owned())
        }
    }
}

fn flags(set: &ast::Flags) -> Result<(), String> {
    for item in &set.items {
        match item.kind {
            ast::FlagsItemKind::Negation
            | ast::FlagsItemKind::Flag(
                ast::Flag::CaseInsensitive | ast::Flag::MultiLine | ast::Flag::DotMatchesNewLine | ast::Flag::SwapGreed,
            ) => {}
            ast::FlagsItemKind::Flag(ast::Flag::Unicode | ast::Flag::CRLF | ast::Flag::IgnoreWhitespace) => {
                return Err("only the flags i, m, s and U are supported".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_everyday_use_pass() {
        for pattern in [
            "^node-0[0-9]$",
            "Xid.*79",
            "(?i)timeout|refused",
            r"\bNVRM\b",
            r"a{1,3}",
            "[[:alpha:]]+",
            "",
            r"\p{L}{1,200}",
            r"[\p{Lu}\d\]-]",
            "(ab)*?",
            "(?:a{2}){3}",
        ] {
            assert_eq!(check_pattern(pattern), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn patterns_the_engine_reads_otherwise_are_refused() {
        for pattern in
            ["(", "[", "a{1001}", "(?x) a", "[a&&b]", "[a[b]]", r"\u0041", r"\b{start}a", r"(a)\1", "(?=a)", "a{2,1}"]
        {
            assert!(check_pattern(pattern).is_err(), "{pattern}");
        }
    }
    /// Each was seen to match nothing, or everything, where RE2 alone says otherwise.
    #[test]
    fn patterns_that_the_engine_silently_misreads_are_refused() {
        for pattern in ["\0", "a\0b", r"a\x00", r"\pLab", r"[\pL]ab", "(?<n_1>ab)", "(?P<n>ab)", "[]a]b", "[^]a]b"] {
            assert!(check_pattern(pattern).is_err(), "{pattern:?}");
        }
    }

    #[test]
    fn patterns_that_re2_does_not_compile_are_refused() {
        for pattern in [
            "x*{2}",
            "a{2}{3}",
            "a{2}+",
            "a?+",
            "(a{100}){11}",
            "((a{10}){10}){11}",
            r"\p{Letter}",
            r"\p{greek}",
            r"\p{sc=Greek}",
            r"\p{L}{201}",
            r"(\p{L}{100}){10}",
        ] {
            assert!(check_pattern(pattern).is_err(), "{pattern}");
        }
    }
}

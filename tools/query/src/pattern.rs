//! Regular expressions as the engine's RE2 takes them. A pattern is compiled here before it is bound: the engine was seen to
//! match every row for a pattern that does not compile.

use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem};

/// RE2 refuses repetitions above this.
const MAX_REPEAT: u32 = 1000;

/// Checks that a pattern compiles and means the same under RE2.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let tree = ast::parse::Parser::new().parse(pattern).map_err(|e| e.kind().to_string())?;
    walk(&tree)?;
    regex_syntax::Parser::new().parse(pattern).map(|_| ()).map_err(|_| "it does not compile".to_owned())
}

fn walk(tree: &Ast) -> Result<(), String> {
    match tree {
        Ast::Empty(_) | Ast::Dot(_) | Ast::ClassPerl(_) | Ast::ClassUnicode(_) => Ok(()),
        Ast::Literal(literal) => match literal.kind {
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
        },
        Ast::Assertion(assertion) => match assertion.kind {
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
        },
        Ast::Flags(set) => flags(&set.flags),
        Ast::ClassBracketed(class) => class_set(&class.kind),
        Ast::Repetition(repetition) => {
            if let ast::RepetitionKind::Range(range) = &repetition.op.kind {
                let highest = match range {
                    ast::RepetitionRange::Exactly(n) | ast::RepetitionRange::AtLeast(n) => *n,
                    ast::RepetitionRange::Bounded(_, n) => *n,
                };
                if highest > MAX_REPEAT {
                    return Err(format!("a repetition of {highest} is too large; at most {MAX_REPEAT} is taken"));
                }
            }
            walk(&repetition.ast)
        }
        Ast::Group(group) => {
            if let ast::GroupKind::NonCapturing(set) = &group.kind {
                flags(set)?;
            }
            walk(&group.ast)
        }
        Ast::Alternation(alternation) => alternation.asts.iter().try_for_each(walk),
        Ast::Concat(concat) => concat.asts.iter().try_for_each(walk),
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

fn class_set(set: &ClassSet) -> Result<(), String> {
    match set {
        // RE2 reads `&&`, `--` and `~~` in a class as plain characters: the two engines would disagree.
        ClassSet::BinaryOp(_) => Err("set operations in a character class are not supported".to_owned()),
        ClassSet::Item(item) => class_item(item),
    }
}

fn class_item(item: &ClassSetItem) -> Result<(), String> {
    match item {
        // RE2 reads an inner `[` as a plain character.
        ClassSetItem::Bracketed(_) => Err("nested character classes are not supported".to_owned()),
        ClassSetItem::Union(union) => union.items.iter().try_for_each(class_item),
        ClassSetItem::Literal(literal) => walk(&Ast::Literal(Box::new(literal.clone()))),
        ClassSetItem::Range(range) => {
            walk(&Ast::Literal(Box::new(range.start.clone())))?;
            walk(&Ast::Literal(Box::new(range.end.clone())))
        }
        ClassSetItem::Empty(_) | ClassSetItem::Ascii(_) | ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_everyday_use_pass() {
        for pattern in ["^node-0[0-9]$", "Xid.*79", "(?i)timeout|refused", r"\bNVRM\b", r"a{1,3}", "[[:alpha:]]+", ""] {
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
}

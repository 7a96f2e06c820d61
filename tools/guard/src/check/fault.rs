//! What the checker finds wrong.

use std::fmt;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// Too long, too many words, too deep: not parsed at all.
    TooBig,
    /// It does not parse.
    Syntax,
    /// Not one SELECT.
    Statement,
    /// A clause that is no part of the shape.
    Clause,
    /// A table that is not mapped, or not a plain table.
    Relation,
    /// A query within the query.
    Subquery,
    /// `*` or its kin.
    Wildcard,
    /// A name given to something.
    Alias,
    /// A function that is not on the list, or not used as it must be.
    Function,
    /// A column that the table does not have.
    Column,
    /// Text or a number where a parameter must stand.
    Literal,
    /// An expression that has no place there.
    Expression,
    /// The tenant condition is missing or not the first.
    Scope,
    /// The time condition is missing or not as it must be.
    Window,
    /// Grouping or order do not fit the columns.
    Grouping,
    /// The limit is missing or not a plain number.
    Limit,
    /// A parameter is missing, superfluous, of a wrong type or of a wrong value.
    Parameter,
    /// A tenant outside the asker's scope.
    ForeignTenant,
    /// Rows that are not the asker's own, where it may read no others.
    OwnRows,
    /// It could not be checked, and so does not pass.
    Unchecked,
    /// It does not say what was meant, or not in the one way it is written.
    Form,
}

impl FaultKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooBig => "too_big",
            Self::Syntax => "syntax",
            Self::Statement => "statement",
            Self::Clause => "clause",
            Self::Relation => "relation",
            Self::Subquery => "subquery",
            Self::Wildcard => "wildcard",
            Self::Alias => "alias",
            Self::Function => "function",
            Self::Column => "column",
            Self::Literal => "literal",
            Self::Expression => "expression",
            Self::Scope => "scope",
            Self::Window => "window",
            Self::Grouping => "grouping",
            Self::Limit => "limit",
            Self::Parameter => "parameter",
            Self::ForeignTenant => "foreign_tenant",
            Self::OwnRows => "own_rows",
            Self::Unchecked => "unchecked",
            Self::Form => "form",
        }
    }
}

/// One thing wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    what: String,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into() }
    }

    /// Its kind.
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.what)
    }
}

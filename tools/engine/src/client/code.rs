//! From what the `clickhouse` crate reports to what went wrong, by code alone.

use clickhouse::error::Error;
use sightline_guard::{Bounds, EngineError};

/// What went wrong with one request. Holds no text of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The engine said no, with this code.
    Code(i32),
    /// An HTTP answer without an engine's code: a proxy's, or a wrong address.
    Status(u16),
    /// No answer, or the connection broke.
    Connection,
    /// The answer is longer than the cap.
    TooLong,
    /// The answer could not be read.
    Malformed,
}

impl Failure {
    /// Whether the query surely runs no more.
    pub(super) fn engine_has_ended(self) -> bool {
        match self {
            Self::Code(_) | Self::Malformed => true,
            Self::Status(_) | Self::Connection | Self::TooLong => false,
        }
    }

    /// The error for the reader of an answer.
    pub(super) fn into_engine_error(self, bounds: &Bounds) -> EngineError {
        match self {
            // UNKNOWN_ROLE, SET_NON_GRANTED_ROLE, SETTING_CONSTRAINT_VIOLATION: the server's user is not set up for this tenant or bound.
            Self::Code(511 | 512 | 452) => EngineError::NotGranted,
            Self::Code(code) => EngineError::from_code(code, bounds),
            Self::Status(401 | 403) => EngineError::NotGranted,
            Self::Status(_) | Self::Connection => EngineError::Unreachable,
            Self::TooLong => {
                EngineError::ResultTooLarge { rows: bounds.max_result_rows, bytes: bounds.max_result_bytes }
            }
            Self::Malformed => EngineError::Malformed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::BadResponse(text) => from_text(&text),
            Error::Network(_) | Error::TimedOut | Error::InvalidParams(_) | Error::Unsupported(_) => Self::Connection,
            _ => Self::Malformed,
        }
    }
}

/// Reads the code off the beginning of the engine's text, `Code: 158. DB::Exception: …`; nothing else of it is looked at.
fn from_text(text: &str) -> Failure {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i32>().ok()
    };
    if let Some(code) = text.strip_prefix("Code: ").and_then(number) {
        return Failure::Code(code);
    }
    match number(text).and_then(|status| u16::try_from(status).ok()) {
        Some(status) if (100..600).contains(&status) => Failure::Status(status),
        Some(_) | None => Failure::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, from_text};

    #[test]
    fn only_the_code_is_taken_from_an_engine_text() {
        let text = "Code: 158. DB::Exception: Limit for rows exceeded … Code: 60. (TOO_MANY_ROWS)";
        assert_eq!(from_text(text), Failure::Code(158));
    }

    #[test]
    fn an_answer_of_something_else_is_told_by_its_status() {
        assert_eq!(from_text("502 Bad Gateway"), Failure::Status(502));
        assert_eq!(from_text("<html>hello</html>"), Failure::Malformed);
        assert_eq!(from_text("Code: none"), Failure::Malformed);
        assert_eq!(from_text("99999999999 bottles"), Failure::Malformed);
    }
}

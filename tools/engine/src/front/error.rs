//! Errors in the form in which ClickHouse sends them.

use axum::http::StatusCode;

use crate::embedded::ffi::ChdbError;

/// An error of a request, the engine's or the front's own: a code and a text that begins with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct QueryError {
    code: u32,
    text: String,
}

/// The mid-stream form quotes the text in one block, and a longer text helps nobody.
const MAX_TEXT_BYTES: usize = 16 * 1024;

impl QueryError {
    fn own(code: u32, name: &str, message: &str) -> Self {
        Self { code, text: format!("Code: {code}. DB::Exception: {message}. ({name})") }
    }

    pub(super) fn syntax(message: &str) -> Self {
        Self::own(62, "SYNTAX_ERROR", message)
    }

    pub(super) fn bad_argument(message: &str) -> Self {
        Self::own(36, "BAD_ARGUMENTS", message)
    }

    pub(super) fn access(message: &str) -> Self {
        Self::own(497, "ACCESS_DENIED", message)
    }

    pub(super) fn readonly(message: &str) -> Self {
        Self::own(164, "READONLY", message)
    }

    pub(super) fn authentication() -> Self {
        Self::own(516, "AUTHENTICATION_FAILED", "authentication failed: the credentials are those in `engine.json`")
    }

    pub(super) fn too_many_queries(limit: usize) -> Self {
        let message = format!("{limit} queries are running already; try again when one has ended");
        Self::own(202, "TOO_MANY_SIMULTANEOUS_QUERIES", &message)
    }

    pub(super) fn same_id(id: &str) -> Self {
        let message = format!("a query with the id `{id}` is already running");
        Self::own(216, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", &message)
    }

    pub(super) fn response_too_large(limit: u64) -> Self {
        let message = format!("the result is larger than {limit} bytes; ask for less, or read it in parts");
        Self::own(396, "TOO_MANY_ROWS_OR_BYTES", &message)
    }

    pub(super) fn request_too_large(limit: u64) -> Self {
        let message = format!(
            "the request is larger than {limit} bytes; send an INSERT's query in the URL and its data in the body"
        );
        Self::own(307, "TOO_MANY_BYTES", &message)
    }

    pub(super) fn cancelled() -> Self {
        Self::own(394, "QUERY_WAS_CANCELLED", "Query was cancelled")
    }

    pub(super) fn bad_data(message: &str) -> Self {
        Self::own(271, "CANNOT_DECOMPRESS", message)
    }

    pub(super) fn unavailable(message: &str) -> Self {
        Self::own(1002, "UNKNOWN_EXCEPTION", message)
    }

    /// ClickHouse's number for it.
    pub(super) fn code(&self) -> u32 {
        self.code
    }

    /// The HTTP status that goes with it, so far as a client may tell errors apart by it.
    pub(super) fn status(&self) -> StatusCode {
        match self.code {
            516 => StatusCode::FORBIDDEN,
            497 => StatusCode::FORBIDDEN,
            36 | 62 | 271 | 457 => StatusCode::BAD_REQUEST,
            46 | 47 | 60 | 81 | 115 => StatusCode::NOT_FOUND,
            202 => StatusCode::SERVICE_UNAVAILABLE,
            307 => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<ChdbError> for QueryError {
    fn from(ChdbError(mut text): ChdbError) -> Self {
        let mut end = MAX_TEXT_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let code = text
            .strip_prefix("Code: ")
            .and_then(|rest| rest.split_once('.'))
            .and_then(|(code, _)| code.parse().ok())
            .unwrap_or(1002);
        Self { code, text }
    }
}

#[cfg(test)]
mod tests {
    use super::QueryError;
    use crate::embedded::ffi::ChdbError;

    #[test]
    fn the_code_is_read_from_the_engines_text() {
        let error = QueryError::from(ChdbError("Code: 158. DB::Exception: Limit. (TOO_MANY_ROWS)".to_owned()));
        assert_eq!(error.code(), 158);
        assert_eq!(QueryError::from(ChdbError("something".to_owned())).code(), 1002);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let error = QueryError::from(ChdbError(format!("Code: 6. {}", "é".repeat(20_000))));
        assert!(error.to_string().len() <= 16 * 1024);
    }
}

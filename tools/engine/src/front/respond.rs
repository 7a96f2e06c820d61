//! Builds ClickHouse's HTTP responses.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, header};

use crate::embedded::ffi::Counters;

use super::error::QueryError;

const QUERY_ID: HeaderName = HeaderName::from_static("x-clickhouse-query-id");
const FORMAT: HeaderName = HeaderName::from_static("x-clickhouse-format");
const SUMMARY: HeaderName = HeaderName::from_static("x-clickhouse-summary");
const EXCEPTION_CODE: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");
const EXCEPTION_TAG: HeaderName = HeaderName::from_static("x-clickhouse-exception-tag");

/// What the headers of a good response say.
pub(super) struct ResponseHead<'a> {
    pub(super) query_id: &'a str,
    pub(super) format: &'a str,
    pub(super) lz4: bool,
    /// Announces how an error in the middle of the body is marked; `None` when the body is whole already.
    pub(super) exception_tag: Option<&'a str>,
    pub(super) counters: Counters,
    pub(super) elapsed: Duration,
}

/// A response with rows, or with none for a statement that has no result.
pub(super) fn success(head: &ResponseHead<'_>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, content_type(head.format));
    set(QUERY_ID, head.query_id);
    set(FORMAT, head.format);
    set(SUMMARY, &summary(head.counters, head.elapsed));
    if head.lz4 {
        set(header::CONTENT_ENCODING, "lz4");
    }
    if let Some(tag) = head.exception_tag {
        set(EXCEPTION_TAG, tag);
    }
    response
}

/// A response that is an error from its first byte.
pub(super) fn failure(error: &QueryError, query_id: Option<&str>) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{error}\n")));
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    headers.insert(EXCEPTION_CODE, HeaderValue::from(error.code()));
    if let Some(Ok(id)) = query_id.map(HeaderValue::from_str) {
        headers.insert(QUERY_ID, id);
    }
    response
}

/// The block that ends a body whose query failed after its first rows were sent.
pub(super) fn exception_block(error: &QueryError, tag: &str) -> Vec<u8> {
    let message = format!("{error}\n");
    let length = message.len();
    format!("\r\n__exception__\r\n{tag}\r\n{message}{length} {tag}\r\n__exception__\r\n").into_bytes()
}

fn summary(counters: Counters, elapsed: Duration) -> String {
    let Counters { result_rows, result_bytes, read_rows, read_bytes, written_rows, written_bytes } = counters;
    let elapsed_ns = elapsed.as_nanos();
    format!(
        r#"{{"read_rows":"{read_rows}","read_bytes":"{read_bytes}","written_rows":"{written_rows}","written_bytes":"{written_bytes}","result_rows":"{result_rows}","result_bytes":"{result_bytes}","elapsed_ns":"{elapsed_ns}"}}"#
    )
}

fn content_type(format: &str) -> &'static str {
    let lower = format.to_ascii_lowercase();
    if lower.starts_with("json") && lower.contains("eachrow") {
        "application/x-ndjson; charset=UTF-8"
    } else if lower.starts_with("json") {
        "application/json; charset=UTF-8"
    } else if lower.starts_with("csv") {
        "text/csv; charset=UTF-8"
    } else if lower.starts_with("tabseparated") || lower.starts_with("tsv") {
        "text/tab-separated-values; charset=UTF-8"
    } else if ["rowbinary", "native", "parquet", "arrow", "orc", "avro"].iter().any(|name| lower.starts_with(name)) {
        "application/octet-stream"
    } else {
        "text/plain; charset=UTF-8"
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Counters, QueryError, exception_block, summary};

    #[test]
    fn the_exception_block_counts_its_message() {
        let block = exception_block(&QueryError::cancelled(), "0123456789abcdef");
        assert_eq!(
            String::from_utf8(block).unwrap(),
            "\r\n__exception__\r\n0123456789abcdef\r\nCode: 394. DB::Exception: Query was cancelled. (QUERY_WAS_CANCELLED)\n\
             69 0123456789abcdef\r\n__exception__\r\n"
        );
    }

    #[test]
    fn the_summary_holds_numbers_as_text() {
        let counters = Counters { read_rows: 3, read_bytes: 24, result_rows: 1, ..Counters::default() };
        assert_eq!(
            summary(counters, Duration::from_nanos(1500)),
            r#"{"read_rows":"3","read_bytes":"24","written_rows":"0","written_bytes":"0","result_rows":"1","result_bytes":"0","elapsed_ns":"1500"}"#
        );
    }
}

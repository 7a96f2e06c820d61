//! The page: one question box, until there is a dashboard. Assets are in the binary; nothing is loaded from elsewhere.

use axum::http::header;
use axum::response::IntoResponse;

/// `GET /`.
pub(super) async fn index() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], include_str!("../../../web/index.html"))
}

/// `GET /app.js`.
pub(super) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../../../web/app.js"))
}

/// `GET /session.js`.
pub(super) async fn session() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../../../web/session.js"))
}

/// `GET /app.css`.
pub(super) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../../../web/app.css"))
}

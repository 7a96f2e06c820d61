//! Every route of the service, on one page.

use super::route::{Route, Verb};
use super::{audit, chat, conversations, evidence, feedback, health, login, page, tools, usage};

/// The table. What is not in it is not served.
pub fn routes() -> Vec<Route> {
    let page = "the page itself, the same for everybody; it holds no data and asks for a credential";
    let health = "probes have no credential; it says whether the parts work and nothing of what they hold";
    vec![
        Route::public(Verb::Get, "/", page, page::index),
        Route::public(Verb::Get, "/app.js", page, page::script),
        Route::public(Verb::Get, "/session.js", page, page::session),
        Route::public(Verb::Get, "/app.css", page, page::style),
        Route::public(Verb::Get, "/healthz", health, health::healthz),
        Route::public(Verb::Get, "/readyz", health, health::readyz),
        Route::public(Verb::Post, "/login", "the credential is in the body; it is checked there", login::login),
        Route::identified(Verb::Post, "/logout", login::logout),
        Route::identified(Verb::Get, "/v1/session", login::session),
        Route::identified(Verb::Post, "/v1/chat", chat::chat),
        Route::identified(Verb::Delete, "/v1/chat/{question_id}", chat::cancel),
        Route::identified(Verb::Get, "/v1/evidence/{id}", evidence::evidence),
        Route::identified(Verb::Get, "/v1/tools", tools::list),
        Route::identified(Verb::Post, "/v1/tools/{name}", tools::call).with_parameters(),
        Route::identified(Verb::Get, "/v1/conversations", conversations::list).with_parameters(),
        Route::identified(Verb::Delete, "/v1/conversations", conversations::delete_all).with_parameters(),
        Route::identified(Verb::Get, "/v1/conversations/{id}", conversations::open).with_parameters(),
        Route::identified(Verb::Delete, "/v1/conversations/{id}", conversations::delete),
        Route::identified(Verb::Post, "/v1/answers/{id}/feedback", feedback::feedback),
        Route::identified(Verb::Get, "/v1/usage", usage::usage).with_parameters(),
        Route::identified(Verb::Get, "/v1/audit", audit::list).with_parameters(),
        Route::identified(Verb::Post, "/v1/audit/verify", audit::verify),
        Route::identified(Verb::Get, "/v1/audit/{id}", audit::show),
        Route::identified(Verb::Post, "/v1/audit/{id}/replay", audit::replay_question),
    ]
}

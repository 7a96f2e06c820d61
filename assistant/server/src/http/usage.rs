//! `GET /v1/usage`: questions, rows, bytes and tokens by day; one's own, or everybody's for who may see them.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Serialize;
use sightline_audit::{Amounts, UsageLine};
use sightline_model::audit::{EventKind, EventOutcome};
use sightline_policies::Action;

use super::audit::{files, reviewer};
use super::auth::Asker;
use super::problem::Problem;
use super::service::Service;
use crate::review::UsageQuery;

/// What was used.
#[derive(Debug, Serialize)]
pub(super) struct Usage {
    usage: Vec<UsageLine>,
}

/// Handles it. Who names nobody and may see everybody's gets everybody's; who may not gets the own.
pub(super) async fn usage(
    State(service): State<Service>,
    Asker(principal): Asker,
    query: Result<Query<UsageQuery>, QueryRejection>,
) -> Result<Json<Usage>, Problem> {
    let Query(mut query) = query.map_err(|rejection| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the query string cannot be used: {}", rejection.body_text()),
        )
    })?;
    let policies = service.assistant().policies.now();
    let reviewer = reviewer(&service, &principal, &policies);
    let names_others = query.tenant.is_some() || query.principal.as_ref().is_some_and(|who| *who != principal.id);
    let may_see_all = policies.check(&principal, Action::ReadAllUsage, "").allowed();
    if names_others {
        reviewer.may(Action::ReadAllUsage).await?;
    } else if !may_see_all {
        reviewer.may(Action::ReadOwnUsage).await?;
        query.principal = Some(principal.id.clone());
    }
    let filter = query.filter()?;
    // Others' usage is a look into the log like any other.
    if filter.principal.as_ref() != Some(&principal.id) {
        reviewer.write(EventKind::AuditRead, EventOutcome::Done, query.detail()).await?;
    }
    let amounts = if may_see_all { Amounts::Exact } else { Amounts::Rounded };
    let usage = files(&service)?.read(move |reader| Ok(reader.usage(&filter, amounts)?)).await?;
    Ok(Json(Usage { usage }))
}

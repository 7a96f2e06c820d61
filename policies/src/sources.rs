//! From texts to a policy set: all of them, or none.

use crate::error::{Fault, PolicyErrors, Source};
use crate::identity::{self, Identity};
use crate::memo::Memo;
use crate::policies::Policies;
use crate::rules::Rules;
use crate::{limits, principals};

/// The texts of a policy set.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The Cedar schema.
    pub schema: Source<'a>,
    /// The Cedar rules.
    pub rules: &'a [Source<'a>],
    /// The limits of each role, TOML.
    pub limits: Source<'a>,
    /// The principals, TOML.
    pub principals: Source<'a>,
    /// What identity providers and Slack say about people, TOML; none where tokens are all there is.
    pub identity: Option<Source<'a>>,
}

impl Sources<'static> {
    /// The texts that ship with the program.
    pub const SHIPPED: Self = Self {
        schema: Source { name: "schema.cedarschema", text: include_str!("../schema.cedarschema") },
        rules: &[
            Source { name: "rules/viewer.cedar", text: include_str!("../rules/viewer.cedar") },
            Source { name: "rules/operator.cedar", text: include_str!("../rules/operator.cedar") },
            Source { name: "rules/admin.cedar", text: include_str!("../rules/admin.cedar") },
            Source { name: "rules/auditor.cedar", text: include_str!("../rules/auditor.cedar") },
            Source { name: "rules/own_jobs.cedar", text: include_str!("../rules/own_jobs.cedar") },
            Source { name: "rules/usage.cedar", text: include_str!("../rules/usage.cedar") },
        ],
        limits: Source { name: "limits.toml", text: include_str!("../limits.toml") },
        principals: Source { name: "principals.toml", text: include_str!("../principals.toml") },
        identity: None,
    };
}

impl Policies {
    /// The policies that ship with the program.
    pub fn builtin() -> Result<Self, PolicyErrors> {
        Self::from_sources(&Sources::SHIPPED)
    }

    /// The policies of these texts, or everything that is wrong with them, by file and line. All or nothing.
    pub fn from_sources(sources: &Sources<'_>) -> Result<Self, PolicyErrors> {
        let mut faults: Vec<Fault> = Vec::new();
        let rules = Rules::load(sources.schema, sources.rules).map_err(|found| faults.extend(found));
        let limits = limits::parse(sources.limits).map_err(|found| faults.extend(found));
        let principals = principals::parse(sources.principals).map_err(|found| faults.extend(found));
        // Without principals nothing can be said about who is mapped to one.
        let identity = match (sources.identity, &principals) {
            (Some(source), Ok(principals)) => identity::parse(source, principals).map_err(|found| faults.extend(found)),
            (None, Ok(_)) | (_, Err(())) => Ok(Identity::default()),
        };
        let (Ok(rules), Ok(limits), Ok(principals), Ok(identity)) = (rules, limits, principals, identity) else {
            return Err(PolicyErrors::new(faults));
        };
        let policies = Self { rules, limits, principals, identity, memo: Memo::default() };
        let known = policies.tenants();
        let strangers = policies.limits.tenants().filter(|(tenant, _)| !known.contains(*tenant));
        let faults: Vec<Fault> = strangers.map(|(tenant, place)| {
            let what = format!("nobody belongs to the tenant `{tenant}`, so these limits bind nobody; correct its name, or add its principals first");
            sources.limits.fault(Some(place), what)
        }).collect();
        if faults.is_empty() { Ok(policies) } else { Err(PolicyErrors::new(faults)) }
    }
}

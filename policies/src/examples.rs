//! Examples that rules carry, held against the whole set when it is loaded.
//!
//! `@allow("…")` and `@deny("…")` hold examples parted by `;`. One is
//!
//! ```text
//! WHO ACTION [TENANT] [tool=NAME] [job_of=USER]
//! WHO = role, role@tenant[,tenant…], or role@tenant[,tenant…]/user for who may read only the jobs of that user
//! ```
//!
//! for instance `viewer@t read_logs t`. A tenant stands where the action is done to one. What is asked is what the rules say
//! alone: the program's own bounds come on top. An example of a `permit` holds when the set allows it by that rule, or denies it;
//! one of a `forbid` when the set denies it by that rule, or allows it.

use std::collections::BTreeSet;

use sightline_model::Role;

use crate::principals::is_name;
use crate::request::{Action, ResourceKind};
use crate::rules::{Rules, Target, Verdict, Via};

/// Whether a rule permits or forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Permit,
    Forbid,
}

/// What an example says must come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Allow,
    Deny,
}

impl Expected {
    /// The annotation that holds such examples.
    pub(crate) fn annotation(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// One example, in the words of its text.
struct Example<'a> {
    who: &'a str,
    role: Role,
    tenants: BTreeSet<&'a str>,
    jobs_of: Option<&'a str>,
    action: Action,
    tenant: Option<&'a str>,
    tool: &'a str,
    job_of: Option<&'a str>,
}

/// The examples of an annotation, each as it is written.
pub(crate) fn texts(annotation: &str) -> impl Iterator<Item = &str> {
    annotation.split(';').map(str::trim).filter(|text| !text.is_empty())
}

impl Rules {
    /// Holds one example of a rule against the set.
    ///
    /// # Errors
    /// What is wrong with it, or what comes out instead.
    pub(crate) fn hold(&self, rule: &str, effect: Effect, expected: Expected, text: &str) -> Result<(), String> {
        let example = Example::parse(text)?;
        let verdict = self.example_verdict(&example);
        let by_it = |rules: &BTreeSet<String>| rules.contains(rule);
        let holds = match (expected, effect, &verdict) {
            (Expected::Allow, Effect::Permit, Verdict::Permitted(rules)) => by_it(rules),
            (Expected::Allow, Effect::Forbid, Verdict::Permitted(_)) => true,
            (Expected::Deny, Effect::Permit, Verdict::NoRule | Verdict::Forbidden(_)) => true,
            (Expected::Deny, Effect::Forbid, Verdict::Forbidden(rules)) => by_it(rules),
            // A rule that fails denies as well, but not because anybody meant it to.
            (Expected::Allow | Expected::Deny, Effect::Permit | Effect::Forbid, _) => false,
        };
        if holds {
            return Ok(());
        }
        let found = match verdict {
            Verdict::Permitted(rules) => format!("it is allowed by {}", quoted(&rules)),
            Verdict::Forbidden(rules) => format!("it is forbidden by {}", quoted(&rules)),
            Verdict::NoRule => "no rule allows it".to_owned(),
            Verdict::Failed(rules) => format!("{} could not be evaluated", quoted(&rules)),
        };
        let annotation = expected.annotation();
        Err(format!(
            "the example `{text}` in `@{annotation}` of rule `{rule}` does not hold: {found}; correct the rule or the example"
        ))
    }

    fn example_verdict(&self, example: &Example<'_>) -> Verdict {
        let asker = self.asker(example.who, example.role.as_str(), example.tenants.iter().copied(), example.jobs_of);
        let asker = match asker {
            Ok(asker) => asker,
            Err(verdict) => return verdict,
        };
        let target = match (example.action.resource_kind(), example.tenant) {
            (ResourceKind::Tenant, tenant) => Target::Tenant(tenant.unwrap_or_default()),
            (ResourceKind::Assistant, _) => Target::Assistant,
            (ResourceKind::AuditLog, _) => Target::AuditLog,
        };
        self.ask(&asker, example.action, target, Via { tool: example.tool, job_owner: example.job_of })
    }
}

impl<'a> Example<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let fault = |what: String| {
            format!(
                "the example `{text}` {what}; write `WHO ACTION [TENANT] [tool=NAME] [job_of=USER]`, like `viewer@t read_logs t`"
            )
        };
        let mut words = text.split_whitespace();
        let (Some(who), Some(action)) = (words.next(), words.next()) else {
            return Err(fault("is too short".to_owned()));
        };
        let (role, tenants, jobs_of) =
            person(who).ok_or_else(|| fault(format!("begins with `{who}`, which is nobody")))?;
        let action = Action::parse(action).ok_or_else(|| fault(format!("names no action by `{action}`")))?;
        let mut example = Self { who, role, tenants, jobs_of, action, tenant: None, tool: "", job_of: None };
        for word in words {
            match word.split_once('=') {
                Some(("tool", tool)) => example.tool = tool,
                Some(("job_of", user)) => example.job_of = Some(user),
                None if example.tenant.is_none() && is_name(word) => example.tenant = Some(word),
                Some(_) | None => return Err(fault(format!("has `{word}` where that cannot stand"))),
            }
        }
        match (action.resource_kind(), example.tenant, example.job_of) {
            (ResourceKind::Tenant, Some(_), None) => Ok(example),
            (ResourceKind::Tenant, None, _) => Err(fault("needs a tenant".to_owned())),
            (ResourceKind::Tenant, Some(_), Some(_)) if matches!(action, Action::Read(_)) => Ok(example),
            (ResourceKind::Assistant | ResourceKind::AuditLog, None, None) => Ok(example),
            (_, _, Some(_)) => Err(fault("has a job, but only a read can have one".to_owned())),
            (ResourceKind::Assistant | ResourceKind::AuditLog, Some(_), None) => {
                Err(fault("has a tenant, but its action is not done to one".to_owned()))
            }
        }
    }
}

/// The role, tenants and restriction of an example's person.
fn person(who: &str) -> Option<(Role, BTreeSet<&str>, Option<&str>)> {
    let (role, rest) = who.split_once('@').map_or((who, None), |(role, rest)| (role, Some(rest)));
    let role = Role::parse(role)?;
    let (tenants, user) = match rest.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
        None => (BTreeSet::new(), ""),
        Some((tenants, user)) => (tenants.split(',').collect(), user),
    };
    let has_tenants = match role {
        Role::Viewer | Role::Operator => true,
        Role::Admin | Role::Auditor => false,
    };
    let whole = tenants.iter().all(|tenant| is_name(tenant)) && tenants.is_empty() != has_tenants;
    whole.then_some((role, tenants, (!user.is_empty()).then_some(user)))
}

fn quoted(rules: &BTreeSet<String>) -> String {
    let names: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
    names.join(", ")
}

//! A whole policy set, and its decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::decision::{Decision, OwnRows, RowScope};
use crate::identity::{Identity, OidcIssuer};
use crate::limits::{LimitSet, Limits};
use crate::memo::{Memo, Reading};
use crate::principals;
use crate::request::{Action, Request, ResourceKind};
use crate::rules::{Asker, Rules, Target, Verdict, Via};

/// Rules, limits and principals. Guaranteed: all of them were valid, or there is no such value.
#[derive(Debug)]
pub struct Policies {
    pub(crate) rules: Rules,
    pub(crate) limits: LimitSet,
    pub(crate) principals: BTreeMap<String, Principal>,
    pub(crate) identity: Identity,
    pub(crate) memo: Memo,
}

/// The tenant that stands for any when a decision must not depend on which tenants exist.
const ANY_TENANT: &str = "any";

/// The refusal of rows beside own jobs: the same for a job that is somebody else's and for none.
const NOT_ITS_JOB: &str = "it may read only its own jobs; ask about one of them by its id";

/// Roles from the least to the most, for naming whom to ask.
pub(crate) const ROLES: [Role; 4] = [Role::Viewer, Role::Operator, Role::Admin, Role::Auditor];

impl Policies {
    /// Whether a query of a tool may read a dataset, and the rows of which tenants.
    ///
    /// Rules choose among the principal's own tenants (for an admin: the known ones); they cannot add to them. Who may
    /// read own jobs only gets rows that are narrowed to them, whatever the rules say.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let Request { principal, dataset, known_tenants, job, .. } = *request;
        let candidates = match &principal.tenants {
            TenantScope::Only(own) => own,
            TenantScope::All => known_tenants,
        };
        let anew =
            |question: &Reading<'_>| self.memo.decision(request, question, || self.decide_anew(request, question));
        let Some(user) = &principal.jobs_of else {
            return anew(&Reading { candidates, job_owner: job.map(|job| job.user.as_str()) });
        };
        // A job without a user is nobody's, not that of a user without a name.
        let is_somebody = !user.is_empty();
        let tenant_of_job: BTreeSet<String> =
            job.and_then(|job| candidates.get(&job.tenant)).cloned().into_iter().collect();
        let (own, reading) = match job {
            // A user of that name in another tenant is somebody else.
            Some(job) if is_somebody && &job.user == user && !tenant_of_job.is_empty() => {
                let reading = Reading { candidates: &tenant_of_job, job_owner: Some(user) };
                (Some(OwnRows::Job(Arc::clone(job))), reading)
            }
            // Whose it is does not matter, so that nothing of it shows.
            Some(_) => (None, Reading { candidates, job_owner: Some("") }),
            None => {
                let own = (is_somebody && dataset == Dataset::Jobs).then(|| OwnRows::JobsOf { user: user.clone() });
                (own, Reading { candidates, job_owner: None })
            }
        };
        let decision = anew(&reading);
        match own {
            Some(own) => decision.narrowed(own),
            None if decision.allowed() => Decision::deny(Vec::new(), vec![NOT_ITS_JOB.to_owned()]),
            None => decision,
        }
    }

    /// Whether the principal may do this at all; for a read, of some tenant of its own, and for who may read own jobs only,
    /// of a job of its own. It opens no rows.
    pub fn check(&self, principal: &Principal, action: Action, tool: &str) -> Decision {
        let verdict = self.verdict(principal, action, tool);
        match verdict {
            Verdict::Permitted(rules) => {
                let reasons = self.rules.reasons(&rules);
                Decision::allow(rules.into_iter().collect(), reasons)
            }
            Verdict::Forbidden(_) | Verdict::NoRule | Verdict::Failed(_) => {
                self.refuse(principal, action, tool, verdict)
            }
        }
    }

    /// The tenants in which this principal may do that; of one who belongs to every tenant, those that are known.
    pub fn tenants_where(&self, principal: &Principal, action: Action, known: &BTreeSet<String>) -> BTreeSet<String> {
        let candidates = match &principal.tenants {
            TenantScope::Only(own) => own,
            TenantScope::All => known,
        };
        let Ok(asker) = self.asker(principal) else { return BTreeSet::new() };
        let may = |tenant: &&String| {
            let verdict = self.rules.ask(&asker, action, Target::Tenant(tenant), own_job(principal, ""));
            matches!(verdict, Verdict::Permitted(_))
        };
        candidates.iter().filter(may).cloned().collect()
    }

    /// Whether a question of this principal may name this tenant.
    ///
    /// The answer rests on the principal and the name alone, so it is the same whether or not the tenant exists.
    pub fn may_name_tenant(&self, principal: &Principal, tenant: &str) -> Decision {
        let own = match &principal.tenants {
            TenantScope::Only(own) => own.contains(tenant),
            TenantScope::All => true,
        };
        if own {
            let rules = Dataset::ALL.into_iter().filter_map(|dataset| {
                let asker = self.asker(principal).ok()?;
                match self.rules.ask(&asker, Action::Read(dataset), Target::Tenant(tenant), own_job(principal, "")) {
                    Verdict::Permitted(rules) => Some(rules),
                    Verdict::Forbidden(_) | Verdict::NoRule | Verdict::Failed(_) => None,
                }
            });
            let rules: BTreeSet<String> = rules.flatten().collect();
            if !rules.is_empty() {
                let reasons = self.rules.reasons(&rules);
                return Decision::allow(rules.into_iter().collect(), reasons);
            }
        }
        Decision::deny(
            Vec::new(),
            vec![format!("`{}` may not ask about tenant `{tenant}`; {}", principal.id, remedy(principal))],
        )
    }

    /// The bounds of this principal: its role's, or those of its tenants where they have their own.
    ///
    /// Of the two budgets of a day, each is the account's that the principal draws on: a tenant's, if it belongs to one alone.
    pub fn limits(&self, principal: &Principal) -> Limits {
        self.limits.of(principal)
    }

    /// All bounds that somebody may have, listed or not.
    pub fn all_limits(&self) -> Vec<Limits> {
        self.limits.all().cloned().collect()
    }

    /// The principal of this id, if the policy files name it.
    pub fn principal(&self, id: &str) -> Option<Principal> {
        self.principals.get(id).cloned()
    }

    /// Every principal that the policy files name, by id.
    pub fn principals(&self) -> Vec<Principal> {
        self.principals.values().cloned().collect()
    }

    /// The ids of all rules.
    pub fn rules(&self) -> Vec<&str> {
        self.rules.ids().collect()
    }

    /// How many examples the rules carry; all of them hold.
    pub fn examples(&self) -> usize {
        self.rules.examples()
    }

    /// How many users of Slack stand for a principal.
    pub fn slack_users(&self) -> usize {
        self.identity.slack_users.len().saturating_add(self.identity.slack_emails.len())
    }

    /// The identity providers whose tokens are taken.
    pub fn issuers(&self) -> &[OidcIssuer] {
        &self.identity.issuers
    }

    /// The principal that a user of Slack stands for: by its id, else by the address that Slack has verified.
    pub fn principal_of_slack(&self, user_id: &str, verified_email: Option<&str>) -> Option<Principal> {
        self.identity.principal_of_slack(user_id, verified_email)
    }

    /// Every tenant that a principal belongs to or that an identity provider's groups are mapped to.
    pub fn tenants(&self) -> BTreeSet<String> {
        let listed = self.principals.values().flat_map(|principal| match &principal.tenants {
            TenantScope::Only(own) => own.iter().cloned().collect(),
            TenantScope::All => Vec::new(),
        });
        listed.chain(self.identity.issuers.iter().flat_map(OidcIssuer::tenants).map(str::to_owned)).collect()
    }

    fn decide_anew(&self, request: &Request<'_>, reading: &Reading<'_>) -> Decision {
        let Request { principal, tool, dataset, known_tenants: _, job: _ } = *request;
        let Reading { candidates, job_owner } = *reading;
        let action = Action::Read(dataset);
        let via = Via { tool, job_owner };
        let asker = match self.asker(principal) {
            Ok(asker) => asker,
            Err(verdict) => return self.refuse(principal, action, tool, verdict),
        };
        let mut permitted = BTreeSet::new();
        let mut permitting = BTreeSet::new();
        let mut refusal = Verdict::NoRule;
        for tenant in candidates {
            match self.rules.ask(&asker, action, Target::Tenant(tenant), via) {
                Verdict::Permitted(rules) => {
                    permitted.insert(tenant.clone());
                    permitting.extend(rules);
                }
                // A rule that fails on one tenant may be the one that was to forbid another.
                verdict @ Verdict::Failed(_) => return self.refuse(principal, action, tool, verdict),
                verdict @ (Verdict::Forbidden(_) | Verdict::NoRule) => refusal = verdict,
            }
        }
        match RowScope::new(permitted) {
            Some(scope) => {
                let reasons = self.rules.reasons(&permitting);
                Decision::allow_rows(permitting.into_iter().collect(), reasons, scope)
            }
            None if candidates.is_empty()
                && principal.tenants == TenantScope::All
                && self.may(principal, action, tool) =>
            {
                Decision::deny(
                    Vec::new(),
                    vec!["no tenant has any rows yet, so there is nothing to read; load data first".to_owned()],
                )
            }
            None => self.refuse(principal, action, tool, refusal),
        }
    }

    fn asker(&self, principal: &Principal) -> Result<Asker, Verdict> {
        let tenants: Vec<&str> = match &principal.tenants {
            TenantScope::Only(own) => own.iter().map(String::as_str).collect(),
            TenantScope::All => Vec::new(),
        };
        self.rules.asker(&principal.id, principal.role.as_str(), tenants, principal.jobs_of.as_deref())
    }

    fn may(&self, principal: &Principal, action: Action, tool: &str) -> bool {
        matches!(self.verdict(principal, action, tool), Verdict::Permitted(_))
    }

    /// What the rules say without regard to which tenants exist.
    fn verdict(&self, principal: &Principal, action: Action, tool: &str) -> Verdict {
        let asker = match self.asker(principal) {
            Ok(asker) => asker,
            Err(verdict) => return verdict,
        };
        let via = match action {
            Action::Read(_) => own_job(principal, tool),
            _ => Via { tool, job_owner: None },
        };
        match action.resource_kind() {
            ResourceKind::Assistant => self.rules.ask(&asker, action, Target::Assistant, via),
            ResourceKind::AuditLog => self.rules.ask(&asker, action, Target::AuditLog, via),
            ResourceKind::Tenant => {
                let any = BTreeSet::from([ANY_TENANT.to_owned()]);
                let candidates = match &principal.tenants {
                    TenantScope::Only(own) => own,
                    TenantScope::All => &any,
                };
                let mut last = Verdict::NoRule;
                for tenant in candidates {
                    last = self.rules.ask(&asker, action, Target::Tenant(tenant), via);
                    if matches!(last, Verdict::Permitted(_) | Verdict::Failed(_)) {
                        break;
                    }
                }
                last
            }
        }
    }

    /// A denial in words: the rule that forbids, or which rule is missing and whom to ask.
    fn refuse(&self, principal: &Principal, action: Action, tool: &str, verdict: Verdict) -> Decision {
        let (rules, reasons) = match verdict {
            Verdict::Forbidden(rules) => {
                let reasons = self.rules.reasons(&rules);
                (rules, reasons)
            }
            Verdict::Failed(rules) => {
                let names: Vec<String> = rules.iter().map(|rule| format!("rule `{rule}`")).collect();
                let what = if names.is_empty() { "the request".to_owned() } else { names.join(", ") };
                (
                    rules,
                    vec![format!("{what} could not be evaluated, so nothing is allowed; run `sightline policy check`")],
                )
            }
            Verdict::NoRule | Verdict::Permitted(_) => {
                let missing = format!("no rule lets role `{}` {}", principal.role.as_str(), action.words());
                let reason = match self.lowest_role_that_may(action, tool) {
                    Some(role) => format!("{missing}; ask {} {}", article(role), role.as_str()),
                    None => format!("{missing}, nor any other role; an admin can add one"),
                };
                (BTreeSet::new(), vec![reason])
            }
        };
        Decision::deny(rules.into_iter().collect(), reasons)
    }

    fn lowest_role_that_may(&self, action: Action, tool: &str) -> Option<Role> {
        ROLES.into_iter().find(|&role| self.may(&principals::bundle_principal(role, ANY_TENANT), action, tool))
    }
}

/// As if the call had resolved to a job of the principal's own, where that is what it may read.
fn own_job<'a>(principal: &'a Principal, tool: &'a str) -> Via<'a> {
    Via { tool, job_owner: principal.jobs_of.as_deref() }
}

fn article(role: Role) -> &'static str {
    match role {
        Role::Viewer => "a",
        Role::Operator | Role::Admin | Role::Auditor => "an",
    }
}

/// What this principal may ask about instead.
fn remedy(principal: &Principal) -> String {
    match &principal.tenants {
        TenantScope::Only(own) if own.is_empty() => format!("role `{}` reads no tenant", principal.role.as_str()),
        TenantScope::Only(own) => {
            let names: Vec<String> = own.iter().map(|tenant| format!("`{tenant}`")).collect();
            format!("it reads {} only", names.join(", "))
        }
        TenantScope::All => format!("no rule lets role `{}` read it", principal.role.as_str()),
    }
}

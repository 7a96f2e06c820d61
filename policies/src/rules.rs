//! The Cedar rules: loading them, and asking them one thing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::str::FromStr;

use cedar_policy::{
    Authorizer, Context, Decision as CedarDecision, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy,
    PolicyId, PolicySet, Request as CedarRequest, RestrictedExpression, Schema, ValidationMode, ValidationWarning,
    Validator,
};
use miette::Diagnostic;

use crate::error::{Fault, Source};
use crate::examples::{self, Effect, Expected};
use crate::request::{Action, ResourceKind};

/// What an action is done to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Tenant(&'a str),
    Assistant,
    AuditLog,
}

/// What a request came through, as the rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Via<'a> {
    /// The tool; empty where there is none.
    pub(crate) tool: &'a str,
    /// Whose the job is that a read resolved to.
    pub(crate) job_owner: Option<&'a str>,
}

/// Who asks, as the rules see it.
pub(crate) struct Asker {
    user: EntityUid,
    entities: Entities,
}

/// What the rules said, with the ids of those that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Rules permit it and none forbids it.
    Permitted(BTreeSet<String>),
    /// Rules forbid it.
    Forbidden(BTreeSet<String>),
    /// No rule matches.
    NoRule,
    /// A rule, or the question to the rules, could not be evaluated. A deny.
    Failed(BTreeSet<String>),
}

/// Where each rule stands: its text, and the byte it begins at.
type Places<'a> = BTreeMap<String, (Source<'a>, Option<usize>)>;

/// A validated set of rules. Guaranteed: every rule has an id, a reason and examples that hold, passes the schema and can match.
#[derive(Debug)]
pub(crate) struct Rules {
    authorizer: Authorizer,
    set: PolicySet,
    actions: Vec<Entity>,
    reasons: BTreeMap<String, String>,
    types: Types,
}

/// The entity types that this crate speaks of.
#[derive(Debug)]
struct Types {
    action: EntityTypeName,
    user: EntityTypeName,
    role: EntityTypeName,
    tenant: EntityTypeName,
    assistant: EntityTypeName,
    audit_log: EntityTypeName,
}

impl Rules {
    /// The rules of these texts, or everything that is wrong with them.
    pub(crate) fn load(schema_source: Source<'_>, rule_sources: &[Source<'_>]) -> Result<Self, Vec<Fault>> {
        let (schema, _warnings) = Schema::from_cedarschema_str(schema_source.text)
            .map_err(|error| vec![schema_source.fault(offset(&error), words(&error))])?;
        let types = Types::new().map_err(|what| vec![schema_source.fault(None, what)])?;
        let actions = schema
            .action_entities()
            .map_err(|error| vec![schema_source.fault(None, error.to_string())])?
            .iter()
            .cloned()
            .collect();

        let mut faults = Vec::new();
        let mut set = PolicySet::new();
        let mut reasons = BTreeMap::new();
        let mut sources: Places<'_> = BTreeMap::new();
        for &source in rule_sources {
            for (offset, policy) in parse(source, &mut faults) {
                let (Some(id), Some(reason)) = (annotated(&policy, "id"), annotated(&policy, "reason")) else {
                    faults.push(
                        source.fault(offset, "a rule needs `@id(\"…\")` and `@reason(\"…\")`; add what is missing"),
                    );
                    continue;
                };
                if let Err(error) = set.add(policy.new_id(PolicyId::new(id))) {
                    faults.push(source.fault(offset, format!("{error}; give every rule an id of its own")));
                    continue;
                }
                reasons.insert(id.to_owned(), reason.to_owned());
                sources.insert(id.to_owned(), (source, offset));
            }
        }

        let validation = Validator::new(schema.clone()).validate(&set, ValidationMode::Strict);
        let mut report = |rule: &PolicyId, at: Option<usize>, what: String| {
            let (source, rule_offset) = sources.get(rule_text(rule)).copied().unwrap_or((schema_source, None));
            faults.push(source.fault(at.or(rule_offset), what));
        };
        for error in validation.validation_errors() {
            report(error.policy_id(), offset(error), words(error));
        }
        // What an error already explains needs no second word about the same rule.
        let explained: HashSet<&PolicyId> = validation.validation_errors().map(|error| error.policy_id()).collect();
        for warning in validation.validation_warnings().filter(|warning| !explained.contains(warning.policy_id())) {
            report(warning.policy_id(), offset(warning), warning_words(warning));
        }

        let rules = Self { authorizer: Authorizer::new(), set, actions, reasons, types };
        rules.check_actions(schema_source, &schema, &mut faults);
        // Only a set that is otherwise whole can say what it allows.
        if faults.is_empty() {
            rules.check_examples(&sources, &mut faults);
        }
        if faults.is_empty() { Ok(rules) } else { Err(faults) }
    }

    /// The asker of this id, in this role and these tenants.
    pub(crate) fn asker<'a>(
        &self,
        id: &str,
        role: &str,
        tenants: impl IntoIterator<Item = &'a str>,
        jobs_of: Option<&str>,
    ) -> Result<Asker, Verdict> {
        let user = uid(&self.types.user, id);
        let attributes = HashMap::from([
            ("own_jobs_only".to_owned(), RestrictedExpression::new_bool(jobs_of.is_some())),
            ("jobs_of".to_owned(), RestrictedExpression::new_string(jobs_of.unwrap_or_default().to_owned())),
        ]);
        let parents: HashSet<EntityUid> = tenants
            .into_iter()
            .map(|tenant| uid(&self.types.tenant, tenant))
            .chain([uid(&self.types.role, role)])
            .collect();
        let entity =
            Entity::new(user.clone(), attributes, parents).map_err(|_error| Verdict::Failed(BTreeSet::new()))?;
        let entities = Entities::from_entities(self.actions.iter().cloned().chain([entity]), None)
            .map_err(|_error| Verdict::Failed(BTreeSet::new()))?;
        Ok(Asker { user, entities })
    }

    /// What the rules say to this action of this asker. Any error is a deny.
    pub(crate) fn ask(&self, asker: &Asker, action: Action, target: Target<'_>, via: Via<'_>) -> Verdict {
        let Ok(request) = self.request(asker.user.clone(), action, target, via, None) else {
            return Verdict::Failed(BTreeSet::new());
        };
        let response = self.authorizer.is_authorized(&request, &self.set, &asker.entities);
        let diagnostics = response.diagnostics();
        let failed: Vec<&PolicyId> = diagnostics
            .errors()
            .map(|error| match error {
                cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id(),
            })
            .collect();
        if !failed.is_empty() {
            return Verdict::Failed(failed.into_iter().map(|rule| rule_text(rule).to_owned()).collect());
        }
        let rules: BTreeSet<String> = diagnostics.reason().map(|rule| rule_text(rule).to_owned()).collect();
        match response.decision() {
            CedarDecision::Allow => Verdict::Permitted(rules),
            CedarDecision::Deny if rules.is_empty() => Verdict::NoRule,
            CedarDecision::Deny => Verdict::Forbidden(rules),
        }
    }

    /// The reasons of these rules, in their order.
    pub(crate) fn reasons(&self, rules: &BTreeSet<String>) -> Vec<String> {
        rules.iter().filter_map(|rule| self.reasons.get(rule)).cloned().collect()
    }

    /// The ids of the rules.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }

    /// How many examples they carry.
    pub(crate) fn examples(&self) -> usize {
        let of = |policy: &Policy| -> usize {
            let texts = [Expected::Allow, Expected::Deny].map(Expected::annotation);
            texts.into_iter().filter_map(|key| annotated(policy, key)).map(|text| examples::texts(text).count()).sum()
        };
        self.set.policies().map(of).sum()
    }

    fn request(
        &self,
        user: EntityUid,
        action: Action,
        target: Target<'_>,
        via: Via<'_>,
        schema: Option<&Schema>,
    ) -> Result<CedarRequest, String> {
        let resource = match target {
            Target::Tenant(name) => uid(&self.types.tenant, name),
            Target::Assistant => uid(&self.types.assistant, "sightline"),
            Target::AuditLog => uid(&self.types.audit_log, "sightline"),
        };
        let Via { tool, job_owner } = via;
        let text = |name: &str, value: &str| (name.to_owned(), RestrictedExpression::new_string(value.to_owned()));
        let pairs = std::iter::once(text("tool", tool)).chain(job_owner.map(|owner| text("job_owner", owner)));
        let context = Context::from_pairs(pairs).map_err(|error| error.to_string())?;
        let action = uid(&self.types.action, action.id());
        CedarRequest::new(user, action, resource, context, schema).map_err(|error| error.to_string())
    }

    /// Every rule must carry examples, and each must hold.
    fn check_examples(&self, places: &Places<'_>, faults: &mut Vec<Fault>) {
        for policy in self.set.policies() {
            let rule = rule_text(policy.id());
            let Some(&(source, rule_offset)) = places.get(rule) else { continue };
            let (effect, needed): (_, &[Expected]) = match policy.effect() {
                cedar_policy::Effect::Permit => (Effect::Permit, &[Expected::Allow, Expected::Deny]),
                cedar_policy::Effect::Forbid => (Effect::Forbid, &[Expected::Deny]),
            };
            for expected in [Expected::Allow, Expected::Deny] {
                let annotation = expected.annotation();
                let mut examples = annotated(policy, annotation).into_iter().flat_map(examples::texts).peekable();
                if examples.peek().is_none() && needed.contains(&expected) {
                    let what = format!(
                        "rule `{rule}` has no example in `@{annotation}(\"…\")`; write one, like `viewer@t read_logs t`"
                    );
                    faults.push(source.fault(rule_offset, what));
                }
                for text in examples {
                    if let Err(what) = self.hold(rule, effect, expected, text) {
                        // The first place of that text after the rule begins: in the rule, as it stands there.
                        let begin = rule_offset.unwrap_or(0);
                        let at = source
                            .text
                            .get(begin..)
                            .and_then(|rest| rest.find(text))
                            .map(|at| begin.saturating_add(at));
                        faults.push(source.fault(at.or(rule_offset), what));
                    }
                }
            }
        }
    }

    /// Every action that this crate asks about must stand in the schema, applied to what it is asked with.
    fn check_actions(&self, source: Source<'_>, schema: &Schema, faults: &mut Vec<Fault>) {
        for action in Action::all() {
            let target = match action.resource_kind() {
                ResourceKind::Tenant => Target::Tenant("any"),
                ResourceKind::Assistant => Target::Assistant,
                ResourceKind::AuditLog => Target::AuditLog,
            };
            if let Err(error) = self.request(uid(&self.types.user, "any"), action, target, Via::default(), Some(schema))
            {
                let what = format!("{error}; declare `{}` as the schema that ships with the program does", action.id());
                faults.push(source.fault(None, what));
            }
        }
    }
}

impl Types {
    fn new() -> Result<Self, String> {
        let parse = |name: &str| EntityTypeName::from_str(name).map_err(|error| error.to_string());
        Ok(Self {
            action: parse("Action")?,
            user: parse("User")?,
            role: parse("Role")?,
            tenant: parse("Tenant")?,
            assistant: parse("Assistant")?,
            audit_log: parse("AuditLog")?,
        })
    }
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn rule_text(rule: &PolicyId) -> &str {
    rule.as_ref()
}

/// The rules of one text, each with the byte it begins at.
fn parse(source: Source<'_>, faults: &mut Vec<Fault>) -> Vec<(Option<usize>, Policy)> {
    let parsed = match PolicySet::from_str(source.text) {
        Ok(parsed) => parsed,
        Err(errors) => {
            faults.extend(errors.iter().map(|error| source.fault(offset(error), words(error))));
            return Vec::new();
        }
    };
    if parsed.templates().next().is_some() {
        faults.push(source.fault(None, "a rule with `?principal` or `?resource` is a template; write the rule out"));
    }
    let mut policies: Vec<_> = parsed
        .policies()
        .map(|policy| (policy.to_cedar().and_then(|text| source.text.find(&text)), policy.clone()))
        .collect();
    policies.sort_by_key(|(offset, _)| *offset);
    policies
}

fn annotated<'a>(policy: &'a Policy, key: &str) -> Option<&'a str> {
    policy.annotation(key).filter(|text| !text.trim().is_empty())
}

/// Where a Cedar diagnostic points.
fn offset(diagnostic: &dyn Diagnostic) -> Option<usize> {
    diagnostic.labels().and_then(|mut labels| labels.next()).map(|label| label.offset())
}

/// A Cedar diagnostic in one line, with what it expected and its help.
fn words(diagnostic: &dyn Diagnostic) -> String {
    let expected =
        diagnostic.labels().and_then(|mut labels| labels.next()).and_then(|label| label.label().map(str::to_owned));
    let help = diagnostic.help().map(|help| help.to_string());
    std::iter::once(diagnostic.to_string()).chain(expected).chain(help).collect::<Vec<_>>().join("; ")
}

fn warning_words(warning: &ValidationWarning) -> String {
    match warning {
        ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) => format!(
            "rule `{}` can never match; rows are decided by tenant, so the resource of a read is a `Tenant`; the schema says which other actions go with the `Assistant` and the `AuditLog`",
            rule_text(warning.policy_id())
        ),
        _ => words(warning),
    }
}

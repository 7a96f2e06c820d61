//! `sightline policy`: who may do what, without asking anything of an engine.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use sightline_model::{Dataset, Principal, TenantScope};
use sightline_policies::{Action, JobRows, JwksSource, Policies, Request, Source, Sources};

use super::{CommandError, failed};
use crate::config::Config;
use crate::identity::read_key_file;
use crate::output;
use crate::policies::PolicyFiles;

/// What `explain` is asked about.
#[derive(Clone, Debug)]
pub struct Explain {
    /// The principal.
    pub principal: String,
    /// The tool it calls.
    pub tool: Option<String>,
    /// What it does instead of reading.
    pub action: Option<String>,
    /// The dataset that the tool reads; each of them when none.
    pub dataset: Option<String>,
    /// Whose rows; those of all its tenants when none.
    pub tenant: Option<String>,
    /// Whose the job is that the call is about.
    pub job_of: Option<String>,
}

/// Reads the policies as the service would and prints what was read, or every fault.
///
/// # Errors
/// When anything is wrong with them.
pub fn check(config: &Config, dir: Option<PathBuf>) -> Result<(), CommandError> {
    let read = PolicyFiles::read(folder(config, dir).as_deref());
    let checked = read.and_then(|files| files.policies().map(|policies| (files, policies)));
    let (files, policies) = match checked {
        Ok(checked) => checked,
        Err(error) => {
            for fault in &error.faults {
                output::result(&fault.to_string()).map_err(failed)?;
            }
            let count = error.faults.len();
            let faults = if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") };
            return Err(CommandError::Failed(format!("{faults}; nothing of it would be taken")));
        }
    };
    let found = |part: &str| match part {
        "rules" => format!("{} rules, {} examples hold", policies.rules().len(), policies.examples()),
        "limits" => format!("{} sets of bounds", policies.all_limits().len()),
        "principals" => {
            format!("{} principals, {} tenants", policies.principals().len(), policies.tenants().len())
        }
        _ => format!("{} issuers, {} users of Slack", policies.issuers().len(), policies.slack_users()),
    };
    for (part, origin) in files.origins() {
        output::result(&format!("ok  {part:<10}  {}  ({origin})", found(part))).map_err(failed)?;
    }
    let faults = key_file_faults(&policies);
    for fault in &faults {
        output::result(fault).map_err(failed)?;
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Failed(
            "the policies can be taken, but who comes from these providers could not log in".to_owned(),
        ))
    }
}

/// The providers' key files that this user, here and now, cannot read keys from.
fn key_file_faults(policies: &Policies) -> Vec<String> {
    let files = policies.issuers().iter().filter_map(|issuer| match &issuer.jwks {
        JwksSource::File(path) => Some((issuer, path)),
        JwksSource::Url(_) => None,
    });
    files
        .filter_map(|(issuer, path)| {
            let why = read_key_file(path).err()?;
            Some(format!(
                "identity.toml: the `jwks_file` `{}` of `{}` cannot be used: {why}; put the provider's key set there",
                path.display(),
                issuer.issuer
            ))
        })
        .collect()
}

/// Prints the matrix for the tools of this program.
///
/// # Errors
/// When the policies cannot be used.
pub fn matrix(config: &Config, dir: Option<PathBuf>, tenant: &str) -> Result<(), CommandError> {
    let policies = load(config, dir)?;
    output::result(&policies.matrix(&tools(), tenant)).map_err(failed)
}

/// Prints the decision on what is asked about, with the rule or with whom to ask.
///
/// # Errors
/// When the policies cannot be used, or something is asked about that there is not.
pub fn explain(config: &Config, dir: Option<PathBuf>, question: &Explain) -> Result<(), CommandError> {
    let policies = load(config, dir)?;
    let principal = policies.principal(&question.principal).ok_or_else(|| {
        let what = format!("there is no principal `{}`; {}", question.principal, super::ask::listed(&policies));
        CommandError::Usage(what)
    })?;
    for line in explained(&policies, &principal, question)? {
        output::result(&line).map_err(failed)?;
    }
    Ok(())
}

/// Writes the shipped files into a folder.
///
/// # Errors
/// When a file of a policy set is there already, or one cannot be written.
pub fn init(dir: &Path) -> Result<(), CommandError> {
    let Sources { schema: _, rules, limits, principals, identity: _ } = Sources::SHIPPED;
    let files: Vec<Source<'static>> = rules.iter().copied().chain([limits, principals]).collect();
    let taken =
        ["rules", limits.name, principals.name].map(|name| dir.join(name)).into_iter().find(|path| path.exists());
    if let Some(taken) = taken {
        return Err(CommandError::Failed(format!("`{}` is there already; choose a new folder", taken.display())));
    }
    std::fs::create_dir_all(dir.join("rules")).map_err(|error| unwritten(dir, &error))?;
    for file in files {
        let path = dir.join(file.name);
        let mut new = std::fs::File::create_new(&path).map_err(|error| unwritten(&path, &error))?;
        new.write_all(file.text.as_bytes()).map_err(|error| unwritten(&path, &error))?;
    }
    output::result(&format!(
        "wrote {}: put your own people into principals.toml, run `sightline policy check --dir {0}`, then set `policies.dir`",
        dir.display()
    ))
    .map_err(failed)
}

fn unwritten(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::Failed(format!("`{}` cannot be written: {error}", path.display()))
}

fn folder(config: &Config, dir: Option<PathBuf>) -> Option<PathBuf> {
    dir.or_else(|| config.policies_dir.clone())
}

fn load(config: &Config, dir: Option<PathBuf>) -> Result<Policies, CommandError> {
    PolicyFiles::read(folder(config, dir).as_deref()).and_then(|files| files.policies()).map_err(failed)
}

/// The names of the program's tools.
fn tools() -> Vec<&'static str> {
    sightline_tools::registry::tools().iter().map(|tool| tool.name()).collect()
}

fn explained(policies: &Policies, principal: &Principal, question: &Explain) -> Result<Vec<String>, CommandError> {
    let tool = match &question.tool {
        None => "",
        Some(name) => one_of("tool", name, tools().into_iter().map(|tool| (tool, tool)))?,
    };
    if let Some(action) = &question.action {
        // Reads are asked about by tool and dataset.
        let others = Action::all().filter(|action| !matches!(action, Action::Read(_)));
        let action = one_of("action", action, others.map(|action| (action.id(), action)))?;
        return Ok(vec![policies.check(principal, action, tool).to_string()]);
    }
    let names: Vec<(String, Dataset)> =
        Dataset::ALL.into_iter().map(|dataset| (dataset.to_string(), dataset)).collect();
    let datasets = match &question.dataset {
        None => Dataset::ALL.to_vec(),
        Some(name) => vec![one_of("dataset", name, names.iter().map(|(name, dataset)| (name.as_str(), *dataset)))?],
    };
    if let Some(tenant) = &question.tenant {
        let may = policies.may_name_tenant(principal, tenant);
        if !may.allowed() {
            return Ok(vec![may.to_string()]);
        }
    }
    // One tenant: the same principal, narrowed to it.
    let narrowed = match (&question.tenant, &principal.tenants) {
        (Some(tenant), TenantScope::Only(_)) => {
            Principal { tenants: TenantScope::Only(BTreeSet::from([tenant.clone()])), ..principal.clone() }
        }
        (Some(_), TenantScope::All) | (None, _) => principal.clone(),
    };
    let known_tenants = question.tenant.clone().map_or_else(|| policies.tenants(), |tenant| BTreeSet::from([tenant]));
    let job = question.job_of.as_deref().map(|user| job(user, &narrowed, &known_tenants));
    let alone = datasets.len() == 1;
    let lines = datasets.into_iter().map(|dataset| {
        let request = Request { principal: &narrowed, tool, dataset, known_tenants: &known_tenants, job: job.as_ref() };
        let decision = policies.decide(&request);
        if alone { decision.to_string() } else { format!("{:<9} {decision}", dataset.to_string()) }
    });
    Ok(lines.collect())
}

/// A job of this user, in a tenant that the principal may read.
fn job(user: &str, principal: &Principal, known_tenants: &BTreeSet<String>) -> Arc<JobRows> {
    let tenants = match &principal.tenants {
        TenantScope::Only(own) => own,
        TenantScope::All => known_tenants,
    };
    Arc::new(JobRows {
        job_id: String::new(),
        cluster: String::new(),
        user: user.to_owned(),
        tenant: tenants.first().cloned().unwrap_or_default(),
        slots: BTreeSet::new(),
        from: Timestamp::UNIX_EPOCH,
        to: Timestamp::UNIX_EPOCH,
    })
}

/// What is called this, or which names there are.
fn one_of<'a, T>(kind: &str, name: &str, all: impl Iterator<Item = (&'a str, T)>) -> Result<T, CommandError> {
    let mut names = Vec::new();
    for (candidate, value) in all {
        if candidate == name {
            return Ok(value);
        }
        names.push(format!("`{candidate}`"));
    }
    Err(CommandError::Usage(format!("there is no {kind} `{name}`; there are {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::test_keys;

    #[test]
    fn a_key_file_that_is_not_there_or_holds_no_keys_is_a_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.json");
        let policies = test_keys::policies(&format!("jwks_file = \"{}\"", file.display()));
        let faults = || key_file_faults(&policies).join("\n");
        assert!(faults().contains("No such file"), "{}", faults());
        std::fs::write(&file, "no JSON").unwrap();
        assert!(faults().contains("it is no key set"), "{}", faults());
        std::fs::write(&file, "{\"keys\": []}").unwrap();
        assert!(faults().contains("it has no key for"), "{}", faults());
        let keys = serde_json::json!({ "keys": [test_keys::Pair::ec().jwk("a")] });
        std::fs::write(&file, keys.to_string()).unwrap();
        assert_eq!(faults(), "");
        let by_url = test_keys::policies("jwks_url = \"https://login.example.com/keys\"");
        assert!(key_file_faults(&by_url).is_empty());
    }
}

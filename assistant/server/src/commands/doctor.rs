//! `sightline doctor`: what is missing on this machine, one line a check, each with what to do.

use sightline_audit::{AuditKey, AuditReader, Check, Copied, Report as AuditReport, Verdict};
use sightline_engine::{AdminSql, FenceUnproved, Proof};
use sightline_guard::{Bounds, Mapping};
use sightline_policies::{Limits, Policies};
use sightline_query::Catalogue;

use super::engine::library;
use super::{CommandError, failed, model};
use crate::config::{Config, DEFAULT_USER, LlmSettings, PlannerChoice};
use crate::policies::{PolicyFiles, PolicyFilesError};
use crate::site_folder::SiteFolder;
use crate::stations::{Data, OWN_DATABASE, OpenError, Stations};
use crate::{audit_copies, audit_log, output};

/// Runs every check and prints its outcome.
///
/// # Errors
/// When at least one check found something wrong.
pub async fn doctor(config: &Config) -> Result<(), CommandError> {
    let mut report = Report::default();
    report.say("policies", policies(config).map(|p| format!("{} principals", p.principals().len())));
    report.say("catalogue", Catalogue::builtin().map(|c| format!("{} metrics", c.metrics().count())));
    report.say("site", site(config));
    match &config.clickhouse {
        Some(server) => report.ok("engine", &format!("a ClickHouse of your own at {}", server.url)),
        None => report.say("library", library(config).find().map(|path| path.display().to_string())),
    }
    let mut copies = None;
    // A model that is named is looked at, whichever planner answers today.
    let planner = if config.llm.is_some() { PlannerChoice::Llm } else { config.planner };
    match Stations::open(&Config { planner, ..config.clone() }, Data::Own).await {
        Ok(stations) => {
            match (&stations.model, &config.llm) {
                (Some(planner), Some(LlmSettings(settings))) => {
                    let at = format!("{} at {}", settings.model, settings.base_url);
                    report.say("model", model::probed(planner).await.map(|can| format!("{at} {can}")));
                }
                (None, _) | (_, None) => report.ok("model", "none is named; the built-in planner answers"),
            }
            report.say("engine answers", stations.assistant.engine.ready().await.map(|()| "yes".to_owned()));
            report.ok("tenants with rows", &format!("{}", stations.assistant.tenants.len()));
            report.proofs(&stations.proofs);
            copies = Some(audit_copies::copied(config, stations.writer.as_ref()).await);
            stations.close().await;
        }
        Err(OpenError::Fence(FenceUnproved { proofs })) => report.proofs(&proofs),
        Err(error) => report.bad("engine", &error.to_string()),
    }
    let copies = match copies {
        Some(copies) => copies,
        None => audit_copies::copied(config, None).await,
    };
    audit(config, copies, &mut report);
    report.end()
}

/// Prints what an administrator runs on a ClickHouse of one's own: a role for each of these tenants, or for those that principals
/// belong to.
///
/// # Errors
/// When the shipped policies are broken, or nothing can be printed.
pub fn admin_sql(config: &Config, tenants: Vec<String>) -> Result<(), CommandError> {
    let policies = policies(config).map_err(failed)?;
    let tenants = if tenants.is_empty() { policies.tenants() } else { tenants.into_iter().collect() };
    let server = config.clickhouse.as_ref();
    let mapping = Mapping::native(server.map_or(OWN_DATABASE, |server| &server.database)).map_err(failed)?;
    let widest = widest(&policies);
    let user = server.map_or(DEFAULT_USER, |server| &server.user);
    let sql = AdminSql { user, mapping: &mapping, tenants: &tenants, widest: &widest };
    output::result(sql.script().trim_end()).map_err(failed)
}

/// The site's own words and runbooks.
fn site(config: &Config) -> Result<String, String> {
    let Some(dir) = config.site_dir.as_deref() else {
        return Ok("no words or runbooks of your own; `site.dir` names a folder of them".to_owned());
    };
    let catalogue = Catalogue::builtin().map_err(|error| error.to_string())?;
    let folder = SiteFolder::read(dir).map_err(|error| error.to_string())?;
    let own = folder.own(&catalogue).map_err(|error| error.to_string())?;
    Ok(format!("{} phrases, {} runbooks of your own", own.words.phrases(), folder.runbooks()))
}

fn policies(config: &Config) -> Result<Policies, PolicyFilesError> {
    PolicyFiles::read(config.policies_dir.as_deref())?.policies()
}

/// The widest bounds of any principal: the server's own limit for the user as whom all of them read.
fn widest(policies: &Policies) -> Bounds {
    let limits: Vec<Limits> = policies.all_limits();
    let most = |bound: fn(&Limits) -> u64| limits.iter().map(bound).max().unwrap_or_default();
    Bounds {
        max_rows_to_read: most(|limits| limits.max_rows_read),
        max_bytes_to_read: most(|limits| limits.max_bytes_read),
        max_memory_usage: most(|limits| limits.max_memory_bytes),
        max_execution_seconds: most(|limits| limits.max_seconds),
        // A text asks for one row more than a reader gets, to know whether there are more.
        max_result_rows: most(|limits| limits.max_result_rows).saturating_add(1),
        max_result_bytes: most(|limits| limits.max_result_bytes),
        force_primary_key: true,
    }
}

fn audit(config: &Config, copies: Vec<Result<Copied, String>>, report: &mut Report) {
    if config.audit_key_file.is_none() {
        report.ok("audit key", "lies in the data folder; set `audit.key_file` to a place the service cannot write, so that the log proves more");
    }
    if let Ok(Some(key)) = AuditKey::load(&audit_log::key_file(config)) {
        report.ok("audit public key", &key.public().to_string());
    }
    let mut readable = Vec::new();
    for copy in copies {
        match copy {
            Ok(copied) => readable.push(copied),
            Err(what) => report.bad("audit copy", &what),
        }
    }
    match verified(config, &readable) {
        Ok(AuditReport { verdict: broken @ Verdict::Broken(_), .. }) => report.bad("audit log", &broken.to_string()),
        Ok(whole) => {
            report.ok("audit log", &whole.verdict.to_string());
            if whole.unproved.is_empty() {
                report.ok("audit copies", &format!("{} checkpoints of second places fit", whole.compared));
            } else {
                report.bad("audit copies", &whole.unproved.join("; "));
            }
            for note in &whole.notes {
                let place = note.seq.map_or_else(String::new, |seq| format!("record {seq}: "));
                report.ok("audit note", &format!("{place}{}", note.what));
            }
        }
        Err(error) => report.bad("audit log", &error),
    }
}

fn verified(config: &Config, copies: &[Copied]) -> Result<AuditReport, String> {
    let file = audit_log::key_file(config);
    let key = AuditKey::load(&file).map_err(|error| error.to_string())?;
    let key = key.ok_or_else(|| format!("key file `{}` is not there", file.display()))?.public();
    let reader = AuditReader::open(&audit_log::path(config)).map_err(|error| error.to_string())?;
    reader.examine(&Check { key: &key, copies, now: None }).map_err(|error| error.to_string())
}

#[derive(Default)]
struct Report {
    faults: usize,
    unprinted: bool,
}

impl Report {
    fn ok(&mut self, check: &str, what: &str) {
        self.print(&format!("ok    {check}: {what}"));
    }

    fn bad(&mut self, check: &str, what: &str) {
        self.faults += 1;
        self.print(&format!("WRONG {check}: {what}"));
    }

    fn proofs(&mut self, proofs: &[Proof]) {
        for Proof { claim, outcome } in proofs {
            match outcome {
                Ok(()) => self.ok("second fence", claim),
                Err(fault) => self.bad("second fence", &format!("not shown that {claim}: {fault}")),
            }
        }
    }

    fn say<E: std::fmt::Display>(&mut self, check: &str, result: Result<String, E>) {
        match result {
            Ok(what) => self.ok(check, &what),
            Err(error) => self.bad(check, &error.to_string()),
        }
    }

    fn print(&mut self, line: &str) {
        self.unprinted |= output::result(line).is_err();
    }

    fn end(self) -> Result<(), CommandError> {
        if self.unprinted {
            return Err(failed(std::io::Error::other("the report could not be printed")));
        }
        match self.faults {
            0 => Ok(()),
            1 => Err(CommandError::Failed("one thing is wrong; see above".to_owned())),
            n => Err(CommandError::Failed(format!("{n} things are wrong; see above"))),
        }
    }
}

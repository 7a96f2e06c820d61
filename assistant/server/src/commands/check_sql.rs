//! `sightline check-sql`: the guard's checker on text from outside, one JSON line in, one out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read as _};

use serde::{Deserialize, Serialize};
use sightline_guard::{Mapping, check_sql};
use sightline_model::TenantScope;

use super::{CommandError, failed};
use crate::config::Config;
use crate::output;
use crate::policies::PolicyFiles;

/// Longest line taken, bytes: a text with many parameters, and a cap all the same.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// One line of input; other keys are ignored, so that a corpus with remarks can be piped in as it is.
#[derive(Deserialize)]
struct Input {
    id: String,
    sql: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Output {
    id: String,
    verdict: &'static str,
    reasons: Vec<String>,
}

/// Reads lines until the end, and writes a verdict for each. Runs on a thread of its own: a checker never shares its stack.
///
/// # Errors
/// When the principal is unknown or the input cannot be read. A text that is rejected is no error.
pub fn check(
    config: &Config,
    input: Box<dyn BufRead + Send>,
    principal: &str,
    database: &str,
) -> Result<(), CommandError> {
    let policies =
        PolicyFiles::read(config.policies_dir.as_deref()).and_then(|files| files.policies()).map_err(failed)?;
    let mapping = Mapping::native(database).map_err(failed)?;
    let principal = policies.principal(principal).ok_or_else(|| {
        CommandError::Usage(format!("there is no principal `{principal}`; {}", super::ask::listed(&policies)))
    })?;
    let tenants = match principal.tenants {
        TenantScope::Only(tenants) => tenants,
        // An admin's scope is what exists, and here nothing is asked of an engine.
        TenantScope::All => policies.tenants(),
    };
    let checker = std::thread::Builder::new().name("check-sql".to_owned());
    let worker = checker.spawn(move || lines(input, &mapping, &tenants)).map_err(failed)?;
    worker.join().map_err(|_| CommandError::Failed("the checker failed; report the text that did it".to_owned()))?
}

fn lines(
    mut input: Box<dyn BufRead + Send>,
    mapping: &Mapping,
    tenants: &BTreeSet<String>,
) -> Result<(), CommandError> {
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(());
        }
        if line.len() >= MAX_LINE {
            return Err(CommandError::Failed(format!(
                "a line has over {MAX_LINE} bytes; split the input into smaller lines"
            )));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let verdict = verdict(&line, mapping, tenants);
        output::result(&serde_json::to_string(&verdict).map_err(failed)?).map_err(failed)?;
    }
}

fn verdict(line: &[u8], mapping: &Mapping, tenants: &BTreeSet<String>) -> Output {
    let input: Input = match serde_json::from_slice(line) {
        Ok(input) => input,
        Err(error) => {
            let reason = format!("not a line of {{id, sql, params}}: {error}");
            return Output { id: String::new(), verdict: "reject", reasons: vec![reason] };
        }
    };
    match check_sql(&input.sql, &input.params, mapping, tenants) {
        Ok(()) => Output { id: input.id, verdict: "accept", reasons: Vec::new() },
        Err(faults) => {
            Output { id: input.id, verdict: "reject", reasons: faults.iter().map(ToString::to_string).collect() }
        }
    }
}

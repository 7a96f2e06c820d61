//! What the fuzz targets do with bytes: one target for the checker, and one for the arguments of each tool.
//!
//! A target panics when a promise of the guard or of a tool does not hold. `fuzz_targets/` hands in what libFuzzer makes up; a test
//! of sightline-core hands in bytes of its own, so that the targets are run wherever the tests are.

mod bytes;
mod sql;
mod tool;

/// The target of the checker; every other is named like the tool it calls.
pub const CHECK_SQL: &str = "check_sql";

/// Every target.
pub fn targets() -> Vec<&'static str> {
    let tools = sightline_tools::tools();
    std::iter::once(CHECK_SQL).chain(tools.iter().map(|tool| tool.name())).collect()
}

/// Runs a target on some bytes.
///
/// # Panics
/// When a promise does not hold, or there is no such target.
pub fn run(target: &str, data: &[u8]) {
    if target == CHECK_SQL { sql::run(data) } else { tool::run(target, data) }
}

/// Where a target may begin from: the attack corpus and texts of ours for the checker, arguments that fit its schema for a tool.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    if target == CHECK_SQL { sql::seeds() } else { tool::seeds(target) }
}

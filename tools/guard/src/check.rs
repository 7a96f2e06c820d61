//! The checker: text is parsed by a parser that is not ours, read into the one shape there is, and held against rules that know
//! nothing of how the text came about.
//!
//! It fails closed: what it does not know is a fault. It never lets a text pass that our own emitter would not have written,
//! to the byte, so where the engine's lexer and the parser's disagree does not matter.

mod caps;
mod column;
mod expression;
mod fault;
mod own;
mod passed;
mod read;
mod rules;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sightline_policies::RowScope;

use crate::emit::emit;
use crate::mapping::Mapping;
use crate::param::{Param, ParamValue};
use crate::tree::Select;

pub use fault::{Fault, FaultKind};
pub(crate) use passed::Passed;

/// What a text of ours is held against.
pub(crate) struct Meant<'a> {
    pub(crate) select: &'a Select,
    pub(crate) params: &'a [Param],
    pub(crate) scope: &'a RowScope,
    pub(crate) mapping: &'a Mapping,
}

/// Checks a text of ours before it may run: it must obey every rule, and say what was meant. A text that passed before says what it
/// said then, and is not parsed again; what was meant and the values are held against it every time.
pub(crate) fn verify(text: &str, meant: Meant<'_>, passed: &Passed) -> Result<(), Vec<Fault>> {
    let Meant { select, params, scope, mapping } = meant;
    let found = passed.or_check(text, || passed::on_own_thread(|| check_text(text, mapping)))?;
    if *found != *select {
        return Err(vec![Fault::new(FaultKind::Form, "the text does not say what was meant")]);
    }
    let values: Vec<(&str, &ParamValue)> = params.iter().map(|param| (param.name(), param.value())).collect();
    let mut faults = rules::parameters(&found, &values, scope.tenants());
    if let Some(own) = scope.own() {
        match mapping.named(&found.database, &found.table) {
            Some(table) => faults.extend(own::own_rows(&found, table, &values, own)),
            None => faults.push(Fault::new(FaultKind::Relation, "the table is not mapped")),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Checks text from outside, for an asker who may read these tenants. No fault means that the guard could have written it.
///
/// `params` maps each name to the exact text that is sent for it. Runs on any stack of 2 MiB or more.
///
/// # Errors
/// Everything that is wrong with it; never empty.
pub fn check_sql(
    text: &str,
    params: &BTreeMap<String, String>,
    mapping: &Mapping,
    tenants: &BTreeSet<String>,
) -> Result<(), Vec<Fault>> {
    // A line of a file ends in a line break; nothing else is forgiven.
    let found = check_text(text.trim_end_matches(['\n', '\r']), mapping)?;
    let values = values::decode(&found, params)?;
    let values: Vec<(&str, &ParamValue)> = values.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let faults = rules::parameters(&found, &values, tenants);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// What was sent: what its text says, and the values of its parameters by name.
pub(crate) struct Sent {
    pub(crate) select: Arc<Select>,
    pub(crate) values: BTreeMap<String, ParamValue>,
}

/// Reads a text that was sent back into what it says, with the values of its parameters by name.
pub(crate) fn read_sent(
    text: &str,
    params: &BTreeMap<String, String>,
    mapping: &Mapping,
    passed: &Passed,
) -> Result<Sent, Vec<Fault>> {
    let found = passed.or_check(text, || passed::on_own_thread(|| check_text(text, mapping)))?;
    let values = values::decode(&found, params)?;
    Ok(Sent { select: found, values: values.into_iter().collect() })
}

/// Holds what a text says, and its values, against the tenants of an asker.
pub(crate) fn scope(
    select: &Select,
    values: &[(&str, &ParamValue)],
    tenants: &BTreeSet<String>,
) -> Result<(), Vec<Fault>> {
    let faults = rules::parameters(select, values, tenants);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Everything that can be said about a text without its parameters' values.
fn check_text(text: &str, mapping: &Mapping) -> Result<Select, Vec<Fault>> {
    caps::check(text, mapping).map_err(|fault| vec![fault])?;
    let found = read::select(text)?;
    let faults = rules::shape(&found, mapping);
    if !faults.is_empty() {
        return Err(faults);
    }
    if emit(&found) != text {
        return Err(vec![Fault::new(
            FaultKind::Form,
            "the text is not written the way Sightline writes it (comments, case, quotes and spaces count)",
        )]);
    }
    Ok(found)
}

#[cfg(test)]
#[path = "check/meant_tests.rs"]
mod meant_tests;

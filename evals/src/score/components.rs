//! Whether the culprits are named, and who else is.

use sightline_model::{Cause, Component};

/// The place, from 1, of the last culprit to be named among ranked components when those that are no culprits count one each and
/// culprits nothing; none when one of them is not named at all. 1 is: named before anybody innocent.
pub fn places<'a>(expected: &[Vec<Component>], ranked: impl Iterator<Item = &'a Component>) -> Option<usize> {
    let mut missing: Vec<&Vec<Component>> = expected.iter().collect();
    let mut innocents = 0;
    for component in ranked {
        missing.retain(|names| !is_one_of(component, names));
        if missing.is_empty() {
            return Some(innocents + 1);
        }
        innocents += usize::from(!expected.iter().any(|names| is_one_of(component, names)));
    }
    None
}

/// Whether every culprit is named by these causes before more than `innocents` others; none where no culprit is asked for.
pub(super) fn named_first<'a>(
    expected: &[Vec<Component>],
    causes: impl Iterator<Item = &'a Cause>,
    innocents: usize,
) -> Option<bool> {
    if expected.is_empty() {
        return None;
    }
    let place = places(expected, causes.flat_map(|cause| &cause.components));
    Some(place.is_some_and(|place| place <= innocents + 1))
}

/// How many components of a cause are no culprits; nobody is innocent where no culprit is known.
pub(super) fn innocents(expected: &[Vec<Component>], cause: &Cause) -> usize {
    if expected.is_empty() {
        return 0;
    }
    let is_culprit = |component: &&Component| expected.iter().any(|names| is_one_of(component, names));
    cause.components.iter().filter(|component| !is_culprit(component)).count()
}

/// A component may say more than its name asks for, never less.
fn is_one_of(component: &Component, names: &[Component]) -> bool {
    names.iter().any(|name| name.iter().all(|(key, value)| component.get(key) == Some(value)))
}

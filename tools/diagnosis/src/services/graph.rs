//! Who calls whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::services::observed::Call;

/// The call graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    callees: BTreeMap<String, BTreeSet<String>>,
    callers: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    pub(crate) fn new(calls: &[Call]) -> Self {
        let mut graph = Self::default();
        for call in calls.iter().filter(|c| c.caller != c.callee) {
            graph.callees.entry(call.caller.clone()).or_default().insert(call.callee.clone());
            graph.callers.entry(call.callee.clone()).or_default().insert(call.caller.clone());
        }
        graph
    }

    pub(crate) fn callees(&self, service: &str) -> impl Iterator<Item = &str> {
        self.callees.get(service).into_iter().flatten().map(String::as_str)
    }

    pub(crate) fn callers(&self, service: &str) -> impl Iterator<Item = &str> {
        self.callers.get(service).into_iter().flatten().map(String::as_str)
    }

    /// Whether anything is known about what this service calls or who calls it.
    pub(crate) fn knows(&self, service: &str) -> bool {
        self.callees.contains_key(service) || self.callers.contains_key(service)
    }

    /// The service and everything behind it, however deep; calls in circles end.
    pub(crate) fn behind<'a>(&'a self, service: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![service];
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(self.callees(next));
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_service_is_found_through_circles() {
        let call = |caller: &str, callee: &str| Call { caller: caller.to_owned(), callee: callee.to_owned() };
        let graph = Graph::new(&[call("a", "b"), call("b", "c"), call("c", "a"), call("c", "c"), call("x", "a")]);
        assert_eq!(graph.behind("a"), BTreeSet::from(["a", "b", "c"]));
        assert_eq!(graph.callees("c").collect::<Vec<_>>(), ["a"]);
        assert_eq!(graph.callers("a").collect::<Vec<_>>(), ["c", "x"]);
        assert!(graph.knows("x"));
        assert!(!graph.knows("z"));
    }
}

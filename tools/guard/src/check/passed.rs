//! Texts that passed, with what they say. Values are no part of a text, so the same question about another job is the same text.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LruCache;

use crate::check::fault::{Fault, FaultKind};
use crate::tree::Select;

/// How many texts are remembered: the tools have some hundred shapes, and each comes with a handful of steps and limits. At 2 KiB
/// a text and its tree take some 2 MiB in all.
const REMEMBERED: usize = 512;
/// The stack of the thread that parses. The caps before parsing keep well under 2 MiB; this is for what nobody thought of.
const STACK_BYTES: usize = 16 << 20;

/// Remembers texts that passed under one mapping. Checking a text is a pure function of text and mapping, and the whole text is the
/// key, so a remembered answer is the answer.
#[derive(Clone)]
pub(crate) struct Passed {
    texts: Arc<Mutex<LruCache<String, Arc<Select>>>>,
}

impl Default for Passed {
    fn default() -> Self {
        Self { texts: Arc::new(Mutex::new(LruCache::new(REMEMBERED))) }
    }
}

impl fmt::Debug for Passed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Passed").finish_non_exhaustive()
    }
}

impl Passed {
    /// What the text says, remembered or else checked; a text that fails is not remembered.
    pub(crate) fn or_check(
        &self,
        text: &str,
        check: impl FnOnce() -> Result<Select, Vec<Fault>>,
    ) -> Result<Arc<Select>, Vec<Fault>> {
        // The cache is whole between any two statements here, so a panic elsewhere leaves nothing half done.
        let known = self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(select) = known {
            return Ok(select);
        }
        let select = Arc::new(check()?);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.insert(text.to_owned(), Arc::clone(&select));
        Ok(select)
    }
}

/// Runs a check away from the caller's stack: an async worker's is small, and an overflow would end the whole service.
pub(crate) fn on_own_thread<T: Send>(check: impl FnOnce() -> Result<T, Vec<Fault>> + Send) -> Result<T, Vec<Fault>> {
    let failed = |what: &str| vec![Fault::new(FaultKind::Unchecked, what)];
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql-checker".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, check) {
            Ok(running) => running.join().unwrap_or_else(|_| Err(failed("the checker broke down"))),
            Err(_) => Err(failed("the system gives no thread to check the text on; see its limit of threads")),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Passed, on_own_thread};
    use crate::check::fault::{Fault, FaultKind};
    use crate::tree::Select;

    fn select(limit: u32) -> Select {
        Select {
            columns: Vec::new(),
            database: "db".to_owned(),
            table: "t".to_owned(),
            prewhere: Vec::new(),
            filters: Vec::new(),
            group_by: Vec::new(),
            order_by: Vec::new(),
            limit,
        }
    }

    #[test]
    fn a_text_that_passed_is_checked_once_and_one_that_failed_again() {
        let passed = Passed::default();
        let checks = Cell::new(0);
        let check = |text: &str, outcome: Result<Select, Vec<Fault>>| {
            passed.or_check(text, || {
                checks.set(checks.get() + 1);
                outcome
            })
        };
        assert_eq!(*check("a", Ok(select(1))).unwrap(), select(1));
        assert_eq!(*check("a", Ok(select(2))).unwrap(), select(1));
        assert_eq!(checks.get(), 1);
        let fault = || vec![Fault::new(FaultKind::Form, "x")];
        assert!(check("b", Err(fault())).is_err());
        assert!(check("b", Err(fault())).is_err());
        assert_eq!(checks.get(), 3);
    }

    #[test]
    fn a_checker_that_breaks_down_lets_nothing_pass() {
        let faults = on_own_thread::<()>(|| panic!("broken")).unwrap_err();
        assert_eq!(faults.iter().map(Fault::kind).collect::<Vec<_>>(), [FaultKind::Unchecked]);
    }
}

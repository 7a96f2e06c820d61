use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use sightline_core::Clock;
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event, EventKind, EventOutcome};
use sightline_model::{AuditRef, BoxFuture};
use sightline_policies::LivePolicies;

use super::{Look, Occasion, PolicyFiles, PolicyWatch};

const ANN: &str = "[[principal]]\nid = \"ann@atlas\"\nrole = \"viewer\"\n";

/// Keeps events; full when told so.
#[derive(Default)]
struct Events {
    kept: Mutex<Vec<Event>>,
    full: Mutex<bool>,
}

impl AuditLog for Events {
    fn begin(&self, _record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        unreachable!("nobody asks")
    }

    fn call(&self, _record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        unreachable!("nobody asks")
    }

    fn complete(&self, _record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        unreachable!("nobody asks")
    }

    fn event(&self, record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(async move {
            if *self.full.lock().unwrap() {
                return Err(AuditUnavailable { reason: "full".to_owned() });
            }
            self.kept.lock().unwrap().push(record);
            Ok(())
        })
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn monotonic_ms(&self) -> f64 {
        0.0
    }
}

/// A folder, its policies in force, and who watches it.
struct Site {
    folder: tempfile::TempDir,
    live: Arc<LivePolicies>,
    audit: Arc<Events>,
    watch: PolicyWatch,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("principals.toml"), ANN).unwrap();
        let files = PolicyFiles::read(Some(folder.path())).unwrap();
        let live = Arc::new(LivePolicies::new(files.policies().unwrap()));
        let audit = Arc::new(Events::default());
        let watch = PolicyWatch::new(
            folder.path().to_owned(),
            files,
            Arc::clone(&live),
            Arc::clone(&audit) as _,
            Arc::new(Noon),
        );
        Self { folder, live, audit, watch }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn knows(&self, id: &str) -> bool {
        self.live.now().principal(id).is_some()
    }

    fn events(&self) -> Vec<Event> {
        self.audit.kept.lock().unwrap().clone()
    }

    async fn look(&mut self) -> Look {
        self.watch.look(Occasion::Poll).await
    }
}

#[tokio::test]
async fn files_that_did_not_change_are_left_alone_and_recorded_nowhere() {
    let mut site = Site::new();
    let before = site.live.now();
    assert_eq!(site.look().await, Look::Unchanged);
    assert_eq!(site.watch.look(Occasion::Signal).await, Look::Unchanged);
    assert!(Arc::ptr_eq(&before, &site.live.now()));
    assert_eq!(site.events(), []);
}

#[tokio::test]
async fn a_change_is_taken_as_a_whole_and_recorded_with_both_digests() {
    let mut site = Site::new();
    let before = PolicyFiles::read(Some(site.path())).unwrap().digest();
    site.write("principals.toml", &ANN.replace("ann", "bob"));
    assert_eq!(site.look().await, Look::Taken);
    assert!(site.knows("bob@atlas") && !site.knows("ann@atlas"));
    let after = PolicyFiles::read(Some(site.path())).unwrap().digest();
    let events = site.events();
    assert_eq!(events.len(), 1);
    let Event { event, principal, outcome, detail, .. } = &events[0];
    assert_eq!((*event, principal.as_ref(), *outcome), (EventKind::PolicyReload, None, EventOutcome::Done));
    assert_eq!((&detail["before"], &detail["after"]), (&before, &after));
    assert_eq!(detail["occasion"], "change");
    assert!(detail["files"].ends_with("principals.toml"));
    assert_eq!(site.look().await, Look::Unchanged);
}

#[tokio::test]
async fn one_fault_anywhere_keeps_all_of_the_old_ones_and_is_recorded_once() {
    let mut site = Site::new();
    site.write("principals.toml", &ANN.replace("ann", "bob"));
    site.write("limits.toml", "[viewer]\nmax_point = 1\n");
    assert_eq!(site.look().await, Look::Refused);
    assert_eq!(site.look().await, Look::Unchanged);
    assert!(site.knows("ann@atlas") && !site.knows("bob@atlas"));
    let refused = site.live.refused().unwrap();
    assert!(refused.contains("not in force") && !refused.contains("max_point"), "{refused}");
    let events = site.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].outcome, EventOutcome::Failed);
    assert!(events[0].detail["first_fault"].contains("limits.toml:2: "), "{:?}", events[0].detail);
    // Corrected: the whole is taken.
    std::fs::remove_file(site.path().join("limits.toml")).unwrap();
    assert_eq!(site.look().await, Look::Taken);
    assert!(site.knows("bob@atlas"));
    assert_eq!(site.live.refused(), None);
}

#[tokio::test]
async fn a_fault_that_is_undone_leaves_nothing_behind() {
    let mut site = Site::new();
    for _again in 0..2 {
        site.write("principals.toml", "principal = 1");
        assert_eq!(site.look().await, Look::Refused);
        site.write("principals.toml", ANN);
        assert_eq!(site.look().await, Look::Unchanged);
        assert_eq!(site.live.refused(), None);
    }
    // The same fault a second time is a second attempt.
    assert_eq!(site.events().len(), 2);
}

#[tokio::test]
async fn a_folder_that_goes_away_takes_no_policy_with_it() {
    let mut site = Site::new();
    std::fs::remove_file(site.path().join("principals.toml")).unwrap();
    assert_eq!(site.look().await, Look::Refused);
    std::fs::remove_dir_all(site.path()).unwrap();
    assert_eq!(site.look().await, Look::Refused);
    assert!(site.knows("ann@atlas"));
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_taken_until_it_can() {
    let mut site = Site::new();
    *site.audit.full.lock().unwrap() = true;
    site.write("principals.toml", &ANN.replace("ann", "bob"));
    assert_eq!(site.look().await, Look::Unrecorded);
    assert!(site.knows("ann@atlas"));
    assert!(site.live.refused().is_some());
    *site.audit.full.lock().unwrap() = false;
    assert_eq!(site.look().await, Look::Taken);
    assert!(site.knows("bob@atlas"));
}

#[tokio::test]
async fn rules_or_limits_that_go_away_while_it_runs_are_a_fault_and_not_the_shipped_ones() {
    let mut site = Site::new();
    let shipped = sightline_policies::Sources::SHIPPED;
    let (viewers, operators) = (shipped.rules[0].text, shipped.rules[1].text);
    std::fs::create_dir(site.path().join("rules")).unwrap();
    site.write("rules/viewers.cedar", viewers);
    let limits = shipped.limits.text.to_owned() + "\n[tenant.atlas]\nquestions_per_minute = 1\n";
    site.write("limits.toml", &limits);
    assert_eq!(site.look().await, Look::Taken, "{:?}", site.events());
    let in_force = site.live.now();

    std::fs::remove_dir_all(site.path().join("rules")).unwrap();
    assert_eq!(site.look().await, Look::Refused);
    std::fs::remove_file(site.path().join("limits.toml")).unwrap();
    assert_eq!(site.look().await, Look::Refused);
    assert_eq!(site.watch.look(Occasion::Signal).await, Look::Unchanged, "it is said once");
    assert!(Arc::ptr_eq(&in_force, &site.live.now()));
    assert!(site.live.refused().is_some(), "`/readyz` says so");
    let faults: Vec<String> =
        site.events().iter().filter_map(|event| event.detail.get("first_fault").cloned()).collect();
    assert_eq!(faults.len(), 2);
    assert!(faults[0].contains("/rules:1") && faults[0].contains("it is gone"), "{faults:?}");

    std::fs::create_dir(site.path().join("rules")).unwrap();
    site.write("rules/viewers.cedar", viewers);
    assert_eq!(site.look().await, Look::Refused, "the limits are still gone");
    site.write("limits.toml", &limits);
    assert_eq!(site.look().await, Look::Unchanged);
    assert!(site.live.refused().is_none());
    // One file of rules may go where others stay: the folder says what holds.
    site.write("rules/operators.cedar", operators);
    assert_eq!(site.look().await, Look::Taken, "{:?}", site.events());
    std::fs::remove_file(site.path().join("rules/viewers.cedar")).unwrap();
    assert_eq!(site.look().await, Look::Taken);
}

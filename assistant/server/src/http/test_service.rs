//! A whole service for tests without an engine: the clock is set by hand and audit events are kept in memory.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use jiff::Timestamp;
use serde_json::Value;
use sightline_core::offline::OfflinePlanner;
use sightline_core::{Assistant, Clock};
use sightline_engine::{ClickHouseEngine, Endpoint, SecondFence};
use sightline_guard::{Guard, Mapping};
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{AuditRef, BoxFuture};
use sightline_policies::{LivePolicies, Policies};
use sightline_query::Catalogue;
use tower::Service as _;

use super::{Service, Site, router};
use crate::answers::{Answers, KeepDays};
use crate::audit_watch::WatchedAudit;
use crate::clock::UuidIds;
use crate::identity::{Identity, IdentityStore, NewToken, TokenOrder};
use crate::quota::Quotas;

/// A clock that stands where it is put.
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn at(seconds: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(seconds)))
    }

    pub(crate) fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        // Between two seconds, as real times are.
        Timestamp::new(self.0.load(Ordering::SeqCst), 250_000_000).unwrap()
    }

    fn monotonic_ms(&self) -> f64 {
        self.0.load(Ordering::SeqCst) as f64 * 1000.0
    }
}

/// Keeps events and complete records; a question cannot begin, since these tests ask none.
#[derive(Default)]
pub(crate) struct EventLog {
    events: Mutex<Vec<Event>>,
    completes: Mutex<Vec<Complete>>,
    fails: AtomicBool,
    asked: AtomicUsize,
    busy: tokio::sync::RwLock<()>,
}

impl EventLog {
    /// From now on it takes no event.
    pub(crate) fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// It takes no event until what is given back is dropped.
    pub(crate) async fn busy(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.busy.write().await
    }

    /// How many events it was asked to take.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn completes(&self) -> Vec<Complete> {
        self.completes.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }
}

fn none<T>() -> BoxFuture<'static, Result<T, AuditUnavailable>> {
    Box::pin(async { Err(AuditUnavailable { reason: "this log takes events only".to_owned() }) })
}

impl AuditLog for EventLog {
    fn begin(&self, _: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        none()
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        none()
    }

    fn complete(&self, complete: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.completes.lock().unwrap().push(complete);
        Box::pin(async { Ok(()) })
    }

    fn event(&self, event: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        if self.fails.load(Ordering::SeqCst) {
            return none();
        }
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _free = self.busy.read().await;
            self.events.lock().unwrap().push(event);
            Ok(())
        })
    }
}

/// The service, and what tests hold of it.
pub(crate) struct TestService {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) log: Arc<EventLog>,
    pub(crate) router: Router,
    pub(crate) service: Service,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Holds that this is a problem document of this status, and gives back its sentence.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json", "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], status, "{self:?}");
        document["detail"].as_str().unwrap().to_owned()
    }
}

impl TestService {
    pub(crate) fn start() -> Self {
        Self::at(None)
    }

    /// The same, reached under this URL.
    pub(crate) fn at(public_url: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = TestClock::at(1_800_000_000);
        let log = Arc::new(EventLog::default());
        let audit = Arc::new(WatchedAudit::new(Arc::clone(&log) as _));
        let catalogue = Arc::new(Catalogue::builtin().unwrap());
        let assistant = Assistant {
            tools: sightline_tools::registry::tools(),
            policies: Arc::new(LivePolicies::new(Policies::builtin().unwrap())),
            guard: Guard::new(Mapping::native("sightline").unwrap()),
            // Nothing listens there: no test here reads a row.
            engine: Arc::new(ClickHouseEngine::new(
                &Endpoint::new("http://127.0.0.1:9", "nobody", ""),
                SecondFence::InRequest,
            )),
            quota: Arc::new(Quotas::open(folder.path(), Arc::clone(&clock) as _).unwrap()),
            audit: Arc::clone(&audit) as _,
            planner: Box::new(OfflinePlanner::new(Arc::clone(&catalogue)).unwrap()),
            catalogue,
            tenants: ["atlas".to_owned(), "borealis".to_owned()].into(),
            clock: Arc::clone(&clock) as _,
            ids: Arc::new(UuidIds),
        };
        let store = IdentityStore::open(folder.path()).unwrap();
        let answers = Answers::open(folder.path(), KeepDays { evidence: 30, conversations: 90 }).unwrap();
        let identity = Identity::new(store, &assistant);
        let service = Service::new(Arc::new(assistant), audit, identity, Site::new(public_url), answers);
        Self { folder, clock, log, router: router(service.clone()), service }
    }

    /// The store, as another process has it.
    pub(crate) fn store(&self) -> IdentityStore {
        IdentityStore::open(self.folder.path()).unwrap()
    }

    /// A token for a principal, as `sightline token new` makes it.
    pub(crate) fn token(&self, principal: &str, expires_after_s: Option<i64>) -> NewToken {
        let created = self.clock.now();
        let expires = expires_after_s.map(|s| Timestamp::from_second(created.as_second() + s).unwrap());
        let order = TokenOrder { principal: principal.to_owned(), label: "test".to_owned(), created, expires };
        self.store().new_token(&order).unwrap()
    }

    /// Sends a request from this machine.
    pub(crate) async fn send(&self, request: Request<Body>) -> Came {
        self.send_from("127.0.0.1:40000", request).await
    }

    /// Sends one from an address.
    pub(crate) async fn send_from(&self, peer: &str, mut request: Request<Body>) -> Came {
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        let response = self.router.clone().call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        Came { status: parts.status, headers: parts.headers, body: String::from_utf8(bytes.to_vec()).unwrap() }
    }
}

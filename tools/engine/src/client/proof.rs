//! Proofs that the second fence holds, made through the reader's own endpoint before anything is answered.
//!
//! Each is a request that a right fence refuses or answers with nothing. None goes through the guard: what is proved is what holds
//! when the guard is wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use clickhouse::query::Query;
use futures::StreamExt as _;
use sightline_guard::{Fence, Mapping};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::code::Failure;
use super::{ClickHouseEngine, SecondFence, read_capped};
use crate::native::{CANARY_TABLE, CANARY_TENANT};
use crate::remote::role_name;

/// A tenant that has no row at all, not even the canary.
const NOBODY: &str = "sightline-nobody";
/// How long one proof may take. It reads one row; a server that needs this long cannot answer questions either.
const PATIENCE: Duration = Duration::from_secs(10);
/// Proofs under way at once.
const AT_ONCE: usize = 16;
/// The line of an answer that reads no table: without it nothing was counted. An aggregate over no row gives no line where the server
/// is set so, as ours is.
const ASKED: &str = "asked";
/// A proof's answer is one line a table, bytes.
const ANSWER_BYTES: u64 = 65_536;

/// READONLY and ACCESS_DENIED.
const NO_RIGHT: &[i32] = &[164, 497];
/// READONLY and SETTING_CONSTRAINT_VIOLATION.
const NO_SETTING: &[i32] = &[164, 452];
/// UNKNOWN_ROLE and SET_NON_GRANTED_ROLE.
const NO_ROLE: &[i32] = &[511, 512];

/// One thing that the second fence must do, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What must hold.
    pub claim: String,
    /// Whether it does.
    pub outcome: Result<(), ProofFault>,
}

/// Why a proof failed. Never carries text of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFault {
    /// What must be refused was done.
    #[error("the engine carried it out")]
    CarriedOut,
    /// A row came that must not.
    #[error("rows of `{table}` came back")]
    Rows {
        /// The table.
        table: String,
    },
    /// The row that must come did not, so nothing is known of those that must not.
    #[error("the canary row did not come back, so the rows that stayed away prove nothing")]
    NoCanary,
    /// There is no role for a tenant.
    #[error("the role is missing or not granted (code {code})")]
    NoRole {
        /// ClickHouse's error code.
        code: i32,
    },
    /// It was refused, but not because it may not be done.
    #[error("the engine refused it for another reason (code {code})")]
    OtherRefusal {
        /// ClickHouse's error code.
        code: i32,
    },
    /// The answer could not be read.
    #[error("the engine's answer could not be read")]
    Unreadable,
    /// No answer.
    #[error("the engine did not answer")]
    NoAnswer,
}

/// The second fence does not hold, or it is not known that it does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the second fence is not proved, so no question is answered: not shown that {}; run `sightline doctor` to see every proof",
    first_fault(proofs)
)]
pub struct FenceUnproved {
    /// All proofs, at least one of which failed.
    pub proofs: Vec<Proof>,
}

fn first_fault(proofs: &[Proof]) -> String {
    let fault = proofs.iter().find_map(|proof| proof.outcome.as_ref().err().map(|fault| (&proof.claim, fault)));
    fault.map_or_else(String::new, |(claim, fault)| format!("{claim} ({fault})"))
}

/// Behind which fence a request is sent.
enum Guise {
    /// Without one.
    Bare,
    /// As one for these tenants is.
    Tenant(String),
}

/// What a right fence does with a request.
enum Expected {
    /// Refuses it with one of these codes.
    Refused(&'static [i32]),
    /// Counts nothing in any of these tables.
    Nothing(Vec<String>),
    /// Counts nothing in these tables, and the canary in its own.
    CanaryAlone(Vec<String>),
}

struct Probe {
    claim: String,
    sql: String,
    param: Option<String>,
    guise: Guise,
    expected: Expected,
}

impl Probe {
    fn refused(claim: String, sql: String, guise: Guise, codes: &'static [i32]) -> Self {
        Self { claim, sql, param: None, guise, expected: Expected::Refused(codes) }
    }
}

impl ClickHouseEngine {
    /// Proves the second fence around the tables of this mapping. On a server of one's own, `tenants` are those whose roles are
    /// tried; in the embedded engine a tenant needs none.
    ///
    /// # Errors
    /// When one thing at least is not as it must be, or cannot be found out.
    pub async fn prove_fence(
        &self,
        mapping: &Mapping,
        tenants: &BTreeSet<String>,
    ) -> Result<Vec<Proof>, FenceUnproved> {
        let probes = probes(self.fence, mapping, tenants);
        let proofs = futures::stream::iter(probes).map(|probe| self.prove(mapping, probe)).buffered(AT_ONCE);
        let proofs: Vec<Proof> = proofs.collect().await;
        if proofs.iter().all(|proof| proof.outcome.is_ok()) { Ok(proofs) } else { Err(FenceUnproved { proofs }) }
    }

    async fn prove(&self, mapping: &Mapping, probe: Probe) -> Proof {
        let answer = async {
            let mut cursor = self.disguised(mapping, &probe).fetch_bytes("JSONCompactEachRow")?;
            read_capped(&mut cursor, ANSWER_BYTES).await
        };
        let answer = tokio::time::timeout(PATIENCE, answer.with_subscriber(NoSubscriber::new())).await;
        let outcome = judge(&probe.expected, answer.unwrap_or(Err(Failure::Connection)));
        Proof { claim: probe.claim, outcome }
    }

    fn disguised(&self, mapping: &Mapping, probe: &Probe) -> Query {
        let mut query = self.client.query_raw(&probe.sql).with_setting("wait_end_of_query", "1");
        // There is nothing to read, so threads are all it would cost.
        query = query.with_setting("max_threads", "1");
        if let Some(param) = &probe.param {
            query = query.param("p0", param.as_str());
        }
        match (&probe.guise, self.fence) {
            (Guise::Bare, _) => query,
            (Guise::Tenant(tenant), SecondFence::InRequest) => {
                let tables = mapping.tables().iter().map(|t| (t.database(), t.table(), t.tenant_column()));
                let canaries = databases(mapping).into_iter().map(|database| (database, CANARY_TABLE, "tenant"));
                let fence = Fence::new(tables.chain(canaries), &BTreeSet::from([tenant.clone()]));
                query.with_setting(fence.setting(), fence.value())
            }
            (Guise::Tenant(tenant), SecondFence::AtServer) => query.with_roles([role_name(tenant)]),
        }
    }
}

/// Everything that is tried.
fn probes(fence: SecondFence, mapping: &Mapping, tenants: &BTreeSet<String>) -> Vec<Probe> {
    let mut probes: Vec<Probe> = databases(mapping).into_iter().flat_map(|d| of_database(mapping, d)).collect();
    for table in mapping.tables() {
        let name = format!("{}.{}", table.database(), table.table());
        let sql = format!("SELECT count() FROM {name}");
        probes.push(Probe::refused(
            format!("a request without a fence reads nothing of `{name}`"),
            sql,
            Guise::Bare,
            NO_RIGHT,
        ));
    }
    match fence {
        SecondFence::InRequest => probes.extend(databases(mapping).into_iter().flat_map(in_request)),
        SecondFence::AtServer => {
            probes.extend(databases(mapping).into_iter().map(|database| {
                let sql = format!("SELECT count() FROM {database}.{CANARY_TABLE}");
                let claim = "a tenant that has no role reads nothing".to_owned();
                Probe::refused(claim, sql, Guise::Tenant(NOBODY.to_owned()), NO_ROLE)
            }));
            probes.extend(tenants.iter().map(|tenant| of_tenant(mapping, tenant)));
        }
    }
    probes
}

/// What holds in every database, whatever the fence is made of.
fn of_database(mapping: &Mapping, database: &str) -> Vec<Probe> {
    let canary = format!("{database}.{CANARY_TABLE}");
    let tables: Vec<String> =
        mapping.tables().iter().filter(|t| t.database() == database).map(|t| t.table().to_owned()).collect();
    let count = |table: &String| format!("SELECT '{table}' AS a0, count() AS a1 FROM {database}.{table}");
    let counts: Vec<String> = tables.iter().chain([&CANARY_TABLE.to_owned()]).map(count).chain([asked()]).collect();
    let as_canary = || Guise::Tenant(CANARY_TENANT.to_owned());
    let refused = |claim: &str, sql: String, codes| Probe::refused(claim.to_owned(), sql, as_canary(), codes);
    vec![
        refused("rows that are sent are refused", format!("INSERT INTO {canary} VALUES ('{NOBODY}')"), NO_RIGHT),
        refused("rows that are copied are refused", format!("INSERT INTO {canary} SELECT '{NOBODY}'"), NO_RIGHT),
        refused(
            "a new table is refused",
            format!("CREATE TABLE {database}.fence_probe (a UInt8) ENGINE = Null"),
            NO_RIGHT,
        ),
        refused(
            "a text cannot end the read-only mode",
            format!("SELECT count() FROM {canary} SETTINGS readonly = 0"),
            NO_SETTING,
        ),
        refused(
            "a text cannot change the row filters",
            format!("SELECT count() FROM {canary} SETTINGS additional_table_filters = {{'{canary}': '1'}}"),
            NO_SETTING,
        ),
        Probe {
            claim: format!("a tenant without telemetry sees its canary row and no row of `{database}`"),
            sql: counts.join(" UNION ALL "),
            param: None,
            guise: as_canary(),
            expected: Expected::CanaryAlone(tables),
        },
    ]
}

/// What the embedded engine's front must do besides.
fn in_request(database: &str) -> [Probe; 2] {
    let nobody = || Guise::Tenant(NOBODY.to_owned());
    [
        Probe {
            claim: "the canary row stays hidden from every other tenant".to_owned(),
            sql: format!(
                "SELECT '{CANARY_TABLE}' AS a0, count() AS a1 FROM {database}.{CANARY_TABLE} UNION ALL {}",
                asked()
            ),
            param: None,
            guise: nobody(),
            expected: Expected::Nothing(vec![CANARY_TABLE.to_owned()]),
        },
        Probe::refused(
            "a table function that reads past the row filters is refused".to_owned(),
            format!("SELECT count() FROM merge('{database}', '^{CANARY_TABLE}$')"),
            nobody(),
            NO_RIGHT,
        ),
    ]
}

/// That a tenant's role sees no row of another: not the canary, nor any in a mapped table.
fn of_tenant(mapping: &Mapping, tenant: &str) -> Probe {
    let mapped = mapping.tables().iter().map(|t| (t.database(), t.table(), t.tenant_column()));
    let canaries = databases(mapping).into_iter().map(|database| (database, CANARY_TABLE, "tenant"));
    let tables: Vec<(&str, &str, &str)> = mapped.chain(canaries).collect();
    let foreign = |(database, table, column): &(&str, &str, &str)| {
        format!("SELECT '{table}' AS a0, count() AS a1 FROM {database}.{table} AS t WHERE t.{column} != {{p0:String}}")
    };
    Probe {
        claim: format!("the role `{}` reads rows of its tenant only", role_name(tenant)),
        sql: tables.iter().map(foreign).chain([asked()]).collect::<Vec<_>>().join(" UNION ALL "),
        param: Some(tenant.to_owned()),
        guise: Guise::Tenant(tenant.to_owned()),
        expected: Expected::Nothing(tables.iter().map(|(_, table, _)| (*table).to_owned()).collect()),
    }
}

fn asked() -> String {
    format!("SELECT '{ASKED}' AS a0, toUInt64(1) AS a1")
}

fn databases(mapping: &Mapping) -> BTreeSet<&str> {
    mapping.tables().iter().map(|table| table.database()).collect()
}

fn judge(expected: &Expected, answer: Result<Vec<u8>, Failure>) -> Result<(), ProofFault> {
    let refusal = |failure: Failure, expected: &[i32]| match failure {
        Failure::Code(code) if expected.contains(&code) => Ok(()),
        Failure::Code(code) if NO_ROLE.contains(&code) => Err(ProofFault::NoRole { code }),
        Failure::Code(code) => Err(ProofFault::OtherRefusal { code }),
        Failure::Status(_) | Failure::Connection => Err(ProofFault::NoAnswer),
        Failure::TooLong | Failure::Malformed => Err(ProofFault::Unreadable),
    };
    let (tables, with_canary) = match expected {
        Expected::Refused(codes) => {
            return match answer {
                Ok(_) => Err(ProofFault::CarriedOut),
                Err(failure) => refusal(failure, codes),
            };
        }
        Expected::Nothing(tables) => (tables, false),
        Expected::CanaryAlone(tables) => (tables, true),
    };
    let text = match answer {
        Ok(text) => text,
        Err(failure) => return refusal(failure, &[]),
    };
    let counted = counts(&text).ok_or(ProofFault::Unreadable)?;
    if !counted.contains(&(ASKED.to_owned(), 1)) {
        return Err(ProofFault::Unreadable);
    }
    if let Some((table, _)) = counted.iter().find(|(name, count)| tables.contains(name) && *count > 0) {
        return Err(ProofFault::Rows { table: table.clone() });
    }
    let canary = counted.iter().any(|(name, count)| name == CANARY_TABLE && *count > 0);
    if with_canary && !canary { Err(ProofFault::NoCanary) } else { Ok(()) }
}

/// Lines of a table's name and how many rows of it were seen. Some servers quote 64-bit numbers.
fn counts(text: &[u8]) -> Option<Vec<(String, u64)>> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let count = |line: &[u8]| {
        let (table, count): (String, serde_json::Value) = serde_json::from_slice(line).ok()?;
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok())?;
        Some((table, count))
    };
    lines.map(count).collect()
}

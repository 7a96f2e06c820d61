//! What an asker is shown of how much was read, and of where its question stands in the audit log.
//!
//! The engine reads whole granules, and a neighbour's rows lie in them: of a small table, such as jobs, the exact number is that of
//! everybody's rows. A place in the log counts everybody's questions. Who reads every tenant anyway is shown the exact numbers, and
//! the audit log always holds them.

use sightline_model::{AuditRef, Principal, Read, TenantScope};
use sightline_policies::{Action, Policies};

/// What this asker is shown of what one query read; sums are made of what is shown.
pub(crate) fn shown_read(principal: &Principal, read: Read) -> Read {
    match principal.tenants {
        TenantScope::All if principal.jobs_of.is_none() => read,
        TenantScope::All | TenantScope::Only(_) => read.rounded(),
    }
}

/// What this asker is shown of its place in the audit log: the hash is its receipt, the sequence number is for who may read the log.
pub(crate) fn shown_audit(policies: &Policies, principal: &Principal, begun: AuditRef) -> AuditRef {
    let may_read = policies.check(principal, Action::ReadAudit, "").allowed();
    AuditRef { seq: begun.seq.filter(|_| may_read), ..begun }
}

#[cfg(test)]
mod tests {
    use sightline_model::{AuditRef, QuestionId, Read, Role};
    use sightline_policies::{Policies, bundle_principal};

    use super::{shown_audit, shown_read};

    fn read(rows: u64, bytes: u64) -> Read {
        Read { rows, bytes, wall_ms: 1.5 }
    }

    #[test]
    fn a_few_rows_more_or_less_do_not_show() {
        let viewer = bundle_principal(Role::Viewer, "atlas");
        for (exact, shown) in [
            (read(0, 0), read(8_192, 1_048_576)),
            (read(1, 1), read(8_192, 1_048_576)),
            (read(312, 40_000), read(8_192, 1_048_576)),
            (read(8_192, 1_048_576), read(8_192, 1_048_576)),
            (read(8_193, 1_048_577), read(16_384, 2_097_152)),
            (read(100_000, 9_000_000), read(106_496, 16_777_216)),
            (read(u64::MAX, u64::MAX), read(u64::MAX, u64::MAX)),
        ] {
            assert_eq!(shown_read(&viewer, exact), shown, "{exact:?}");
        }
    }

    #[test]
    fn who_reads_every_tenant_is_shown_exact_numbers() {
        let admin = bundle_principal(Role::Admin, "");
        assert_eq!(shown_read(&admin, read(312, 40_000)), read(312, 40_000));
    }

    #[test]
    fn a_place_in_the_log_is_for_who_may_read_the_log() {
        let policies = Policies::builtin().unwrap();
        let begun = || AuditRef { question_id: QuestionId::new("q"), seq: Some(7), hash: "ab".to_owned() };
        for (role, seq) in
            [(Role::Viewer, None), (Role::Operator, None), (Role::Admin, Some(7)), (Role::Auditor, Some(7))]
        {
            let shown = shown_audit(&policies, &bundle_principal(role, "atlas"), begun());
            assert_eq!(shown, AuditRef { seq, ..begun() }, "{role:?}");
        }
    }
}

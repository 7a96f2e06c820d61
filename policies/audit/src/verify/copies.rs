//! The log against the copies of its checkpoints: an end that was cut off, or an older file that was put back, is
//! whole in itself and shows only here.

use super::checkpoints::Checkpoints;
use super::{Broken, Check, Seen, Stop, broken};
use crate::chain::Head;
use crate::checkpoint::Checkpoint;

pub(super) fn compare(
    check: &Check<'_>,
    log_id: &[u8; 16],
    checkpoints: &Checkpoints,
    made: &Head,
    seen: &mut Seen,
) -> Result<(), Stop> {
    let mut first: Option<Broken> = None;
    for copied in check.copies {
        let name = &copied.name;
        if copied.unreadable > 0 {
            seen.notes.add(None, format!("copy `{name}` holds {} entries that are no checkpoint", copied.unreadable));
        }
        let (ours, others): (Vec<&Checkpoint>, Vec<&Checkpoint>) =
            copied.checkpoints.iter().partition(|checkpoint| checkpoint.log_id.0 == *log_id);
        // Whoever can write the copy alone can put foreign checkpoints into it; only one that the key signed shows a
        // log in whose place this one stands.
        let ours_signed = |other: &&&Checkpoint| {
            (other.key == *check.key || checkpoints.keys.all().any(|key| *key == other.key)) && other.is_signed()
        };
        if let Some(other) = others.iter().find(ours_signed) {
            let what = format!(
                "the log was replaced: copy `{name}` holds segment {} of log {}, which the same key signed on {}; if that log was moved away on purpose, move the copy away with it",
                other.segment, other.log_id, other.at
            );
            return Err(broken(None, what));
        }
        if !others.is_empty() {
            let what = format!("copy `{name}` also holds {} checkpoints of other logs and other keys", others.len());
            seen.notes.add(None, what);
        }
        let before = seen.compared;
        for checkpoint in ours {
            let trusted = [checkpoints.keys.of_checkpoint(checkpoint.last), check.key].contains(&&checkpoint.key);
            let stored = checkpoints.segment(checkpoint.segment);
            if stored.is_some_and(|stored| stored.digest() == checkpoint.digest()) {
                seen.compared = seen.compared.saturating_add(1);
                continue;
            }
            if !(trusted && checkpoint.is_signed()) {
                let what =
                    format!("copy `{name}` holds a segment {} that no key of this log signed", checkpoint.segment);
                seen.notes.add(None, what);
                continue;
            }
            seen.compared = seen.compared.saturating_add(1);
            let found = fault(name, checkpoint, stored.is_some(), made);
            if first.as_ref().is_none_or(|first| found.seq < first.seq) {
                first = Some(found);
            }
        }
        let is_empty = copied.checkpoints.is_empty() && copied.unreadable == 0;
        if seen.compared == before && (checkpoints.has_segments() || !is_empty) {
            seen.unproved.push(format!(
                "copy `{name}` holds no checkpoint of this log, so it does not show whether the end was cut off or the log replaced"
            ));
        }
    }
    first.map_or(Ok(()), |first| Err(Stop::Broken(first)))
}

fn fault(name: &str, checkpoint: &Checkpoint, is_stored: bool, made: &Head) -> Broken {
    let Checkpoint { segment, first, last, at, .. } = checkpoint;
    if is_stored {
        let what = format!(
            "segment {segment} was signed with other records on {at}, as copy `{name}` holds: an older file was put back and written on"
        );
        Broken { seq: Some(*first), what }
    } else {
        let what = format!(
            "the end was cut off, or an older file was put back: copy `{name}` holds segment {segment} up to record {last}, signed for {at}"
        );
        Broken { seq: Some(made.seq.saturating_add(1).min(*first)), what }
    }
}

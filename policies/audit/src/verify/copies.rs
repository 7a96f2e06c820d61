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
        if let (true, Some(other)) = (ours.is_empty(), others.first()) {
            let what = format!(
                "copy `{name}` knows nothing of this log, but of log {}: the file was replaced by another, or the copy is not its",
                other.log_id
            );
            return Err(broken(None, what));
        }
        if !others.is_empty() {
            seen.notes.add(None, format!("copy `{name}` also holds {} checkpoints of other logs", others.len()));
        }
        for checkpoint in ours {
            seen.compared = seen.compared.saturating_add(1);
            let trusted = [checkpoints.keys.of_checkpoint(checkpoint.last), check.key].contains(&&checkpoint.key);
            let stored = checkpoints.segment(checkpoint.segment);
            if stored.is_some_and(|stored| stored.digest() == checkpoint.digest()) {
                continue;
            }
            if !(trusted && checkpoint.is_signed()) {
                let what =
                    format!("copy `{name}` holds a segment {} that no key of this log signed", checkpoint.segment);
                seen.notes.add(None, what);
                continue;
            }
            let found = fault(name, checkpoint, stored.is_some(), made);
            if first.as_ref().is_none_or(|first| found.seq < first.seq) {
                first = Some(found);
            }
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

//! Files that are read again while the service runs. One that is just being written is not whole, so they are read until two readings in
//! a row are the same.

use std::time::Duration;

/// How often files are looked at.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How long files must stay as they are before they are taken.
const SETTLE: Duration = Duration::from_millis(200);
/// How often in a row files may change under the reader before it waits for the next look.
const TRIES: usize = 5;

/// What was read, once two readings in a row are the same, or the first is what is in force; none where they do not settle.
pub(crate) async fn settled<T: PartialEq, R: Future<Output = Option<T>>>(
    read: impl Fn() -> R,
    is_in_force: impl Fn(&T) -> bool,
) -> Option<T> {
    let mut before = read().await?;
    if is_in_force(&before) {
        return Some(before);
    }
    for _ in 0..TRIES {
        tokio::time::sleep(SETTLE).await;
        let now = read().await?;
        if now == before {
            return Some(now);
        }
        before = now;
    }
    None
}

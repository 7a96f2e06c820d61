//! Why any service is slow or fails: its own time, its callees, its resources, its errors.

/// The ids of the causes that are checked here.
#[cfg(test)]
pub(crate) const IDS: &[&str] = &[];

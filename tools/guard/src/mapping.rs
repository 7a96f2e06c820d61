//! Which physical table and columns a dataset is.

use sightline_model::{Dataset, Dim};

/// Longest name of a database, table or column.
const MAX_NAME: usize = 128;

/// What a column holds, as far as a query must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Text.
    Text,
    /// An unsigned integer that the product treats as text.
    Integer,
}

/// How a table's rows lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeShape {
    /// Each at one instant, `time`.
    Instant,
    /// Each from `time` to `end_time`; one still open ends at the sentinel.
    Interval,
}

/// The physical table of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedTable {
    pub(crate) dataset: Dataset,
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) dims: Vec<(Dim, &'static str, ColumnType)>,
    pub(crate) labels: bool,
    pub(crate) time: TimeShape,
    pub(crate) submit: bool,
    pub(crate) duration: bool,
    pub(crate) value: bool,
    pub(crate) force_primary_key: bool,
}

/// The names of the columns that are no dimension; the same in every table that has them.
pub(crate) const TENANT: &str = "tenant";
pub(crate) const METRIC: &str = "metric";
pub(crate) const NODE: &str = "node";
pub(crate) const GPU: &str = "gpu";
pub(crate) const TIME: &str = "time";
pub(crate) const END_TIME: &str = "end_time";
pub(crate) const SUBMIT: &str = "submit";
pub(crate) const DURATION: &str = "duration_us";
pub(crate) const VALUE: &str = "value";
pub(crate) const LABELS: &str = "labels";

impl MappedTable {
    /// The dataset it is.
    pub fn dataset(&self) -> Dataset {
        self.dataset
    }

    /// Its database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Its name without the database.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The column of what is aggregated: a sample, or a span's duration.
    pub(crate) fn measured(&self) -> Option<&'static str> {
        if self.value {
            Some(VALUE)
        } else if self.duration {
            Some(DURATION)
        } else {
            None
        }
    }

    /// The column that says whose a row is.
    pub fn tenant_column(&self) -> &'static str {
        TENANT
    }

    /// The column of a dimension, if it is one.
    pub(crate) fn column(&self, dim: &Dim) -> Option<(&'static str, ColumnType)> {
        self.dims.iter().find(|(known, _, _)| known == dim).map(|(_, column, ty)| (*column, *ty))
    }

    /// The type of the dimension column of that name, if there is one.
    pub(crate) fn column_type(&self, name: &str) -> Option<ColumnType> {
        self.dims.iter().find(|(_, column, _)| *column == name).map(|(_, _, ty)| *ty)
    }
}

/// Where every dataset is. Guaranteed: one table each, and every name is a plain identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    tables: Vec<MappedTable>,
}

/// What is wrong with a mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A name that would need quoting.
    #[error(
        "`{name}` cannot be a database name; use up to {MAX_NAME} letters, digits and underscores, not starting with a digit"
    )]
    BadName {
        /// The name.
        name: String,
    },
}

impl Mapping {
    /// The tables of the product's own DDL in this database.
    ///
    /// # Errors
    /// When the database's name is not a plain identifier.
    pub fn native(database: &str) -> Result<Self, MappingError> {
        if !is_plain(database) {
            return Err(MappingError::BadName { name: database.to_owned() });
        }
        let tables = Dataset::ALL.into_iter().map(|dataset| native_table(dataset, database)).collect();
        Ok(Self { tables })
    }

    /// The tables.
    pub fn tables(&self) -> &[MappedTable] {
        &self.tables
    }

    /// The table of a dataset.
    pub(crate) fn table(&self, dataset: Dataset) -> Option<&MappedTable> {
        self.tables.iter().find(|table| table.dataset == dataset)
    }

    /// The table of that physical name, matched byte for byte.
    pub(crate) fn named(&self, database: &str, table: &str) -> Option<&MappedTable> {
        self.tables.iter().find(|known| known.database == database && known.table == table)
    }
}

fn native_table(dataset: Dataset, database: &str) -> MappedTable {
    let interval = matches!(dataset, Dataset::Jobs | Dataset::JobGpus);
    MappedTable {
        dataset,
        database: database.to_owned(),
        table: dataset.as_str().to_owned(),
        dims: sightline_query::schema::dimensions(dataset).iter().filter_map(native_column).collect(),
        labels: sightline_query::schema::has_labels(dataset),
        time: if interval { TimeShape::Interval } else { TimeShape::Instant },
        submit: dataset == Dataset::Jobs,
        duration: dataset == Dataset::Spans,
        value: dataset == Dataset::Metrics,
        // The big table. Its key begins with the tenant, so every query of ours can use it, and one that does not is a mistake.
        force_primary_key: dataset == Dataset::Metrics,
    }
}

/// The native tables name a dimension's column like the dimension.
fn native_column(dim: &Dim) -> Option<(Dim, &'static str, ColumnType)> {
    let (name, ty) = match dim {
        Dim::Tenant => (TENANT, ColumnType::Text),
        Dim::Cluster => ("cluster", ColumnType::Text),
        Dim::Metric => (METRIC, ColumnType::Text),
        Dim::Node => (NODE, ColumnType::Text),
        Dim::Gpu => (GPU, ColumnType::Text),
        Dim::Service => ("service", ColumnType::Text),
        Dim::Severity => ("severity", ColumnType::Text),
        Dim::Body => ("body", ColumnType::Text),
        Dim::Kind => ("kind", ColumnType::Text),
        Dim::JobId => ("job_id", ColumnType::Text),
        Dim::Name => ("name", ColumnType::Text),
        Dim::User => ("user", ColumnType::Text),
        Dim::State => ("state", ColumnType::Text),
        Dim::GpuUuid => ("gpu_uuid", ColumnType::Text),
        Dim::Rank => ("rank", ColumnType::Integer),
        Dim::Attempt => ("attempt", ColumnType::Integer),
        Dim::Pod => ("pod", ColumnType::Text),
        Dim::Operation => ("operation", ColumnType::Text),
        Dim::TraceId => ("trace_id", ColumnType::Text),
        Dim::SpanId => ("span_id", ColumnType::Text),
        Dim::ParentId => ("parent_id", ColumnType::Text),
        Dim::Label(_) => return None,
    };
    Some((dim.clone(), name, ty))
}

fn is_plain(name: &str) -> bool {
    let mut characters = name.chars();
    let first_fits = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first_fits && name.len() <= MAX_NAME && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn a_database_is_a_plain_identifier() {
        assert!(Mapping::native("incident_0f3a").is_ok());
        for name in ["", "1st", "a b", "a.b", "a`b", "a'b", "ä", "a-b", &"x".repeat(129)] {
            assert!(Mapping::native(name).is_err(), "{name}");
        }
        assert_eq!(
            Mapping::native("a-b").unwrap_err().to_string(),
            "`a-b` cannot be a database name; use up to 128 letters, digits and underscores, not starting with a digit"
        );
    }
}

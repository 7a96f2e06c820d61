//! The columns of a bundle's files: what may stand in them, and how they are staged.

use sightline_model::Dataset;

use super::error::IngestError;

/// What a column must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An instant, kept to that many digits of a second.
    Time(u8),
    /// Text.
    Text,
    /// A number of any width.
    Float,
    /// A number of any width, kept whole where it is.
    Whole,
    /// Text, or a whole number taken as text.
    TextOrWhole,
    /// A map of texts.
    Labels,
}

/// One column of a dataset's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileColumn {
    pub(super) name: &'static str,
    pub(super) wanted: Wanted,
    pub(super) required: bool,
}

const fn required(name: &'static str, wanted: Wanted) -> FileColumn {
    FileColumn { name, wanted, required: true }
}

const fn optional(name: &'static str, wanted: Wanted) -> FileColumn {
    FileColumn { name, wanted, required: false }
}

/// The columns of a dataset's file. Those that are not required may be absent; others than these are ignored.
pub(super) fn columns(dataset: Dataset) -> &'static [FileColumn] {
    use Wanted::{Float, Labels, Text, TextOrWhole, Time, Whole};
    match dataset {
        Dataset::Metrics => {
            const {
                &[
                    required("time", Time(3)),
                    required("metric", Text),
                    optional("labels", Labels),
                    required("value", Float),
                ]
            }
        }
        Dataset::Logs => {
            const {
                &[
                    required("time", Time(9)),
                    optional("severity", Text),
                    optional("service", Text),
                    optional("labels", Labels),
                    required("body", Text),
                ]
            }
        }
        Dataset::Spans => {
            const {
                &[
                    required("time", Time(9)),
                    required("duration_us", Whole),
                    optional("trace_id", Text),
                    optional("span_id", Text),
                    optional("parent_id", Text),
                    required("service", Text),
                    optional("pod", Text),
                    optional("operation", Text),
                    optional("labels", Labels),
                ]
            }
        }
        Dataset::Events => {
            const { &[required("time", Time(3)), required("kind", Text), optional("labels", Labels), optional("body", Text)] }
        }
        Dataset::Jobs => {
            const {
                &[
                    required("job_id", Text),
                    optional("name", Text),
                    optional("tenant", Text),
                    optional("cluster", Text),
                    optional("user", Text),
                    optional("kind", Text),
                    optional("state", Text),
                    optional("submit", Time(3)),
                    required("start", Time(3)),
                    optional("end", Time(3)),
                    optional("labels", Labels),
                ]
            }
        }
        Dataset::JobGpus => {
            const {
                &[
                    required("job_id", Text),
                    optional("tenant", Text),
                    optional("cluster", Text),
                    optional("attempt", Whole),
                    required("node", Text),
                    required("gpu", TextOrWhole),
                    optional("gpu_uuid", Text),
                    optional("rank", Whole),
                    required("start", Time(3)),
                    optional("end", Time(3)),
                ]
            }
        }
    }
}

impl Wanted {
    fn expected(self) -> &'static str {
        match self {
            Self::Time(_) => "a time (`DateTime64`)",
            Self::Text => "text (`String`)",
            Self::Float | Self::Whole => "a number",
            Self::TextOrWhole => "text or a whole number",
            Self::Labels => "a map of texts (`Map(String, String)`)",
        }
    }

    /// Whether a column of that bare type fits.
    fn fits(self, bare: &str) -> bool {
        match self {
            Self::Time(_) => bare == "DateTime" || bare.starts_with("DateTime(") || bare.starts_with("DateTime64("),
            Self::Text => bare == "String",
            Self::Float | Self::Whole => is_whole(bare) || is_float(bare),
            Self::TextOrWhole => bare == "String" || is_whole(bare),
            Self::Labels => bare == "Map(String, String)",
        }
    }

    /// Its type in the staging table. Numbers that came as floats stay floats until they are read.
    fn staged(self, float: bool) -> String {
        match self {
            Self::Time(digits) => format!("Nullable(DateTime64({digits}, 'UTC'))"),
            Self::Text | Self::TextOrWhole => "String".to_owned(),
            Self::Whole if !float => "Nullable(Int64)".to_owned(),
            Self::Float | Self::Whole => "Nullable(Float64)".to_owned(),
            Self::Labels => "Map(String, Nullable(String))".to_owned(),
        }
    }
}

fn is_float(bare: &str) -> bool {
    matches!(bare, "Float32" | "Float64" | "BFloat16")
}

fn is_whole(bare: &str) -> bool {
    let width = bare.strip_prefix("UInt").or_else(|| bare.strip_prefix("Int"));
    width.is_some_and(|width| matches!(width, "8" | "16" | "32" | "64"))
}

/// How a file is staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Staging {
    /// Every column of the dataset's file with its type in the staging table.
    pub(super) columns: Vec<(&'static str, String)>,
    /// Those that the file has.
    pub(super) present: Vec<&'static str>,
}

/// Holds the columns that a file has, as (name, type), against what its dataset wants.
pub(super) fn check(dataset: Dataset, file: &str, found: &[(String, String)]) -> Result<Staging, IngestError> {
    let mut staging = Staging { columns: Vec::new(), present: Vec::new() };
    for FileColumn { name, wanted, required } in columns(dataset) {
        let Some((_, ty)) = found.iter().find(|(column, _)| column == name) else {
            if *required {
                let mut names: Vec<String> = found.iter().take(20).map(|(column, _)| format!("`{column}`")).collect();
                if names.is_empty() {
                    names.push("none".to_owned());
                }
                return Err(IngestError::NoColumn { file: file.to_owned(), column: name, found: names.join(", ") });
            }
            staging.columns.push((name, wanted.staged(false)));
            continue;
        };
        let bare = bare(ty);
        if !wanted.fits(&bare) {
            return Err(IngestError::ColumnType {
                file: file.to_owned(),
                column: (*name).to_owned(),
                expected: wanted.expected(),
                found: ty.replace('\n', " "),
            });
        }
        staging.columns.push((name, wanted.staged(is_float(&bare))));
        staging.present.push(name);
    }
    Ok(staging)
}

/// The type without `Nullable` and `LowCardinality`, at any depth.
fn bare(ty: &str) -> String {
    let mut rest = ty.trim();
    let mut out = String::new();
    // Every wrapper opens one bracket more; its closing bracket goes with it.
    let mut wrapped: Vec<bool> = Vec::new();
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("Nullable(").or_else(|| rest.strip_prefix("LowCardinality(")) {
            wrapped.push(true);
            rest = after;
            continue;
        }
        let keep = match next {
            '(' => {
                wrapped.push(false);
                true
            }
            ')' => !wrapped.pop().unwrap_or(false),
            _ => true,
        };
        if keep {
            out.push(next);
        }
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sightline_model::Dataset;

    use super::{bare, check};

    fn found(columns: &[(&str, &str)]) -> Vec<(String, String)> {
        columns.iter().map(|(name, ty)| ((*name).to_owned(), (*ty).to_owned())).collect()
    }

    fn metrics(value: &str) -> String {
        let columns = found(&[("time", "DateTime64(3, 'UTC')"), ("metric", "String"), ("value", value)]);
        match check(Dataset::Metrics, "metrics.parquet", &columns) {
            Ok(staging) => staging.columns.last().unwrap().1.clone(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn wrappers_are_taken_off_at_any_depth() {
        assert_eq!(bare("LowCardinality(Nullable(String))"), "String");
        assert_eq!(bare("Map(LowCardinality(String), Nullable(String))"), "Map(String, String)");
        assert_eq!(bare("Nullable(DateTime64(9, 'UTC'))"), "DateTime64(9, 'UTC')");
    }

    #[test]
    fn columns_may_be_nullable_of_any_width_and_absent() {
        let columns = found(&[
            ("start", "Nullable(DateTime64(6))"),
            ("job_id", "LowCardinality(Nullable(String))"),
            ("node", "String"),
            ("gpu", "Nullable(UInt8)"),
            ("rank", "Float64"),
            ("colour", "Array(Tuple(a Int8))"),
        ]);
        let staging = check(Dataset::JobGpus, "job_gpus.parquet", &columns).unwrap();
        insta::assert_debug_snapshot!(staging);
    }

    #[test]
    fn other_types_are_told_by_file_column_expected_and_found() {
        for width in ["UInt8", "Int64", "Float32", "Nullable(Float64)"] {
            assert_eq!(metrics(width), "Nullable(Float64)");
        }
        let faults =
            ["String", "Array(Float64)", "Bool", "Decimal(18, 2)", "Int128", "Tuple(\n    a Int8)"].map(metrics);
        insta::assert_snapshot!(faults.join("\n"));
    }

    #[test]
    fn every_kind_of_column_names_what_it_wants() {
        let mut faults = Vec::new();
        for (dataset, column, ty) in [
            (Dataset::Metrics, "time", "Int64"),
            (Dataset::Metrics, "metric", "FixedString(3)"),
            (Dataset::Metrics, "labels", "Map(String, UInt8)"),
            (Dataset::JobGpus, "gpu", "Float32"),
            (Dataset::JobGpus, "rank", "String"),
            (Dataset::Jobs, "end", "Date32"),
        ] {
            let columns: Vec<(String, String)> = super::columns(dataset)
                .iter()
                .map(|known| {
                    let fits = match known.wanted {
                        super::Wanted::Time(_) => "DateTime",
                        super::Wanted::Text | super::Wanted::TextOrWhole => "String",
                        super::Wanted::Float | super::Wanted::Whole => "Int8",
                        super::Wanted::Labels => "Map(String, String)",
                    };
                    (known.name.to_owned(), if known.name == column { ty } else { fits }.to_owned())
                })
                .collect();
            faults.push(check(dataset, &format!("{dataset}.parquet"), &columns).unwrap_err().to_string());
        }
        faults.push(
            check(Dataset::Logs, "logs.parquet", &found(&[("time", "DateTime"), ("text", "String")]))
                .unwrap_err()
                .to_string(),
        );
        faults.push(check(Dataset::Logs, "logs.parquet", &[]).unwrap_err().to_string());
        insta::assert_snapshot!(faults.join("\n"));
    }

    proptest! {
        #[test]
        fn no_type_makes_it_panic(ty in any::<String>()) {
            let _ = metrics(&ty);
        }
    }
}

//! How each recorded series changed at an instant: for scorers, which compare the product with what a plain alert would say.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::client::{WriteError, Writer};
use crate::native::DatabaseName;

/// One metric of one entity before and from an instant on, over all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesShift {
    /// The stored metric name.
    pub metric: String,
    /// Its node, GPU or service, by canonical name.
    pub entity: BTreeMap<String, String>,
    /// Samples before.
    pub before_count: u64,
    /// Their median; NaN without samples.
    pub before_median: f64,
    /// The median of their absolute distances from it; NaN without samples.
    pub before_deviation: f64,
    /// Samples from then on.
    pub after_count: u64,
    /// Their median; NaN without samples.
    pub after_median: f64,
}

/// Every metric of every node, GPU and service of a database, before and from `split` on.
///
/// # Errors
/// When the engine cannot be asked.
pub async fn series_shifts(
    writer: &Writer,
    database: &DatabaseName,
    split: Timestamp,
) -> Result<Vec<SeriesShift>, WriteError> {
    let earlier = "toUnixTimestamp64Milli(time) < {split:Int64}";
    let later = "toUnixTimestamp64Milli(time) >= {split:Int64}";
    let sql = format!(
        "SELECT toString(metric), toString(node), toString(gpu), toString(service), countIf({earlier}), quantileExactIf(0.5)(value, {earlier}) AS middle, arrayReduce('quantileExact(0.5)', arrayMap(x -> abs(x - middle), groupArrayIf(value, {earlier}))), countIf({later}), quantileExactIf(0.5)(value, {later}) FROM {database}.metrics GROUP BY metric, node, gpu, service ORDER BY metric, node, gpu, service"
    );
    let rows = writer.rows(&sql, &[("split", &split.as_millisecond().to_string())]).await?;
    rows.iter().map(|row| shift(row).ok_or(WriteError::Malformed)).collect()
}

/// One number of a database by a statement from outside the product: what a labelled question's answer is held against. None where the
/// statement finds none.
///
/// # Errors
/// When the engine refuses the statement.
pub async fn recorded_number(writer: &Writer, database: &DatabaseName, sql: &str) -> Result<Option<f64>, WriteError> {
    let rows = writer.in_database(database).rows(sql, &[]).await?;
    Ok(rows.first().and_then(|row| row.first()).and_then(Value::as_f64))
}

fn shift(row: &[Value]) -> Option<SeriesShift> {
    let [metric, node, gpu, service, before_count, before_median, before_deviation, after_count, after_median] = row
    else {
        return None;
    };
    let named = [("node", node), ("gpu", gpu), ("service", service)];
    let entity = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.as_str()?.to_owned())));
    // The engine prints a statistic of nothing as null.
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    Some(SeriesShift {
        metric: metric.as_str()?.to_owned(),
        entity: entity.filter(|(_, value)| !value.is_empty()).collect(),
        before_count: before_count.as_u64()?,
        before_median: number(before_median),
        before_deviation: number(before_deviation),
        after_count: after_count.as_u64()?,
        after_median: number(after_median),
    })
}

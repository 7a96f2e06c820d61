//! Taking rows out again: for data that is made anew, such as the demo fleet's. Never used on a recorded incident.

use crate::client::{WriteError, Writer};
use crate::native::DatabaseName;

/// Drops a database of the product's tables, if it is there. Without `SYNC`, on which libchdb was seen to hang: the files go a
/// few minutes later.
///
/// # Errors
/// When the engine refuses or cannot be reached.
pub async fn drop_database(writer: &Writer, database: &DatabaseName) -> Result<(), WriteError> {
    writer.execute(&format!("DROP DATABASE IF EXISTS {database}")).await
}

/// Empties the tables of jobs and of the GPUs they held, whose rows are told anew as a whole: a job that ran has ended since.
///
/// # Errors
/// When the engine refuses or cannot be reached.
pub async fn clear_jobs(writer: &Writer, database: &DatabaseName) -> Result<(), WriteError> {
    for table in ["jobs", "job_gpus"] {
        writer.execute(&format!("TRUNCATE TABLE {database}.{table}")).await?;
    }
    Ok(())
}

//! The site's own runbooks: Markdown files of a folder, read once at start and laid beside the shipped ones.
//!
//! Who can write the folder decides what is quoted, not what is done: a runbook's text is shown as a quotation, like telemetry.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use sightline_tools::{Knowledge, SiteRunbook};

use crate::stations::OpenError;

/// The most files that are read; more is a folder of something else.
const MAX_FILES: usize = 500;
/// The most that is read of a file, bytes: beyond what a runbook may have, so that a longer one is told as such.
const MAX_READ: u64 = 64 * 1024;

/// What ships, with the site's runbooks where there is a folder of them. A file that is no runbook is left out, and the log says why.
///
/// # Errors
/// When the folder or a file of it cannot be read: a site that names one relies on it.
pub(crate) fn knowledge(dir: Option<&Path>) -> Result<Arc<Knowledge>, OpenError> {
    let Some(dir) = dir else { return Ok(sightline_tools::builtin_knowledge()) };
    let fault = |path: &Path, error: std::io::Error| {
        OpenError::Data(format!("the runbooks in `{}` cannot be read: {error}; correct `runbooks.dir`", path.display()))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|error| fault(dir, error))? {
        let path = entry.map_err(|error| fault(dir, error))?.path();
        if path.extension().is_some_and(|extension| extension == "md") && path.is_file() {
            paths.push(path);
        }
    }
    // Of two files with one id the later name wins, wherever the folder lies.
    paths.sort();
    if paths.len() > MAX_FILES {
        tracing::warn!(
            files = paths.len(),
            limit = MAX_FILES,
            "there are too many runbooks; the last ones by name are left out"
        );
        paths.truncate(MAX_FILES);
    }
    let mut files = Vec::new();
    for path in paths {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&path).map_err(|error| fault(&path, error))?;
        file.take(MAX_READ).read_to_end(&mut bytes).map_err(|error| fault(&path, error))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.push(SiteRunbook { file: name, text: String::from_utf8_lossy(&bytes).into_owned() });
    }
    let (knowledge, faults) = Knowledge::builtin().with_site(&files);
    for (file, fault) in &faults {
        tracing::warn!(%file, %fault, "a runbook is left out");
    }
    Ok(Arc::new(knowledge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_runbooks_stand_beside_ours_and_what_is_none_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let ours = "---\nid: our-filers\ntitle: Our filers\n---\n## Do\n- Call the storage team.\n";
        std::fs::write(folder.path().join("filers.md"), ours).unwrap();
        std::fs::write(folder.path().join("broken.md"), "# notes").unwrap();
        std::fs::write(folder.path().join("README.txt"), ours.replace("our-filers", "not-read")).unwrap();
        let found = knowledge(Some(folder.path())).unwrap();
        assert!(found.get("runbook/our-filers").is_some_and(|entry| entry.of_site));
        assert!(found.get("runbook/not-read").is_none());
        assert_eq!(found.entries().len(), Knowledge::builtin().entries().len() + 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = knowledge(Some(Path::new("/nowhere/at/all"))).unwrap_err().to_string();
        assert!(error.contains("correct `runbooks.dir`"), "{error}");
        assert!(Arc::ptr_eq(&knowledge(None).unwrap(), &sightline_tools::builtin_knowledge()));
    }
}

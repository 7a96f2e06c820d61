//! A folder of policies with principals of its own: the rules and limits are the shipped ones.

use std::path::Path;

/// Writes it, and gives back where it is.
pub(crate) fn folder(data_dir: &Path, principals: &str) -> String {
    let folder = data_dir.join("policies");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("principals.toml"), principals).unwrap();
    folder.to_str().unwrap().to_owned()
}

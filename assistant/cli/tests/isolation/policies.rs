//! A folder of policies with principals of its own: the rules are the shipped ones, and the limits too but for how often one may ask.

use std::path::Path;

/// The limits that ship with the program.
const LIMITS: &str = include_str!("../../../../policies/limits.toml");

/// Writes it, and gives back where it is.
pub(crate) fn folder(data_dir: &Path, principals: &str) -> String {
    let folder = data_dir.join("policies");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("principals.toml"), principals).unwrap();
    let patient = |line: &str| {
        let per_minute = line.starts_with("questions_per_minute");
        if per_minute { "questions_per_minute = 100_000".to_owned() } else { line.to_owned() }
    };
    let limits: Vec<String> = LIMITS.lines().map(patient).collect();
    std::fs::write(folder.join("limits.toml"), limits.join("\n")).unwrap();
    folder.to_str().unwrap().to_owned()
}

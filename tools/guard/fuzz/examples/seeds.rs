//! Writes what the targets begin from: a file for each seed, in a folder for each target under the folder that is named.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let corpus = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "corpus".into()));
    for target in sightline_fuzz::targets() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in sightline_fuzz::seeds(target).into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:04}")), seed)?;
        }
    }
    Ok(())
}

//! Where libchdb is looked for.

use std::path::{Path, PathBuf};

/// The version of libchdb that the engine is built against and tested with.
pub const LIBCHDB_VERSION: &str = "26.5.3";

const FILE_NAME: &str = "libchdb.so";

/// The places where the library may lie, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct LibrarySearch {
    /// `engine.library` or `SIGHTLINE_LIBCHDB`: this file and no other.
    pub configured: Option<PathBuf>,
    /// The folder of the running binary.
    pub binary_dir: Option<PathBuf>,
    /// The data folder.
    pub data_dir: Option<PathBuf>,
    /// The user's home, for `~/.cache/sightline/<version>/`.
    pub home_dir: Option<PathBuf>,
}

/// The library is in none of the places.
#[derive(Debug, thiserror::Error)]
pub enum LibraryNotFound {
    /// The file that the configuration names is not there.
    #[error(
        "no libchdb at `{}`, which engine.library names; run `make engine` and drop that setting, or set `clickhouse.url` for a server of your own",
        .0.display()
    )]
    Configured(PathBuf),
    /// None of the usual places has it.
    #[error(
        "libchdb {LIBCHDB_VERSION} is not installed (looked in {places}); run `make engine` to fetch it, or set `clickhouse.url` for a server of your own"
    )]
    Anywhere {
        /// The files that were looked for, in order.
        places: String,
    },
}

impl LibrarySearch {
    /// Finds the library.
    pub fn find(&self) -> Result<PathBuf, LibraryNotFound> {
        if let Some(path) = &self.configured {
            return if path.is_file() { Ok(path.clone()) } else { Err(LibraryNotFound::Configured(path.clone())) };
        }
        let places = self.usual_places();
        if let Some(found) = places.iter().find(|place| place.is_file()) {
            return Ok(found.clone());
        }
        let places: Vec<String> = places.iter().map(|place| format!("`{}`", place.display())).collect();
        Err(LibraryNotFound::Anywhere { places: places.join(", ") })
    }

    fn usual_places(&self) -> Vec<PathBuf> {
        let beside_binary = self.binary_dir.as_deref().map(|dir| dir.join(FILE_NAME));
        let in_data_dir = self.data_dir.as_deref().map(|dir| dir.join(FILE_NAME));
        let in_cache = self.home_dir.as_deref().map(cached_library);
        [beside_binary, in_data_dir, in_cache].into_iter().flatten().collect()
    }
}

/// Where `make engine` puts the library for the user whose home is `home_dir`.
pub fn cached_library(home_dir: &Path) -> PathBuf {
    home_dir.join(".cache").join("sightline").join(LIBCHDB_VERSION).join(FILE_NAME)
}

#[cfg(test)]
mod tests {
    use super::{LIBCHDB_VERSION, LibrarySearch, cached_library};

    #[test]
    fn places_are_tried_in_order() {
        let home = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let cached = cached_library(home.path());
        std::fs::create_dir_all(cached.parent().unwrap()).unwrap();
        std::fs::write(&cached, b"").unwrap();
        let search = LibrarySearch {
            configured: None,
            binary_dir: None,
            data_dir: Some(data.path().to_owned()),
            home_dir: Some(home.path().to_owned()),
        };
        assert_eq!(search.find().unwrap(), cached);

        let in_data = data.path().join("libchdb.so");
        std::fs::write(&in_data, b"").unwrap();
        assert_eq!(search.find().unwrap(), in_data);
    }

    #[test]
    fn a_configured_file_is_the_only_place() {
        let search = LibrarySearch { configured: Some("/nowhere/libchdb.so".into()), ..LibrarySearch::default() };
        assert_eq!(
            search.find().unwrap_err().to_string(),
            "no libchdb at `/nowhere/libchdb.so`, which engine.library names; run `make engine` and drop that setting, \
             or set `clickhouse.url` for a server of your own"
        );
    }

    #[test]
    fn a_missing_library_is_one_line_that_says_how_to_get_it() {
        let search = LibrarySearch { home_dir: Some("/nowhere".into()), ..LibrarySearch::default() };
        assert_eq!(
            search.find().unwrap_err().to_string(),
            format!(
                "libchdb {LIBCHDB_VERSION} is not installed (looked in `/nowhere/.cache/sightline/{LIBCHDB_VERSION}/libchdb.so`); \
                 run `make engine` to fetch it, or set `clickhouse.url` for a server of your own"
            )
        );
    }
}

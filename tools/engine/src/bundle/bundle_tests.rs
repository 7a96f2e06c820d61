use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use sightline_query::catalogue::LabelAliases;

use super::{Bundle, BundleError, Manifest, parquet_ends, read_manifest};

fn open(dir: &Path) -> Result<Bundle, BundleError> {
    Bundle::open(dir, &LabelAliases::builtin().unwrap())
}

fn bundle(dir: &Path, manifest: &str, metrics: &[u8]) {
    fs::create_dir_all(dir.join("data")).unwrap();
    fs::write(dir.join("bundle.toml"), manifest).unwrap();
    fs::write(dir.join("data/metrics.parquet"), metrics).unwrap();
}

#[test]
fn a_manifest_says_defaults_and_aliases() {
    let text = "[defaults]\ntenant = \"atlas\"\ncluster = \"west\"\ncolour = \"red\"\n[aliases.labels]\nnode = [\"Box\"]\n[aliases.metrics]\ngpu_temperature = [\"temp_c\"]\n[more]\n";
    let expected = Manifest {
        tenant: "atlas".to_owned(),
        cluster: "west".to_owned(),
        label_aliases: BTreeMap::from([("node".to_owned(), vec!["Box".to_owned()])]),
        metric_aliases: BTreeMap::from([("gpu_temperature".to_owned(), vec!["temp_c".to_owned()])]),
        warnings: vec![
            "`bundle.toml`: `defaults.colour` is not known and was ignored".to_owned(),
            "`bundle.toml`: `more` is not known and was ignored".to_owned(),
        ],
    };
    assert_eq!(read_manifest(text).unwrap(), expected);
    assert_eq!(read_manifest("").unwrap(), Manifest::default());
}

#[test]
fn a_bad_manifest_is_told_by_line() {
    let fault = |text: &str| read_manifest(text).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            fault("[defaults]\ntenant = 7\n"),
            fault("[defaults]\ntenant = \"\"\n"),
            fault("x = 1\n[defaults\n"),
            fault("defaults = 3\n"),
            fault("[aliases.labels]\nnode = \"Hostname\"\n"),
        ]
        .join("\n"),
        @r###"
    `bundle.toml`, line 2: `defaults.tenant` must be a text
    `bundle.toml`, line 2: `defaults.tenant` must be a text
    `bundle.toml`, line 2: unclosed table, expected `]`
    `bundle.toml`, line 1: `defaults` must be a table
    `bundle.toml`, line 1: `aliases.labels` must be a table of lists of names, for example `node = ["Hostname"]`
    "###
    );
}

#[test]
fn equal_content_has_one_name_and_the_scorers_file_has_no_part_in_it() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    bundle(a.path(), "[defaults]\ntenant = \"atlas\"\n", b"one");
    bundle(b.path(), "[defaults]\n\ntenant = 'atlas'\n", b"one");
    fs::write(b.path().join("incident.toml"), "not even TOML [").unwrap();
    let (first, second) = (open(a.path()).unwrap(), open(b.path()).unwrap());
    assert_eq!(first.database, second.database);
    assert!(first.database.as_str().starts_with("incident_"));
    bundle(b.path(), "[defaults]\ntenant = \"atlas\"\n", b"two");
    assert_ne!(first.database, open(b.path()).unwrap().database);
    bundle(b.path(), "[defaults]\ntenant = \"borealis\"\n", b"one");
    assert_ne!(first.database, open(b.path()).unwrap().database);
}

#[test]
fn what_is_no_bundle_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().display().to_string();
    let missing = open(&dir.path().join("nowhere")).unwrap_err().to_string();
    let empty = open(dir.path()).unwrap_err().to_string();
    insta::assert_snapshot!(format!("{missing}\n{empty}").replace(&here, "DIR"), @r"
    `DIR/nowhere` is no folder; name the folder of a bundle, which holds `data/metrics.parquet` and the like
    `DIR/data` holds none of `metrics.parquet`, `logs.parquet`, `spans.parquet`, `events.parquet`, `jobs.parquet`, `job_gpus.parquet`; a bundle needs at least one of them
    ");
}

#[test]
fn what_is_no_parquet_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics.parquet");
    let fault = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        parquet_ends(&file).unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        [fault(b""), fault(b"PAR1"), fault(b"time,metric\n1,2\n"), fault(b"PAR1 and then it breaks off"), fault(b"PAR1\xff\xff\xff\xffPAR1")].join("\n"),
        @r"
    `metrics.parquet` is no Parquet file: it is empty; write it again
    `metrics.parquet` is no Parquet file: it is too short; write it again
    `metrics.parquet` is no Parquet file: it does not begin with `PAR1`; write it again
    `metrics.parquet` is no Parquet file: it does not end with `PAR1`, so its end is missing; write it again
    `metrics.parquet` is no Parquet file: its footer is longer than the file; write it again
    "
    );
}

proptest! {
    #[test]
    fn no_manifest_makes_it_panic(text in any::<String>()) {
        let _ = read_manifest(&text);
    }
}

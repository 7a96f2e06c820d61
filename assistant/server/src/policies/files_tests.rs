use std::path::{Path, PathBuf};

use super::files::PolicyFiles;

const PRINCIPALS: &str = "[[principal]]\nid = \"ann@atlas\"\nrole = \"viewer\"\n";
const RULE: &str = "@id(\"readers\")\n@reason(\"r\")\n@allow(\"viewer@t read_metrics t\")\n@deny(\"viewer@t read_logs t\")\npermit (principal, action == Action::\"read_metrics\", resource);\n";

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The faults of a folder, with its name taken out.
fn faults(folder: &Path) -> Vec<String> {
    let read = PolicyFiles::read(Some(folder)).and_then(|files| files.policies());
    let prefix = format!("{}", folder.display());
    let faults = read.map(|_| ()).unwrap_err().faults;
    faults.iter().map(|fault| fault.to_string().replace(&prefix, "DIR")).collect()
}

#[test]
fn without_a_folder_the_shipped_policies_hold() {
    let files = PolicyFiles::read(None).unwrap();
    assert!(files.policies().unwrap().principal("viewer@atlas").is_some());
    assert!(files.names().is_empty());
}

#[test]
fn a_folder_takes_the_place_of_what_it_has_and_the_demos_principals_never_come_with_it() {
    let folder = folder(&[("principals.toml", PRINCIPALS), ("notes.txt", "not policy")]);
    let policies = PolicyFiles::read(Some(folder.path())).unwrap().policies().unwrap();
    let ids: Vec<String> = policies.principals().into_iter().map(|principal| principal.id).collect();
    assert_eq!(ids, ["ann@atlas"]);
    assert!(policies.rules().contains(&"viewer-asks"));
    write(folder.path(), "rules/site.cedar", RULE);
    let policies = PolicyFiles::read(Some(folder.path())).unwrap().policies().unwrap();
    assert_eq!(policies.rules(), ["readers"]);
}

#[test]
fn a_folder_that_would_be_passed_over_in_silence_is_refused() {
    let good = [("principals.toml", PRINCIPALS)];
    assert_eq!(
        faults(folder(&[]).path()),
        [
            "DIR/principals.toml:1: it is missing; say who there is (the principals that ship with the program are those of its demo)"
        ]
    );
    let odd = folder(&good);
    write(odd.path(), "limit.toml", "");
    write(odd.path(), "viewer.cedar", "");
    write(odd.path(), "rules/site.ceder", "");
    assert_eq!(
        faults(odd.path()),
        [
            "DIR/limit.toml:1: it is not read; the files are `limits.toml`, `principals.toml`, `identity.toml`, and `rules/*.cedar`",
            "DIR/viewer.cedar:1: it is not read; the files are `limits.toml`, `principals.toml`, `identity.toml`, and `rules/*.cedar`",
            "DIR/rules/site.ceder:1: it is not read; files of rules end in `.cedar`",
            "DIR/rules:1: it holds no rules, so nothing would be allowed; take it away to have the shipped ones",
        ]
    );
    let nowhere = faults(&folder(&[]).path().join("nowhere"));
    assert!(nowhere[0].contains("sightline policy init"), "{nowhere:?}");
    assert_eq!(nowhere.len(), 1);
}

#[test]
fn what_cannot_be_read_is_refused_whatever_it_is() {
    let odd = folder(&[("principals.toml", PRINCIPALS)]);
    std::fs::write(odd.path().join("limits.toml"), [0xff, 0xfe]).unwrap();
    std::fs::write(odd.path().join("identity.toml"), vec![b' '; 1024 * 1024 + 1]).unwrap();
    std::fs::create_dir_all(odd.path().join("rules/folder.cedar")).unwrap();
    std::os::unix::fs::symlink("nothing", odd.path().join("rules/gone.cedar")).unwrap();
    let faults = faults(odd.path());
    let starts = [
        "DIR/rules/folder.cedar:1: it is no file",
        "DIR/rules/gone.cedar:1: it cannot be read",
        "DIR/limits.toml:1: it cannot be read",
        "DIR/identity.toml:1: it has over",
    ];
    assert_eq!(faults.len(), starts.len(), "{faults:?}");
    for (fault, start) in faults.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
}

#[test]
fn every_fault_of_every_file_is_told_with_its_file_and_line() {
    let broken = folder(&[
        ("principals.toml", "[[principal]]\nid = \"ann@atlas\"\nrole = \"root\"\n"),
        ("limits.toml", "[viewer]\nmax_point = 1\n"),
        ("rules/a.cedar", "permit (principal, action, resource);\n"),
        ("rules/b.cedar", "\npermit (principal\n"),
    ]);
    let places: Vec<String> =
        faults(broken.path()).iter().map(|fault| fault.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect();
    assert_eq!(places, ["DIR/limits.toml:2", "DIR/principals.toml:3", "DIR/rules/a.cedar:1", "DIR/rules/b.cedar:2"]);
}

#[test]
fn any_change_of_name_or_text_shows_in_the_digest() {
    let folder = folder(&[("principals.toml", PRINCIPALS), ("rules/a.cedar", RULE)]);
    let digest = || PolicyFiles::read(Some(folder.path())).unwrap().digest();
    let mut seen = vec![digest()];
    assert_eq!(digest(), seen[0]);
    write(folder.path(), "rules/a.cedar", &format!("{RULE} "));
    seen.push(digest());
    std::fs::rename(folder.path().join("rules/a.cedar"), folder.path().join("rules/b.cedar")).unwrap();
    seen.push(digest());
    write(folder.path(), "identity.toml", "");
    seen.push(digest());
    let mut different = seen.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), seen.len());
}

#[test]
fn a_folder_that_is_swapped_by_its_link_is_read_whole() {
    let folder = folder(&[("..first/principals.toml", PRINCIPALS), ("..second/principals.toml", "")]);
    let link = |to: &str| {
        let new = folder.path().join("..new");
        std::os::unix::fs::symlink(to, &new).unwrap();
        std::fs::rename(new, folder.path().join("..data")).unwrap();
    };
    link("..first");
    std::os::unix::fs::symlink("..data/principals.toml", folder.path().join("principals.toml")).unwrap();
    let read = || PolicyFiles::read(Some(folder.path())).unwrap();
    let first = read();
    assert_eq!(first.names(), [path(folder.path(), "principals.toml").display().to_string()]);
    assert_eq!(first.policies().unwrap().principals().len(), 1);
    link("..second");
    assert_ne!(read().digest(), first.digest());
    assert_eq!(read().policies().unwrap().principals().len(), 0);
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

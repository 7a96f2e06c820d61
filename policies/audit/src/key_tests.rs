use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{AuditKey, PublicKey};

#[test]
fn the_first_start_makes_a_private_key_file_and_later_starts_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.key");
    let made = AuditKey::load_or_create(&path, [1; 32]).unwrap();
    let read = AuditKey::load_or_create(&path, [2; 32]).unwrap();
    assert_eq!(made.public(), read.public());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn many_first_starts_at_once_end_with_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.key");
    let keys: Vec<String> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..16_u8)
            .map(|index| {
                let path = &path;
                scope.spawn(move || AuditKey::load_or_create(path, [index; 32]).unwrap().public().to_string())
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| Some(key) == keys.first()), "{keys:?}");
}

#[test]
fn a_key_file_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.key");
    AuditKey::load_or_create(&path, [1; 32]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = AuditKey::load_or_create(&path, [1; 32]).unwrap_err().to_string();
    assert_eq!(
        error.replace(&path.display().to_string(), "KEY"),
        "key file `KEY` may be read by others (mode 644); run `chmod 600` on it"
    );
}

#[test]
fn a_key_file_without_a_key_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.key");
    fs::write(&path, "not a key").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let error = AuditKey::load_or_create(&path, [1; 32]).unwrap_err().to_string();
    assert_eq!(
        error.replace(&path.display().to_string(), "KEY"),
        "key file `KEY` does not hold 64 hex digits; restore it from a copy"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "not a key");
}

#[test]
fn a_public_key_survives_its_text_and_a_secret_one_is_never_printed() {
    let key = AuditKey::from_secret([3; 32]);
    assert_eq!(PublicKey::parse(&key.public().to_string()), Some(key.public()));
    assert_eq!(PublicKey::parse("beef"), None);
    assert_eq!(format!("{key:?}"), format!("AuditKey({})", key.public().id()));
}

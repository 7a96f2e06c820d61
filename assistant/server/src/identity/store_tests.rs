use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;

use super::sessions::{Cookie, IDLE, LONGEST, LONGEST_VOUCHED, OpenedBy};
use super::store::IdentityStore;
use super::tokens::{Presented, Shape, TokenOrder, TokenState, shape};

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
}

fn order(principal: &str, expires: Option<Timestamp>) -> TokenOrder {
    TokenOrder { principal: principal.to_owned(), label: "test".to_owned(), created: at(0), expires }
}

fn state(store: &IdentityStore, text: &str, now: Timestamp) -> Option<TokenState> {
    match store.present_token(text, now).unwrap() {
        Presented::Known(token) => Some(token.state(now)),
        Presented::WrongSecret { .. } | Presented::Unknown => None,
    }
}

fn lives(store: &IdentityStore, id: &str, now: Timestamp) -> bool {
    matches!(store.session(id, now).unwrap(), Cookie::Living(_))
}

/// Everything that lies in the folder, as one run of bytes.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_token_stands_for_its_principal_until_it_expires_or_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let lasting = store.new_token(&order("viewer@atlas", None)).unwrap();
    let short = store.new_token(&order("viewer@atlas", Some(at(24)))).unwrap();
    assert_eq!(state(&store, &lasting.text, at(9999)), Some(TokenState::Valid));
    assert_eq!(state(&store, &short.text, at(23)), Some(TokenState::Valid));
    assert_eq!(state(&store, &short.text, at(24)), Some(TokenState::Expired));
    // Another process on the same folder.
    let other = IdentityStore::open(folder.path()).unwrap();
    assert_eq!(
        other.revoke_token(&lasting.id, at(2)).unwrap().map(|token| token.principal).as_deref(),
        Some("viewer@atlas")
    );
    assert_eq!(state(&store, &lasting.text, at(3)), Some(TokenState::Revoked));
    assert_eq!(other.revoke_token(&lasting.id, at(4)).unwrap(), None, "it is revoked once");
    let listed = store.tokens().unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed.iter().find(|token| token.id == lasting.id).unwrap().revoked, Some(at(2)));
}

#[test]
fn another_secret_another_id_and_any_other_text_stand_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let a = store.new_token(&order("viewer@atlas", None)).unwrap();
    let b = store.new_token(&order("admin", None)).unwrap();
    let secret_of = |text: &str| text.rsplit('_').next().unwrap().to_owned();
    let crossed = format!("sl_{}_{}", b.id, secret_of(&a.text));
    assert!(matches!(store.present_token(&crossed, at(0)).unwrap(), Presented::WrongSecret { id, .. } if id == b.id));
    for text in [
        String::new(),
        "sl_".to_owned(),
        secret_of(&a.text),
        format!("sl_{}", secret_of(&a.text)),
        format!("sl_{}_{}", "0".repeat(16), secret_of(&a.text)),
        a.text.to_uppercase(),
        format!("{} ", a.text),
        format!("{}0", a.text),
        "sl_%_%".to_owned(),
    ] {
        assert_eq!(store.present_token(&text, at(0)).unwrap(), Presented::Unknown, "{text}");
    }
    assert_eq!(shape(&a.text), Shape::Named { id: &a.id });
}

#[test]
fn only_digests_are_kept_in_a_file_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let token = store.new_token(&order("viewer@atlas", None)).unwrap();
    let session = store.open_session("viewer@atlas", &OpenedBy::Token { id: token.id.clone() }, at(0)).unwrap();
    assert!(lives(&store, &session.id, at(1)));
    let bytes = bytes_of(folder.path());
    assert!(holds(&bytes, &token.id), "the search finds what is there");
    for secret in [token.text.rsplit('_').next().unwrap(), session.id.as_str(), session.csrf_token.as_str()] {
        assert_eq!(secret.len(), 64);
        assert!(!holds(&bytes, secret));
        assert!(!bytes.windows(32).any(|window| window == hex::decode(secret).unwrap()));
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    assert!(!format!("{token:?}").contains(token.text.rsplit('_').next().unwrap()));
}

#[test]
fn a_use_is_noted_once_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let token = store.new_token(&order("viewer@atlas", None)).unwrap();
    let day = |hours: i64| Timestamp::from_second(at(hours).as_second().div_euclid(86_400) * 86_400).unwrap();
    for (hours, last_used) in [(0, day(0)), (1, day(0)), (48, day(48))] {
        store.present_token(&token.text, at(hours)).unwrap();
        assert_eq!(store.tokens().unwrap()[0].last_used, Some(last_used));
    }
}

#[test]
fn tokens_of_an_earlier_version_are_taken_over_once_and_still_hold() {
    let folder = tempfile::tempdir().unwrap();
    let old = format!("sl_{}", "5e".repeat(32));
    let json = serde_json::json!({ "version": 1, "tokens": [
        { "principal": "operator@atlas", "digest": hex::encode(super::secret::digest(&old)), "created": at(0) }
    ] });
    let path = folder.path().join("tokens.json");
    std::fs::write(&path, json.to_string()).unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    assert_eq!(state(&store, &old, at(9999)), Some(TokenState::Valid));
    assert!(!path.exists() && folder.path().join("tokens.json.migrated").exists());
    let id = store.tokens().unwrap()[0].id.clone();
    store.revoke_token(&id, at(1)).unwrap();
    // Cut off before the file was moved away, or put back by hand: what was revoked stays so.
    std::fs::write(&path, json.to_string()).unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    assert_eq!(state(&store, &old, at(2)), Some(TokenState::Revoked));
    assert_eq!(store.tokens().unwrap().len(), 1);
}

#[test]
fn a_token_made_in_place_of_others_ends_those_of_its_label_and_of_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let kept = store.new_token(&TokenOrder { label: "laptop".to_owned(), ..order("admin", None) }).unwrap();
    let before = store.replace_token(&order("admin", None)).unwrap();
    let other = store.replace_token(&order("auditor", None)).unwrap();
    let after = store.replace_token(&order("admin", None)).unwrap();
    let states = [&kept, &before, &other, &after].map(|token| state(&store, &token.text, at(1)).unwrap());
    assert_eq!(states, [TokenState::Valid, TokenState::Revoked, TokenState::Valid, TokenState::Valid]);
}

#[test]
fn a_session_ends_when_it_is_idle_or_old_or_its_token_ends() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let token = store.new_token(&order("viewer@atlas", Some(at(1000)))).unwrap();
    let by = OpenedBy::Token { id: token.id.clone() };
    let open = |now| store.open_session("viewer@atlas", &by, now).unwrap().id;

    let idle = open(at(0));
    assert!(lives(&store, &idle, at(IDLE.as_hours() - 1)), "its use puts off the end");
    assert!(lives(&store, &idle, at(2 * IDLE.as_hours() - 2)));
    assert!(!lives(&store, &idle, at(3 * IDLE.as_hours() - 2)));
    assert!(matches!(store.session(&idle, at(3 * IDLE.as_hours())).unwrap(), Cookie::Ended { .. }));

    let old = open(at(0));
    for hour in 0..LONGEST.as_hours() {
        assert!(lives(&store, &old, at(hour)), "hour {hour}");
    }
    assert!(!lives(&store, &old, at(LONGEST.as_hours())));

    let late = open(at(995));
    assert!(lives(&store, &late, at(999)) && !lives(&store, &late, at(1000)), "the token expires");
    let revoked = open(at(0));
    assert!(lives(&store, &revoked, at(1)));
    store.revoke_tokens_of("viewer@atlas", at(1)).unwrap();
    assert!(!lives(&store, &revoked, at(1)));
    // The clock may be set back after that.
    assert!(!lives(&store, &revoked, at(0)));
}

#[test]
fn a_session_that_a_provider_vouched_for_lasts_a_working_day_and_keeps_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let by = OpenedBy::Provider { issuer: "https://login.example.com/".to_owned(), claims: "{}".to_owned() };
    let session = store.open_session("corp:ann", &by, at(0)).unwrap();
    assert_eq!(session.ends.duration_since(at(0)), LONGEST_VOUCHED);
    let Cookie::Living(found) = store.session(&session.id, at(1)).unwrap() else { panic!("it lives") };
    assert_eq!((found.principal.as_str(), &found.opened_by), ("corp:ann", &by));
    assert!(!lives(&store, &session.id, at(LONGEST_VOUCHED.as_hours())));
}

#[test]
fn revoking_a_principal_ends_its_sessions_that_no_token_of_ours_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let by = OpenedBy::Provider { issuer: "https://login.example.com/".to_owned(), claims: "{}".to_owned() };
    let open = |who: &str| store.open_session(who, &by, at(0)).unwrap().id;
    let (one, two, other) = (open("corp:ann"), open("corp:ann"), open("corp:bob"));
    assert_eq!(store.end_vouched_sessions_of("corp:ann", at(1)).unwrap(), 2);
    assert!(!lives(&store, &one, at(1)) && !lives(&store, &two, at(1)) && lives(&store, &other, at(1)));
    assert_eq!(store.end_vouched_sessions_of("corp:ann", at(1)).unwrap(), 0);
    // One that has ended by itself is none that was ended.
    assert_eq!(store.end_vouched_sessions_of("corp:bob", at(LONGEST_VOUCHED.as_hours() + 1)).unwrap(), 0);
}

#[test]
fn a_session_that_was_logged_out_is_unknown_and_a_principal_has_fifty_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let store = IdentityStore::open(folder.path()).unwrap();
    let token = store.new_token(&order("viewer@atlas", None)).unwrap();
    let by = OpenedBy::Token { id: token.id };
    let minute = |minute: i64| at(0).saturating_add(SignedDuration::from_mins(minute)).unwrap();
    let sessions: Vec<String> =
        (0..60).map(|n| store.open_session("viewer@atlas", &by, minute(n)).unwrap().id).collect();
    let living = sessions.iter().map(|id| lives(&store, id, minute(60)));
    assert_eq!(living.collect::<Vec<_>>(), (0..60).map(|n| n >= 10).collect::<Vec<_>>());
    let Cookie::Living(last) = store.session(&sessions[59], minute(60)).unwrap() else { panic!("it lives") };
    assert!(store.end_session(&last).unwrap());
    assert!(!store.end_session(&last).unwrap());
    assert!(matches!(store.session(&sessions[59], minute(60)).unwrap(), Cookie::Unknown));
}

#[test]
fn a_file_that_is_newer_damaged_or_held_by_another_is_told_of_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.db");
    let said = || IdentityStore::open(folder.path()).err().unwrap().to_string();

    std::fs::write(&path, "this is no database, whatever its name says, and it is longer than a header".repeat(9))
        .unwrap();
    assert!(said().contains("is damaged") && said().contains("`sightline token new`"), "{}", said());
    std::fs::remove_file(&path).unwrap();

    let store = IdentityStore::open(folder.path()).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.new_token(&order("admin", None)).unwrap_err().to_string();
    assert!(refused.contains("held by another process"), "{refused}");
    drop(holder);
    store.new_token(&order("admin", None)).unwrap();
    drop(store);

    Connection::open(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
    assert!(said().contains("format 9") && said().contains("use the newer `sightline`"), "{}", said());
    std::fs::remove_file(&path).unwrap();

    let tokens = folder.path().join("tokens.json");
    std::fs::write(&tokens, r#"{"version":9,"tokens":[]}"#).unwrap();
    assert!(said().contains("tokens.json") && said().contains("format 9"), "{}", said());
    std::fs::write(
        &tokens,
        r#"{"version":1,"tokens":[{"principal":"a","digest":"zz","created":"2026-01-01T00:00:00Z"}]}"#,
    )
    .unwrap();
    assert!(said().contains("damaged"), "{}", said());
    assert!(tokens.exists(), "what cannot be read is left as it is");
}

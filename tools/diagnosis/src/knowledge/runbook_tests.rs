use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::xid::xid_info;

#[test]
fn every_file_is_a_runbook_of_its_name_that_can_be_quoted_whole() {
    for (name, text) in FILES {
        let runbook = parse_runbook(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(runbook.id, *name);
        let sections: BTreeSet<Section> = runbook.items.iter().map(|(section, _)| *section).collect();
        let wanted = [Section::When, Section::CheckFirst, Section::Decide, Section::Do, Section::Verify];
        assert_eq!(sections, wanted.into_iter().collect(), "{name}");
        for (_, item) in &runbook.items {
            assert!(item.chars().count() <= MAX_PASSAGE && item.ends_with(['.', '?']), "{name}: {item}");
        }
        assert!(!runbook.keywords.is_empty(), "{name}");
        assert!(runbook.xids.iter().all(|code| xid_info(*code).is_some()), "{name}");
    }
}

#[test]
fn every_file_of_the_folder_is_compiled_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/runbooks");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(FILES.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), there);
    assert_eq!(runbooks().len(), FILES.len());
}

#[test]
fn a_head_in_yaml_style_and_items_over_lines_are_read() {
    let text = "---\nid: own-one\ntitle: \"Ours\"\ncauses: [a, \"b\"]\nxids: [79]\n---\n# Title\nsome words\n\n## When\n- first\n  goes on\n\n  not this\n- second\n";
    let runbook = parse_runbook(text).unwrap();
    assert_eq!(
        (runbook.title.as_str(), runbook.causes, runbook.xids),
        ("Ours", vec!["a".into(), "b".into()], vec![79])
    );
    let items: Vec<&str> = runbook.items.iter().map(|(_, item)| item.as_str()).collect();
    assert_eq!(items, ["first goes on", "second"]);
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let fault = |text: &str| parse_runbook(text).unwrap_err();
    assert_eq!(fault("id: x"), RunbookFault::NoHead);
    assert_eq!(fault("---\nid: x\n"), RunbookFault::NoHead);
    assert_eq!(fault("---\nowner: x\n---"), RunbookFault::Head { line: "owner: x".to_owned() });
    assert_eq!(fault("---\nxids: many\n---"), RunbookFault::Head { line: "xids: many".to_owned() });
    assert_eq!(fault("---\nid: x\n---"), RunbookFault::Lacks { key: "title" });
    assert_eq!(fault("---\nid: ../x\ntitle: t\n---"), RunbookFault::Id { id: "../x".to_owned() });
    assert_eq!(fault("---\nid: x\ntitle: t\n---\n## Why\n"), RunbookFault::Heading { heading: "Why".to_owned() });
    assert_eq!(fault("---\nid: x\ntitle: t\n---\n- no section\n"), RunbookFault::Empty);
    assert!(matches!(fault(&"x".repeat(20_000)), RunbookFault::TooLarge { bytes: 20_000, .. }));
}

proptest! {
    #[test]
    fn any_text_is_survived(head in "\\PC{0,40}", body in "(## (When|Do)\n|- \\PC{0,30}\n|  x\n|\\PC{0,10}\n){0,6}") {
        let _ = parse_runbook(&head);
        let _ = parse_runbook(&format!("---\nid: x\ntitle: {head}\n---\n{body}"));
    }
}

use sightline_model::Verification;

use super::*;
use crate::ablation::Fared;

fn score(right: bool) -> Score {
    Score {
        outcome: true,
        cause: Some(right),
        cause_top3: Some(true),
        wrong_cause: None,
        component: Some(right),
        component_top3: Some(right),
        innocents: 0,
        onset: None,
        onset_off_s: None,
        said: Vec::new(),
        evidence: Share { hit: 1, of: 2 },
        facts: Share::default(),
        verified: true,
    }
}

fn question(id: &str, half: &str, expected: Outcome, scored: Option<Score>) -> QuestionReport {
    let answered = expected == Outcome::Answered;
    let node = || [("node".to_owned(), "n1".to_owned())].into();
    QuestionReport {
        id: id.to_owned(),
        question: format!("why {id}?"),
        half: Some(half.to_owned()),
        family: if answered { "training" } else { "controls" },
        expected_outcome: expected,
        expected_cause: answered.then(|| "slow_worker".to_owned()),
        expected_components: if answered { vec![node()] } else { Vec::new() },
        right: scored.as_ref().is_some_and(Score::is_right),
        said: scored.as_ref().map(|_| Said {
            outcome: expected,
            headline: "n1 is slow.".to_owned(),
            causes: vec!["power_capping".to_owned()],
            components: vec![node()],
            dropped: 0,
            checked: Verification { checked: 2, passed: 2, dropped: 0 }.checked,
        }),
        error: scored.is_none().then(|| "its files are empty".to_owned()),
        score: scored,
        cost: Cost { queries: 4, rows_read: 100, bytes_read: 1, wall_ms: 12.0, llm_tokens: 0 },
        planned: None,
        baseline: answered.then_some(Baseline { place: Some(2), of: 9 }),
        removals: Vec::new(),
    }
}

fn report() -> Report {
    let control = Score { cause: None, cause_top3: None, component: None, component_top3: None, ..score(true) };
    let mut ablated = question("a", "tuning", Outcome::Answered, Some(score(true)));
    let removal = |metric: &str, optional: bool, fared: Fared| Removal {
        metric: metric.to_owned(),
        optional,
        fared,
        instead: None,
    };
    ablated.removals = vec![removal("sm_clock", false, Fared::SaysMissing), removal("power_limit", true, Fared::Right)];
    Report::of(vec![
        ablated,
        question("b", "held-out", Outcome::Answered, Some(score(false))),
        question("c", "held-out", Outcome::NoFault, Some(control)),
        question("d", "held-out", Outcome::Answered, None),
    ])
}

#[test]
fn a_question_without_an_answer_fares_badly_in_all_that_it_asks() {
    let totals = report().totals;
    assert_eq!((totals.questions, totals.errors), (4, 1));
    assert_eq!(totals.cause, Share { hit: 1, of: 3 });
    assert_eq!(totals.cause_top3, Share { hit: 2, of: 3 });
    assert_eq!(totals.component, Share { hit: 1, of: 3 });
    assert_eq!(totals.controls, Share { hit: 1, of: 1 });
    assert_eq!(totals.outcome, Share { hit: 3, of: 4 });
    assert_eq!(totals.evidence, Share { hit: 3, of: 6 });
    assert_eq!(totals.baseline_component, Share { hit: 0, of: 3 });
    assert_eq!(totals.baseline_component_top3, Share { hit: 3, of: 3 });
}

#[test]
fn halves_and_families_add_up_to_the_whole() {
    let report = report();
    for parts in [report.by_half.values().collect::<Vec<_>>(), report.by_family.values().collect()] {
        assert_eq!(parts.iter().map(|totals| totals.questions).sum::<usize>(), report.totals.questions);
        assert_eq!(parts.iter().map(|totals| totals.right.hit).sum::<usize>(), report.totals.right.hit);
    }
}

#[test]
fn the_text_says_what_was_missed_and_what_was_said_instead() {
    insta::assert_snapshot!(report().text());
}

#[test]
fn the_document_holds_every_question() {
    let document: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
    assert_eq!(document["questions"].as_array().unwrap().len(), 4);
    assert_eq!(document["questions"][3]["error"], "its files are empty");
    assert_eq!(document["ablation"]["power_limit"]["right"], 1);
}

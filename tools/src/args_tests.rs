use super::*;
use crate::testing::at;

fn reason(result: Result<impl std::fmt::Debug, ToolError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn windows_that_make_no_sense_say_so() {
    let window = |from: i64, to: i64| window("top_k", Instant(at(from)), Instant(at(to)), at(3600));
    insta::assert_snapshot!(
        [reason(window(10, 10)), reason(window(20, 10)), reason(window(3600, 7200)), reason(window(9000, 9600))]
            .join("\n")
    );
}

#[test]
fn a_window_that_reaches_past_now_ends_now() {
    let clipped = window("top_k", Instant(at(0)), Instant(at(7200)), at(3600)).unwrap();
    assert_eq!(clipped, TimeRange::new(at(0), at(3600)).unwrap());
}

#[test]
fn a_time_that_is_none_is_named() {
    let error = serde_json::from_str::<Instant>("\"yesterday\"").unwrap_err().to_string();
    assert_eq!(error, "`yesterday` is not a time; write RFC 3339 in UTC, like `2026-05-03T14:00:00Z`");
}

fn arg(dim: &str, op: FilterOp, values: &[&str]) -> FilterArg {
    FilterArg { dim: dim.to_owned(), op, values: values.iter().map(|v| (*v).to_owned()).collect() }
}

#[test]
fn filters_become_conditions_on_columns_labels_and_values() {
    let args = [
        arg("node", FilterOp::Is, &["n1"]),
        arg("gpu", FilterOp::Is, &["0", "1"]),
        arg("job", FilterOp::Not, &["J1"]),
        arg("model_name", FilterOp::Contains, &["llama"]),
        arg("value", FilterOp::Gt, &["90.5"]),
    ];
    let dim = |dim: Dim, matches: Match| Filter::Dim { dim, matches };
    let expected = vec![
        dim(Dim::Node, Match::Eq("n1".to_owned())),
        dim(Dim::Gpu, Match::In(vec!["0".to_owned(), "1".to_owned()])),
        // Metrics know a job by a label, jobs by their own id.
        dim(Dim::Label("job".to_owned()), Match::NotEq("J1".to_owned())),
        dim(Dim::Label("model_name".to_owned()), Match::ContainsFold("llama".to_owned())),
        Filter::Value { op: ValueOp::Above, bound: 90.5 },
    ];
    assert_eq!(filters("top_k", Dataset::Metrics, &args).unwrap(), expected);
    let job = filters("top_k", Dataset::JobGpus, &args[2..3]).unwrap();
    assert_eq!(job, vec![dim(Dim::JobId, Match::NotEq("J1".to_owned()))]);
}

#[test]
fn filters_that_make_no_sense_say_what_would() {
    let faults = [
        arg("node", FilterOp::Is, &[]),
        arg("node", FilterOp::Regex, &["a", "b"]),
        arg("node", FilterOp::Gt, &["3"]),
        arg("value", FilterOp::Contains, &["3"]),
        arg("value", FilterOp::Gt, &["warm"]),
        arg("value", FilterOp::Gt, &["inf"]),
        arg("node", FilterOp::Present, &["n1"]),
    ];
    let reasons: Vec<String> =
        faults.iter().map(|f| reason(filters("top_k", Dataset::Metrics, std::slice::from_ref(f)))).collect();
    insta::assert_snapshot!(reasons.join("\n"));
}

#[test]
fn in_is_another_word_for_is() {
    let parse = |op: &str| serde_json::from_str::<FilterOp>(&format!("\"{op}\"")).ok();
    assert_eq!([parse("in"), parse("not_in"), parse("like")], [Some(FilterOp::Is), Some(FilterOp::Not), None]);
}

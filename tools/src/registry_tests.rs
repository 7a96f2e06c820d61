use super::*;

#[test]
fn every_tool_has_a_schema_that_was_looked_at() {
    for tool in tools() {
        insta::assert_json_snapshot!(format!("schema_{}", tool.name()), tool.schema());
    }
}

#[test]
fn what_a_planner_is_sent_is_short() {
    let sent = sent_tools(&tools());
    let lines: Vec<String> = sent.iter().map(|t| format!("{}: {}\n{}", t.name, t.description, t.schema)).collect();
    let text = lines.join("\n");
    insta::assert_snapshot!("sent_tools", text);
    // JSON of this kind takes some 3.6 bytes a token, so this is what 1,600 tokens hold: what it takes to say the questions of
    // the analyst corpus, message templates, the search of runbooks and jobs by size and age. A new argument must earn its place.
    assert!(text.len() < 5760, "{} bytes", text.len());
}

#[test]
fn names_are_found_and_unique() {
    let names: Vec<&str> = tools().iter().map(|t| t.name()).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert!(names.iter().all(|name| find(name).is_some()) && find("run_sql").is_none());
}

#[test]
fn arguments_that_do_not_exist_are_refused() {
    let args = json!({ "metric": "gpu_temperature", "from": "2026-05-03T00:00:00Z", "to": "2026-05-04T00:00:00Z", "tenant": "x" });
    let error = find("metric_range").unwrap().plan(&args, &crate::testing::context(), &[]).unwrap_err();
    assert!(error.to_string().contains("unknown field `tenant`"), "{error}");
}

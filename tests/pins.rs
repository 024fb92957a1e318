//! Pinned messages stay as they are, whatever happens around them.

mod common;

use common::host::{Host, options};
use common::openai_chat;
use serde_json::json;
use tidemark::{Engine, PlanRequest, Step};

fn transcript() -> Vec<String> {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."}).to_string()];
    for turn in 0..40 {
        let text = "the quick brown fox jumps over the lazy dog ".repeat(12);
        messages.push(json!({"role": "user", "content": format!("{turn}: {text}")}).to_string());
        let call = json!({"id": "c", "type": "function", "function":
            {"name": "look", "arguments": json!({"turn": turn}).to_string()}});
        messages.push(json!({"role": "assistant", "tool_calls": [call]}).to_string());
        let result = format!("result {turn}: {text}{text}{text}");
        messages.push(json!({"role": "tool", "tool_call_id": "c", "content": result}).to_string());
        messages.push(json!({"role": "assistant", "content": "done"}).to_string());
    }
    messages
}

fn compacted(stages: &str, pins: &[u32], all: &[String]) -> (Engine, Vec<serde_json::Value>) {
    let json = format!(r#"{{"window":4000{stages}}}"#);
    let mut engine = Engine::new(options(&json)).unwrap();
    engine.ingest(0, &format!("[{}]", all.join(",")), pins).unwrap();
    let Step::Done { outcome } = engine.plan(PlanRequest::default()).unwrap() else {
        panic!("no host is needed")
    };
    assert!(outcome.compacted && outcome.fits, "{outcome:?}");
    let view: Vec<serde_json::Value> = serde_json::from_str(&engine.render_json()).unwrap();
    assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
    (engine, view)
}

#[test]
fn a_pinned_message_outlives_every_stage() {
    let all = transcript();
    for stages in ["", r#","stages":["drop"]"#, r#","stages":["clear","summarize","elide"]"#] {
        let (engine, _) = compacted(stages, &[5], &all);
        assert!(engine.render_json().contains(&all[5]), "{stages}");
        assert!(!engine.render_json().contains(&all[9]), "{stages}: its neighbour went");
    }
}

#[test]
fn a_pinned_result_brings_its_call_along() {
    let all = transcript();
    let (engine, view) = compacted("", &[7], &all);
    assert!(engine.render_json().contains(&all[7]));
    let at =
        view.iter().position(|m| m["content"].as_str().is_some_and(|c| c.starts_with("result 1:")));
    assert_eq!(view[at.unwrap() - 1]["role"], "assistant");
}

#[test]
fn pins_hold_after_a_restore_that_names_them_again() {
    let all = transcript();
    let (engine, _) = compacted("", &[5], &all);
    let mut restored =
        Engine::restore(options(r#"{"window":4000}"#), &engine.checkpoint()).unwrap();
    restored.ingest(0, &format!("[{}]", all.join(",")), &[5]).unwrap();
    assert_eq!(restored.render_json(), engine.render_json());
}

#[test]
fn leading_system_messages_are_pinned_by_nature() {
    let all = transcript();
    let mut host = Host::new(r#"{"window":4000}"#);
    for end in 1..=all.len() {
        host.turn(&all[..end]);
        assert!(host.engine.render_json().starts_with(&format!("[{}", all[0])));
    }
}

//! What the host's tools left malformed, and what the view shows instead.

mod common;

use common::host::Host;
use common::openai_chat;
use tidemark::{Engine, RecallArgs};

/// The view of messages, checked, and the kinds of the repairs.
fn mended(messages: &str) -> (String, Vec<&'static str>) {
    let mut host = Host::new(r#"{"window":100000}"#);
    host.engine.ingest(0, messages, &[]).unwrap();
    let outcome = host.plan(Default::default());
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
    let kinds = outcome.repairs.iter().map(|repair| repair.kind).collect();
    (host.engine.render_json(), kinds)
}

#[test]
fn an_empty_list_of_calls_is_left_out_and_nothing_else() {
    let user = r#"{"role":"user","content":"hi"}"#;
    for (message, shown) in [
        (
            r#"{"role":"assistant","tool_calls":[],"content":"a"}"#,
            r#"{"role":"assistant","content":"a"}"#,
        ),
        (
            r#"{"tool_calls" : [ ] , "role":"assistant","content":"a"}"#,
            r#"{ "role":"assistant","content":"a"}"#,
        ),
        (
            r#"{"role":"assistant","content":"a, \"tool_calls\":", "tool_calls":[]}"#,
            r#"{"role":"assistant","content":"a, \"tool_calls\":"}"#,
        ),
    ] {
        let (view, kinds) = mended(&format!("[{user},{message}]"));
        assert_eq!(view, format!("[{user},{shown}]"));
        assert_eq!(kinds, ["empty_calls"]);
    }
}

#[test]
fn arguments_become_a_json_text() {
    let calls = |arguments: &str| {
        format!(
            r#"[{{"role":"user","content":"hi"}},{{"role":"assistant","tool_calls":[{{"id":"c","type":"function","function":{{"name":"f"{arguments}}}}}]}},{{"role":"tool","tool_call_id":"c","content":"ok"}}]"#
        )
    };
    let (view, kinds) = mended(&calls(r#","arguments":{"a": 1}"#));
    assert_eq!(view, calls(r#","arguments":"{\"a\": 1}""#));
    assert_eq!(kinds, ["object_arguments"]);
    for none in ["", r#","arguments":null"#] {
        let (view, kinds) = mended(&calls(none));
        assert!(view.contains(r#""arguments":"{}""#), "{view}");
        assert_eq!(kinds, ["no_arguments"]);
    }
}

#[test]
fn before_the_transcript_is_back_recall_says_so() {
    let mut host = Host::new(r#"{"window":4000}"#);
    let text = "word ".repeat(300);
    let messages: Vec<String> =
        (0..30).map(|at| format!(r#"{{"role":"user","content":"{at} {text}"}}"#)).collect();
    assert!(host.turn(&messages).compacted);
    let options = common::host::options(r#"{"window":4000}"#);
    let mut engine = Engine::restore(options, &host.engine.checkpoint()).unwrap();
    let args = RecallArgs { pattern: Some("word".to_owned()), ..RecallArgs::default() };
    let error = engine.recall(&args).unwrap_err();
    assert_eq!((error.code().as_str(), error.path()), ("invalid_transcript", "messages"));
    engine.ingest(0, &format!("[{}]", messages.join(",")), &[]).unwrap();
    assert!(engine.recall(&args).is_ok());
}

#[test]
fn members_that_stand_twice_and_absurd_sizes_do_no_harm() {
    let message = r#"{"role":"tool","tool_call_id":"c","content":"\ud83d","content":"\ud83d"}"#;
    let call = r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let mut host = Host::new(r#"{"window":1000,"imageTokens":1000000000}"#);
    let image = r#"{"type":"image_url","image_url":{"url":"data:,"}}"#;
    let images = [image; 9].join(",");
    let user = format!(r#"{{"role":"user","content":[{images}]}}"#);
    host.engine.ingest(0, &format!("[{user},{call},{message},{user}]"), &[]).unwrap();
    assert!(!host.plan(Default::default()).fits);
    assert!(host.engine.render_json().contains('\u{FFFD}'));
    let render = host.engine.render(0, 0, u32::MAX);
    assert!(render.items_before <= render.keep.saturating_add(4));

    let far = host.engine.checkpoint().replace("\"parts\"", "\"x\"");
    let far = far.trim_end_matches('}').to_owned()
        + r#","dropped":[4294967295,"00"],"summary":{"text":"t","covered":4294967295,"chain":"00","ref":"000000000000","by":"local","version":1}}"#;
    let options = common::host::options(r#"{"window":1000}"#);
    let mut engine = Engine::restore(options, &far).unwrap();
    engine.ingest(0, &format!("[{user},{call},{message}]"), &[]).unwrap();
    assert!(engine.render_json().contains("tool_calls"));
}

#[test]
fn a_new_id_is_no_old_one() {
    let call = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
    };
    let result = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
    };
    let calls = [call("x"), call("x"), call("x~2")].join(",");
    let (view, kinds) = mended(&format!(
        r#"[{{"role":"user","content":"hi"}},{{"role":"assistant","tool_calls":[{calls}]}},{},{},{}]"#,
        result("x", "1"),
        result("x", "2"),
        result("x~2", "3"),
    ));
    assert_eq!(kinds, ["duplicate_id"]);
    for (id, text) in [("x", "1"), ("x~3", "2"), ("x~2", "3")] {
        assert!(view.contains(&result(id, text)), "{view}");
    }
}

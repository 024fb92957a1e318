//! Raw request bodies: what no decision touches keeps its bytes.

mod common;

use common::host::options;
use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Engine, Outcome, PlanRequest, Reason, Step};

fn plan(engine: &mut Engine) -> Outcome {
    match engine.plan(PlanRequest::default()).expect("a good request") {
        Step::Done { outcome } => *outcome,
        other => panic!("{other:?}"),
    }
}

fn engine(json: &str) -> Engine {
    Engine::new(options(json)).unwrap()
}

/// A body as some other program would write it: odd spacing, escapes and number spellings.
fn body(results: usize, words: usize, gap: &str) -> (String, Vec<String>) {
    let mut messages =
        vec![r#"{"role":"user", "content":"caf\u00e9 \/ start","n":1.50e+01}"#.to_owned()];
    for at in 0..results {
        let call = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"f{at}\"}}"}}}}]}}"#
        );
        let text = format!("r{at} word ").repeat(words);
        messages.push(call);
        messages.push(format!(
            r#"{{ "content" : "{text}", "tool_call_id":"c{at}" , "role":"tool","x":0.10}}"#
        ));
    }
    let list = messages.join(&format!("{gap},{gap}"));
    let text = format!(
        "{{{gap}\"temperature\":1.0,{gap}\"messages\":[{gap}{list}{gap}]{gap},\"max_tokens\":1e2,\"z\":\"\\u00e9\"}}"
    );
    (text, messages)
}

#[test]
fn an_unchanged_body_is_the_one_that_was_read() {
    let (text, _) = body(4, 10, " ");
    let mut engine = engine(r#"{"window":100000}"#);
    engine.ingest_body(text.as_bytes(), None).unwrap();
    assert_eq!(plan(&mut engine).reason, Reason::UnderTrigger);
    assert_eq!(engine.render_body(), None);
}

proptest! {
    #![proptest_config(common::cases(48))]

    #[test]
    fn bytes_outside_the_edits_are_equal(
        results in 3usize..30,
        words in 20usize..400,
        gap in prop::sample::select(vec!["", " ", "\n  ", "\t\r\n"]),
        window in 2_000u32..12_000,
    ) {
        let (text, messages) = body(results, words, gap);
        let mut engine = engine(&format!("{{\"window\":{window}}}"));
        engine.ingest_body(text.as_bytes(), Some("/v1/chat/completions")).unwrap();
        let outcome = plan(&mut engine);
        let rendered = engine.render_body();
        prop_assert_eq!(rendered.is_some(), outcome.compacted);
        let Some(rendered) = rendered else { return Ok(()) };
        let parsed: Value = serde_json::from_str(&rendered).unwrap();
        // Before and behind the list not one byte differs.
        let open = text.find('[').unwrap();
        prop_assert!(rendered.starts_with(&text[..=open]));
        let close = text.rfind(']').unwrap();
        let behind = text[..close].trim_end().len();
        prop_assert!(rendered.ends_with(&text[behind..]));
        // A message of the view is as it was written, but for its edited content.
        let view = engine.render_json();
        let expected: Value = serde_json::from_str(&view).unwrap();
        prop_assert_eq!(&parsed["messages"], &expected);
        let kept = messages.iter().filter(|message| rendered.contains(message.as_str())).count();
        prop_assert!(kept > 0);
        // Neighbours that both stand as they were keep the space between them.
        for pair in messages.windows(2) {
            if rendered.contains(&pair[0]) && rendered.contains(&pair[1]) {
                let joined = format!("{}{gap},{gap}{}", pair[0], pair[1]);
                prop_assert!(rendered.contains(&joined));
            }
        }
    }
}

#[test]
fn a_conversation_that_the_provider_keeps_is_left_alone() {
    for member in ["previous_response_id", "conversation"] {
        let text = format!(
            r#"{{"{member}":"resp_1","input":[{{"role":"user","content":"{}"}}]}}"#,
            "word ".repeat(5_000)
        );
        let mut engine = engine(r#"{"window":2000}"#);
        engine.ingest_body(text.as_bytes(), None).unwrap();
        assert_eq!(plan(&mut engine).reason, Reason::ServerSideHistory);
        assert_eq!(engine.render_body(), None);
    }
}

#[test]
fn instructions_tools_and_the_output_limit_are_counted() {
    let long = "word ".repeat(3_000);
    let text = |more: &str| format!(r#"{{"messages":[{{"role":"user","content":"hi"}}]{more}}}"#);
    let size = |more: &str| {
        let mut engine = engine(r#"{"window":100000}"#);
        engine.ingest_body(text(more).as_bytes(), None).unwrap();
        (engine.estimate().tokens, engine.estimate().usable.unwrap())
    };
    let (plain, usable) = size("");
    assert!(size(&format!(r#","system":"{long}""#)).0 > plain + 1_500);
    assert!(
        size(&format!(r#","tools":[{{"name":"t","description":"{long}"}}]"#)).0 > plain + 1_500
    );
    assert_eq!(size(r#","max_tokens":40000"#).1, 60_000);
    assert_eq!(size(r#","max_tokens":100"#).1, usable);
}

#[test]
fn a_body_without_messages_is_refused_by_name() {
    let mut engine = engine(r#"{"window":2000}"#);
    for (text, code, place) in [
        ("{}", "invalid_transcript", "body"),
        ("[", "invalid_json", "body"),
        (r#"{"messages":[1]}"#, "invalid_transcript", "messages[0]"),
    ] {
        let error = engine.ingest_body(text.as_bytes(), None).unwrap_err();
        assert_eq!((error.code().as_str(), error.path()), (code, place), "{text}");
    }
    assert_eq!(engine.ingest_body(&[0xFF], None).unwrap_err().code().as_str(), "invalid_json");
}

#[test]
fn a_dry_run_decides_nothing() {
    let (_, messages) = body(20, 200, "");
    let mut engine = engine(r#"{"window":4000}"#);
    engine.ingest(0, &format!("[{}]", messages.join(",")), &[]).unwrap();
    let (before, size) = (engine.checkpoint(), engine.estimate().tokens);
    let request = PlanRequest { dry_run: true, ..PlanRequest::default() };
    let Step::Done { outcome } = engine.plan(request).unwrap() else { panic!("no effects") };
    assert!(outcome.compacted && outcome.tokens_after < size && !outcome.decisions.is_empty());
    assert_eq!((engine.checkpoint(), engine.estimate().tokens), (before, size));
    let real = plan(&mut engine);
    assert_eq!(real.decisions, outcome.decisions);
}

#[test]
fn one_message_or_its_text_in_place_of_the_list_passes_through() {
    for (body, format) in [
        (r#"{"input":"hello"}"#, "openai-responses"),
        (r#"{ "model" : "gpt-5", "input" : "caf\u00e9 \/", "store":false}"#, "openai-responses"),
        (r#"{"contents":"hello"}"#, "gemini"),
        (r#"{"contents":{"parts":[{"text":"hello"}]}}"#, "gemini"),
        (r#"{"contents":{"role":"user","parts":[{"text":"hello"}]}}"#, "gemini"),
        (r#"{"prompt":"hello"}"#, "ai-sdk"),
    ] {
        for options in [
            r#"{"window":100000}"#.to_owned(),
            format!(r#"{{"window":100000,"format":"{format}"}}"#),
        ] {
            let mut engine = engine(&options);
            engine.ingest_body(body.as_bytes(), None).unwrap();
            assert!(engine.estimate().tokens > 0);
            let outcome = plan(&mut engine);
            assert_eq!(outcome.reason, Reason::UnderTrigger, "{body}");
            assert!(outcome.fits && outcome.repairs.is_empty(), "{outcome:?}");
            assert_eq!(engine.render_body(), None, "{body}");
        }
    }
}

#[test]
fn a_text_in_place_of_the_list_is_cut_where_it_is_too_long() {
    let long = "word ".repeat(8_000);
    for (body, list) in [
        (format!(r#"{{"a":1,"input":"{long}","z":2}}"#), "input"),
        (format!(r#"{{"a":1,"contents":"{long}","z":2}}"#), "contents"),
        (format!(r#"{{"a":1,"contents":{{"parts":[{{"text":"{long}"}}]}},"z":2}}"#), "contents"),
    ] {
        let mut engine = engine(r#"{"window":4000}"#);
        engine.ingest_body(body.as_bytes(), None).unwrap();
        let outcome = plan(&mut engine);
        assert!(outcome.compacted && outcome.fits, "{outcome:?}");
        let text = engine.render_body().unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(text.starts_with("{\"a\":1,") && text.ends_with(",\"z\":2}"));
        assert_eq!(json[list].as_array().unwrap().len(), 1);
        assert!(text.contains("left out") && text.len() < body.len() / 2);
    }
}

#[test]
fn a_conversation_of_the_provider_that_a_text_continues_is_left_alone() {
    let body = r#"{"previous_response_id":"resp_1","input":"and now?"}"#;
    let mut engine = engine(r#"{"window":2000}"#);
    engine.ingest_body(body.as_bytes(), None).unwrap();
    assert_eq!(plan(&mut engine).reason, Reason::ServerSideHistory);
    assert_eq!(engine.render_body(), None);
}

#[test]
fn other_legal_shapes_of_messages_pass_through() {
    for body in [
        r#"{"model":"claude","system":"be","messages":[{"role":"user","content":"hello"}]}"#,
        r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":"so"}]}"#,
        r#"{"messages":[]}"#,
        r#"{"input":[]}"#,
    ] {
        let mut engine = engine(r#"{"window":100000}"#);
        engine.ingest_body(body.as_bytes(), None).unwrap();
        assert!(plan(&mut engine).fits);
        assert_eq!(engine.render_body(), None, "{body}");
    }
}

#[test]
fn bodies_without_messages_are_refused_with_the_place() {
    use tidemark::ErrorCode;
    for (body, place) in [
        (r#"{}"#, "body"),
        (r#"{"model":"m"}"#, "body"),
        (r#"{"messages":null}"#, "body"),
        (r#"{"messages":"hello"}"#, "body"),
        (r#"{"messages":{"role":"user","content":"x"}}"#, "body"),
        (r#"{"input":7}"#, "body"),
        (r#"{"contents":true}"#, "body"),
        (r#"[]"#, "body"),
        (r#""hello""#, "body"),
        (r#"{"contents":["hello"]}"#, "messages[0]"),
        (r#"{"messages":["hello"]}"#, "messages[0]"),
    ] {
        let mut engine = engine(r#"{"window":100000}"#);
        let error = engine.ingest_body(body.as_bytes(), None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidTranscript, "{body}");
        assert_eq!(error.path(), place, "{body}");
    }
}

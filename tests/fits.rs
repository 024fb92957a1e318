//! Whatever is cut is cut until it fits.

mod common;

use common::build::{assistant, said, user};
use common::host::{Host, Mood};
use common::openai_chat;
use serde_json::json;

#[test]
fn dense_and_escaped_content_is_elided_until_it_fits() {
    let rust = "    println!(\"{}\", x);\n".repeat(3_000);
    let dense = "{\\\"a\\\":\\\"b\\\"},\n".repeat(3_000);
    let ends = "1 ".repeat(6_000) + &"internationalization ".repeat(6_000) + &"1 ".repeat(6_000);
    for window in [4_000, 8_000, 16_000, 32_000] {
        for text in [&rust, &dense, &ends] {
            let arguments = json!({"path": "a.rs", "content": text}).to_string();
            for (arguments, result) in [(arguments.as_str(), "ok"), ("{}", text.as_str())] {
                let call = json!({"id": "c", "type": "function", "function":
                    {"name": "write", "arguments": arguments}});
                let all = [
                    user("write it"),
                    json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string(),
                    json!({"role": "tool", "tool_call_id": "c", "content": result}).to_string(),
                ];
                let mut host = Host::new(&format!("{{\"window\":{window}}}"));
                let outcome = host.turn(&all);
                assert!(outcome.fits, "{window}: {:?}", outcome.smallest);
                assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
            }
        }
    }
}

#[test]
fn an_apology_is_no_summary() {
    let mut all: Vec<String> = (0..30).map(|at| said(at, 200)).collect();
    all.push(assistant("done"));
    let mut host = Host::new(r#"{"window":6000,"summarizer":true}"#);
    host.mood = Mood::NoSections;
    let outcome = host.turn(&all);
    assert_eq!(outcome.summary.unwrap().by, tidemark::Author::Local);
    assert_eq!(outcome.failures[0].code, "missing_sections");
}

#[test]
fn a_resting_session_restored_rests_alike() {
    let big = "word ".repeat(7_200);
    let mut all = vec![user("go"), assistant("plan"), user(&big)];
    let mut host = Host::new(r#"{"window":10000,"reserve":0}"#);
    host.turn(&all);
    host.turn(&all);
    let checkpoint = host.engine.checkpoint();
    all.extend([assistant("Read it all."), user("and now?")]);
    let outcome = host.turn(&all);
    let mut restored = Host::restore(r#"{"window":10000,"reserve":0}"#, &checkpoint);
    let again = restored.turn(&all);
    assert_eq!(again.compacted, outcome.compacted);
    assert_eq!(restored.engine.render_json(), host.engine.render_json());
}

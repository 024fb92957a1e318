//! A note that points to a newer copy leads to one: whatever a preset takes out, and whatever becomes of
//! the transcript.

mod common;

use common::build::*;
use common::host::Host;
use common::openai_chat;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a turn adds: words of the user, or a call with its result.
#[derive(Clone, Debug)]
enum Turn {
    Words(usize),
    Call { path: u8, text: u8, words: usize },
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        1 => (5..200usize).prop_map(Turn::Words),
        5 => (0..5u8, 0..5u8, prop::sample::select(vec![30, 70, 150, 400]))
            .prop_map(|(path, text, words)| Turn::Call { path, text, words }),
    ];
    prop::collection::vec(turn, 4..40)
}

fn messages(turns: &[Turn]) -> Vec<String> {
    let mut all = vec![user("start")];
    for (at, turn) in turns.iter().enumerate() {
        match turn {
            Turn::Words(words) => {
                all.push(user(&long(&format!("u{at}"), *words)));
                all.push(assistant("yes"));
            }
            Turn::Call { path, text, words } => {
                let id = format!("c{at}");
                all.push(calls(&[&id], &format!("p{path}")));
                all.push(result(&id, &long(&format!("t{text}"), *words)));
            }
        }
    }
    all
}

/// Checks that what the notes of the view point to stands behind them.
fn check(host: &Host, all: &[String]) -> Result<(), TestCaseError> {
    let view = host.view();
    prop_assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
    let parsed: Vec<Value> = all.iter().map(|one| serde_json::from_str(one).unwrap()).collect();
    // Ids are unique here: the message of a result, and the arguments of its call.
    let original = |id: &Value| parsed.iter().find(|one| one["tool_call_id"] == *id).unwrap();
    let argument = |id: &Value| {
        let calls = parsed.iter().filter_map(|one| one["tool_calls"].as_array()).flatten();
        calls.into_iter().find(|call| call["id"] == *id).map(|call| &call["function"]["arguments"])
    };
    for (at, note) in view.iter().enumerate() {
        let text = note["content"].as_str().unwrap_or_default();
        let same = text.contains("the same result stands further on");
        if !same && !text.contains("the same call was made again further on") {
            continue;
        }
        let id = &note["tool_call_id"];
        let leads = view[at + 1..].iter().any(|newer| {
            let other = &newer["tool_call_id"];
            let text = newer["content"].as_str().unwrap_or_default();
            let stands = !text.starts_with('[') || text.contains("characters left out");
            let copy = match same {
                true => original(id)["content"] == original(other)["content"],
                false => argument(id) == argument(other),
            };
            newer["role"] == "tool" && stands && copy
        });
        prop_assert!(leads, "{text} of {}", json!(view));
    }
    Ok(())
}

proptest! {
    #![proptest_config(common::cases(384))]

    #[test]
    fn a_pointer_leads_to_what_is_in_the_view(
        turns in turns(),
        preset in prop::sample::select(PRESETS.to_vec()),
        dedupe in any::<bool>(),
        recall in any::<bool>(),
        window in 1_000..5_000u32,
        chunk in 1..8usize,
        pins in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        cut in any::<prop::sample::Index>(),
    ) {
        let all = messages(&turns);
        let mut pins: Vec<u32> = pins.iter().map(|pin| pin.index(all.len()) as u32).collect();
        pins.sort_unstable();
        pins.dedup();
        let stages = match dedupe {
            true => r#","stages":[{"stage":"dedupe","at":0.3},{"stage":"smart","at":0.5},"drop"]"#,
            false => "",
        };
        let json = options(window, &format!("\"preset\":\"{preset}\",\"recall\":{recall}{stages}"));
        let mut host = Host::new(&json);
        let mut end = 0;
        while end < all.len() {
            end = (end + chunk).min(all.len());
            host.engine.ingest(0, &format!("[{}]", all[..end].join(",")), &pins).unwrap();
            let outcome = host.plan(tidemark::PlanRequest::default());
            prop_assert_eq!(outcome.tokens_after, host.engine.estimate().tokens);
            check(&host, &all)?;
        }
        host.plan(forced());
        check(&host, &all)?;
        // The host rewrites a result that something may point to.
        let mut edited = all.clone();
        let at = cut.index(all.len());
        if let Some(id) = serde_json::from_str::<Value>(&all[at]).unwrap()["tool_call_id"].as_str() {
            edited[at] = result(id, "gone");
        }
        let checkpoint = host.engine.checkpoint();
        host.engine.ingest(0, &format!("[{}]", edited.join(",")), &pins).unwrap();
        check(&host, &edited)?;
        let mut restored = Host::restore(&json, &checkpoint);
        restored.engine.ingest(0, &format!("[{}]", edited.join(",")), &pins).unwrap();
        prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
    }
}

//! Anthropic Messages: the invariants over random transcripts.

mod common;

use common::anthropic::{blocks, is_thinking, keeps_signed, problems, signed};
use common::anthropic_random::transcript;
use common::build::forced;
use common::host::Host;
use common::messages;
use common::random::text;
use common::walk::{Rules, Setting, changed, setting, state, walk};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidemark::PlanRequest;

const RULES: Rules = Rules { format: "anthropic", problems, keeps_signed, input, odd };

fn input(message: &str) -> bool {
    message.contains("\"role\":\"user\"") && !message.contains("tool_result")
}

fn odd(message: &str) -> bool {
    ["\\ud83d", "\"\"", "\" \\n\"", "[]"].iter().any(|sign| message.contains(sign))
}

/// A host that has seen the transcript turn by turn.
fn grown(all: &[String], setting: &Setting, more: &str) -> Host {
    let json = setting.json("anthropic");
    let mut host = Host::new(&format!("{}{more}}}", &json[..json.len() - 1]));
    host.store_fails = setting.store_fails;
    host.mood = setting.mood.unwrap_or(common::host::Mood::Good);
    for end in 1..=all.len() {
        host.turn(&all[..end]);
    }
    host
}

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in setting()) {
        walk(&all, &setting, &RULES)?;
    }

    #[test]
    fn thinking_of_the_running_loop_stays_and_that_of_a_message_goes_together(
        all in transcript(),
        setting in setting(),
        keep in any::<bool>(),
    ) {
        let mut host = grown(&all, &setting, &format!(",\"keepReasoning\":{keep}"));
        host.plan(forced());
        let view = messages(&host.engine.render_json());
        prop_assert_eq!(problems(&host.view()), Vec::<String>::new());
        // All or none.
        let kept = signed(&view);
        for message in &all {
            let own = signed(std::slice::from_ref(message));
            let left = own.iter().filter(|block| kept.contains(block)).count();
            // Nothing follows what stands at the end of a turn.
            prop_assert!(left == 0 || left == own.len(), "{}: {:?}", message, kept);
        }
        // What follows the user's last word stays unless its message left as a whole.
        let is_word = |message: &String| {
            let only_results = message.contains("tool_result") && !message.contains("\"type\":\"text\"");
            message.contains("\"role\":\"user\"") && !only_results
        };
        let last = all.iter().rposition(is_word).unwrap_or(0);
        for message in &all[last..] {
            let own = signed(std::slice::from_ref(message));
            let calls = message.contains("\"tool_use\"");
            let shown = view.iter().any(|shown| calls && shown.contains("\"tool_use\"") && same_calls(shown, message));
            prop_assert!(!shown || own.iter().all(|block| kept.contains(block)), "{}", message);
        }
    }

    #[test]
    fn a_rewritten_transcript_is_never_misapplied(
        all in transcript(),
        setting in setting(),
        at in any::<prop::sample::Index>(),
        new in text(),
        how in 0..3,
    ) {
        let mut host = grown(&all, &setting, "");
        let mut edited = all.clone();
        let at = at.index(all.len());
        match how {
            0 => edited[at] = json!({"role": "user", "content": format!("new {new}")}).to_string(),
            1 => { edited.remove(at); }
            _ => edited.truncate(at + 1),
        }
        prop_assume!(!edited.is_empty());
        let covered = state(&host.engine.checkpoint()).1;
        let checkpoint = host.engine.checkpoint();
        let mut restored = Host::restore(&setting.json("anthropic"), &checkpoint);
        restored.ingest(&edited);
        host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
        for one in [&restored, &host] {
            let text = one.engine.render_json();
            let mut found = problems(&one.view());
            // Where system messages stand is up to the host that took their neighbours away.
            found.retain(|problem| !problem.contains("role 'system'"));
            prop_assert_eq!(found, Vec::<String>::new(), "{}", text);
            prop_assert!(keeps_signed(&edited, &messages(&text)), "{}", text);
        }
        prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
        let systems = all.iter().take_while(|m| m.contains("\"role\":\"system\"")).count();
        if how == 0 && covered > 0 && at >= systems && ((at - systems) as u64) < covered
            && edited[at] != all[at]
        {
            prop_assert_eq!(state(&restored.engine.checkpoint()).1, 0, "the summary is about another past");
            prop_assert!(restored.engine.render_json().contains("new "));
        }
    }

    #[test]
    fn ingest_in_any_pieces_is_the_same(
        all in transcript(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let options = r#"{"format":"anthropic","window":100000}"#;
        let mut whole = Host::new(options);
        whole.ingest(&all);
        let mut pieces = Host::new(options);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len()) + 1).collect();
        ends.sort_unstable();
        ends.push(all.len());
        for end in ends {
            pieces.ingest(&all[..end]);
        }
        prop_assert_eq!(pieces.engine.render_json(), whole.engine.render_json());
        prop_assert_eq!(pieces.engine.estimate(), whole.engine.estimate());
        // Rewinding and coming back is no trace either.
        let half = all.len().div_ceil(2);
        pieces.engine.ingest(0, &format!("[{}]", all[..half].join(",")), &[]).unwrap();
        pieces.engine.ingest(half, &format!("[{}]", all[half..].join(",")), &[]).unwrap();
        prop_assert_eq!(pieces.engine.render_json(), whole.engine.render_json());
        prop_assert_eq!(pieces.engine.estimate(), whole.engine.estimate());
    }

    #[test]
    fn incremental_renders_add_up_to_the_view(all in transcript(), setting in setting()) {
        let mut host = setting.host("anthropic");
        let mut stamp = (u32::MAX, 0, 0);
        let mut shown: Vec<String> = Vec::new();
        for end in 1..=all.len() {
            host.turn(&all[..end]);
            let render = host.engine.render(stamp.0, stamp.1, stamp.2);
            shown.truncate(render.keep as usize);
            for item in &render.items {
                match item {
                    tidemark::Item::Run { from, to } => {
                        shown.extend(all[*from as usize..*to as usize].iter().cloned());
                    }
                    tidemark::Item::Patch { index, edits } => {
                        shown.push(patched(&all[*index as usize], edits));
                    }
                    tidemark::Item::Insert { json } => shown.push(json.clone()),
                }
            }
            stamp = (render.epoch, render.unit, render.items_before);
            let view = messages(&host.engine.render_json());
            prop_assert_eq!(shown.len(), view.len());
            for (piece, whole) in shown.iter().zip(&view) {
                let whole: Value = serde_json::from_str(whole).unwrap();
                let piece: Value = serde_json::from_str(piece).unwrap();
                prop_assert_eq!(piece, whole);
            }
        }
    }

    #[test]
    fn any_json_is_refused_or_read(json in json_value()) {
        let mut engine = Host::new(r#"{"format":"anthropic","window":1000}"#).engine;
        for text in [json.clone(), format!("[{json}]"),
            format!("[{{\"role\":\"assistant\",\"content\":{json}}}]"),
            format!("[{{\"role\":\"user\",\"content\":[{json}]}}]")]
        {
            if let Err(error) = engine.ingest(0, &text, &[]) {
                prop_assert!(error.path().starts_with("messages"), "{error}");
            }
            let _ = engine.plan(PlanRequest::default());
            let _ = engine.render_json();
        }
    }
}

/// Whether two messages hold calls with the same thinking before them, or the same inputs.
fn same_calls(shown: &str, sent: &str) -> bool {
    let inputs = |message: &str| -> Vec<Value> {
        let message: Value = serde_json::from_str(&message.replace("\\ud83d", "\\u003f")).unwrap();
        let blocks = blocks(&message).into_iter().filter(|block| !is_thinking(block));
        blocks.map(|block| block["input"].clone()).collect()
    };
    inputs(shown) == inputs(sent)
}

/// The edits of a patch as a host applies them: in order, on the parsed message.
fn patched(message: &str, edits: &[tidemark::Edit]) -> String {
    // What a lone surrogate becomes does not matter here: an edit replaces it.
    let mut value: Value = serde_json::from_str(&message.replace("\\ud83d", "\\u003f")).unwrap();
    for edit in edits {
        let (last, path) = edit.path.split_last().expect("a place");
        let mut holder = &mut value;
        for step in path {
            holder = match step {
                tidemark::PathStep::Key(key) => &mut holder[*key],
                tidemark::PathStep::Index(index) => &mut holder[*index as usize],
            };
        }
        match last {
            tidemark::PathStep::Key(key) if edit.json.is_empty() => {
                holder.as_object_mut().expect("an object").remove(*key);
            }
            tidemark::PathStep::Index(index) if edit.json.is_empty() => {
                holder.as_array_mut().expect("a list").remove(*index as usize);
            }
            tidemark::PathStep::Key(key) => {
                holder[*key] = serde_json::from_str(&edit.json).unwrap()
            }
            tidemark::PathStep::Index(index) => {
                holder[*index as usize] = serde_json::from_str(&edit.json).unwrap();
            }
        }
    }
    value.to_string()
}

/// Any JSON, with the names that the reader looks for.
fn json_value() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "id",
        "name",
        "input",
        "tool_use_id",
        "is_error",
        "thinking",
        "signature",
        "data",
        "source",
        "cache_control",
        "output_config",
        "x",
    ]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        prop::sample::select(vec![
            "user",
            "assistant",
            "system",
            "text",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "tool_result",
            "server_tool_use",
            "web_search_tool_result",
            "image",
            "document",
            "compaction",
            "",
            " ",
        ])
        .prop_map(|text| format!("\"{text}\"")),
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("\"\\ud83d\"".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

#[test]
fn what_follows_trailing_thinking_changes_nothing_that_was_sent() {
    fn said(blocks: Value) -> String {
        json!({"role": "assistant", "content": blocks}).to_string()
    }
    fn word(at: usize) -> Value {
        json!({"type": "text", "text": format!("said {at}")})
    }
    fn thought(at: usize) -> Value {
        json!({"type": "thinking", "thinking": format!("so {at}"), "signature": format!("Sig{at}==")})
    }
    let user = json!({"role": "user", "content": "go"}).to_string();
    let found = changed(
        &RULES,
        &user,
        &[
            ("text", |at| said(json!([word(at)]))),
            ("thinking", |at| said(json!([thought(at)]))),
            ("empty", |_| said(json!([]))),
            ("blank", |_| said(json!([{"type": "text", "text": " "}]))),
            ("call", |at| {
                let id = format!("toolu_{at}");
                said(json!([{"type": "tool_use", "id": id, "name": "read", "input": {}}]))
            }),
            ("both", |at| said(json!([thought(at), word(at)]))),
            ("cut", |at| said(json!([word(at), thought(at)]))),
        ],
    );
    assert_eq!(found, Vec::<String>::new());
}

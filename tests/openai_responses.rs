//! OpenAI Responses: the invariants over random items, and what reasoning needs.

mod common;

use std::path::Path;

use common::host::{Host, Mood};
use common::openai_responses::{kind, problems, unbound};
use common::openai_responses_random::transcript;
use common::walk::{Rules, Setting, changed, setting, walk};
use common::{data, messages};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidemark::{Item, PlanRequest};

const RULES: Rules = Rules { format: "openai-responses", problems, keeps_signed, input, odd };

/// What is encrypted stands in the view as in the transcript or not at all, and nothing in the
/// view lacks the reasoning it needs.
fn keeps_signed(sent: &[String], view: &[String]) -> bool {
    let parse = |items: &[String]| -> Vec<Value> {
        items.iter().map(|item| serde_json::from_str(item).unwrap()).collect()
    };
    // Half an emoji is no JSON for other readers.
    let sent_values: Vec<_> = sent.iter().map(|item| item.replace("\\ud83d", "\\u003f")).collect();
    let (sent_values, view_values) = (parse(&sent_values), parse(view));
    let whole = view.iter().zip(&view_values).all(|(text, item)| {
        !matches!(kind(item), "reasoning" | "compaction") || sent.contains(text)
    });
    whole && unbound(&view_values, &sent_values).is_empty()
}

fn input(item: &str) -> bool {
    item.contains("\"role\":\"user\"")
}

fn odd(item: &str) -> bool {
    item.contains("\\ud83d") || item.contains("\"content\":\"\"")
}

/// Settings with the pipelines in which reasoning, media and copies leave by themselves.
fn settings() -> impl Strategy<Value = Setting> {
    let stages = prop::sample::select(vec![
        r#","stages":["reasoning"]"#,
        r#","stages":["dedupe","media","reasoning","clear"]"#,
        r#","stages":["reasoning","summarize","drop","elide"]"#,
    ]);
    (setting(), prop::option::of(stages)).prop_map(|(mut setting, stages)| {
        setting.stages = stages.unwrap_or(setting.stages);
        setting
    })
}

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in settings()) {
        walk(&all, &setting, &RULES)?;
    }

    #[test]
    fn a_rewritten_transcript_is_never_misapplied(
        all in transcript(),
        setting in settings(),
        at in any::<prop::sample::Index>(),
        how in 0..3,
    ) {
        let mut host = setting.host(RULES.format);
        for end in 1..=all.len() {
            host.turn(&all[..end]);
        }
        let mut edited = all.clone();
        let at = at.index(all.len());
        match how {
            0 => edited[at] = r#"{"role":"user","content":"new"}"#.to_owned(),
            1 => { edited.remove(at); }
            _ => edited.truncate(at + 1),
        }
        // Outputs alone have no calls: no view of them is valid.
        prop_assume!(edited.iter().any(|item| item.contains("\"role\":\"user\"")));
        // What needed the reasoning that the host took away is the host's to settle. What it moved
        // together, or apart, is bound to what either transcript says.
        prop_assume!(how == 2 || !all[at].contains("\"type\":\"reasoning\""));
        // Nor may the host put settings side by side by taking away what stood between.
        let settings = |item: &String| item.contains("\"configuration_update\"");
        let others: Vec<&String> = edited.iter().filter(|item| !item.contains("\"lost_")).collect();
        prop_assume!(!others.windows(2).any(|pair| pair.iter().all(|item| settings(item))));
        let mut restored = Host::restore(&setting.json(RULES.format), &host.engine.checkpoint());
        restored.ingest(&edited);
        host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
        for one in [&restored, &host] {
            let view = one.engine.render_json();
            prop_assert_eq!(problems(&one.view()), Vec::<String>::new(), "{}", view);
            let shown = messages(&view);
            prop_assert!(keeps_signed(&edited, &shown) || keeps_signed(&all, &shown), "{}", view);
        }
        prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
    }

    #[test]
    fn ingest_in_any_pieces_is_the_same(
        all in transcript(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let options = r#"{"format":"openai-responses","window":100000}"#;
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
    fn incremental_renders_add_up_to_the_view(all in transcript(), setting in settings()) {
        let mut host = setting.host(RULES.format);
        let mut stamp = (u32::MAX, 0, 0);
        let mut shown: Vec<Option<String>> = Vec::new();
        for end in 1..=all.len() {
            host.turn(&all[..end]);
            let render = host.engine.render(stamp.0, stamp.1, stamp.2);
            shown.truncate(render.keep as usize);
            for item in &render.items {
                match item {
                    Item::Run { from, to } => {
                        shown.extend(all[*from as usize..*to as usize].iter().cloned().map(Some));
                    }
                    Item::Patch { .. } => shown.push(None),
                    Item::Insert { json } => shown.push(Some(json.clone())),
                }
            }
            stamp = (render.epoch, render.unit, render.items_before);
            let view = messages(&host.engine.render_json());
            prop_assert_eq!(shown.len(), view.len());
            for (piece, whole) in shown.iter().zip(&view) {
                prop_assert!(
                    piece.as_ref().is_none_or(|piece| piece == whole),
                    "{} of {}: {:?} is {}",
                    end,
                    all.len(),
                    piece,
                    whole
                );
            }
        }
    }

    #[test]
    fn any_item_is_refused_or_read(items in prop::collection::vec(odd_item(), 1..8)) {
        let mut engine = Host::new(r#"{"format":"openai-responses","window":1000}"#).engine;
        for item in &items {
            if let Err(error) = engine.ingest(engine.len(), &format!("[{item}]"), &[]) {
                prop_assert!(error.path().starts_with("messages["), "{}", error);
            }
        }
        let _ = engine.plan(PlanRequest::default());
        // Half an emoji in a role or an id stays the host's own.
        let view = engine.render_json().replace("\\ud83d", "\\u003f");
        prop_assert!(serde_json::from_str::<Vec<Value>>(&view).is_ok(), "{}", view);
    }
}

/// Items of any type with members of any kind.
fn odd_item() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
        "shell_call",
        "shell_call_output",
        "local_shell_call_output",
        "computer_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction",
        "item_reference",
        "configuration_update",
        "image_generation_call",
        "x",
    ]);
    let values = prop::sample::select(vec![
        "null",
        "1",
        "true",
        "\"\"",
        "\"a\"",
        "\"\\ud83d\"",
        "[]",
        "{}",
        "[1]",
        "[{}]",
        "[null]",
        r#"[{"type":"input_text","text":"a"}]"#,
        r#"[{"stdout":"a","stderr":1}]"#,
        r#"{"type":"computer_screenshot"}"#,
        "\"user\"",
        "\"assistant\"",
    ]);
    let names = prop::sample::select(vec![
        "role",
        "content",
        "id",
        "call_id",
        "name",
        "arguments",
        "input",
        "output",
        "summary",
        "encrypted_content",
        "approval_request_id",
        "result",
        "action",
    ]);
    let members = prop::collection::vec((names, values), 0..6);
    (prop::option::of(kinds), members).prop_map(|(kind, members)| {
        let kind = kind.map(|kind| format!("\"type\":\"{kind}\""));
        let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", kind.into_iter().chain(members).collect::<Vec<_>>().join(","))
    })
}

/// Replays items as a host would send them: a plan before every call of the model.
fn replay(name: &str, items: &[String], window: u32, extra: &str, mood: Mood) -> u32 {
    let options = format!(r#"{{"format":"openai-responses","window":{window}{extra}}}"#);
    let mut host = Host::new(&options);
    host.mood = mood;
    let mut last = String::new();
    let mut bursts = 0;
    for end in 1..=items.len() {
        let next = items.get(end).map(|item| serde_json::from_str::<Value>(item).unwrap());
        let calls =
            next.is_none_or(|item| kind(&item) == "reasoning" || item["role"] == "assistant");
        if !calls {
            continue;
        }
        let outcome = host.turn(&items[..end]);
        bursts += u32::from(outcome.compacted);
        let view = host.engine.render_json();
        let place = format!("{name} at {window}, {end} items, {:?}", outcome.reason);
        assert_eq!(problems(&host.view()), Vec::<String>::new(), "{place}");
        assert!(keeps_signed(&items[..end], &messages(&view)), "{place}: {view}");
        assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap(), "{place}");
        if !outcome.compacted && outcome.repairs.is_empty() && !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]), "{place}: prefix");
        }
        let again = host.turn(&items[..end]);
        assert!(!again.compacted, "{place}: {:?}", again.decisions);
        assert_eq!(host.engine.render_json(), view, "{place}: planned twice");
        last = view;
    }
    let mut restored = Host::restore(&options, &host.engine.checkpoint());
    restored.ingest(items);
    assert_eq!(restored.engine.render_json(), last, "{name} at {window}: restored");
    bursts
}

const FILES: [&str; 6] = [
    "tool_calls.json",
    "web_search.json",
    "code.json",
    "compaction.json",
    "phase.json",
    "codex.json",
];

#[test]
fn the_validator_accepts_what_the_api_accepted() {
    for file in FILES {
        let items: Vec<Value> =
            serde_json::from_str(&data(&format!("openai_responses/{file}"))).unwrap();
        assert_eq!(problems(&items), Vec::<String>::new(), "{file}");
        assert_eq!(unbound(&items, &items), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn real_items_at_many_windows() {
    let pipelines = ["", r#","stages":["dedupe","media","reasoning","clear","summarize","elide"]"#];
    let mut bursts = 0;
    for file in FILES {
        let items = messages(&data(&format!("openai_responses/{file}")));
        for window in [1_000, 2_000, 4_000, 8_000, 16_000, 64_000] {
            for stages in pipelines {
                bursts += replay(file, &items, window, stages, Mood::Good);
            }
        }
    }
    assert!(bursts > 50, "{bursts}");
}

#[test]
fn real_items_with_a_summarizer_of_any_mood() {
    use Mood::{Blank, Echo, Good, NoSections, Throws, ToolCall, Verbose};
    let items = messages(&data("openai_responses/codex.json"));
    for mood in [Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections] {
        let extra = r#","summarizer":true,"store":true"#;
        assert!(replay("codex.json", &items, 6_000, extra, mood) > 0);
    }
}

/// More recordings stand beside the repository on some machines.
#[test]
fn recordings_beside_the_repository() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/openai_responses");
    for file in std::fs::read_dir(shared).into_iter().flatten() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for (at, items) in recorded(&json).iter().enumerate() {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            for window in [1_000, 3_000, 20_000, 100_000] {
                replay(&format!("{name} {at}"), &items, window, "", Mood::Good);
            }
        }
    }
}

/// The items of each exchange of a recording: what was sent, and what came back.
fn recorded(json: &Value) -> Vec<Vec<Value>> {
    let Some(exchanges) = json["interactions"].as_array() else {
        return json.as_array().cloned().into_iter().collect();
    };
    let mut found = Vec::new();
    for exchange in exchanges {
        let request = match &exchange["request"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        };
        let Some(sent) = request["input"].as_array().filter(|items| !items.is_empty()) else {
            continue;
        };
        let came = exchange["response"]["output"].as_array().cloned().unwrap_or_default();
        found.push(sent.iter().cloned().chain(came).collect());
    }
    found
}

/// Rollouts of Codex CLI hold items as the API has them, and some of Codex's own.
#[test]
fn codex_rollouts_beside_the_repository() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/other_cli");
    for file in ["codex_small.jsonl", "codex_large.jsonl"] {
        let Ok(text) = std::fs::read_to_string(shared.join(file)) else { continue };
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let items: Vec<String> = lines
            .filter(|line| line["type"] == "response_item")
            .map(|line| line["payload"].to_string())
            .collect();
        for window in [1_000, 4_000, 100_000] {
            let mut host =
                Host::new(&format!(r#"{{"format":"openai-responses","window":{window}}}"#));
            for end in 1..=items.len() {
                host.turn(&items[..end]);
                // Ids were trimmed by who published them, and some items are Codex's own.
                let mut found = problems(&host.view());
                found.retain(|problem| {
                    problem.contains("No tool") || problem.contains("following item")
                });
                assert_eq!(found, Vec::<String>::new(), "{file} at {window}, {end} items");
            }
        }
    }
}

#[test]
fn the_validator_refuses_each_fault() {
    let user = r#"{"role":"user","content":"hi"}"#;
    let rs = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let fc = r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}"#;
    let fco = r#"{"type":"function_call_output","call_id":"c","output":"ok"}"#;
    let update = r#"{"type":"configuration_update"}"#;
    let good = [
        format!("{user},{rs},{fc},{fco}"),
        format!("{user},{rs},{fc}"),
        format!(r#"{user},{{"id":"fc_9"}},{fco}"#),
        format!(r#"{user},{update},{user},{update}"#),
    ];
    for items in good {
        let items: Vec<Value> = serde_json::from_str(&format!("[{items}]")).unwrap();
        assert_eq!(problems(&items), Vec::<String>::new());
    }
    for (items, fault) in [
        (String::new(), "at least one item"),
        (r#"{"role":"critic","content":"x"}"#.to_owned(), "Invalid value: 'role'"),
        (r#"{"role":"user","content":""}"#.to_owned(), "not empty"),
        (r#"{"role":"user","content":[]}"#.to_owned(), "not empty"),
        (r#"{"role":"user"}"#.to_owned(), "not empty"),
        (r#"{"role":"user","content":[{"type":"input_text","text":""}]}"#.to_owned(), "empty text"),
        (
            r#"{"role":"user","content":[{"type":"output_text","text":"x"}]}"#.to_owned(),
            "Supported",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"input_text","text":"x"}]}"#.to_owned(),
            "Supported values",
        ),
        (format!("{user},{fc},{user}"), "No tool output found for function call c"),
        (format!("{user},{fco}"), "No tool call found for function call output with call_id c"),
        (format!("{user},{fco},{fc}"), "No tool call found"),
        (format!("{user},{fc},{fco},{fco}"), "No tool call found"),
        (
            format!("{user},{fc},{},{fco},{fco}", fc.replace("fc_1", "fc_2")),
            "already waits for an output",
        ),
        (format!("{user},{fc},{}", fco.replace("function", "custom_tool")), "No tool call found"),
        (format!("{user},{fc},{}", fco.replace("\"ok\"", "null")), "not empty"),
        (format!("{user},{fc},{}", fco.replace("\"ok\"", "{}")), "not empty"),
        (format!("{user},{}", fc.replace("\"{}\"", "{}")), "'arguments'"),
        (format!("{user},{}", fc.replace("{}", "left_out {")), "not JSON"),
        (format!("{user},{}", fc.replace(",\"call_id\":\"c\"", "")), "'call_id'"),
        (format!("{user},{}", fc.replace("fc_1", "call_1")), "begins with 'fc'"),
        (format!("{user},{}", fc.replace("fc_1", &"fc".repeat(33))), "maximum length 64"),
        (format!("{user},{rs}"), "without its required following item"),
        (format!("{user},{rs},{user}"), "without its required following item"),
        (format!("{user},{rs},{rs},{fc}"), "Duplicate item found with id rs_1"),
        (format!("{user},{update},{update}"), "adjacent"),
        (format!(r#"{{"type":"compaction_trigger"}},{user}"#), "final input item"),
        (r#"{"type":"compaction","encrypted_content":null}"#.to_owned(), "'encrypted_content'"),
        (r#"{"type":"reasoning","id":"rs_1"}"#.to_owned(), "'summary'"),
        (r#"{"type":"web_search_call"}"#.to_owned(), "'id'"),
        (
            r#"{"type":"shell_call_output","call_id":"c","output":"x"}"#.to_owned(),
            "stdout, stderr and outcome",
        ),
        (
            r#"{"type":"computer_call_output","call_id":"c","output":"x"}"#.to_owned(),
            "computer_screenshot",
        ),
        (
            r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#
                .to_owned(),
            "No tool call found",
        ),
    ] {
        let list: Vec<Value> = serde_json::from_str(&format!("[{items}]")).unwrap();
        let found = problems(&list);
        assert!(found.iter().any(|problem| problem.contains(fault)), "{items}: {found:?}");
    }
    let parse = |items: String| -> Vec<Value> { serde_json::from_str(&items).unwrap() };
    let sent = parse(format!("[{user},{rs},{fc},{fco}]"));
    let bare = fc.replace(r#""id":"fc_1","#, "");
    assert_eq!(unbound(&parse(format!("[{user},{bare},{fco}]")), &sent), Vec::<String>::new());
    let found = unbound(&parse(format!("[{user},{fc},{fco}]")), &sent);
    assert!(found[0].contains("without its required 'reasoning' item"), "{found:?}");
}

#[test]
fn what_follows_trailing_reasoning_changes_nothing_that_was_sent() {
    let user = json!({"type": "message", "role": "user", "content": "go"}).to_string();
    let found = changed(
        &RULES,
        &user,
        &[
            ("text", |at| {
                json!({"type": "message", "role": "assistant", "id": format!("msg_{at}"),
                    "status": "completed", "content": [{"type": "output_text", "text": "so"}]})
                .to_string()
            }),
            ("reasoning", |at| {
                json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [],
                    "encrypted_content": format!("gAAAA{at}")})
                .to_string()
            }),
            ("empty", |_| {
                json!({"type": "message", "role": "assistant", "content": []}).to_string()
            }),
            ("call", |at| {
                json!({"type": "function_call", "call_id": format!("call_{at}"), "name": "read",
                    "arguments": "{}"})
                .to_string()
            }),
            ("search", |at| {
                json!({"type": "web_search_call", "id": format!("ws_{at}"), "status": "completed"})
                    .to_string()
            }),
        ],
    );
    assert_eq!(found, Vec::<String>::new());
}

//! The AI SDK's messages: random transcripts with its oddities, real ones, and its own faults.

mod common;

use std::collections::BTreeSet;

use common::ai_sdk::problems;
use common::host::Host;
use common::random::text;
use common::walk::{Rules, changed, setting, walk};
use common::{data, messages};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidemark::PlanRequest;

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
enum Event {
    /// Instructions in the middle, some of them only settings.
    System(String, bool),
    User(String),
    UserParts(String, u8),
    /// An empty list, an empty string, an empty text among others.
    Empty(u8),
    Assistant(String, u8),
    /// Calls with ids from a small pool, the order of their results, and how many messages those
    /// are spread over.
    Batch {
        ids: Vec<u8>,
        order: Vec<u8>,
        text: String,
        reasoning: u8,
        per_message: usize,
    },
    Orphan(u8, String),
    /// A user message between a call and its result.
    Interrupted(u8, String),
    /// An approval that was asked for, with what came of it.
    Approval(u8, String, u8),
    /// A tool of the provider: its result in the same message, in the next, or never.
    Own(String, u8),
    /// `args` and `result`, as version 4 wrote them; or neither.
    Old(u8, String, bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => (text(), any::<bool>()).prop_map(|(text, set)| Event::System(text, set)),
        5 => text().prop_map(Event::User),
        2 => (text(), 0..6u8).prop_map(|(text, kind)| Event::UserParts(text, kind)),
        1 => (0..5u8).prop_map(Event::Empty),
        4 => (text(), 0..6u8).prop_map(|(text, kind)| Event::Assistant(text, kind)),
        8 => (
            prop::collection::vec(0..4u8, 1..5),
            prop::collection::vec(0..5u8, 0..5),
            text(),
            0..5u8,
            1..4usize,
        )
            .prop_map(|(ids, order, text, reasoning, per_message)| Event::Batch {
                ids, order, text, reasoning, per_message,
            }),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Orphan(id, text)),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Interrupted(id, text)),
        2 => (0..4u8, text(), 0..7u8).prop_map(|(id, text, end)| Event::Approval(id, text, end)),
        2 => (text(), 0..4u8).prop_map(|(text, kind)| Event::Own(text, kind)),
        1 => (0..4u8, text(), any::<bool>()).prop_map(|(id, text, some)| Event::Old(id, text, some)),
    ]
}

/// Messages as JSON texts. Every text carries a word of its own, `k` and its message's index.
fn transcript() -> impl Strategy<Value = Vec<String>> {
    (any::<bool>(), prop::collection::vec(event(), 1..40)).prop_map(|(system, events)| {
        let mut out = Vec::new();
        if system {
            out.push(json!({"role": "system", "content": "You are careful."}).to_string());
        }
        push(&mut out, &Event::User("start".to_owned()));
        for event in &events {
            push(&mut out, event);
        }
        // Lone surrogates, as cut emoji leave them behind.
        out.into_iter().map(|message: String| message.replace("😀", "\\ud83d")).collect()
    })
}

fn call(id: u8, text: &str) -> Value {
    json!({"type": "tool-call", "toolCallId": format!("call_{id}"), "toolName": format!("tool_{id}"),
        "input": {"path": text}})
}

fn result(id: u8, output: Value) -> Value {
    json!({"type": "tool-result", "toolCallId": format!("call_{id}"), "toolName": format!("tool_{id}"),
        "output": output})
}

/// A result of any type; `kind` picks it.
fn output(kind: usize, text: &str) -> Value {
    match kind % 8 {
        0 | 1 => json!({"type": "text", "value": text}),
        2 => json!({"type": "json", "value": {"lines": [text, 1, null]}}),
        3 => json!({"type": "json", "value": [{"text": text}, 2]}),
        4 => json!({"type": "error-text", "value": text}),
        5 => json!({"type": "error-json", "value": {"error": text}}),
        6 => {
            json!({"type": "content", "value": [{"type": "text", "text": format!("list {text}")}]})
        }
        _ => json!({"type": "content", "value": [
            {"type": "text", "text": format!("see {text}")},
            {"type": "media", "mediaType": "image/png", "data": {"$bytes": 2000}},
        ]}),
    }
}

fn assistant(parts: &[Value]) -> String {
    json!({"role": "assistant", "content": parts}).to_string()
}

fn tool(parts: &[Value]) -> String {
    json!({"role": "tool", "content": parts}).to_string()
}

fn reasoning(kind: u8, text: &str) -> Option<Value> {
    let text = format!("{text}.");
    let part =
        |options: Value| json!({"type": "reasoning", "text": text, "providerOptions": options});
    match kind {
        1 => Some(json!({"type": "reasoning", "text": text})),
        2 => Some(part(json!({"anthropic": {"signature": "c2ln".repeat(20)}}))),
        3 => Some(part(
            json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j".repeat(20)}}),
        )),
        _ => None,
    }
}

fn push(out: &mut Vec<String>, event: &Event) {
    let word = |out: &Vec<String>, text: &str| match text.is_empty() {
        true => String::new(),
        false => format!("{text} k{}k", out.len()),
    };
    match event {
        Event::System(text, set) => {
            let mut message = json!({"role": "system", "content": word(out, text)});
            if *set || text.is_empty() {
                message["providerOptions"] = json!({"openai": {"reasoningEffort": "low"}});
            }
            out.push(message.to_string());
        }
        Event::User(text) => {
            let text = word(out, text);
            out.push(json!({"role": "user", "content": text}).to_string());
        }
        Event::UserParts(text, kind) => {
            let text = word(out, text);
            let media = match kind {
                0 => json!({"type": "image", "image": "data:image/png;base64,AAAA"}),
                1 => json!({"type": "image", "image": {"$bytes": 5000}, "mediaType": "image/png"}),
                2 => {
                    json!({"type": "file", "data": "https://example.com/a.pdf", "mediaType": "application/pdf"})
                }
                3 => json!({"type": "file", "mediaType": "text/plain", "filename": "a.txt",
                    "data": {"type": "text", "text": format!("file {text}")}}),
                4 => {
                    json!({"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": {"$bytes": 7}}})
                }
                _ => json!({"type": "file", "mediaType": "application/pdf",
                    "data": {"type": "reference", "reference": {"openai": "file-1"}}}),
            };
            let mut message = json!({"role": "user", "content": [
                {"type": "text", "text": format!("see {text}"),
                 "providerOptions": {"anthropic": {"cacheControl": {"type": "ephemeral"}}}},
                media,
            ]});
            if *kind == 0 {
                message["providerOptions"] =
                    json!({"anthropic": {"cacheControl": {"type": "ephemeral"}}});
            }
            out.push(message.to_string());
        }
        Event::Empty(kind) => out.push(match kind {
            0 => r#"{"role":"user","content":[]}"#.to_owned(),
            1 => r#"{"role":"assistant","content":""}"#.to_owned(),
            2 => r#"{"role":"tool","content":[]}"#.to_owned(),
            3 => assistant(&[json!({"type": "reasoning", "text": "only thought"})]),
            _ => assistant(&[
                json!({"type": "text", "text": ""}),
                json!({"type": "text", "text": "said"}),
            ]),
        }),
        Event::Assistant(text, kind) => {
            let text = word(out, text);
            let mut parts: Vec<Value> = reasoning(*kind, "hm").into_iter().collect();
            let mut said = json!({"type": "text", "text": text});
            match kind {
                3 => said["providerOptions"] = json!({"openai": {"itemId": "msg_1"}}),
                4 => parts.push(json!({"type": "custom", "kind": "openai.note"})),
                5 => {
                    out.push(json!({"role": "assistant", "content": text}).to_string());
                    return;
                }
                _ => {}
            }
            parts.push(said);
            out.push(assistant(&parts));
        }
        Event::Batch { ids, order, text, reasoning: kind, per_message } => {
            let mut parts: Vec<Value> = reasoning(*kind, text).into_iter().collect();
            parts.extend(ids.iter().map(|id| call(*id, text)));
            if *kind == 4 {
                let signed = json!({"google": {"thoughtSignature": "c2ln"}});
                parts[0]["providerOptions"] = signed;
            }
            out.push(assistant(&parts));
            for (at, chunk) in order.chunks(*per_message).enumerate() {
                let text = word(out, text);
                let results: Vec<_> = chunk
                    .iter()
                    .zip(at..)
                    .map(|(place, kind)| {
                        let id = ids.get(usize::from(*place)).copied().unwrap_or(*place);
                        result(id, output(kind + text.len(), &text))
                    })
                    .collect();
                out.push(tool(&results));
            }
        }
        Event::Orphan(id, text) => {
            let text = word(out, text);
            out.push(tool(&[result(*id, output(text.len(), &text))]));
        }
        Event::Interrupted(id, text) => {
            out.push(assistant(&[call(*id, text)]));
            let wait = word(out, "wait");
            out.push(json!({"role": "user", "content": wait}).to_string());
            out.push(tool(&[result(*id, output(0, text))]));
        }
        Event::Approval(id, text, end) => {
            let approval = format!("approval_{}", out.len());
            let asked = json!({"type": "tool-approval-request", "approvalId": approval,
                "toolCallId": format!("call_{id}")});
            out.push(assistant(&[call(*id, "rm"), asked]));
            let answer = json!({"type": "tool-approval-response", "approvalId": approval,
                "approved": *end != 1});
            let text = word(out, text);
            match end {
                0 => {
                    out.push(tool(&[answer]));
                    out.push(tool(&[result(*id, output(0, &text))]));
                }
                1 => out.push(tool(&[answer, result(*id, json!({"type": "execution-denied"}))])),
                2 => out.push(tool(&[answer])),
                3 => out.push(tool(&[answer, result(*id, output(text.len(), &text))])),
                // Nothing was asked for under this id.
                4 => out.push(tool(&[json!({"type": "tool-approval-response",
                    "approvalId": "approval_lost", "approved": true})])),
                // It was asked for a call that is no more.
                5 => {
                    let lost = json!({"type": "tool-approval-request", "toolCallId": "call_lost",
                        "approvalId": format!("{approval}_lost")});
                    out.push(assistant(&[json!({"type": "text", "text": text}), lost]));
                }
                _ => {}
            }
        }
        Event::Own(text, kind) => {
            let id = format!("srv_{}", out.len());
            let call = json!({"type": "tool-call", "toolCallId": id, "toolName": "web_search",
                "input": {"query": "q"}, "providerExecuted": true});
            let result = json!({"type": "tool-result", "toolCallId": id, "toolName": "web_search",
                "output": {"type": "json", "value": [{"encryptedContent": "ZW5j".repeat(9)}]}});
            let said = json!({"type": "text", "text": format!("found {}", word(out, text))});
            match kind {
                0 | 1 => out.push(assistant(&[call, result, said])),
                2 => {
                    out.push(assistant(&[call]));
                    let said =
                        json!({"type": "text", "text": format!("found {}", word(out, text))});
                    out.push(assistant(&[result, said]));
                }
                _ => out.push(assistant(&[said, call])),
            }
        }
        Event::Old(id, text, some) => {
            let mut call = call(*id, "x");
            let members = call.as_object_mut().expect("a part");
            let input = members.remove("input").expect("it has one");
            if *some {
                members.insert("args".to_owned(), input);
            }
            out.push(assistant(&[call]));
            let word = format!("old {}", word(out, text));
            let mut result = result(*id, json!({"type": "json"}));
            if *some {
                let members = result.as_object_mut().expect("a part");
                members.remove("output");
                members.insert("result".to_owned(), json!({"found": word}));
            }
            out.push(tool(&[result]));
        }
    }
}

/// The parts of messages that are bound to their provider, as their bytes.
fn bound(messages: &str) -> BTreeSet<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        role: String,
        content: Box<RawValue>,
    }
    let messages: Vec<Message> = serde_json::from_str(messages).expect("messages");
    let mut found = BTreeSet::new();
    for message in messages.iter().filter(|message| message.role == "assistant") {
        let parts: Vec<Box<RawValue>> =
            serde_json::from_str(message.content.get()).unwrap_or_default();
        for part in parts {
            let read: Value = serde_json::from_str(part.get()).expect("a part");
            let options = read["providerOptions"].to_string();
            let signs = ["ignature\"", "itemId\""];
            let own = read["type"] == "tool-result" || read["providerExecuted"] == true;
            if own || signs.iter().any(|sign| options.contains(sign)) {
                found.insert(part.get().to_owned());
            }
        }
    }
    found
}

const RULES: Rules = Rules { format: "ai-sdk", problems, keeps_signed, input, odd };

/// But for an id that another call of the batch has too, which is no part of what is signed, and
/// for half a surrogate pair, which cannot be sent.
fn keeps_signed(sent: &[String], view: &[String]) -> bool {
    let sent = bound(&format!("[{}]", sent.join(",").replace("\\ud83d", "\u{fffd}")));
    let renamed = |text: String, n| text.replace(&format!("~{n}\""), "\"");
    let view = (2..60).fold(format!("[{}]", view.join(",")), renamed);
    bound(&view).is_subset(&sent)
}

fn input(message: &str) -> bool {
    message.contains("\"role\":\"user\"")
}

fn odd(message: &str) -> bool {
    ["\\ud83d", "\"content\":\"\"", "\"content\":[]"].iter().any(|sign| message.contains(sign))
}

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in setting()) {
        walk(&all, &setting, &RULES)?;
    }

    #[test]
    fn a_rewritten_transcript_is_never_misapplied(
        all in transcript(),
        setting in setting(),
        at in any::<prop::sample::Index>(),
        new in text(),
        how in 0..3,
    ) {
        let mut edited = all.clone();
        let at = at.index(all.len());
        match how {
            0 => edited[at] = json!({"role": "user", "content": format!("new {new}")}).to_string(),
            1 => { edited.remove(at); }
            _ => edited.truncate(at + 1),
        }
        // Halves of what the engine keeps whole were cut apart by the caller.
        prop_assume!(!all[at].contains("approval-request") && !all[at].contains("srv_"));
        let said = |m: &String| m.contains("\"role\":\"user\"") || m.contains("\"role\":\"assistant\"");
        prop_assume!(edited.iter().any(said));
        let mut host = setting.host(RULES.format);
        for end in 1..=all.len() {
            host.turn(&all[..end]);
        }
        let mut restored = Host::restore(&setting.json(RULES.format), &host.engine.checkpoint());
        restored.ingest(&edited);
        host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
        for one in [&restored, &host] {
            prop_assert_eq!(problems(&one.view()), Vec::<String>::new());
        }
        prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
    }

    #[test]
    fn any_json_is_refused_or_read(junk in junk()) {
        let mut engine = Host::new(r#"{"window":1000,"format":"ai-sdk"}"#).engine;
        let _ = engine.ingest(0, &junk, &[]);
        let _ = engine.ingest(0, &format!("[{junk}]"), &[0, 7]);
        let _ = engine.plan(PlanRequest::default());
        let _ = engine.render_json();
    }
}

/// Any JSON, with the names that the reader looks for.
fn junk() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "toolCallId",
        "toolName",
        "input",
        "args",
        "output",
        "result",
        "value",
        "providerExecuted",
        "providerOptions",
        "openai",
        "itemId",
        "image",
        "data",
        "mediaType",
        "$bytes",
        "approvalId",
    ]);
    let words = prop::sample::select(vec![
        "user",
        "assistant",
        "tool",
        "system",
        "text",
        "reasoning",
        "tool-call",
        "tool-result",
        "file",
        "image",
        "json",
        "content",
        "error-json",
        "execution-denied",
        "tool-approval-request",
        "c1",
    ]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        words.prop_map(|word| format!("\"{word}\"")),
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("\"\\ud83d\"".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Each end of a turn was a model call: the view before it is valid, and planned but once.
fn replay(name: &str, all: &[String], window: u32) {
    let options = format!("{{\"format\":\"ai-sdk\",\"window\":{window}}}");
    let mut host = Host::new(&options);
    let known = format!("[{}]", all.join(","));
    let mut last = String::new();
    for end in 1..=all.len() {
        let next_is_call = end == all.len() || all[end].contains("\"role\":\"assistant\"");
        if !next_is_call {
            continue;
        }
        let outcome = host.turn(&all[..end]);
        let place = format!("{name} at {window}, {end} messages, {:?}", outcome.reason);
        assert_eq!(problems(&host.view()), Vec::<String>::new(), "{place}");
        assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap(), "{place}");
        let view = host.engine.render_json();
        assert!(bound(&view).is_subset(&bound(&known)), "{place}");
        if !outcome.compacted && outcome.repairs.is_empty() && !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]), "{place}: prefix");
        }
        assert!(!host.turn(&all[..end]).compacted, "{place}");
        assert_eq!(host.engine.render_json(), view, "{place}: planned twice");
        last = view;
    }
    let mut restored = Host::restore(&options, &host.engine.checkpoint());
    restored.ingest(all);
    assert_eq!(restored.engine.render_json(), last, "{name} at {window}: restored");
}

#[test]
fn recorded_answers_of_providers_are_replayed() {
    for name in ["anthropic", "openai", "langgraph"] {
        let all = messages(&data(&format!("ai_sdk/{name}.json")));
        for window in [1_000, 2_000, 4_000, 8_000, 16_000] {
            replay(name, &all, window);
        }
        // The format is told from the messages.
        let mut host = Host::new(r#"{"window":64000}"#);
        host.turn(&all);
        assert_eq!(problems(&host.view()), Vec::<String>::new());
    }
}

#[test]
fn long_sessions_of_agents_are_replayed() {
    for name in ["small.json", "mid.json", "large.json"] {
        let chat: Vec<Value> = serde_json::from_str(&data(name)).expect("messages");
        let all: Vec<String> = chat.iter().map(|message| model_message(message, &chat)).collect();
        for window in [2_000, 8_000, 32_000, 128_000] {
            replay(name, &all, window);
        }
    }
}

/// An OpenAI Chat message as the AI SDK would have it.
fn model_message(message: &Value, chat: &[Value]) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match message["role"].as_str() {
        Some("tool") => {
            let id = &message["tool_call_id"];
            let calls = chat.iter().flat_map(|message| list(&message["tool_calls"]));
            let name =
                calls.filter(|call| call["id"] == *id).map(|call| call["function"]["name"].clone());
            let content = &message["content"];
            let output = match content.as_str() {
                Some(text) => json!({"type": "text", "value": text}),
                None => json!({"type": "content", "value": content}),
            };
            let part = json!({"type": "tool-result", "toolCallId": id, "output": output,
                "toolName": name.into_iter().next().unwrap_or_else(|| json!("lost"))});
            tool(&[part])
        }
        Some("assistant") => {
            let mut parts = Vec::new();
            if message["reasoning_content"].is_string() {
                parts.push(json!({"type": "reasoning", "text": message["reasoning_content"]}));
            }
            if message["content"].is_string() {
                parts.push(json!({"type": "text", "text": message["content"]}));
            }
            for call in list(&message["tool_calls"]) {
                let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
                let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                parts.push(json!({"type": "tool-call", "toolCallId": call["id"],
                    "toolName": call["function"]["name"], "input": input}));
            }
            assistant(&parts)
        }
        _ => json!({"role": message["role"], "content": message["content"]}).to_string(),
    }
}

#[test]
fn what_follows_trailing_reasoning_changes_nothing_that_was_sent() {
    fn said(parts: Value) -> String {
        json!({"role": "assistant", "content": parts}).to_string()
    }
    fn word(at: usize) -> Value {
        json!({"type": "text", "text": format!("said {at}")})
    }
    fn thought(at: usize) -> Value {
        json!({"type": "reasoning", "text": format!("so {at}"),
            "providerOptions": {"anthropic": {"signature": format!("Sig{at}==")}}})
    }
    let user = json!({"role": "user", "content": "go"}).to_string();
    let found = changed(
        &RULES,
        &user,
        &[
            ("text", |at| said(json!([word(at)]))),
            ("reasoning", |at| said(json!([thought(at)]))),
            ("empty", |_| said(json!([]))),
            ("blank", |_| said(json!([{"type": "text", "text": ""}]))),
            ("call", |at| {
                let id = format!("call_{at}");
                said(
                    json!([{"type": "tool-call", "toolCallId": id, "toolName": "read", "input": {}}]),
                )
            }),
            ("both", |at| said(json!([thought(at), word(at)]))),
            ("cut", |at| said(json!([word(at), thought(at)]))),
        ],
    );
    assert_eq!(found, Vec::<String>::new());
}

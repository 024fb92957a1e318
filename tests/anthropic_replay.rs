//! Real Anthropic conversations, turn by turn, at many windows.

mod common;

use std::path::{Path, PathBuf};

use common::anthropic::{keeps_signed, problems};
use common::host::{Host, Mood};
use common::{data, messages};
use serde_json::{Value, json};

const FILES: [&str; 6] = [
    "code_execution.json",
    "mcp.json",
    "redacted.json",
    "session.json",
    "thinking_tools.json",
    "tools.json",
];

/// Replays the turns of a transcript: each run of assistant messages was one model call.
fn replay(name: &str, all: &[String], window: u32, more: &str, mood: Mood) {
    let options = format!(r#"{{"format":"anthropic","window":{window}{more}}}"#);
    let mut host = Host::new(&options);
    host.mood = mood;
    let mut last = String::new();
    let is_reply = |at: usize| all[at].contains(r#""role":"assistant""#);
    for end in 1..=all.len() {
        if end < all.len() && (!is_reply(end) || is_reply(end - 1)) {
            continue;
        }
        let outcome = host.turn(&all[..end]);
        let place = format!("{name} at {window}{more}, {end} messages, {:?}", outcome.reason);
        let view = host.engine.render_json();
        assert_eq!(problems(&host.view()), Vec::<String>::new(), "{place}");
        assert!(keeps_signed(&all[..end], &messages(&view)), "{place}");
        assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap(), "{place}");
        if !outcome.compacted && outcome.repairs.is_empty() && !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]), "{place}: prefix");
        }
        let again = host.turn(&all[..end]);
        assert!(!again.compacted, "{place}: {:?}", again.decisions);
        assert_eq!(host.engine.render_json(), view, "{place}: planned twice");
        last = view;
    }
    let mut restored = Host::restore(&options, &host.engine.checkpoint());
    restored.ingest(all);
    assert_eq!(restored.engine.render_json(), last, "{name} at {window}: restored");
}

fn at_windows(name: &str, all: &[String], windows: &[u32]) {
    for window in windows {
        replay(name, all, *window, "", Mood::Good);
        replay(name, all, *window, r#","summarizer":true,"store":true"#, Mood::Good);
    }
}

#[test]
fn recorded_conversations_at_many_windows() {
    for file in FILES {
        let all = messages(&data(&format!("anthropic/{file}")));
        at_windows(file, &all, &[400, 1_000, 2_000, 4_000, 8_000, 16_000, 200_000]);
    }
}

#[test]
fn a_session_with_a_summarizer_of_any_mood() {
    use Mood::{Blank, Echo, NoSections, Throws, ToolCall, Verbose};
    let all = messages(&data("anthropic/session.json"));
    for mood in [Blank, Echo, NoSections, Throws, ToolCall, Verbose] {
        replay("session.json", &all, 3_000, r#","summarizer":true,"store":true"#, mood);
    }
}

#[test]
fn with_room_enough_nothing_is_touched() {
    for file in FILES {
        let text = data(&format!("anthropic/{file}"));
        let mut host = Host::new(r#"{"window":1000000}"#);
        let outcome = host.turn(&messages(&text));
        // The session log has what its reader made of user messages, and no faults.
        assert_eq!(outcome.repairs, [], "{file}");
        assert_eq!(messages(&host.engine.render_json()), messages(&text), "{file}");
    }
}

/// Files of the collection that lies beside the repository on some machines.
fn shared(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(folder);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
    files.sort();
    files
}

/// A message as a request carries it.
fn sent(message: &Value) -> String {
    let content = match &message["content"] {
        Value::Array(blocks) => blocks
            .iter()
            // Thinking that somebody made up for an example.
            .filter(|block| block["type"] != "thinking" || block["signature"].is_string())
            .map(|block| match block {
                Value::String(text) => json!({"type": "text", "text": text}),
                block => block.clone(),
            })
            .collect(),
        content => content.clone(),
    };
    json!({"role": message["role"], "content": content}).to_string()
}

#[test]
fn requests_that_the_api_took_are_valid_and_replay() {
    for file in shared("anthropic_messages") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for exchange in json["interactions"].as_array().into_iter().flatten() {
            let Some(asked) = exchange["request"]["messages"].as_array() else { continue };
            assert_eq!(exchange["status"], 200, "{name}");
            assert_eq!(problems(asked), Vec::<String>::new(), "{name}");
            let mut all: Vec<String> = asked.iter().map(sent).collect();
            if exchange["response"]["content"].is_array() {
                let reply = &exchange["response"]["content"];
                all.push(sent(&json!({"role": "assistant", "content": reply})));
                all.push(sent(&json!({"role": "user", "content": "Go on."})));
            }
            at_windows(&name, &all, &[400, 1_500, 6_000, 100_000]);
        }
    }
}

#[test]
fn sessions_of_a_coding_agent_replay() {
    for file in shared("claude_code") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let entries: Vec<Value> = match serde_json::from_str::<Value>(&text) {
            Ok(json) => json["loglines"].as_array().cloned().unwrap_or_default(),
            // A line that is no JSON was cut.
            Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        };
        let said = entries.iter().map(|entry| &entry["message"]).filter(|message| {
            ["user", "assistant"].iter().any(|role| message["role"] == **role)
                && !message["content"].is_null()
        });
        let all: Vec<String> = said.map(sent).collect();
        if all.is_empty() {
            continue;
        }
        let windows: &[u32] =
            if all.len() > 200 { &[8_000, 32_000] } else { &[1_000, 2_000, 4_000, 8_000, 32_000] };
        at_windows(&name, &all, windows);
    }
}

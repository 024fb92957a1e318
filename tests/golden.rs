//! Golden digests of views, checkpoints and effects in every wire format. The wasm in every runtime
//! (`tests/js/golden.test.mjs`, `tests/runtimes/`) and the component must find them as well.
//!
//! After a change that is meant to alter views: `TIDEMARK_GOLDEN=write cargo test --test golden`.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::data;
use common::host::{SECRET, good_summary, options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tidemark::{
    Effect, Engine, FormatName, Outcome, PlanRequest, RecallArgs, RecallStep, Reply, Step,
};

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON without the white space between its tokens, as `JSON.stringify` writes it.
fn compact(text: &str) -> String {
    let mut out = String::new();
    let (mut string, mut escaped) = (false, false);
    for scalar in text.chars() {
        if string || !scalar.is_ascii_whitespace() {
            out.push(scalar);
        }
        string ^= scalar == '"' && !escaped;
        escaped = scalar == '\\' && !escaped;
    }
    out
}

/// A host that keeps everything, and whose model always writes the same summary.
struct Host {
    engine: Engine,
    reply: String,
    /// JSON of every effect that was asked for, one a line.
    effects: String,
}

impl Host {
    fn plan(&mut self) -> Outcome {
        let mut step = self.engine.plan(PlanRequest::default()).unwrap();
        let mut due: Vec<Effect> = Vec::new();
        loop {
            match step {
                Step::Done { outcome } => return *outcome,
                Step::Effects { effects } => due.extend(effects),
                Step::Idle => panic!("an effect of the running plan was called abandoned"),
            }
            let effect = due.remove(0);
            self.effects += &serde_json::to_string(&effect).unwrap();
            self.effects.push('\n');
            let reply = match effect {
                Effect::Decide { .. } => Reply::Done,
                Effect::Summarize { .. } => Reply::Text { text: self.reply.clone() },
                _ => Reply::Done,
            };
            step = self.engine.resolve(effect.id(), reply).unwrap();
        }
    }

    fn recall(&self, args: &str) -> String {
        let args = RecallArgs::from_json(args).unwrap();
        match self.engine.recall(&args).unwrap() {
            RecallStep::Page { text } => text,
            RecallStep::Fetch { key } => key,
        }
    }
}

/// A transcript read in two halves, then compacted as the body of a request.
fn vector(file: &str, format: FormatName, window: u32, host: bool) -> Value {
    let name = format.as_str();
    let text = compact(&data(file));
    let messages = common::messages(&text);
    let json = format!(
        r#"{{"format":"{name}","window":{window},"store":{host},"summarizer":{host},"secret":"{SECRET}"}}"#
    );
    let open = || Host {
        engine: Engine::new(options(&json)).unwrap(),
        reply: good_summary("noted"),
        effects: String::new(),
    };
    let mut run = open();
    let mut decided = Vec::new();
    for end in [messages.len() / 2, messages.len()] {
        run.engine.ingest(0, &format!("[{}]", messages[..end].join(",")), &[]).unwrap();
        decided.extend(run.plan().decisions);
    }
    let reference = decided.iter().find_map(|decided| decided.reference.clone());
    let recalled = match &reference {
        Some(reference) => run.recall(&json!({"ref": reference}).to_string()),
        None => run.recall(r#"{"pattern":"the"}"#),
    };
    let member = match format {
        FormatName::OpenaiResponses => "input",
        FormatName::Gemini => "contents",
        FormatName::AiSdk => "prompt",
        _ => "messages",
    };
    let body = format!(r#"{{"model":"m","{member}":{text},"stream":true}}"#);
    let mut second = open();
    second.engine.ingest_body(body.as_bytes(), None).unwrap();
    second.plan();
    json!({
        "file": file,
        "options": serde_json::from_str::<Value>(&json).unwrap(),
        "reply": run.reply,
        "decisions": decided.len(),
        "effects": digest(&run.effects),
        "view": digest(&run.engine.render_json()),
        "checkpoint": digest(&run.engine.checkpoint()),
        "ref": reference,
        "recalled": digest(&recalled),
        "member": member,
        "body": digest(&second.engine.render_body().unwrap_or(body)),
    })
}

/// Files of a format in `tests/data`, the one with the longest conversation first.
const FILES: [(FormatName, &[&str]); 4] = [
    (
        FormatName::OpenaiResponses,
        &["codex", "code", "compaction", "phase", "tool_calls", "web_search"],
    ),
    (
        FormatName::Anthropic,
        &["session", "code_execution", "mcp", "redacted", "thinking_tools", "tools"],
    ),
    (FormatName::Gemini, &["thoughts", "calls", "server_tools", "stream", "unsigned"]),
    (FormatName::AiSdk, &["openai", "anthropic", "langgraph"]),
];

#[test]
fn views_and_checkpoints_have_the_golden_digests() {
    let mut vectors = Vec::new();
    for file in ["small.json", "mid.json", "large.json"] {
        for window in [4_000, 16_000, 64_000] {
            vectors.push(vector(file, FormatName::OpenaiChat, window, false));
        }
    }
    vectors.push(vector("mid.json", FormatName::OpenaiChat, 16_000, true));
    for (format, files) in FILES {
        let folder = format.as_str().replace('-', "_");
        let path = |file: &str| format!("{folder}/{file}.json");
        for file in files {
            vectors.push(vector(&path(file), format, 1_000, false));
            vectors.push(vector(&path(file), format, 4_000, false));
        }
        vectors.push(vector(&path(files[0]), format, 3_000, true));
    }
    for format in FormatName::ALL {
        let own = |vector: &&Value| vector["options"]["format"] == format.as_str();
        let kinds: BTreeSet<bool> = vectors
            .iter()
            .filter(own)
            .filter(|vector| vector["decisions"].as_u64() > Some(0))
            .map(|vector| vector["options"]["store"] == true)
            .collect();
        assert_eq!(kinds.len(), 2, "{format:?} is compacted with a host and without");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.json");
    let text = serde_json::to_string_pretty(&vectors).unwrap() + "\n";
    if std::env::var("TIDEMARK_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let differing = differing(&serde_json::from_str::<Vec<Value>>(&golden).unwrap(), &vectors);
    assert!(
        golden == text,
        "{} of {} vectors are not those of tests/golden.json:\n{}",
        differing.len(),
        vectors.len(),
        differing.join("\n")
    );
}

/// A line for each vector that is not as it was: which it is, and the members that differ.
fn differing(golden: &[Value], found: &[Value]) -> Vec<String> {
    let name = |vector: &Value| {
        let options = &vector["options"];
        format!("{} {} store {}", vector["file"], options["window"], options["store"])
    };
    let mut lines = Vec::new();
    for at in 0..golden.len().max(found.len()) {
        let line = match (golden.get(at), found.get(at)) {
            (Some(was), Some(is)) => {
                let members = is.as_object().unwrap().iter();
                let members: Vec<String> = members
                    .filter(|(member, value)| was[member.as_str()] != **value)
                    .map(|(member, value)| {
                        format!("  {member}: {} -> {value}", was[member.as_str()])
                    })
                    .collect();
                if members.is_empty() {
                    continue;
                }
                format!("{}\n{}", name(is), members.join("\n"))
            }
            (Some(was), None) => format!("{}: not made any more", name(was)),
            (None, Some(is)) => format!("{}: new", name(is)),
            (None, None) => continue,
        };
        lines.push(line);
    }
    lines
}

#[test]
fn only_what_differs_is_named() {
    let vector =
        |file: &str, view: &str| json!({"file": file, "options": {"window": 1}, "view": view});
    let golden = [vector("a", "1"), vector("b", "2"), vector("c", "3")];
    assert_eq!(differing(&golden, &golden), Vec::<String>::new());
    let found = [vector("a", "1"), vector("b", "4")];
    let lines = differing(&golden, &found);
    assert_eq!(
        lines,
        ["\"b\" 1 store null\n  view: \"2\" -> \"4\"", "\"c\" 1 store null: not made any more"]
    );
}

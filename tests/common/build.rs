//! Builders of small OpenAI Chat messages, and short ways to ask the engine, for the scenarios.

use serde_json::json;
use tidemark::{Effect, Engine, Outcome, Overflow, PlanRequest, RecallArgs, RecallStep};
use tidemark::{Reply, Step, Usage};

use super::host::Host;
use super::messages;

/// A text of about so many tokens; `tag` opens it and makes it unique.
pub fn long(tag: &str, words: usize) -> String {
    format!("{tag}:{}", " word".repeat(words))
}

pub fn system(text: &str) -> String {
    json!({"role": "system", "content": text}).to_string()
}

pub fn user(text: &str) -> String {
    json!({"role": "user", "content": text}).to_string()
}

pub fn assistant(text: &str) -> String {
    json!({"role": "assistant", "content": text}).to_string()
}

/// Calls of `read`, one for each id, in one message; `tag` is their argument.
pub fn calls(ids: &[&str], tag: &str) -> String {
    let arguments = json!({"path": tag}).to_string();
    let function = json!({"name": "read", "arguments": arguments});
    let calls: Vec<_> =
        ids.iter().map(|id| json!({"id": id, "type": "function", "function": function})).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls}).to_string()
}

pub fn result(id: &str, text: &str) -> String {
    json!({"role": "tool", "tool_call_id": id, "content": text}).to_string()
}

/// A call and its result.
pub fn pair(id: &str, text: &str) -> [String; 2] {
    let name: String = text.chars().take(12).collect();
    [calls(&[id], &name), result(id, text)]
}

/// A user message and `count` pairs with results `r0`, `r1`, … of so many words.
pub fn pairs(count: usize, words: usize) -> Vec<String> {
    let mut out = vec![user("start")];
    for at in 0..count {
        out.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), words)));
    }
    out
}

/// User and assistant in turn, `m0`, `m1`, … of so many words; of an odd count the user is last.
pub fn chat(count: usize, words: usize) -> Vec<String> {
    (0..count).map(|at| said(at, words)).collect()
}

/// Message `at` of a [`chat`].
pub fn said(at: usize, words: usize) -> String {
    let text = long(&format!("m{at}"), words);
    if at.is_multiple_of(2) { user(&text) } else { assistant(&text) }
}

/// Options with no reserve, so that usable is the window. `more` are further members.
pub fn options(window: u32, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    let preset = if more.contains("\"preset\"") { "" } else { ",\"preset\":\"late\"" };
    format!("{{\"window\":{window},\"reserve\":0{preset}{comma}{more}}}")
}

/// Estimated tokens of messages that nothing was decided on.
pub fn size(messages: &[String]) -> u32 {
    let mut host = Host::new("{}");
    host.ingest(messages);
    host.engine.estimate().tokens
}

/// The messages of the view, each as its bytes.
pub fn shown(host: &Host) -> Vec<String> {
    messages(&host.engine.render_json())
}

/// Messages of the transcript that the view shows byte for byte, by index.
pub fn verbatim(host: &Host, all: &[String]) -> Vec<usize> {
    let view = shown(host);
    (0..all.len()).filter(|at| view.contains(&all[*at])).collect()
}

/// Indices of the messages that an outcome has decisions of a kind on.
pub fn decided(outcome: &Outcome, kind: &str) -> Vec<u32> {
    outcome.decisions.iter().filter(|d| d.kind == kind).map(|d| d.index).collect()
}

pub fn forced() -> PlanRequest {
    PlanRequest { force: true, ..PlanRequest::default() }
}

/// The provider reports how large the last view was.
pub fn used(tokens: u32) -> PlanRequest {
    let usage = Usage { input_tokens: f64::from(tokens) };
    PlanRequest { usage: Some(usage), ..PlanRequest::default() }
}

/// The provider refused the last view, and names its window or does not.
pub fn refused(window: Option<u32>) -> PlanRequest {
    let body = match window {
        Some(window) => format!("This model's maximum context length is {window} tokens."),
        None => "context_length_exceeded".to_owned(),
    };
    let overflow = Overflow { status: Some(400), body };
    PlanRequest { overflow: Some(overflow), ..PlanRequest::default() }
}

/// Plans to the end with replies of the test's own.
pub fn drain(
    host: &mut Host,
    request: PlanRequest,
    mut reply: impl FnMut(&Effect) -> Reply,
) -> Outcome {
    let mut step = host.engine.plan(request).expect("a good request");
    let mut due = std::collections::VecDeque::new();
    loop {
        match step {
            Step::Done { outcome } => return *outcome,
            Step::Effects { effects } => due.extend(effects),
            Step::Idle => panic!("an effect of the running plan was called abandoned"),
        }
        let effect: Effect = due.pop_front().expect("the engine waits for nothing");
        step = host.engine.resolve(effect.id(), reply(&effect)).expect("a good reply");
    }
}

pub fn text(text: impl Into<String>) -> Reply {
    Reply::Text { text: text.into() }
}

pub fn failed() -> Reply {
    Reply::Failed { message: "down".to_owned() }
}

/// What recall answers to a reference.
pub fn recall(engine: &Engine, reference: &str) -> RecallStep {
    engine.recall(&by_ref(reference)).expect("good arguments")
}

pub fn by_ref(reference: &str) -> RecallArgs {
    RecallArgs { reference: Some(reference.to_owned()), ..RecallArgs::default() }
}

/// The answer of a step that needs nothing from the store.
pub fn page(step: RecallStep) -> String {
    match step {
        RecallStep::Page { text } => text,
        RecallStep::Fetch { key } => panic!("it asks the store for {key}"),
    }
}

/// What a search of everything answers.
pub fn search(engine: &Engine, pattern: &str) -> String {
    let args = RecallArgs { pattern: Some(pattern.to_owned()), ..RecallArgs::default() };
    page(engine.recall(&args).expect("good arguments"))
}

/// All pages of a reference, put together without their titles.
pub fn recalled(engine: &Engine, reference: &str) -> String {
    let mut out = String::new();
    let mut offset = 0.0;
    loop {
        let args = RecallArgs { offset: Some(offset), ..by_ref(reference) };
        let text = page(engine.recall(&args).expect("good arguments"));
        let (title, page) = text.split_once('\n').unwrap_or((&text, ""));
        out.push_str(page);
        match title.split_once("go on with offset ") {
            Some((_, rest)) => offset = rest.trim_end_matches(']').parse().expect("a number"),
            None => return out,
        }
    }
}

/// Every preset.
pub const PRESETS: [&str; 10] = [
    "default",
    "two-tier",
    "late",
    "truncate",
    "sliding",
    "prune",
    "smart",
    "summarize",
    "llm-summarize",
    "conversation",
];

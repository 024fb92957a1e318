//! What OpenAI Chat Completions accepts, written from the vendor's API reference and from the
//! error texts that the API answers with; not from the renderer.

use serde_json::Value;

/// What the API would refuse, or nothing. `pending` allows a last batch of calls that the host
/// has not answered yet: it is about to.
pub fn problems(messages: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    if messages.is_empty() {
        found.push("[] is too short - 'messages'".to_owned());
    }
    let mut at = 0;
    while at < messages.len() {
        let message = &messages[at];
        let mut problem = |what: &str| found.push(format!("messages[{at}]: {what}"));
        match message["role"].as_str() {
            Some("system" | "developer" | "user") => {
                if !filled(&message["content"]) {
                    problem("content must not be empty");
                }
            }
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                if message.get("tool_calls").is_some_and(Value::is_array) && calls.is_empty() {
                    problem("tool_calls is an empty array");
                }
                let legacy = message["function_call"].is_object();
                if calls.is_empty()
                    && !legacy
                    && !filled(&message["content"])
                    && !filled(&message["refusal"])
                    && !message["audio"].is_object()
                {
                    problem("content or tool_calls must be set");
                }
                let mut waiting = Vec::new();
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default();
                    let body = call.get("function").or(call.get("custom"));
                    let name = body.and_then(|body| body["name"].as_str()).unwrap_or_default();
                    if id.is_empty() || name.is_empty() {
                        problem("a tool call without id or name");
                    }
                    if waiting.contains(&id) {
                        problem("duplicate tool call id in one message");
                    }
                    let arguments = body.and_then(|body| body["arguments"].as_str());
                    if call.get("function").is_some() && arguments.is_none() {
                        problem("function.arguments must be a string");
                    }
                    // The API takes any string; but a cut of ours must leave JSON behind.
                    if arguments.is_some_and(|text| {
                        text.contains("left_out")
                            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
                    }) {
                        problem("arguments were cut to something that is not JSON");
                    }
                    waiting.push(id);
                }
                let mut next = at + 1;
                while !waiting.is_empty()
                    && next < messages.len()
                    && messages[next]["role"] == "tool"
                {
                    let id = messages[next]["tool_call_id"].as_str().unwrap_or_default();
                    match waiting.iter().position(|waits| *waits == id) {
                        Some(place) => waiting.remove(place),
                        None => break,
                    };
                    if !matches!(&messages[next]["content"], Value::String(_))
                        && !filled(&messages[next]["content"])
                    {
                        problem("a tool message needs a string or parts as content");
                    }
                    next += 1;
                }
                if !waiting.is_empty() && next < messages.len() {
                    problem(
                        "An assistant message with 'tool_calls' must be followed by tool messages \
                         responding to each 'tool_call_id'",
                    );
                }
                at = next;
                continue;
            }
            Some("function") => {}
            Some("tool") => problem(
                "messages with role 'tool' must be a response to a preceeding message with \
                 'tool_calls'",
            ),
            _ => problem("invalid role"),
        }
        at += 1;
    }
    found
}

fn filled(content: &Value) -> bool {
    match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => {
            !parts.is_empty()
                && parts
                    .iter()
                    .all(|part| part.is_object() && part["type"].is_string() && part["text"] != "")
        }
        _ => false,
    }
}

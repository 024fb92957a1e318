//! What the AI SDK and the providers behind it accept as model messages: the schemas and the
//! conversion of the package `ai`, versions 5 to 7, and what its strictest providers refuse
//! (Anthropic: empty texts, results not right behind their calls; OpenAI: reasoning that nothing
//! follows). Written from those, not from the renderer; `tests/sdk` runs the packages themselves.

use serde_json::Value;

/// What would be refused, or nothing. Calls that the last messages leave open are allowed: the
/// host is about to answer them.
pub fn problems(messages: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut state = State::default();
    if messages.is_empty() {
        found.push("messages must not be empty".to_owned());
    }
    let first = messages.iter().position(|message| message["role"] != "system");
    if let Some(first) = first
        && messages[first]["role"] != "user"
    {
        found.push(format!("messages[{first}]: the first message must use the user role"));
    }
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        if message["role"] != "assistant" {
            found.append(&mut state.twice);
        }
        message_problems(message, &place, &mut state, &mut found);
    }
    found
}

#[derive(Default)]
struct State {
    /// Calls of the host's tools that wait for their results.
    waiting: Vec<String>,
    /// Results have come since the last assistant message.
    answering: bool,
    /// Ids that two of them share: no fault before the host has answered.
    twice: Vec<String>,
    /// All calls so far, and those of the provider's own tools.
    calls: Vec<String>,
    own: Vec<String>,
    approvals: Vec<String>,
}

fn message_problems(message: &Value, place: &str, state: &mut State, found: &mut Vec<String>) {
    let mut problem = |what: &str| found.push(format!("{place}: {what}"));
    let role = message["role"].as_str().unwrap_or_default();
    if role != "tool" && (role != "assistant" || state.answering) && !state.waiting.is_empty() {
        problem("tool results are missing for calls before it");
        state.waiting.clear();
    }
    if role != "tool" {
        state.answering = false;
    }
    let options = &message["providerOptions"];
    if !options.is_null() && !options.is_object() {
        problem("providerOptions must be an object");
    }
    let parts = match (&message["content"], role) {
        (Value::String(text), "system" | "user" | "assistant") => {
            if text.is_empty() && !(role == "system" && options.is_object()) {
                problem("content must not be empty");
            }
            return;
        }
        (Value::Array(parts), "user" | "assistant" | "tool") => parts,
        (_, "system" | "user" | "assistant" | "tool") => {
            return problem("content has a wrong type");
        }
        _ => return problem("invalid role"),
    };
    if parts.is_empty() {
        problem("content must not be empty");
    }
    if role == "assistant" && parts.iter().all(|part| part["type"] == "reasoning") {
        problem("nothing follows the reasoning");
    }
    for part in parts {
        let id = part["toolCallId"].as_str().unwrap_or_default();
        if part["type"] == "tool-call" && state.waiting.iter().any(|waits| waits == id) {
            state.twice.push(format!("{place}: tool call ids must be unique"));
        }
        if let Some(what) = part_problem(part, role, state) {
            found.push(format!("{place}: {what}"));
        }
    }
}

fn part_problem(part: &Value, role: &str, state: &mut State) -> Option<&'static str> {
    let text = |name: &str| part[name].as_str().unwrap_or_default();
    let options = &part["providerOptions"];
    if !options.is_null() && !options.is_object() {
        return Some("providerOptions must be an object");
    }
    match (text("type"), role) {
        ("text", "user" | "assistant") => match part["text"].as_str() {
            None => Some("text must be a string"),
            Some("") if !options.is_object() => Some("text must not be empty"),
            _ => None,
        },
        ("image", "user") => part["image"].is_null().then_some("image is missing"),
        ("file", "user" | "assistant") | ("reasoning-file", "assistant") => {
            let whole = !part["data"].is_null() && part["mediaType"].is_string();
            (!whole).then_some("a file needs data and mediaType")
        }
        ("reasoning", "assistant") => {
            (!part["text"].is_string()).then_some("text must be a string")
        }
        ("custom", "assistant") => (!part["kind"].is_string()).then_some("kind must be a string"),
        ("tool-call", "assistant") => call_problem(part, state),
        ("tool-result", "assistant") => {
            let known = state.own.iter().any(|own| own == text("toolCallId"));
            if !known {
                return Some("a result of a provider's tool without its call");
            }
            output_problem(part)
        }
        ("tool-approval-request", "assistant") => {
            state.approvals.push(text("approvalId").to_owned());
            let known = state.calls.iter().any(|call| call == text("toolCallId"));
            (!known).then_some("tool call not found for approval request")
        }
        ("tool-approval-response", "tool") => {
            if !part["approved"].is_boolean() {
                return Some("approved must be a boolean");
            }
            let known = state.approvals.iter().any(|asked| asked == text("approvalId"));
            (!known).then_some("no approval was asked for under this id")
        }
        ("tool-result", "tool") => {
            state.answering = true;
            match state.waiting.iter().position(|waits| waits == text("toolCallId")) {
                Some(place) => drop(state.waiting.remove(place)),
                None => return Some("a tool result that no call waits for"),
            }
            output_problem(part)
        }
        _ => Some("a part of this type cannot stand here"),
    }
}

fn call_problem(part: &Value, state: &mut State) -> Option<&'static str> {
    let id = part["toolCallId"].as_str().unwrap_or_default().to_owned();
    if id.is_empty() || part["toolName"].as_str().unwrap_or_default().is_empty() {
        return Some("a tool call without id or name");
    }
    if part.get("input").or(part.get("args")).is_none() {
        return Some("a tool call without input");
    }
    let ours = part["input"].to_string().contains("left_out");
    if ours && !part["input"].is_object() {
        return Some("input was cut to something that is no object");
    }
    state.calls.push(id.clone());
    if part["providerExecuted"] == true {
        state.own.push(id);
        return None;
    }
    state.waiting.push(id);
    None
}

fn output_problem(part: &Value) -> Option<&'static str> {
    if !part["toolName"].is_string() {
        return Some("toolName must be a string");
    }
    let output = &part["output"];
    let value = output.get("value");
    let right = match output["type"].as_str() {
        Some("text" | "error-text") => value.is_some_and(Value::is_string),
        Some("json" | "error-json") => value.is_some(),
        Some("execution-denied") => true,
        Some("content") => value.and_then(Value::as_array).is_some_and(|items| {
            !items.is_empty() && items.iter().all(|item| item["type"].is_string())
        }),
        // Conversations of version 4.
        None => part.get("result").is_some() && output.is_null(),
        Some(_) => false,
    };
    (!right).then_some("the output has a wrong type or value")
}

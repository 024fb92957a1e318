//! What the Anthropic Messages API accepts, written from the vendor's reference, the types of its
//! SDK (`@anthropic-ai/sdk` 1.14) and the error texts that the API answers with; not from the
//! renderer. Where vendors of the same format differ, the strictest rule stands.

use serde_json::Value;
use serde_json::value::RawValue;

/// What the API would refuse, or nothing. A last batch of calls may still wait for results, and
/// the last message may be the assistant's: the host is about to add to it.
pub fn problems(messages: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    if messages.is_empty() {
        found.push("messages: at least one message is required".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        check_message(at, message, &mut found);
    }
    check_systems(messages, &mut found);
    check_markers(messages, &mut found);
    check_turns(&turns(messages), &mut found);
    found
}

/// Signed blocks of messages, each as its bytes, in order.
pub fn signed(messages: &[String]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Message<'m> {
        #[serde(borrow)]
        content: Option<&'m RawValue>,
    }
    #[derive(Default, serde::Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
    }
    let mut out = Vec::new();
    for message in messages {
        let message: Message = serde_json::from_str(message).expect("a message");
        let blocks = message.content.map_or("", RawValue::get);
        for block in serde_json::from_str::<Vec<&RawValue>>(blocks).unwrap_or_default() {
            let kind: Block = serde_json::from_str(block.get()).unwrap_or_default();
            if kind.kind == "thinking" || kind.kind == "redacted_thinking" {
                out.push(block.get().to_owned());
            }
        }
    }
    out
}

/// Whether the signed blocks of a view are those of the transcript, byte for byte and in order,
/// but for some that are absent.
pub fn keeps_signed(transcript: &[String], view: &[String]) -> bool {
    let all = signed(transcript);
    let mut rest = all.iter();
    signed(view).iter().all(|block| rest.any(|other| other == block))
}

pub fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// The blocks of a message; a string is one text block.
pub fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn check_message(at: usize, message: &Value, found: &mut Vec<String>) {
    let mut problem = |what: &str| found.push(format!("messages.{at}: {what}"));
    let role = message["role"].as_str().unwrap_or_default();
    if !["user", "assistant", "system"].contains(&role) {
        problem("unexpected role");
        return;
    }
    for name in message.as_object().into_iter().flat_map(serde_json::Map::keys) {
        let directive = role == "system" && ["clear_at", "output_config"].contains(&name.as_str());
        if !["role", "content"].contains(&name.as_str()) && !directive {
            problem(&format!("{name}: Extra inputs are not permitted"));
        }
    }
    let directive = role == "system" && message["output_config"].is_object();
    let content = &message["content"];
    let is_filled = match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(blocks) => !blocks.is_empty(),
        Value::Null => false,
        _ => {
            problem("content: Input should be a valid array");
            return;
        }
    };
    if !is_filled && !directive {
        problem(
            "all messages must have non-empty content except for the optional final assistant message",
        );
    }
    let thinks = blocks(message).iter().any(is_thinking);
    for (index, block) in blocks(message).iter().enumerate() {
        let mut problem = |what: &str| found.push(format!("messages.{at}.content.{index}: {what}"));
        match block.as_object() {
            Some(_) => check_block(role, block, thinks, &mut problem),
            None => problem("Input should be a valid dictionary"),
        }
    }
}

fn check_block(role: &str, block: &Value, thinks: bool, problem: &mut impl FnMut(&str)) {
    let kind = block["type"].as_str().unwrap_or_default();
    let mut need = |name: &str| {
        if block[name].as_str().is_none_or(str::is_empty) {
            problem(&format!("{kind}.{name}: Field required"));
        }
    };
    match kind {
        "text" => {}
        "thinking" => need("signature"),
        "redacted_thinking" => need("data"),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            need("id");
            need("name");
        }
        kind if kind.ends_with("tool_result") => need("tool_use_id"),
        "container_upload" => need("file_id"),
        _ => {}
    }
    let roles: &[&str] = match kind {
        "text" => &["user", "assistant", "system"],
        "tool_addition" | "tool_removal" => &["system"],
        "tool_result" | "image" | "document" | "search_result" | "container_upload" => &["user"],
        "thinking" | "redacted_thinking" | "tool_use" => &["assistant"],
        kind if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => &["assistant"],
        "compaction" => &["assistant", "user"],
        "" => return problem("type: Field required"),
        _ => &["user", "assistant"],
    };
    if !roles.contains(&role) {
        problem(&format!("`{kind}` blocks can only be in `{}` messages", roles.join("` or `")));
    }
    match kind {
        "text" => check_text(block, thinks, problem),
        "thinking" if !block["thinking"].is_string() => {
            problem("thinking.thinking: Field required")
        }
        "image" | "document" => check_source(block, problem),
        "tool_use" => {
            if !block["input"].is_object() {
                problem("tool_use.input: Input should be a valid dictionary");
            }
            for (name, longest) in [("id", usize::MAX), ("name", 128)] {
                let text = block[name].as_str().unwrap_or_default();
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !text.chars().all(plain) || text.len() > longest {
                    problem(&format!(
                        "tool_use.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'"
                    ));
                }
            }
        }
        "tool_result" => check_result(block, problem),
        "compaction" if block["content"] == "" => {
            problem("compaction.content: String should have at least 1 character");
        }
        _ => {}
    }
    if is_thinking(block) && block.get("cache_control").is_some() {
        problem("thinking.cache_control: Extra inputs are not permitted");
    }
}

/// White space is refused as a whole text. The model writes it between thinking blocks, where it
/// must come back as it was.
fn check_text(block: &Value, thinks: bool, problem: &mut impl FnMut(&str)) {
    match block["text"].as_str() {
        None => problem("text.text: Field required"),
        Some("") => problem("text content blocks must be non-empty"),
        Some(text) if !thinks && text.trim().is_empty() => {
            problem("text content blocks must contain non-whitespace text");
        }
        _ => {}
    }
}

fn check_source(block: &Value, problem: &mut impl FnMut(&str)) {
    let source = &block["source"];
    let member = match source["type"].as_str() {
        Some("base64" | "text") => "data",
        Some("url") => "url",
        Some("file") => "file_id",
        Some("content") => "content",
        _ => return problem("source: Input should be a valid source"),
    };
    if source[member].is_null() {
        problem(&format!("source.{member}: Field required"));
    }
}

fn check_result(block: &Value, problem: &mut impl FnMut(&str)) {
    let failed = block["is_error"] == true;
    let inner = match &block["content"] {
        Value::Null if block.get("content").is_none() => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => return problem("tool_result.content: Input should be a valid array"),
    };
    if failed && inner.is_empty() {
        problem("tool_result: content cannot be empty if `is_error` is true");
    }
    for block in &inner {
        match block["type"].as_str() {
            Some("text") if block["text"].as_str().is_none_or(str::is_empty) => {
                problem("tool_result.content: text content blocks must be non-empty");
            }
            Some("text") => {}
            _ if failed => {
                problem("tool_result: all content must be type `text` if `is_error` is true")
            }
            Some("image" | "document") => check_source(block, problem),
            Some("search_result" | "tool_reference" | "browser_state") => {}
            _ => problem("tool_result.content: Input tag does not match any of the expected tags"),
        }
    }
}

/// A system message stands behind a user message, or an assistant's that ends in the result of a
/// server tool, and before an assistant message or at the end. Directives stand anywhere.
fn check_systems(messages: &[Value], found: &mut Vec<String>) {
    let is_said = |message: &&Value| !(message["role"] == "system" && blocks(message).is_empty());
    let said: Vec<&Value> = messages.iter().filter(is_said).collect();
    for (at, run) in said.iter().enumerate().filter(|(_, message)| message["role"] == "system") {
        let _ = run;
        let before = said[..at].iter().rev().find(|message| message["role"] != "system");
        let after = said[at..].iter().find(|message| message["role"] != "system");
        let follows = before.is_some_and(|message| {
            let last = blocks(message).last().cloned().unwrap_or_default();
            let kind = last["type"].as_str().unwrap_or_default();
            message["role"] == "user" || kind.ends_with("_tool_result")
        });
        if !follows {
            found.push(format!(
                "messages.{at}: role 'system' must follow a 'user' message or an 'assistant' \
                 message ending in a server tool result"
            ));
        }
        if after.is_some_and(|message| message["role"] != "assistant") {
            found.push(format!(
                "messages.{at}: role 'system' must precede an 'assistant' message or end the array"
            ));
        }
    }
}

fn check_markers(messages: &[Value], found: &mut Vec<String>) {
    let markers = |block: &Value| {
        let inner = block["content"].as_array().map_or(&[][..], Vec::as_slice);
        let all = std::iter::once(block).chain(inner);
        all.filter(|block| block["cache_control"].is_object()).count()
    };
    let count: usize = messages.iter().flat_map(blocks).map(|block| markers(&block)).sum();
    if count > 4 {
        found.push(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {count}."
        ));
    }
}

/// Messages of one role in a row, which the API combines. System messages part no turns.
struct Turn {
    role: String,
    blocks: Vec<Value>,
}

fn turns(messages: &[Value]) -> Vec<Turn> {
    let mut out: Vec<Turn> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        match out.last_mut() {
            Some(last) if last.role == role => last.blocks.extend(blocks(message)),
            // A directive is no turn.
            _ if role == "system" && blocks(message).is_empty() => {}
            _ => out.push(Turn { role: role.to_owned(), blocks: blocks(message) }),
        }
    }
    out
}

fn check_turns(turns: &[Turn], found: &mut Vec<String>) {
    if let Some(first) = turns.first()
        && first.role != "user"
        && first.blocks.first().is_none_or(|block| block["type"] != "compaction")
    {
        found.push("messages: first message must use the \"user\" role".to_owned());
    }
    let text = |block: &Value, name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let mut ids: Vec<String> = Vec::new();
    let mut served: Vec<String> = Vec::new();
    let mut waiting: Vec<String> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let mut problem = |what: String| found.push(format!("turn {at}: {what}"));
        let last = at + 1 == turns.len();
        let run = turn.blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        for (index, block) in turn.blocks.iter().enumerate() {
            if block["type"] != "tool_result" {
                continue;
            }
            let id = text(block, "tool_use_id");
            if index >= run {
                problem(format!("`tool_result` {id} stands behind other content"));
            } else if let Some(place) = waiting.iter().position(|waits| *waits == id) {
                waiting.remove(place);
            } else {
                problem(format!(
                    "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the \
                     previous message, and each tool_use must have a single result"
                ));
            }
        }
        // More results may be on their way while there is nothing else.
        let more = last && run == turn.blocks.len();
        if !waiting.is_empty() && !more {
            problem(format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {}",
                waiting.join(", ")
            ));
        }
        waiting.clear();
        if turn.role != "assistant" {
            continue;
        }
        if turn.blocks.last().is_some_and(is_thinking) {
            problem("The final block in an assistant message cannot be `thinking`".to_owned());
        }
        for block in &turn.blocks {
            let kind = block["type"].as_str().unwrap_or_default();
            if kind == "tool_use" {
                let id = text(block, "id");
                if ids.contains(&id) {
                    problem(format!("`tool_use` ids must be unique: {id}"));
                }
                ids.push(id.clone());
                waiting.push(id);
            } else if kind.ends_with("_tool_use") {
                served.push(text(block, "id"));
            } else if kind.ends_with("_tool_result") {
                let id = text(block, "tool_use_id");
                match served.iter().position(|waits| *waits == id) {
                    Some(place) => drop(served.remove(place)),
                    None => problem(format!(
                        "unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` \
                         block must have a corresponding `server_tool_use` block before it"
                    )),
                }
            }
        }
        // The provider answers its own tools in the same turn, or behind the host's results.
        if !served.is_empty() && !last && waiting.is_empty() {
            problem(format!(
                "server tool use with id {} was found without a corresponding result block",
                served.join(", ")
            ));
            served.clear();
        }
    }
}

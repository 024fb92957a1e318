//! What OpenAI Responses accepts as `input`, written from the types of the vendor's `openai`
//! package (7.59), the guides on compaction and conversation state, and the error texts that the
//! API answers with; not from the renderer.

use serde_json::Value;

/// What the API would refuse, or nothing. A last batch of calls may wait: the host is about to
/// answer it.
pub fn problems(items: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    if items.is_empty() {
        found.push("input: expected at least one item".to_owned());
    }
    for (at, item) in items.iter().enumerate() {
        for what in malformed(item) {
            found.push(format!("input[{at}]: {what}"));
        }
    }
    found.extend(repeated(items));
    found.extend(misplaced(items));
    found.extend(parted(items));
    found
}

/// Items of the view that need reasoning which the view does not have. Only the transcript tells
/// which reasoning that was.
pub fn unbound(view: &[Value], transcript: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, item) in view.iter().enumerate() {
        let Some(id) = item["id"].as_str().filter(|_| kind(item) != "reasoning") else { continue };
        let Some(place) = transcript.iter().position(|other| same(other, item)) else { continue };
        if by_model(item)
            && let Some(reasoning) = needed(&transcript[..place], item)
            && !view[..at].iter().any(|other| same(other, reasoning))
        {
            found.push(format!(
                "Item '{id}' of type '{}' was provided without its required 'reasoning' item: {}",
                kind(item),
                reasoning["id"]
            ));
        }
    }
    found
}

/// The nearest reasoning before an item. For what could do without its id, in the whole turn: who
/// knows whether hosts moved outputs between the calls of one response.
fn needed<'a>(before: &'a [Value], item: &Value) -> Option<&'a Value> {
    let loose = matches!(kind(item), "message" | "function_call" | "custom_tool_call");
    let mut turn = before.iter().rev().take_while(|item| match loose {
        true => !matches!(item["role"].as_str(), Some("user" | "system" | "developer")),
        false => by_model(item),
    });
    turn.find(|item| kind(item) == "reasoning")
}

fn same(a: &Value, b: &Value) -> bool {
    a["id"].is_string() && a["id"] == b["id"] && kind(a) == kind(b)
}

pub fn kind(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if item["role"].is_string() => "message",
        None => "item_reference",
    }
}

/// Items that the model or its hosted tools put out.
fn by_model(item: &Value) -> bool {
    match kind(item) {
        "message" => item["role"] == "assistant",
        "item_reference" | "mcp_list_tools" | "mcp_approval_request" | "reasoning" | "program" => {
            true
        }
        // Tools that the provider searched itself have no id to answer by.
        "tool_search_output" => item["call_id"].is_null(),
        kind => kind.ends_with("_call"),
    }
}

fn malformed(item: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut problem = |what: &str| found.push(what.to_owned());
    let string = |name: &str| item[name].as_str().filter(|text| !text.is_empty());
    let mut need = |names: &[&str]| {
        for name in names {
            if string(name).is_none() {
                problem(&format!("Missing required parameter: '{name}'"));
            }
        }
    };
    match kind(item) {
        "message" => {
            need(&["role"]);
            found.extend(malformed_message(item));
        }
        "reasoning" => {
            if item["encrypted_content"].is_null() {
                need(&["id"]);
            }
            if !item["summary"].is_array() {
                found.push("Missing required parameter: 'summary'".to_owned());
            }
        }
        "function_call" => {
            need(&["call_id", "name"]);
            match item["arguments"].as_str() {
                None => found.push("Missing required parameter: 'arguments'".to_owned()),
                // The API takes any string; but a cut of ours must leave JSON behind.
                Some(text)
                    if text.contains("left_out")
                        && serde_json::from_str::<Value>(text).is_err() =>
                {
                    found.push("arguments were cut to something that is not JSON".to_owned());
                }
                Some(_) => {}
            }
        }
        "custom_tool_call" => {
            need(&["call_id", "name"]);
            if !item["input"].is_string() {
                found.push("Missing required parameter: 'input'".to_owned());
            }
        }
        "function_call_output" | "custom_tool_call_output" => {
            need(&["call_id"]);
            let parts = ["input_text", "input_image", "input_file"];
            found.extend(malformed_content(&item["output"], &parts, true));
        }
        "computer_call" | "local_shell_call" => need(&["id", "call_id"]),
        "shell_call" | "apply_patch_call" => need(&["call_id"]),
        "computer_call_output" => {
            need(&["call_id"]);
            if item["output"]["type"] != "computer_screenshot" {
                found.push("output must be a computer_screenshot".to_owned());
            }
        }
        "shell_call_output" => {
            need(&["call_id"]);
            let chunk = |chunk: &Value| {
                chunk["stdout"].is_string()
                    && chunk["stderr"].is_string()
                    && chunk["outcome"]["type"].is_string()
            };
            if !item["output"].as_array().is_some_and(|chunks| chunks.iter().all(chunk)) {
                found.push("output must be a list of stdout, stderr and outcome".to_owned());
            }
        }
        "local_shell_call_output" if output_id(item).is_none() || !item["output"].is_string() => {
            found.push("a shell output without id or output".to_owned());
        }
        "local_shell_call_output" => {}
        "apply_patch_call_output" => {
            need(&["call_id"]);
            if !matches!(item["status"].as_str(), Some("completed" | "failed")) {
                found.push("status must be completed or failed".to_owned());
            }
            if !(item["output"].is_null() || item["output"].is_string()) {
                found.push("output must be a string".to_owned());
            }
        }
        "mcp_approval_request" => need(&["id", "name", "arguments", "server_label"]),
        "mcp_approval_response" => {
            need(&["approval_request_id"]);
            if !item["approve"].is_boolean() {
                found.push("Missing required parameter: 'approve'".to_owned());
            }
        }
        "web_search_call"
        | "file_search_call"
        | "image_generation_call"
        | "mcp_call"
        | "code_interpreter_call"
        | "mcp_list_tools"
        | "item_reference" => need(&["id"]),
        "compaction" => need(&["encrypted_content"]),
        "additional_tools" if !item["tools"].is_array() => {
            found.push("Missing required parameter: 'tools'".to_owned());
        }
        _ => {}
    }
    let prefix = match kind(item) {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        _ => "",
    };
    match &item["id"] {
        Value::Null => {}
        Value::String(id) if id.len() > 64 => {
            found.push("string too long. Expected a string with maximum length 64".to_owned());
        }
        Value::String(id) if id.starts_with(prefix) => {}
        _ => found.push(format!("Invalid 'id'. Expected an ID that begins with '{prefix}'")),
    }
    if string("call_id").is_some_and(|id| id.len() > 64) {
        found.push("call_id: string too long. Expected maximum length 64".to_owned());
    }
    found
}

fn malformed_message(item: &Value) -> Vec<String> {
    let parts: &[&str] = match item["role"].as_str() {
        Some("user" | "system" | "developer") => {
            &["input_text", "input_image", "input_file", "input_audio"]
        }
        Some("assistant") => &["output_text", "refusal"],
        _ => return vec!["Invalid value: 'role'".to_owned()],
    };
    malformed_content(&item["content"], parts, false)
}

fn malformed_content(content: &Value, allowed: &[&str], may_be_empty: bool) -> Vec<String> {
    let parts = match content {
        Value::String(text) if may_be_empty || !text.is_empty() => return Vec::new(),
        Value::Array(parts) if !parts.is_empty() => parts,
        _ => return vec!["content must be a string or parts, and not empty".to_owned()],
    };
    let mut found = Vec::new();
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        let known = ["input_text", "output_text", "refusal", "input_image", "input_file"];
        if known.contains(&kind) && !allowed.contains(&kind) {
            found.push(format!("Invalid value: '{kind}'. Supported values are: {allowed:?}"));
        }
        let text = if kind == "refusal" { &part["refusal"] } else { &part["text"] };
        if matches!(kind, "input_text" | "output_text" | "refusal")
            && !text.as_str().is_some_and(|text| may_be_empty || !text.is_empty())
        {
            found.push("an empty text among the content".to_owned());
        }
    }
    found
}

/// Ids that stand twice.
fn repeated(items: &[Value]) -> Vec<String> {
    let mut ids: Vec<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).filter(|pair| pair[0] == pair[1]);
    twice.map(|pair| format!("Duplicate item found with id {}", pair[0])).collect()
}

/// Items in a place where they may not stand.
fn misplaced(items: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let next = items.get(at + 1);
        match kind(item) {
            "reasoning" => {
                let said = items[at..].iter().find(|item| kind(item) != "reasoning");
                if !said.is_some_and(by_model) {
                    found.push(format!(
                        "Item {} of type 'reasoning' was provided without its required following \
                         item",
                        item["id"]
                    ));
                }
            }
            "compaction_trigger" if next.is_some() => {
                found.push("compaction_trigger must be the final input item".to_owned());
            }
            "configuration_update" if next.map(kind) == Some("configuration_update") => {
                found.push("two configuration_update items may not be adjacent".to_owned());
            }
            _ => {}
        }
    }
    found
}

fn output_id(item: &Value) -> Option<&str> {
    let name = match kind(item) {
        "mcp_approval_response" => "approval_request_id",
        "local_shell_call_output" if item["call_id"].is_null() => "id",
        kind if kind.ends_with("_output") => "call_id",
        _ => return None,
    };
    item[name].as_str()
}

/// Type of the output that answers a call, and whether it must come.
fn answer(kind: &str) -> Option<(&'static str, bool)> {
    Some(match kind {
        "function_call" => ("function_call_output", true),
        "custom_tool_call" => ("custom_tool_call_output", true),
        "computer_call" => ("computer_call_output", true),
        "local_shell_call" => ("local_shell_call_output", true),
        "shell_call" => ("shell_call_output", true),
        "apply_patch_call" => ("apply_patch_call_output", true),
        "tool_search_call" => ("tool_search_output", true),
        "mcp_approval_request" => ("mcp_approval_response", false),
        _ => return None,
    })
}

/// Calls and outputs without each other.
fn parted(items: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut references = 0;
    // Calls that wait: their place, their id, the type of their answer.
    let mut waiting: Vec<(usize, &str, &str)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        references += usize::from(kind(item) == "item_reference");
        let id = if kind(item) == "mcp_approval_request" { &item["id"] } else { &item["call_id"] };
        if let (Some((answer, _)), Some(id)) = (answer(kind(item)), id.as_str()) {
            if waiting.iter().any(|(_, waits, _)| *waits == id) {
                found.push(format!("input[{at}]: call_id {id} already waits for an output"));
            }
            waiting.push((at, id, answer));
        } else if let Some(id) = output_id(item) {
            let call =
                waiting.iter().position(|(_, waits, answer)| *waits == id && *answer == kind(item));
            match call {
                Some(call) => drop(waiting.remove(call)),
                // The call may stand on the server.
                None if references > 0 => references -= 1,
                None if known_output(kind(item)) => found.push(format!(
                    "input[{at}]: No tool call found for {} with call_id {id}",
                    kind(item).replace('_', " ")
                )),
                None => {}
            }
        }
    }
    // Whatever the model said last may still wait for the host.
    let last = items.iter().rposition(|item| output_id(item).is_none()).unwrap_or(0);
    let pending = match items.get(last).is_some_and(by_model) {
        true => items[..last].iter().rposition(|item| !by_model(item)).map_or(0, |at| at + 1),
        false => items.len(),
    };
    for (at, id, _) in waiting {
        if at < pending && answer(kind(&items[at])).is_some_and(|(_, must)| must) {
            found.push(format!(
                "input[{at}]: No tool output found for {} {id}",
                kind(&items[at]).replace('_', " ")
            ));
        }
    }
    found
}

fn known_output(kind: &str) -> bool {
    matches!(
        kind,
        "function_call_output"
            | "custom_tool_call_output"
            | "computer_call_output"
            | "local_shell_call_output"
            | "shell_call_output"
            | "apply_patch_call_output"
            | "mcp_approval_response"
    )
}

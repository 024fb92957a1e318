//! Which wire format messages are written in, told from what only that format has.

use super::FormatName;
use crate::json::{Kind, Value};

/// The format of the first message that gives it away; none while all messages read the same in
/// several formats, as plain texts do.
pub(crate) fn detect(messages: Value<'_>) -> Option<FormatName> {
    messages.items().find_map(message)
}

fn message(message: Value<'_>) -> Option<FormatName> {
    let member = |name: &str| message.get(name);
    if let Some(parts) = member("parts") {
        // Messages of user interfaces have parts too, each with a type.
        let typed = parts.items().any(|part| part.get("type").is_some());
        return (!typed && parts.kind() == Kind::Array).then_some(FormatName::Gemini);
    }
    if member("type").is_some_and(|kind| kind.kind() == Kind::String) {
        return Some(FormatName::OpenaiResponses);
    }
    if ["tool_calls", "tool_call_id", "function_call"].iter().any(|name| member(name).is_some()) {
        return Some(FormatName::OpenaiChat);
    }
    if member("providerOptions").is_some() {
        return Some(FormatName::AiSdk);
    }
    member("content")?.items().find_map(block)
}

fn block(block: Value<'_>) -> Option<FormatName> {
    let kind = block.get("type")?.string()?;
    let has = |name: &str| block.get(name).is_some();
    Some(match &*kind {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use"
        | "document" | "search_result" | "mcp_tool_use" => FormatName::Anthropic,
        "image" if has("source") => FormatName::Anthropic,
        "image_url" | "input_audio" | "video_url" => FormatName::OpenaiChat,
        "file" if has("file") => FormatName::OpenaiChat,
        "input_text" | "output_text" | "input_image" | "input_file" => FormatName::OpenaiResponses,
        "tool-call"
        | "tool-result"
        | "reasoning"
        | "reasoning-file"
        | "tool-approval-request"
        | "tool-approval-response" => FormatName::AiSdk,
        "image" if has("image") => FormatName::AiSdk,
        "file" if has("data") => FormatName::AiSdk,
        _ if has("providerOptions") => FormatName::AiSdk,
        _ => return None,
    })
}

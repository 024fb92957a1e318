//! OpenAI Chat Completions: `messages` with `tool_calls` answered by `tool` messages.

use std::borrow::Cow;

use super::draft::{Draft, text};
use super::{Fault, Format};
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Flaw, Pairing, Part, PartKind, Role, Shape, Step};

pub(super) struct OpenaiChat;

impl Format for OpenaiChat {
    fn pairing(&self) -> Pairing {
        Pairing::Each
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        draft.role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
        let role = match &*draft.role_name {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            _ => Role::Other,
        };
        let mut id = Cow::Borrowed("");
        for (key, member) in value.members().filter(|(_, member)| !member.is_null()) {
            let read = match &*key {
                "role" => Ok(()),
                "name" => text(Some(member)).map(|text| draft.name = text),
                "tool_call_id" => text(Some(member)).map(|text| id = text),
                "content" => content(draft, role, member),
                "refusal" => text(Some(member)).map(|_| {
                    draft.add(PartKind::Text, &[Step::Key("refusal")], member);
                }),
                "reasoning_content" | "reasoning" if member.kind() == Kind::String => {
                    let step = if key == "reasoning" { "reasoning" } else { "reasoning_content" };
                    draft.add(PartKind::Reasoning, &[Step::Key(step)], member);
                    Ok(())
                }
                "tool_calls" => calls(draft, member),
                "function_call" => {
                    let path = [Step::Key("function_call"), Step::Key("arguments")];
                    call(draft, member, &path, "arguments", "")
                }
                _ if matches!(member.kind(), Kind::Array | Kind::Object) => {
                    draft.add(PartKind::Opaque, &[], member);
                    draft.has_content |= key == "audio";
                    Ok(())
                }
                _ => Ok(()),
            };
            read.map_err(|fault| fault.within(&key))?;
        }
        if role == Role::Tool {
            if !draft.parts.iter().any(|part| part.kind == PartKind::Result) {
                match value.get("content") {
                    Some(null) => {
                        let part = draft.add(PartKind::Result, &[Step::Key("content")], null);
                        part.tokens = 0;
                        part.flaw = Some(Flaw::NullResult);
                    }
                    None => {
                        return Err(Fault::new("a string or an array of parts").within("content"));
                    }
                }
            }
            for part in &mut draft.parts {
                part.id = if draft.role_name == "function" { "" } else { &*id }.into();
                part.name = (&*draft.name).into();
                part.block = 0;
            }
        }
        Ok(role)
    }

    fn id_path(&self, part: &Part) -> Option<Vec<Step>> {
        match part.kind {
            PartKind::Call if part.path.len() > 2 => {
                Some([&part.path[..2], &[Step::Key("id")]].concat())
            }
            PartKind::Result => Some(vec![Step::Key("tool_call_id")]),
            _ => None,
        }
    }

    fn user_message(&self, text: &str) -> String {
        let mut out = String::from("{\"role\":\"user\",\"content\":");
        write_string(&mut out, text);
        out.push('}');
        out
    }

    fn result_message(&self, id: &str, name: &str, text: &str) -> String {
        let mut out = String::from("{\"role\":");
        if id.is_empty() {
            out.push_str("\"function\",\"name\":");
            write_string(&mut out, name);
        } else {
            out.push_str("\"tool\",\"tool_call_id\":");
            write_string(&mut out, id);
        }
        out.push_str(",\"content\":");
        write_string(&mut out, text);
        out.push('}');
        out
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        let mut out = String::from("{\"type\":\"function\",\"function\":{\"name\":");
        write_string(&mut out, name);
        out.push_str(",\"description\":");
        write_string(&mut out, description);
        out.push_str(",\"parameters\":");
        out.push_str(parameters);
        out.push_str("}}");
        out
    }
}

fn content(draft: &mut Draft<'_>, role: Role, value: Value<'_>) -> Result<(), Fault> {
    let here = [Step::Key("content")];
    match value.kind() {
        Kind::String | Kind::Array if role == Role::Tool => {
            let empty = value.kind() == Kind::Array && value.items().next().is_none();
            let part = draft.result(&here, value)?;
            if empty {
                part.flaw = Some(Flaw::NullResult);
            }
        }
        Kind::String => {
            draft.add(PartKind::Text, &here, value);
        }
        Kind::Array => {
            for (item, index) in value.items().zip(0u32..) {
                content_part(draft, item, index).map_err(|fault| fault.at(index))?;
            }
        }
        _ => return Err(Fault::new("a string, an array of parts or null")),
    }
    Ok(())
}

fn content_part(draft: &mut Draft<'_>, item: Value<'_>, index: u32) -> Result<(), Fault> {
    let here = [Step::Key("content"), Step::Index(index)];
    if item.kind() == Kind::String {
        draft.list_text(&here, item);
        return Ok(());
    }
    if item.kind() != Kind::Object {
        return Err(Fault::new("an object with a type"));
    }
    let kind = item.get("type").and_then(|kind| kind.string()).unwrap_or_default();
    match &*kind {
        "text" | "refusal" => {
            let key = if kind == "text" { "text" } else { "refusal" };
            let value = item.get(key).filter(|text| text.kind() == Kind::String);
            let value = value.ok_or_else(|| Fault::new("a string").within(key))?;
            draft.list_text(&[here[0], here[1], Step::Key(key)], value);
        }
        "image_url" => {
            draft.media(PartKind::Image, &here, item);
        }
        "file" | "input_audio" | "video_url" => {
            draft.media(PartKind::File, &here, item);
        }
        _ => {
            draft.opaque(&here, item);
        }
    }
    Ok(())
}

fn calls(draft: &mut Draft<'_>, value: Value<'_>) -> Result<(), Fault> {
    if value.kind() != Kind::Array {
        return Err(Fault::new("an array of tool calls"));
    }
    for (call, index) in value.items().zip(0u32..) {
        tool_call(draft, call, index).map_err(|fault| fault.at(index))?;
    }
    if value.items().next().is_none() {
        let part = draft.push(PartKind::Opaque, &[Step::Key("tool_calls")], value, 0, 0);
        part.flaw = Some(Flaw::NoCalls);
    }
    Ok(())
}

fn tool_call(draft: &mut Draft<'_>, item: Value<'_>, index: u32) -> Result<(), Fault> {
    let (kind, key, body) = match (item.get("function"), item.get("custom")) {
        (Some(body), _) => ("function", "arguments", body),
        (None, Some(body)) => ("custom", "input", body),
        (None, None) => return Err(Fault::new("an object").within("function")),
    };
    let id = match item.get("id").filter(|id| !id.is_null()) {
        Some(id) => text(Some(id)).map_err(|fault| fault.within("id"))?,
        None => Cow::Borrowed(""),
    };
    let path = [Step::Key("tool_calls"), Step::Index(index), Step::Key(kind), Step::Key(key)];
    call(draft, body, &path, key, &id).map_err(|fault| fault.within(kind))
}

fn call(
    draft: &mut Draft<'_>,
    body: Value<'_>,
    path: &[Step],
    key: &str,
    id: &str,
) -> Result<(), Fault> {
    let name = text(body.get("name")).map_err(|fault| fault.within("name"))?;
    let arguments = body.get(key).filter(|arguments| !arguments.is_null());
    let flaw = match arguments.map(|arguments| arguments.kind()) {
        Some(Kind::String) => None,
        Some(_) => Some(Flaw::ObjectArguments),
        // Some hosts leave the arguments of a call without parameters away.
        None => Some(Flaw::NoArguments),
    };
    let part = draft.call(path, arguments.unwrap_or(body), &name, id, CALL_FRAMING);
    part.flaw = flaw.or(part.flaw);
    part.shape = if key == "input" { Shape::String } else { Shape::ObjectText };
    Ok(())
}

/// Tokens around a call beside its name, id and arguments; measured on o200k transcripts as the
/// JSON punctuation of `{"type":"function","function":{...}}` that providers render.
pub(super) const CALL_FRAMING: u32 = 6;

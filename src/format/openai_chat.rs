//! OpenAI Chat Completions: `messages` with `tool_calls` answered by `tool` messages.

use std::borrow::Cow;
use std::hash::Hasher;

use super::{Fault, Format, Reading};
use crate::count;
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Flaw, Message, Part, PartKind, Role, Step, hasher};

pub(super) struct OpenaiChat;

impl Format for OpenaiChat {
    fn read(&self, value: Value<'_>, reading: Reading) -> Result<Message, Fault> {
        let role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
        let role = match &*role_name {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            _ => Role::Other,
        };
        let base = value.span().start;
        let mut draft = Draft { parts: Vec::new(), hashes: Vec::new(), base, reading };
        let mut id = Cow::Borrowed("");
        let mut name = Cow::Borrowed("");
        let mut has_content = false;
        for (key, member) in value.members().filter(|(_, member)| !member.is_null()) {
            let read = match &*key {
                "role" => Ok(false),
                "name" => text(Some(member)).map(|text| name = text).map(|()| false),
                "tool_call_id" => text(Some(member)).map(|text| id = text).map(|()| false),
                "content" => draft.content(role, member),
                "refusal" => text(Some(member)).map(|text| {
                    draft.add(PartKind::Text, &[Step::Key("refusal")], member);
                    !text.is_empty()
                }),
                "reasoning_content" | "reasoning" if member.kind() == Kind::String => {
                    let step = if key == "reasoning" { "reasoning" } else { "reasoning_content" };
                    draft.add(PartKind::Reasoning, &[Step::Key(step)], member);
                    Ok(false)
                }
                "tool_calls" => draft.calls(member),
                "function_call" => {
                    let path = [Step::Key("function_call"), Step::Key("arguments")];
                    draft.call(member, &path, "arguments").map(|()| true)
                }
                _ if matches!(member.kind(), Kind::Array | Kind::Object) => {
                    draft.add(PartKind::Opaque, &[], member);
                    Ok(key == "audio")
                }
                _ => Ok(false),
            };
            has_content |= read.map_err(|fault| fault.within(&key))?;
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
                part.id = if role_name == "function" { "" } else { &*id }.into();
                part.name = (&*name).into();
            }
        }
        let empty = !has_content && !matches!(role, Role::Tool | Role::Other);
        Ok(draft.message(role, &role_name, &name, value.raw(), empty))
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

fn text(value: Option<Value<'_>>) -> Result<Cow<'_, str>, Fault> {
    value.and_then(|value| value.string()).ok_or_else(|| Fault::new("a string"))
}

/// A message while it is read.
struct Draft {
    parts: Vec<Part>,
    /// Hashes of the decoded values of the parts, zero for results.
    hashes: Vec<u64>,
    /// Offset of the message in the text that is being read.
    base: usize,
    reading: Reading,
}

impl Draft {
    fn add(&mut self, kind: PartKind, path: &[Step], value: Value<'_>) -> &mut Part {
        let (text, malformed) =
            value.checked_string().unwrap_or((Cow::Borrowed(value.raw()), false));
        let hash = match kind {
            // The content of a result is no part of the spine, and may be large.
            PartKind::Result => 0,
            _ => {
                let mut hash = hasher(self.reading.key);
                hash.write(text.as_bytes());
                hash.finish()
            }
        };
        let part = self.push(kind, path, value, count::text(&text), hash);
        part.flaw = malformed.then_some(Flaw::LoneSurrogate);
        part
    }

    fn push(
        &mut self,
        kind: PartKind,
        path: &[Step],
        value: Value<'_>,
        tokens: u32,
        hash: u64,
    ) -> &mut Part {
        let span = value.span();
        self.hashes.push(hash);
        self.parts.push(Part {
            kind,
            path: path.into(),
            start: (span.start - self.base) as u32,
            end: (span.end - self.base) as u32,
            id: "".into(),
            name: "".into(),
            tokens,
            framing: 0,
            media: false,
            flaw: None,
            link: None,
        });
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Reads `content`; says whether it holds anything.
    fn content(&mut self, role: Role, value: Value<'_>) -> Result<bool, Fault> {
        let own = if role == Role::Tool { PartKind::Result } else { PartKind::Text };
        match value.kind() {
            Kind::String => {
                self.add(own, &[Step::Key("content")], value);
                Ok(value.span().len() > 2)
            }
            Kind::Array if role == Role::Tool => self.result(value),
            Kind::Array => {
                let mut any = false;
                for (item, index) in value.items().zip(0u32..) {
                    any |= self.content_part(item, index).map_err(|fault| fault.at(index))?;
                }
                Ok(any)
            }
            _ => Err(Fault::new("a string, an array of parts or null")),
        }
    }

    fn content_part(&mut self, item: Value<'_>, index: u32) -> Result<bool, Fault> {
        let here = [Step::Key("content"), Step::Index(index)];
        if item.kind() == Kind::String {
            self.add(PartKind::Text, &here, item);
            return Ok(item.span().len() > 2);
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
                self.add(PartKind::Text, &[here[0], here[1], Step::Key(key)], value);
                Ok(value.span().len() > 2)
            }
            "image_url" | "file" | "input_audio" | "video_url" => {
                let kind = if kind == "image_url" { PartKind::Image } else { PartKind::File };
                let tokens = self.reading.image_tokens;
                let mut hash = hasher(self.reading.key);
                hash.write(item.raw().as_bytes());
                self.push(kind, &here, item, tokens, hash.finish()).media = true;
                Ok(true)
            }
            _ => {
                self.add(PartKind::Opaque, &here, item);
                Ok(true)
            }
        }
    }

    /// A result given as a list of parts is one value: it is replaced as a whole.
    fn result(&mut self, value: Value<'_>) -> Result<bool, Fault> {
        let mut tokens = 0;
        let mut media = false;
        let mut malformed = false;
        for (item, index) in value.items().zip(0u32..) {
            let text = match item.kind() {
                Kind::String => Some(item),
                Kind::Object => item.get("text").filter(|text| text.kind() == Kind::String),
                _ => return Err(Fault::new("an object with a type").at(index)),
            };
            match text.and_then(|text| text.checked_string()) {
                Some((text, lone)) => {
                    tokens = count::text(&text).saturating_add(tokens);
                    malformed |= lone;
                }
                None => {
                    tokens = self.reading.image_tokens.saturating_add(tokens);
                    media = true;
                }
            }
        }
        let part = self.push(PartKind::Result, &[Step::Key("content")], value, tokens, 0);
        part.media = media;
        part.flaw = malformed.then_some(Flaw::LoneSurrogate);
        Ok(true)
    }

    fn calls(&mut self, value: Value<'_>) -> Result<bool, Fault> {
        if value.kind() != Kind::Array {
            return Err(Fault::new("an array of tool calls"));
        }
        for (call, index) in value.items().zip(0u32..) {
            self.tool_call(call, index).map_err(|fault| fault.at(index))?;
        }
        let any = value.items().next().is_some();
        if !any {
            let part = self.push(PartKind::Opaque, &[Step::Key("tool_calls")], value, 0, 0);
            part.flaw = Some(Flaw::NoCalls);
        }
        Ok(any)
    }

    fn tool_call(&mut self, call: Value<'_>, index: u32) -> Result<(), Fault> {
        let (kind, key, body) = match (call.get("function"), call.get("custom")) {
            (Some(body), _) => ("function", "arguments", body),
            (None, Some(body)) => ("custom", "input", body),
            (None, None) => return Err(Fault::new("an object").within("function")),
        };
        let path = [Step::Key("tool_calls"), Step::Index(index), Step::Key(kind), Step::Key(key)];
        self.call(body, &path, key).map_err(|fault| fault.within(kind))?;
        if let Some(id) = call.get("id").filter(|id| !id.is_null()) {
            let id = text(Some(id)).map_err(|fault| fault.within("id"))?;
            if let Some(part) = self.parts.last_mut() {
                part.frame(count::text(&id));
                part.id = (&*id).into();
            }
        }
        Ok(())
    }

    fn call(&mut self, body: Value<'_>, path: &[Step], key: &str) -> Result<(), Fault> {
        let name = text(body.get("name")).map_err(|fault| fault.within("name"))?;
        let arguments = body.get(key).filter(|arguments| !arguments.is_null());
        let flaw = match arguments.map(|arguments| arguments.kind()) {
            Some(Kind::String) => None,
            Some(_) => Some(Flaw::ObjectArguments),
            // Some hosts leave the arguments of a call without parameters away.
            None => Some(Flaw::NoArguments),
        };
        let part = self.add(PartKind::Call, path, arguments.unwrap_or(body));
        part.flaw = flaw.or(part.flaw);
        part.frame(count::text(&name) + CALL_FRAMING);
        part.name = (&*name).into();
        Ok(())
    }

    fn message(self, role: Role, role_name: &str, name: &str, raw: &str, empty: bool) -> Message {
        let mut message = Message {
            role,
            parts: self.parts,
            raw: raw.into(),
            tokens: count::MESSAGE_FRAMING + count::text(name),
            empty,
            pinned: false,
            spine: 0,
            chain: 0,
        };
        let mut spine = hasher(self.reading.key);
        let mut write = |text: &str, hash: u64| {
            spine.write(text.as_bytes());
            spine.write_u8(0xFF); // no byte of UTF-8: the texts stay apart
            spine.write_u64(hash);
        };
        write(role_name, 0);
        write(name, 0);
        for (part, hash) in message.parts.iter().zip(self.hashes) {
            message.tokens = message.tokens.saturating_add(part.tokens);
            write(&part.id, part.kind as u64);
            write(&part.name, hash);
            if part.kind == PartKind::Result {
                message.tokens = message.tokens.saturating_add(count::text(&part.id));
            }
        }
        message.spine = spine.finish();
        message
    }
}

/// Tokens around a call beside its name, id and arguments; measured on o200k transcripts as the
/// JSON punctuation of `{"type":"function","function":{...}}` that providers render.
const CALL_FRAMING: u32 = 6;

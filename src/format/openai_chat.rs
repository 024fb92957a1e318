//! OpenAI Chat Completions: `messages` with `tool_calls` answered by `tool` messages.

use std::hash::Hasher;

use super::{Format, Reading, wrong};
use crate::count;
use crate::error::Error;
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Message, Part, PartKind, Role, Step, hasher};

pub(super) struct OpenaiChat;

impl Format for OpenaiChat {
    fn read(&self, value: Value<'_>, place: &str, reading: Reading) -> Result<Message, Error> {
        let role_value = value.get("role").ok_or_else(|| wrong(&at(place, "role"), "a string"))?;
        let role_name = role_value.string().ok_or_else(|| wrong(&at(place, "role"), "a string"))?;
        let role = match role_name.as_ref() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            _ => Role::Other,
        };
        let base = value.span().start;
        let mut draft = Draft { parts: Vec::new(), base, reading };
        let mut id = String::new();
        let mut name = String::new();
        let mut has_content = false;
        for (key, member) in value.members() {
            let here = || at(place, &key);
            match key.as_ref() {
                "role" => {}
                "name" | "tool_call_id" => {
                    let slot = if key == "name" { &mut name } else { &mut id };
                    *slot = match member.kind() {
                        Kind::Null => String::new(),
                        _ => member.string().ok_or_else(|| wrong(&here(), "a string"))?.into(),
                    };
                }
                "content" => has_content = draft.content(role, member, &here())?,
                "refusal" if !member.is_null() => {
                    let refusal = member.string().ok_or_else(|| wrong(&here(), "a string"))?;
                    has_content |= !refusal.is_empty();
                    draft.add(PartKind::Text, vec![Step::Key("refusal")], member);
                }
                "reasoning_content" | "reasoning" if member.kind() == Kind::String => {
                    let step = if key == "reasoning" { "reasoning" } else { "reasoning_content" };
                    draft.add(PartKind::Reasoning, vec![Step::Key(step)], member);
                }
                "tool_calls" if !member.is_null() => draft.calls(member, &here())?,
                "function_call" if !member.is_null() => {
                    let path = vec![Step::Key("function_call")];
                    draft.call(member, &here(), path, "arguments")?;
                }
                "audio" if !member.is_null() => {
                    has_content = true;
                    draft.add(PartKind::Opaque, vec![Step::Key("audio")], member);
                }
                _ if matches!(member.kind(), Kind::Array | Kind::Object) => {
                    draft.add(PartKind::Opaque, Vec::new(), member);
                }
                _ => {}
            }
        }
        if role == Role::Tool {
            if !draft.parts.iter().any(|part| part.kind == PartKind::Result) {
                return Err(wrong(&at(place, "content"), "a string or an array of parts"));
            }
            for part in &mut draft.parts {
                part.id = if role_name == "function" { "" } else { id.as_str() }.into();
                part.name = name.as_str().into();
            }
        }
        let calls = draft.parts.iter().any(|part| part.kind == PartKind::Call);
        let empty = !has_content && !calls && !matches!(role, Role::Tool | Role::Other);
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

fn at(place: &str, key: &str) -> String {
    format!("{place}.{key}")
}

/// A message while it is read.
struct Draft {
    parts: Vec<Part>,
    /// Offset of the message in the text that is being read.
    base: usize,
    reading: Reading,
}

impl Draft {
    fn add(&mut self, kind: PartKind, path: Vec<Step>, value: Value<'_>) -> &mut Part {
        let (tokens, hash, malformed) = match value.string() {
            Some(text) => (count::text(&text), self.hash(&text), lone_surrogate(value, &text)),
            None => (count::text(value.raw()), self.hash(value.raw()), false),
        };
        self.push(kind, path, value, tokens, hash, malformed)
    }

    fn push(
        &mut self,
        kind: PartKind,
        path: Vec<Step>,
        value: Value<'_>,
        tokens: u32,
        hash: u64,
        malformed: bool,
    ) -> &mut Part {
        let span = value.span();
        self.parts.push(Part {
            kind,
            path,
            start: (span.start - self.base) as u32,
            end: (span.end - self.base) as u32,
            id: "".into(),
            name: "".into(),
            tokens,
            media: false,
            malformed,
            hash,
            link: None,
        });
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    fn hash(&self, text: &str) -> u64 {
        let mut hash = hasher(self.reading.key);
        hash.write(text.as_bytes());
        hash.finish()
    }

    /// Reads `content`; says whether it holds anything.
    fn content(&mut self, role: Role, value: Value<'_>, place: &str) -> Result<bool, Error> {
        let own = if role == Role::Tool { PartKind::Result } else { PartKind::Text };
        let path = vec![Step::Key("content")];
        match value.kind() {
            Kind::String => {
                self.add(own, path, value);
                Ok(value.span().len() > 2)
            }
            Kind::Null if role == Role::Tool => {
                self.add(own, path, value).tokens = 0;
                Ok(false)
            }
            Kind::Null => Ok(false),
            Kind::Array if role == Role::Tool => self.result(value, place, path),
            Kind::Array => {
                let mut any = false;
                for (item, index) in value.items().zip(0u32..) {
                    any |= self.content_part(item, index, &format!("{place}[{index}]"))?;
                }
                Ok(any)
            }
            _ => Err(wrong(place, "a string, an array of parts or null")),
        }
    }

    fn content_part(&mut self, item: Value<'_>, index: u32, place: &str) -> Result<bool, Error> {
        let here = [Step::Key("content"), Step::Index(index)];
        let text_at = |key| vec![here[0], here[1], Step::Key(key)];
        if item.kind() == Kind::String {
            self.add(PartKind::Text, here.to_vec(), item);
            return Ok(item.span().len() > 2);
        }
        if item.kind() != Kind::Object {
            return Err(wrong(place, "an object with a type"));
        }
        let kind = item.get("type").and_then(|kind| kind.string()).unwrap_or_default();
        match kind.as_ref() {
            "text" | "refusal" => {
                let key = if kind == "text" { "text" } else { "refusal" };
                let text = item
                    .get(key)
                    .filter(|text| text.kind() == Kind::String)
                    .ok_or_else(|| wrong(&at(place, key), "a string"))?;
                self.add(PartKind::Text, text_at(key), text);
                Ok(text.span().len() > 2)
            }
            "image_url" | "file" | "input_audio" | "video_url" => {
                let kind = if kind == "image_url" { PartKind::Image } else { PartKind::File };
                let hash = self.hash(item.raw());
                let tokens = self.reading.image_tokens;
                self.push(kind, here.to_vec(), item, tokens, hash, false).media = true;
                Ok(true)
            }
            _ => {
                self.add(PartKind::Opaque, here.to_vec(), item);
                Ok(true)
            }
        }
    }

    /// A result given as a list of parts is one value: it is replaced as a whole.
    fn result(&mut self, value: Value<'_>, place: &str, path: Vec<Step>) -> Result<bool, Error> {
        let mut tokens = 0;
        let mut media = false;
        let mut malformed = false;
        for (item, index) in value.items().zip(0u32..) {
            let text = match item.kind() {
                Kind::String => Some(item),
                Kind::Object => item.get("text").filter(|text| text.kind() == Kind::String),
                _ => return Err(wrong(&format!("{place}[{index}]"), "an object with a type")),
            };
            match text.and_then(|text| Some((text, text.string()?))) {
                Some((value, text)) => {
                    tokens += count::text(&text);
                    malformed |= lone_surrogate(value, &text);
                }
                None => {
                    tokens += self.reading.image_tokens;
                    media = true;
                }
            }
        }
        let hash = self.hash(value.raw());
        self.push(PartKind::Result, path, value, tokens, hash, malformed).media = media;
        Ok(true)
    }

    fn calls(&mut self, value: Value<'_>, place: &str) -> Result<(), Error> {
        if value.kind() != Kind::Array {
            return Err(wrong(place, "an array of tool calls"));
        }
        for (call, index) in value.items().zip(0u32..) {
            let place = format!("{place}[{index}]");
            let path = [Step::Key("tool_calls"), Step::Index(index)];
            let (inner, body, key) = match (call.get("function"), call.get("custom")) {
                (Some(body), _) => ("function", body, "arguments"),
                (None, Some(body)) => ("custom", body, "input"),
                (None, None) => return Err(wrong(&at(&place, "function"), "an object")),
            };
            let path = vec![path[0], path[1], Step::Key(inner)];
            self.call(body, &at(&place, inner), path, key)?;
            if let Some(id) = call.get("id").filter(|id| !id.is_null()) {
                let id = id.string().ok_or_else(|| wrong(&at(&place, "id"), "a string"))?;
                if let Some(part) = self.parts.last_mut() {
                    part.tokens += count::text(&id);
                    part.id = id.as_ref().into();
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        body: Value<'_>,
        place: &str,
        mut path: Vec<Step>,
        key: &'static str,
    ) -> Result<(), Error> {
        let name = body
            .get("name")
            .and_then(|name| name.string())
            .ok_or_else(|| wrong(&at(place, "name"), "a string"))?;
        // Some hosts leave the arguments of a parameterless call away; the call itself stands in.
        let arguments = body.get(key).unwrap_or(body);
        path.push(Step::Key(key));
        let part = self.add(PartKind::Call, path, arguments);
        part.tokens += count::text(&name) + CALL_FRAMING;
        part.name = name.as_ref().into();
        Ok(())
    }

    fn message(self, role: Role, role_name: &str, name: &str, raw: &str, empty: bool) -> Message {
        let mut full = hasher(self.reading.key);
        let mut spine = hasher(self.reading.key);
        for text in [role_name, name] {
            full.write(text.as_bytes());
            full.write_u8(0xFF);
            spine.write(text.as_bytes());
            spine.write_u8(0xFF);
        }
        let mut tokens = MESSAGE_FRAMING + count::text(name);
        for part in &self.parts {
            tokens += part.tokens;
            for hash in [&mut full, &mut spine] {
                hash.write_u8(part.kind as u8);
                hash.write(part.id.as_bytes());
                hash.write_u8(0xFF);
                hash.write(part.name.as_bytes());
                hash.write_u8(0xFF);
            }
            full.write_u64(part.hash);
            if part.kind != PartKind::Result {
                spine.write_u64(part.hash);
            } else {
                tokens += count::text(&part.id);
            }
        }
        Message {
            role,
            parts: self.parts,
            raw: raw.into(),
            tokens,
            empty,
            pinned: false,
            hash: full.finish(),
            spine: spine.finish(),
            chain: 0,
        }
    }
}

/// Whether the literal holds a surrogate escape that decodes to nothing.
fn lone_surrogate(value: Value<'_>, text: &str) -> bool {
    text.contains(char::REPLACEMENT_CHARACTER)
        && text.matches(char::REPLACEMENT_CHARACTER).count()
            > value.raw().matches(char::REPLACEMENT_CHARACTER).count()
                + value.raw().matches("\\ufffd").count()
                + value.raw().matches("\\uFFFD").count()
}

/// Tokens around each message: role and delimiters. OpenAI's cookbook counts 3 and one for the
/// role on the models since gpt-3.5-turbo-0613.
const MESSAGE_FRAMING: u32 = 4;

/// Tokens around a call beside its name, id and arguments; measured on o200k transcripts as the
/// JSON punctuation of `{"type":"function","function":{...}}` that providers render.
const CALL_FRAMING: u32 = 6;

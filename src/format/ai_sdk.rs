//! Vercel AI SDK: model messages of versions 5 to 7, the prompts of its language models, and what
//! is left of version 4 in stored conversations (`args`, `result`).
//!
//! Calls and results of tools that the provider runs stand in assistant messages. They, and
//! whatever is bound by an id or a signature to something that the provider keeps, are opaque.

use super::draft::{Draft, text};
use super::{Approval, Fault, Format};
use crate::json::{Kind, Value, mended, write_string};
use crate::transcript::{Flaw, Message, Pairing, Part, PartKind, Role, Shape, Step};

pub(super) struct AiSdk;

impl Format for AiSdk {
    fn pairing(&self) -> Pairing {
        Pairing::Turn
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        draft.role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
        let role = match &*draft.role_name {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => {
                draft.opaque(&[], value);
                return Ok(Role::Other);
            }
        };
        let content = value.get("content");
        let kind = content.map(|content| content.kind());
        let read = match (content, kind) {
            (Some(content), Some(Kind::String)) if role != Role::Tool => {
                draft.add(PartKind::Text, &[Step::Key("content")], content);
                Ok(())
            }
            (Some(content), Some(Kind::Array)) if role != Role::System => {
                parts(draft, role, content)
            }
            _ => Err(Fault::new(match role {
                Role::System => "a string",
                Role::Tool => "an array of parts",
                _ => "a string or an array of parts",
            })),
        };
        read.map_err(|fault| fault.within("content"))?;
        // Empty instructions with options change settings in the middle of a conversation.
        draft.has_content |= role == Role::System && value.get("providerOptions").is_some();
        Ok(role)
    }

    fn id_path(&self, part: &Part) -> Option<Vec<Step>> {
        Some([&part.path[..2], &[Step::Key("toolCallId")]].concat())
    }

    fn user_message(&self, text: &str) -> String {
        // A list serves both kinds: in a prompt a string would be none.
        ["{\"role\":\"user\",\"content\":", &*self.stand_in(text), "}"].concat()
    }

    fn result_message(&self, id: &str, name: &str, text: &str) -> String {
        let mut out = String::from(
            "{\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":",
        );
        write_string(&mut out, id);
        out.push_str(",\"toolName\":");
        write_string(&mut out, name);
        out.push_str(",\"output\":");
        out.push_str(&Shape::Output.write(text));
        out.push_str("}]}");
        out
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        let mut out = String::from("{\"type\":\"function\",\"name\":");
        write_string(&mut out, name);
        out.push_str(",\"description\":");
        write_string(&mut out, description);
        out.push_str(",\"inputSchema\":");
        out.push_str(parameters);
        out.push('}');
        out
    }

    fn stand_in(&self, text: &str) -> String {
        ["[", &*Shape::TextBlock.write(text), "]"].concat()
    }

    fn placeholder(&self, message: &Message, text: &str) -> String {
        match message.role {
            Role::System => Shape::String.write(text),
            _ => self.stand_in(text),
        }
    }

    fn approval(&self, part: Value<'_>) -> Option<Approval> {
        let id = |name: &str| word(part, name).into_owned();
        Some(match &*word(part, "type") {
            "tool-call" => Approval::Call(id("toolCallId")),
            "tool-approval-request" => Approval::Request(id("approvalId"), id("toolCallId")),
            "tool-approval-response" => Approval::Response(id("approvalId")),
            _ => return None,
        })
    }

    fn marker(&self) -> Option<(&'static str, &'static str)> {
        Some(("providerOptions", "{\"anthropic\":{\"cacheControl\":{\"type\":\"ephemeral\"}}}"))
    }

    fn user_first(&self) -> bool {
        true
    }

    fn signs_history(&self) -> bool {
        true
    }
}

fn parts(draft: &mut Draft<'_>, role: Role, content: Value<'_>) -> Result<(), Fault> {
    // Calls of the provider's own tools, and how many of them have their result here.
    let mut running = 0u32;
    for (part, index) in content.items().zip(0u32..) {
        running += read_part(draft, role, content, part, index).map_err(|fault| fault.at(index))?;
    }
    // A later assistant message brings the result.
    draft.glued |= running > 0;
    // What answers no call answers a request for approval.
    draft.joins = role == Role::Tool && !draft.parts.iter().any(|p| p.kind == PartKind::Result);
    Ok(())
}

/// Reads one part; returns 1 where the result of a call of the provider's own is still to come.
fn read_part(
    draft: &mut Draft<'_>,
    role: Role,
    content: Value<'_>,
    part: Value<'_>,
    index: u32,
) -> Result<u32, Fault> {
    if part.kind() != Kind::Object {
        return Err(Fault::new("an object with a type"));
    }
    let here = [Step::Key("content"), Step::Index(index)];
    let under = |key: &'static str| [here[0], here[1], Step::Key(key)];
    match &*word(part, "type") {
        "text" => {
            let value = string(part, "text")?;
            match bond(part) {
                Bond::None | Bond::Loose => draft.list_text(&under("text"), value),
                _ => draft.opaque(&here, part),
            };
        }
        "reasoning" => {
            let value = string(part, "text")?;
            match bond(part) {
                // What follows it is bound to it by the same hand.
                Bond::Item => draft.add(PartKind::Opaque, &here, part),
                bond => {
                    let sealed = options(part).filter(|_| bond != Bond::None);
                    let tokens = sealed.map(|options| draft.tokens(options.raw()));
                    let read = draft.add(PartKind::Reasoning, &under("text"), value);
                    if let Some(tokens) = tokens {
                        read.signed = true;
                        read.frame(tokens);
                    }
                    read
                }
            };
        }
        "reasoning-file" => {
            draft.media(PartKind::Opaque, &here, part);
        }
        "image" => {
            draft.media(PartKind::Image, &here, part);
        }
        "file" => file(draft, part, index),
        "tool-call" => {
            let name = text(part.get("toolName")).map_err(|fault| fault.within("toolName"))?;
            let id = text(part.get("toolCallId")).map_err(|fault| fault.within("toolCallId"))?;
            if part.get("providerExecuted").and_then(|own| own.boolean()) == Some(true) {
                draft.opaque(&here, part);
                let answers = |other: &Value<'_>| {
                    word(*other, "type") == "tool-result" && word(*other, "toolCallId") == id
                };
                return Ok(u32::from(!content.items().any(|other| answers(&other))));
            }
            let key = if part.get("input").is_none() { "args" } else { "input" };
            let input = part.get(key).filter(|input| !input.is_null());
            let key = if input.is_none() { "input" } else { key };
            let call = draft.call(&under(key), input.unwrap_or(part), &name, &id, CALL_FRAMING);
            call.shape = Shape::Object;
            if input.is_none() {
                call.flaw = Some(Flaw::NoArguments);
            }
            call.signed = bond(part) >= Bond::Signature;
        }
        "tool-result" if role == Role::Tool => result(draft, part, index)?,
        "tool-result" if is_picture(part) => {
            draft.media(PartKind::Opaque, &here, part);
        }
        "tool-approval-request" => {
            // The response comes in the name of the tool.
            draft.glued = true;
            draft.asks = true;
            draft.has_content = true;
            draft.add(PartKind::Opaque, &here, part);
        }
        "tool-approval-response" => {
            draft.asks = true;
            draft.add(PartKind::Opaque, &here, part);
        }
        _ => {
            draft.opaque(&here, part);
        }
    }
    Ok(0)
}

/// Whether the provider's own tool made a picture, which stands in its result as base64.
fn is_picture(part: Value<'_>) -> bool {
    let made = part.get("output").and_then(|output| output.get("value")?.get("result"));
    made.is_some_and(|made| {
        made.kind() == Kind::String && made.span().len() > 1_000 && !made.raw().contains(' ')
    })
}

/// A result: what may be replaced is its text, or its whole output where that is more than text.
fn result(draft: &mut Draft<'_>, part: Value<'_>, index: u32) -> Result<(), Fault> {
    let name = text(part.get("toolName")).map_err(|fault| fault.within("toolName"))?;
    let id = text(part.get("toolCallId")).map_err(|fault| fault.within("toolCallId"))?;
    let here = [Step::Key("content"), Step::Index(index)];
    let output = [here[0], here[1], Step::Key("output")];
    let read = match (part.get("output"), part.get("result")) {
        (Some(typed), _) => {
            let kind = word(typed, "type");
            match (&*kind, typed.get("value")) {
                ("text" | "error-text", value) => {
                    let value = value.filter(|value| value.kind() == Kind::String);
                    let value = value.ok_or_else(|| Fault::new("a string").within("value"));
                    let value = value.map_err(|fault| fault.within("output"))?;
                    draft.result(&[output[0], output[1], output[2], Step::Key("value")], value)?
                }
                ("content", Some(value)) if value.kind() == Kind::Array && is_whole(value) => {
                    let within = |fault: Fault| fault.within("value").within("output");
                    let read = draft.result(&output, value).map_err(within)?;
                    read.shape = Shape::Output;
                    if value.items().next().is_none() {
                        read.flaw = Some(Flaw::NullResult);
                    }
                    read
                }
                ("", _) => return Err(Fault::new("a string").within("type").within("output")),
                ("json" | "error-json", None) => missing(draft, &output, part)?,
                (kind, value) => {
                    // A list of data is no list of parts; and what is mended stays where it is.
                    let value =
                        value.filter(|value| value.kind() != Kind::Array && is_whole(*value));
                    let read = draft.result(&output, value.unwrap_or(typed))?;
                    match kind {
                        "json" | "content" => read.shape = Shape::Output,
                        "error-json" => read.shape = Shape::ErrorOutput,
                        // A refusal says more by its type than a text could.
                        _ => read.signed = true,
                    }
                    read
                }
            }
        }
        (None, Some(value)) => {
            let value = if value.kind() == Kind::Array && is_whole(part) { part } else { value };
            draft.result(&[here[0], here[1], Step::Key("result")], value)?
        }
        (None, None) => missing(draft, &output, part)?,
    };
    read.id = (&*id).into();
    read.name = (&*name).into();
    let kind = part.get("output").map(|typed| word(typed, "type"));
    read.failed = kind.is_some_and(|kind| kind.starts_with("error-"));
    Ok(())
}

/// Whether no half of a surrogate pair is in a value.
fn is_whole(value: Value<'_>) -> bool {
    mended(value.raw()).is_none()
}

/// A result without an output: JSON leaves out what a tool did not return.
fn missing<'d>(
    draft: &'d mut Draft<'_>,
    output: &[Step],
    part: Value<'_>,
) -> Result<&'d mut Part, Fault> {
    let read = draft.result(output, part)?;
    read.shape = Shape::Output;
    read.tokens = 0;
    read.flaw = Some(Flaw::NullResult);
    Ok(read)
}

/// A file: its text where it is given as such, else a price.
fn file(draft: &mut Draft<'_>, part: Value<'_>, index: u32) {
    let here = [Step::Key("content"), Step::Index(index)];
    let data = part.get("data");
    let inline = data.and_then(|data| data.get("text"));
    if let Some(inline) = inline.filter(|inline| inline.kind() == Kind::String) {
        let path = [here[0], here[1], Step::Key("data"), Step::Key("text")];
        draft.list_text(&path, inline);
        return;
    }
    let media_type = word(part, "mediaType");
    let kind = if media_type.starts_with("image") { PartKind::Image } else { PartKind::File };
    let file = draft.media(kind, &here, part);
    if media_type.starts_with("text")
        && let Some(bytes) = data.and_then(size)
    {
        file.tokens = bytes / BYTES_PER_TOKEN;
    }
}

/// Bytes of the data of a file that the request carries itself.
fn size(data: Value<'_>) -> Option<u32> {
    match data.kind() {
        Kind::String if data.raw().starts_with("\"http") => None,
        Kind::String => Some((data.span().len() / 4 * 3) as u32),
        _ => data.get("$bytes").and_then(|bytes| bytes.count()).or_else(|| size(data.get("data")?)),
    }
}

/// How a part hangs on something that only its provider understands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    None,
    /// Options of which none is known to bind.
    Loose,
    /// Signed or encrypted, or it stands for what the provider compacted.
    Signature,
    /// The provider holds the item under an id.
    Item,
}

fn bond(part: Value<'_>) -> Bond {
    let Some(options) = options(part) else { return Bond::None };
    let mut bond = Bond::None;
    for (name, value) in options.members().flat_map(|(_, own)| own.members()) {
        let binds = match &*name {
            "cacheControl" | "cachePoint" | "cache_control" => Bond::None,
            "itemId" if value.kind() == Kind::String => Bond::Item,
            "signature"
            | "redactedData"
            | "thoughtSignature"
            | "reasoningEncryptedContent"
            | "encryptedContent"
                if value.kind() == Kind::String =>
            {
                Bond::Signature
            }
            "type" if value.raw() == "\"compaction\"" => Bond::Signature,
            _ => Bond::Loose,
        };
        bond = bond.max(binds);
    }
    bond
}

/// Options for the provider, or what stands for them on parts that a model has just answered.
fn options<'j>(part: Value<'j>) -> Option<Value<'j>> {
    part.get("providerOptions").or_else(|| part.get("providerMetadata"))
}

fn string<'j>(part: Value<'j>, key: &'static str) -> Result<Value<'j>, Fault> {
    let value = part.get(key).filter(|value| value.kind() == Kind::String);
    value.ok_or_else(|| Fault::new("a string").within(key))
}

/// A member that is a string, or nothing.
fn word<'j>(value: Value<'j>, key: &str) -> std::borrow::Cow<'j, str> {
    value.get(key).and_then(|value| value.string()).unwrap_or_default()
}

/// Tokens around a call beside its name, id and input; as for OpenAI Chat, to which most providers
/// turn it.
const CALL_FRAMING: u32 = 6;

/// Of text whose characters are not seen, bytes that make a token: as of code, so that prose is
/// not taken for too small.
const BYTES_PER_TOKEN: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Reading, read_messages};
    use crate::json::Json;

    const READING: Reading<'static> = Reading::TEST;

    fn read(json: &str) -> Message {
        let text = format!("[{json}]");
        let parsed = Json::parse(&text).expect("JSON");
        read_messages(&AiSdk, parsed.root(), 0, READING).expect("a message").remove(0)
    }

    fn refused(json: &str) -> String {
        let text = format!("[{json}]");
        let parsed = Json::parse(&text).expect("JSON");
        read_messages(&AiSdk, parsed.root(), 0, READING).expect_err("no message").to_string()
    }

    /// Kind, text and path of the parts.
    fn parts(message: &Message) -> Vec<(PartKind, String, String)> {
        let path = |part: &Part| {
            let step = |step: &Step| match step {
                Step::Key(key) => format!(".{key}"),
                Step::Index(index) => format!("[{index}]"),
            };
            part.path.iter().map(step).collect()
        };
        let read = |part: &Part| (part.kind, message.text(part).into_owned(), path(part));
        message.parts.iter().map(read).collect()
    }

    #[test]
    fn texts_of_every_role() {
        for (role, expected) in
            [("system", Role::System), ("user", Role::User), ("assistant", Role::Assistant)]
        {
            let message = read(&format!(r#"{{"role":"{role}","content":"hi"}}"#));
            assert_eq!(message.role, expected);
            assert_eq!(parts(&message), [(PartKind::Text, "hi".into(), ".content".into())]);
        }
        let listed = read(r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#);
        assert_eq!(parts(&listed), [(PartKind::Text, "hi".into(), ".content[0].text".into())]);
        assert_eq!(read(r#"{"role":"data","content":"x"}"#).role, Role::Other);
    }

    #[test]
    fn what_is_bound_to_the_provider_is_opaque_or_signed() {
        let part = |json: &str| {
            let message = read(&format!(r#"{{"role":"assistant","content":[{json}]}}"#));
            (message.parts[0].kind, message.parts[0].signed)
        };
        let reasoning = |options: &str| {
            part(&format!(r#"{{"type":"reasoning","text":"t","providerOptions":{options}}}"#))
        };
        assert_eq!(part(r#"{"type":"reasoning","text":"t"}"#), (PartKind::Reasoning, false));
        assert_eq!(reasoning(r#"{"anthropic":{"signature":"s"}}"#), (PartKind::Reasoning, true));
        assert_eq!(
            reasoning(r#"{"anthropic":{"cacheControl":{"type":"ephemeral"}}}"#),
            (PartKind::Reasoning, false)
        );
        assert_eq!(
            reasoning(r#"{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"x"}}"#),
            (PartKind::Opaque, false)
        );
        let text = |options: &str| {
            part(&format!(r#"{{"type":"text","text":"t","providerOptions":{options}}}"#))
        };
        assert_eq!(text(r#"{"openai":{"itemId":"msg_1"}}"#).0, PartKind::Opaque);
        assert_eq!(text(r#"{"anthropic":{"type":"compaction"}}"#).0, PartKind::Opaque);
        assert_eq!(text(r#"{"openai":{"phase":"final_answer"}}"#).0, PartKind::Text);
        assert_eq!(
            part(
                r#"{"type":"tool-call","toolCallId":"1","toolName":"a","input":{},
                    "providerOptions":{"google":{"thoughtSignature":"s"}}}"#
            ),
            (PartKind::Call, true)
        );
    }

    #[test]
    fn calls_and_results() {
        let calls = read(
            r#"{"role":"assistant","content":[
                {"type":"tool-call","toolCallId":"1","toolName":"a","input":{"x":1}},
                {"type":"tool-call","toolCallId":"2","toolName":"b","args":{"y":2}},
                {"type":"tool-call","toolCallId":"3","toolName":"c"}]}"#,
        );
        assert_eq!(
            parts(&calls)[..2],
            [
                (PartKind::Call, r#"{"x":1}"#.to_owned(), ".content[0].input".to_owned()),
                (PartKind::Call, r#"{"y":2}"#.to_owned(), ".content[1].args".to_owned()),
            ]
        );
        assert_eq!(calls.parts[2].flaw, Some(Flaw::NoArguments));
        assert!(calls.parts.iter().all(|part| part.shape == Shape::Object));
        let result = |output: &str| {
            let message = read(&format!(
                r#"{{"role":"tool","content":[
                    {{"type":"tool-result","toolCallId":"1","toolName":"a",{output}}}]}}"#
            ));
            let part = &message.parts[0];
            assert_eq!((&*part.id, &*part.name), ("1", "a"));
            let (kind, text, path) = parts(&message).remove(0);
            assert_eq!(kind, PartKind::Result);
            (text, path.replace(".content[0]", ""), part.shape)
        };
        let whole = |text: &str, shape| (text.to_owned(), ".output".to_owned(), shape);
        let value = |text: &str| (text.to_owned(), ".output.value".to_owned(), Shape::String);
        assert_eq!(result(r#""output":{"type":"text","value":"v"}"#), value("v"));
        assert_eq!(result(r#""output":{"type":"error-text","value":"v"}"#), value("v"));
        assert_eq!(
            result(r#""output":{"type":"json","value":{"a":1}}"#),
            whole(r#"{"a":1}"#, Shape::Output)
        );
        assert_eq!(
            result(r#""output":{"type":"error-json","value":"no"}"#),
            whole("no", Shape::ErrorOutput)
        );
        let list = r#"{"type":"json","value":[{"text":"a"},2]}"#;
        assert_eq!(result(&format!("\"output\":{list}")), whole(list, Shape::Output));
        assert_eq!(
            result(
                r#""output":{"type":"content","value":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#
            ),
            whole("a\nb", Shape::Output)
        );
        assert_eq!(
            result(r#""result":"old""#),
            ("old".to_owned(), ".result".to_owned(), Shape::String)
        );
    }

    #[test]
    fn payloads_are_priced_and_not_counted_as_text() {
        let user = |part: &str| {
            let message = read(&format!(r#"{{"role":"user","content":[{part}]}}"#));
            (message.parts[0].kind, message.parts[0].tokens)
        };
        let data = "A".repeat(40_000);
        let image = format!(r#"{{"type":"image","image":"data:image/png;base64,{data}"}}"#);
        assert_eq!(user(&image), (PartKind::Image, 1000));
        let file = r#"{"type":"file","mediaType":"image/png","data":{"$bytes":123456}}"#;
        assert_eq!(user(file), (PartKind::Image, 1000));
        let file = format!(r#"{{"type":"file","mediaType":"application/pdf","data":"{data}"}}"#);
        assert_eq!(user(&file), (PartKind::File, 1000));
        let file = r#"{"type":"file","mediaType":"text/csv","data":{"type":"data","data":{"$bytes":3000}}}"#;
        assert_eq!(user(file), (PartKind::File, 1000));
        let file = r#"{"type":"file","mediaType":"text/csv","data":{"type":"data","data":{"$bytes":90000}}}"#;
        assert_eq!(user(file), (PartKind::File, 30_000));
        let made = format!(
            r#"{{"type":"tool-result","toolCallId":"1","toolName":"draw","output":{{"type":"json","value":{{"result":"{data}"}}}}}}"#
        );
        let drawn = read(&format!(r#"{{"role":"assistant","content":[{made}]}}"#));
        assert_eq!((drawn.parts[0].kind, drawn.parts[0].tokens), (PartKind::Opaque, 1000));
        let file = r#"{"type":"file","mediaType":"text/plain","data":{"type":"text","text":"ab"}}"#;
        assert_eq!(user(file).0, PartKind::Text);
    }

    #[test]
    fn the_provider_s_own_calls_wait_for_a_later_message() {
        let call = r#"{"type":"tool-call","toolCallId":"1","toolName":"web","input":{},"providerExecuted":true}"#;
        let result = r#"{"type":"tool-result","toolCallId":"1","toolName":"web","output":{"type":"json","value":{}}}"#;
        let both = read(&format!(r#"{{"role":"assistant","content":[{call},{result}]}}"#));
        assert!(!both.glued);
        assert!(both.parts.iter().all(|part| part.kind == PartKind::Opaque));
        assert!(read(&format!(r#"{{"role":"assistant","content":[{call}]}}"#)).glued);
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        for (json, place) in [
            (r#"{"content":"x"}"#, "messages[0].role: expected a string"),
            (r#"{"role":"system","content":[]}"#, "messages[0].content: expected a string"),
            (r#"{"role":"user"}"#, "messages[0].content: expected a string or an array of parts"),
            (r#"{"role":"tool","content":"x"}"#, "messages[0].content: expected an array of parts"),
            (
                r#"{"role":"user","content":[{"type":"text"}]}"#,
                "messages[0].content[0].text: expected a string",
            ),
            (
                r#"{"role":"user","content":["x"]}"#,
                "messages[0].content[0]: expected an object with a type",
            ),
            (
                r#"{"role":"assistant","content":[{"type":"tool-call","toolName":"x"}]}"#,
                "messages[0].content[0].toolCallId: expected a string",
            ),
            (
                r#"{"role":"tool","content":[{"type":"tool-result","toolName":"x","toolCallId":"1",
                    "output":{"type":"text","value":1}}]}"#,
                "messages[0].content[0].output.value: expected a string",
            ),
        ] {
            assert_eq!(refused(json), place, "{json}");
        }
    }
}

//! Gemini: `contents` of parts, with function calls answered by the content that follows.

use super::draft::{Draft, text};
use super::openai_chat::CALL_FRAMING;
use super::{Fault, Format};
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Flaw, Pairing, Part, PartKind, Role, Shape, Step};

pub(super) struct Gemini;

impl Format for Gemini {
    fn pairing(&self) -> Pairing {
        Pairing::Turn
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        // A content without a role is the user's.
        if let Some(role) = value.get("role").filter(|role| !role.is_null()) {
            draft.role_name = text(Some(role)).map_err(|fault| fault.within("role"))?;
        }
        let role = match &*draft.role_name {
            "" | "user" | "function" => Role::User,
            "model" => Role::Assistant,
            "system" => Role::System,
            _ => Role::Other,
        };
        for (key, member) in value.members() {
            match member.kind() {
                Kind::Array if key == "parts" => {
                    for (item, index) in member.items().zip(0u32..) {
                        let read = part(draft, role, item, index);
                        read.map_err(|fault| fault.at(index).within(&key))?;
                    }
                }
                Kind::Null => {}
                _ if key == "parts" => {
                    return Err(Fault::new("an array of parts").within(&key));
                }
                Kind::Array | Kind::Object => {
                    draft.add(PartKind::Opaque, &[], member);
                }
                _ => {}
            }
        }
        let answers = draft.parts.iter().any(|part| part.kind == PartKind::Result);
        Ok(if answers { Role::Tool } else { role })
    }

    fn id_path(&self, _part: &Part) -> Option<Vec<Step>> {
        // Calls without ids, and several of one id, match by order; and calls are signed.
        None
    }

    fn own_id(&self, result: &Part) -> Option<Vec<Step>> {
        Some([result.path.get(..3)?, &[Step::Key("id")]].concat())
    }

    fn user_message(&self, text: &str) -> String {
        ["{\"role\":\"user\",\"parts\":", &self.stand_in(text), "}"].concat()
    }

    fn result_message(&self, id: &str, name: &str, text: &str) -> String {
        ["{\"role\":\"user\",\"parts\":[", &response(id, name, text), "]}"].concat()
    }

    /// An element of `functionDeclarations`.
    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        let mut out = String::from("{\"name\":");
        write_string(&mut out, name);
        out.push_str(",\"description\":");
        write_string(&mut out, description);
        out.push_str(",\"parametersJsonSchema\":");
        out.push_str(parameters);
        out.push('}');
        out
    }

    fn content(&self) -> &'static str {
        "parts"
    }

    fn stand_in(&self, text: &str) -> String {
        ["[", &Shape::TextPart.write(text), "]"].concat()
    }

    fn result_part(&self, id: &str, name: &str, text: &str) -> Option<String> {
        Some(response(id, name, text))
    }

    fn user_first(&self) -> bool {
        true
    }
}

fn response(id: &str, name: &str, text: &str) -> String {
    let mut out = String::from("{\"functionResponse\":{");
    if !id.is_empty() {
        out.push_str("\"id\":");
        write_string(&mut out, id);
        out.push(',');
    }
    out.push_str("\"name\":");
    write_string(&mut out, name);
    out.push_str(",\"response\":");
    out.push_str(&Shape::Response.write(text));
    out.push_str("}}");
    out
}

/// Members of a part that hold its data, in both spellings that the API reads.
const DATA: [&str; 9] = [
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "function_call",
    "function_response",
    "inline_data",
    "file_data",
];

/// Members of a response that hold its whole text.
const OUTPUT: [&str; 4] = ["output", "result", "error", "content"];

fn part(draft: &mut Draft<'_>, role: Role, item: Value<'_>, index: u32) -> Result<(), Fault> {
    if item.kind() != Kind::Object {
        return Err(Fault::new("an object"));
    }
    let here = [Step::Key("parts"), Step::Index(index)];
    let data = item.members().filter(|(_, value)| !value.is_null()).find_map(|(key, value)| {
        let key = DATA.into_iter().find(|name| *name == key)?;
        Some((key, value))
    });
    let signature = item.get("thoughtSignature").or_else(|| item.get("thought_signature"));
    // Base64 is ASCII: bytes are characters.
    let signature =
        signature.filter(|value| !value.is_null()).map(|value| value.raw().len() as u32);
    let thought = item.get("thought").and_then(|thought| thought.boolean()) == Some(true);
    let Some((key, value)) = data else {
        draft.opaque(&here, item);
        // A tool of the server waits for its result.
        draft.glued = ["toolCall", "executableCode", "tool_call", "executable_code"]
            .iter()
            .any(|name| item.get(name).is_some());
        return Ok(());
    };
    draft.glued = false;
    let part = match key {
        "text" => {
            if value.kind() != Kind::String {
                return Err(Fault::new("a string").within(key));
            }
            let part = draft.list_text(&[here[0], here[1], Step::Key(key)], value);
            if thought {
                part.kind = PartKind::Reasoning;
            }
            if signature.is_some() {
                // Streams end with a signature on an empty text.
                part.flaw = part.flaw.filter(|flaw| *flaw != Flaw::EmptyText);
            }
            let filled = part.flaw != Some(Flaw::EmptyText);
            draft.has_content |= filled;
            draft.parts.last_mut()
        }
        "functionCall" | "function_call" if role == Role::Assistant => {
            call(draft, here, key, value).map_err(|fault| fault.within(key))?;
            draft.parts.last_mut()
        }
        "functionResponse" | "function_response" if role != Role::Assistant => {
            result(draft, here, key, value).map_err(|fault| fault.within(key))?;
            None
        }
        "inlineData" | "fileData" | "inline_data" | "file_data" => {
            let part = draft.media(media_kind(value), &here, item);
            part.shape = Shape::TextPart;
            Some(part)
        }
        _ => Some(draft.opaque(&here, item)),
    };
    if let (Some(part), Some(length)) = (part, signature) {
        // What has to be mended is of no use signed.
        part.signed = part.flaw.is_none();
        if matches!(part.kind, PartKind::Text | PartKind::Reasoning | PartKind::Call) {
            part.frame(length / SIGNATURE_BYTES);
        }
    }
    Ok(())
}

fn call(
    draft: &mut Draft<'_>,
    here: [Step; 2],
    key: &'static str,
    body: Value<'_>,
) -> Result<(), Fault> {
    let name = text(body.get("name")).map_err(|fault| fault.within("name"))?;
    let id = id(body)?;
    let args = body.get("args").filter(|args| !args.is_null());
    let path = [here[0], here[1], Step::Key(key), Step::Key("args")];
    let part = draft.call(&path, args.unwrap_or(body), &name, &id, CALL_FRAMING);
    part.shape = Shape::Object;
    if args.is_none() {
        // A function without parameters is called without any.
        part.end = part.start;
        part.tokens = part.framing;
        part.flaw = None;
    }
    Ok(())
}

fn result(
    draft: &mut Draft<'_>,
    here: [Step; 2],
    key: &'static str,
    body: Value<'_>,
) -> Result<(), Fault> {
    let name = text(body.get("name")).map_err(|fault| fault.within("name"))?;
    let id = id(body)?;
    let path = [here[0], here[1], Step::Key(key), Step::Key("response")];
    let response = body.get("response").filter(|response| !response.is_null());
    draft.has_content = true;
    let tokens = draft.tokens(&name);
    let part = match response {
        None => {
            let part = draft.push(PartKind::Result, &path, body, 0, 0);
            part.end = part.start;
            part.flaw = Some(Flaw::NullResult);
            part.shape = Shape::Response;
            part
        }
        Some(response) => match only_text(response) {
            Some((member, text)) => {
                let path = [path[0], path[1], path[2], path[3], Step::Key(member)];
                draft.add(PartKind::Result, &path, text)
            }
            None => {
                let part = draft.add(PartKind::Result, &path, response);
                part.shape = Shape::Response;
                if response.kind() != Kind::Object {
                    part.flaw = Some(Flaw::BareResponse);
                }
                part
            }
        },
    };
    part.id = (&*id).into();
    part.name = (&*name).into();
    let error = response.and_then(|response| response.get("error"));
    part.failed = error.is_some_and(|error| !error.is_null());
    part.frame(RESPONSE_FRAMING + tokens);
    let media = body.get("parts").map(|parts| parts.items().zip(0u32..));
    for (item, index) in media.into_iter().flatten() {
        let path = [here[0], here[1], Step::Key(key), Step::Key("parts"), Step::Index(index)];
        let data = DATA.into_iter().find_map(|name| item.get(name));
        let part = draft.media(media_kind(data.unwrap_or(item)), &path, item);
        part.block = path.len() as u8;
    }
    Ok(())
}

/// The member of a response that is all it holds, if that is a text.
fn only_text(response: Value<'_>) -> Option<(&'static str, Value<'_>)> {
    let mut members = response.members();
    let (key, value) = members.next().filter(|(_, value)| value.kind() == Kind::String)?;
    let key = OUTPUT.into_iter().find(|name| *name == key)?;
    members.next().is_none().then_some((key, value))
}

fn id(body: Value<'_>) -> Result<std::borrow::Cow<'_, str>, Fault> {
    match body.get("id").filter(|id| !id.is_null()) {
        Some(id) => text(Some(id)).map_err(|fault| fault.within("id")),
        None => Ok("".into()),
    }
}

fn media_kind(blob: Value<'_>) -> PartKind {
    let kind = blob.get("mimeType").or_else(|| blob.get("mime_type"));
    match kind.and_then(|kind| kind.string()) {
        Some(kind) if kind.starts_with("image/") => PartKind::Image,
        _ => PartKind::File,
    }
}

/// Bytes of a signature for each token that the API counts for it: that of the thought it stands
/// for. In recorded usage 5.1 to 7.4 bytes of base64 stand for a token.
const SIGNATURE_BYTES: u32 = 5;

/// Tokens around a response beside its name and content: `{"functionResponse":{…}}`.
const RESPONSE_FRAMING: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Reading, read_messages};
    use crate::transcript::Message;

    fn read(json: &str) -> Result<Message, String> {
        let reading = Reading { image_tokens: 258, file_tokens: 258, ..Reading::TEST };
        let text = format!("[{json}]");
        let json = crate::json::Json::parse(&text).expect("JSON");
        let messages = read_messages(&Gemini, json.root(), 3, reading);
        messages.map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    fn message(json: &str) -> Message {
        read(json).expect("a good content")
    }

    /// Each part as `Kind path flaw signed`.
    fn parts(message: &Message) -> Vec<String> {
        let shown = message.parts.iter().map(|part| {
            let mut out = format!("{:?} ", part.kind);
            for step in &part.path {
                match step {
                    Step::Key(key) => out.extend([".", key]),
                    Step::Index(index) => out.push_str(&format!("[{index}]")),
                }
            }
            if let Some(flaw) = part.flaw {
                out.push_str(&format!(" {flaw:?}"));
            }
            if part.signed {
                out.push_str(" signed");
            }
            out
        });
        shown.collect()
    }

    #[test]
    fn the_parts_of_a_model_are_read() {
        let read = message(
            r#"{"role":"model","parts":[
                {"text":"hm","thought":true},
                {"text":"Look:"},
                {"functionCall":{"id":"f1","name":"read","args":{"path":"a"}},"thoughtSignature":"c2ln"},
                {"functionCall":{"name":"list"}},
                {"executableCode":{"language":"PYTHON","code":"1"}},
                {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},
                {"inlineData":{"mimeType":"image/png","data":"AAAA"}},
                {"text":"","thoughtSignature":"c2ln"}]}"#,
        );
        assert_eq!(read.role, Role::Assistant);
        assert_eq!(
            parts(&read),
            [
                "Reasoning .parts[0].text",
                "Text .parts[1].text",
                "Call .parts[2].functionCall.args signed",
                "Call .parts[3].functionCall.args",
                "Opaque .parts[4]",
                "Opaque .parts[5]",
                "Image .parts[6]",
                "Text .parts[7].text signed",
            ]
        );
        assert!(read.parts.iter().all(|part| part.block == 2));
        assert_eq!((&*read.parts[2].id, &*read.parts[2].name), ("f1", "read"));
        assert_eq!((&*read.parts[3].id, &*read.text(&read.parts[3])), ("", ""));
        assert!(!read.empty && !read.glued);
    }

    #[test]
    fn both_spellings_are_read() {
        let read = message(
            r#"{"role":"model","parts":[
                {"function_call":{"name":"read","args":{}},"thought_signature":"c2ln"},
                {"file_data":{"mime_type":"image/png","file_uri":"u"}}]}"#,
        );
        assert_eq!(parts(&read), ["Call .parts[0].function_call.args signed", "Image .parts[1]"]);
        let read = message(
            r#"{"role":"function","parts":[{"function_response":{"name":"read","response":{}}}]}"#,
        );
        assert_eq!(parts(&read), ["Result .parts[0].function_response.response"]);
    }

    #[test]
    fn a_content_with_responses_is_no_user_turn() {
        let read = message(
            r#"{"role":"user","parts":[
                {"functionResponse":{"id":"f1","name":"read","response":{"output":"text"}}},
                {"functionResponse":{"name":"read","response":{"error":"no","code":1},
                    "parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},
                {"functionResponse":{"name":"read","response":"bare"}},
                {"functionResponse":{"name":"read"}}]}"#,
        );
        assert_eq!(read.role, Role::Tool);
        assert!(!read.is_turn());
        assert_eq!(
            parts(&read),
            [
                "Result .parts[0].functionResponse.response.output",
                "Result .parts[1].functionResponse.response",
                "Image .parts[1].functionResponse.parts[0]",
                "Result .parts[2].functionResponse.response BareResponse",
                "Result .parts[3].functionResponse.response NullResult",
            ]
        );
        assert_eq!(read.text(&read.parts[0]), "text");
        assert_eq!((read.parts[0].shape, read.parts[1].shape), (Shape::String, Shape::Response));
        assert_eq!(read.parts[2].block, 5);
    }

    #[test]
    fn payloads_cost_what_an_image_costs() {
        let data = "A".repeat(100_000);
        let of = |part: &str| message(&format!("{{\"parts\":[{part}]}}")).tokens;
        let blob = format!("{{\"mimeType\":\"image/png\",\"data\":\"{data}\"}}");
        assert!(of(&format!("{{\"inlineData\":{blob}}}")) < 300);
        let nested = format!(
            "{{\"functionResponse\":{{\"name\":\"f\",\"response\":{{}},\"parts\":[{{\"inlineData\":{blob}}}]}}}}"
        );
        assert!((258..300).contains(&of(&nested)));
        let signed = format!("{{\"text\":\"a\",\"thoughtSignature\":\"{}\"}}", &data[..1_000]);
        assert!((200..220).contains(&of(&signed)));
    }

    #[test]
    fn what_says_nothing_is_empty() {
        for json in [
            r#"{"role":"user"}"#,
            r#"{"role":"user","parts":null}"#,
            r#"{"role":"user","parts":[]}"#,
            r#"{"role":"model","parts":[{"text":""}]}"#,
        ] {
            assert!(message(json).empty, "{json}");
        }
        for json in [
            r#"{"parts":[{"text":"a"}]}"#,
            r#"{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]}"#,
            r#"{"role":"model","parts":[{"hologram":{}}]}"#,
        ] {
            assert!(!message(json).empty, "{json}");
        }
    }

    #[test]
    fn a_tool_of_the_server_waits_for_its_result() {
        let call = r#"{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB"}}"#;
        let result = r#"{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB"}}"#;
        assert!(message(&format!("{{\"role\":\"model\",\"parts\":[{call}]}}")).glued);
        assert!(!message(&format!("{{\"role\":\"model\",\"parts\":[{call},{result}]}}")).glued);
    }

    #[test]
    fn faults_name_their_place() {
        for (json, place) in [
            (r#"{"role":7,"parts":[]}"#, "messages[3].role: expected a string"),
            (r#"{"parts":"a"}"#, "messages[3].parts: expected an array of parts"),
            (r#"{"parts":["a"]}"#, "messages[3].parts[0]: expected an object"),
            (r#"{"parts":[{},{"text":1}]}"#, "messages[3].parts[1].text: expected a string"),
            (
                r#"{"role":"model","parts":[{"functionCall":{"args":{}}}]}"#,
                "messages[3].parts[0].functionCall.name: expected a string",
            ),
            (
                r#"{"parts":[{"functionResponse":{"name":"f","id":1}}]}"#,
                "messages[3].parts[0].functionResponse.id: expected a string",
            ),
        ] {
            assert_eq!(read(json).err().as_deref(), Some(place), "{json}");
        }
    }

    #[test]
    fn messages_of_our_own() {
        assert_eq!(Gemini.user_message("a\"b"), r#"{"role":"user","parts":[{"text":"a\"b"}]}"#);
        assert_eq!(
            Gemini.result_message("", "f", "x"),
            r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"x"}}}]}"#
        );
        assert_eq!(
            Gemini.result_part("i", "f", "x").as_deref(),
            Some(r#"{"functionResponse":{"id":"i","name":"f","response":{"result":"x"}}}"#)
        );
        assert_eq!(
            Gemini.tool("recall", "gets", "{\"type\":\"object\"}"),
            r#"{"name":"recall","description":"gets","parametersJsonSchema":{"type":"object"}}"#
        );
    }
}

//! OpenAI Responses: the items of `input`.
//!
//! An item is a message, a piece of reasoning, one call or one output. Calls and outputs find each
//! other by `call_id`; reasoning belongs to what the model said right after it.

use super::draft::{Draft, text};
use super::openai_chat::CALL_FRAMING;
use super::{Fault, Format};
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Flaw, Message, Pairing, Part, PartKind, Role, Shape, Step};

pub(super) struct OpenaiResponses;

impl Format for OpenaiResponses {
    fn pairing(&self) -> Pairing {
        Pairing::Loose
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        let member = |name: &str| value.get(name).filter(|member| !member.is_null());
        let string = |name: &'static str| match member(name) {
            Some(member) => text(Some(member)).map_err(|fault| fault.within(name)),
            None => Ok("".into()),
        };
        let kind = match member("type") {
            None if member("role").is_some() => "message".into(),
            None if member("id").is_some() => "item_reference".into(),
            kind => text(kind).map_err(|fault| fault.within("type"))?,
        };
        draft.role_name = kind.clone();
        // Of the output of a local shell it is that of the call.
        if kind != "local_shell_call_output"
            && let Some(id) = member("id").and_then(|id| id.string())
        {
            draft.item = (&*id).into();
        }
        match &*kind {
            "message" => return message(draft, value),
            "reasoning" => {
                let mut tokens = 0;
                for texts in ["summary", "content"].into_iter().filter_map(member) {
                    for item in texts.items().filter_map(|item| item.get("text")) {
                        tokens += item.string().map_or(0, |text| draft.tokens(&text));
                    }
                }
                let sealed = member("encrypted_content").map_or(0, |text| text.span().len());
                let tokens = tokens + sealed_tokens(sealed);
                draft.whole(PartKind::Reasoning, value, tokens).signed = true;
                draft.glued = true;
            }
            "function_call" => call(draft, value, "arguments", Shape::ObjectText)?,
            "custom_tool_call" => call(draft, value, "input", Shape::String)?,
            "mcp_approval_request" => {
                draft.counted(PartKind::Call, value).id = string("id")?.as_ref().into();
            }
            "mcp_approval_response" => {
                let id = string("approval_request_id")?;
                draft.counted(PartKind::Result, value).id = id.as_ref().into();
                return Ok(Role::Tool);
            }
            // It may stand for a call whose output follows.
            "item_reference" => {
                draft.counted(PartKind::Call, value);
            }
            // The payload of an image does not count as text.
            "image_generation_call" => {
                let tokens = draft.reading.image_tokens;
                draft.whole(PartKind::Opaque, value, tokens).media = true;
            }
            "compaction" | "compaction_summary" => {
                let sealed = member("encrypted_content").map_or(0, |text| text.span().len());
                let part = draft.whole(PartKind::Opaque, value, sealed_tokens(sealed));
                // Without content it stands for nothing, and providers refuse it.
                part.signed = true;
                part.flaw = (sealed == 0).then_some(Flaw::EmptyText);
                draft.stays = sealed > 0;
                draft.compaction = sealed > 0;
                return Ok(Role::Other);
            }
            // It holds from its place on, and two of them must not become neighbours.
            "configuration_update" => {
                draft.counted(PartKind::Opaque, value);
                draft.stays = true;
                draft.glued = true;
                return Ok(Role::Other);
            }
            "additional_tools" => {
                draft.counted(PartKind::Opaque, value);
                draft.stays = true;
                return Ok(Role::System);
            }
            _ => {
                let mut id = string("call_id")?;
                if id.is_empty() && kind == "local_shell_call_output" {
                    id = string("id")?;
                }
                let answers = kind.ends_with("_output");
                let known = answers || kind.ends_with("_call") || kind == "mcp_list_tools";
                match (id.is_empty(), answers) {
                    (false, true) => {
                        let result = output(draft, value, &kind)?;
                        result.id = id.as_ref().into();
                        let status = value.get("status").and_then(|status| status.string());
                        result.failed = matches!(status.as_deref(), Some("failed" | "incomplete"));
                        return Ok(Role::Tool);
                    }
                    (false, false) => {
                        let part = draft.counted(PartKind::Call, value);
                        part.id = id.as_ref().into();
                        part.name = kind.as_ref().into();
                    }
                    // What the provider ran itself.
                    (true, _) => {
                        draft.counted(PartKind::Opaque, value);
                        return Ok(if known { Role::Assistant } else { Role::Other });
                    }
                }
            }
        }
        Ok(Role::Assistant)
    }

    fn id_path(&self, part: &Part) -> Option<Vec<Step>> {
        (!part.id.is_empty()).then(|| vec![Step::Key("call_id")])
    }

    fn user_message(&self, text: &str) -> String {
        let mut out = String::from("{\"type\":\"message\",\"role\":\"user\",\"content\":[");
        out.push_str(&Shape::InputText.write(text));
        out.push_str("]}");
        out
    }

    fn result_message(&self, id: &str, _name: &str, text: &str) -> String {
        item("function_call_output", "call_id", id, "output", &Shape::String.write(text))
    }

    fn answer(&self, call: &Part, id: &str, text: &str) -> Option<String> {
        let text = Shape::String.write(text);
        let (kind, key, member, output) = match (call.path.first(), &*call.name) {
            (Some(Step::Key("input")), _) => ("custom_tool_call_output", "call_id", "output", text),
            (Some(_), _) => ("function_call_output", "call_id", "output", text),
            (None, "local_shell_call") => ("local_shell_call_output", "id", "output", text),
            (None, "shell_call") => {
                let outcome = ",\"stdout\":\"\",\"outcome\":{\"type\":\"exit\",\"exit_code\":1}}]";
                let output = ["[{\"stderr\":", &*text, outcome].concat();
                ("shell_call_output", "call_id", "output", output)
            }
            (None, "apply_patch_call") => {
                let output = [&*text, ",\"status\":\"failed\""].concat();
                ("apply_patch_call_output", "call_id", "output", output)
            }
            (None, "computer_call") => {
                ("computer_call_output", "call_id", "output", NO_SCREENSHOT.to_owned())
            }
            (None, "tool_search_call") => {
                let tools = "[],\"execution\":\"client\"".to_owned();
                ("tool_search_output", "call_id", "tools", tools)
            }
            // A request for approval may stay unanswered, and a reference may be no call.
            _ => return None,
        };
        Some(item(kind, key, id, member, &output))
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        let mut out = String::from("{\"type\":\"function\",\"name\":");
        write_string(&mut out, name);
        out.push_str(",\"description\":");
        write_string(&mut out, description);
        // Strict schemas, the default, know no optional parameters.
        out.push_str(",\"strict\":false,\"parameters\":");
        out.push_str(parameters);
        out.push('}');
        out
    }

    fn placeholder(&self, message: &Message, text: &str) -> String {
        let mut out = String::from("[");
        match message.role {
            Role::Assistant => {
                out.push_str("{\"type\":\"output_text\",\"annotations\":[],\"text\":");
                write_string(&mut out, text);
                out.push('}');
            }
            _ => out.push_str(&Shape::InputText.write(text)),
        }
        out.push(']');
        out
    }

    fn unique_ids(&self) -> bool {
        true
    }

    fn bond(&self) -> Option<&'static str> {
        Some("id")
    }
}

fn item(kind: &str, key: &str, id: &str, member: &str, json: &str) -> String {
    let id = Shape::String.write(id);
    ["{\"type\":\"", kind, "\",\"", key, "\":", &*id, ",\"", member, "\":", json, "}"].concat()
}

fn message<'j>(draft: &mut Draft<'j>, value: Value<'j>) -> Result<Role, Fault> {
    draft.role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
    let role = match &*draft.role_name {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Other,
    };
    let Some(content) = value.get("content").filter(|content| !content.is_null()) else {
        return Ok(role);
    };
    match content.kind() {
        Kind::String => {
            draft.add(PartKind::Text, &[Step::Key("content")], content);
        }
        Kind::Array => {
            for (block, index) in content.items().zip(0u32..) {
                content_part(draft, role, block, index)
                    .map_err(|fault| fault.at(index).within("content"))?;
            }
        }
        _ => return Err(Fault::new("a string or an array of parts").within("content")),
    }
    Ok(role)
}

fn content_part(
    draft: &mut Draft<'_>,
    role: Role,
    block: Value<'_>,
    index: u32,
) -> Result<(), Fault> {
    if block.kind() != Kind::Object {
        return Err(Fault::new("an object with a type"));
    }
    let here = [Step::Key("content"), Step::Index(index)];
    let kind = block.get("type").and_then(|kind| kind.string()).unwrap_or_default();
    match &*kind {
        "input_text" | "output_text" | "text" | "refusal" => {
            let key = if kind == "refusal" { "refusal" } else { "text" };
            let value = block.get(key).filter(|text| text.kind() == Kind::String);
            let value = value.ok_or_else(|| Fault::new("a string").within(key))?;
            draft.list_text(&[here[0], here[1], Step::Key(key)], value);
        }
        "input_image" | "input_file" | "input_audio" => {
            let kind = match (role, &*kind) {
                // Among what the assistant says no text of the user's may stand in for it.
                (Role::Assistant, _) => PartKind::Opaque,
                (_, "input_image") => PartKind::Image,
                _ => PartKind::File,
            };
            draft.media(kind, &here, block).shape = Shape::InputText;
        }
        _ => {
            draft.opaque(&here, block);
        }
    }
    Ok(())
}

fn call(
    draft: &mut Draft<'_>,
    value: Value<'_>,
    key: &'static str,
    shape: Shape,
) -> Result<(), Fault> {
    let name = text(value.get("name")).map_err(|fault| fault.within("name"))?;
    let id = text(value.get("call_id")).map_err(|fault| fault.within("call_id"))?;
    let arguments = value.get(key).filter(|arguments| !arguments.is_null());
    let flaw = match arguments.map(|arguments| arguments.kind()) {
        Some(Kind::String) => None,
        Some(_) => Some(Flaw::ObjectArguments),
        None => Some(Flaw::NoArguments),
    };
    let path = [Step::Key(key)];
    let part = draft.call(&path, arguments.unwrap_or(value), &name, &id, CALL_FRAMING);
    part.flaw = flaw.or(part.flaw);
    part.shape = shape;
    part.block = 0;
    Ok(())
}

/// Reads the output of a call of the host's; its text, where it has one, is the part.
fn output<'d>(
    draft: &'d mut Draft<'_>,
    value: Value<'_>,
    kind: &str,
) -> Result<&'d mut Part, Fault> {
    let here = [Step::Key("output")];
    // Of the others the output is optional, or of a type of its own.
    let own = matches!(kind, "function_call_output" | "custom_tool_call_output");
    let output = value.get("output").filter(|output| !output.is_null());
    let part = match output.map(|output| (output, output.kind())) {
        Some((output, Kind::String)) => draft.add(PartKind::Result, &here, output),
        Some((output, Kind::Array)) if own => {
            let empty = output.items().next().is_none();
            let part = draft.result(&here, output).map_err(|fault| fault.within("output"))?;
            if empty {
                part.flaw = Some(Flaw::NullResult);
            }
            part
        }
        Some((output, Kind::Object)) if own => {
            let part = draft.add(PartKind::Result, &here, output);
            part.flaw = Some(Flaw::ObjectArguments);
            part
        }
        Some(_) if own => {
            return Err(Fault::new("a string or an array of parts").within("output"));
        }
        None if own => {
            let null = value.get("output").unwrap_or(value);
            let part = draft.add(PartKind::Result, &here, null);
            part.tokens = 0;
            part.flaw = Some(Flaw::NullResult);
            part
        }
        Some((_, Kind::Object)) if kind == "computer_call_output" => {
            let tokens = draft.reading.image_tokens;
            let part = draft.whole(PartKind::Result, value, tokens);
            part.media = true;
            part
        }
        Some((output, Kind::Array)) => match streams(draft, output) {
            Some(at) => &mut draft.parts[at],
            None => draft.counted(PartKind::Result, value),
        },
        _ => draft.counted(PartKind::Result, value),
    };
    part.block = 0;
    Ok(part)
}

/// Reads what shell commands wrote. The longest stream is the result, which may be made smaller;
/// returns the place of its part.
fn streams(draft: &mut Draft<'_>, output: Value<'_>) -> Option<usize> {
    let mut found = Vec::new();
    for (chunk, index) in output.items().zip(0u32..) {
        for key in ["stdout", "stderr"] {
            if let Some(text) = chunk.get(key).filter(|text| text.kind() == Kind::String) {
                found.push(([Step::Key("output"), Step::Index(index), Step::Key(key)], text));
            }
        }
    }
    let longest = (0..found.len()).max_by_key(|at| found[*at].1.span().len())?;
    for (at, (path, text)) in found.iter().enumerate() {
        let kind = if at == longest { PartKind::Result } else { PartKind::Opaque };
        draft.add(kind, path, *text);
    }
    Some(draft.parts.len() - found.len() + longest)
}

/// Tokens of an encrypted value of so many characters. In recorded responses, reasoning takes 4.8
/// to 7.5 characters a token over an envelope of some 600, compaction 7.
fn sealed_tokens(chars: usize) -> u32 {
    (chars.saturating_sub(600) / 5).try_into().unwrap_or(u32::MAX)
}

/// The least image there is, where no screenshot was taken.
const NO_SCREENSHOT: &str = "{\"type\":\"computer_screenshot\",\"image_url\":\"data:image/png;\
    base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJ\
    RU5ErkJggg==\"}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Reading, read_messages};
    use crate::json::Json;

    fn read(items: &str) -> Result<Vec<Message>, String> {
        let reading = Reading { image_tokens: 700, file_tokens: 700, ..Reading::TEST };
        let json = Json::parse(items).unwrap();
        read_messages(&OpenaiResponses, json.root(), 0, reading).map_err(|error| error.to_string())
    }

    fn one(item: &str) -> Message {
        read(&["[", item, "]"].concat()).unwrap().remove(0)
    }

    fn texts(message: &Message) -> Vec<(PartKind, String)> {
        message.parts.iter().map(|part| (part.kind, message.text(part).into_owned())).collect()
    }

    #[test]
    fn messages_come_in_the_easy_form_and_in_full() {
        for item in [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"type":"message","role":"user","content":"hi"}"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
            r#"{"type":null,"role":"user","content":[{"type":"text","text":"hi"}]}"#,
        ] {
            let message = one(item);
            assert_eq!(message.role, Role::User, "{item}");
            assert_eq!(texts(&message), [(PartKind::Text, "hi".to_owned())], "{item}");
            assert!(!message.empty && !message.glued, "{item}");
        }
        let said = one(
            r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":
            [{"type":"output_text","text":"yes","annotations":[{"type":"url_citation"}]},
             {"type":"refusal","refusal":"no"},{"type":"new","x":1}]}"#,
        );
        assert_eq!(said.role, Role::Assistant);
        let kinds: Vec<_> = said.parts.iter().map(|part| part.kind).collect();
        assert_eq!(kinds, [PartKind::Text, PartKind::Text, PartKind::Opaque]);
        for role in ["system", "developer"] {
            let item = format!(r#"{{"role":"{role}","content":"be brief"}}"#);
            assert_eq!(one(&item).role, Role::System);
        }
        assert_eq!(one(r#"{"role":"critic","content":"x"}"#).role, Role::Other);
    }

    #[test]
    fn messages_without_content_are_empty() {
        for content in ["", r#","content":null"#, r#","content":[]"#, r#","content":"""#] {
            let item = format!(r#"{{"role":"assistant"{content}}}"#);
            assert!(one(&item).empty, "{item}");
        }
        assert!(one(r#"{"role":"user","content":[{"type":"input_text","text":""}]}"#).empty);
        let two = one(r#"{"role":"user","content":[{"type":"input_text","text":""},
            {"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}"#);
        assert!(!two.empty);
        assert_eq!(two.parts[0].flaw, Some(Flaw::EmptyText));
        assert_eq!((two.parts[1].kind, two.parts[1].tokens), (PartKind::Image, 700));
    }

    #[test]
    fn payloads_do_not_count_as_text() {
        let payload = "A".repeat(100_000);
        for item in [
            format!(
                r#"{{"role":"user","content":[{{"type":"input_image","image_url":"data:,{payload}"}}]}}"#
            ),
            format!(
                r#"{{"role":"user","content":[{{"type":"input_file","file_data":"{payload}"}}]}}"#
            ),
            format!(
                r#"{{"type":"image_generation_call","id":"ig_1","status":"completed","result":"{payload}"}}"#
            ),
            format!(
                r#"{{"type":"computer_call_output","call_id":"c","output":{{"type":"computer_screenshot","image_url":"{payload}"}}}}"#
            ),
            format!(
                r#"{{"type":"function_call_output","call_id":"c","output":[{{"type":"input_image","image_url":"{payload}"}}]}}"#
            ),
        ] {
            let tokens = one(&item).tokens;
            assert!((700..720).contains(&tokens), "{tokens} for {}", &item[..60]);
        }
    }

    #[test]
    fn reasoning_is_sealed_and_glued_to_what_follows() {
        let sealed = "g".repeat(10_600);
        let item = format!(
            r#"{{"type":"reasoning","id":"rs_1","summary":[{{"type":"summary_text","text":"**Looking**"}}],"encrypted_content":"{sealed}"}}"#
        );
        let message = one(&item);
        assert!(message.glued && !message.empty && !message.pinned);
        let [part] = &message.parts[..] else { panic!("one part") };
        assert_eq!((part.kind, part.block, part.signed), (PartKind::Reasoning, 0, true));
        assert!((2_000..2_010).contains(&part.tokens), "{}", part.tokens);
        assert_eq!(message.text(part), item.as_str());
        // Nothing of it may change unnoticed.
        assert_ne!(one(&item.replace("ggg\"", "ggh\"")).spine, message.spine);
        assert_eq!(one(r#"{"type":"reasoning","summary":[]}"#).parts[0].tokens, 0);
    }

    #[test]
    fn calls_and_outputs_carry_their_id_and_name() {
        let call = one(
            r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"a\":1}"}"#,
        );
        let part = &call.parts[0];
        assert_eq!((&*part.id, &*part.name, part.shape), ("c1", "read", Shape::ObjectText));
        assert_eq!(call.text(part), "{\"a\":1}");
        let custom =
            one(r#"{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"*** Begin"}"#);
        assert_eq!(custom.parts[0].shape, Shape::String);
        for kind in ["function_call_output", "custom_tool_call_output"] {
            for (output, text, flaw) in [
                (r#""done""#, "done", None),
                (r#""""#, "", None),
                (
                    r#"[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]"#,
                    "a\nb",
                    None,
                ),
                (r#""\ud83d""#, "\u{FFFD}", Some(Flaw::LoneSurrogate)),
                ("null", "null", Some(Flaw::NullResult)),
                ("[]", "", Some(Flaw::NullResult)),
                (r#"{"ok":1}"#, r#"{"ok":1}"#, Some(Flaw::ObjectArguments)),
            ] {
                let item = format!(r#"{{"type":"{kind}","call_id":"c1","output":{output}}}"#);
                let message = one(&item);
                let part = &message.parts[0];
                assert_eq!(
                    (message.role, &*part.id, part.flaw),
                    (Role::Tool, "c1", flaw),
                    "{item}"
                );
                assert_eq!(message.text(part), text, "{item}");
            }
        }
    }

    #[test]
    fn typed_calls_pair_by_their_ids_and_are_not_rewritten() {
        for (item, role, id) in [
            (
                r#"{"type":"computer_call","id":"cu","call_id":"c","action":{}}"#,
                Role::Assistant,
                "c",
            ),
            (
                r#"{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}"#,
                Role::Assistant,
                "c",
            ),
            (
                r#"{"type":"local_shell_call","id":"l","call_id":"c","action":{}}"#,
                Role::Assistant,
                "c",
            ),
            (r#"{"type":"apply_patch_call","call_id":"c","operation":{}}"#, Role::Assistant, "c"),
            (r#"{"type":"mcp_approval_request","id":"c","name":"x"}"#, Role::Assistant, "c"),
            (r#"{"type":"future_call","call_id":"c"}"#, Role::Assistant, "c"),
            (
                r#"{"type":"mcp_approval_response","approval_request_id":"c","approve":true}"#,
                Role::Tool,
                "c",
            ),
            (
                r#"{"type":"apply_patch_call_output","call_id":"c","status":"completed"}"#,
                Role::Tool,
                "c",
            ),
            (r#"{"type":"shell_call_output","call_id":"c","output":[]}"#, Role::Tool, "c"),
            (r#"{"type":"future_call_output","call_id":"c","output":{"a":1}}"#, Role::Tool, "c"),
            (r#"{"id":"msg_1"}"#, Role::Assistant, ""),
            (r#"{"type":"item_reference","id":"fc_1"}"#, Role::Assistant, ""),
        ] {
            let message = one(item);
            let kind = if role == Role::Tool { PartKind::Result } else { PartKind::Call };
            let [part] = &message.parts[..] else { panic!("{item}") };
            assert_eq!(
                (message.role, part.kind, &*part.id, part.shape),
                (role, kind, id, Shape::Fixed),
                "{item}"
            );
        }
        let local = one(r#"{"type":"local_shell_call_output","id":"c","output":"ok"}"#);
        assert_eq!((&*local.parts[0].id, local.parts[0].shape), ("c", Shape::String));
        let shell = one(
            r#"{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":"","outcome":{}},
            {"stdout":"long","stderr":"","outcome":{}}]}"#,
        );
        let results: Vec<_> = shell.results().map(|(_, part)| shell.text(part)).collect();
        assert_eq!(results, ["long"]);
        assert_eq!(
            shell.parts[2].path[..],
            [Step::Key("output"), Step::Index(1), Step::Key("stdout")]
        );
    }

    #[test]
    fn hosted_calls_and_unknown_items_are_opaque() {
        for (item, role) in [
            (
                r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{}}"#,
                Role::Assistant,
            ),
            (r#"{"type":"tool_search_output","call_id":null,"tools":[]}"#, Role::Assistant),
            (
                r#"{"type":"mcp_list_tools","id":"m","server_label":"s","tools":[]}"#,
                Role::Assistant,
            ),
            (r#"{"type":"ghost_snapshot","ghost_commit":{}}"#, Role::Other),
        ] {
            let message = one(item);
            assert_eq!(message.role, role, "{item}");
            assert!(message.parts.iter().all(|part| part.kind == PartKind::Opaque), "{item}");
            assert!(!message.empty && !message.glued && !message.pinned, "{item}");
        }
    }

    #[test]
    fn what_holds_from_its_place_on_is_pinned() {
        let compaction = r#"{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"}"#;
        assert!(one(compaction).pinned && one(compaction).compaction);
        let update = one(r#"{"type":"configuration_update","reasoning":{"effort":"high"}}"#);
        assert!(update.pinned && update.glued);
        let tools = one(r#"{"type":"additional_tools","role":"developer","tools":[]}"#);
        assert!(tools.pinned && tools.role == Role::System);
        let null = one(r#"{"type":"compaction","id":"cmp_1","encrypted_content":null}"#);
        assert!(!null.pinned && null.parts[0].flaw == Some(Flaw::EmptyText));
    }

    #[test]
    fn faults_name_their_place() {
        for (items, place) in [
            (r#"[{}]"#, "messages[0].type"),
            (r#"[{"type":7}]"#, "messages[0].type"),
            (r#"[{"type":"message"}]"#, "messages[0].role"),
            (r#"[{"role":"user","content":5}]"#, "messages[0].content"),
            (r#"[{"role":"user","content":["x"]}]"#, "messages[0].content[0]"),
            (
                r#"[{"role":"user","content":[{"type":"input_text"}]}]"#,
                "messages[0].content[0].text",
            ),
            (r#"[{"type":"function_call","call_id":"c"}]"#, "messages[0].name"),
            (r#"[{"type":"function_call","name":"f"}]"#, "messages[0].call_id"),
            (r#"[{"type":"function_call_output","call_id":"c","output":3}]"#, "messages[0].output"),
            (
                r#"[{"type":"function_call_output","call_id":"c","output":[1]}]"#,
                "messages[0].output[0]",
            ),
            (r#"[{"type":"shell_call_output","call_id":[],"output":[]}]"#, "messages[0].call_id"),
        ] {
            let error = read(items).unwrap_err();
            assert!(error.contains(place), "{items}: {error}");
        }
    }

    #[test]
    fn an_answer_is_of_the_type_of_its_call() {
        for (item, answer) in [
            (
                r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#,
                r#"{"type":"function_call_output","call_id":"c","output":"none"}"#,
            ),
            (
                r#"{"type":"custom_tool_call","call_id":"c","name":"f","input":""}"#,
                r#"{"type":"custom_tool_call_output","call_id":"c","output":"none"}"#,
            ),
            (
                r#"{"type":"local_shell_call","id":"l","call_id":"c"}"#,
                r#"{"type":"local_shell_call_output","id":"c","output":"none"}"#,
            ),
            (
                r#"{"type":"shell_call","call_id":"c"}"#,
                r#"{"type":"shell_call_output","call_id":"c","output":[{"stderr":"none","stdout":"","outcome":{"type":"exit","exit_code":1}}]}"#,
            ),
            (
                r#"{"type":"apply_patch_call","call_id":"c"}"#,
                r#"{"type":"apply_patch_call_output","call_id":"c","output":"none","status":"failed"}"#,
            ),
            (
                r#"{"type":"tool_search_call","call_id":"c"}"#,
                r#"{"type":"tool_search_output","call_id":"c","tools":[],"execution":"client"}"#,
            ),
        ] {
            let call = &one(item).parts[0];
            assert_eq!(OpenaiResponses.answer(call, &call.id, "none").as_deref(), Some(answer));
        }
        let computer = one(r#"{"type":"computer_call","call_id":"c"}"#);
        let answer = OpenaiResponses.answer(&computer.parts[0], "c", "none").unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&answer).is_ok(), "{answer}");
        for item in [r#"{"type":"mcp_approval_request","id":"c"}"#, r#"{"id":"rs_1"}"#] {
            assert_eq!(OpenaiResponses.answer(&one(item).parts[0], "c", "none"), None);
        }
    }
}

//! Anthropic Messages: content blocks, with `tool_use` answered by `tool_result` blocks that a
//! user message begins with.

use super::draft::{Draft, text};
use super::{Fault, Format};
use crate::json::{Kind, Value, write_string};
use crate::transcript::{Flaw, Pairing, Part, PartKind, Role, Shape, Step};

pub(super) struct Anthropic;

impl Format for Anthropic {
    fn pairing(&self) -> Pairing {
        Pairing::Turn
    }

    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault> {
        draft.role_name = text(value.get("role")).map_err(|fault| fault.within("role"))?;
        let mut role = match &*draft.role_name {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => Role::Other,
        };
        for (key, member) in value.members().filter(|(_, member)| !member.is_null()) {
            match &*key {
                "role" => {}
                "content" => content(draft, role, member).map_err(|fault| fault.within(&key))?,
                // Directives, and what responses carry beside their content: no tokens.
                _ => {
                    draft.add(PartKind::Opaque, &[], member).tokens = 0;
                    draft.has_content |= key == "output_config";
                }
            }
        }
        if draft.parts.iter().any(|part| part.kind == PartKind::Result) {
            role = Role::Tool;
        }
        // In a conversation, it stands behind the user's words or a result, and only an answer may
        // follow it.
        draft.glued |= role == Role::System;
        draft.joins |= role == Role::System;
        // The provider's summary may begin a conversation, and then nothing may stand before it.
        if is_compaction(value) {
            role = Role::Other;
        }
        Ok(role)
    }

    fn id_path(&self, part: &Part) -> Option<Vec<Step>> {
        let id = match part.kind {
            PartKind::Call => "id",
            PartKind::Result => "tool_use_id",
            _ => return None,
        };
        Some([&part.path[..2], &[Step::Key(id)]].concat())
    }

    fn user_message(&self, text: &str) -> String {
        let mut out = String::from("{\"role\":\"user\",\"content\":");
        write_string(&mut out, text);
        out.push('}');
        out
    }

    fn result_message(&self, id: &str, _name: &str, text: &str) -> String {
        let mut out = String::from(
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":",
        );
        write_string(&mut out, id);
        out.push_str(",\"content\":");
        write_string(&mut out, text);
        out.push_str("}]}");
        out
    }

    fn tool(&self, name: &str, description: &str, parameters: &str) -> String {
        let mut out = String::from("{\"name\":");
        write_string(&mut out, name);
        out.push_str(",\"description\":");
        write_string(&mut out, description);
        out.push_str(",\"input_schema\":");
        out.push_str(parameters);
        out.push('}');
        out
    }

    fn marker(&self) -> Option<(&'static str, &'static str)> {
        Some(("cache_control", "{\"type\":\"ephemeral\"}"))
    }

    fn user_first(&self) -> bool {
        true
    }

    fn signs_history(&self) -> bool {
        true
    }

    fn unique_ids(&self) -> bool {
        true
    }

    fn strict_turns(&self) -> bool {
        true
    }
}

fn content(draft: &mut Draft<'_>, role: Role, value: Value<'_>) -> Result<(), Fault> {
    match value.kind() {
        Kind::String => {
            let had = draft.has_content;
            draft.add(PartKind::Text, &[Step::Key("content")], value);
            draft.has_content = had || !blank(value);
        }
        Kind::Array => {
            let thinks =
                role == Role::Assistant && value.items().any(|item| is_thinking(&kind(item)));
            // Reasoning alone is no content, but its message may go on in the next one.
            draft.has_content |= thinks;
            for (item, index) in value.items().zip(0u32..) {
                block(draft, role, item, index, thinks).map_err(|fault| fault.at(index))?;
            }
            bind(draft);
        }
        _ => return Err(Fault::new("a string or an array of content blocks")),
    }
    Ok(())
}

/// Ties a message to its neighbours: reasoning to what it led to, a call that the provider runs to
/// a result that came in a later turn.
fn bind(draft: &mut Draft<'_>) {
    let own = |named: bool| {
        let parts = draft.parts.iter().filter(move |part| part.name.is_empty() != named);
        parts.filter(|part| part.kind == PartKind::Opaque && !part.id.is_empty())
    };
    let is_alone = |part: &Part, named: bool| own(named).all(|other| other.id != part.id);
    let calls = own(false).any(|call| is_alone(call, true));
    let results = own(true).any(|result| is_alone(result, false));
    let reasons = draft.parts.iter().all(|part| part.kind == PartKind::Reasoning);
    draft.glued = calls || (reasons && !draft.parts.is_empty());
    draft.joins = results;
}

fn block(
    draft: &mut Draft<'_>,
    role: Role,
    item: Value<'_>,
    index: u32,
    thinks: bool,
) -> Result<(), Fault> {
    if item.kind() != Kind::Object {
        return Err(Fault::new("an object with a type"));
    }
    let here = [Step::Key("content"), Step::Index(index)];
    let inside = |key| [here[0], here[1], Step::Key(key)];
    match &*kind(item) {
        "text" => {
            let value = item.get("text").filter(|text| text.kind() == Kind::String);
            let value = value.ok_or_else(|| Fault::new("a string").within("text"))?;
            if thinks && blank(value) && value.raw().len() > 2 {
                // The model writes white space between thinking blocks. Their order is checked,
                // so it stays and goes with them.
                draft.add(PartKind::Reasoning, &here, item).signed = true;
                return Ok(());
            }
            let had = draft.has_content;
            let part = draft.list_text(&inside("text"), value);
            if blank(value) {
                part.flaw = Some(Flaw::EmptyText);
                draft.has_content = had;
            }
        }
        "image" => {
            draft.media(PartKind::Image, &here, item);
        }
        "document" => {
            draft.media(PartKind::File, &here, item);
        }
        kind if is_thinking(kind) && role == Role::Assistant => {
            // As a whole, signature included: the block is byte-identical or absent.
            draft.add(PartKind::Reasoning, &here, item).signed = true;
        }
        "tool_use" if role == Role::Assistant => {
            let id = text(item.get("id")).map_err(|fault| fault.within("id"))?;
            let name = text(item.get("name")).map_err(|fault| fault.within("name"))?;
            let input = item.get("input").filter(|input| !input.is_null());
            let path = inside("input");
            let part = draft.call(&path, input.unwrap_or(item), &name, &id, CALL_FRAMING);
            part.shape = Shape::Object;
            if input.is_none() {
                part.flaw = Some(Flaw::NoArguments);
            }
        }
        "tool_result" if role == Role::User => {
            let id = text(item.get("tool_use_id")).map_err(|fault| fault.within("tool_use_id"))?;
            result(draft, &inside("content"), item)?.id = (&*id).into();
        }
        // Tools that the provider runs, with their results; citable search results; uploads;
        // compactions; what is newer than this reader.
        kind => {
            let end = match kind {
                _ if kind.ends_with("_tool_use") => "id",
                _ if kind.ends_with("_tool_result") => "tool_use_id",
                _ => "",
            };
            let id = item.get(end).and_then(|id| id.string()).unwrap_or_default();
            let part = draft.opaque(&here, item);
            part.id = (&*id).into();
            // A result has a name: so the two are told apart.
            part.name = if end == "tool_use_id" { "result" } else { "" }.into();
        }
    }
    Ok(())
}

fn result<'d>(
    draft: &'d mut Draft<'_>,
    path: &[Step],
    item: Value<'_>,
) -> Result<&'d mut Part, Fault> {
    let content = item.get("content");
    let filled = match content.map(|content| (content.kind(), content)) {
        Some((Kind::String, content)) => !blank(content),
        Some((Kind::Array, content)) => content.items().any(|block| {
            let text = block.get("text").filter(|text| text.kind() == Kind::String);
            !text.is_some_and(blank)
        }),
        _ => false,
    };
    let failed = item.get("is_error").and_then(|failed| failed.boolean()) == Some(true);
    let part = match content {
        Some(content) if matches!(content.kind(), Kind::String | Kind::Array) => {
            draft.result(path, content).map_err(|fault| fault.within("content"))?
        }
        Some(content) if !content.is_null() => {
            return Err(Fault::new("a string or an array of content blocks").within("content"));
        }
        // A result may have no content.
        _ => {
            draft.has_content = true;
            let part = draft.push(PartKind::Result, path, item, 0, 0);
            part.end = part.start;
            part
        }
    };
    let listed = content.is_some_and(|content| content.kind() != Kind::String);
    part.failed = failed;
    if !filled && failed {
        part.flaw = Some(Flaw::EmptyError);
    } else if !filled && listed {
        part.flaw = Some(Flaw::NullResult);
    }
    Ok(part)
}

fn kind(item: Value<'_>) -> std::borrow::Cow<'_, str> {
    item.get("type").and_then(|kind| kind.string()).unwrap_or_default()
}

/// Whether a message holds nothing but a summary that the provider wrote.
fn is_compaction(message: Value<'_>) -> bool {
    let blocks = message.get("content").filter(|content| content.kind() == Kind::Array);
    blocks.is_some_and(|blocks| {
        blocks.items().next().is_some() && blocks.items().all(|block| kind(block) == "compaction")
    })
}

fn is_thinking(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking")
}

/// Nothing but white space, which the API refuses as a text.
fn blank(text: Value<'_>) -> bool {
    text.string().is_some_and(|text| text.trim().is_empty())
}

/// Tokens around a call beside its name, id and input: `{"type":"tool_use","id":…}`.
const CALL_FRAMING: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Reading, read_messages};
    use crate::transcript::Message;

    fn read(json: &str) -> Result<Message, String> {
        let reading = Reading { image_tokens: 1_500, file_tokens: 1_500, ..Reading::TEST };
        let text = format!("[{json}]");
        let json = crate::json::Json::parse(&text).expect("JSON");
        let messages = read_messages(&Anthropic, json.root(), 3, reading);
        messages.map(|mut all| all.remove(0)).map_err(|error| error.to_string())
    }

    fn message(json: &str) -> Message {
        read(json).expect("a good message")
    }

    /// Each part as `Kind path`, with its block where that is not the whole path.
    fn parts(message: &Message) -> Vec<String> {
        let spell = |path: &[Step]| -> String {
            let steps = path.iter().map(|step| match step {
                Step::Key(key) => format!(".{key}"),
                Step::Index(index) => format!("[{index}]"),
            });
            steps.collect()
        };
        let shown = message.parts.iter().map(|part| {
            let flaw = part.flaw.map_or(String::new(), |flaw| format!(" {flaw:?}"));
            format!("{:?} {}{flaw}", part.kind, spell(&part.path))
        });
        shown.collect()
    }

    #[test]
    fn a_string_is_one_text() {
        let read = message(r#"{"role":"user","content":"hi"}"#);
        assert_eq!(read.role, Role::User);
        assert_eq!(parts(&read), ["Text .content"]);
        assert!(!read.empty);
    }

    #[test]
    fn blocks_become_parts() {
        let read = message(
            r#"{"role":"assistant","content":[
                {"type":"thinking","thinking":"so","signature":"c2ln"},
                {"type":"redacted_thinking","data":"ZGF0YQ=="},
                {"type":"text","text":"Look:","citations":null},
                {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},
                {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},
                {"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}}]}"#,
        );
        assert_eq!(
            parts(&read),
            [
                "Reasoning .content[0]",
                "Reasoning .content[1]",
                "Text .content[2].text",
                "Opaque .content[3]",
                "Opaque .content[4]",
                "Call .content[5].input",
            ]
        );
        assert!(read.parts[0].signed && read.parts[1].signed);
        assert!(read.parts.iter().all(|part| part.block == 2));
        assert_eq!(read.parts[5].shape, Shape::Object);
        assert_eq!((&*read.parts[5].id, &*read.parts[5].name), ("toolu_1", "read"));
        let id = Anthropic.id_path(&read.parts[5]);
        assert_eq!(id, Some(vec![Step::Key("content"), Step::Index(5), Step::Key("id")]));
        assert!(!read.glued && !read.joins);
    }

    #[test]
    fn a_user_message_with_results_is_a_tool_message() {
        let read = message(
            r#"{"role":"user","content":[
                {"type":"tool_result","tool_use_id":"a","content":"one"},
                {"type":"tool_result","tool_use_id":"b","is_error":true,"content":
                    [{"type":"text","text":"two"},{"type":"image","source":{"type":"url","url":"u"}}]},
                {"type":"tool_result","tool_use_id":"c"},
                {"type":"text","text":"and now?"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
                {"type":"document","source":{"type":"file","file_id":"f"}}]}"#,
        );
        assert_eq!(read.role, Role::Tool);
        assert_eq!(
            parts(&read),
            [
                "Result .content[0].content",
                "Result .content[1].content",
                "Result .content[2].content",
                "Text .content[3].text",
                "Image .content[4]",
                "File .content[5]",
            ]
        );
        assert!(read.parts[1].media);
        assert_eq!(read.text(&read.parts[2]), "");
        assert_eq!(read.parts[4].tokens, 1_500);
        let id = Anthropic.id_path(&read.parts[1]);
        assert_eq!(id, Some(vec![Step::Key("content"), Step::Index(1), Step::Key("tool_use_id")]));
    }

    #[test]
    fn what_the_api_refuses_is_a_flaw() {
        let read = message(
            r#"{"role":"user","content":[
                {"type":"tool_result","tool_use_id":"a","content":""},
                {"type":"tool_result","tool_use_id":"b","content":"","is_error":true},
                {"type":"tool_result","tool_use_id":"c","is_error":true},
                {"type":"tool_result","tool_use_id":"d","content":null},
                {"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":""}]},
                {"type":"text","text":""},
                {"type":"text","text":" \n"},
                {"type":"text","text":"cut \ud83d"}]}"#,
        );
        assert_eq!(
            parts(&read),
            [
                "Result .content[0].content",
                "Result .content[1].content EmptyError",
                "Result .content[2].content EmptyError",
                "Result .content[3].content NullResult",
                "Result .content[4].content NullResult",
                "Text .content[5].text EmptyText",
                "Text .content[6].text EmptyText",
                "Text .content[7].text LoneSurrogate",
            ]
        );
        let read = message(
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"now"}]}"#,
        );
        assert_eq!(parts(&read), ["Call .content[0].input NoArguments"]);
    }

    #[test]
    fn white_space_between_thinking_blocks_stays() {
        let read = message(
            r#"{"role":"assistant","content":[
                {"type":"thinking","thinking":"a","signature":"s"},{"type":"text","text":"\n\n"},
                {"type":"thinking","thinking":"b","signature":"t"},{"type":"text","text":"done"}]}"#,
        );
        assert!(read.parts.iter().all(|part| part.flaw.is_none()));
        assert_eq!(read.parts[1].kind, PartKind::Reasoning, "it goes with them");
    }

    #[test]
    fn empty_messages_are_told_from_directives_and_from_reasoning() {
        for json in [
            r#"{"role":"user","content":""}"#,
            r#"{"role":"user","content":" \n"}"#,
            r#"{"role":"assistant","content":[]}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":" "}]}"#,
            r#"{"role":"assistant"}"#,
        ] {
            assert!(message(json).empty, "{json}");
        }
        let thinking = message(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"}]}"#,
        );
        assert!(!thinking.empty && thinking.glued);
        let directive =
            message(r#"{"role":"system","content":[],"output_config":{"effort":"low"}}"#);
        assert_eq!(directive.role, Role::System);
        assert!(!directive.empty);
    }

    #[test]
    fn a_result_of_the_provider_joins_the_turn_of_its_call() {
        let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
        let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
        let of = |block: &str| message(&format!(r#"{{"role":"assistant","content":[{block}]}}"#));
        assert!(of(call).glued);
        assert!(of(result).joins);
        let both = of(&format!("{call},{result}"));
        assert!(!both.glued && !both.joins);
    }

    #[test]
    fn a_cache_marker_is_no_part_of_the_identity() {
        let with = |marker: &str| {
            let json = format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"x"{marker}}},
                {{"type":"text","text":"hi"{marker}}},
                {{"type":"image","source":{{"type":"url","url":"u"}}{marker}}}]}}"#
            );
            message(&json)
        };
        let (plain, marked) = (with(""), with(r#","cache_control":{"type":"ephemeral"}"#));
        assert_eq!(plain.spine, marked.spine);
        assert_eq!(plain.tokens, marked.tokens);
    }

    #[test]
    fn faults_name_the_place() {
        for (json, error) in [
            (r#"{"content":"x"}"#, "messages[3].role: expected a string"),
            (
                r#"{"role":"user","content":7}"#,
                "messages[3].content: expected a string or an array of content blocks",
            ),
            (
                r#"{"role":"user","content":["x"]}"#,
                "messages[3].content[0]: expected an object with a type",
            ),
            (
                r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}"#,
                "messages[3].content[1].text: expected a string",
            ),
            (
                r#"{"role":"assistant","content":[{"type":"tool_use","name":"x","input":{}}]}"#,
                "messages[3].content[0].id: expected a string",
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":7}]}"#,
                "messages[3].content[0].content: expected a string or an array of content blocks",
            ),
        ] {
            assert_eq!(read(json).unwrap_err(), error);
        }
    }

    #[test]
    fn what_it_writes_it_reads() {
        let user = message(&Anthropic.user_message("a \"b\""));
        assert_eq!((user.role, user.text(&user.parts[0]).as_ref()), (Role::User, "a \"b\""));
        let result = message(&Anthropic.result_message("id", "read", "none"));
        assert_eq!((result.role, &*result.parts[0].id), (Role::Tool, "id"));
        let tool = Anthropic.tool("recall", "gets", "{\"type\":\"object\"}");
        let json: serde_json::Value = serde_json::from_str(&tool).unwrap();
        assert_eq!(json["input_schema"]["type"], "object");
    }
}

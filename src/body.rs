//! Raw request bodies: bytes in, bytes out. The edits of the view are spliced into the body's own
//! bytes, so that whatever no decision touches stays what it was.

use std::ops::Range;

use crate::arguments::parse;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::format::FormatName;
use crate::json::{Kind, Value};
use crate::view::Item;

/// The body that the engine works on.
pub(crate) struct Body {
    text: String,
    /// The list of messages, brackets included.
    list: Range<usize>,
    /// Its elements.
    items: Vec<Range<usize>>,
    /// A single message, or its text, stands in place of a list of one.
    single: bool,
}

impl Engine {
    /// Reads a whole request: its messages become the transcript, its instructions, tools, model
    /// and output limit are counted. `path` is that of the request's URL, if it is known: it tells
    /// the format where the messages do not.
    ///
    /// # Errors
    /// `invalid_json`, or `invalid_transcript` at `body` where no messages are found.
    pub fn ingest_body(&mut self, bytes: &[u8], path: Option<&str>) -> Result<(), Error> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::at(ErrorCode::InvalidJson, "body", "not UTF-8"))?;
        let json = parse(text, "body", ErrorCode::InvalidJson)?;
        let root = json.root();
        let Some((format, list)) = find(root, path) else {
            let what = "expected the list `messages`, `input`, `contents` or `prompt`";
            return Err(Error::at(ErrorCode::InvalidTranscript, "body", what));
        };
        if self.format_name.is_none()
            && let Some(format) = format
        {
            self.read_as(format)?;
        }
        let model = root.get("model").and_then(|model| model.string());
        if let (None, Some(model)) = (&self.options.model, model) {
            self.set_model(model.into_owned());
        }
        let raw = |value: Option<Value<'_>>| value.map_or(String::new(), |v| v.raw().to_owned());
        let system = ["system", "instructions", "systemInstruction", "system_instruction"];
        self.marks[2] = u32::from(root.get("cache_control").is_some_and(|mark| !mark.is_null()));
        self.set_system(&raw(first(root, &system)))?;
        self.set_tools(&raw(first(root, &["tools", "functions"])))?;
        self.sizes.output = output_limit(root);
        self.server_history = SERVER_HISTORY.iter().any(|name| is_set(root.get(name)));
        let items: Vec<Range<usize>> = list.items().map(|item| item.span()).collect();
        let single = list.kind() != Kind::Array;
        if single {
            let message = match (list.kind(), format) {
                (Kind::String, Some(FormatName::Gemini)) => {
                    ["[{\"role\":\"user\",\"parts\":[{\"text\":", list.raw(), "}]}]"].concat()
                }
                (Kind::String, _) => {
                    ["[{\"role\":\"user\",\"content\":", list.raw(), "}]"].concat()
                }
                _ => ["[", list.raw(), "]"].concat(),
            };
            let message = parse(&message, "body", ErrorCode::InvalidJson)?;
            self.ingest_values(0, message.root(), &[])?;
        } else {
            self.ingest_values(0, list, &[])?;
        }
        self.body = Some(Body { text: text.to_owned(), list: list.span(), items, single });
        Ok(())
    }

    /// The body to send; none where it is the one that was read. The body is forgotten then.
    pub fn render_body(&mut self) -> Option<String> {
        let body = self.body.take()?;
        if self.server_history {
            return None;
        }
        let view = self.view();
        let items = view.items(0);
        let messages = &self.transcript.messages;
        let same = match items[..] {
            [] => messages.is_empty(),
            [Item::Run { from, to }] => from == 0 && to as usize == messages.len(),
            _ => false,
        };
        if same {
            return None;
        }
        let text = &*body.text;
        if body.single {
            let Range { start, end } = body.list;
            return Some([&text[..start], &view.json(), &text[end..]].concat());
        }
        let open = body.list.start + 1;
        let close = body.list.end - 1;
        let lead = body.items.first().map_or(open, |item| item.start);
        let mut out = String::with_capacity(text.len());
        out.push_str(&text[..lead]);
        let mut last = None;
        let mut any = false;
        let mut put = |index: Option<u32>, json: &str| {
            if any {
                // Neighbours keep the space between them.
                let follows = index.filter(|index| last == index.checked_sub(1) && last.is_some());
                let gap = follows.and_then(|index| {
                    let [before, after] = body.items.get(index as usize - 1..=index as usize)?
                    else {
                        return None;
                    };
                    text.get(before.end..after.start)
                });
                out.push_str(gap.unwrap_or(","));
            }
            any = true;
            last = index;
            out.push_str(json);
        };
        for item in items {
            match item {
                Item::Run { from, to } => {
                    for index in from..to {
                        put(Some(index), &messages[index as usize].raw);
                    }
                }
                Item::Patch { index, edits } => {
                    let raw = &messages[index as usize].raw;
                    put(Some(index), &crate::view::splice(raw, &edits));
                }
                Item::Insert { json } => put(None, &json),
            }
        }
        let tail = body.items.last().map_or(close, |item| item.end);
        out.push_str(&text[tail..]);
        Some(out)
    }
}

/// The list of messages of a request, and its format where the request tells it.
fn find<'j>(root: Value<'j>, path: Option<&str>) -> Option<(Option<FormatName>, Value<'j>)> {
    // One message, or its text, may stand in place of the list.
    let list = |name: &str, one: &[Kind]| {
        let is = |value: &Value<'_>| value.kind() == Kind::Array || one.contains(&value.kind());
        root.get(name).filter(is)
    };
    if let Some(list) = list("contents", &[Kind::String, Kind::Object]) {
        return Some((Some(FormatName::Gemini), list));
    }
    if let Some(list) = list("input", &[Kind::String]) {
        return Some((Some(FormatName::OpenaiResponses), list));
    }
    if let Some(list) = list("prompt", &[Kind::String]) {
        return Some((Some(FormatName::AiSdk), list));
    }
    let messages = list("messages", &[])?;
    let path = path.unwrap_or_default();
    // What Chat Completions has no word for.
    let anthropic = path.trim_end_matches('/').ends_with("/messages")
        || ["system", "anthropic_version", "anthropic_beta", "stop_sequences", "thinking"]
            .iter()
            .any(|name| root.get(name).is_some());
    let chat = path.contains("/chat/completions");
    let format = match (chat, anthropic) {
        (true, _) => Some(FormatName::OpenaiChat),
        (false, true) => Some(FormatName::Anthropic),
        (false, false) => None,
    };
    Some((format, messages))
}

fn first<'j>(root: Value<'j>, names: &[&str]) -> Option<Value<'j>> {
    names.iter().find_map(|name| root.get(name)).filter(|value| !value.is_null())
}

/// Most tokens that the model may write: the provider wants room for them in the window.
fn output_limit(root: Value<'_>) -> Option<u32> {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"];
    let config = first(root, &["generationConfig", "generation_config"]);
    let limit = first(root, &names).or_else(|| first(config?, &names));
    limit.and_then(|limit| limit.count())
}

fn is_set(value: Option<Value<'_>>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.raw() != "\"\"")
}

/// Members by which a request continues a conversation that the provider keeps.
const SERVER_HISTORY: [&str; 3] = ["previous_response_id", "conversation", "thread_id"];

//! Wire formats: each reads messages into parts and writes the few messages of our own.

mod ai_sdk;
mod anthropic;
mod detect;
mod draft;
mod gemini;
mod openai_chat;
mod openai_responses;

use crate::count::Family;
use crate::count::media::ImagePrice;
use crate::error::{Error, ErrorCode};
use crate::json::{Kind, Value};
use crate::marker;
use crate::transcript::{HashKey, Message, Pairing, Part, Role, Shape, Step};

pub(crate) use detect::detect;
use draft::Draft;

/// Wire formats of conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatName {
    /// OpenAI Chat Completions `messages`.
    #[default]
    OpenaiChat,
    /// OpenAI Responses `input` items.
    OpenaiResponses,
    /// Anthropic Messages `messages`.
    Anthropic,
    /// Gemini `contents`.
    Gemini,
    /// Vercel AI SDK model messages, and prompts of its language models.
    AiSdk,
}

/// A tokenizer of the host's own: tokens of a text, or nothing where it fails.
type Exact<'r> = &'r dyn Fn(&str) -> Option<u32>;

/// What the engine must know to read a message.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'r> {
    pub key: HashKey,
    /// Tokenizers that the model's is alike.
    pub family: Family,
    /// The host's own tokenizer, and nothing where it fails.
    pub exact: Option<Exact<'r>>,
    pub image: ImagePrice,
    /// Tokens of images, files and audio that say nothing of their size.
    pub image_tokens: u32,
    pub file_tokens: u32,
    pub audio_tokens: u32,
}

#[cfg(test)]
impl Reading<'_> {
    /// A fixed one: any image or file of unknown size takes 1,000 tokens.
    pub(crate) const TEST: Reading<'static> = Reading {
        key: (1, 2),
        family: Family::O200k,
        exact: None,
        image: ImagePrice::Flat,
        image_tokens: 1000,
        file_tokens: 1000,
        audio_tokens: 1000,
    };
}

/// One wire format.
pub(crate) trait Format {
    /// How results stand to their calls.
    fn pairing(&self) -> Pairing;

    /// Reads one message into the draft; says who speaks.
    fn read<'j>(&self, value: Value<'j>, draft: &mut Draft<'j>) -> Result<Role, Fault>;

    /// Where the id of a call or of a result stands inside its message, if it has one.
    fn id_path(&self, part: &Part) -> Option<Vec<Step>>;

    /// Where the id of a result stands that must not stay when its call has none and others have.
    fn own_id(&self, _result: &Part) -> Option<Vec<Step>> {
        None
    }

    /// A message of the user role with that text, as JSON.
    fn user_message(&self, text: &str) -> String;

    /// A tool result with that text, as the JSON of a message.
    fn result_message(&self, id: &str, name: &str, text: &str) -> String;

    /// A result of a call that never got one, as the JSON of a message; none where the call may
    /// stay without.
    fn answer(&self, call: &Part, id: &str, text: &str) -> Option<String> {
        Some(self.result_message(id, &call.name, text))
    }

    /// The definition of a tool as a request of this format carries it, as JSON.
    fn tool(&self, name: &str, description: &str, parameters: &str) -> String;

    /// The member of a message that is its content.
    fn content(&self) -> &'static str {
        "content"
    }

    /// The member of a content block that marks the end of what the provider caches, and its value.
    fn marker(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// What an element of a content list has to do with approvals of calls, where the format has
    /// such.
    fn approval(&self, _part: Value<'_>) -> Option<Approval> {
        None
    }

    /// A text as the whole content of a message, as JSON.
    fn stand_in(&self, text: &str) -> String {
        Shape::String.write(text)
    }

    /// A text as the whole content of that message, as JSON.
    fn placeholder(&self, _message: &Message, text: &str) -> String {
        self.stand_in(text)
    }

    /// A result as an element of a content list, where all results of a turn must share one
    /// message.
    fn result_part(&self, _id: &str, _name: &str, _text: &str) -> Option<String> {
        None
    }

    /// Whether an id names one call in the whole conversation, not only in its batch.
    fn unique_ids(&self) -> bool {
        false
    }

    /// Whether results stand before all else in the user's turn that brings them, and the provider's
    /// own calls, parts that are opaque but have an id, have results in the assistant's turn.
    fn strict_turns(&self) -> bool {
        false
    }

    /// Whether the first message after the leading system messages must be the user's.
    fn user_first(&self) -> bool {
        false
    }

    /// Whether signatures of reasoning vouch for what stands before it.
    fn signs_history(&self) -> bool {
        false
    }

    /// The member of a message by which it is bound to the glued one before it, to be left out
    /// when that one leaves.
    fn bond(&self) -> Option<&'static str> {
        None
    }
}

/// One of three parts that hang together by ids.
pub(crate) enum Approval {
    /// A call, by its id.
    Call(String),
    /// The host is asked for approval: id of the request, and of the call.
    Request(String, String),
    /// It answers a request of that id.
    Response(String),
}

impl FormatName {
    /// All of them.
    pub const ALL: [FormatName; 5] = [
        FormatName::OpenaiChat,
        FormatName::OpenaiResponses,
        FormatName::Anthropic,
        FormatName::Gemini,
        FormatName::AiSdk,
    ];

    /// The name used in options and checkpoints.
    pub fn as_str(self) -> &'static str {
        match self {
            FormatName::OpenaiChat => "openai-chat",
            FormatName::OpenaiResponses => "openai-responses",
            FormatName::Anthropic => "anthropic",
            FormatName::Gemini => "gemini",
            FormatName::AiSdk => "ai-sdk",
        }
    }

    /// The format of that name.
    pub fn parse(name: &str) -> Option<FormatName> {
        FormatName::ALL.into_iter().find(|format| format.as_str() == name)
    }

    pub(crate) fn format(self) -> &'static dyn Format {
        match self {
            FormatName::OpenaiChat => &openai_chat::OpenaiChat,
            FormatName::OpenaiResponses => &openai_responses::OpenaiResponses,
            FormatName::Anthropic => &anthropic::Anthropic,
            FormatName::Gemini => &gemini::Gemini,
            FormatName::AiSdk => &ai_sdk::AiSdk,
        }
    }
}

/// Reads an array of messages; `first` is the index of its first one in the transcript.
pub(crate) fn read_messages(
    format: &dyn Format,
    messages: Value<'_>,
    first: usize,
    reading: Reading<'_>,
) -> Result<Vec<Message>, Error> {
    read_rest(format, messages, first, 0, reading)
}

/// Reads an array of messages without its first `skip`.
pub(crate) fn read_rest(
    format: &dyn Format,
    messages: Value<'_>,
    first: usize,
    skip: usize,
    reading: Reading<'_>,
) -> Result<Vec<Message>, Error> {
    if messages.kind() != Kind::Array {
        return Err(wrong("messages", "an array of messages"));
    }
    messages
        .items()
        .zip(first..)
        .skip(skip)
        .map(|(value, index)| {
            let read = match value.kind() {
                Kind::Object => read_message(format, value, reading),
                _ => Err(Fault::new("an object with a role")),
            };
            read.map_err(|Fault(fault)| {
                let (path, expected) = *fault;
                wrong(&format!("messages[{index}]{path}"), expected)
            })
        })
        .collect()
}

fn read_message(format: &dyn Format, value: Value<'_>, reading: Reading) -> Result<Message, Fault> {
    let mut draft = Draft::new(value, reading);
    let role = format.read(value, &mut draft)?;
    let mut message = draft.message(role, value.raw());
    message.markers = marker::of(format, value).len() as u32;
    Ok(message)
}

/// A value that is not what the format says; the path grows outwards as the fault is handed up.
pub(crate) struct Fault(Box<(String, &'static str)>);

impl Fault {
    pub(crate) fn new(expected: &'static str) -> Fault {
        Fault(Box::new((String::new(), expected)))
    }

    /// The same fault, seen from the object that holds the member.
    pub(crate) fn within(mut self, member: &str) -> Fault {
        self.0.0.insert_str(0, member);
        self.0.0.insert(0, '.');
        self
    }

    /// The same fault, seen from the array that holds the element.
    pub(crate) fn at(mut self, index: u32) -> Fault {
        self.0.0.insert_str(0, &format!("[{index}]"));
        self
    }
}

fn wrong(place: &str, expected: &str) -> Error {
    Error::expected(ErrorCode::InvalidTranscript, place, expected)
}

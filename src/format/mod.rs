//! Wire formats: each reads messages into parts and writes the few messages of our own.

mod openai_chat;

use crate::arguments::parse;
use crate::error::{Error, ErrorCode};
use crate::json::{Kind, Value};
use crate::transcript::{HashKey, Message};

/// Wire formats of conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatName {
    /// OpenAI Chat Completions `messages`.
    #[default]
    OpenaiChat,
}

/// What the engine must know to read a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub key: HashKey,
    /// Tokens of an image whose size is unknown.
    pub image_tokens: u32,
}

/// One wire format.
pub(crate) trait Format {
    /// Reads one message.
    fn read(&self, value: Value<'_>, reading: Reading) -> Result<Message, Fault>;

    /// A message of the user role with that text, as JSON.
    fn user_message(&self, text: &str) -> String;

    /// A tool result with that text, as JSON.
    fn result_message(&self, id: &str, name: &str, text: &str) -> String;

    /// The definition of a tool as a request of this format carries it, as JSON.
    fn tool(&self, name: &str, description: &str, parameters: &str) -> String;
}

impl FormatName {
    /// The name used in options and checkpoints.
    pub fn as_str(self) -> &'static str {
        match self {
            FormatName::OpenaiChat => "openai-chat",
        }
    }

    /// The format of that name.
    pub fn parse(name: &str) -> Option<FormatName> {
        [FormatName::OpenaiChat].into_iter().find(|format| format.as_str() == name)
    }

    pub(crate) fn format(self) -> &'static dyn Format {
        match self {
            FormatName::OpenaiChat => &openai_chat::OpenaiChat,
        }
    }
}

/// Reads a JSON array of messages; `first` is the index of its first one in the transcript.
pub(crate) fn read_messages(
    format: &dyn Format,
    text: &str,
    first: usize,
    reading: Reading,
) -> Result<Vec<Message>, Error> {
    let json = parse(text, "messages", ErrorCode::InvalidJson)?;
    if json.root().kind() != Kind::Array {
        return Err(wrong("messages", "an array of messages"));
    }
    json.root()
        .items()
        .zip(first..)
        .map(|(value, index)| {
            let read = match value.kind() {
                Kind::Object => format.read(value, reading),
                _ => Err(Fault::new("an object with a role")),
            };
            read.map_err(|Fault(fault)| {
                let (path, expected) = *fault;
                wrong(&format!("messages[{index}]{path}"), expected)
            })
        })
        .collect()
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

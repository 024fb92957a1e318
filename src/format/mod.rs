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
    /// Reads one message. `place` is its path for errors, such as `messages[3]`.
    fn read(&self, value: Value<'_>, place: &str, reading: Reading) -> Result<Message, Error>;

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
            let place = format!("messages[{index}]");
            if value.kind() != Kind::Object {
                return Err(wrong(&place, "an object with a role"));
            }
            format.read(value, &place, reading)
        })
        .collect()
}

pub(crate) fn wrong(place: &str, expected: &str) -> Error {
    Error::new(ErrorCode::InvalidTranscript, place, format!("expected {expected}"))
}

//! Where the tokens of a transcript are.

use serde::Serialize;

use crate::engine::Engine;
use crate::transcript::{Message, Part, PartKind};

/// What a message of the transcript holds, whatever the view shows of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageSize {
    /// `system`, `user`, `assistant`, `tool`, or `other`.
    pub role: &'static str,
    /// Estimated tokens, not corrected by reported usage: those of the parts and of the framing.
    pub tokens: u32,
    pub parts: Vec<PartSize>,
}

/// The same for a part of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartSize {
    /// `text`, `reasoning`, `call`, `result`, `image`, `file`, or `opaque`.
    pub kind: &'static str,
    /// Estimated tokens, as above.
    pub tokens: u32,
    /// Of a call or a result: the tool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// 53 bits of a keyed hash of the content: equal in sessions with the same secret where kind
    /// and content are.
    pub digest: f64,
}

impl Engine {
    /// The messages of the transcript by size.
    pub fn sizes(&self) -> Vec<MessageSize> {
        self.transcript.messages.iter().map(|message| self.size_of(message)).collect()
    }

    fn size_of(&self, message: &Message) -> MessageSize {
        let role = message.role.name();
        let parts = message.parts.iter().map(|part| PartSize {
            kind: part.kind.name(),
            tokens: part.tokens,
            tool: self.tool_of(part).into(),
            digest: (message.anchor(part, self.transcript.key) >> 11) as f64,
        });
        MessageSize { role, tokens: message.tokens, parts: parts.collect() }
    }

    /// The tool of a call, and of a result where it or its call names one.
    fn tool_of<'a>(&'a self, part: &'a Part) -> &'a str {
        match part.link {
            Some(link) if part.kind == PartKind::Result && part.name.is_empty() => {
                let call = self.transcript.messages.get(link.message as usize);
                call.and_then(|call| call.parts.get(link.part as usize))
                    .map_or("", |call| &call.name)
            }
            _ => &part.name,
        }
    }
}

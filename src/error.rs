//! Typed errors: the caller's misuse, bad data, and our own faults.

use std::fmt;

/// Stable names of what can go wrong; the TypeScript layer shows them as `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An option or argument of the caller has a wrong type or value.
    InvalidOption,
    /// A text that should be JSON is not.
    InvalidJson,
    /// The JSON is well formed but is not a list of messages of the format.
    InvalidTranscript,
    /// The checkpoint is damaged or is not one of ours.
    InvalidCheckpoint,
    /// The checkpoint was written by a newer version.
    UnsupportedCheckpoint,
    /// `resolve` named an effect that this engine never issued.
    UnknownEffect,
    /// `resolve` brought a reply of the wrong kind for its effect.
    InvalidReply,
    /// The arguments of a recall call cannot be read.
    InvalidRecall,
}

impl ErrorCode {
    /// The name used outside Rust.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::InvalidOption => "invalid_option",
            ErrorCode::InvalidJson => "invalid_json",
            ErrorCode::InvalidTranscript => "invalid_transcript",
            ErrorCode::InvalidCheckpoint => "invalid_checkpoint",
            ErrorCode::UnsupportedCheckpoint => "unsupported_checkpoint",
            ErrorCode::UnknownEffect => "unknown_effect",
            ErrorCode::InvalidReply => "invalid_reply",
            ErrorCode::InvalidRecall => "invalid_recall",
        }
    }
}

/// A refused call. Whatever call returns it has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    path: String,
    message: String,
}

impl Error {
    pub(crate) fn new(
        code: ErrorCode,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Error {
        Error { code, path: path.into(), message: message.into() }
    }

    /// What kind of error this is.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The place, as a JavaScript-like path: `messages[3].content`, `options.compactAt`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong and what would be right, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for Error {}

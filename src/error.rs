//! Typed errors: the caller's misuse, bad data, and our own faults.

use std::borrow::Cow;
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
    /// A stage of the host's wants what must not be: a unit cut, a pin or the tail broken, a
    /// decision undone.
    InvalidDecision,
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
            ErrorCode::InvalidDecision => "invalid_decision",
        }
    }
}

/// A refused call. Whatever call returns it has changed nothing.
// Boxed: an error is rare, and a result that carries a large one is moved about everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Details>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Details {
    code: ErrorCode,
    path: Cow<'static, str>,
    message: Cow<'static, str>,
}

impl Error {
    // Out of line: errors are rare, and their many call sites would else fill the wasm.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(
        code: ErrorCode,
        path: Cow<'static, str>,
        message: Cow<'static, str>,
    ) -> Error {
        Error(Box::new(Details { code, path, message }))
    }

    /// An error about something at a place that is known in advance.
    #[cold]
    #[inline(never)]
    pub(crate) fn at(code: ErrorCode, path: &'static str, message: &'static str) -> Error {
        Error::new(code, Cow::Borrowed(path), Cow::Borrowed(message))
    }

    /// A value at a place is not what it should be.
    #[cold]
    #[inline(never)]
    pub(crate) fn expected(code: ErrorCode, path: &str, expected: &str) -> Error {
        let message = Cow::Owned(["expected ", expected].concat());
        Error::new(code, Cow::Owned(path.to_owned()), message)
    }

    /// What kind of error this is.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The place, as a JavaScript-like path: `messages[3].content`, `options.compactAt`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What is wrong and what would be right, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path().is_empty() {
            f.write_str(self.path())?;
            f.write_str(": ")?;
        }
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

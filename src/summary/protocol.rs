//! Protocols: what a host may put in place of parts of ours, each on its own.

use serde::Serialize;

use super::{Entry, EntryKind};

/// One piece of the span that is being folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Piece<'a> {
    /// Message of the transcript.
    pub index: usize,
    /// `system`, `user`, `assistant`, `call`, `result` or `media`.
    pub kind: &'static str,
    /// Tool of a call, or of a result that names it; empty where there is none.
    pub name: &'a str,
    /// Of a result: the tool failed.
    pub failed: bool,
    /// The text, the arguments of a call, or the text of a result.
    pub text: &'a str,
}

/// What a local summary is built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildRequest<'a> {
    /// The previous summary.
    pub previous: Option<&'a str>,
    /// The span, in order.
    pub pieces: Vec<Piece<'a>>,
    /// Names of the sections.
    pub sections: Vec<&'a str>,
    /// What gets the most room.
    pub focus: Option<&'a str>,
    /// Most tokens of the summary.
    pub max_tokens: u32,
}

/// What a summary is held against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateRequest<'a> {
    /// The summary as it came.
    pub text: &'a str,
    /// Names of the sections.
    pub sections: Vec<&'a str>,
    /// Its estimated tokens.
    pub tokens: u32,
}

/// What a protocol of the host gives, or the message of its error.
pub type Given<T> = Result<T, String>;

/// Writes a span as text.
pub type FormatSpan = dyn Fn(&[Piece<'_>]) -> Given<String>;
/// Shortens a result.
pub type PruneResult = dyn Fn(&Piece<'_>) -> Given<String>;
/// Writes a summary.
pub type BuildSummary = dyn Fn(&BuildRequest<'_>) -> Given<String>;
/// Says why a summary is refused.
pub type ValidateSummary = dyn Fn(&ValidateRequest<'_>) -> Given<Option<String>>;

/// Functions of the host in place of ours. One that fails is reported, and ours goes on.
#[derive(Default)]
pub struct Protocols {
    /// The span as text for the summarizer.
    pub format: Option<Box<FormatSpan>>,
    /// A result as summarizers get to see it.
    pub prune: Option<Box<PruneResult>>,
    /// The summary where no summarizer writes one.
    pub build: Option<Box<BuildSummary>>,
    /// Why a summary is refused, or nothing. Size is checked besides.
    pub validate: Option<Box<ValidateSummary>>,
}

impl<'a> Piece<'a> {
    pub(crate) fn of(entry: &'a Entry<'_>) -> Piece<'a> {
        let (kind, name, failed) = match entry.kind {
            EntryKind::System => ("system", "", false),
            EntryKind::User => ("user", "", false),
            EntryKind::Assistant => ("assistant", "", false),
            EntryKind::Call { name } => ("call", name, false),
            EntryKind::Result { name, is_error } => ("result", name, is_error),
            EntryKind::Media => ("media", "", false),
        };
        Piece { index: entry.index, kind, name, failed, text: &entry.text }
    }
}

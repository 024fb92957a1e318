//! Keeps an LLM conversation inside its context window.
//!
//! The engine is sans-IO: it never performs I/O, never reads a clock and never rolls dice. It
//! says what should happen ([`Engine::plan`]), the host does it, and [`Engine::render`] says what
//! to send. The transcript is never edited.
//!
//! # Goals
//! - Only the view sent to the model shrinks, by sticky decisions: between bursts each view is a
//!   byte prefix of the next, so that provider prompt caches stay warm.
//! - Views are valid: calls stay with their results, nothing is empty or orphaned.
//! - Nothing vanishes: what is out of the view is in the summary, in the store or recallable.
//!
//! # Non-goals
//! - Talking to providers, storing anything, converting between wire formats.
//!
//! # Errors
//! An [`Error`] is the caller's misuse or bad data, and the call that returned it changed
//! nothing. Failures of the host are inputs ([`Reply::Failed`]) and show in the [`Outcome`].
//! The engine does not panic on any input; a panic is a bug.

mod arguments;
mod body;
mod budget;
mod calibration;
mod checkpoint;
#[cfg(all(target_arch = "wasm32", feature = "component"))]
mod component;
mod count;
mod cut;
mod decision;
mod engine;
mod error;
mod format;
mod ids;
mod json;
mod marker;
mod options;
mod order;
mod overflow;
mod recall;
mod sizes;
mod stage;
mod summary;
mod transcript;
mod view;
#[cfg(all(target_arch = "wasm32", feature = "js"))]
mod wasm;

pub use budget::Budget;
pub use decision::{Author, Ref};
pub use engine::{
    Audit, CacheReport, Cause, DecideContext, Decided, Effect, Engine, Estimate, Explained,
    Explanation, Failure, Notice, Outcome, Overflow, PlanRequest, Reason, RecallTool, Render,
    Reply, Standing, Stats, Step, SummaryReport, SummaryVersion, Tokenizer, Usage, WindowKey,
};
pub use error::{Error, ErrorCode};
pub use format::FormatName;
pub use options::{Options, RecallOptions, SectionOptions, SummaryOptions};
pub use overflow::{ErrorClass, classify};
pub use recall::{RecallArgs, RecallStep};
pub use sizes::{MessageSize, PartSize};
pub use stage::custom::{Candidate, CandidateUnit, Wanted};
pub use stage::{StageName, StageOptions};
pub use summary::protocol::{
    BuildRequest, BuildSummary, FormatSpan, Given, Piece, Protocols, PruneResult, ValidateRequest,
    ValidateSummary,
};
pub use transcript::Step as PathStep;
pub use view::{Edit, Item, Problem, Repair};

//! What goes in and out of the loop: requests, effects, replies and outcomes.

use std::borrow::Cow;

use serde::Serialize;

use crate::arguments::{Arguments, parse};
use crate::decision::Author;
use crate::error::{Error, ErrorCode};
use crate::stage::custom::{Candidate, CandidateUnit};
use crate::view::{Item, Repair};

/// What the host asks of one plan.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The provider's report on the last view that was sent; used once.
    pub usage: Option<Usage>,
    /// The provider refused the last view with this error.
    pub overflow: Option<Overflow>,
    /// Compact as far as possible, whatever the size.
    pub force: bool,
    /// What a summary should give the most room to.
    pub focus: Option<String>,
    /// A summary is to start over from the first message, without the previous one.
    pub fresh: bool,
    /// Say what would be decided, and decide nothing. No effects are asked for: the local
    /// summarizer stands in for the host's, and the store is taken to work.
    pub dry_run: bool,
    /// The provider keeps the conversation itself: nothing is to be decided here.
    pub server_history: bool,
}

impl PlanRequest {
    /// Reads a request from JSON.
    ///
    /// # Errors
    /// `invalid_option` naming the member.
    pub fn from_json(text: &str) -> Result<PlanRequest, Error> {
        let code = ErrorCode::InvalidOption;
        let json = parse(text, "request", code)?;
        let known = ["usage", "overflow", "force", "focus", "fresh", "dryRun", "serverHistory"];
        let from = Arguments::new(json.root(), "request", code, &known)?;
        let usage = match from.get("usage") {
            None => None,
            Some(value) => {
                let usage = Arguments::new(value, from.at("usage"), code, &["inputTokens"])?;
                let tokens = usage.number("inputTokens")?;
                Some(Usage { input_tokens: usage.required("inputTokens", tokens)? })
            }
        };
        let overflow = match from.get("overflow") {
            None => None,
            Some(value) => {
                let error = Arguments::new(value, from.at("overflow"), code, &["status", "body"])?;
                let status = error.count("status")?.map(u16::try_from);
                let body = error.owned("body")?;
                Some(Overflow {
                    status: status.and_then(Result::ok),
                    body: error.required("body", body)?,
                })
            }
        };
        Ok(PlanRequest {
            usage,
            overflow,
            force: from.flag("force")?.unwrap_or_default(),
            focus: from.owned("focus")?,
            fresh: from.flag("fresh")?.unwrap_or_default(),
            dry_run: from.flag("dryRun")?.unwrap_or_default(),
            server_history: from.flag("serverHistory")?.unwrap_or_default(),
        })
    }
}

/// Real size of a request.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub input_tokens: f64,
}

/// An error response of a provider.
#[derive(Clone, Debug, Default)]
pub struct Overflow {
    /// HTTP status.
    pub status: Option<u16>,
    /// Body, or the message of the error.
    pub body: String,
}

/// Something that the host must do before the plan can go on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Effect {
    /// Write a summary; reply with its text.
    Summarize {
        /// To be named in the reply.
        id: u32,
        /// Instructions.
        system: String,
        /// The span and the task, flat text.
        prompt: String,
        /// Most tokens of the answer.
        max_tokens: u32,
        /// First message of the span.
        from: u32,
        /// The message after its last.
        to: u32,
        /// 1, or 2 where a first answer was refused.
        attempt: u32,
        /// Where `prompt` is to be appended to the conversation instead of standing alone: the view
        /// up to the end of the span, as the provider may have it in its cache; `system` is empty.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<Vec<Item>>,
    },
    /// A burst is about to begin; reply with go.
    Burst {
        /// To be named in the reply.
        id: u32,
        /// `size`, `overflow` or `force`.
        cause: &'static str,
        /// Calibrated tokens of the view.
        tokens: u32,
        /// Where the burst may stop.
        target: u32,
        /// First message of the protected tail.
        tail: u32,
    },
    /// Messages are about to be folded or dropped, and can be saved elsewhere; reply with done.
    Flush {
        /// To be named in the reply.
        id: u32,
        /// Their whole text.
        text: String,
        /// First message.
        from: u32,
        /// The message after the last.
        to: u32,
    },
    /// A stage of the host's own runs: hand each decision that it wants to
    /// [`Engine::propose`](crate::Engine::propose), then reply with done, or with failed to take
    /// all of them back. Comes alone.
    Decide {
        /// To be named in `propose` and in the reply.
        id: u32,
        /// Place of the stage in the list of stages.
        position: u32,
        /// What the stage may know.
        context: Box<DecideContext>,
    },
    /// Keep a content; reply with done.
    Put {
        /// To be named in the reply.
        id: u32,
        /// Where: namespace, slash, 64 hexadecimal digits.
        key: String,
        /// The whole text.
        content: String,
    },
}

/// What a stage of the host's own sees. All sizes are calibrated tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecideContext {
    /// Name of the stage.
    pub stage: String,
    /// Size of the view, tools included.
    pub tokens: u32,
    /// Size at which the stage may stop.
    pub target: u32,
    /// Size that the view must not exceed.
    pub limit: u32,
    /// The provider refused the view.
    pub overflow: bool,
    /// The host asked for the burst.
    pub forced: bool,
    /// Parts in the view, oldest first.
    pub parts: Vec<Candidate>,
    /// Units in the view, oldest first.
    pub units: Vec<CandidateUnit>,
}

impl Effect {
    /// The id to reply to.
    pub fn id(&self) -> u32 {
        match self {
            Effect::Summarize { id, .. }
            | Effect::Put { id, .. }
            | Effect::Decide { id, .. }
            | Effect::Burst { id, .. }
            | Effect::Flush { id, .. } => *id,
        }
    }
}

/// The host's answer to an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The text that was asked for.
    Text {
        /// It.
        text: String,
    },
    /// It was done.
    Done,
    /// The burst may begin, or not.
    Go {
        /// It must not.
        veto: bool,
        /// Messages that are never to be compacted from now on.
        pins: Vec<u32>,
    },
    /// It could not be done.
    Failed {
        /// Why, in words.
        message: String,
    },
}

impl Reply {
    /// Reads a reply from JSON: `{"kind":"text","text":…}`, `{"kind":"done"}`,
    /// `{"kind":"go","veto":…,"pins":[…]}` or `{"kind":"failed","message":…}`.
    ///
    /// # Errors
    /// `invalid_reply` naming the member.
    pub fn from_json(text: &str) -> Result<Reply, Error> {
        let code = ErrorCode::InvalidReply;
        let json = parse(text, "reply", code)?;
        let known = ["kind", "text", "message", "veto", "pins"];
        let from = Arguments::new(json.root(), "reply", code, &known)?;
        match from.text("kind")?.as_deref() {
            Some("text") => {
                let text = from.owned("text")?;
                Ok(Reply::Text { text: from.required("text", text)? })
            }
            Some("done") => Ok(Reply::Done),
            Some("go") => {
                let pins = from.list("pins")?.unwrap_or_default();
                let pins = pins.iter().map(|index| index.count()).collect::<Option<_>>();
                let pins = pins.ok_or_else(|| from.wrong("pins", "indices of messages"))?;
                Ok(Reply::Go { veto: from.flag("veto")?.unwrap_or_default(), pins })
            }
            Some("failed") => {
                Ok(Reply::Failed { message: from.owned("message")?.unwrap_or_default() })
            }
            _ => Err(from.wrong("kind", "\"text\", \"done\", \"go\" or \"failed\"")),
        }
    }
}

/// Where the loop stands after a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Step {
    /// Perform these; more may follow once they are all answered. Empty while others are due.
    Effects {
        /// What to perform, in any order.
        effects: Vec<Effect>,
    },
    /// The plan is complete.
    Done {
        /// What came of it.
        outcome: Box<Outcome>,
    },
    /// The reply belonged to a plan that was abandoned; nothing happened.
    Idle,
}

/// Why a plan ended as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The view is smaller than any stage's watermark.
    UnderTrigger,
    /// Decisions were taken.
    Compacted,
    /// No window was given and none was learned.
    UnknownWindow,
    /// The view is over the trigger but no stage can make it smaller, or none could lately.
    NothingToCompact,
    /// The view exceeds the hard limit and cannot be made to fit.
    CannotFit,
    /// The error was a rate limit, which a smaller view does not cure.
    RateLimit,
    /// The error was no overflow.
    NotAnOverflow,
    /// The provider keeps the conversation itself: the request holds only what is new.
    ServerSideHistory,
    /// The host did not let the burst begin.
    Vetoed,
}

/// Why a decision was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The view had reached the watermark of the stage.
    Watermark,
    /// The view was over the hard limit.
    Limit,
    /// The provider had refused the view.
    Overflow,
    /// The host asked for it.
    Forced,
    /// The request held more bytes than it may.
    Bytes,
    /// The request held more images and files than it may.
    Images,
    /// Signed reasoning: its signature covers what was rewritten before it.
    Signature,
}

/// One decision of a burst.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Stage that took it.
    pub stage: Cow<'static, str>,
    /// `offloaded`, `cleared`, `elided`, `duplicate`, `superseded`, `removed`, `covered` or
    /// `dropped`.
    pub kind: &'static str,
    /// Why.
    pub reason: Cause,
    /// First message.
    pub index: u32,
    /// Part of it.
    pub part: u32,
    /// The message after the last, for covered and dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Reference for recall.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Calibrated tokens that it took out of the view.
    pub tokens_saved: u32,
}

/// What a burst means for the provider's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheReport {
    /// Bytes of the view's JSON that stand as before, from its start: whole messages.
    pub prefix_bytes: u32,
    /// Calibrated tokens of those, and of what precedes messages in a request: instructions and
    /// tools. 0 where the recall tool is new among these.
    pub prefix_tokens: u32,
    /// Calibrated tokens of the view behind that, which a cache has to be told anew.
    pub reread_tokens: u32,
}

/// An effect that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `summarize`, `put`, `decide`, `burst` or `flush`, or the protocol that failed.
    pub effect: &'static str,
    /// `host` where the host failed, else why the reply was refused.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

/// Something the host should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// Stable name.
    pub code: &'static str,
    /// In words, with the remedy.
    pub message: String,
}

/// Identifiers of a span and what became of them in its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Found in the span.
    pub found: usize,
    /// In the summary as it was written.
    pub kept: usize,
    /// Added to it verbatim.
    pub appended: usize,
}

/// A new summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryReport {
    /// Its text.
    pub text: String,
    /// Messages of the transcript that it ends before.
    pub covered: u32,
    /// Who wrote it.
    pub by: Author,
    /// Its estimated tokens.
    pub tokens: u32,
    /// Identifiers found and kept.
    pub audit: Audit,
}

/// What came of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// New decisions were taken.
    pub compacted: bool,
    /// Why the plan ended so.
    pub reason: Reason,
    /// Stages that took decisions, in order.
    pub stages: Vec<Cow<'static, str>>,
    /// Calibrated tokens of the view before, tools included.
    pub tokens_before: u32,
    /// The same after.
    pub tokens_after: u32,
    /// Whether that is within usable; true where no window is known.
    pub fits: bool,
    /// Context window, where known.
    pub window: Option<u32>,
    /// Window minus reserve.
    pub usable: Option<u32>,
    /// Size that starts a burst.
    pub trigger: Option<u32>,
    /// Size that ends one.
    pub target: Option<u32>,
    /// The plan answered a provider's overflow error.
    pub overflow: bool,
    /// What was decided.
    pub decisions: Vec<Decided>,
    /// What stays in the provider's prompt cache, where anything was decided.
    pub cache: Option<CacheReport>,
    /// Effects that failed.
    pub failures: Vec<Failure>,
    /// Malformed messages that the view mends, as met since the last outcome.
    pub repairs: Vec<Repair>,
    /// The summary, where a new one was taken.
    pub summary: Option<SummaryReport>,
    /// What the host should know.
    pub notices: Vec<Notice>,
    /// The size that could be reached, where it does not fit: what is left is pinned, unanswered,
    /// beside the messages, or what the stages may not touch.
    pub smallest: Option<u32>,
}

/// Size of a view.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// Calibrated tokens of the view, tools included.
    pub tokens: u32,
    /// Those of the tool schemas.
    pub tools: u32,
    /// Messages of the transcript.
    pub messages: u32,
    /// Real tokens per estimated one, as learned.
    pub ratio: f64,
    /// Context window, where known.
    pub window: Option<u32>,
    /// Window minus reserve.
    pub usable: Option<u32>,
    /// Size that starts a burst.
    pub trigger: Option<u32>,
    /// Size that ends one.
    pub target: Option<u32>,
    /// Tokens as a share of usable.
    pub full: Option<f64>,
}

/// The view, as a change of what was rendered last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Render {
    /// Stamp: changes when old messages look different.
    pub epoch: u32,
    /// Stamp: units that are settled.
    pub unit: u32,
    /// Stamp: messages of the view before the first unit that is not settled.
    pub items_before: u32,
    /// Messages of the last rendered view that still stand, from its start.
    pub keep: u32,
    /// Leading system messages of the transcript.
    pub lead: u32,
    /// The messages from there to this one are not shown, but for pinned ones.
    pub hidden: u32,
    /// What follows them.
    pub items: Vec<Item>,
}

/// The recall tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecallTool {
    /// Its name.
    pub name: String,
    /// What the model is told.
    pub description: String,
    /// JSON schema of its arguments, as JSON.
    pub parameters: String,
    /// The whole definition in the session's wire format, as JSON.
    pub definition: String,
}

//! What the host may choose; checked once, when a session opens.

use crate::arguments::{Arguments, parse};
use crate::error::{Error, ErrorCode};
use crate::format::FormatName;
use crate::json::{Kind, Value};
use crate::stage::StageOptions;

/// Options of a session. Every one has a default but `window`, which a provider's overflow error
/// can also teach.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Wire format of the messages. Default: told from the messages.
    pub format: Option<FormatName>,
    /// Context window of the model, tokens: prompt and output together.
    pub window: Option<f64>,
    /// Tokens kept free for the model's output. Default min(16,384, window/4); at most window/2.
    pub reserve: Option<f64>,
    /// Where a burst starts: a share of usable in (0, 1], or tokens from 101 up. Default: that
    /// of the preset, else 0.85.
    pub compact_at: Option<f64>,
    /// Where a burst may stop, as `compactAt`; must be lower. Default: that of the preset,
    /// else 0.60, or 0.7 of a `compactAt` up to that.
    pub compact_to: Option<f64>,
    /// Size of the protected tail: a share as `compactAt`, or tokens from 2 up. Default:
    /// that of the preset, else 0.20.
    pub tail: Option<f64>,
    /// Options under a name, which the others here win over: default, late, two-tier, truncate,
    /// sliding, prune, smart, summarize, llm-summarize or conversation. Default: default.
    pub preset: Option<String>,
    /// The stages, cheapest first. Default: those of the preset.
    pub stages: Option<Vec<StageOptions>>,
    /// Least share of the view, in [0, 1), that a burst must be able to free for it to begin; a view
    /// at 85 % of usable begins one all the same. Default: that of the preset, else 0.
    pub min_burst: Option<f64>,
    /// Model id: calibration and learned windows are kept per model.
    pub model: Option<String>,
    /// Endpoint of the model: learned windows are kept per endpoint and model.
    pub endpoint: Option<String>,
    /// 128-bit session secret as 32 hexadecimal digits; see `Engine::new`.
    pub secret: Option<String>,
    /// Name under which store keys are shared between sessions. Default: the secret.
    pub namespace: Option<String>,
    /// Tokenizers that the model's is alike: o200k, cl100k, claude, llama3, gemini or bytes.
    /// Default: told from `model`, else o200k.
    pub tokenizer: Option<String>,
    /// Tokens of an image of unknown size. Default 1,600.
    pub image_tokens: Option<f64>,
    /// Tokens of a file of unknown size. Default 2,250.
    pub file_tokens: Option<f64>,
    /// Tokens of audio of unknown length. Default 1,920.
    pub audio_tokens: Option<f64>,
    /// Most bytes of a request's messages, as JSON. Default: no limit.
    pub max_bytes: Option<f64>,
    /// Most images and files of a request. Default: no limit.
    pub max_images: Option<f64>,
    /// Signed reasoning of older turns stays although what stands before it was rewritten.
    pub keep_reasoning: bool,
    /// The summary is merged into the user message that follows, for chat templates that refuse
    /// two messages of one role in a row.
    pub alternate: bool,
    /// A cache marker ends the summary in the view, where the format has such markers.
    pub cache_marker: bool,
    /// The host answers `put` effects.
    pub store: bool,
    /// The host answers `summarize` effects.
    pub summarizer: bool,
    /// The host answers `burst` effects: it is asked before each burst.
    pub before_burst: bool,
    /// The host answers `flush` effects: it is handed what is about to be folded or dropped.
    pub flush: bool,
    /// Shape and limits of summaries.
    pub summary: SummaryOptions,
    /// The recall tool, or `false` to leave it out of markers and tools.
    pub recall: RecallOptions,
}

/// Shape and limits of summaries.
#[derive(Clone, Debug, Default)]
pub struct SummaryOptions {
    /// `task`, `handoff` or `conversation`: the sections of a summary. Default `task`.
    pub template: Option<String>,
    /// Sections of one's own, in place of a template's.
    pub sections: Option<Vec<SectionOptions>>,
    /// What summaries should give the most room to, where the request does not say.
    pub focus: Option<String>,
    /// What stands before the summary in the view. Default: that it is reference material and no
    /// instruction.
    pub prefix: Option<String>,
    /// Every fold starts over from the first message, without the previous summary.
    pub fresh: bool,
    /// Prompts are to be appended to the view up to the end of the span, so that the host's provider
    /// can reuse what it has cached of it; a span too large for that, or one that starts over, has a
    /// prompt that stands alone.
    pub append: bool,
    /// Cap of a summary, tokens. Default min(4,096, usable/8), at least 64.
    pub max_tokens: Option<f64>,
    /// Context window of the summarizer, tokens. Default: the session's own.
    pub window: Option<f64>,
    /// Most summarizer calls in one burst; past it the local summarizer takes over. Default 8.
    pub max_calls: Option<f64>,
    /// Failures in a row after which the summarizer is left alone for a while. Default 3.
    pub max_failures: Option<f64>,
    /// Least share of the view that a fold must free. Default 0.10.
    pub min_savings: Option<f64>,
}

/// A section of a summary.
#[derive(Clone, Debug, Default)]
pub struct SectionOptions {
    /// Its heading.
    pub name: String,
    /// What belongs into it, for the summarizer.
    pub about: Option<String>,
    /// What the local summarizer files there: intent, requests, state, questions, done, decisions,
    /// facts, artifacts, constraints or next. Default: told from the name.
    pub holds: Vec<String>,
}

/// The recall tool.
#[derive(Clone, Debug)]
pub struct RecallOptions {
    /// Name of the tool. Default `recall`.
    pub name: String,
    /// Most tokens of a page. Default 4,000; never more than half of the room left.
    pub page_tokens: Option<f64>,
    /// No recall: markers name no reference and there is no tool.
    pub off: bool,
}

impl Default for RecallOptions {
    fn default() -> RecallOptions {
        RecallOptions { name: "recall".to_owned(), page_tokens: None, off: false }
    }
}

impl Options {
    /// Reads options from JSON; members are named as in JavaScript (`compactAt`).
    ///
    /// # Errors
    /// `invalid_option` naming the member, unknown ones too.
    pub fn from_json(text: &str) -> Result<Options, Error> {
        let json = parse(text, "options", ErrorCode::InvalidOption)?;
        let known = [
            "format",
            "window",
            "reserve",
            "compactAt",
            "compactTo",
            "tail",
            "preset",
            "stages",
            "minBurst",
            "model",
            "endpoint",
            "secret",
            "namespace",
            "tokenizer",
            "imageTokens",
            "fileTokens",
            "audioTokens",
            "maxBytes",
            "maxImages",
            "keepReasoning",
            "alternate",
            "cacheMarker",
            "store",
            "summarizer",
            "beforeBurst",
            "flush",
            "summary",
            "recall",
        ];
        let from = Arguments::new(json.root(), "options", ErrorCode::InvalidOption, &known)?;
        let format = match from.text("format")? {
            None => None,
            Some(name) if name == "auto" => None,
            Some(name) => {
                let names = FormatName::ALL.map(FormatName::as_str).join(", ");
                let wrong = || from.wrong("format", &["auto, ", &*names].concat());
                Some(FormatName::parse(&name).ok_or_else(wrong)?)
            }
        };
        let stages = match from.list("stages")? {
            None => None,
            Some(list) => Some(
                list.into_iter()
                    .enumerate()
                    .map(|(index, stage)| StageOptions::read(stage, index))
                    .collect::<Result<Vec<_>, _>>()?,
            ),
        };
        Ok(Options {
            format,
            window: from.number("window")?,
            reserve: from.number("reserve")?,
            compact_at: from.number("compactAt")?,
            compact_to: from.number("compactTo")?,
            tail: from.number("tail")?,
            preset: from.owned("preset")?,
            stages,
            min_burst: from.number("minBurst")?,
            model: from.owned("model")?,
            endpoint: from.owned("endpoint")?,
            secret: from.owned("secret")?,
            namespace: from.owned("namespace")?,
            tokenizer: from.owned("tokenizer")?,
            image_tokens: from.number("imageTokens")?,
            file_tokens: from.number("fileTokens")?,
            audio_tokens: from.number("audioTokens")?,
            max_bytes: from.number("maxBytes")?,
            max_images: from.number("maxImages")?,
            keep_reasoning: from.flag("keepReasoning")?.unwrap_or_default(),
            alternate: from.flag("alternate")?.unwrap_or_default(),
            cache_marker: from.flag("cacheMarker")?.unwrap_or_default(),
            store: from.flag("store")?.unwrap_or_default(),
            summarizer: from.flag("summarizer")?.unwrap_or_default(),
            before_burst: from.flag("beforeBurst")?.unwrap_or_default(),
            flush: from.flag("flush")?.unwrap_or_default(),
            summary: match from.get("summary") {
                None => SummaryOptions::default(),
                Some(value) => SummaryOptions::read(value)?,
            },
            recall: match from.get("recall") {
                None => RecallOptions::default(),
                Some(value) => RecallOptions::read(value)?,
            },
        })
    }
}

impl SummaryOptions {
    fn read(value: Value<'_>) -> Result<SummaryOptions, Error> {
        let known = [
            "template",
            "sections",
            "focus",
            "prefix",
            "fresh",
            "request",
            "maxTokens",
            "window",
            "maxCalls",
            "maxFailures",
            "minSavings",
        ];
        let from = Arguments::new(value, "options.summary", ErrorCode::InvalidOption, &known)?;
        let sections = match from.list("sections")? {
            None => None,
            Some(list) => {
                Some(list.into_iter().map(SectionOptions::read).collect::<Result<Vec<_>, _>>()?)
            }
        };
        Ok(SummaryOptions {
            template: from.owned("template")?,
            sections,
            focus: from.owned("focus")?,
            prefix: from.owned("prefix")?,
            fresh: from.flag("fresh")?.unwrap_or_default(),
            append: match from.text("request")?.as_deref() {
                None | Some("standalone") => false,
                Some("append") => true,
                _ => return Err(from.wrong("request", "\"standalone\" or \"append\"")),
            },
            max_tokens: from.number("maxTokens")?,
            window: from.number("window")?,
            max_calls: from.number("maxCalls")?,
            max_failures: from.number("maxFailures")?,
            min_savings: from.number("minSavings")?,
        })
    }
}

impl SectionOptions {
    fn read(value: Value<'_>) -> Result<SectionOptions, Error> {
        if let Some(name) = value.string() {
            return Ok(SectionOptions { name: name.into_owned(), ..SectionOptions::default() });
        }
        let (place, code) = ("options.summary.sections", ErrorCode::InvalidOption);
        let from = Arguments::new(value, place, code, &["name", "about", "holds"])?;
        let name = from.owned("name")?;
        let holds = from.list("holds")?.unwrap_or_default();
        let holds = holds.iter().map(|topic| topic.string().map(std::borrow::Cow::into_owned));
        Ok(SectionOptions {
            name: from.required("name", name)?,
            about: from.owned("about")?,
            holds: holds.collect::<Option<_>>().ok_or_else(|| from.wrong("holds", "strings"))?,
        })
    }
}

impl RecallOptions {
    fn read(value: Value<'_>) -> Result<RecallOptions, Error> {
        if value.kind() == Kind::Bool {
            let off = value.boolean() == Some(false);
            return Ok(RecallOptions { off, ..RecallOptions::default() });
        }
        let known = ["name", "pageTokens"];
        let from = Arguments::new(value, "options.recall", ErrorCode::InvalidOption, &known)?;
        Ok(RecallOptions {
            name: from.owned("name")?.unwrap_or(RecallOptions::default().name),
            page_tokens: from.number("pageTokens")?,
            off: false,
        })
    }
}

/// A whole number not under `least`, where one is given.
pub(crate) fn whole(place: &str, value: Option<f64>, least: u32) -> Result<Option<u32>, Error> {
    match value {
        None => Ok(None),
        Some(value)
            if value.fract() == 0.0
                && value >= f64::from(least)
                && value <= f64::from(MAX_TOKENS) =>
        {
            Ok(Some(value as u32))
        }
        Some(_) => Err(invalid(place, &format!("a whole number from {least} to {MAX_TOKENS}"))),
    }
}

pub(crate) fn invalid(place: &str, expected: &str) -> Error {
    Error::expected(ErrorCode::InvalidOption, place, expected)
}

/// Sizes above this are mistakes: no window comes near a billion tokens.
const MAX_TOKENS: u32 = 1_000_000_000;

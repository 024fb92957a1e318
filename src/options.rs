//! What the host may choose; checked once, when a session opens.

use serde::Serialize;

use crate::arguments::{Arguments, parse};
use crate::error::{Error, ErrorCode};
use crate::format::FormatName;
use crate::json::{Kind, Value};
use crate::stage::StageOptions;

/// Options of a session. Every one has a default but `window`, which a provider's overflow error
/// can also teach.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Wire format of the messages.
    pub format: FormatName,
    /// Context window of the model, tokens: prompt and output together.
    pub window: Option<f64>,
    /// Tokens kept free for the model's output. Default min(16,384, window/4); at most window/2.
    pub reserve: Option<f64>,
    /// Where a burst starts: a fraction of usable in (0, 1], or tokens above 1. Default 0.85.
    pub compact_at: Option<f64>,
    /// Where a burst may stop, as `compactAt`; must be lower. Default 0.60.
    pub compact_to: Option<f64>,
    /// Size of the protected tail, as `compactAt`. Default 0.20.
    pub tail: Option<f64>,
    /// The stages, cheapest first. Default offload, clear, summarize, elide, drop.
    pub stages: Option<Vec<StageOptions>>,
    /// Model id: calibration and learned windows are kept per model.
    pub model: Option<String>,
    /// Endpoint of the model: learned windows are kept per endpoint and model.
    pub endpoint: Option<String>,
    /// 128-bit session secret as 32 hexadecimal digits; see `Engine::new`.
    pub secret: Option<String>,
    /// Name under which store keys are shared between sessions. Default: the secret.
    pub namespace: Option<String>,
    /// Tokens of an image or file of unknown size. Default 1,600.
    pub image_tokens: Option<f64>,
    /// The host answers `put` effects.
    pub store: bool,
    /// The host answers `summarize` effects.
    pub summarizer: bool,
    /// Limits of summaries.
    pub summary: SummaryOptions,
    /// The recall tool, or `false` to leave it out of markers and tools.
    pub recall: RecallOptions,
}

/// Limits of summaries.
#[derive(Clone, Debug, Default)]
pub struct SummaryOptions {
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
            "format", "window", "reserve", "compactAt", "compactTo", "tail", "stages", "model",
            "endpoint", "secret", "namespace", "imageTokens", "store", "summarizer", "summary",
            "recall",
        ];
        let from = Arguments::new(json.root(), "options", ErrorCode::InvalidOption, &known)?;
        let format = match from.text("format")? {
            None => FormatName::default(),
            Some(name) => FormatName::parse(&name)
                .ok_or_else(|| from.wrong("format", "\"openai-chat\""))?,
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
            stages,
            model: from.owned("model")?,
            endpoint: from.owned("endpoint")?,
            secret: from.owned("secret")?,
            namespace: from.owned("namespace")?,
            image_tokens: from.number("imageTokens")?,
            store: from.flag("store")?.unwrap_or_default(),
            summarizer: from.flag("summarizer")?.unwrap_or_default(),
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
        let known = ["maxTokens", "window", "maxCalls", "maxFailures", "minSavings"];
        let from =
            Arguments::new(value, "options.summary", ErrorCode::InvalidOption, &known)?;
        Ok(SummaryOptions {
            max_tokens: from.number("maxTokens")?,
            window: from.number("window")?,
            max_calls: from.number("maxCalls")?,
            max_failures: from.number("maxFailures")?,
            min_savings: from.number("minSavings")?,
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

/// A watermark: a share of usable, or tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mark {
    Share(f64),
    Tokens(u32),
}

impl Mark {
    pub(crate) fn read(place: &str, value: f64) -> Result<Mark, Error> {
        if value > 0.0 && value <= 1.0 {
            Ok(Mark::Share(value))
        } else {
            match whole(place, Some(value), 1) {
                Ok(Some(tokens)) => Ok(Mark::Tokens(tokens)),
                _ => Err(invalid(place, "a share in (0, 1] or whole tokens above 1")),
            }
        }
    }

    /// Tokens of the mark, never more than `usable` nor less than 1.
    pub(crate) fn of(self, usable: u32) -> u32 {
        match self {
            Mark::Share(share) => ((f64::from(usable) * share) as u32).max(1),
            Mark::Tokens(tokens) => tokens.min(usable).max(1),
        }
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
        Some(_) => {
            Err(invalid(place, &format!("a whole number from {least} to {MAX_TOKENS}")))
        }
    }
}

pub(crate) fn invalid(place: &str, expected: &str) -> Error {
    Error::new(ErrorCode::InvalidOption, place, format!("expected {expected}"))
}

/// Sizes above this are mistakes: no window comes near a billion tokens.
const MAX_TOKENS: u32 = 1_000_000_000;

/// The part of the options that fixes sizes, checked.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub window: Option<u32>,
    reserve: Option<u32>,
    compact_at: Mark,
    compact_to: Mark,
    tail: Mark,
    pub image_tokens: u32,
    summary_max: Option<u32>,
    pub summary_window: Option<u32>,
    pub max_calls: u32,
    pub max_failures: u32,
    pub min_savings: f64,
    pub page_tokens: u32,
}

impl Sizes {
    pub(crate) fn read(options: &Options) -> Result<Sizes, Error> {
        let mark = |name: &str, value: Option<f64>, default: f64| {
            Mark::read(&format!("options.{name}"), value.unwrap_or(default))
        };
        let compact_at = mark("compactAt", options.compact_at, 0.85)?;
        let compact_to = mark("compactTo", options.compact_to, default_target(compact_at))?;
        let crossed = match (compact_at, compact_to) {
            (Mark::Share(at), Mark::Share(to)) => to >= at,
            (Mark::Tokens(at), Mark::Tokens(to)) => to >= at,
            _ => false, // known only with the window; then the target gives way
        };
        if crossed {
            return Err(invalid("options.compactTo", "a mark below compactAt"));
        }
        let min_savings = options.summary.min_savings.unwrap_or(0.10);
        if !(0.0..1.0).contains(&min_savings) {
            return Err(invalid("options.summary.minSavings", "a share in [0, 1)"));
        }
        let summary = &options.summary;
        Ok(Sizes {
            window: whole("options.window", options.window, 1)?,
            reserve: whole("options.reserve", options.reserve, 0)?,
            compact_at,
            compact_to,
            tail: mark("tail", options.tail, 0.20)?,
            image_tokens: whole("options.imageTokens", options.image_tokens, 0)?.unwrap_or(1600),
            summary_max: whole("options.summary.maxTokens", summary.max_tokens, 16)?,
            summary_window: whole("options.summary.window", summary.window, 256)?,
            max_calls: whole("options.summary.maxCalls", summary.max_calls, 0)?.unwrap_or(8),
            max_failures: whole("options.summary.maxFailures", summary.max_failures, 1)?
                .unwrap_or(3),
            min_savings,
            page_tokens: whole("options.recall.pageTokens", options.recall.page_tokens, 50)?
                .unwrap_or(4000),
        })
    }

    pub(crate) fn budget(&self, window: u32) -> Budget {
        // A reserve of half the window at most, so that usable grows with the window.
        let reserve = self.reserve.unwrap_or_else(|| (window / 4).min(16_384)).min(window / 2);
        let usable = (window - reserve).max(1);
        let trigger = self.compact_at.of(usable);
        let target = self.compact_to.of(usable).min((trigger - 1).max(1));
        Budget {
            window,
            usable,
            trigger,
            target,
            tail: self.tail.of(usable),
            summary: self.summary_max.unwrap_or((usable / 8).clamp(64, 4096)).min(usable / 4),
        }
    }
}

/// The default target, kept under an unusually low `compactAt`.
fn default_target(compact_at: Mark) -> f64 {
    match compact_at {
        Mark::Share(at) if at <= 0.60 => at * 0.7,
        _ => 0.60,
    }
}

/// Sizes that follow from one window, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Context window: prompt and output together.
    pub window: u32,
    /// Window minus the output reserve: the hard limit of a view.
    pub usable: u32,
    /// A view of this size or more starts a burst.
    pub trigger: u32,
    /// A burst stops at this size or less.
    pub target: u32,
    /// Size of the protected tail.
    pub tail: u32,
    /// Cap of a summary.
    pub summary: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(window: u32) -> Budget {
        Sizes::read(&Options::default()).unwrap().budget(window)
    }

    #[test]
    fn usable_grows_with_the_window() {
        let mut last = 0;
        for window in 1..70_000 {
            let usable = budget(window).usable;
            assert!(usable >= last && usable >= window / 2, "{window}");
            last = usable;
        }
        let usual = budget(200_000);
        assert_eq!((usual.usable, usual.trigger, usual.target), (183_616, 156_073, 110_169));
        assert_eq!(budget(1).target, 1);
    }

    #[test]
    fn bad_options_name_themselves() {
        for (json, place) in [
            (r#"{"compactAt":1.5}"#, "options.compactAt"),
            (r#"{"compactAt":-1}"#, "options.compactAt"),
            (r#"{"compactAt":0.5,"compactTo":0.5}"#, "options.compactTo"),
            (r#"{"compactAt":500,"compactTo":600}"#, "options.compactTo"),
            (r#"{"window":0}"#, "options.window"),
            (r#"{"window":10.5}"#, "options.window"),
            (r#"{"reserve":-1}"#, "options.reserve"),
            (r#"{"tail":0}"#, "options.tail"),
            (r#"{"summary":{"minSavings":1}}"#, "options.summary.minSavings"),
        ] {
            let options = Options::from_json(json).unwrap();
            assert_eq!(Sizes::read(&options).unwrap_err().path(), place, "{json}");
        }
        let nan = Options { compact_at: Some(f64::NAN), ..Options::default() };
        assert_eq!(Sizes::read(&nan).unwrap_err().path(), "options.compactAt");
    }
}

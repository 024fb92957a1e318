//! The budget: window, reserve, watermarks and tail, all in tokens.

use serde::Serialize;

use crate::count::media;
use crate::error::Error;
use crate::options::{Options, invalid, whole};

/// A watermark: a share of usable, or tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mark {
    Share(f64),
    Tokens(u32),
}

impl Mark {
    /// Reads a mark; `least` is the smallest number of tokens that is no mistake.
    pub(crate) fn read(place: &str, value: f64, least: u32) -> Result<Mark, Error> {
        if value > 0.0 && value <= 1.0 {
            Ok(Mark::Share(value))
        } else {
            match whole(place, Some(value), least) {
                Ok(Some(tokens)) => Ok(Mark::Tokens(tokens)),
                _ => {
                    let share = "a share in (0, 1], such as 0.85, or whole tokens from ";
                    Err(invalid(place, &[share, &least.to_string(), " up"].concat()))
                }
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

/// The part of the options that fixes sizes, checked.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub window: Option<u32>,
    reserve: Option<u32>,
    /// Most tokens that the request lets the model write.
    pub output: Option<u32>,
    compact_at: Mark,
    compact_to: Mark,
    tail: Mark,
    pub image_tokens: u32,
    pub file_tokens: u32,
    pub audio_tokens: u32,
    pub max_bytes: Option<u32>,
    pub max_images: Option<u32>,
    summary_max: Option<u32>,
    pub summary_window: Option<u32>,
    pub max_calls: u32,
    pub max_failures: u32,
    pub min_savings: f64,
    pub min_burst: f64,
    pub page_tokens: u32,
}

impl Sizes {
    pub(crate) fn read(options: &Options) -> Result<Sizes, Error> {
        let mark = |name: &str, value: Option<f64>, default: f64, least: u32| {
            Mark::read(&["options.", name].concat(), value.unwrap_or(default), least)
        };
        let compact_at = mark("compactAt", options.compact_at, 0.85, NO_PERCENT)?;
        let compact_to =
            mark("compactTo", options.compact_to, default_target(compact_at), NO_PERCENT)?;
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
        let min_burst = options.min_burst.unwrap_or_default();
        if !(0.0..1.0).contains(&min_burst) {
            return Err(invalid("options.minBurst", "a share in [0, 1)"));
        }
        let summary = &options.summary;
        Ok(Sizes {
            window: whole("options.window", options.window, 1)?,
            reserve: whole("options.reserve", options.reserve, 0)?,
            output: None,
            compact_at,
            compact_to,
            tail: mark("tail", options.tail, 0.20, 2)?,
            image_tokens: whole("options.imageTokens", options.image_tokens, 0)?
                .unwrap_or(media::IMAGE),
            file_tokens: whole("options.fileTokens", options.file_tokens, 0)?
                .unwrap_or(media::FILE),
            audio_tokens: whole("options.audioTokens", options.audio_tokens, 0)?
                .unwrap_or(media::AUDIO),
            max_bytes: whole("options.maxBytes", options.max_bytes, 1)?,
            max_images: whole("options.maxImages", options.max_images, 0)?,
            summary_max: whole("options.summary.maxTokens", summary.max_tokens, 16)?,
            summary_window: whole("options.summary.window", summary.window, 1000)?,
            max_calls: whole("options.summary.maxCalls", summary.max_calls, 0)?.unwrap_or(8),
            max_failures: whole("options.summary.maxFailures", summary.max_failures, 1)?
                .unwrap_or(3),
            min_savings,
            min_burst,
            page_tokens: whole("options.recall.pageTokens", options.recall.page_tokens, 50)?
                .unwrap_or(4000),
        })
    }

    pub(crate) fn budget(&self, window: u32) -> Budget {
        // A reserve of half the window at most, so that usable grows with the window.
        let reserve = self.reserve.unwrap_or_else(|| (window / 4).min(16_384));
        let reserve = reserve.max(self.output.unwrap_or(0)).min(window / 2);
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

/// Watermarks below are meant as percentages: 85 for 0.85.
const NO_PERCENT: u32 = 101;

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

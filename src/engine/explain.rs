//! What a host may ask about a session: why a message stands in the view as it does, and what
//! compaction came to so far.

use serde::Serialize;

use super::Engine;
use crate::decision::Place;
use crate::error::{Error, ErrorCode};
use crate::view::Repair;

/// How a message stands in the view, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// As it is: a leading system message, which nothing changes.
    System,
    /// As it is: the caller pinned it, or its format demands it.
    Pinned,
    /// As it is: the model has not answered it.
    Unanswered,
    /// As it is: among the newest, which only elide touches.
    Tail,
    /// As it is: the stage smart, or one of the host's, left it among messages that it dropped.
    Kept,
    /// As it is: no stage had to decide on it so far.
    Untouched,
    /// Some of its parts were decided on.
    Changed,
    /// Mended: the provider would refuse it as it is.
    Mended,
    /// Not there: the summary stands for it.
    Covered,
    /// Not there: it left without a summary.
    Dropped,
}

impl Standing {
    /// In words, for people.
    pub fn text(self) -> &'static str {
        match self {
            Standing::System => "as it is: a leading system message",
            Standing::Pinned => "as it is: it is pinned",
            Standing::Unanswered => "as it is: the model has not answered it yet",
            Standing::Tail => "as it is: it is in the protected tail",
            Standing::Kept => "as it is: it was kept among messages that left",
            Standing::Untouched => "as it is: nothing had to be decided on it",
            Standing::Changed => "parts of it are smaller or gone; recall has them whole",
            Standing::Mended => "mended: the provider would refuse it as it is",
            Standing::Covered => "not shown: the summary stands for it",
            Standing::Dropped => "not shown: it was dropped for lack of room",
        }
    }
}

/// Why a message is as it is in the view.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The message.
    pub index: u32,
    /// Who speaks: `system`, `user`, `assistant`, `tool` or `other`.
    pub role: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// The same in words.
    pub text: &'static str,
    /// First message of its unit: what is kept or dropped together.
    pub from: u32,
    /// The message after the last of its unit.
    pub to: u32,
    /// Calibrated tokens as the transcript has it.
    pub tokens: u32,
    /// Calibrated tokens in the view.
    pub shown: u32,
    /// Reference of the summary that stands for it.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Its parts.
    pub parts: Vec<Explained>,
    /// What the view mends of it.
    pub repairs: Vec<Repair>,
}

/// One part of a message that is explained.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Its place in the message.
    pub part: u32,
    /// `text`, `reasoning`, `call`, `result`, `image`, `file` or `opaque`.
    pub kind: &'static str,
    /// Tool of a call or of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Calibrated tokens as the transcript has it.
    pub tokens: u32,
    /// Calibrated tokens in the view.
    pub shown: u32,
    /// What was decided on it, as [`crate::Decided::kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// Reference for recall.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// What compaction came to so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Messages of the transcript.
    pub messages: u32,
    /// Calibrated tokens of all of them, and what goes with them: the request without tidemark.
    pub transcript_tokens: u32,
    /// Calibrated tokens of the view, and what goes with it.
    pub tokens: u32,
    /// Tokens as a share of usable, where the window is known.
    pub full: Option<f64>,
    /// Bursts of the session that decided something.
    pub bursts: u32,
    /// Calls of the host's summarizer.
    pub summarizer_calls: u32,
    /// Calibrated tokens that all bursts took out of the view.
    pub tokens_saved: u32,
    /// Parts that are smaller or gone in the view.
    pub parts: u32,
    /// Messages that the summary stands for.
    pub covered: u32,
    /// Messages that were dropped.
    pub dropped: u32,
    /// Tokens by which the view grows from plan to plan, lately.
    pub growth: u32,
    /// Plans until the next burst at that pace, where both are known.
    pub turns_to_burst: Option<u32>,
}

impl Engine {
    /// Why a message is as it is in the view.
    ///
    /// # Errors
    /// `invalid_option` where there is no such message.
    pub fn explain(&self, index: u32) -> Result<Explanation, Error> {
        let transcript = &self.transcript;
        let Some(message) = transcript.messages.get(index as usize) else {
            let what = "no message of that index was read";
            return Err(Error::at(ErrorCode::InvalidOption, "index", what));
        };
        let view = self.view();
        let unit = transcript.units[transcript.unit_of(index)];
        let shows = view.shows(&unit);
        let body = index.checked_sub(transcript.lead);
        let parts: Vec<Explained> = message
            .parts
            .iter()
            .zip(0u32..)
            .map(|(part, at)| {
                let place = body.map(|body| Place { body, part: at });
                let decision = place.and_then(|place| self.decisions.parts.get(place));
                let now = match decision {
                    Some(decision) => {
                        part.framing + self.family.text(&view.replacement(message, part, decision))
                    }
                    None => part.tokens,
                };
                Explained {
                    part: at,
                    kind: part.kind.name(),
                    tool: (!part.name.is_empty()).then(|| part.name.as_ref().to_owned()),
                    tokens: self.scaled(part.tokens),
                    shown: if shows { self.scaled(now) } else { 0 },
                    decision: decision.map(|decision| decision.action.name()),
                    reference: decision.map(|decision| decision.reference.to_string()),
                }
            })
            .collect();
        let mut repairs = if shows { view.unit(&unit).repairs } else { Vec::new() };
        repairs.retain(|repair| repair.index == index);
        let covered = body.is_some_and(|body| body < self.decisions.covered());
        let changed = parts.iter().any(|part| part.decision.is_some());
        let tail = self.budget().map_or(u32::MAX, |budget| self.tail(&budget, false));
        let standing = match () {
            () if !shows && covered => Standing::Covered,
            () if !shows => Standing::Dropped,
            () if changed => Standing::Changed,
            () if !repairs.is_empty() => Standing::Mended,
            () if body.is_none() => Standing::System,
            () if message.pinned => Standing::Pinned,
            () if index >= transcript.unanswered_from() => Standing::Unanswered,
            () if index >= tail => Standing::Tail,
            () if body.is_some_and(|body| body < self.decisions.hidden()) => Standing::Kept,
            () => Standing::Untouched,
        };
        let sum = |all: fn(&Explained) -> u32| parts.iter().map(all).sum::<u32>();
        let tokens = self.scaled(message.tokens);
        let summary = self.decisions.summary.as_ref().filter(|_| standing == Standing::Covered);
        Ok(Explanation {
            index,
            role: message.role.name(),
            standing,
            text: standing.text(),
            from: unit.start,
            to: unit.end,
            tokens,
            shown: match shows {
                true => (tokens + sum(|part| part.shown)).saturating_sub(sum(|part| part.tokens)),
                false => 0,
            },
            reference: summary.map(|summary| summary.reference.to_string()),
            parts,
            repairs,
        })
    }

    /// What compaction came to so far; totals are kept in the checkpoint.
    pub fn stats(&self) -> Stats {
        let tokens = self.tokens();
        let budget = self.budget();
        let all = self.transcript.messages.iter().map(|message| message.tokens);
        let all = all.fold(0u32, u32::saturating_add);
        let growth = self.totals.growth / 16;
        let kept = self.decisions.kept.iter().map(|(from, to)| to - from).sum::<u32>();
        let covered = self.decisions.covered();
        Stats {
            messages: self.transcript.len(),
            transcript_tokens: self.scaled(all.saturating_add(self.system + self.tools)),
            tokens,
            full: budget.map(|budget| f64::from(tokens) / f64::from(budget.usable)),
            bursts: self.totals.bursts,
            summarizer_calls: self.totals.calls,
            tokens_saved: self.totals.saved,
            parts: self.decisions.parts.iter().count() as u32,
            covered,
            dropped: self.decisions.dropped.saturating_sub(covered + kept),
            growth,
            turns_to_burst: budget.filter(|_| growth > 0).map(|budget| {
                let stages = self.stages.iter().map(|stage| stage.at(&budget)).min();
                let at = stages.unwrap_or(budget.trigger).min(budget.usable);
                at.saturating_sub(tokens).div_ceil(growth)
            }),
        }
    }
}

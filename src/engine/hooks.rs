//! Hooks: what the host may say before a burst begins and before messages leave, and windows
//! that sessions share.

use serde::Serialize;

use super::Engine;
use super::burst::{Burst, Waiting};
use super::outcome::{Effect, Reason, Step};
use crate::decision::Author;
use crate::summary;

/// A summary that there was, or is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryVersion {
    /// Counts the summaries of the session from 1; 0 where an old checkpoint does not say.
    pub version: u32,
    /// The message of the transcript that it ends before.
    pub covered: u32,
    /// Who wrote it.
    pub by: Author,
    /// Reference by which recall pages through the messages.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Where a learned window holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WindowKey {
    /// Endpoint of the model, or nothing.
    pub endpoint: String,
    /// Model, or nothing.
    pub model: String,
}

impl Engine {
    /// Asks the host whether the burst may begin, where it wants to be asked.
    pub(super) fn gate(&mut self, mut burst: Burst) -> Step {
        if !self.options.before_burst || self.dry.is_some() {
            self.burst = Some(burst);
            return self.open();
        }
        let id = self.effect_id();
        let cause = match (burst.overflow, burst.force) {
            (true, _) => "overflow",
            (_, true) => "force",
            _ => "size",
        };
        let effect = Effect::Burst {
            id,
            cause,
            tokens: burst.before,
            target: burst.budget.target,
            tail: burst.tail,
        };
        burst.waiting.push((id, Waiting::Gate));
        self.burst = Some(burst);
        Step::Effects { effects: vec![effect] }
    }

    /// Begins the burst that the host was asked about, or lets it be.
    pub(super) fn opened(&mut self, mut burst: Burst, veto: bool, pins: &[u32]) -> Step {
        if veto {
            return self.idle(Reason::Vetoed);
        }
        let lead = self.transcript.lead;
        let hidden = lead.saturating_add(self.decisions.hidden());
        for &index in pins {
            // What left the view stays out of it.
            let message = self.transcript.messages.get_mut(index as usize);
            let Some(message) = message.filter(|message| index >= hidden && !message.pinned) else {
                continue;
            };
            let kept = &mut self.decisions.pins;
            let place = (index - lead, message.spine);
            if let Err(at) = kept.binary_search(&place)
                && kept.len() < MAX_PINS
            {
                kept.insert(at, place);
                message.pinned = true;
                self.transcript.marked = true;
            }
        }
        burst.tail = self.tail(&burst.budget, burst.overflow);
        self.burst = Some(burst);
        self.open()
    }

    /// Hands the host the text of everything before this message that is about to be folded or
    /// dropped, once for every message.
    pub(super) fn flush(&mut self, burst: &mut Burst, to: u32) -> Option<Effect> {
        // What the summary stands for left before.
        let known = self.flushed.max(self.decisions.covered());
        let from = self.transcript.lead.saturating_add(known);
        if !self.options.flush || self.dry.is_some() || from >= to {
            return None;
        }
        let text = summary::full_text(&summary::entries(&self.transcript, from, to));
        // Whatever the host makes of it, it had its turn.
        self.flushed = to - self.transcript.lead;
        let id = self.effect_id();
        burst.waiting.push((id, Waiting::Flush));
        Some(Effect::Flush { id, text, from, to })
    }

    /// The summaries of this session, oldest first, the running one last; the last few dozen.
    pub fn summaries(&self) -> Vec<SummaryVersion> {
        let lead = self.transcript.lead;
        let spans = self.decisions.spans.iter().copied();
        let all = spans.chain(self.decisions.summary.as_ref().map(|summary| summary.span()));
        all.map(|span| SummaryVersion {
            version: span.version,
            covered: span.covered.saturating_add(lead),
            by: span.by,
            reference: span.reference.to_string(),
        })
        .collect()
    }

    /// Where a window that is learned now would hold.
    pub fn window_key(&self) -> WindowKey {
        let endpoint = self.options.endpoint.clone().unwrap_or_default();
        WindowKey { endpoint, model: self.model().to_owned() }
    }

    /// The window that was learned for this endpoint and model.
    pub fn learned_window(&self) -> Option<u32> {
        let key = self.learned_key();
        self.windows.iter().find(|(at, _)| *at == key).map(|(_, window)| *window)
    }

    /// Takes in a window that another session learned for this endpoint and model.
    pub fn share_window(&mut self, window: u32) {
        if PLAUSIBLE_WINDOWS.contains(&window) && self.learned_window() != Some(window) {
            self.learn_window(self.learned_key(), window);
        }
    }
}

/// Messages that hooks may pin in one session.
const MAX_PINS: usize = 1024;

/// Windows outside are mistakes of whoever reported them, tokens.
pub(crate) const PLAUSIBLE_WINDOWS: std::ops::RangeInclusive<u32> = 1_024..=20_000_000;

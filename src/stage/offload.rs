//! offload: a large old result becomes a head and tail preview.

use super::{Proposal, Situation, Stage};
use crate::decision::Action;

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Vec<Proposal> {
    let min = if situation.overflow { 0 } else { stage.min_tokens };
    let proposals = situation.results(stage).into_iter().filter_map(|(place, message, result)| {
        // What was decided before is left to the later stages.
        let decided = situation.view.decisions.parts.get(place).is_some();
        if decided || result.tokens < min || result.media {
            return None;
        }
        // The end of an output says how it ended, so it gets as much as the beginning.
        situation.preview(place, message, result, stage.preview_tokens, |bytes| Action::Offloaded {
            head: bytes / 2,
            tail: bytes - bytes / 2,
        })
    });
    situation.until_target(stage, proposals)
}

/// Bytes that are worth so many tokens in a text of that size.
pub(super) fn preview_bytes(tokens: u32, bytes: u32, preview: u32) -> u32 {
    (u64::from(bytes) * u64::from(preview) / u64::from(tokens.max(1))) as u32
}

//! media: an old image or file becomes a short marker.

use super::{Proposal, Situation, Stage};
use crate::decision::{Action, Place};
use crate::transcript::PartKind;

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Vec<Proposal> {
    let transcript = situation.view.transcript;
    let mut found = Vec::new();
    for index in situation.shown_messages() {
        let message = &transcript.messages[index as usize];
        for (part, at) in message.parts.iter().zip(0u32..) {
            let place = Place { body: index - transcript.lead, part: at };
            let holds = matches!(part.kind, PartKind::Image | PartKind::File)
                || (part.kind == PartKind::Result && part.media && part.link.is_some());
            let holds = holds && part.is_replaceable();
            if holds && situation.view.decisions.parts.get(place).is_none() {
                found.push((place, message, part));
            }
        }
    }
    // A budget of images knows no tail: the newest as many stay.
    let over = found.len().saturating_sub(situation.max_images.unwrap_or(u32::MAX) as usize);
    let keep = found.len().saturating_sub(stage.keep_last);
    let mut tokens = situation.tokens;
    let mut taken = Vec::new();
    for (at, (place, message, part)) in found.into_iter().enumerate() {
        let old = at < keep && place.body + transcript.lead < situation.tail;
        let must = at < over || (old && situation.over_bytes);
        if message.pinned || !(must || (old && tokens > situation.target)) {
            continue;
        }
        let decision = situation.decision(place, message, part, Action::Cleared);
        let marker =
            situation.view.family.text(&situation.view.replacement(message, part, &decision));
        let saved = part.content_tokens().saturating_sub(marker);
        if must || saved > 0 {
            tokens = tokens.saturating_sub(saved);
            taken.push(Proposal { place, decision, saved });
        }
    }
    taken
}

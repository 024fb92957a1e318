//! clear: an old result becomes a short marker, and so does an old preview.

use super::{Proposal, Situation, Stage};
use crate::decision::Action;

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Vec<Proposal> {
    let min = if situation.overflow { 0 } else { stage.min_tokens };
    let proposals = situation.results(stage).into_iter().filter_map(|(place, message, result)| {
        let cleared = situation.view.decisions.parts.get(place);
        if cleared.is_some_and(|old| old.action == Action::Cleared)
            || (result.tokens < min && !result.media)
        {
            return None;
        }
        situation.propose(place, message, result, Action::Cleared)
    });
    situation.until_target(stage, proposals)
}

//! reasoning: what the model thought before the running turn leaves the view.

use super::{Proposal, Situation, Stage};
use crate::decision::{Action, Place};
use crate::transcript::PartKind;

/// Reasoning of older turns, oldest first. Within the running tool loop it stays: providers ask
/// for it back there. `from` is the first message looked at, and `signed` leaves other reasoning
/// alone.
pub(crate) fn older(situation: &Situation<'_>, from: u32, signed: bool) -> Vec<Proposal> {
    let transcript = situation.view.transcript;
    let end = transcript.running_turn();
    let mut found = Vec::new();
    for index in situation.shown_messages().filter(|index| (from..end).contains(index)) {
        let message = &transcript.messages[index as usize];
        if message.pinned || !situation.view.may_lose(index) {
            continue;
        }
        for (part, at) in message.parts.iter().zip(0u32..) {
            let place = Place { body: index - transcript.lead, part: at };
            if part.kind != PartKind::Reasoning
                || part.tokens == 0
                || (signed && !part.signed)
                || situation.view.decisions.parts.get(place).is_some()
            {
                continue;
            }
            let decision = situation.decision(place, message, part, Action::Removed);
            found.push(Proposal { place, decision, saved: part.tokens });
        }
    }
    found
}

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Vec<Proposal> {
    let older = older(situation, 0, false);
    situation.until_target(stage, older.into_iter())
}

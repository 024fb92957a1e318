//! drop: the last resort but one. The oldest units leave; one note says how many.

use super::{Plan, Situation};

pub(super) fn plan(situation: &Situation<'_>) -> Plan {
    let transcript = situation.view.transcript;
    let hidden = transcript.lead.saturating_add(situation.view.decisions.hidden());
    let mut saved = 0;
    let mut upto = hidden;
    for unit in situation.body_units(hidden).filter(|unit| unit.start >= hidden) {
        if unit.end > situation.tail
            || situation.tokens.saturating_sub(saved).saturating_add(NOTE) <= situation.target
        {
            break;
        }
        upto = unit.end;
        if !transcript.unit_messages(unit).iter().any(|message| message.pinned) {
            saved = unit.tokens.saturating_add(saved);
        }
    }
    match saved > NOTE {
        true => Plan::Drop { upto: upto - transcript.lead, saved },
        false => Plan::Parts(Vec::new()),
    }
}

/// Upper bound of the note's own size, tokens.
const NOTE: u32 = 60;

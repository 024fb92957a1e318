//! drop: the last resort but one. The oldest units leave; one note says how many.

use super::{Plan, Run, Situation};

pub(super) fn plan(situation: &Situation<'_>) -> Plan {
    let transcript = situation.view.transcript;
    let mut saved = 0;
    let mut runs: Vec<Run> = Vec::new();
    for unit in situation.view.shown().filter(|unit| unit.start >= transcript.lead) {
        if unit.end > situation.tail
            || situation.tokens.saturating_sub(saved).saturating_add(NOTE) <= situation.target
        {
            break;
        }
        if !situation.is_pinned(unit) {
            saved = unit.tokens.saturating_add(saved);
            Run::add(&mut runs, unit);
        }
    }
    match saved > NOTE {
        true => Plan::Hide(runs),
        false => Plan::Parts(Vec::new()),
    }
}

/// Upper bound of the note's own size, tokens.
pub(super) const NOTE: u32 = 60;

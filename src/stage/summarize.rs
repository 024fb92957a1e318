//! summarize: the oldest units up to the smallest legal cut that reaches the target are folded
//! into the running summary.

use super::Situation;

/// A fold that would be worth its while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold {
    /// First message of the span: where the running summary ends.
    pub from: u32,
    /// The message after the last one of the span.
    pub to: u32,
    /// Tokens that the span takes in the view now.
    pub visible: u32,
    /// The running summary has outgrown a window that shrank: fold everything again from the
    /// first message, without it.
    pub afresh: bool,
}

/// Chooses the span. `head` is the size of the running summary in the view now, `cap` the most a
/// new one may take, `least` the tokens that a fold must free; all raw estimates.
pub(crate) fn plan(situation: &Situation<'_>, head: u32, cap: u32, least: u32) -> Option<Fold> {
    let transcript = situation.view.transcript;
    let covered = transcript.lead.saturating_add(situation.view.decisions.covered());
    let afresh = head > cap + cap / 2 + WRAPPER;
    let from = if afresh { transcript.lead } else { covered };
    let before = if afresh { 0 } else { head };
    let mut fold = Fold { from, to: from, visible: 0, afresh };
    let mut all = 0;
    for unit in situation.body_units(from).filter(|unit| unit.start >= from) {
        if unit.end > situation.tail {
            break;
        }
        fold.to = unit.end;
        all = unit.tokens.saturating_add(all);
        if situation.view.shows(unit) && !transcript.unit_messages(unit).iter().any(|m| m.pinned) {
            fold.visible = unit.tokens.saturating_add(fold.visible);
        }
        let after = situation
            .tokens
            .saturating_sub(fold.visible.saturating_add(head))
            .saturating_add(grown(before, all, cap));
        if after <= situation.target && fold.to >= covered {
            break;
        }
    }
    let grown = grown(before, all, cap);
    let saved = fold.visible.saturating_add(head).saturating_sub(grown);
    (fold.to > from && fold.to >= covered && saved > least).then_some(fold)
}

/// The span up to a message that the host chose, where the running summary ends before it.
pub(crate) fn upto(situation: &Situation<'_>, to: u32) -> Option<Fold> {
    let transcript = situation.view.transcript;
    let from = transcript.lead.saturating_add(situation.view.decisions.covered());
    let units = situation.view.shown().filter(|unit| unit.start >= from && unit.end <= to);
    let visible = units.filter(|unit| !situation.is_pinned(unit)).map(|unit| unit.tokens);
    let visible = visible.fold(0u32, u32::saturating_add);
    (from < to).then_some(Fold { from, to, visible, afresh: false })
}

/// Expected size of the summary after a fold of so many tokens.
fn grown(head: u32, span: u32, cap: u32) -> u32 {
    head.max(WRAPPER).saturating_add(span / 6).min(cap + WRAPPER)
}

/// Tokens of the label around a summary in the view.
pub(crate) const WRAPPER: u32 = 120;

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
    /// Everything is folded again from the first message, without the running summary.
    pub afresh: bool,
}

/// What a fold may cost, all raw estimates in tokens.
pub(crate) struct Sizes {
    /// The running summary in the view now.
    pub head: u32,
    /// The most that a new one may take.
    pub cap: u32,
    /// What stands around it.
    pub wrapper: u32,
    /// What a fold must free.
    pub least: u32,
}

/// Chooses the span. It starts over where the host wants that, or where the running summary has
/// outgrown a window that shrank.
pub(crate) fn plan(situation: &Situation<'_>, sizes: &Sizes, fresh: bool) -> Option<Fold> {
    let Sizes { head, cap, wrapper, least } = *sizes;
    let transcript = situation.view.transcript;
    let covered = transcript.lead.saturating_add(situation.view.decisions.covered());
    let afresh = fresh && covered > transcript.lead || head > cap + cap / 2 + wrapper;
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
            .saturating_add(sizes.grown(before, all));
        if after <= situation.target && fold.to >= covered {
            break;
        }
    }
    let grown = sizes.grown(before, all);
    let saved = fold.visible.saturating_add(head).saturating_sub(grown);
    (fold.to > from && fold.to >= covered && saved > least).then_some(fold)
}

/// The span up to a message that the host chose, where the running summary ends before it.
pub(crate) fn upto(situation: &Situation<'_>, sizes: &Sizes, to: u32) -> Option<Fold> {
    let transcript = situation.view.transcript;
    let from = transcript.lead.saturating_add(situation.view.decisions.covered());
    let units = situation.view.shown().filter(|unit| unit.start >= from && unit.end <= to);
    let visible = units.filter(|unit| !situation.is_pinned(unit)).map(|unit| unit.tokens);
    let visible = visible.fold(0u32, u32::saturating_add);
    let before = visible.saturating_add(sizes.head);
    let saved = before.saturating_sub(sizes.grown(sizes.head, visible));
    (saved > sizes.least).then_some(Fold { from, to, visible, afresh: false })
}

impl Sizes {
    /// Expected size of the summary after a fold of so many tokens. It does not shrink: identifiers
    /// that were appended beside the cap stay.
    fn grown(&self, head: u32, span: u32) -> u32 {
        let before = head.max(self.wrapper);
        before.saturating_add(span / 6).min(self.cap + self.wrapper).max(before)
    }
}

/// Tokens around a summary in the view, with the usual label.
pub(crate) const WRAPPER: u32 = 120;

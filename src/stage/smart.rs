//! smart: of what stands before the protected tail, the units that say most for their size stay,
//! as many as the target has room for. The others leave; one note says how many.
//!
//! What a unit is worth: words of the user more than words of the model, and those more than
//! results; more where later messages name what it names, where the user lays down a rule, where
//! something failed or was decided, and the newer it is.

use std::collections::BinaryHeap;

use super::drop::NOTE;
use super::{Plan, Run, Situation, Stage, fails};
use crate::decision::Place;
use crate::order::sort;
use crate::summary::audit::identifiers::identifiers;
use crate::summary::audit::reading::{fnv, mentions, rules};
use crate::transcript::{Message, PartKind, Role, Unit};
use crate::view::ends;

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Plan {
    let transcript = situation.view.transcript;
    let units: Vec<&Unit> =
        situation.view.shown().filter(|unit| unit.start >= transcript.lead).collect();
    let mut later = Names(vec![0; NAMES / 64]);
    let mut ranked = BinaryHeap::new();
    let mut room = situation.target.saturating_sub(NOTE);
    let mut inside = 0u32;
    for (at, unit) in units.iter().enumerate().rev() {
        let mut worth = 0;
        let mut names = Vec::new();
        for index in unit.start..unit.end {
            worth += value(situation, index, &mut names);
        }
        sort(&mut names, |name| *name);
        names.dedup();
        let named = names.iter().filter(|name| later.has(**name)).count() as u64;
        names.into_iter().for_each(|name| later.add(name));
        if unit.end > situation.tail || situation.is_pinned(unit) {
            continue;
        }
        // What the conversation began with is what it is about.
        let first = if at == 0 { 4 } else { 1 };
        let age = units.len() as u64 + 2 * at as u64;
        let worth = (worth + 3 * named.min(6)) * first * age * 1_000;
        ranked.push((worth / (u64::from(unit.tokens) + SMALL), at));
        inside = inside.saturating_add(unit.tokens);
    }
    room = room.saturating_sub(situation.tokens.saturating_sub(inside));
    let mut stays = vec![true; units.len()];
    while let Some((_, at)) = ranked.pop() {
        match room.checked_sub(units[at].tokens) {
            Some(left) => room = left,
            None => stays[at] = false,
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    for (unit, _) in units.iter().zip(&stays).filter(|(_, stays)| !**stays) {
        Run::add(&mut runs, unit);
    }
    let saved = runs.iter().fold(0u32, |sum, run| sum.saturating_add(run.saved));
    match saved > NOTE.max(situation.least(stage)) {
        true => Plan::Hide(runs),
        false => Plan::Parts(Vec::new()),
    }
}

/// What a message is worth by itself; what it names is added to `names`.
fn value(situation: &Situation<'_>, index: u32, names: &mut Vec<u64>) -> u64 {
    let transcript = situation.view.transcript;
    let message: &Message = &transcript.messages[index as usize];
    let mut worth = 0;
    for (part, at) in message.parts.iter().zip(0u32..) {
        let place = Place { body: index - transcript.lead, part: at };
        if situation.view.decisions.parts.get(place).is_some() {
            continue;
        }
        let text = match part.kind {
            PartKind::Text | PartKind::Call | PartKind::Result => message.text(part),
            PartKind::Image | PartKind::File => {
                worth += 2;
                continue;
            }
            _ => continue,
        };
        let (head, tail) = ends(&text, READ, READ);
        for piece in [head, tail] {
            identifiers(piece, &mut |name, _| names.push(fnv(name)));
        }
        worth += match (part.kind, message.role) {
            (PartKind::Result, _) if fails(message, part) => 6,
            (PartKind::Result, _) => 2,
            (PartKind::Call, _) => 1,
            (_, Role::Assistant) if mentions(head, DECISIONS) => 8,
            (_, Role::Assistant) => 4,
            _ => {
                let mut found = 0;
                rules(head, &mut |_| found += 1);
                12 + 6 * found.min(3)
            }
        };
    }
    worth
}

/// Names that later messages hold, by their hashes. Two that share a bit pass for one, which now
/// and then overrates a unit.
struct Names(Vec<u64>);

impl Names {
    fn has(&self, name: u64) -> bool {
        self.0[name as usize / 64 % self.0.len()] & 1 << (name % 64) != 0
    }

    fn add(&mut self, name: u64) {
        let at = name as usize / 64 % self.0.len();
        self.0[at] |= 1 << (name % 64);
    }
}

/// Bits of the table of names.
const NAMES: usize = 1 << 17;

/// Tokens by which small units are taken for larger, or the smallest would always win.
const SMALL: u64 = 30;

/// Bytes read of each end of a text.
const READ: u32 = 2_000;

/// How a model says that something was settled.
const DECISIONS: &[&str] = &[
    "decid",
    "decision",
    "agreed",
    "we'll use",
    "we will use",
    "i'll use",
    "going with",
    "chose",
    "chosen",
    "root cause",
    "turns out",
    "entschied",
    "décid",
    "decidi",
    "decisión",
    "решен",
];

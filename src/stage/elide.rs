//! elide: what is too big inside the protected tail is cut to its first and last bytes.
//!
//! It runs only when nothing else can make the view fit: a giant result, a giant paste, a batch
//! of parallel results. All of them are brought to one common size, so that shares are fair.

use super::{NOTE, Proposal, Situation};
use crate::decision::{Action, Place};
use crate::order::sort;
use crate::transcript::{Message, Part, PartKind, Role};

pub(super) fn plan(situation: &Situation<'_>) -> Vec<Proposal> {
    let excess = situation.tokens.saturating_sub(situation.limit);
    if excess == 0 {
        return Vec::new();
    }
    // A little below the limit, so that the next message does not start it all again.
    let excess = excess + situation.limit / 10;
    let results = parts(situation, |part| part.kind == PartKind::Result);
    let proposals = share(situation, &results, excess);
    let freed: u32 = proposals.iter().map(|proposal| proposal.saved).sum();
    if freed + situation.limit / 10 >= excess {
        return proposals;
    }
    let all = parts(situation, |part| {
        matches!(part.kind, PartKind::Result | PartKind::Text | PartKind::Call)
    });
    share(situation, &all, excess)
}

type Sized<'a> = (u32, Place, &'a Message, &'a Part);

/// Parts in the view with the tokens that each takes there now.
fn parts<'a>(situation: &Situation<'a>, wanted: impl Fn(&Part) -> bool) -> Vec<Sized<'a>> {
    let transcript = situation.view.transcript;
    let mut found = Vec::new();
    for unit in situation.view.shown() {
        for index in unit.start.max(transcript.lead)..unit.end {
            let message = &transcript.messages[index as usize];
            if message.pinned || matches!(message.role, Role::System | Role::Other) {
                continue;
            }
            for (part, at) in message.parts.iter().zip(0u32..).filter(|(part, _)| wanted(part)) {
                let orphan = part.kind == PartKind::Result && part.link.is_none();
                let place = Place { body: index - transcript.lead, part: at };
                let old = situation.view.decisions.parts.get(place);
                let whole = orphan || part.media || !part.is_replaceable();
                if whole || old.is_some_and(|old| old.action == Action::Cleared) {
                    continue;
                }
                found.push((situation.now(place, message, part), place, message, part));
            }
        }
    }
    found
}

/// Cuts the largest parts to one size such that `excess` tokens go.
fn share(situation: &Situation<'_>, parts: &[Sized<'_>], excess: u32) -> Vec<Proposal> {
    let mut sizes: Vec<u32> = parts.iter().map(|part| part.0).collect();
    sort(&mut sizes, |size| u64::from(u32::MAX - size));
    let mut sum = 0u64;
    let mut cap = 0u64;
    for (count, size) in (1u64..).zip(&sizes) {
        sum += u64::from(*size);
        let next = sizes.get(count as usize).map_or(0, |next| u64::from(*next));
        // All of the `count` largest at `cap` would free exactly the excess.
        cap = sum.saturating_sub(u64::from(excess) + count * u64::from(NOTE)) / count;
        if cap >= next {
            break;
        }
    }
    let cap = (cap as u32).max(SMALLEST);
    parts
        .iter()
        .filter(|(tokens, ..)| *tokens > cap + NOTE)
        .filter_map(|(_, place, message, part)| {
            situation.preview(*place, message, part, cap, |bytes| {
                let head = bytes / 5 * 3;
                Action::Elided { head, tail: bytes - head }
            })
        })
        .collect()
}

/// Smallest share that still says something, tokens.
const SMALLEST: u32 = 24;

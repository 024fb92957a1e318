//! dedupe: of identical results only the newest stays, and of the results of one call made again
//! and again. Nothing is lost: the note points to the newer copy, and recall has the older one.

use std::collections::BinaryHeap;

use super::{Proposal, Situation, Stage};
use crate::decision::{Action, Place};

pub(super) fn plan(stage: &Stage, situation: &Situation<'_>) -> Vec<Proposal> {
    let transcript = situation.view.transcript;
    let results: Vec<_> = situation
        .shown_results()
        .into_iter()
        .filter(|(place, ..)| situation.view.decisions.parts.get(*place).is_none())
        .collect();
    // Hash, then position: the last of each run of equal hashes is the newest.
    let mut same = BinaryHeap::new();
    let mut again = BinaryHeap::new();
    for (at, (_, message, result)) in results.iter().enumerate() {
        if result.content_tokens() < stage.min_tokens {
            continue;
        }
        same.push((message.anchor(result, transcript.key), at));
        if let Some(link) = result.link {
            let caller = &transcript.messages[link.message as usize];
            let call = &caller.parts[link.part as usize];
            again.push((call.name.as_ref(), caller.anchor(call, transcript.key), at));
        }
    }
    let mut actions = vec![None; results.len()];
    let again = again.into_sorted_vec();
    for pair in again.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        actions[pair[0].2] = Some(Action::Superseded);
    }
    let same = same.into_sorted_vec();
    for pair in same.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        actions[pair[0].1] = Some(Action::Duplicate);
    }
    let proposals =
        results.into_iter().zip(actions).filter_map(|((place, message, result), action)| {
            situation.may_shrink(stage, place, message, result).then_some(())?;
            situation.propose(place, message, result, action?)
        });
    situation.until_target(stage, proposals)
}

/// Pointers in the view whose newer copy no longer stands there, whole or in part.
pub(crate) fn dangling(situation: &Situation<'_>) -> Vec<Proposal> {
    let (decisions, transcript) = (situation.view.decisions, situation.view.transcript);
    let action = |place: Place| decisions.parts.get(place).map(|decision| decision.action);
    let points = |action| matches!(action, Some(Action::Duplicate | Action::Superseded));
    if !decisions.parts.iter().any(|(_, decision)| points(Some(decision.action))) {
        return Vec::new();
    }
    let results: Vec<_> = situation
        .shown_results()
        .into_iter()
        .map(|(place, message, result)| {
            let call = result.link.map(|link| {
                let caller = &transcript.messages[link.message as usize];
                let call = &caller.parts[link.part as usize];
                (&*call.name, caller.anchor(call, transcript.key))
            });
            (place, message, result, message.anchor(result, transcript.key), call)
        })
        .collect();
    let mut found = Vec::new();
    for (at, (place, message, result, content, call)) in results.iter().enumerate() {
        let old = action(*place);
        let leads = results[at + 1..].iter().any(|(newer, _, _, other, again)| {
            let same =
                if old == Some(Action::Duplicate) { content == other } else { call == again };
            let stands = action(*newer);
            same && matches!(stands, None | Some(Action::Offloaded { .. } | Action::Elided { .. }))
        });
        if points(old) && !leads {
            found.extend(situation.propose(*place, message, result, Action::Cleared));
        }
    }
    found
}

//! Folds: what the summarize stage asks of the host's summarizer, and how its reply, or the local
//! summarizer's text, becomes the running summary.

use super::Engine;
use super::burst::{Burst, Waiting};
use super::outcome::{Audit, Decided, Effect, Failure, SummaryReport};
use crate::decision::{Author, Ref, Summary};
use crate::stage::summarize::{self, Fold, WRAPPER};
use crate::stage::{Stage, StageName};
use crate::summary::{self, Refusal, Request, audit, local};
use crate::view::boundary;

impl Engine {
    /// One fold of the summarize stage.
    pub(super) fn fold(&mut self, burst: &mut Burst, stage: &Stage) -> Option<Vec<Effect>> {
        let situation = self.situation(burst, self.goal(burst, stage));
        let share = stage.min_savings.unwrap_or(self.sizes.min_savings);
        let least = match situation.must || situation.tokens > situation.limit {
            true => 0,
            false => (f64::from(situation.tokens) * share) as u32,
        };
        let cap = self.summary_cap(burst);
        let fold = match burst.fold_to {
            Some(to) => summarize::upto(&situation, to),
            None => summarize::plan(&situation, self.head, cap, least),
        };
        let fold = fold?;
        if self.options.summarizer && !fold.afresh && !burst.local_only && self.may_call(burst) {
            let fold = self.chunk(burst, fold);
            return Some(vec![self.ask(burst, fold, 1, None)]);
        }
        // The local summarizer fills what it is given: what the target leaves, a third of the span.
        let rest = situation.tokens.saturating_sub(fold.visible.saturating_add(self.head));
        // Where the rest alone is over the target, half of what the limit leaves.
        let left = match situation.target.saturating_sub(rest.saturating_add(WRAPPER)) {
            left if left >= LEAST_SUMMARY => left,
            _ => situation.limit.saturating_sub(rest.saturating_add(WRAPPER)) / 2,
        };
        let cap =
            cap.min(left.min((fold.visible.saturating_add(self.head)) / 3).max(LEAST_SUMMARY));
        let entries = summary::entries(&self.transcript, fold.from, fold.to);
        let previous = self.previous(&fold).map(|summary| &*summary.text);
        let room = cap - cap / 5;
        let family = self.family;
        let text =
            local::summarize(previous, &entries, room as usize, &|text| family.text(text) as usize);
        let taken = self.take_summary(burst, fold, text, Author::Local, cap);
        taken.then(Vec::new)
    }

    /// The summary that a fold goes on from.
    fn previous(&self, fold: &Fold) -> Option<&Summary> {
        self.decisions.summary.as_ref().filter(|_| !fold.afresh)
    }

    /// Window of whoever writes the summaries. A burst after an overflow may think in larger
    /// windows than there are.
    fn summarizer_window(&self, burst: &Burst) -> u32 {
        let own = self.window().map_or(burst.budget.window, |own| own.min(burst.budget.window));
        self.sizes.summary_window.unwrap_or(own)
    }

    /// Most tokens of a summary: what the budget allows and its writer can write.
    fn summary_cap(&self, burst: &Burst) -> u32 {
        burst.budget.summary.min((self.summarizer_window(burst) / 4).max(16))
    }

    /// Tokens that the appendix of identifiers may take, however long the summary is.
    fn identifier_room(&self, burst: &Burst) -> u32 {
        (burst.budget.usable / 11).min(self.summary_cap(burst)).min(3000)
    }

    /// Whether the host's summarizer is to be tried: it is left alone after failures in a row,
    /// until some turns have passed or an overflow makes it worth another try.
    fn may_call(&self, burst: &Burst) -> bool {
        let open = self.breaker.failures >= self.sizes.max_failures
            && self.breaker.turns <= BREAKER_TURNS
            && !burst.overflow;
        burst.calls < self.sizes.max_calls && !open && self.dry.is_none()
    }

    /// Cuts a fold to the units whose text the summarizer can take in one call.
    fn chunk(&self, burst: &Burst, fold: Fold) -> Fold {
        let most = self.chunk_tokens(burst);
        let mut chunk = Fold { to: fold.from, visible: 0, ..fold };
        let mut tokens = 0;
        let first = self.transcript.unit_of(fold.from);
        for unit in &self.transcript.units[first..] {
            if unit.end > fold.to {
                break;
            }
            let entries = summary::entries(&self.transcript, unit.start, unit.end);
            tokens += self.family.text(&summary::flat_text(&entries, 1.0));
            if tokens > most && chunk.to > chunk.from {
                break;
            }
            chunk.to = unit.end;
            chunk.visible += if unit.shown { unit.tokens } else { 0 };
        }
        chunk
    }

    /// Raw tokens of transcript text in one prompt: half of what the summarizer's window leaves.
    fn chunk_tokens(&self, burst: &Burst) -> u32 {
        let window = self.summarizer_window(burst);
        let previous = self.decisions.summary.as_ref();
        let previous = previous.map_or(0, |summary| self.family.text(&summary.text));
        let half = self.sizes.budget(window).usable.saturating_sub(previous) / 2;
        let rest = window.saturating_sub(self.summary_cap(burst) + previous + INSTRUCTIONS);
        half.min(rest).max(128)
    }

    fn ask(
        &mut self,
        burst: &mut Burst,
        fold: Fold,
        attempt: u32,
        refused: Option<&Refusal>,
    ) -> Effect {
        let entries = summary::entries(&self.transcript, fold.from, fold.to);
        let mut text = summary::flat_text(&entries, 1.0);
        let most = self.chunk_tokens(burst);
        // A unit that is too large alone is bounded harder, never cut off unread.
        let mut scale = 1.0;
        while self.family.text(&text) > most && scale > 0.001 {
            scale /= 2.0;
            text = summary::flat_text(&entries, scale);
        }
        if self.family.text(&text) > most {
            text.truncate(boundary(&text, most as usize * 2));
        }
        let prompt = summary::prompt(&Request {
            previous: self.decisions.summary.as_ref().map(|summary| &*summary.text),
            text: &text,
            focus: burst.focus.as_deref(),
            nonce: &self.nonce,
            max_tokens: self.summary_cap(burst),
            refused,
        });
        let id = self.effect_id();
        burst.calls += 1;
        burst.waiting.push((id, Waiting::Summary { fold, attempt }));
        Effect::Summarize {
            id,
            system: summary::system_prompt(),
            prompt,
            max_tokens: self.summary_cap(burst),
            from: fold.from,
            to: fold.to,
            attempt,
        }
    }

    /// Takes a reply of the summarizer, or asks once more.
    pub(super) fn summarized(
        &mut self,
        burst: &mut Burst,
        fold: Fold,
        attempt: u32,
        text: &str,
    ) -> Option<Effect> {
        let text = text.trim();
        let replaced = fold.visible.saturating_add(self.head).saturating_sub(WRAPPER);
        let cap = self.summary_cap(burst);
        let checked = summary::check(text, cap, replaced, &self.nonce, self.family);
        match checked {
            Err(refusal) if attempt == 1 && burst.calls < self.sizes.max_calls => {
                return Some(self.ask(burst, fold, 2, Some(&refusal)));
            }
            // Headings alone are not worth losing a good text for.
            Err(refusal) if !refusal.is_minor() => {
                self.summarizer_failed(burst, refusal.code(), refusal.to_string());
                return None;
            }
            Err(refusal) => {
                let what = format!("the summary was taken although {refusal}");
                self.notice("missing_sections", what);
            }
            Ok(()) => {}
        }
        if self.take_summary(burst, fold, text.to_owned(), Author::Host, cap + cap / 4) {
            self.breaker = Default::default();
        } else {
            let what = "it does not make the view smaller".to_owned();
            self.summarizer_failed(burst, "not_smaller", what);
        }
        None
    }

    pub(super) fn summarizer_failed(
        &mut self,
        burst: &mut Burst,
        code: &'static str,
        message: String,
    ) {
        burst.failures.push(Failure { effect: "summarize", code, message });
        burst.local_only = true;
        self.breaker.failures = self.breaker.failures.saturating_add(1);
        self.breaker.turns = 0;
    }

    /// Commits a summary if the view gets smaller by it. `cap` bounds it with its appendix.
    fn take_summary(
        &mut self,
        burst: &mut Burst,
        fold: Fold,
        mut text: String,
        by: Author,
        cap: u32,
    ) -> bool {
        let entries = summary::entries(&self.transcript, fold.from, fold.to);
        let old = self.previous(&fold);
        let room = cap.saturating_sub(self.family.text(&text)).max(self.identifier_room(burst));
        let previous = old.map(|summary| &*summary.text);
        let family = self.family;
        let lost = audit::audit(&entries, &text, previous, room as usize, &|text| {
            family.text(text) as usize
        });
        if !lost.appendix.is_empty() {
            text.push_str("\n\n");
            text.push_str(&lost.appendix);
        }
        // Earlier spans are part of the name, so that it stands for all covered messages.
        let mut span = old.map(|summary| summary.reference.to_string()).unwrap_or_default();
        span.push_str(&summary::full_text(&entries));
        let body = fold.to - self.transcript.lead;
        let tokens = self.family.text(&text);
        let summary = Summary {
            covered: body,
            chain: self.transcript.chain_at(body).unwrap_or_default(),
            reference: Ref::of(&span),
            by,
            version: self.decisions.summary.as_ref().map_or(0, |summary| summary.version) + 1,
            text,
        };
        let before = (self.visible, self.decisions.clone());
        let reason = self.cause(burst, StageName::Summarize);
        let report = SummaryReport {
            text: summary.text.clone(),
            covered: fold.to,
            by,
            tokens: self.scaled(tokens),
            audit: Audit { found: lost.found, kept: lost.kept, appended: lost.appended },
        };
        self.decisions.cover(summary);
        self.forget_hidden();
        self.recount();
        if self.visible >= before.0 {
            self.decisions = before.1;
            self.recount();
            return false;
        }
        burst.took(StageName::Summarize);
        burst.decisions.push(Decided {
            stage: burst.label(StageName::Summarize),
            kind: "covered",
            reason,
            index: fold.from,
            part: 0,
            to: Some(fold.to),
            reference: self.decisions.summary.as_ref().map(|s| s.reference.to_string()),
            tokens_saved: self.scaled(before.0 - self.visible),
        });
        burst.summary = Some(report);
        true
    }
}

/// Upper bound of the instructions around the text in a summarizer's prompt, tokens.
const INSTRUCTIONS: u32 = 450;

/// Tokens below which a summary says too little, whatever the target.
const LEAST_SUMMARY: u32 = 128;

/// Plans after which a summarizer that failed too often is tried again.
const BREAKER_TURNS: u32 = 10;

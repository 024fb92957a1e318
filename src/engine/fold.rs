//! Folds: what the summarize stage asks of the host's summarizer, and how its reply, or the local
//! summarizer's text, becomes the running summary.

use super::Engine;
use super::burst::{Burst, Waiting};
use super::outcome::{Audit, Decided, Effect, Failure, SummaryReport};
use crate::decision::{Author, Ref, Summary};
use crate::stage::summarize::{self, Fold, Sizes};
use crate::stage::{Stage, StageName};
use crate::summary::protocol::{BuildRequest, Given, Piece, Protocols, ValidateRequest};
use crate::summary::{self, Entry, EntryKind, Refusal, Request, audit, local};
use crate::view::View;

/// What one call of the summarizer is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// What the summary will stand for once it is taken.
    fold: Fold,
    /// First message of the span of this call, and the one after its last.
    from: u32,
    to: u32,
    /// 1, or 2 where a first answer was refused.
    attempt: u32,
    /// Raw tokens of the recall tool, where it comes along with this summary.
    tool: u32,
}

impl Engine {
    /// Puts functions of the host in place of parts of the engine.
    pub fn set_protocols(&mut self, protocols: Protocols) {
        self.protocols = protocols;
    }

    /// One fold of the summarize stage.
    pub(super) fn fold(&mut self, burst: &mut Burst, stage: &Stage) -> Option<Vec<Effect>> {
        let situation = self.situation(burst, self.goal(burst, stage));
        let share = stage.min_savings.unwrap_or(self.sizes.min_savings);
        let least = match situation.must || situation.tokens > situation.limit {
            true => 0,
            false => (f64::from(situation.tokens) * share) as u32,
        };
        let cap = self.summary_cap(burst);
        // What brings the recall tool along must save that too.
        let tool = if self.decisions.any() { 0 } else { self.recall_schema };
        let (head, wrapper) = (self.head, self.wrapper);
        let sizes = Sizes { head, cap, wrapper, least: least.max(tool) };
        let calls = self.options.summarizer && !burst.local_only && self.may_call(burst);
        let mut fresh = None;
        if burst.fresh {
            // What would take more calls than there are left goes on from the summary there is.
            let fold = summarize::plan(&situation, &sizes, true);
            fresh = fold.filter(|fold| !calls || self.can_start_over(burst, fold));
        }
        let next = || match burst.fold_to {
            Some(to) => summarize::upto(&situation, &Sizes { least: tool, ..sizes }, to),
            None => summarize::plan(&situation, &sizes, false),
        };
        let fold = fresh.or_else(next)?;
        let (rest, target, limit) = (situation.tokens, situation.target, situation.limit);
        if let Some(effect) = self.flush(burst, fold.to) {
            return Some(vec![effect]);
        }
        if calls && (!fold.afresh || fresh.is_some()) {
            let chunk = self.chunk(burst, fold, tool);
            if self.replaced(&chunk) > LEAST_ASKED {
                return Some(vec![self.ask(burst, chunk, None)]);
            }
        }
        // The local summarizer fills what it is given: what the target leaves, a third of the span.
        let rest = rest.saturating_sub(fold.visible.saturating_add(self.head));
        // Where the rest alone is over the target, half of what the limit leaves.
        let left = match target.saturating_sub(rest.saturating_add(self.wrapper)) {
            left if left >= LEAST_SUMMARY => left,
            _ => limit.saturating_sub(rest.saturating_add(self.wrapper)) / 2,
        };
        let cap =
            cap.min(left.min((fold.visible.saturating_add(self.head)) / 3).max(LEAST_SUMMARY));
        let text = self.build(burst, &fold, cap - cap / 5);
        let taken = self.take_summary(burst, fold, text, Author::Local, cap);
        taken.then(Vec::new)
    }

    /// A summary that no model writes, of so many tokens at most.
    fn build(&self, burst: &Burst, fold: &Fold, max_tokens: u32) -> String {
        let entries = self.told(fold.from, fold.to);
        let previous = self.previous(fold).map(|summary| &*summary.text);
        let focus = burst.focus.as_deref();
        if let Some(build) = &self.protocols.build {
            let request = BuildRequest {
                previous,
                pieces: entries.iter().map(Piece::of).collect(),
                sections: self.section_names(),
                focus,
                max_tokens,
            };
            let text = self.given("build", build(&request));
            match text.map(|text| (self.family.text(text.trim()), text)) {
                Some((tokens, text)) if (1..=max_tokens).contains(&tokens) => {
                    return text.trim().to_owned();
                }
                Some((tokens, _)) => {
                    let what = ["it has ", &tokens.to_string(), " tokens; from 1 to "].concat();
                    self.fault("build", [&*what, &max_tokens.to_string(), " may be"].concat());
                }
                None => {}
            }
        }
        let (span, template, max_tokens) = (&*entries, &self.template, max_tokens as usize);
        let task = local::Task { previous, span, template, focus, max_tokens };
        local::summarize(&task, &|text| self.family.text(text) as usize)
    }

    /// The messages `from..to` as whoever writes a summary gets to see them.
    fn told(&self, from: u32, to: u32) -> Vec<Entry<'_>> {
        let mut entries = summary::entries(&self.transcript, from, to);
        if let Some(tool) = self.recall_name() {
            entries.retain(|entry| !summary::is_recall(&self.transcript, entry, tool));
        }
        if let Some(prune) = &self.protocols.prune {
            for entry in &mut entries {
                if let EntryKind::Result { .. } = entry.kind
                    && let Some(text) = self.given("prune", prune(&Piece::of(entry)))
                {
                    entry.text = text.into();
                }
            }
        }
        entries
    }

    fn section_names(&self) -> Vec<&str> {
        self.template.sections.iter().map(|section| &*section.name).collect()
    }

    /// What a protocol gave; a failure is kept for the outcome.
    fn given<T>(&self, what: &'static str, given: Given<T>) -> Option<T> {
        given.map_err(|message| self.fault(what, message)).ok()
    }

    fn fault(&self, effect: &'static str, message: String) {
        let mut faults = self.faults.borrow_mut();
        // It is called for every piece: once is enough.
        if faults.iter().all(|fault| fault.effect != effect) {
            faults.push(Failure { effect, code: "host", message });
        }
    }

    /// The summary that a fold goes on from.
    fn previous(&self, fold: &Fold) -> Option<&Summary> {
        self.decisions.summary.as_ref().filter(|_| !fold.afresh)
    }

    /// The text that the next call goes on from.
    fn base<'b>(&'b self, burst: &'b Burst, fold: &Fold) -> Option<&'b str> {
        match fold.afresh {
            true => burst.draft.as_ref().map(|(text, _)| &**text),
            false => self.previous(fold).map(|summary| &*summary.text),
        }
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
    /// until some turns have passed, the conversation has grown, or an overflow makes it worth another
    /// try.
    fn may_call(&self, burst: &Burst) -> bool {
        let open = self.breaker.failures >= self.sizes.max_failures
            && self.breaker.turns <= BREAKER_TURNS
            && self.transcript.len() < self.breaker.at.saturating_add(BREAKER_GROWTH)
            && !burst.overflow;
        burst.calls < self.sizes.max_calls && !open && self.dry.is_none()
    }

    /// Whether the calls that are left reach the end of a fold that starts over.
    fn can_start_over(&self, burst: &Burst, fold: &Fold) -> bool {
        let mut from = burst.draft.as_ref().map_or(fold.from, |(_, upto)| *upto);
        let most = self.chunk_tokens(burst, fold);
        for _ in burst.calls..self.sizes.max_calls {
            if from >= fold.to {
                break;
            }
            from = self.chunk_end(from, fold.to, most).0;
        }
        from >= fold.to
    }

    /// The units of a fold whose text the summarizer can take in one call.
    fn chunk(&self, burst: &Burst, fold: Fold, tool: u32) -> Chunk {
        if self.appends(burst, &fold) {
            return Chunk { fold, from: fold.from, to: fold.to, attempt: 1, tool };
        }
        let from = match &burst.draft {
            Some((_, upto)) if fold.afresh => *upto,
            _ => fold.from,
        };
        let (to, visible) = self.chunk_end(from, fold.to, self.chunk_tokens(burst, &fold));
        // All chunks together make up for the tool.
        let tool = if to < fold.to { 0 } else { tool };
        // Iterative folds are taken one by one.
        let fold = if fold.afresh { fold } else { Fold { to, visible, ..fold } };
        Chunk { fold, from, to, attempt: 1, tool }
    }

    /// Raw tokens that a summary of the chunk must stay under, or the view would be no smaller.
    fn replaced(&self, chunk: &Chunk) -> u32 {
        let Chunk { fold, to, tool, .. } = *chunk;
        match fold.afresh && to < fold.to {
            // A draft takes the place of nothing yet.
            true => u32::MAX,
            false => fold.visible.saturating_add(self.head).saturating_sub(self.wrapper + tool),
        }
    }

    /// Whether the prompt goes behind the messages themselves, as the provider has them in its cache.
    fn appends(&self, burst: &Burst, fold: &Fold) -> bool {
        let size =
            burst.before.saturating_add(self.summary_cap(burst)).saturating_add(INSTRUCTIONS);
        let fits = size <= self.summarizer_window(burst) && !burst.overflow;
        burst.start.is_some() && fits && !fold.afresh && self.body.is_none()
    }

    /// Where a chunk of so many tokens ends, and the tokens that it takes in the view.
    fn chunk_end(&self, from: u32, end: u32, most: u32) -> (u32, u32) {
        let (mut to, mut visible, mut tokens) = (from, 0, 0);
        for unit in &self.transcript.units[self.transcript.unit_of(from)..] {
            if unit.end > end {
                break;
            }
            let entries = summary::entries(&self.transcript, unit.start, unit.end);
            tokens += self.family.text(&summary::flat_text(&entries, 1.0));
            if tokens > most && to > from {
                break;
            }
            to = unit.end;
            visible += if unit.shown { unit.tokens } else { 0 };
        }
        (to, visible)
    }

    /// Raw tokens of transcript text in one prompt: half of what the summarizer's window leaves.
    fn chunk_tokens(&self, burst: &Burst, fold: &Fold) -> u32 {
        let window = self.summarizer_window(burst);
        let previous = self.base(burst, fold).map_or(0, |text| self.family.text(text));
        let half = self.sizes.budget(window).usable.saturating_sub(previous) / 2;
        let rest = window.saturating_sub(self.summary_cap(burst) + previous + INSTRUCTIONS);
        half.min(rest).max(128)
    }

    /// The text of a chunk, within its tokens.
    fn chunk_text(&self, burst: &Burst, chunk: &Chunk) -> String {
        let entries = self.told(chunk.from, chunk.to);
        let most = self.chunk_tokens(burst, &chunk.fold);
        if let Some(format) = &self.protocols.format {
            let pieces: Vec<Piece<'_>> = entries.iter().map(Piece::of).collect();
            if let Some(mut text) = self.given("format", format(&pieces)) {
                let mut bytes = text.len();
                while self.family.text(&text) > most && bytes > 64 {
                    bytes = bytes / 4 * 3;
                    text = summary::bounded(&text, bytes);
                }
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                return text;
            }
        }
        let mut text = summary::flat_text(&entries, 1.0);
        // A unit that is too large alone is bounded harder, never cut off unread.
        let mut scale = 1.0;
        while self.family.text(&text) > most && scale > 0.001 {
            scale /= 2.0;
            text = summary::flat_text(&entries, scale);
        }
        if self.family.text(&text) > most {
            text = summary::bounded(&text, most as usize * 2);
        }
        text
    }

    fn ask(&mut self, burst: &mut Burst, chunk: Chunk, refused: Option<&Refusal>) -> Effect {
        let appended = self.appends(burst, &chunk.fold);
        let text = if appended { String::new() } else { self.chunk_text(burst, &chunk) };
        let max_tokens = self.summary_cap(burst).min(self.replaced(&chunk).saturating_sub(1));
        let request = Request {
            previous: self.base(burst, &chunk.fold),
            text: &text,
            focus: burst.focus.as_deref(),
            nonce: &self.nonce,
            max_tokens,
            refused,
        };
        let (system, prompt, view) = match &burst.start {
            Some(start) if appended => {
                let view = View { decisions: start, ..self.view() };
                let prompt = summary::appended_prompt(&self.template, &request);
                (String::new(), prompt, Some(view.items_before(0, chunk.to)))
            }
            _ => (summary::system_prompt(&self.template), summary::prompt(&request), None),
        };
        let id = self.effect_id();
        burst.calls += 1;
        burst.waiting.push((id, Waiting::Summary(chunk)));
        Effect::Summarize {
            id,
            system,
            prompt,
            max_tokens,
            from: chunk.from,
            to: chunk.to,
            attempt: chunk.attempt,
            view,
        }
    }

    /// What is wrong with a reply.
    fn check(&self, text: &str, most: u32, replaced: u32) -> Result<(), Refusal> {
        let tokens = if text.is_empty() { 0 } else { self.family.text(text).max(1) };
        summary::check_size(tokens, most, replaced)?;
        if let Some(validate) = &self.protocols.validate {
            let request = ValidateRequest { text, sections: self.section_names(), tokens };
            match self.given("validate", validate(&request)) {
                Some(None) => return Ok(()),
                Some(Some(why)) => return Err(Refusal::Host(why)),
                None => {}
            }
        }
        summary::check(text, &self.template, &self.nonce)
    }

    /// Takes a reply of the summarizer, or asks once more.
    pub(super) fn summarized(
        &mut self,
        burst: &mut Burst,
        chunk: Chunk,
        text: &str,
    ) -> Option<Effect> {
        let text = summary::without_reasoning(text);
        let Chunk { fold, to, .. } = chunk;
        let cap = self.summary_cap(burst);
        let unfinished = fold.afresh && to < fold.to;
        match self.check(text, cap, self.replaced(&chunk)) {
            Err(refusal) if chunk.attempt == 1 && burst.calls < self.sizes.max_calls => {
                return Some(self.ask(burst, Chunk { attempt: 2, ..chunk }, Some(&refusal)));
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
        if unfinished {
            burst.draft = Some((text.to_owned(), to));
        } else if self.take_summary(burst, fold, text.to_owned(), Author::Host, cap + cap / 4) {
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
        burst.draft = None;
        self.breaker.failures = self.breaker.failures.saturating_add(1);
        self.breaker.turns = 0;
        self.breaker.at = self.transcript.len();
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
        let mut entries = summary::entries(&self.transcript, fold.from, fold.to);
        let span = summary::full_text(&entries);
        // What was recalled was needed; how it was asked for is no content.
        let recall = self.recall_name();
        entries.retain(
            |entry| !matches!(entry.kind, EntryKind::Call { name } if Some(name) == recall),
        );
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
        let mut name = old.map(|summary| summary.reference.to_string()).unwrap_or_default();
        name.push_str(&span);
        let body = fold.to - self.transcript.lead;
        let tokens = self.family.text(&text);
        let summary = Summary {
            covered: body,
            chain: self.transcript.chain_at(body).unwrap_or_default(),
            reference: Ref::of(&name),
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
        burst.draft = None;
        burst.fresh = false;
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

/// Tokens of a summary below which its headings would be most of it: no model is asked for that.
const LEAST_ASKED: u32 = 64;

/// Plans after which a summarizer that failed too often is tried again.
const BREAKER_TURNS: u32 = 10;

/// Messages after which it is tried again, however few the plans.
const BREAKER_GROWTH: u32 = 64;

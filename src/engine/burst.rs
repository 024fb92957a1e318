//! One burst: stages run cheapest first, and stop to wait for the host where they must.

use std::borrow::Cow;

use super::Engine;
use super::Totals;
use super::fold::Chunk;
use super::outcome::{
    CacheReport, Cause, DecideContext, Decided, Effect, Failure, Outcome, PlanRequest, Reason,
    Reply, Step, SummaryReport,
};
use crate::budget::Budget;
use crate::decision::{Action, Decisions, Place};
use crate::error::{Error, ErrorCode};
use crate::options::invalid;
use crate::order::sort;
use crate::overflow::{self, ErrorClass};
use crate::stage::custom::{Wanted, Work};
use crate::stage::{
    self, Plan, Proposal, Run, Situation, Stage, StageName, StageOptions, dedupe, reasoning,
};
use crate::transcript::Unit;

/// A burst under way.
pub(super) struct Burst {
    pub(super) budget: Budget,
    pub(super) overflow: bool,
    pub(super) force: bool,
    pub(super) focus: Option<String>,
    /// Summaries start over.
    pub(super) fresh: bool,
    /// What the view showed when it began; kept for prompts that are appended to it.
    pub(super) start: Option<Decisions>,
    /// A summary that starts over, as far as it is: its text, and the message that it ends before.
    pub(super) draft: Option<(String, u32)>,
    /// Calibrated tokens when it began.
    pub(super) before: u32,
    /// The same uncalibrated.
    pub(super) raw: u32,
    /// Nothing was out of the view when it began: the recall tool is new if something is now.
    first: bool,
    /// First message of the protected tail; nothing from here on is touched but by elide.
    pub(super) tail: u32,
    /// Index of the stage that runs.
    pub(super) stage: usize,
    pub(super) stages: Vec<Cow<'static, str>>,
    pub(super) decisions: Vec<Decided>,
    pub(super) failures: Vec<Failure>,
    pub(super) summary: Option<SummaryReport>,
    /// Summarizer calls made.
    pub(super) calls: u32,
    /// The summarizer failed in this burst; the local one takes over.
    pub(super) local_only: bool,
    pub(super) waiting: Vec<(u32, Waiting)>,
    /// Previews whose full text is in the store; taken together once all replies are in.
    pub(super) stored: Vec<Proposal>,
    /// Name of the stage of the host's whose decisions are being taken.
    custom: Option<Cow<'static, str>>,
    /// The host's stage wants everything before this message folded.
    pub(super) fold_to: Option<u32>,
}

/// What an effect is for.
pub(super) enum Waiting {
    Put(Proposal),
    Summary(Chunk),
    Stage {
        label: Cow<'static, str>,
        goal: u32,
        work: Work,
    },
    /// The host is asked whether the burst may begin.
    Gate,
    Flush,
}

impl Engine {
    /// Compares the view with the watermarks and decides what to take out of it.
    ///
    /// A plan replaces one that is still waiting for effects; replies to those are then ignored.
    ///
    /// # Errors
    /// `invalid_option` for a usage that is no number.
    pub fn plan(&mut self, request: PlanRequest) -> Result<Step, Error> {
        self.end_dry_run();
        if !request.dry_run {
            return self.begin(request);
        }
        self.dry = Some(Box::new(self.memory()));
        let step = self.begin(request);
        if !matches!(step, Ok(Step::Effects { .. })) {
            self.end_dry_run();
        }
        step
    }

    /// Hands in a decision that the host's stage wants while its `decide` effect waits; it is taken
    /// once that is answered with done. Returns the calibrated tokens that it saves.
    ///
    /// # Errors
    /// `invalid_decision` naming the message where the decision must not be: it would cut a unit,
    /// touch what is pinned or protected, undo an earlier one, or save nothing. `unknown_effect`
    /// where no such effect waits.
    pub fn propose(&mut self, id: u32, wanted: Wanted) -> Result<u32, Error> {
        let unknown = || Error::at(ErrorCode::UnknownEffect, "id", "no stage waits under that id");
        let mut burst = self.burst.take().ok_or_else(unknown)?;
        let at = burst.waiting.iter().position(|(waiting, _)| *waiting == id);
        let answer = match at.map(|at| burst.waiting.swap_remove(at).1) {
            Some(Waiting::Stage { label, goal, mut work }) => {
                let saved = self.situation(&burst, goal).want(&mut work, wanted);
                burst.waiting.push((id, Waiting::Stage { label, goal, work }));
                saved
            }
            other => {
                burst.waiting.extend(other.map(|other| (id, other)));
                Err(unknown())
            }
        };
        self.burst = Some(burst);
        answer.map(|saved| self.scaled(saved))
    }

    fn begin(&mut self, request: PlanRequest) -> Result<Step, Error> {
        if let Some(usage) = request.usage
            && !(usage.input_tokens.is_finite() && usage.input_tokens >= 0.0)
        {
            return Err(invalid("request.usage.inputTokens", "a number of tokens from 0 up"));
        }
        self.burst = None;
        if self.breaker.failures > 0 {
            self.breaker.turns = self.breaker.turns.saturating_add(1);
        }
        let measured = self.measured.take();
        if let (Some(usage), Some(raw), None) = (request.usage, measured, &request.overflow) {
            let model = self.model().to_owned();
            let off =
                |raw: u32| (usage.input_tokens / f64::from(raw.max(1)) / self.ratio()).ln().abs();
            // A report that fits the view before the burst far better is about that one, however
            // often it is handed over.
            let tokens = usage.input_tokens.min(f64::from(u32::MAX)) as u32;
            let stale = match (self.before_burst, self.stale) {
                (Some(_), Some(stale)) => stale == tokens,
                (before, _) => before.is_some_and(|before| off(before) + 0.3 < off(raw)),
            };
            if stale {
                self.stale = Some(tokens);
            } else {
                self.calibration.sample(&model, usage.input_tokens, raw);
                (self.before_burst, self.stale) = (None, None);
            }
        }
        self.note_growth();
        let untouched = self.server_history || request.server_history;
        if std::mem::replace(&mut self.untouched, untouched) != untouched {
            self.epoch = self.epoch.wrapping_add(1);
            self.touched = 0;
        }
        if untouched {
            return Ok(self.idle(Reason::ServerSideHistory));
        }
        let mut shrink = None;
        if let Some(error) = &request.overflow {
            match overflow::classify(error.status, &error.body) {
                ErrorClass::Overflow { limit, requested } => {
                    shrink = self.learn(limit, requested);
                }
                ErrorClass::TooManyBytes { .. } | ErrorClass::TooManyImages { .. } => {
                    shrink = Some(self.tokens());
                }
                ErrorClass::RateLimit => return Ok(self.idle(Reason::RateLimit)),
                _ => return Ok(self.idle(Reason::NotAnOverflow)),
            }
        }
        let overflow = request.overflow.is_some();
        let budget = match (self.budget(), shrink) {
            // No window is named: the refused size is over it, so a good deal less must do.
            (_, Some(refused)) => {
                let mut budget = self.sizes.budget(refused.saturating_mul(2).max(2));
                budget.usable = (refused / 4 * 3).max(1);
                budget.target = (refused / 2).max(1);
                budget
            }
            (Some(budget), None) => budget,
            (None, None) => {
                let what = "the context window is not known: give the option `window`";
                self.notice("unknown_window", what);
                return Ok(self.idle(Reason::UnknownWindow));
            }
        };
        let tokens = self.tokens();
        let pressed = self.over_bytes().is_some() || self.over_images();
        let least = self.stages.iter().map(|stage| stage.at(&budget)).min().unwrap_or(u32::MAX);
        if !overflow && !request.force && !pressed {
            if tokens < least && tokens <= budget.usable {
                self.rest = None;
                return Ok(self.idle(Reason::UnderTrigger));
            }
            let rests = |(until, at)| tokens < until && self.body_tail(&budget) == at;
            if tokens <= budget.usable && self.rest.is_some_and(rests) {
                return Ok(self.idle(Reason::NothingToCompact));
            }
            // What did not fit and is the same as then would only be rewritten for a few tokens.
            let stuck =
                |(until, at)| tokens.saturating_add(1) == until && self.body_tail(&budget) == at;
            if tokens > budget.usable && self.rest.is_some_and(stuck) {
                self.cannot_fit(tokens, budget.usable);
                return Ok(self.idle(Reason::CannotFit));
            }
        }
        let tail = self.tail(&budget, overflow);
        let raw = self.raw();
        let burst = Burst {
            budget,
            overflow,
            force: request.force,
            focus: request.focus.or_else(|| self.options.summary.focus.clone()),
            fresh: request.fresh || self.options.summary.fresh,
            start: self.options.summary.append.then(|| self.decisions.clone()),
            draft: None,
            before: tokens,
            raw,
            first: !self.decisions.any(),
            tail,
            stage: 0,
            stages: Vec::new(),
            decisions: Vec::new(),
            failures: Vec::new(),
            summary: None,
            calls: 0,
            local_only: false,
            waiting: Vec::new(),
            stored: Vec::new(),
            custom: None,
            fold_to: None,
        };
        Ok(self.gate(burst))
    }

    /// Runs the burst that was begun.
    pub(super) fn open(&mut self) -> Step {
        if self.over_bytes().is_some() || self.over_images() {
            self.relieve();
        }
        self.advance()
    }

    /// Takes media out of a request that holds too many bytes or images: they weigh most.
    fn relieve(&mut self) {
        let Some(mut burst) = self.burst.take() else { return };
        let own = self.stages.iter().find(|stage| stage.name == StageName::Media).cloned();
        if let Some(stage) =
            own.or_else(|| Stage::read(&StageOptions::of(StageName::Media), 0).ok())
        {
            self.run(&mut burst, &stage);
        }
        self.burst = Some(burst);
    }

    /// Hands in the host's reply to an effect.
    ///
    /// # Errors
    /// `unknown_effect` for an id that was never issued, `invalid_reply` for a reply of the wrong
    /// kind; the effect then still waits.
    pub fn resolve(&mut self, id: u32, reply: Reply) -> Result<Step, Error> {
        if id >= self.next_effect {
            let what = "no effect of that id was issued";
            return Err(Error::at(ErrorCode::UnknownEffect, "id", what));
        }
        let Some(mut burst) = self.burst.take() else { return Ok(Step::Idle) };
        let Some(at) = burst.waiting.iter().position(|(waiting, _)| *waiting == id) else {
            self.burst = Some(burst);
            return Ok(Step::Idle);
        };
        let waiting = burst.waiting.swap_remove(at).1;
        let again = match (waiting, reply) {
            (Waiting::Put(proposal), Reply::Done) => {
                burst.stored.push(proposal);
                None
            }
            (Waiting::Put(_), Reply::Failed { message }) => {
                burst.failures.push(Failure { effect: "put", code: "host", message });
                None
            }
            (Waiting::Summary(chunk), Reply::Text { text }) => {
                self.totals.calls = self.totals.calls.saturating_add(1);
                self.summarized(&mut burst, chunk, &text)
            }
            (Waiting::Gate, Reply::Go { veto, pins }) => {
                return Ok(self.opened(burst, veto, &pins));
            }
            (Waiting::Gate, Reply::Failed { message }) => {
                burst.failures.push(Failure { effect: "burst", code: "host", message });
                return Ok(self.opened(burst, false, &[]));
            }
            (Waiting::Flush, Reply::Done) => None,
            (Waiting::Flush, Reply::Failed { message }) => {
                burst.failures.push(Failure { effect: "flush", code: "host", message });
                None
            }
            (Waiting::Summary(_), Reply::Failed { message }) => {
                self.totals.calls = self.totals.calls.saturating_add(1);
                self.summarizer_failed(&mut burst, "host", message);
                None
            }
            (Waiting::Stage { label, work, .. }, Reply::Done) => {
                let puts = self.take_work(&mut burst, label, work);
                if !puts.is_empty() {
                    self.burst = Some(burst);
                    return Ok(Step::Effects { effects: puts });
                }
                None
            }
            (Waiting::Stage { .. }, Reply::Failed { message }) => {
                burst.failures.push(Failure { effect: "decide", code: "host", message });
                None
            }
            (waiting, _) => {
                burst.waiting.push((id, waiting));
                self.burst = Some(burst);
                let what = "a put, flush or decide is answered by done or failed, a summarize by \
                            text or failed, a burst by go or failed";
                return Err(Error::at(ErrorCode::InvalidReply, "kind", what));
            }
        };
        let waits = !burst.waiting.is_empty();
        self.burst = Some(burst);
        if let Some(effect) = again {
            return Ok(Step::Effects { effects: vec![effect] });
        }
        if waits {
            return Ok(Step::Effects { effects: Vec::new() });
        }
        let step = self.advance();
        if matches!(step, Step::Done { .. }) {
            self.end_dry_run();
        }
        Ok(step)
    }

    /// Asks a stage of the host's for its decisions.
    fn ask_stage(&mut self, burst: &mut Burst, stage: &Stage) -> Effect {
        let goal = self.goal(burst, stage);
        let (parts, units) = self.situation(burst, goal).candidates(|raw| self.scaled(raw));
        let context = DecideContext {
            stage: stage.label.clone().into_owned(),
            tokens: self.tokens(),
            target: goal,
            limit: burst.budget.usable,
            overflow: burst.overflow,
            forced: burst.force,
            parts,
            units,
        };
        let id = self.effect_id();
        let position = burst.stage as u32;
        burst.stage += 1;
        let label = stage.label.clone();
        burst.waiting.push((id, Waiting::Stage { label, goal, work: Work::default() }));
        Effect::Decide { id, position, context: Box::new(context) }
    }

    /// Takes the decisions of a stage of the host's; what goes to the store first is asked for.
    fn take_work(
        &mut self,
        burst: &mut Burst,
        label: Cow<'static, str>,
        work: Work,
    ) -> Vec<Effect> {
        burst.custom = Some(label);
        burst.fold_to = work.fold;
        let stores = self.options.store && self.dry.is_none();
        let mut puts = Vec::new();
        let mut parts = Vec::new();
        for proposal in work.parts {
            match proposal.decision.action {
                Action::Offloaded { .. } if stores => puts.push(proposal),
                _ => parts.push(proposal),
            }
        }
        if !parts.is_empty() {
            self.take_parts(burst, StageName::Custom, parts);
        }
        let mut runs = work.runs;
        sort(&mut runs, |run| u64::from(run.from));
        let flush = runs.last().and_then(|run| self.flush(burst, run.to));
        self.hide(burst, StageName::Custom, runs);
        let hidden = self.decisions.hidden();
        puts.retain(|proposal| proposal.place.body >= hidden || self.shows(proposal.place));
        let mut effects = self.puts(burst, puts);
        effects.extend(flush);
        effects
    }

    fn shows(&self, place: Place) -> bool {
        let index = self.transcript.lead.saturating_add(place.body);
        self.view().shows_message(index)
    }

    /// Runs stages until one needs the host or the burst is over.
    fn advance(&mut self) -> Step {
        let Some(mut burst) = self.burst.take() else { return Step::Idle };
        let stored = std::mem::take(&mut burst.stored);
        if !stored.is_empty() {
            self.take_parts(&mut burst, StageName::Offload, stored);
        }
        if burst.fold_to.is_some()
            && let Ok(stage) = Stage::read(&StageOptions::of(StageName::Summarize), 0)
        {
            loop {
                match self.fold(&mut burst, &stage) {
                    None => break,
                    Some(effects) if effects.is_empty() => {} // the next chunk
                    Some(effects) => {
                        self.burst = Some(burst);
                        return Step::Effects { effects };
                    }
                }
            }
        }
        burst.fold_to = None;
        burst.custom = None;
        while let Some(stage) = self.next_stage(&mut burst) {
            let effects = match self.takes_part(&burst, &stage) {
                true => self.run(&mut burst, &stage),
                false => None,
            };
            match effects {
                Some(effects) if effects.is_empty() => {} // the same stage again
                Some(effects) => {
                    self.burst = Some(burst);
                    return Step::Effects { effects };
                }
                None => burst.stage += 1,
            }
        }
        self.mend_pointers(&mut burst);
        self.drop_stale_reasoning(&mut burst);
        self.finish(burst)
    }

    /// The stage to run, if any is left. Where the view still does not fit, the tail shrinks to what
    /// the model has not answered, and the last resorts have another go.
    fn next_stage(&self, burst: &mut Burst) -> Option<Stage> {
        if let Some(stage) = self.stages.get(burst.stage) {
            return Some(stage.clone());
        }
        let least = self.tail(&Budget { tail: 1, ..burst.budget }, false);
        if self.tokens() <= burst.budget.usable || burst.tail >= least {
            return None;
        }
        burst.tail = least;
        burst.stage = self.stages.iter().position(|stage| stage.name == StageName::Drop)?;
        self.stages.get(burst.stage).cloned()
    }

    /// A note that points to a newer copy says so no longer where that left.
    fn mend_pointers(&mut self, burst: &mut Burst) {
        if !burst.decisions.is_empty() {
            let dangling = dedupe::dangling(&self.situation(burst, 1));
            if !dangling.is_empty() {
                self.take_parts(burst, StageName::Dedupe, dangling);
            }
        }
    }

    /// A signature vouches for what stands before it: where that was rewritten, the signed
    /// reasoning of older turns goes too.
    fn drop_stale_reasoning(&mut self, burst: &mut Burst) {
        let Some(first) = burst.decisions.iter().map(|decision| decision.index).min() else {
            return;
        };
        if !self.format.signs_history() || self.options.keep_reasoning {
            return;
        }
        let situation = self.situation(burst, 1);
        let stale = reasoning::older(&situation, first, true);
        if !stale.is_empty() {
            self.take_parts_for(burst, StageName::Reasoning, Cause::Signature, stale);
        }
    }

    fn takes_part(&self, burst: &Burst, stage: &Stage) -> bool {
        let tokens = self.tokens();
        let at = stage.at(&burst.budget);
        match stage.name {
            // The last resorts look at the size as it is by now.
            StageName::Elide => tokens >= at,
            StageName::Drop => tokens >= at || self.over_bytes().is_some(),
            _ => {
                let due = burst.overflow || burst.force || burst.before >= at;
                tokens > self.goal(burst, stage) && (due || self.over_bytes().is_some())
            }
        }
    }

    /// Calibrated size at which a stage may stop.
    pub(super) fn goal(&self, burst: &Burst, stage: &Stage) -> u32 {
        let budget = &burst.budget;
        if burst.force {
            return 1;
        }
        if let Some((bytes, most)) = self.over_bytes() {
            // Bytes go with tokens, about; a tenth less, so that the next message has room.
            let share = f64::from(most) / f64::from(bytes) * 0.9;
            return ((f64::from(self.tokens()) * share) as u32).clamp(1, budget.target);
        }
        let at = stage.at(budget).min(budget.trigger);
        // A stage with a lower watermark of its own stops as far below it.
        let share = f64::from(budget.target) / f64::from(budget.trigger.max(1));
        budget.target.min((f64::from(at) * share) as u32).max(1)
    }

    /// Runs one stage. None: it is done. Some: perform these, or none and run it again.
    fn run(&mut self, burst: &mut Burst, stage: &Stage) -> Option<Vec<Effect>> {
        match stage.name {
            StageName::Summarize => return self.fold(burst, stage),
            StageName::Custom => return Some(vec![self.ask_stage(burst, stage)]),
            _ => {}
        }
        let situation = self.situation(burst, self.goal(burst, stage));
        match stage::plan(stage, &situation) {
            Plan::Hide(runs) => {
                if let Some(run) = runs.last()
                    && let Some(effect) = self.flush(burst, run.to)
                {
                    return Some(vec![effect]);
                }
                self.hide(burst, stage.name, runs);
                None
            }
            Plan::Parts(proposals) if proposals.is_empty() => None,
            Plan::Parts(proposals) => {
                if stage.name == StageName::Offload && self.options.store && self.dry.is_none() {
                    burst.stage += 1;
                    return Some(self.puts(burst, proposals));
                }
                self.take_parts(burst, stage.name, proposals);
                // Shares are estimates: elide looks again until the view fits.
                (stage.name == StageName::Elide).then(Vec::new)
            }
        }
    }

    pub(super) fn situation(&self, burst: &Burst, goal: u32) -> Situation<'_> {
        let raw = |tokens: u32| (f64::from(tokens) / self.ratio()) as u32;
        Situation {
            view: self.view(),
            // Whatever is decided brings the recall tool along.
            tokens: self.visible.saturating_add(self.system + self.tools + self.recall_schema),
            target: raw(goal),
            max_images: self.sizes.max_images,
            over_bytes: self.over_bytes().is_some(),
            limit: raw(burst.budget.usable),
            tail: burst.tail,
            overflow: burst.overflow,
            must: burst.overflow || burst.force || self.tokens() > burst.budget.usable,
        }
    }

    fn puts(&mut self, burst: &mut Burst, proposals: Vec<Proposal>) -> Vec<Effect> {
        proposals
            .into_iter()
            .map(|proposal| {
                let index = (self.transcript.lead + proposal.place.body) as usize;
                let message = &self.transcript.messages[index];
                let part = &message.parts[proposal.place.part as usize];
                let content = message.content(part).into_owned();
                let key = self.store_key(proposal.decision.reference);
                let id = self.effect_id();
                burst.waiting.push((id, Waiting::Put(proposal)));
                Effect::Put { id, key, content }
            })
            .collect()
    }

    pub(super) fn effect_id(&mut self) -> u32 {
        let id = self.next_effect;
        self.next_effect += 1;
        id
    }

    /// Why a stage decides anything at this moment.
    pub(super) fn cause(&self, burst: &Burst, stage: StageName) -> Cause {
        if burst.overflow {
            Cause::Overflow
        } else if burst.force {
            Cause::Forced
        } else if self.over_images() && stage == StageName::Media {
            Cause::Images
        } else if self.over_bytes().is_some() {
            Cause::Bytes
        } else if self.tokens() > burst.budget.usable {
            Cause::Limit
        } else {
            Cause::Watermark
        }
    }

    fn take_parts(&mut self, burst: &mut Burst, stage: StageName, proposals: Vec<Proposal>) {
        let reason = self.cause(burst, stage);
        self.take_parts_for(burst, stage, reason, proposals);
    }

    fn take_parts_for(
        &mut self,
        burst: &mut Burst,
        stage: StageName,
        reason: Cause,
        mut proposals: Vec<Proposal>,
    ) {
        // Replies come in any order; outcomes do not.
        sort(&mut proposals, |proposal| proposal.place.order());
        burst.took(stage);
        for Proposal { place, decision, saved } in proposals {
            self.decisions.parts.insert(place, decision);
            burst.decisions.push(Decided {
                stage: burst.label(stage),
                kind: decision.action.name(),
                reason,
                index: self.transcript.lead + place.body,
                part: place.part,
                to: None,
                reference: Some(decision.reference.to_string()),
                tokens_saved: self.scaled(saved),
            });
        }
        self.recount();
    }

    /// Takes runs of units out of the view; what stands between them stays.
    fn hide(&mut self, burst: &mut Burst, stage: StageName, runs: Vec<Run>) {
        let Some(upto) = runs.last().map(|run| run.to) else { return };
        let reason = self.cause(burst, stage);
        let lead = self.transcript.lead;
        let upto = self.decisions.dropped.max(upto - lead);
        let leaves =
            |unit: &Unit| runs.iter().any(|run| run.from <= unit.start && unit.end <= run.to);
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for unit in self.view().shown().filter(|unit| unit.start >= lead) {
            let pinned = self.transcript.unit_messages(unit).iter().any(|message| message.pinned);
            if unit.end - lead > upto || pinned || leaves(unit) {
                continue;
            }
            let (from, to) = (unit.start - lead, unit.end - lead);
            match kept.last_mut().filter(|last| last.1 == from) {
                Some(last) => last.1 = to,
                None => kept.push((from, to)),
            }
        }
        let before = (self.visible, self.decisions.clone());
        self.decisions.kept = kept;
        self.decisions.drop_upto(upto, self.transcript.chain_at(upto).unwrap_or_default());
        self.forget_hidden();
        self.recount();
        // The note that counts what left may take more than all of it did.
        if self.visible >= before.0 {
            self.decisions = before.1;
            self.recount();
            return;
        }
        burst.took(stage);
        for run in runs {
            burst.decisions.push(Decided {
                stage: burst.label(stage),
                kind: "dropped",
                reason,
                index: run.from,
                part: 0,
                to: Some(run.to),
                reference: None,
                tokens_saved: self.scaled(run.saved),
            });
        }
    }

    /// Lets go of decisions on messages that the view no longer shows.
    pub(super) fn forget_hidden(&mut self) {
        let mut parts = std::mem::take(&mut self.decisions.parts);
        let (transcript, view) = (&self.transcript, self.view());
        parts.retain(|place| {
            let index = transcript.lead.saturating_add(place.body);
            let unit = transcript.units.get(transcript.unit_of(index));
            let pinned = |unit| transcript.unit_messages(unit).iter().any(|message| message.pinned);
            unit.is_none_or(|unit| view.shows(unit) || pinned(unit))
        });
        self.decisions.parts = parts;
    }

    /// First body message of the tail that holds without an overflow.
    fn body_tail(&self, budget: &Budget) -> u32 {
        self.tail(budget, false).saturating_sub(self.transcript.lead)
    }

    /// First message of the protected tail: the newest units that fit its size, and whatever the
    /// model has not answered; the newest user message too where that costs no more than twice.
    pub(super) fn tail(&self, budget: &Budget, overflow: bool) -> u32 {
        let size = match overflow {
            true => budget.tail.min(budget.usable / 10),
            false => budget.tail,
        };
        let size = (f64::from(size) / self.ratio()) as u32;
        let units = &self.transcript.units;
        let lead = self.transcript.lead;
        let mut from = self.transcript.len();
        let mut sum = 0u32;
        let mut full = false;
        let mut has_user = false;
        for unit in units.iter().rev().take_while(|unit| unit.start >= lead) {
            sum = sum.saturating_add(unit.tokens);
            // The newest unit is in whatever its size.
            full |= sum > size && from < self.transcript.len();
            if full && (has_user || sum > size.saturating_mul(2)) {
                break;
            }
            has_user |= self
                .transcript
                .unit_messages(unit)
                .iter()
                .any(|message| message.role == crate::transcript::Role::User);
            if !full || has_user {
                from = unit.start;
            }
        }
        from.min(self.transcript.unanswered_from()).max(lead)
    }

    /// Takes in what an overflow error says. Returns the refused size where no window is named.
    fn learn(&mut self, limit: Option<u32>, requested: Option<u32>) -> Option<u32> {
        let tokens = self.tokens();
        let Some(limit) = limit else { return Some(tokens) };
        self.learn_window(self.learned_key(), limit);
        let usable = self.sizes.budget(limit).usable;
        if tokens <= usable {
            // By our count it would have fitted: the count is too low for this content. What the
            // provider counted may hold the output that was asked for, hence without the reserve.
            let real = requested.map_or(0, |all| all.saturating_sub(limit - usable)).max(limit);
            let model = self.model().to_owned();
            self.calibration.raise(&model, f64::from(real) * 1.05 / f64::from(self.raw().max(1)));
        }
        None
    }

    /// Ends a plan that took no decision.
    pub(super) fn idle(&mut self, reason: Reason) -> Step {
        let tokens = self.tokens();
        self.done(Outcome {
            compacted: false,
            reason,
            stages: Vec::new(),
            tokens_before: tokens,
            tokens_after: tokens,
            fits: reason != Reason::CannotFit,
            window: None,
            usable: None,
            trigger: None,
            target: None,
            overflow: false,
            decisions: Vec::new(),
            cache: None,
            failures: Vec::new(),
            repairs: Vec::new(),
            summary: None,
            notices: Vec::new(),
            smallest: (reason == Reason::CannotFit).then_some(tokens),
        })
    }

    fn cannot_fit(&mut self, tokens: u32, usable: u32) {
        let what = format!(
            "the view takes about {tokens} tokens and only {usable} fit: what is pinned, the \
             system messages or the tools are too large"
        );
        self.notice("cannot_fit", what);
    }

    /// Takes back the first decisions of a session where the recall tool, which comes with them, costs
    /// more than they save.
    fn undo_growth(&mut self, burst: &mut Burst) {
        let sized = |one: &Decided| !matches!(one.reason, Cause::Bytes | Cause::Images);
        if !burst.first
            || burst.decisions.is_empty()
            || self.raw() < burst.raw
            || !burst.decisions.iter().all(sized)
        {
            return;
        }
        let pins = std::mem::take(&mut self.decisions.pins);
        self.decisions = Decisions { pins, ..Decisions::default() };
        burst.decisions.clear();
        burst.stages.clear();
        burst.summary = None;
        self.recount();
    }

    fn finish(&mut self, mut burst: Burst) -> Step {
        self.undo_growth(&mut burst);
        let tokens = self.tokens();
        let compacted = !burst.decisions.is_empty();
        if compacted {
            (self.before_burst, self.stale) = (Some(burst.raw), None);
        }
        let fits = tokens <= burst.budget.usable;
        let reason = match (compacted, fits) {
            (_, false) => Reason::CannotFit,
            (true, true) => Reason::Compacted,
            (false, true) => Reason::NothingToCompact,
        };
        let cache = self.cache_report(&burst);
        let saved = burst.before.saturating_sub(tokens);
        if compacted {
            self.totals.bursts = self.totals.bursts.saturating_add(1);
            self.totals.saved = self.totals.saved.saturating_add(saved);
        }
        let low = saved < burst.budget.usable / 50;
        self.low_savings = if low { self.low_savings + 1 } else { 0 };
        // Where this burst could not get under the trigger, one right after it would rewrite the view
        // for what this one was not worth.
        let high = tokens >= burst.budget.trigger && burst.failures.is_empty();
        let rests = !compacted || high || self.low_savings >= MAX_LOW_SAVINGS;
        let until = tokens.saturating_add(if fits { burst.budget.trigger / 50 } else { 1 });
        self.rest = (rests || !fits).then(|| (until, self.body_tail(&burst.budget)));
        if !fits {
            self.cannot_fit(tokens, burst.budget.usable);
        }
        if self.over_bytes().is_some() || self.over_images() {
            let what = "the request is still over options.maxBytes or options.maxImages: what is \
                        pinned or unanswered is too large";
            self.notice("over_bytes", what);
        }
        self.done(Outcome {
            compacted,
            reason,
            stages: burst.stages,
            tokens_before: burst.before,
            tokens_after: tokens,
            fits,
            window: None,
            usable: None,
            trigger: None,
            target: None,
            overflow: burst.overflow,
            cache,
            decisions: burst.decisions,
            failures: burst.failures,
            repairs: Vec::new(),
            summary: burst.summary,
            notices: Vec::new(),
            smallest: (!fits).then_some(tokens),
        })
    }

    /// What of the view stands as it stood before the burst.
    fn cache_report(&self, burst: &Burst) -> Option<CacheReport> {
        let lead = self.transcript.lead;
        let first = burst.decisions.iter().map(|decided| decided.index).min()?;
        let hides = burst.decisions.iter().any(|decided| decided.to.is_some());
        let first = if hides { lead.min(first) } else { first };
        let unit = self.transcript.unit_of(first);
        let units = self.transcript.units[..unit].iter().filter(|unit| unit.shown);
        let head = if hides || unit <= self.transcript.unit_of(lead) { 0 } else { self.head };
        let tokens = units.fold(head, |sum, unit| sum.saturating_add(unit.tokens));
        let prefix_tokens = match burst.first && self.recall_schema > 0 {
            true => 0,
            false => self.scaled(tokens.saturating_add(self.beside())),
        };
        let start = self.transcript.units.get(unit).map_or(first, |unit| unit.start);
        Some(CacheReport {
            prefix_bytes: self.view().prefix_bytes(start, hides),
            prefix_tokens,
            reread_tokens: self.tokens().saturating_sub(prefix_tokens),
        })
    }

    /// How much the view grows from plan to plan: a mean that forgets.
    fn note_growth(&mut self) {
        let Totals { growth, seen, .. } = self.totals;
        let grown = self.tokens().saturating_sub(seen);
        if grown > 0 && seen > 0 {
            let grown = grown.saturating_mul(16);
            let known = if growth == 0 { grown } else { growth };
            self.totals.growth = known - known / 4 + grown / 4;
        }
    }

    /// What every outcome says, and the bookkeeping of every plan's end.
    fn done(&mut self, mut outcome: Outcome) -> Step {
        if let Some(budget) = self.budget() {
            outcome.window = Some(budget.window);
            outcome.usable = Some(budget.usable);
            outcome.trigger = Some(budget.trigger);
            outcome.target = Some(budget.target);
            outcome.fits &= outcome.tokens_after <= budget.usable;
        }
        if self.visible == 0 && !self.is_empty() {
            let what =
                "nothing of this conversation can be sent: it has results without calls only";
            self.notice("empty_view", what);
        }
        outcome.failures.append(&mut self.faults.take());
        outcome.repairs = std::mem::take(&mut self.repairs);
        outcome.notices = std::mem::take(&mut self.notices);
        self.measured = Some(self.raw());
        self.totals.seen = self.tokens();
        Step::Done { outcome: Box::new(outcome) }
    }
}

impl Burst {
    pub(super) fn took(&mut self, stage: StageName) {
        let label = self.label(stage);
        if self.stages.last() != Some(&label) {
            self.stages.push(label);
        }
    }

    /// What outcomes call a stage: by its name, or that of the host's whose decisions are taken.
    pub(super) fn label(&self, stage: StageName) -> Cow<'static, str> {
        self.custom.clone().unwrap_or(stage.as_str().into())
    }
}

/// Bursts in a row that free less than a fiftieth of usable before planning rests.
const MAX_LOW_SAVINGS: u32 = 3;

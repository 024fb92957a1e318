//! The bindings of the Component Model: the world of `tidemark.wit`, without logic.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::{
    CacheReport, Candidate, CandidateUnit, Cause, Decided, Edit, Effect, Engine, Error, ErrorClass,
    Estimate, Failure, Item, Notice, Options, Outcome, Overflow, PathStep, PlanRequest, Problem,
    Reason, RecallArgs, RecallStep, RecallTool, Repair, Reply, Step, SummaryReport, SummaryVersion,
    Usage, Wanted, classify,
};

wit_bindgen::generate!({ path: "src/tidemark.wit", world: "tidemark" });

use exports::tidemark::engine::sessions as wit;

struct Component;

export!(Component);

struct Session(RefCell<Engine>);

type Result<T> = std::result::Result<T, wit::Error>;

impl wit::Guest for Component {
    type Session = Session;

    fn classify(status: Option<u16>, body: String) -> wit::ErrorClass {
        match classify(status, &body) {
            ErrorClass::Overflow { limit, requested } => {
                wit::ErrorClass::Overflow((limit, requested))
            }
            ErrorClass::TooManyBytes { limit } => wit::ErrorClass::TooManyBytes(limit),
            ErrorClass::TooManyImages { limit } => wit::ErrorClass::TooManyImages(limit),
            ErrorClass::ShapeFault => wit::ErrorClass::ShapeFault,
            ErrorClass::RateLimit => wit::ErrorClass::RateLimit,
            ErrorClass::Other => wit::ErrorClass::Other,
        }
    }
}

impl Session {
    fn resource(engine: std::result::Result<Engine, Error>) -> Result<wit::Session> {
        Ok(wit::Session::new(Session(RefCell::new(engine?))))
    }
}

impl wit::GuestSession for Session {
    fn open(options: String) -> Result<wit::Session> {
        Session::resource(Engine::new(Options::from_json(&options)?))
    }

    fn restore(options: String, checkpoint: String) -> Result<wit::Session> {
        Session::resource(Engine::restore(Options::from_json(&options)?, &checkpoint))
    }

    fn ingest(&self, known: u32, messages: String, pinned: Vec<u32>) -> Result<()> {
        Ok(self.0.borrow_mut().ingest(known as usize, &messages, &pinned)?)
    }

    fn ingest_body(&self, body: Vec<u8>, path: Option<String>) -> Result<()> {
        Ok(self.0.borrow_mut().ingest_body(&body, path.as_deref())?)
    }

    fn set_tools(&self, tools: String) -> Result<()> {
        Ok(self.0.borrow_mut().set_tools(&tools)?)
    }

    fn set_system(&self, system: String) -> Result<()> {
        Ok(self.0.borrow_mut().set_system(&system)?)
    }

    fn plan(&self, request: wit::PlanRequest) -> Result<wit::Step> {
        Ok(self.0.borrow_mut().plan(request.into())?.into())
    }

    fn resolve(&self, id: u32, reply: wit::Reply) -> Result<wit::Step> {
        Ok(self.0.borrow_mut().resolve(id, reply.into())?.into())
    }

    fn propose(&self, id: u32, wanted: wit::Wanted) -> Result<u32> {
        let wanted = match wanted {
            wit::Wanted::Clear((index, part)) => Wanted::Clear { index, part },
            wit::Wanted::Offload((index, part, tokens)) => Wanted::Offload { index, part, tokens },
            wit::Wanted::Drop((from, to)) => Wanted::Drop { from, to },
            wit::Wanted::Summarize(to) => Wanted::Summarize { to },
        };
        Ok(self.0.borrow_mut().propose(id, wanted)?)
    }

    fn cancel(&self) {
        self.0.borrow_mut().cancel();
    }

    fn render(&self) -> String {
        self.0.borrow().render_json()
    }

    fn render_body(&self) -> Option<Vec<u8>> {
        self.0.borrow_mut().render_body().map(String::into_bytes)
    }

    fn estimate(&self) -> wit::Estimate {
        let Estimate { tokens, tools, messages, ratio, window, usable, trigger, target, full } =
            self.0.borrow().estimate();
        let budget = budget([window, usable, trigger, target]);
        wit::Estimate { tokens, tools, messages, ratio, budget, full }
    }

    fn stats(&self) -> wit::Stats {
        let stats = self.0.borrow().stats();
        wit::Stats {
            messages: stats.messages,
            transcript_tokens: stats.transcript_tokens,
            tokens: stats.tokens,
            full: stats.full,
            bursts: stats.bursts,
            summarizer_calls: stats.summarizer_calls,
            tokens_saved: stats.tokens_saved,
            parts: stats.parts,
            covered: stats.covered,
            dropped: stats.dropped,
            growth: stats.growth,
            turns_to_burst: stats.turns_to_burst,
        }
    }

    fn summaries(&self) -> Vec<wit::Version> {
        let version = |SummaryVersion { version, covered, by, reference }| wit::Version {
            version,
            covered,
            by: owned(by.as_str()),
            reference,
        };
        self.0.borrow().summaries().into_iter().map(version).collect()
    }

    fn problems(&self) -> Vec<wit::Problem> {
        let problem = |Problem { kind, index, id, says, repair }| wit::Problem {
            kind: owned(kind),
            index,
            id,
            says: owned(says),
            repair: owned(repair),
        };
        self.0.borrow().problems().into_iter().map(problem).collect()
    }

    fn recall_tool(&self) -> Option<wit::RecallTool> {
        let RecallTool { name, description, parameters, definition } =
            self.0.borrow().recall_tool()?;
        Some(wit::RecallTool { name, description, parameters, definition })
    }

    fn recall(&self, arguments: String) -> Result<wit::RecallStep> {
        Ok(match self.0.borrow().recall(&RecallArgs::from_json(&arguments)?)? {
            RecallStep::Page { text } => wit::RecallStep::Page(text),
            RecallStep::Fetch { key } => wit::RecallStep::Fetch(key),
        })
    }

    fn recall_fetched(&self, arguments: String, content: Option<String>) -> Result<String> {
        let args = RecallArgs::from_json(&arguments)?;
        Ok(self.0.borrow().recall_fetched(&args, content.as_deref())?)
    }

    fn checkpoint(&self) -> String {
        self.0.borrow().checkpoint()
    }
}

impl From<Error> for wit::Error {
    fn from(error: Error) -> Self {
        wit::Error {
            code: owned(error.code().as_str()),
            path: owned(error.path()),
            message: error.to_string(),
        }
    }
}

impl From<wit::PlanRequest> for PlanRequest {
    fn from(request: wit::PlanRequest) -> Self {
        PlanRequest {
            usage: request.input_tokens.map(|input_tokens| Usage { input_tokens }),
            overflow: request
                .overflow
                .map(|error| Overflow { status: error.status, body: error.body }),
            force: request.force,
            focus: request.focus,
            fresh: request.fresh,
            dry_run: request.dry_run,
            server_history: request.server_history,
        }
    }
}

impl From<wit::Reply> for Reply {
    fn from(reply: wit::Reply) -> Self {
        match reply {
            wit::Reply::Text(text) => Reply::Text { text },
            wit::Reply::Done => Reply::Done,
            wit::Reply::Go(wit::Go { veto, pins }) => Reply::Go { veto, pins },
            wit::Reply::Failed(message) => Reply::Failed { message },
        }
    }
}

impl From<Step> for wit::Step {
    fn from(step: Step) -> Self {
        match step {
            Step::Effects { effects } => wit::Step::Effects(list(effects)),
            Step::Done { outcome } => wit::Step::Done((*outcome).into()),
            Step::Idle => wit::Step::Idle,
        }
    }
}

impl From<Effect> for wit::Effect {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Summarize { id, system, prompt, max_tokens, from, to, attempt, view } => {
                wit::Effect::Summarize(wit::Summarize {
                    id,
                    system,
                    prompt,
                    max_tokens,
                    first: from,
                    end: to,
                    attempt,
                    view: view.map(list),
                })
            }
            Effect::Burst { id, cause, tokens, target, tail } => {
                wit::Effect::Burst(wit::Burst { id, cause: owned(cause), tokens, target, tail })
            }
            Effect::Flush { id, text, from, to } => {
                wit::Effect::Flush(wit::Flush { id, text, first: from, end: to })
            }
            Effect::Decide { id, position, context } => wit::Effect::Decide(wit::Decide {
                id,
                position,
                stage: context.stage,
                tokens: context.tokens,
                target: context.target,
                limit: context.limit,
                overflow: context.overflow,
                forced: context.forced,
                parts: list(context.parts),
                units: list(context.units),
            }),
            Effect::Put { id, key, content } => wit::Effect::Put(wit::Put { id, key, content }),
        }
    }
}

impl From<Candidate> for wit::Candidate {
    fn from(part: Candidate) -> Self {
        wit::Candidate {
            index: part.index,
            part: part.part,
            kind: owned(part.kind),
            role: owned(part.role),
            tool: part.tool,
            tokens: part.tokens,
            decision: part.decision.map(owned),
            pinned: part.pinned,
            protected: part.protected,
            failed: part.failed,
        }
    }
}

impl From<CandidateUnit> for wit::CandidateUnit {
    fn from(CandidateUnit { from, to, tokens, pinned, protected }: CandidateUnit) -> Self {
        wit::CandidateUnit { first: from, end: to, tokens, pinned, protected }
    }
}

impl From<Item> for wit::Item {
    fn from(item: Item) -> Self {
        match item {
            Item::Run { from, to } => wit::Item::Run((from, to)),
            Item::Patch { index, edits } => {
                wit::Item::Patch(wit::Patch { index, edits: list(edits) })
            }
            Item::Insert { json } => wit::Item::Insert(json),
        }
    }
}

impl From<Edit> for wit::Edit {
    fn from(Edit { path, json }: Edit) -> Self {
        let place = |step| match step {
            PathStep::Key(key) => wit::Place::Member(owned(key)),
            PathStep::Index(index) => wit::Place::Element(index),
        };
        wit::Edit { path: path.into_iter().map(place).collect(), json }
    }
}

impl From<Outcome> for wit::Outcome {
    fn from(outcome: Outcome) -> Self {
        wit::Outcome {
            compacted: outcome.compacted,
            reason: outcome.reason.into(),
            stages: outcome.stages.into_iter().map(Cow::into_owned).collect(),
            tokens_before: outcome.tokens_before,
            tokens_after: outcome.tokens_after,
            fits: outcome.fits,
            budget: budget([outcome.window, outcome.usable, outcome.trigger, outcome.target]),
            overflow: outcome.overflow,
            decisions: list(outcome.decisions),
            cache: outcome.cache.map(Into::into),
            failures: list(outcome.failures),
            repairs: list(outcome.repairs),
            summary: outcome.summary.map(Into::into),
            notices: list(outcome.notices),
            smallest: outcome.smallest,
        }
    }
}

impl From<Reason> for wit::Reason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::UnderTrigger => wit::Reason::UnderTrigger,
            Reason::Compacted => wit::Reason::Compacted,
            Reason::UnknownWindow => wit::Reason::UnknownWindow,
            Reason::NothingToCompact => wit::Reason::NothingToCompact,
            Reason::CannotFit => wit::Reason::CannotFit,
            Reason::RateLimit => wit::Reason::RateLimit,
            Reason::NotAnOverflow => wit::Reason::NotAnOverflow,
            Reason::ServerSideHistory => wit::Reason::ServerSideHistory,
            Reason::Vetoed => wit::Reason::Vetoed,
        }
    }
}

impl From<Decided> for wit::Decision {
    fn from(decided: Decided) -> Self {
        wit::Decision {
            stage: decided.stage.into_owned(),
            kind: owned(decided.kind),
            cause: decided.reason.into(),
            index: decided.index,
            part: decided.part,
            end: decided.to,
            reference: decided.reference,
            tokens_saved: decided.tokens_saved,
        }
    }
}

impl From<Cause> for wit::Cause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Watermark => wit::Cause::Watermark,
            Cause::Limit => wit::Cause::Limit,
            Cause::Overflow => wit::Cause::Overflow,
            Cause::Forced => wit::Cause::Forced,
            Cause::Bytes => wit::Cause::Bytes,
            Cause::Images => wit::Cause::Images,
            Cause::Signature => wit::Cause::Signature,
        }
    }
}

impl From<CacheReport> for wit::Cache {
    fn from(report: CacheReport) -> Self {
        let CacheReport { prefix_bytes, prefix_tokens, reread_tokens } = report;
        wit::Cache { prefix_bytes, prefix_tokens, reread_tokens }
    }
}

impl From<Failure> for wit::Failure {
    fn from(Failure { effect, code, message }: Failure) -> Self {
        wit::Failure { effect: owned(effect), code: owned(code), message }
    }
}

impl From<Repair> for wit::Repair {
    fn from(Repair { kind, index, id, detail }: Repair) -> Self {
        wit::Repair { kind: owned(kind), index, id, detail: owned(detail) }
    }
}

impl From<SummaryReport> for wit::Summary {
    fn from(SummaryReport { text, covered, by, tokens, audit }: SummaryReport) -> Self {
        wit::Summary {
            text,
            covered,
            by: owned(by.as_str()),
            tokens,
            found: audit.found as u32,
            kept: audit.kept as u32,
            appended: audit.appended as u32,
        }
    }
}

impl From<Notice> for wit::Notice {
    fn from(Notice { code, message }: Notice) -> Self {
        wit::Notice { code: owned(code), message }
    }
}

fn budget([window, usable, trigger, target]: [Option<u32>; 4]) -> Option<wit::Budget> {
    let (window, usable, trigger, target) = (window?, usable?, trigger?, target?);
    Some(wit::Budget { window, usable, trigger, target })
}

fn list<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(Into::into).collect()
}

fn owned(text: &str) -> String {
    text.to_owned()
}

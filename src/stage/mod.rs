//! The stages of a burst, cheapest first, and the presets as lists of them.
//!
//! A stage looks at a [`Situation`] and proposes decisions; the engine takes them. None of them
//! performs I/O or changes state.

mod clear;
mod dedupe;
mod drop;
mod elide;
mod media;
mod offload;
pub(crate) mod reasoning;
pub(crate) mod summarize;

use std::borrow::Cow;

use crate::arguments::Arguments;
use crate::budget::{Budget, Mark};
use crate::decision::{Action, Decision, Place, Ref};
use crate::error::{Error, ErrorCode};
use crate::json::{Kind, Value};
use crate::options::{invalid, whole};
use crate::transcript::{Message, Part, Unit};
use crate::view::View;

/// Names of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StageName {
    /// An older identical result, or that of a call made again, becomes a pointer to the newer.
    Dedupe,
    /// A large old result becomes a preview; its full text goes to the store.
    Offload,
    /// An old result becomes a short marker.
    Clear,
    /// Reasoning of older turns leaves.
    Reasoning,
    /// An old image or file becomes a short marker.
    Media,
    /// The oldest units are folded into the running summary.
    Summarize,
    /// The oldest units leave; one note says how many.
    Drop,
    /// What is too big inside the protected tail is cut to its head and tail.
    Elide,
}

impl StageName {
    /// All of them.
    const ALL: [StageName; 8] = [
        StageName::Dedupe,
        StageName::Offload,
        StageName::Clear,
        StageName::Reasoning,
        StageName::Media,
        StageName::Summarize,
        StageName::Drop,
        StageName::Elide,
    ];

    /// The name used in options and outcomes.
    pub fn as_str(self) -> &'static str {
        match self {
            StageName::Dedupe => "dedupe",
            StageName::Offload => "offload",
            StageName::Clear => "clear",
            StageName::Reasoning => "reasoning",
            StageName::Media => "media",
            StageName::Summarize => "summarize",
            StageName::Drop => "drop",
            StageName::Elide => "elide",
        }
    }
}

/// One stage of a pipeline with its options; what a stage does not use is ignored.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// Which stage.
    pub stage: StageName,
    /// offload, clear: the newest results that stay as they are. Default 2 and 3.
    pub keep_last: Option<f64>,
    /// offload, clear: results under this many tokens stay. Default 1,000 and 50.
    pub min_tokens: Option<f64>,
    /// offload: tokens of the preview. Default 200.
    pub preview_tokens: Option<f64>,
    /// offload, clear: tools whose results stay.
    pub exclude: Vec<String>,
    /// Size of the view from which the stage runs: a share of usable, or tokens. Default:
    /// `compactAt`; 1.0 for drop and elide, the last resorts.
    pub at: Option<f64>,
}

impl StageOptions {
    /// Reads a stage: its name, or an object with its name under `stage`.
    pub(crate) fn read(value: Value<'_>, index: usize) -> Result<StageOptions, Error> {
        let place = format!("options.stages[{index}]");
        let named = |text: Option<Cow<'_, str>>, place: &str| {
            let name =
                StageName::ALL.into_iter().find(|name| Some(name.as_str()) == text.as_deref());
            name.ok_or_else(|| {
                let names = StageName::ALL.map(StageName::as_str).join(", ");
                invalid(place, &format!("one of {names}"))
            })
        };
        if value.kind() != Kind::Object {
            return Ok(StageOptions::of(named(value.string(), &place)?));
        }
        let known = ["stage", "keepLast", "minTokens", "previewTokens", "exclude", "at"];
        let from = Arguments::new(value, &*place, ErrorCode::InvalidOption, &known)?;
        let exclude = from.list("exclude")?.unwrap_or_default();
        Ok(StageOptions {
            stage: named(from.text("stage")?, &from.at("stage"))?,
            keep_last: from.number("keepLast")?,
            min_tokens: from.number("minTokens")?,
            preview_tokens: from.number("previewTokens")?,
            exclude: exclude
                .into_iter()
                .map(|tool| tool.string().map(Cow::into_owned))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| from.wrong("exclude", "an array of tool names"))?,
            at: from.number("at")?,
        })
    }

    pub(crate) fn of(stage: StageName) -> StageOptions {
        StageOptions {
            stage,
            keep_last: None,
            min_tokens: None,
            preview_tokens: None,
            exclude: Vec::new(),
            at: None,
        }
    }
}

/// The pipeline used when the host names none.
pub(crate) fn default_stages() -> Vec<StageOptions> {
    StageName::ALL.map(StageOptions::of).into()
}

/// A stage with its options checked.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub name: StageName,
    pub keep_last: usize,
    pub min_tokens: u32,
    pub preview_tokens: u32,
    exclude: Vec<String>,
    at: Option<Mark>,
}

impl Stage {
    pub(crate) fn read(options: &StageOptions, index: usize) -> Result<Stage, Error> {
        let place = |field: &str| format!("options.stages[{index}].{field}");
        let (keep_last, min_tokens) = match options.stage {
            StageName::Offload => (2, 1000),
            StageName::Dedupe => (0, 50),
            StageName::Media => (1, 0),
            _ => (3, 50),
        };
        let at = match options.at {
            Some(at) => Some(Mark::read(&place("at"), at, 2)?),
            None => None,
        };
        let preview = whole(&place("previewTokens"), options.preview_tokens, 0)?.unwrap_or(200);
        let min = whole(&place("minTokens"), options.min_tokens, 0)?.unwrap_or(min_tokens);
        if options.stage == StageName::Offload && preview >= min.max(1) {
            return Err(invalid(&place("previewTokens"), "less than minTokens"));
        }
        Ok(Stage {
            name: options.stage,
            keep_last: whole(&place("keepLast"), options.keep_last, 0)?.unwrap_or(keep_last)
                as usize,
            min_tokens: min,
            preview_tokens: preview,
            exclude: options.exclude.clone(),
            at,
        })
    }

    /// View size from which the stage takes part in a burst, tokens.
    pub(crate) fn at(&self, budget: &Budget) -> u32 {
        match (self.at, self.name) {
            (Some(mark), _) => mark.of(budget.usable),
            (None, StageName::Drop | StageName::Elide) => budget.usable.saturating_add(1),
            (None, _) => budget.trigger,
        }
    }
}

/// What a stage sees. All sizes are raw estimates: the calibration is already divided out.
pub(crate) struct Situation<'a> {
    pub view: View<'a>,
    /// Tokens of the view, tools included.
    pub tokens: u32,
    /// Size at which the burst may stop.
    pub target: u32,
    /// Size that the view must not exceed.
    pub limit: u32,
    /// First message of the protected tail.
    pub tail: u32,
    /// Most images and files that the request may hold.
    pub max_images: Option<u32>,
    /// The request takes more bytes than it may.
    pub over_bytes: bool,
    /// After an overflow, thresholds that spare small or recent results do not hold.
    pub overflow: bool,
}

/// A decision that a stage would take.
pub(crate) struct Proposal {
    pub place: Place,
    pub decision: Decision,
    pub saved: u32,
}

impl<'a> Situation<'a> {
    /// Messages of the body in units that the view shows, oldest first.
    fn shown_messages(&self) -> impl Iterator<Item = u32> {
        let lead = self.view.transcript.lead;
        self.view.shown().flat_map(move |unit| unit.start.max(lead)..unit.end.max(lead))
    }

    /// Results in the view, oldest first.
    fn shown_results(&self) -> Vec<(Place, &'a Message, &'a Part)> {
        let transcript = self.view.transcript;
        let mut found = Vec::new();
        for index in self.shown_messages() {
            let message = &transcript.messages[index as usize];
            for (part, result) in message.results().filter(|(_, part)| part.link.is_some()) {
                let place = Place { body: index - transcript.lead, part };
                found.push((place, message, result));
            }
        }
        found
    }

    /// Results in the view that may be made smaller, oldest first.
    fn results(&self, stage: &Stage) -> Vec<(Place, &'a Message, &'a Part)> {
        let mut found = self.shown_results();
        let keep = if self.overflow { stage.keep_last.min(1) } else { stage.keep_last };
        found.truncate(found.len().saturating_sub(keep));
        found.retain(|(place, message, result)| self.may_shrink(stage, *place, message, result));
        found
    }

    fn may_shrink(&self, stage: &Stage, place: Place, message: &Message, result: &Part) -> bool {
        place.body + self.view.transcript.lead < self.tail
            && !message.pinned
            && !stage.exclude.iter().any(|tool| **tool == *result.name)
    }

    /// Tokens that a part's content takes in the view now.
    fn now(&self, place: Place, message: &Message, part: &Part) -> u32 {
        match self.view.decisions.parts.get(place) {
            Some(old) => self.view.family.text(&self.view.replacement(message, part, old)),
            None => part.content_tokens(),
        }
    }

    /// The decision on a part as it stands, or one that names its content for the first time.
    fn decision(&self, place: Place, message: &Message, part: &Part, action: Action) -> Decision {
        if let Some(old) = self.view.decisions.parts.get(place) {
            return Decision { action, ..*old };
        }
        let content = message.content(part);
        Decision {
            action,
            reference: Ref::of(&content),
            chars: content.chars().count() as u32,
            anchor: message.anchor(part, self.view.transcript.key),
        }
    }

    /// A decision for a part, if it makes the view smaller than it is now and a text may stand there.
    fn propose(
        &self,
        place: Place,
        message: &Message,
        part: &Part,
        action: Action,
    ) -> Option<Proposal> {
        let decision = self.decision(place, message, part, action);
        let then = self.view.family.text(&self.view.replacement(message, part, &decision));
        let now = self.now(place, message, part);
        let saved = now.checked_sub(then).filter(|saved| *saved > 0 && part.is_replaceable())?;
        Some(Proposal { place, decision, saved })
    }

    /// A decision that leaves head and tail of a part in at most `most` tokens, note left out.
    /// Ends may be denser than the whole, so the size is measured and cut again.
    fn preview(
        &self,
        place: Place,
        message: &Message,
        part: &Part,
        most: u32,
        action: impl Fn(u32) -> Action,
    ) -> Option<Proposal> {
        let length = part.end - part.start;
        let mut bytes = offload::preview_bytes(part.content_tokens(), length, most);
        let now = self.now(place, message, part);
        let mut decision = self.decision(place, message, part, action(bytes));
        for _ in 0..12 {
            decision.action = action(bytes);
            let then =
                self.view.family.text(&self.view.replacement(message, part, &decision)).min(now);
            if bytes == 0 || then <= most.saturating_add(NOTE) {
                let saved = now - then;
                let may = saved > 0 && part.is_replaceable();
                return may.then_some(Proposal { place, decision, saved });
            }
            bytes = (u64::from(bytes) * u64::from(most) / u64::from(then + 1)) as u32 * 9 / 10;
        }
        None
    }

    /// Takes proposals in order until the target is reached.
    fn until_target(&self, proposals: impl Iterator<Item = Proposal>) -> Vec<Proposal> {
        let mut tokens = self.tokens;
        let mut taken = Vec::new();
        for proposal in proposals {
            if tokens <= self.target {
                break;
            }
            tokens = tokens.saturating_sub(proposal.saved);
            taken.push(proposal);
        }
        taken
    }

    fn body_units(&self, from: u32) -> impl Iterator<Item = &'a Unit> {
        let lead = self.view.transcript.lead;
        let units = &self.view.transcript.units;
        units[self.view.transcript.unit_of(from.max(lead))..]
            .iter()
            .filter(move |u| u.start >= lead)
    }
}

/// Upper bound of the note between head and tail, tokens.
const NOTE: u32 = 40;

/// Decisions of one run of a stage that needs nothing from the host.
pub(crate) enum Plan {
    /// Parts that become smaller.
    Parts(Vec<Proposal>),
    /// The body messages up to this one leave, and this many tokens with them.
    Drop { upto: u32, saved: u32 },
}

/// Runs a stage other than summarize.
pub(crate) fn plan(stage: &Stage, situation: &Situation<'_>) -> Plan {
    match stage.name {
        StageName::Offload => Plan::Parts(offload::plan(stage, situation)),
        StageName::Dedupe => Plan::Parts(dedupe::plan(stage, situation)),
        StageName::Clear => Plan::Parts(clear::plan(stage, situation)),
        StageName::Reasoning => Plan::Parts(reasoning::plan(situation)),
        StageName::Media => Plan::Parts(media::plan(stage, situation)),
        StageName::Elide => Plan::Parts(elide::plan(situation)),
        StageName::Drop => drop::plan(situation),
        StageName::Summarize => Plan::Parts(Vec::new()),
    }
}

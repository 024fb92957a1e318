//! The stages of a burst, cheapest first, and the presets as lists of them.
//!
//! A stage looks at a [`Situation`] and proposes decisions; the engine takes them. None of them
//! performs I/O or changes state.

mod clear;
pub(crate) mod custom;
pub(crate) mod dedupe;
mod drop;
mod elide;
mod media;
mod offload;
pub(crate) mod preset;
pub(crate) mod reasoning;
mod smart;
pub(crate) mod summarize;

use std::borrow::Cow;

use crate::arguments::Arguments;
use crate::budget::{Budget, Mark};
use crate::decision::{Action, Decision, Place, Ref};
use crate::error::{Error, ErrorCode};
use crate::json::{Kind, Value};
use crate::options::{invalid, whole};
use crate::order::sort;
use crate::transcript::{Message, Part, PartKind, Unit};
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
    /// The units that say the least for their size leave; one note says how many.
    Smart,
    /// The oldest units are folded into the running summary.
    Summarize,
    /// The oldest units leave; one note says how many.
    Drop,
    /// What is too big inside the protected tail is cut to its head and tail.
    Elide,
    /// A stage of the host's own, which answers a `decide` effect.
    Custom,
}

impl StageName {
    /// All of them.
    const ALL: [StageName; 10] = [
        StageName::Dedupe,
        StageName::Offload,
        StageName::Clear,
        StageName::Reasoning,
        StageName::Media,
        StageName::Smart,
        StageName::Summarize,
        StageName::Drop,
        StageName::Elide,
        StageName::Custom,
    ];

    /// The name used in options and outcomes.
    pub fn as_str(self) -> &'static str {
        match self {
            StageName::Dedupe => "dedupe",
            StageName::Offload => "offload",
            StageName::Clear => "clear",
            StageName::Reasoning => "reasoning",
            StageName::Media => "media",
            StageName::Smart => "smart",
            StageName::Summarize => "summarize",
            StageName::Drop => "drop",
            StageName::Elide => "elide",
            StageName::Custom => "custom",
        }
    }
}

/// One stage of a pipeline with its options; what a stage does not use is ignored.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// Which stage.
    pub stage: StageName,
    /// custom: its name, which outcomes tell. Default `custom`.
    pub name: Option<String>,
    /// offload, clear: the newest results that stay as they are, of those that the tool lists let
    /// the stage have. media: the newest images and files. Default 2, 3 and 1.
    pub keep_last: Option<f64>,
    /// dedupe, offload, clear: results under this many tokens stay. Default 50, 1,000 and 50.
    pub min_tokens: Option<f64>,
    /// offload: tokens of the preview. Default 200.
    pub preview_tokens: Option<f64>,
    /// dedupe, offload, clear: the newest results stay that take this many tokens together.
    /// Default 0.
    pub protect_tokens: Option<f64>,
    /// dedupe, offload, clear, reasoning, media: where the stage could take out less than this, a
    /// share of usable or tokens, it takes out nothing: each change costs the prompt cache.
    /// Default 0.
    pub clear_at_least: Option<f64>,
    /// The same as a share of the view in [0, 1). Default 0; for summarize `summary.minSavings`.
    pub min_savings: Option<f64>,
    /// dedupe, offload, clear: the only tools whose results may leave. Default: all tools.
    pub include: Option<Vec<String>>,
    /// dedupe, offload, clear: tools whose results stay.
    pub exclude: Vec<String>,
    /// dedupe, offload, clear: results that tell of a failure stay.
    pub keep_errors: bool,
    /// offload, clear: arguments of old calls leave as results do; of these tools, of all of them
    /// where the list is empty.
    pub include_arguments: Option<Vec<String>>,
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
        let known = [
            "stage",
            "name",
            "keepLast",
            "minTokens",
            "previewTokens",
            "protectTokens",
            "clearAtLeast",
            "minSavings",
            "include",
            "exclude",
            "keepErrors",
            "includeArguments",
            "at",
        ];
        let from = Arguments::new(value, &*place, ErrorCode::InvalidOption, &known)?;
        let names = |value: Value<'_>| {
            let names = value.items().map(|tool| tool.string().map(Cow::into_owned));
            names.collect::<Option<Vec<_>>>().filter(|_| value.kind() == Kind::Array)
        };
        let tools = |member: &str| match from.get(member) {
            None => Ok(None),
            Some(value) => match names(value) {
                None => Err(from.wrong(member, "an array of tool names")),
                tools => Ok(tools),
            },
        };
        let include_arguments = match from.get("includeArguments") {
            None => None,
            Some(value) => match (value.boolean(), names(value)) {
                (Some(all), _) => all.then(Vec::new),
                (None, Some(tools)) => Some(tools).filter(|tools| !tools.is_empty()),
                (None, None) => {
                    let expected = "true, false or an array of tool names";
                    return Err(from.wrong("includeArguments", expected));
                }
            },
        };
        Ok(StageOptions {
            stage: named(from.text("stage")?, &from.at("stage"))?,
            name: from.owned("name")?,
            keep_last: from.number("keepLast")?,
            min_tokens: from.number("minTokens")?,
            preview_tokens: from.number("previewTokens")?,
            protect_tokens: from.number("protectTokens")?,
            clear_at_least: from.number("clearAtLeast")?,
            min_savings: from.number("minSavings")?,
            include: tools("include")?,
            exclude: tools("exclude")?.unwrap_or_default(),
            keep_errors: from.flag("keepErrors")?.unwrap_or_default(),
            include_arguments,
            at: from.number("at")?,
        })
    }

    pub(crate) fn of(stage: StageName) -> StageOptions {
        StageOptions {
            stage,
            name: None,
            keep_last: None,
            min_tokens: None,
            preview_tokens: None,
            protect_tokens: None,
            clear_at_least: None,
            min_savings: None,
            include: None,
            exclude: Vec::new(),
            keep_errors: false,
            include_arguments: None,
            at: None,
        }
    }
}

/// A stage with its options checked.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub name: StageName,
    /// What outcomes call it.
    pub label: Cow<'static, str>,
    pub keep_last: usize,
    pub min_tokens: u32,
    pub preview_tokens: u32,
    protect_tokens: u32,
    clear_at_least: Option<Mark>,
    pub min_savings: Option<f64>,
    include: Option<Vec<String>>,
    exclude: Vec<String>,
    keep_errors: bool,
    include_arguments: Option<Vec<String>>,
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
        let mark = |field: &str, value: Option<f64>| match value {
            Some(value) => Mark::read(&place(field), value, 2).map(Some),
            None => Ok(None),
        };
        if options.min_savings.is_some_and(|share| !(0.0..1.0).contains(&share)) {
            return Err(invalid(&place("minSavings"), "a share in [0, 1)"));
        }
        let preview = whole(&place("previewTokens"), options.preview_tokens, 0)?.unwrap_or(200);
        let min = whole(&place("minTokens"), options.min_tokens, 0)?.unwrap_or(min_tokens);
        if options.stage == StageName::Offload && preview >= min.max(1) {
            return Err(invalid(&place("previewTokens"), "less than minTokens"));
        }
        Ok(Stage {
            name: options.stage,
            label: match (options.stage, &options.name) {
                (StageName::Custom, Some(name)) => Cow::Owned(name.clone()),
                _ => options.stage.as_str().into(),
            },
            keep_last: whole(&place("keepLast"), options.keep_last, 0)?.unwrap_or(keep_last)
                as usize,
            min_tokens: min,
            preview_tokens: preview,
            protect_tokens: whole(&place("protectTokens"), options.protect_tokens, 0)?
                .unwrap_or_default(),
            clear_at_least: mark("clearAtLeast", options.clear_at_least.filter(|at| *at != 0.0))?,
            min_savings: options.min_savings,
            include: options.include.clone(),
            exclude: options.exclude.clone(),
            keep_errors: options.keep_errors,
            include_arguments: options.include_arguments.clone(),
            at: mark("at", options.at)?,
        })
    }

    /// Whether the tool lists let the stage have results of a tool.
    fn takes(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| *name == *tool);
        self.include.as_deref().is_none_or(named) && !named(&self.exclude)
    }

    /// Whether arguments of calls of a tool leave as results do.
    fn takes_arguments(&self, tool: &str) -> bool {
        let list = self.include_arguments.as_deref();
        list.is_some_and(|list| list.is_empty() || list.iter().any(|name| *name == *tool))
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
    /// Little is better than nothing: least savings do not hold.
    pub must: bool,
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

    /// Results in the view that may be made smaller, and arguments of calls where the stage takes
    /// those, oldest first.
    fn results(&self, stage: &Stage) -> Vec<(Place, &'a Message, &'a Part)> {
        let transcript = self.view.transcript;
        let mut found = self.shown_results();
        found.retain(|(_, _, result)| stage.takes(&result.name));
        let (keep, protect) = match self.overflow {
            true => (stage.keep_last.min(1), 0),
            false => (stage.keep_last, stage.protect_tokens),
        };
        let mut sum = 0u32;
        let stays = found.iter().rev().zip(1..).take_while(|((_, _, result), count)| {
            sum = sum.saturating_add(result.tokens);
            *count <= keep || sum <= protect
        });
        let stays = stays.count();
        let newest = found.get(found.len() - stays).map(|(place, ..)| *place);
        found.truncate(found.len() - stays);
        if stage.include_arguments.is_some() {
            // Arguments stay with their result.
            let old = |call: &Part| {
                let link = call.link.map(|link| Place {
                    body: link.message.saturating_sub(transcript.lead),
                    part: link.part,
                });
                link.is_some_and(|link| newest.is_none_or(|newest| link < newest))
            };
            for index in self.shown_messages() {
                let message = &transcript.messages[index as usize];
                let calls = message.calls().filter(|(_, call)| {
                    stage.takes_arguments(&call.name) && stage.takes(&call.name) && old(call)
                });
                found.extend(calls.map(|(part, call)| {
                    (Place { body: index - transcript.lead, part }, message, call)
                }));
            }
            sort(&mut found, |(place, ..)| place.order());
        }
        found.retain(|(place, message, part)| self.may_shrink(stage, *place, message, part));
        found
    }

    fn may_shrink(&self, stage: &Stage, place: Place, message: &Message, part: &Part) -> bool {
        place.body + self.view.transcript.lead < self.tail
            && !message.pinned
            && stage.takes(&part.name)
            && !(stage.keep_errors && part.kind == PartKind::Result && fails(message, part))
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
            anchor: message.anchor(part, self.view.transcript.key) as u32,
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

    /// Takes proposals in order until the target is reached, and as much as the stage must take out
    /// at least.
    fn until_target(
        &self,
        stage: &Stage,
        proposals: impl Iterator<Item = Proposal>,
    ) -> Vec<Proposal> {
        let least = self.least(stage);
        let mut saved = 0u32;
        let mut taken = Vec::new();
        for proposal in proposals {
            if self.tokens.saturating_sub(saved) <= self.target && saved >= least {
                break;
            }
            saved = saved.saturating_add(proposal.saved);
            taken.push(proposal);
        }
        taken
    }

    /// Tokens that a stage must be able to take out for it to take out any.
    fn least(&self, stage: &Stage) -> u32 {
        if self.must {
            return 0;
        }
        let share = f64::from(self.tokens) * stage.min_savings.unwrap_or_default();
        stage.clear_at_least.map_or(0, |mark| mark.of(self.limit)).max(share as u32)
    }

    fn is_pinned(&self, unit: &Unit) -> bool {
        self.view.transcript.unit_messages(unit).iter().any(|message| message.pinned)
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
    /// These leave, oldest first.
    Hide(Vec<Run>),
}

/// Units in a row that leave the view.
pub(crate) struct Run {
    pub from: u32,
    /// The message after the last.
    pub to: u32,
    pub saved: u32,
}

impl Run {
    /// Adds a unit behind the others.
    pub(crate) fn add(runs: &mut Vec<Run>, unit: &Unit) {
        match runs.last_mut().filter(|run| run.to == unit.start) {
            Some(run) => {
                run.to = unit.end;
                run.saved = run.saved.saturating_add(unit.tokens);
            }
            None => runs.push(Run { from: unit.start, to: unit.end, saved: unit.tokens }),
        }
    }
}

/// Runs a stage other than summarize.
pub(crate) fn plan(stage: &Stage, situation: &Situation<'_>) -> Plan {
    let proposals = match stage.name {
        StageName::Offload => offload::plan(stage, situation),
        StageName::Dedupe => dedupe::plan(stage, situation),
        StageName::Clear => clear::plan(stage, situation),
        StageName::Reasoning => reasoning::plan(stage, situation),
        StageName::Media => media::plan(stage, situation),
        StageName::Elide => return Plan::Parts(elide::plan(situation)),
        StageName::Drop => return drop::plan(situation),
        StageName::Smart => return smart::plan(stage, situation),
        StageName::Summarize | StageName::Custom => return Plan::Parts(Vec::new()),
    };
    let saved = proposals.iter().fold(0u32, |sum, one| sum.saturating_add(one.saved));
    match saved >= situation.least(stage) {
        true => Plan::Parts(proposals),
        false => Plan::Parts(Vec::new()),
    }
}

/// Whether a result tells of a failure: its format says so, or it begins as failures do.
fn fails(message: &Message, result: &Part) -> bool {
    if result.failed {
        return true;
    }
    let text = message.text(result);
    let begins = text.trim_start_matches(|letter: char| !letter.is_alphabetic());
    let begins = begins.get(..begins.floor_char_boundary(16)).unwrap_or_default();
    let begins = begins.to_ascii_lowercase();
    // A member of that name may say that there was none.
    if let Some(none) = begins.strip_prefix("error\":").map(str::trim_start)
        && ["null", "false", "\"\"", "[]"].iter().any(|value| none.starts_with(value))
    {
        return false;
    }
    let signs = [
        "error",
        "traceback",
        "exception",
        "fatal",
        "panic",
        "failed",
        "failure",
        "iserror\":true",
    ];
    signs.iter().any(|sign| begins.starts_with(sign))
}

//! custom: a stage of the host's own. It is shown what is in the view, and each decision that it
//! wants is checked: units stay whole, pins and the protected tail stay, nothing is undone.

use serde::Serialize;

use super::{Proposal, Run, Situation, fails};
use crate::arguments::{Arguments, parse};
use crate::decision::{Action, Place};
use crate::error::{Error, ErrorCode};
use crate::transcript::{Message, Part, PartKind, Unit};

/// One part in the view, as a stage of the host's sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Message.
    pub index: u32,
    /// Part of it.
    pub part: u32,
    /// `text`, `reasoning`, `call`, `result`, `image`, `file` or `opaque`.
    pub kind: &'static str,
    /// Who speaks: `system`, `user`, `assistant`, `tool` or `other`.
    pub role: &'static str,
    /// Tool of a call or of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Tokens that it takes in the view now.
    pub tokens: u32,
    /// What was decided on it before, as [`crate::Decided::kind`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// Its message stays as it is.
    pub pinned: bool,
    /// It is in the protected tail, which stays as well.
    pub protected: bool,
    /// A result that tells of a failure.
    pub failed: bool,
}

/// One unit in the view: what leaves together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateUnit {
    /// First message.
    pub from: u32,
    /// The message after the last.
    pub to: u32,
    /// Tokens that it takes in the view now.
    pub tokens: u32,
    /// One of its messages stays as it is, and so all of it stays.
    pub pinned: bool,
    /// It is in the protected tail, which stays as well.
    pub protected: bool,
}

/// A decision that a stage of the host's wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A part becomes a marker; reasoning leaves without one.
    Clear {
        /// Message.
        index: u32,
        /// Part of it.
        part: u32,
    },
    /// A part becomes its head and tail, of this many tokens; the whole goes to the store, if there
    /// is one.
    Offload {
        /// Message.
        index: u32,
        /// Part of it.
        part: u32,
        /// Tokens of the preview.
        tokens: u32,
    },
    /// Whole units leave.
    Drop {
        /// First message.
        from: u32,
        /// The message after the last.
        to: u32,
    },
    /// All units before this message are folded into the summary.
    Summarize {
        /// The message after the last.
        to: u32,
    },
}

impl Wanted {
    /// Reads a decision from JSON: `{"kind":"clear","index":3,"part":0}`, `offload` with `tokens`,
    /// `{"kind":"drop","from":2,"to":6}` or `{"kind":"summarize","to":9}`.
    ///
    /// # Errors
    /// `invalid_decision` naming the member.
    pub fn from_json(text: &str) -> Result<Wanted, Error> {
        let code = ErrorCode::InvalidDecision;
        let json = parse(text, "decision", code)?;
        let known = ["kind", "index", "part", "tokens", "from", "to"];
        let read = Arguments::new(json.root(), "decision", code, &known)?;
        let number = |name: &str| {
            let number = read.count(name)?;
            read.required(name, number)
        };
        let part = || Ok(read.count("part")?.unwrap_or_default());
        Ok(match read.text("kind")?.as_deref() {
            Some("clear") => Wanted::Clear { index: number("index")?, part: part()? },
            Some("offload") => {
                let tokens = read.count("tokens")?.unwrap_or(PREVIEW);
                Wanted::Offload { index: number("index")?, part: part()?, tokens }
            }
            Some("drop") => Wanted::Drop { from: number("from")?, to: number("to")? },
            Some("summarize") => Wanted::Summarize { to: number("to")? },
            _ => return Err(read.wrong("kind", "clear, offload, drop or summarize")),
        })
    }
}

/// What a stage of the host's wants, checked.
#[derive(Default)]
pub(crate) struct Work {
    pub parts: Vec<Proposal>,
    pub runs: Vec<Run>,
    /// Everything before this message is to be folded.
    pub fold: Option<u32>,
}

impl<'a> Situation<'a> {
    /// The parts in the view behind the leading system messages, and the units they belong to.
    pub(crate) fn candidates(
        &self,
        scaled: impl Fn(u32) -> u32,
    ) -> (Vec<Candidate>, Vec<CandidateUnit>) {
        let transcript = self.view.transcript;
        let (mut parts, mut units) = (Vec::new(), Vec::new());
        for unit in self.view.shown().filter(|unit| unit.start >= transcript.lead) {
            let protected = unit.end > self.tail;
            units.push(CandidateUnit {
                from: unit.start,
                to: unit.end,
                tokens: scaled(unit.tokens),
                pinned: self.is_pinned(unit),
                protected,
            });
            for index in unit.start..unit.end {
                let message = &transcript.messages[index as usize];
                for (part, at) in message.parts.iter().zip(0u32..) {
                    let place = Place { body: index - transcript.lead, part: at };
                    let decision = self.view.decisions.parts.get(place);
                    parts.push(Candidate {
                        index,
                        part: at,
                        kind: part.kind.name(),
                        role: message.role.name(),
                        tool: (!part.name.is_empty()).then(|| part.name.as_ref().to_owned()),
                        tokens: scaled(self.now(place, message, part)),
                        decision: decision.map(|decision| decision.action.name()),
                        pinned: message.pinned,
                        protected,
                        failed: part.kind == PartKind::Result && fails(message, part),
                    });
                }
            }
        }
        (parts, units)
    }

    /// Checks a decision against what is in the view and what the stage wants already, and adds it.
    /// Returns the tokens that it saves.
    pub(crate) fn want(&self, work: &mut Work, wanted: Wanted) -> Result<u32, Error> {
        match wanted {
            Wanted::Clear { index, part } => self.want_part(work, index, part, None),
            Wanted::Offload { index, part, tokens } => {
                self.want_part(work, index, part, Some(tokens))
            }
            Wanted::Drop { from, to } => self.want_drop(work, from, to),
            Wanted::Summarize { to } => self.want_fold(work, to),
        }
    }

    fn want_part(
        &self,
        work: &mut Work,
        index: u32,
        at: u32,
        preview: Option<u32>,
    ) -> Result<u32, Error> {
        let refuse = |what: &'static str| Err(refused(index, Some(at), what));
        let transcript = self.view.transcript;
        let Some((message, part)) = self.part(index, at) else {
            return refuse("there is no such part");
        };
        let unit = &transcript.units[transcript.unit_of(index)];
        if let Some(what) = self.stays(unit, message.pinned) {
            return refuse(what);
        }
        let place = Place { body: index - transcript.lead, part: at };
        if work.parts.iter().any(|other| other.place == place) {
            return refuse("the stage has decided on it already");
        }
        let old = self.view.decisions.parts.get(place).map(|old| old.action);
        let gone = part.kind == PartKind::Result && part.link.is_none() || part.block > 2;
        let proposal = match (preview, part.kind, old) {
            _ if gone => None,
            (_, PartKind::Reasoning, None) if self.view.may_lose(index) => {
                let decision = self.decision(place, message, part, Action::Removed);
                let saved = part.tokens;
                (saved > 0).then_some(Proposal { place, decision, saved })
            }
            (_, PartKind::Reasoning | PartKind::Opaque, _) => None,
            (Some(_), _, Some(_)) => {
                return refuse("it is smaller or gone already, and no decision is undone");
            }
            (Some(_), ..) if part.media => None,
            (Some(tokens), ..) => self.preview(place, message, part, tokens, |bytes| {
                Action::Offloaded { head: bytes / 2, tail: bytes - bytes / 2 }
            }),
            (None, _, Some(Action::Cleared | Action::Removed)) => {
                return refuse("it is cleared already");
            }
            (None, ..) => self.propose(place, message, part, Action::Cleared),
        };
        let Some(proposal) = proposal else {
            return refuse("nothing smaller may stand in its place");
        };
        let saved = proposal.saved;
        work.parts.push(proposal);
        Ok(saved)
    }

    fn want_drop(&self, work: &mut Work, from: u32, to: u32) -> Result<u32, Error> {
        let transcript = self.view.transcript;
        if from >= to || to > transcript.len() {
            return Err(refused(from, None, "expected the messages from..to of the transcript"));
        }
        self.check_edge(from)?;
        self.check_edge(to)?;
        let units = &transcript.units[transcript.unit_of(from)..transcript.unit_of(to - 1) + 1];
        for unit in units {
            if let Some(what) = self.stays(unit, self.is_pinned(unit)) {
                return Err(refused(unit.start, None, what));
            }
            if work.runs.iter().any(|run| run.from < unit.end && unit.start < run.to) {
                return Err(refused(unit.start, None, "the stage has dropped it already"));
            }
        }
        let mut runs = Vec::new();
        units.iter().for_each(|unit| Run::add(&mut runs, unit));
        let saved = runs.iter().map(|run| run.saved).fold(0u32, u32::saturating_add);
        if saved == 0 {
            return Err(refused(from, None, "it takes no room in the view"));
        }
        work.runs.append(&mut runs);
        Ok(saved)
    }

    fn want_fold(&self, work: &mut Work, to: u32) -> Result<u32, Error> {
        let transcript = self.view.transcript;
        let covered = transcript.lead.saturating_add(self.view.decisions.covered());
        if to > self.tail {
            return Err(refused(to.min(transcript.len()), None, PROTECTED));
        }
        if to <= covered {
            return Err(refused(to, None, "the summary stands for that already"));
        }
        self.check_edge(to)?;
        let folds = self.view.shown().filter(|unit| unit.start >= covered && unit.end <= to);
        let visible = folds.filter(|unit| !self.is_pinned(unit)).map(|unit| unit.tokens);
        let visible = visible.fold(0u32, u32::saturating_add);
        if visible == 0 {
            return Err(refused(to, None, "nothing in the view stands between the summary and it"));
        }
        work.fold = work.fold.max(Some(to));
        Ok(visible)
    }

    /// Why a unit in the view must stay as it is, if it must.
    fn stays(&self, unit: &Unit, pinned: bool) -> Option<&'static str> {
        match () {
            () if unit.end <= self.view.transcript.lead => {
                Some("a leading system message is pinned")
            }
            () if !self.view.shows(unit) => Some("it left the view before, for good"),
            () if pinned => Some("it is pinned"),
            () if unit.end > self.tail => Some(PROTECTED),
            () => None,
        }
    }

    /// Checks that no unit is cut there.
    fn check_edge(&self, at: u32) -> Result<(), Error> {
        let transcript = self.view.transcript;
        let unit = transcript.units.get(transcript.unit_of(at));
        match unit.filter(|unit| unit.start < at) {
            None => Ok(()),
            Some(unit) => {
                let (from, last) = (unit.start.to_string(), (unit.end - 1).to_string());
                let what = ["a unit is cut there: messages ", &*from, " to ", &*last];
                let what = [&what.concat(), " leave together or not at all"].concat();
                let place = ["messages[", &at.to_string(), "]"].concat();
                Err(Error::new(ErrorCode::InvalidDecision, place.into(), what.into()))
            }
        }
    }

    fn part(&self, index: u32, at: u32) -> Option<(&'a Message, &'a Part)> {
        let transcript = self.view.transcript;
        let message = transcript.messages.get(index as usize)?;
        message.parts.get(at as usize).map(|part| (message, part))
    }
}

fn refused(index: u32, part: Option<u32>, what: &'static str) -> Error {
    let mut place = ["messages[", &index.to_string(), "]"].concat();
    if let Some(part) = part {
        place = [&*place, ".parts[", &part.to_string(), "]"].concat();
    }
    Error::new(ErrorCode::InvalidDecision, place.into(), what.into())
}

const PROTECTED: &str = "it is in the protected tail, or the model has not answered it yet";

/// Tokens of a preview where the host says nothing.
const PREVIEW: u32 = 200;

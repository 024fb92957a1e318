//! From decisions to the view: edits over the caller's messages, and edits to bytes.

use std::collections::BinaryHeap;
use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::count::{self, Family};
pub(crate) use crate::cut::{boundary, ends};
use crate::decision::{Action, Decision, Decisions, Place};
use crate::format::{Approval, Format, FormatName};
use crate::json::{Json, Value, mended, write_string};
use crate::marker::{self, Kept};
use crate::order::sort;
use crate::transcript::{
    Flaw, Link, Message, Pairing, Part, PartKind, Role, Shape, Step, Transcript, Unit,
};

/// One value of a message replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// Where it stands inside the message; nowhere for the message itself.
    pub path: Vec<Step>,
    /// What stands there now, as JSON; empty where the member is left out.
    pub json: String,
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Step::Key(key) => to.serialize_str(key),
            Step::Index(index) => to.serialize_u32(*index),
        }
    }
}

/// A piece of the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Item {
    /// Messages of the transcript as they are, `to` not included.
    Run {
        /// First message.
        from: u32,
        /// The message after the last.
        to: u32,
    },
    /// A message of the transcript with some values replaced.
    Patch {
        /// Its index.
        index: u32,
        /// What is replaced.
        edits: Vec<Edit>,
    },
    /// A message of our own.
    Insert {
        /// The message.
        json: String,
    },
}

impl Item {
    /// Messages that the item adds to the view.
    pub fn len(&self) -> u32 {
        match self {
            Item::Run { from, to } => to - from,
            _ => 1,
        }
    }

    /// Whether it adds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Something malformed in the transcript that the view mends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// `orphan_result`, `unanswered_call`, `misplaced_result`, `duplicate_id`, `empty_message`,
    /// `empty_text`, `empty_calls`, `empty_error`, `misplaced_content`, `trailing_reasoning`,
    /// `stranded_reasoning`, `lone_surrogate`, `null_result`, `object_arguments`, `no_arguments`,
    /// `bare_response`, `duplicate_item`, `stray_id`, `orphan_approval`, `cache_marker` or `assistant_first`.
    pub kind: &'static str,
    /// Message of the transcript.
    pub index: u32,
    /// Call id, where one is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the view shows instead.
    pub detail: &'static str,
}

/// Something in the transcript that a provider would refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// As [`Repair::kind`].
    pub kind: &'static str,
    /// Message of the transcript.
    pub index: u32,
    /// Call id, where one is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What a provider says to it.
    pub says: &'static str,
    /// How the view mends it.
    pub repair: &'static str,
}

impl Problem {
    pub(crate) fn of(repair: Repair, format: FormatName) -> Problem {
        let anthropic = format == FormatName::Anthropic;
        let responses = format == FormatName::OpenaiResponses;
        let says = match repair.kind {
            "orphan_result" if anthropic => {
                "unexpected `tool_use_id` found in `tool_result` blocks: each must have a \
                 corresponding `tool_use` block in the previous message"
            }
            "orphan_result" if responses => "No tool call found for function call output",
            "orphan_result" => {
                "messages with role 'tool' must be a response to a preceding message with \
                 'tool_calls'"
            }
            "unanswered_call" if anthropic => {
                "`tool_use` ids were found without `tool_result` blocks immediately after"
            }
            "unanswered_call" if responses => "No tool output found for function call",
            "unanswered_call" | "misplaced_result" => {
                "an assistant message with 'tool_calls' must be followed by tool messages \
                 responding to each 'tool_call_id'"
            }
            "duplicate_id" if responses => "Duplicate item found",
            "duplicate_id" => "`tool_use` ids must be unique",
            "stranded_reasoning" => {
                "an item of type 'reasoning' was provided without its required following item"
            }
            "empty_message" | "empty_text" => "text content must be non-empty",
            "empty_calls" => "[] is too short - 'tool_calls'",
            "orphan_approval" => {
                "tool call not found for approval request, or request for response"
            }
            "duplicate_item" => "Duplicate item found. Remove duplicate items from your input",
            "cache_marker" => "A maximum of 4 blocks with cache_control may be provided",
            "stray_id" => "function response id does not match that of its function call",
            "lone_surrogate" => "the request body is not valid JSON: no low surrogate in string",
            "null_result" => "content must be a string or an array, not null",
            "object_arguments" | "no_arguments" => "arguments must be a JSON string",
            _ => "the first message must have the role user",
        };
        let Repair { kind, index, id, detail } = repair;
        Problem { kind, index, id, says, repair: detail }
    }
}

/// What a unit looks like in the view.
#[derive(Default)]
pub(crate) struct Rendered {
    pub items: Vec<Item>,
    pub tokens: u32,
    /// Bytes of the JSON, about.
    pub bytes: u32,
    /// Images and files.
    pub media: u32,
    pub repairs: Vec<Repair>,
    /// Content of the message before this element waits until the results of the turn are shown.
    hold: u32,
    /// Such content.
    held: Vec<String>,
    /// Results of the message are held, to go into another one.
    gather: bool,
}

impl Rendered {
    fn keep(&mut self, index: u32, tokens: u32) {
        self.tokens = self.tokens.saturating_add(tokens);
        match self.items.last_mut() {
            Some(Item::Run { to, .. }) if *to == index => *to += 1,
            _ => self.items.push(Item::Run { from: index, to: index + 1 }),
        }
    }

    fn append(&mut self, other: Rendered) {
        self.items.extend(other.items);
        self.repairs.extend(other.repairs);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.media = self.media.saturating_add(other.media);
    }

    fn repair(&mut self, kind: &'static str, index: u32, id: Option<&str>, detail: &'static str) {
        let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
        self.repairs.push(Repair { kind, index, id, detail });
    }
}

/// Renders units of a transcript under decisions.
pub(crate) struct View<'a> {
    pub transcript: &'a Transcript,
    pub decisions: &'a Decisions,
    pub format: &'static dyn Format,
    /// Tokenizers that what is written here is counted with.
    pub family: Family,
    /// Name of the recall tool; none where recall is off.
    pub recall: Option<&'a str>,
    /// What stands before a summary.
    pub label: &'a str,
    /// The message that stands for what is hidden is merged into the user's that follows.
    pub alternate: bool,
    /// The provider keeps the conversation itself: what is sent stands as it is.
    pub untouched: bool,
    /// The cache markers that it keeps.
    pub marks: Kept,
}

impl View<'_> {
    /// Whether the view shows the unit.
    pub(crate) fn shows(&self, unit: &Unit) -> bool {
        let lead = self.transcript.lead;
        unit.end <= lead
            || unit.end > lead.saturating_add(self.decisions.hidden())
            || self.decisions.keeps(unit.start - lead.min(unit.start), unit.end - lead)
            || (self.transcript.marked
                && self.transcript.unit_messages(unit).iter().any(|message| message.pinned))
    }

    /// Indices of the units that the view may show; those that it hides are passed over.
    pub(crate) fn units(&self) -> impl Iterator<Item = usize> + use<> {
        let transcript = self.transcript;
        let lead = transcript.unit_of(transcript.lead);
        let of = |body: u32| transcript.unit_of(transcript.lead.saturating_add(body));
        let mut kept = Vec::new();
        let first = match transcript.marked {
            true => lead,
            false => {
                let first = of(self.decisions.hidden());
                for (from, to) in &self.decisions.kept {
                    let last = kept.last().map_or(lead, |last| last + 1);
                    kept.extend(of(*from).max(last)..first.min(of(*to - 1) + 1));
                }
                first
            }
        };
        (0..lead).chain(kept).chain(first..transcript.units.len())
    }

    /// Units in the view, oldest first.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Unit> {
        let units = &self.transcript.units;
        self.units().map(move |at| &units[at]).filter(|unit| self.shows(unit))
    }

    pub(crate) fn unit(&self, unit: &Unit) -> Rendered {
        let mut out = Rendered::default();
        if unit.start == self.transcript.lead && self.starts_without_user() {
            let detail = "a user message stands before it";
            out.repair("assistant_first", unit.start, None, detail);
        }
        if self.transcript.pairing == Pairing::Loose {
            let renamed = self.renamed(unit.start..unit.end, &mut out);
            for index in unit.start..unit.end {
                self.in_place(index, &renamed, &mut out);
                self.missing(index..index + 1, &renamed, &mut out);
            }
            return out;
        }
        let mut index = unit.start;
        while index < unit.end {
            index = match self.message_at(index).calls().next() {
                Some(_) => self.batch(index, unit.end, &mut out),
                None => {
                    self.in_place(index, &[], &mut out);
                    index + 1
                }
            };
        }
        out
    }

    fn message_at(&self, index: u32) -> &Message {
        &self.transcript.messages[index as usize]
    }

    fn unit_at(&self, index: u32) -> &Unit {
        &self.transcript.units[self.transcript.unit_of(index)]
    }

    /// Whether the view shows the unit of a message.
    pub(crate) fn shows_message(&self, index: u32) -> bool {
        self.shows(self.unit_at(index))
    }

    fn part_at(&self, at: Link) -> &Part {
        &self.message_at(at.message).parts[at.part as usize]
    }

    /// A message in transcript order. Results are shown with their calls already, or are orphans.
    fn in_place(&self, index: u32, renamed: &[Renamed], out: &mut Rendered) {
        let message = self.message_at(index);
        let linked = message.results().any(|(_, result)| result.link.is_some());
        if !linked || self.transcript.pairing == Pairing::Loose {
            self.message(index, renamed, out);
        }
    }

    /// Calls, and behind them their results wherever in the unit they stand. Returns the index of
    /// the message that follows.
    fn batch(&self, index: u32, end: u32, out: &mut Rendered) -> u32 {
        let each = self.transcript.pairing == Pairing::Each;
        let mut run = index..index + 1;
        while !each && run.end < end && self.message_at(run.end).role == Role::Assistant {
            run.end += 1;
        }
        let renamed = self.renamed(run.clone(), out);
        for index in run.clone() {
            self.message(index, &renamed, out);
        }
        if !each {
            return self.results_of_turn(run, end, &renamed, out);
        }
        let next = run.end;
        let mut expected = next;
        for (part, call) in self.message_at(index).calls() {
            let Some(link) = call.link else {
                self.unanswered(Link { message: index, part }, &renamed, out);
                continue;
            };
            if link.message != expected {
                let detail = "moved behind its call";
                out.repair("misplaced_result", link.message, Some(&call.id), detail);
            }
            expected = link.message + 1;
            self.message(link.message, &renamed, out);
        }
        next
    }

    /// Results behind a run of messages with calls, several of which may share a message. Returns
    /// the index of the message that follows.
    fn results_of_turn(
        &self,
        run: Range<u32>,
        end: u32,
        renamed: &[Renamed],
        out: &mut Rendered,
    ) -> u32 {
        let calls = self.transcript.messages[run.start as usize..run.end as usize].iter();
        let links = calls.flat_map(|message| message.calls().filter_map(|(_, call)| call.link));
        let mut with: Vec<u32> = links.map(|link| link.message).collect();
        sort(&mut with, |message| u64::from(*message));
        with.dedup();
        if self.format.result_part("", "", "").is_some() {
            return self.results_together(run, &with, end, renamed, out);
        }
        let mut next = run.end;
        self.missing(run, renamed, out);
        let show = |index: u32, out: &mut Rendered| {
            if self.format.strict_turns() && with.last().is_some_and(|last| index <= *last) {
                out.hold = self.message_at(index).end_of_results(with.last() == Some(&index));
            }
            self.message(index, renamed, out);
            out.hold = 0;
            if with.last() == Some(&index) {
                self.release(out);
            }
        };
        // What stands behind the calls in the name of their tools, approvals among it.
        while next < end && self.message_at(next).role == Role::Tool {
            show(next, out);
            next += 1;
        }
        for index in with.iter().copied().filter(|index| *index >= next) {
            let id = self.message_at(index).results().next().map(|(_, result)| &*result.id);
            out.repair("misplaced_result", index, id, "moved behind its call");
            show(index, out);
        }
        next
    }

    /// Shows what stood before results that must come first.
    fn release(&self, out: &mut Rendered) {
        if out.held.is_empty() {
            return;
        }
        let content = std::mem::take(&mut out.held).join(",");
        let list = self.format.content();
        let json = ["{\"role\":\"user\",\"", list, "\":[", &content, "]}"].concat();
        out.tokens += count::MESSAGE_FRAMING;
        out.items.push(Item::Insert { json });
    }

    /// As `results_of_turn`, where a format wants all results of a turn in one message: the first
    /// that has some takes in those of the others, and what stands in for missing ones.
    fn results_together(
        &self,
        run: Range<u32>,
        with: &[u32],
        end: u32,
        renamed: &[Renamed],
        out: &mut Rendered,
    ) -> u32 {
        // What is left of the other messages follows behind the one with the results.
        let mut rest = Rendered::default();
        for index in with.iter().skip(1) {
            rest.gather = true;
            self.message(*index, renamed, &mut rest);
            rest.gather = false;
        }
        let mut parts = std::mem::take(&mut rest.held);
        let first = out.items.len();
        self.missing(run.clone(), renamed, out);
        for item in out.items.drain(first..) {
            if let Item::Insert { json } = item {
                parts.push(json);
            }
        }
        let list = self.format.content();
        if let Some(index) = with.first() {
            let raw = &*self.message_at(*index).raw;
            let have = Json::parse(raw)
                .ok()
                .and_then(|json| json.root().get(list).map(|list| list.items().count() as u32))
                .unwrap_or_default();
            let edits = parts.into_iter().zip(have..).map(|(json, at)| {
                let path = vec![Step::Key(list), Step::Index(at)];
                Edit { path, json }
            });
            let edits = edits.collect();
            if *index != run.end {
                let id = self.message_at(*index).results().next().map(|(_, result)| &*result.id);
                out.repair("misplaced_result", *index, id, "moved behind its call");
            }
            self.edited_message(*index, renamed, edits, out);
        } else if !parts.is_empty() {
            let json = ["{\"role\":\"user\",\"", list, "\":[", &parts.join(","), "]}"].concat();
            out.items.push(Item::Insert { json });
        }
        out.append(rest);
        let mut next = run.end;
        while next < end && self.message_at(next).role == Role::Tool {
            if !with.contains(&next) {
                self.message(next, renamed, out);
            }
            next += 1;
        }
        next
    }

    /// Stands in for the results that calls of these messages never got.
    fn missing(&self, run: Range<u32>, renamed: &[Renamed], out: &mut Rendered) {
        for index in run {
            for (part, call) in self.message_at(index).calls() {
                if call.link.is_none() {
                    self.unanswered(Link { message: index, part }, renamed, out);
                }
            }
        }
    }

    fn unanswered(&self, at: Link, renamed: &[Renamed], out: &mut Rendered) {
        if self.yields(at.message) || self.transcript.pending.is_some_and(|from| at.message >= from)
        {
            return;
        }
        let call = self.part_at(at);
        let id = new_id(renamed, at).unwrap_or(&call.id);
        let part = self.format.result_part(id, &call.name, UNANSWERED);
        let whole = || self.format.answer(call, id, UNANSWERED);
        let Some(json) = part.or_else(whole) else { return };
        out.tokens += self.family.text(UNANSWERED) + self.family.text(id) + count::MESSAGE_FRAMING;
        out.items.push(Item::Insert { json });
        let detail = "a result that says so stands in";
        out.repair("unanswered_call", at.message, Some(&call.id), detail);
    }

    /// Calls of these messages whose id is taken, with their new ids.
    fn renamed(&self, run: Range<u32>, out: &mut Rendered) -> Vec<Renamed> {
        let messages = &self.transcript.messages[run.start as usize..run.end as usize];
        let mut renamed = match self.transcript.ids {
            Some(_) => aliases(messages, run.start),
            None => renamed_ids(messages, run.start),
        };
        renamed.retain(|(at, _)| {
            let call = self.part_at(*at);
            self.format.id_path(call).is_some()
        });
        for (at, _) in &renamed {
            let call = self.part_at(*at);
            let detail = "made unique in call and result";
            out.repair("duplicate_id", at.message, Some(&call.id), detail);
        }
        renamed
    }

    fn message(&self, index: u32, renamed: &[Renamed], out: &mut Rendered) {
        self.edited_message(index, renamed, Vec::new(), out);
    }

    /// One message with its decisions and small repairs, and other edits that come first.
    fn edited_message(
        &self,
        index: u32,
        renamed: &[Renamed],
        mut edits: Vec<Edit>,
        out: &mut Rendered,
    ) {
        let message = self.message_at(index);
        if message.role == Role::Tool && message.parts.is_empty() {
            out.repair("empty_message", index, None, "left out");
            return;
        }
        let mut tokens = message.tokens;
        let (mut bytes, mut media) = (message.raw.len() as u32, 0);
        // Elements that leave a list are the last edits, from its end: places before them stand.
        let mut leaving: Vec<Vec<Step>> = Vec::new();
        let mut holds: Vec<Vec<Step>> = Vec::new();
        let (mut content, mut left, mut whole) = (false, false, false);
        let mut orphan = None;
        let trailing = self.trailing_reasoning(index);
        let sheds = self.format.signs_history()
            && message.parts.iter().zip(0u32..).any(|(part, at)| {
                let decision = self.decision(index, at);
                part.signed && decision.is_some_and(|d| d.action == Action::Removed)
            });
        if message.empty {
            out.repair("empty_message", index, None, "a placeholder stands in");
            let path = vec![Step::Key(self.format.content())];
            edits.push(Edit { path, json: self.format.placeholder(message, EMPTY) });
            tokens += self.family.text(EMPTY);
        }
        let stripped = self.stripped(index);
        if !stripped.is_empty() {
            out.repair("cache_marker", index, None, "left out: a request may hold four");
            let edit = |path: &Vec<Step>| Edit { path: path.clone(), json: String::new() };
            edits.extend(stripped.iter().map(edit));
        }
        if message.reasons() && self.is_stranded(index) {
            out.repair("stranded_reasoning", index, None, "left out: nothing follows it");
            return;
        }
        let parted = message.results().find_map(|(_, result)| result.link);
        if self.yields(index) || parted.is_some_and(|call| self.yields(call.message)) {
            let id = Some(&*message.item).filter(|_| message.twin);
            out.repair("duplicate_item", index, id, "left out: an earlier item is the same");
            return;
        }
        let unnamed = message.twin && !message.is_bound_twin();
        if unnamed {
            out.repair("duplicate_item", index, Some(&message.item), "shown without its id");
        }
        if let Some(bond) = self.format.bond()
            && (unnamed
                || message.is_free()
                    && message.thought.is_some_and(|thought| self.is_gone(thought))
                    && message.raw.contains(&*quoted(bond)))
        {
            edits.push(Edit { path: vec![Step::Key(bond)], json: String::new() });
        }
        let approvals = if message.asks { self.approvals(index, renamed) } else { Vec::new() };
        for (part, at) in message.parts.iter().zip(0u32..) {
            let place = Link { message: index, part: at };
            let call = if part.kind == PartKind::Call { Some(place) } else { part.link };
            if let Some(id) = call.and_then(|call| new_id(renamed, call))
                && let Some(path) = self.format.id_path(part)
            {
                edits.push(Edit { path, json: quoted(id) });
            }
            if part.kind == PartKind::Result
                && !part.id.is_empty()
                && part.link.is_some_and(|call| self.part_at(call).id.is_empty())
                && self.has_ids(index)
                && let Some(path) = self.format.own_id(part)
            {
                out.repair("stray_id", index, Some(&part.id), "left out: its call has none");
                edits.push(Edit { path, json: String::new() });
            }
            let approval = approvals.iter().find(|(path, _)| *path == *part.path);
            if let Some((_, Some(id))) = approval
                && let Some(path) = self.format.id_path(part)
            {
                edits.push(Edit { path, json: quoted(id) });
            }
            let leaves = match part.kind {
                _ if approval.is_some_and(|(_, id)| id.is_none()) => {
                    let detail = "left out: its other half is missing";
                    out.repair("orphan_approval", index, None, detail);
                    true
                }
                PartKind::Result if part.link.is_none() => {
                    orphan = Some(&*part.id);
                    true
                }
                _ if part.flaw == Some(Flaw::EmptyText) && !message.empty => {
                    out.repair("empty_text", index, None, "left out");
                    true
                }
                PartKind::Opaque if self.is_parted(index, at) => {
                    let kind = match part.name.is_empty() {
                        true => "unanswered_call",
                        false => "orphan_result",
                    };
                    out.repair(kind, index, Some(&part.id), "left out: its other half is missing");
                    true
                }
                PartKind::Reasoning if at >= trailing => {
                    out.repair("trailing_reasoning", index, None, "left out: nothing followed it");
                    true
                }
                // What is signed together stays or goes together.
                PartKind::Reasoning if sheds => true,
                // Calls and results must stay, mended as they are.
                PartKind::Call | PartKind::Result => false,
                // It may not be mended.
                _ if part.signed && part.flaw.is_some() => {
                    out.repair("lone_surrogate", index, None, "left out: it is signed");
                    true
                }
                // Inside of a result: no marker may stand there, and it goes with the result.
                _ if part.block > 2 => {
                    leaving.iter().any(|path| part.path.starts_with(path))
                        || self.decision(index, at).is_some()
                }
                _ => self.decision(index, at).is_some_and(|d| d.action == Action::Removed),
            };
            if leaves {
                tokens = tokens.saturating_sub(part.tokens);
                bytes = bytes.saturating_sub(part.end - part.start);
                left = true;
                // A result whose member stands twice has a part that no call is left for.
                let again = part.kind == PartKind::Result
                    && message.results().any(|(_, result)| result.link.is_some());
                whole |= part.block == 0 && !again;
                if part.block > 0 {
                    leaving.push(part.path[..usize::from(part.block)].to_vec());
                }
                continue;
            }
            // Media inside of a result are held with it.
            let inside = holds.last().is_some_and(|path| part.path.starts_with(path));
            let waits = match out.gather {
                true => inside || part.kind == PartKind::Result,
                false => {
                    part.kind != PartKind::Result
                        && matches!(part.path.get(1), Some(Step::Index(at)) if *at < out.hold)
                }
            };
            if waits && !inside {
                holds.push(part.path[..2].to_vec());
                leaving.push(part.path[..2].to_vec());
                left = true;
            }
            content |= !waits && !matches!(part.kind, PartKind::Reasoning | PartKind::Opaque)
                || (!waits && part.kind == PartKind::Opaque && part.block == 2);
            let text = if let Some(decision) = self.decision(index, at) {
                let text = self.replacement(message, part, decision);
                tokens = tokens
                    .saturating_add(self.family.text(&text))
                    .saturating_sub(part.content_tokens());
                bytes =
                    bytes.saturating_add(text.len() as u32) - (part.end - part.start).min(bytes);
                text
            } else if let Some(flaw) = part.flaw {
                let Some((kind, detail)) = mending(flaw) else { continue };
                out.repair(kind, index, Some(&part.id), detail);
                match flaw {
                    Flaw::LoneSurrogate => {
                        let raw = &message.raw[part.start as usize..part.end as usize];
                        if let Some(json) = mended(raw) {
                            edits.push(Edit { path: part.path.to_vec(), json });
                        }
                        continue;
                    }
                    Flaw::NullResult => String::new(),
                    Flaw::EmptyError => EMPTY_ERROR.to_owned(),
                    Flaw::NoArguments => "{}".to_owned(),
                    Flaw::NoCalls => {
                        leaving.push(part.path.to_vec());
                        continue;
                    }
                    _ => message.text(part).into_owned(),
                }
            } else {
                media += u32::from(part.media);
                continue;
            };
            let keeps = part.shape == Shape::TextBlock
                && !stripped.iter().any(|path| path.starts_with(&part.path));
            let marker = if keeps { self.marker(message, part) } else { None };
            let json = match marker {
                Some((name, value)) => marked_block(&text, name, &value),
                None => part.shape.write(&text),
            };
            edits.push(Edit { path: part.path.to_vec(), json });
        }
        if let Some(id) = orphan {
            out.repair("orphan_result", index, Some(id), "left out: no call waits for it");
        }
        if !holds.is_empty() {
            let (kind, detail) = match out.gather {
                true => ("misplaced_result", "moved beside the other results of its turn"),
                false => ("misplaced_content", "moved behind the results of its turn"),
            };
            out.repair(kind, index, None, detail);
        }
        for path in &holds {
            let (mut own, others): (Vec<Edit>, _) =
                edits.into_iter().partition(|edit| edit.path.starts_with(path));
            edits = others;
            let inside = |other: &&Vec<Step>| other.len() > 2 && other.starts_with(path);
            for path in leaving.iter().rev().filter(inside) {
                own.push(Edit { path: path.clone(), json: String::new() });
            }
            out.held.push(spliced(&message.raw, path, &mut own));
        }
        // What is left without content is no message.
        if whole || (left && !content && !message.empty) {
            if !holds.is_empty() {
                out.tokens = out.tokens.saturating_add(tokens);
                out.bytes = out.bytes.saturating_add(bytes);
                out.media = out.media.saturating_add(media);
            }
            return;
        }
        out.bytes = out.bytes.saturating_add(bytes);
        out.media = out.media.saturating_add(media);
        for path in leaving.into_iter().rev() {
            edits.push(Edit { path, json: String::new() });
        }
        // A message that was mended as a whole takes the other edits in.
        if let Some(at) = edits.iter().position(|edit| edit.path.is_empty()) {
            let whole = edits.remove(at);
            edits = vec![Edit { path: Vec::new(), json: splice(&whole.json, &edits) }];
        }
        if edits.is_empty() {
            out.keep(index, tokens);
        } else {
            out.tokens = out.tokens.saturating_add(tokens);
            out.items.push(Item::Patch { index, edits });
        }
    }

    /// Places in a message of the cache markers that the request has no room for.
    fn stripped(&self, index: u32) -> Vec<Vec<Step>> {
        let message = self.message_at(index);
        if message.markers == 0 || self.marks.from == [(0, 0); 2] {
            return Vec::new();
        }
        let Ok(json) = Json::parse(&message.raw) else { return Vec::new() };
        let all = marker::of(self.format, json.root()).into_iter().zip(0u32..);
        let left_out = all.filter(|(_, at)| !self.marks.holds((index, *at), self.transcript.lead));
        left_out.flat_map(|(places, _)| places).collect()
    }

    /// The member of a content block that marks it, where it has one.
    fn marker(&self, message: &Message, block: &Part) -> Option<(&'static str, String)> {
        let (name, _) = self.format.marker().filter(|_| message.markers > 0)?;
        let json = Json::parse(&message.raw[block.start as usize..block.end as usize]).ok()?;
        Some((name, json.root().get(name)?.raw().to_owned()))
    }

    /// A message of the user role for what stands before the units that are shown.
    fn head_message(&self, text: &str) -> String {
        match self.own_block(text) {
            Some(block) => ["{\"role\":\"user\",\"content\":[", &*block, "]}"].concat(),
            None => self.format.user_message(text),
        }
    }

    /// A text as a content block with a cache marker, where the summary gets one.
    fn own_block(&self, text: &str) -> Option<String> {
        let (name, value) = self.format.marker().filter(|_| self.marks.own)?;
        Some(marked_block(text, name, value))
    }

    /// Whether a call of the unit has an id: made-up ids of results are then taken for those.
    fn has_ids(&self, index: u32) -> bool {
        let mut calls =
            self.transcript.unit_messages(self.unit_at(index)).iter().flat_map(Message::calls);
        calls.any(|(_, call)| !call.id.is_empty())
    }

    /// The approvals in a message, by their paths, that need mending: requests whose call gets that
    /// id, and with none what has no call or no request.
    fn approvals(&self, index: u32, renamed: &[Renamed]) -> Vec<(Vec<Step>, Option<String>)> {
        let start = self.unit_at(index).start;
        let found = self.approvals_since(start, index, renamed);
        match found.iter().any(|(_, id)| id.is_none()) {
            // Hosts may answer long after they were asked.
            true => self.approvals_since(0, index, renamed),
            false => found,
        }
    }

    fn approvals_since(
        &self,
        from: u32,
        index: u32,
        renamed: &[Renamed],
    ) -> Vec<(Vec<Step>, Option<String>)> {
        // Calls, whether approval was asked for, and the new id; requests.
        let mut calls: Vec<(String, bool, Option<&str>)> = Vec::new();
        let mut requests = Vec::new();
        let mut out = Vec::new();
        for at in (from..=index).filter(|at| *at == index || self.shows_message(*at)) {
            let message = self.message_at(at);
            if message.role != Role::Assistant && at != index {
                continue;
            }
            let Ok(json) = Json::parse(&message.raw) else { continue };
            let list = json.root().get(self.format.content());
            for (part, i) in list.into_iter().flat_map(|list| list.items()).zip(0u32..) {
                let path = [Step::Key(self.format.content()), Step::Index(i)];
                let mend = match self.format.approval(part) {
                    Some(Approval::Call(id)) => {
                        let own = message.calls().find(|(_, call)| call.path.starts_with(&path));
                        let own = own.map(|(part, _)| Link { message: at, part });
                        calls.push((id, false, own.and_then(|own| new_id(renamed, own))));
                        continue;
                    }
                    Some(Approval::Request(approval, id)) => {
                        // Of several calls with one id, each request is for the next.
                        let next = calls.iter().position(|call| call.0 == id && !call.1);
                        match next.or_else(|| calls.iter().rposition(|call| call.0 == id)) {
                            None => None,
                            Some(call) => {
                                requests.push(approval);
                                calls[call].1 = true;
                                match calls[call].2 {
                                    Some(new) => Some(new.to_owned()),
                                    None => continue,
                                }
                            }
                        }
                    }
                    Some(Approval::Response(approval)) if !requests.contains(&approval) => None,
                    _ => continue,
                };
                if at == index {
                    out.push((path.to_vec(), mend));
                }
            }
        }
        out
    }

    fn decision(&self, index: u32, part: u32) -> Option<&Decision> {
        let body = index.checked_sub(self.transcript.lead)?;
        self.decisions.parts.get(Place { body, part })
    }

    /// Whether the call of a provider's own tool has no result in its turn, or a result no call.
    fn is_parted(&self, index: u32, at: u32) -> bool {
        let transcript = self.transcript;
        let part = &self.message_at(index).parts[at as usize];
        if part.id.is_empty() || !self.format.strict_turns() {
            return false;
        }
        let unit = self.unit_at(index);
        let is_call = part.name.is_empty();
        let other = |message: &Message| {
            let mut parts = message.parts.iter();
            parts.any(|other| {
                other.kind == part.kind && other.id == part.id && other.name.is_empty() != is_call
            })
        };
        let goes_on = |message: &&Message| matches!(message.role, Role::Assistant | Role::Tool);
        let messages = transcript.unit_messages(unit);
        let (before, after) = messages.split_at((index - unit.start) as usize);
        let found = match is_call {
            true => after.iter().take_while(goes_on).any(other),
            false => {
                other(self.message_at(index)) || before.iter().rev().take_while(goes_on).any(other)
            }
        };
        // The result of a newest call may still come.
        let newest = || transcript.messages[index as usize..].iter().all(|next| goes_on(&next));
        !(found || (is_call && newest()))
    }

    /// First part of the reasoning that nothing follows: no provider that signs it takes it back.
    fn trailing_reasoning(&self, index: u32) -> u32 {
        let said = |message: &Message| {
            let is_said = |part: &Part| match part.kind {
                PartKind::Reasoning => false,
                PartKind::Opaque => part.block == 2,
                _ => part.flaw != Some(Flaw::EmptyText),
            };
            let last = message.parts.iter().rposition(is_said).map_or(0, |last| last as u32 + 1);
            // What stands in for a message without content is said too.
            last.max(u32::from(message.empty))
        };
        let mut messages = self.transcript.messages[index as usize..].iter();
        let own = messages.next().map_or(0, said);
        // Behind what the message says it was left out when that was sent, so it does not come back.
        let goes_on = !self.format.signs_history()
            || own == 0
                && messages
                    .take_while(|message| message.role == Role::Assistant)
                    .any(|message| said(message) > 0);
        if goes_on { u32::MAX } else { own }
    }

    /// Whether none of the model's messages follows reasoning, as an aborted response leaves it.
    fn is_stranded(&self, index: u32) -> bool {
        let mut rest = self.transcript.messages[index as usize..].iter();
        !rest
            .find(|message| !message.reasons() && !message.is_bound_twin())
            .is_some_and(|next| next.role == Role::Assistant)
    }

    /// Whether an item leaves because an earlier one is the same. Reasoning stays where the view does
    /// not show the earlier: what follows it may need it.
    fn yields(&self, index: u32) -> bool {
        let message = self.message_at(index);
        let mut before = self.transcript.messages[..index as usize].iter().zip(0u32..);
        message.is_bound_twin()
            && (!message.reasons()
                || before.any(|(other, at)| {
                    other.item == message.item
                        && self.shows_message(at)
                        && !self.is_stranded(at)
                        && self.decision(at, 0).is_none_or(|old| old.action != Action::Removed)
                }))
    }

    /// Whether the view shows nothing of a message of reasoning.
    fn is_gone(&self, index: u32) -> bool {
        !self.shows_message(index)
            || self.yields(index)
            || self.is_stranded(index)
            || self.message_at(index).parts.iter().any(|part| part.flaw.is_some())
            || self.decision(index, 0).is_some_and(|old| old.action == Action::Removed)
    }

    /// Whether reasoning may leave by itself: what the model said with it can do without.
    pub(crate) fn may_lose(&self, index: u32) -> bool {
        let rest = &self.transcript.messages[index as usize..];
        let mut said = rest.iter().skip_while(|message| message.reasons());
        !self.message_at(index).reasons()
            || said
                .by_ref()
                .take_while(|next| next.role == Role::Assistant && !next.reasons())
                .all(Message::is_free)
    }

    /// Whether the conversation starts with the assistant, or with nothing that can be shown, where
    /// only the user may begin.
    fn starts_without_user(&self) -> bool {
        let messages = &self.transcript.messages;
        self.format.user_first()
            && self.decisions.hidden() == 0
            && messages.len() > self.transcript.lead as usize
            && messages
                .get(self.transcript.opening() as usize)
                .is_none_or(|first| matches!(first.role, Role::Assistant | Role::System))
    }

    /// The text that stands in the view for a part.
    pub(crate) fn replacement(
        &self,
        message: &Message,
        part: &Part,
        decision: &Decision,
    ) -> String {
        let chars = thousands(decision.chars);
        let pointer = match self.recall {
            Some(tool) => format!("; {tool}(ref=\"{}\") returns it", decision.reference),
            None => String::new(),
        };
        let note = match decision.action {
            Action::Removed => return String::new(),
            Action::Cleared | Action::Duplicate | Action::Superseded => {
                let what = match part.kind {
                    PartKind::Call => "arguments",
                    PartKind::Result => "result",
                    PartKind::Image => "image",
                    PartKind::File => "file",
                    _ => "text",
                };
                let why = match decision.action {
                    Action::Duplicate => "left out: the same result stands further on",
                    Action::Superseded => "left out: the same call was made again further on",
                    _ => "cleared",
                };
                let name = match part.kind {
                    PartKind::Result if !part.name.is_empty() => [&*part.name, " "].concat(),
                    _ => String::new(),
                };
                let size = match part.kind {
                    PartKind::Image | PartKind::File => String::new(),
                    _ => [": ", &*chars, " characters"].concat(),
                };
                ["[", &*name, what, " ", why, &*size, &*pointer, "]"].concat()
            }
            Action::Offloaded { head, tail } | Action::Elided { head, tail } => {
                let text = message.text(part);
                let (head, tail) = ends(&text, head, tail);
                let left = text.len() - head.len() - tail.len();
                let left = text[head.len()..head.len() + left].chars().count() as u32;
                let left = thousands(left);
                let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
                format!("{head}{gap}[… {left} of {chars} characters left out{pointer} …]\n{tail}")
            }
        };
        if matches!(part.shape, Shape::Object | Shape::ObjectText) {
            // Arguments must stay an object: strict servers parse them.
            let mut json = String::from("{\"left_out\":");
            write_string(&mut json, &note);
            json.push('}');
            return json;
        }
        note
    }

    /// The message that stands for what is hidden: the summary, the count of dropped messages.
    pub(crate) fn head(&self) -> Option<String> {
        let hidden = self.decisions.hidden();
        if hidden == 0 {
            return self.starts_without_user().then(|| BEGINNING.to_owned());
        }
        let mut text = String::new();
        if let Some(summary) = &self.decisions.summary {
            text.push_str("<conversation_summary>\n");
            text.push_str(self.label);
            if let Some(tool) = self.recall {
                let reference = summary.reference;
                text.push_str(&format!(
                    " {tool}(ref=\"{reference}\") pages through {}, and \
                     {tool}(pattern=\"…\") searches them.",
                    counted(summary.covered, "original message")
                ));
            }
            text.push_str("\n\n");
            text.push_str(
                &summary.text.replace("</conversation_summary", "<\\/conversation_summary"),
            );
            text.push_str("\n</conversation_summary>");
        }
        let covered = self.decisions.covered();
        if self.decisions.dropped > covered {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            let kept = self.decisions.kept.iter().map(|(from, to)| to - from).sum::<u32>();
            let count = self.decisions.dropped - covered - kept;
            let pointer = match self.recall {
                Some(tool) => format!("; {tool}(pattern=\"…\") searches them"),
                None => String::new(),
            };
            text.push_str(&format!(
                "[{} left out of this conversation for lack of room{pointer}]",
                counted(count, "earlier message")
            ));
        }
        Some(text)
    }

    /// The unit before which the summary stands, if it is none before `from`: the first of the body,
    /// or the one behind the last hidden compaction of the provider's own, which takes no notice of
    /// what precedes that.
    fn head_unit(&self, from: usize) -> Option<usize> {
        let lead = self.transcript.lead;
        let end = self.transcript.unit_of(lead.saturating_add(self.decisions.hidden()));
        if from > end {
            return None;
        }
        if !self.transcript.marked {
            return Some(self.transcript.unit_of(lead)).filter(|at| *at >= from);
        }
        let behind = self.transcript.units[..end].iter().rposition(|unit| {
            unit.end <= lead || self.transcript.unit_messages(unit).iter().any(|m| m.compaction)
        });
        Some(behind.map_or(0, |at| at + 1)).filter(|at| *at >= from)
    }

    /// The whole view, leading system messages first.
    pub(crate) fn items(&self, from: usize) -> Vec<Item> {
        self.items_before(from, u32::MAX)
    }

    /// The view up to the units that end before this message.
    pub(crate) fn items_before(&self, from: usize, end: u32) -> Vec<Item> {
        let mut out = Rendered::default();
        let units = &self.transcript.units;
        if self.untouched {
            let from = units.get(from).map_or(self.transcript.len(), |unit| unit.start);
            let all = Item::Run { from, to: self.transcript.len() };
            return if all.is_empty() { Vec::new() } else { vec![all] };
        }
        let lead = self.head_unit(from);
        let (mut head, mut told) = (None, false);
        for at in self.units().filter(|at| *at >= from && units[*at].end <= end) {
            let unit = &units[at];
            if lead.is_some_and(|lead| at >= lead && !told) {
                head = self.head();
                told = true;
            }
            if !self.shows(unit) {
                continue;
            }
            let mut items = self.unit(unit).items;
            if let Some(text) = head.take_if(|_| !items.is_empty())
                && !(self.alternate && self.merge(&text, &mut items))
            {
                out.items.push(Item::Insert { json: self.head_message(&text) });
            }
            for item in items {
                match (out.items.last_mut(), item) {
                    (Some(Item::Run { to, .. }), Item::Run { from, to: end }) if *to == from => {
                        *to = end;
                    }
                    (_, item) => out.items.push(item),
                }
            }
        }
        if !told && lead.is_some_and(|lead| lead < units.len()) {
            head = self.head();
        }
        if let Some(text) = head {
            out.items.push(Item::Insert { json: self.head_message(&text) });
        }
        out.items
    }

    /// Bytes of the view's JSON before the message at `start`, or before anything that is not the
    /// caller's where `bare`.
    pub(crate) fn prefix_bytes(&self, start: u32, bare: bool) -> u32 {
        let mut bytes = 1;
        let mut add = |length: usize| bytes += length + usize::from(bytes > 1);
        let messages = &self.transcript.messages;
        for item in self.items(0) {
            match item {
                Item::Run { from, to } => {
                    let end = to.min(start).max(from);
                    messages[from as usize..end as usize].iter().for_each(|m| add(m.raw.len()));
                    if end < to {
                        break;
                    }
                }
                Item::Patch { index, edits } if index < start => {
                    add(splice(&messages[index as usize].raw, &edits).len());
                }
                Item::Insert { json } if !bare => add(json.len()),
                _ => break,
            }
        }
        bytes as u32
    }

    /// Puts the text before that of the user message which the items begin with, if they do.
    fn merge(&self, head: &str, items: &mut Vec<Item>) -> bool {
        let (index, mut edits) = match &items[0] {
            Item::Run { from, .. } => (*from, Vec::new()),
            Item::Patch { index, edits } => (*index, edits.clone()),
            Item::Insert { .. } => return false,
        };
        let message = self.message_at(index);
        let Some(part) = message.parts.iter().find(|part| part.kind == PartKind::Text) else {
            return false;
        };
        if message.role != Role::User || edits.iter().any(|edit| *edit.path == *part.path) {
            return false;
        }
        let text = [head, "\n\n", &*message.text(part)].concat();
        let mut json = part.shape.write(&text);
        if let Some((name, value)) = self.format.marker().filter(|_| self.marks.own) {
            match &*part.path {
                // The end of the text that was merged is the nearest to the border there is.
                [list, at, _] => {
                    let path = vec![*list, *at, Step::Key(name)];
                    let raw = Json::parse(&message.raw);
                    if raw.is_ok_and(|raw| find(raw.root(), &path).is_none()) {
                        edits.push(Edit { path, json: value.to_owned() });
                    }
                }
                _ => json = ["[", &*self.own_block(&text).unwrap_or_default(), "]"].concat(),
            }
        }
        edits.insert(0, Edit { path: part.path.to_vec(), json });
        let patch = Item::Patch { index, edits };
        match &mut items[0] {
            Item::Run { from, to } if *from + 1 < *to => {
                *from += 1;
                items.insert(0, patch);
            }
            first => *first = patch,
        }
        true
    }

    /// The view as one JSON text, every untouched byte as the host wrote it.
    pub(crate) fn json(&self) -> String {
        let mut out = String::from("[");
        let mut add = |text: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(text);
        };
        for item in self.items(0) {
            match item {
                Item::Run { from, to } => {
                    for message in &self.transcript.messages[from as usize..to as usize] {
                        add(&message.raw);
                    }
                }
                Item::Patch { index, edits } => {
                    let message = &self.transcript.messages[index as usize];
                    add(&splice(&message.raw, &edits));
                }
                Item::Insert { json } => add(&json),
            }
        }
        out.push(']');
        out
    }
}

/// Name of the repair of a flaw, and what the view shows instead.
fn mending(flaw: Flaw) -> Option<(&'static str, &'static str)> {
    Some(match flaw {
        Flaw::LoneSurrogate => ("lone_surrogate", "replaced by U+FFFD"),
        Flaw::NullResult => ("null_result", "an empty string"),
        Flaw::NoCalls => ("empty_calls", "left out"),
        Flaw::ObjectArguments => ("object_arguments", "their JSON as a string"),
        Flaw::NoArguments => ("no_arguments", "an empty object"),
        Flaw::EmptyError => ("empty_error", "a placeholder stands in"),
        Flaw::BareResponse => ("bare_response", "wrapped in an object"),
        Flaw::EmptyText => return None,
    })
}

/// A call and the id it gets.
type Renamed = (Link, String);

fn new_id(renamed: &[Renamed], call: Link) -> Option<&str> {
    renamed.iter().find(|(at, _)| *at == call).map(|(_, id)| &**id)
}

/// Calls whose id an earlier one of the conversation has, with new ids.
fn aliases(messages: &[Message], first: u32) -> Vec<Renamed> {
    let calls = messages.iter().zip(first..).flat_map(|(message, index)| {
        message.calls().map(move |(part, call)| (Link { message: index, part }, &*call.alias))
    });
    calls.filter(|(_, alias)| !alias.is_empty()).map(|(at, id)| (at, id.to_owned())).collect()
}

/// Calls of messages in a row whose id an earlier call of theirs has, with new ids.
fn renamed_ids(messages: &[Message], first: u32) -> Vec<Renamed> {
    let calls = messages.iter().zip(first..).flat_map(|(message, index)| {
        message.calls().map(move |(part, call)| (&*call.id, Link { message: index, part }))
    });
    let ids: BinaryHeap<(&str, Link)> = calls.collect();
    if ids.len() < 2 {
        return Vec::new();
    }
    let ids = ids.into_sorted_vec();
    let mut renamed: Vec<Renamed> = Vec::new();
    for same in ids.chunk_by(|(a, _), (b, _)| a == b).filter(|same| !same[0].0.is_empty()) {
        let mut count = 1u32;
        for (id, at) in same.iter().skip(1) {
            let name = loop {
                count += 1;
                let name = format!("{id}~{count}");
                if ids.binary_search_by(|(other, _)| (*other).cmp(&*name)).is_err() {
                    break name;
                }
            };
            renamed.push((*at, name));
        }
    }
    renamed
}

/// `1 message`, `2 messages`.
fn counted(count: u32, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(count))
}

/// Decimal digits with thousands separators.
pub(crate) fn thousands(number: u32) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A text block with a cache marker, as JSON.
fn marked_block(text: &str, name: &str, value: &str) -> String {
    let mut block = Shape::TextBlock.write(text);
    block.pop();
    block.push_str(&[",\"", name, "\":", value, "}"].concat());
    block
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// Applies edits to the JSON of one message; bytes outside the edited values stay what they were.
pub(crate) fn splice(raw: &str, edits: &[Edit]) -> String {
    let Ok(json) = Json::parse(raw) else { return raw.to_owned() };
    let places: BinaryHeap<_> = edits
        .iter()
        .filter_map(|edit| {
            let mut span = find(json.root(), &edit.path)?.span();
            if edit.json.is_empty() {
                span = match edit.path.last() {
                    Some(Step::Index(index)) => {
                        let leading = leaving_before(edits, &edit.path) == *index as usize;
                        element(raw, span, leading)
                    }
                    _ => member(raw, span.start, span.end),
                };
            }
            Some((span.start, span.end, &edit.json))
        })
        .collect();
    let mut out = String::with_capacity(raw.len());
    let mut from = 0;
    for (start, end, json) in places.into_sorted_vec() {
        // A member that stands twice is edited once.
        if start < from {
            continue;
        }
        out.push_str(&raw[from..start]);
        out.push_str(json);
        from = end;
    }
    out.push_str(&raw[from..]);
    for edit in edits.iter().filter(|edit| !edit.json.is_empty()) {
        if find(json.root(), &edit.path).is_some() {
            continue;
        }
        // A missing member is set, `content` of a message or `arguments` of a call, or a list grows.
        let Some((last, holder)) = edit.path.split_last() else { continue };
        let Ok(edited) = Json::parse(&out) else { continue };
        let Some(holder) = find(edited.root(), holder) else { continue };
        let filled = holder.members().next().is_some() || holder.items().next().is_some();
        let comma = if filled { "," } else { "" };
        let member = match last {
            Step::Key(key) => [comma, "\"", *key, "\":", &*edit.json].concat(),
            Step::Index(_) => [comma, &*edit.json].concat(),
        };
        let end = holder.span().end - 1;
        out.insert_str(end, &member);
    }
    out
}

/// An element of a message's list as JSON, under the edits that concern it.
fn spliced(raw: &str, path: &[Step], edits: &mut [Edit]) -> String {
    let Ok(json) = Json::parse(raw) else { return String::new() };
    let whole = edits.iter().find(|edit| edit.path.len() == path.len());
    if let Some(edit) = whole {
        return edit.json.clone();
    }
    for edit in &mut *edits {
        edit.path.drain(..path.len());
    }
    find(json.root(), path).map_or(String::new(), |element| splice(element.raw(), edits))
}

/// The span of a whole member, with its name and one comma, around the span of its value.
fn member(raw: &str, start: usize, end: usize) -> Range<usize> {
    let name_end = raw[..start].trim_end().trim_end_matches(':').trim_end().len();
    // Names of members that are left out hold no quote.
    let name = raw[..name_end.saturating_sub(1)].rfind('"').unwrap_or(start);
    let rest = raw[end..].trim_start();
    match (rest.starts_with(','), raw[..name].trim_end().strip_suffix(',')) {
        (true, _) => name..raw.len() - rest.len() + 1,
        (false, Some(before)) => before.len()..end,
        (false, None) => name..end,
    }
}

/// How many elements of the same list before this one leave it.
fn leaving_before(edits: &[Edit], path: &[Step]) -> usize {
    let Some((Step::Index(index), list)) = path.split_last() else { return 0 };
    let before = |edit: &&Edit| match edit.path.split_last() {
        Some((Step::Index(at), same)) => edit.json.is_empty() && same == list && at < index,
        _ => false,
    };
    edits.iter().filter(before).count()
}

/// The span of an element with one comma: the one after it where no element before it stays.
fn element(raw: &str, span: Range<usize>, leading: bool) -> Range<usize> {
    if leading {
        let rest = raw[span.end..].trim_start();
        let rest = rest.strip_prefix(',').unwrap_or(rest);
        return span.start..raw.len() - rest.len();
    }
    let before = raw[..span.start].trim_end();
    before.strip_suffix(',').unwrap_or(before).len()..span.end
}

fn find<'j>(root: Value<'j>, path: &[Step]) -> Option<Value<'j>> {
    path.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.items().nth(*index as usize),
    })
}

/// Stands in for the result of a call that never got one.
const UNANSWERED: &str = "[no result was recorded for this call]";

/// Stands before a conversation that the assistant begins, where a provider refuses that.
const BEGINNING: &str = "[the conversation begins]";

/// Stands in for a message without content, which providers refuse.
const EMPTY: &str = "[empty message]";

/// Stands in for the text of an error that has none.
const EMPTY_ERROR: &str = "[no error text was recorded]";

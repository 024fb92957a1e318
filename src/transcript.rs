//! The conversation as the engine knows it: messages, parts, units and legal cuts.
//!
//! A cut is legal only between units. Calls match results by outstanding order, because ids
//! repeat in real transcripts: within one batch, and from turn to turn.

use std::borrow::Cow;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::ids::Ids;
use crate::json::{Json, Kind as JsonKind, unescape, write_string};

/// Who speaks. `developer` is the newer name of `system`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
    /// A role this version does not know: kept, counted, never edited.
    Other,
}

impl Role {
    /// The name used outside Rust.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other => "other",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    Reasoning,
    /// A tool call; the part's text is its arguments.
    Call,
    /// A tool result; the part's text is its content, media left out.
    Result,
    Image,
    File,
    /// Something unknown: counted, kept, never split.
    Opaque,
}

impl PartKind {
    /// The name used outside Rust.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PartKind::Text => "text",
            PartKind::Reasoning => "reasoning",
            PartKind::Call => "call",
            PartKind::Result => "result",
            PartKind::Image => "image",
            PartKind::File => "file",
            PartKind::Opaque => "opaque",
        }
    }
}

/// One step of the place of a value inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Key(&'static str),
    /// An element of an array.
    Index(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub kind: PartKind,
    /// Where the value stands inside the message object.
    pub path: Box<[Step]>,
    /// Steps of the path that lead to the element which leaves with it: 0 for the whole message.
    pub block: u8,
    /// How a text is written where the value stands.
    pub shape: Shape,
    /// Byte range of the value in the message's raw JSON.
    pub start: u32,
    pub end: u32,
    /// Call id, as the host spelled it; empty where there is none.
    pub id: Box<str>,
    /// Tool name of a call or of a result that names it.
    pub name: Box<str>,
    /// Estimated tokens of the value as it stands.
    pub tokens: u32,
    /// Those of them that stay when the content is replaced: a call's name, id and punctuation.
    pub framing: u32,
    /// The value holds images or files beside its text.
    pub media: bool,
    /// Of a result: its format says that the tool failed.
    pub failed: bool,
    /// Signed or encrypted: byte-identical in the view, or absent.
    pub signed: bool,
    /// What is wrong with the value, where a provider would refuse it.
    pub flaw: Option<Flaw>,
    /// Of a call: the id it has in the view, where its own is taken; empty where it is not.
    pub alias: Box<str>,
    /// Of a call: the message that answers it. Of a result: the call it answers.
    pub link: Option<Link>,
}

/// How a text is written where the value of a part stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A JSON string.
    #[default]
    String,
    /// A JSON string that holds the JSON of an object: arguments that strict servers parse.
    ObjectText,
    /// An object: arguments that are no string.
    Object,
    /// The output of a tool as the AI SDK types it.
    Output,
    /// The same for a tool that failed.
    ErrorOutput,
    /// The response of a function as Gemini has it.
    Response,
    /// A content block of text in place of another block.
    TextBlock,
    /// The same for OpenAI Responses.
    InputText,
    /// The same for Gemini.
    TextPart,
    /// No text may stand there: the value is of a type of its own.
    Fixed,
}

impl Shape {
    /// Writes `text` as the JSON that stands in for the value. For arguments the text is already
    /// the JSON of an object.
    pub(crate) fn write(self, text: &str) -> String {
        let (before, after) = match self {
            Shape::String | Shape::ObjectText | Shape::Fixed => ("", ""),
            Shape::Object => return text.to_owned(),
            Shape::Output => ("{\"type\":\"text\",\"value\":", "}"),
            Shape::ErrorOutput => ("{\"type\":\"error-text\",\"value\":", "}"),
            Shape::Response => ("{\"result\":", "}"),
            Shape::TextBlock => ("{\"type\":\"text\",\"text\":", "}"),
            Shape::InputText => ("{\"type\":\"input_text\",\"text\":", "}"),
            Shape::TextPart => ("{\"text\":", "}"),
        };
        let mut out = String::with_capacity(text.len() + before.len() + 3);
        out.push_str(before);
        write_string(&mut out, text);
        out.push_str(after);
        out
    }
}

/// How the results of a wire format stand to their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Right behind the message with the calls, a message each, in the order of the calls.
    Each,
    /// Right behind a run of assistant messages; one message may hold several.
    Turn,
    /// Anywhere after the call.
    Loose,
}

/// Place of a part: message index, part index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Link {
    pub message: u32,
    pub part: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
    /// The message's own JSON text.
    pub raw: Box<str>,
    /// Framing tokens plus those of all parts.
    pub tokens: u32,
    /// Nothing that a provider would take as content.
    pub empty: bool,
    /// It stands and falls with the message after it.
    pub glued: bool,
    /// It stands and falls with the message before it.
    pub joins: bool,
    /// It must stay in the view whatever else leaves, by the rules of its format.
    pub stays: bool,
    /// It is never compacted: it stays, or the caller asked for that.
    pub pinned: bool,
    /// The provider's own compaction: it stands for everything before it.
    pub compaction: bool,
    /// It holds requests for approval, or responses to them.
    pub asks: bool,
    /// Its own id, where none may stand twice; empty where it has none.
    pub item: Box<str>,
    /// An earlier message has the same one.
    pub twin: bool,
    /// Cache markers in it.
    pub markers: u32,
    /// Keyed hash of everything but the content of tool results, which hosts may trim.
    pub spine: u64,
    /// The nearest reasoning before it in the turn, where that is a message of its own.
    pub thought: Option<u32>,
    /// Running hash of the spines of the body up to and including this message.
    pub chain: u64,
}

/// A value that no provider accepts as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A string holds half of a surrogate pair.
    LoneSurrogate,
    /// A tool result is null.
    NullResult,
    /// A list of calls is empty.
    NoCalls,
    /// The arguments of a call are an object instead of its JSON text.
    ObjectArguments,
    /// A call has no arguments.
    NoArguments,
    /// An empty text among other content.
    EmptyText,
    /// A result that is marked as an error says nothing.
    EmptyError,
    /// A response of a function is no object.
    BareResponse,
}

impl Part {
    /// Adds tokens that stay whatever becomes of the content.
    pub(crate) fn frame(&mut self, tokens: u32) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.framing = self.framing.saturating_add(tokens);
    }

    /// Whether a text may stand in for the value.
    pub(crate) fn is_replaceable(&self) -> bool {
        !self.signed && self.shape != Shape::Fixed
    }

    /// Estimated tokens of the content alone.
    pub(crate) fn content_tokens(&self) -> u32 {
        self.tokens.saturating_sub(self.framing)
    }
}

impl Message {
    /// The decoded text of a part: of a list of content parts, its texts joined by newlines.
    pub(crate) fn text(&self, part: &Part) -> Cow<'_, str> {
        let raw = &self.raw[part.start as usize..part.end as usize];
        match raw.as_bytes().first() {
            Some(b'"') => {
                let inner = &raw[1..raw.len() - 1];
                if inner.contains('\\') {
                    Cow::Owned(unescape(inner))
                } else {
                    Cow::Borrowed(inner)
                }
            }
            Some(b'[') if part.kind == PartKind::Result => Cow::Owned(joined_texts(raw)),
            _ => Cow::Borrowed(raw),
        }
    }

    /// Keyed hash of a part's content, by which a decision finds it again.
    pub(crate) fn anchor(&self, part: &Part, key: HashKey) -> u64 {
        let mut hash = hasher(key);
        hash.write_u8(part.kind as u8);
        hash.write(self.content(part).as_bytes());
        hash.finish()
    }

    /// What recall returns for a part: its text, or the JSON of a value that holds more than text.
    pub(crate) fn content(&self, part: &Part) -> Cow<'_, str> {
        match part.media {
            true => Cow::Borrowed(&self.raw[part.start as usize..part.end as usize]),
            false => self.text(part),
        }
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = (u32, &Part)> {
        self.parts_of(PartKind::Call)
    }

    pub(crate) fn results(&self) -> impl Iterator<Item = (u32, &Part)> {
        self.parts_of(PartKind::Result)
    }

    /// The content element behind the last result that has a call; of a message that more results
    /// of the turn follow, behind all.
    pub(crate) fn end_of_results(&self, last: bool) -> u32 {
        let linked = self.results().filter(|(_, result)| result.link.is_some()).last();
        match linked.and_then(|(_, result)| result.path.get(1)) {
            Some(Step::Index(at)) if last => *at,
            _ if last => 0,
            _ => u32::MAX,
        }
    }

    /// Reasoning as a message of its own, which needs what the model said next.
    pub(crate) fn reasons(&self) -> bool {
        self.glued
            && self.role == Role::Assistant
            && self.parts.iter().all(|part| part.block == 0 && part.kind == PartKind::Reasoning)
    }

    /// What the model said or called, which providers take without an id of its own as well.
    pub(crate) fn is_free(&self) -> bool {
        let free = |part: &Part| matches!(part.kind, PartKind::Text | PartKind::Call);
        self.role == Role::Assistant
            && (self.empty || self.parts.iter().any(|part| free(part) && part.is_replaceable()))
    }

    /// Whether its id is taken, and it cannot do without: the provider signed it, or knows the rest
    /// by it.
    pub(crate) fn is_bound_twin(&self) -> bool {
        self.twin && (self.compaction || self.role == Role::Assistant && !self.is_free())
    }

    /// Nothing but results, and what belongs to them.
    pub(crate) fn only_results(&self) -> bool {
        self.role == Role::Tool && !self.parts.iter().any(|part| part.kind == PartKind::Text)
    }

    /// What its user says, not only results that are handed back in the user's name.
    pub(crate) fn is_turn(&self) -> bool {
        self.role == Role::User || (self.role == Role::Tool && !self.only_results())
    }

    fn parts_of(&self, kind: PartKind) -> impl Iterator<Item = (u32, &Part)> {
        (0u32..).zip(&self.parts).filter(move |(_, part)| part.kind == kind)
    }
}

fn joined_texts(raw: &str) -> String {
    let Ok(json) = Json::parse(raw) else { return raw.to_owned() };
    let mut out = String::new();
    for item in json.root().items() {
        let text = match item.kind() {
            JsonKind::String => item.string(),
            _ => item.get("text").and_then(|text| text.string()),
        };
        if let Some(text) = text {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&text);
        }
    }
    out
}

/// The smallest run of messages that may be kept or dropped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub start: u32,
    pub end: u32,
    /// Tokens of the unit as the view would show it now.
    pub tokens: u32,
    /// Bytes of its JSON there.
    pub bytes: u32,
    /// Images and files in it there.
    pub media: u32,
    /// The view shows it, and its tokens are in the view's sum.
    pub shown: bool,
}

impl Unit {
    /// Tokens, bytes and media of the unit in the view.
    pub(crate) fn sizes(&self) -> [u32; 3] {
        [self.tokens, self.bytes, self.media]
    }
}

/// Keys of the message hash, drawn from the session secret.
pub(crate) type HashKey = (u64, u64);

pub(crate) fn hasher(key: HashKey) -> SipHasher13 {
    SipHasher13::new_with_keys(key.0, key.1)
}

/// Every message of the conversation, in order, and how they hang together.
pub(crate) struct Transcript {
    pub messages: Vec<Message>,
    pub units: Vec<Unit>,
    /// Number of leading system messages; the rest is the body.
    pub lead: u32,
    /// Shown units that were taken apart since the engine last asked: tokens, bytes, media.
    pub removed: [u32; 3],
    /// Calls of the newest assistant messages, in order; none where the result has come.
    open: Vec<Option<Link>>,
    /// The first of `open` that may still wait: results mostly come in order.
    next_open: usize,
    /// Some message may have to be shown wherever it stands: it is pinned, or a compaction.
    pub marked: bool,
    /// Cache markers of all messages.
    pub markers: u32,
    /// First message whose calls may still get their results.
    pub pending: Option<u32>,
    pub key: HashKey,
    pub pairing: Pairing,
    /// Ids of all calls, where each must be unique.
    pub ids: Option<Ids>,
    /// Ids of the messages themselves.
    items: Ids,
}

impl Transcript {
    pub(crate) fn new(key: HashKey, pairing: Pairing, unique_ids: bool) -> Transcript {
        Transcript {
            key,
            pairing,
            marked: false,
            markers: 0,
            pending: None,
            messages: Vec::new(),
            units: Vec::new(),
            lead: 0,
            removed: [0; 3],
            open: Vec::new(),
            next_open: 0,
            ids: unique_ids.then(|| Ids::new(key)),
            items: Ids::new(key),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Replaces everything from `from` on. Returns the index of the first unit that is new.
    pub(crate) fn replace(&mut self, from: usize, messages: Vec<Message>) -> usize {
        let unit = self.units.partition_point(|unit| (unit.end as usize) <= from);
        let redo = self.units.get(unit).map_or(from, |unit| unit.start as usize);
        let before = self.messages.len();
        let mut again = self.messages.split_off(redo);
        if let Some(ids) = &mut self.ids
            && again.iter().any(|message| message.calls().next().is_some())
        {
            ids.clear();
            for (_, call) in self.messages.iter().flat_map(Message::calls) {
                ids.take(&call.id);
            }
        }
        if again.iter().any(|message| !message.item.is_empty()) {
            self.items.clear();
            for message in self.messages.iter().filter(|message| !message.item.is_empty()) {
                self.items.repeats(&message.item);
            }
        }
        self.markers -= again.iter().map(|message| message.markers).sum::<u32>();
        again.truncate(from - redo);
        self.take_apart(unit);
        self.lead = self.lead.min(redo as u32);
        if redo < before {
            self.reopen();
        }
        let mut first = unit;
        for message in again.into_iter().chain(messages) {
            first = first.min(self.push(message));
        }
        self.pending = self.find_pending();
        first
    }

    fn take_apart(&mut self, from: usize) {
        for unit in self.units.drain(from..).filter(|unit| unit.shown) {
            for (sum, size) in self.removed.iter_mut().zip(unit.sizes()) {
                *sum = sum.saturating_add(size);
            }
        }
    }

    /// Appends a message; returns the index of the unit it became part of.
    fn push(&mut self, mut message: Message) -> usize {
        let index = self.len();
        let after_assistant = self.messages.last().is_some_and(|m| m.role == Role::Assistant);
        if message.role == Role::System && self.lead == index {
            self.lead += 1;
            message.chain = 0;
        } else {
            let mut chain = hasher(self.key);
            chain.write_u64(self.messages.last().map_or(0, |last| last.chain));
            chain.write_u64(message.spine);
            message.chain = chain.finish();
        }
        // Results that stand behind a run of assistant messages answer all of it.
        let waits = self.pairing == Pairing::Turn
            && after_assistant
            && message.role == Role::Assistant
            && self.open.iter().any(Option::is_some);
        if message.role == Role::Assistant {
            // A new turn of the model: no provider would take a result for older calls now.
            if !after_assistant && self.pairing != Pairing::Loose {
                self.open.clear();
                self.next_open = 0;
            }
            for (part, call) in (0u32..).zip(&mut message.parts) {
                if call.kind == PartKind::Call {
                    call.link = None;
                    let alias = self.ids.as_mut().and_then(|ids| ids.take(&call.id));
                    call.alias = alias.unwrap_or_default().into();
                    self.supersede(index, &call.id);
                    self.open.push(Some(Link { message: index, part }));
                }
            }
        }
        let mut first = None;
        if waits {
            first = Some(index - 1);
        }
        let results: Vec<u32> = message.results().map(|(part, _)| part).collect();
        for part in results {
            let result = &mut message.parts[part as usize];
            let call = self.take_open(&result.id, &result.name);
            result.link = call;
            if let Some(call) = call {
                let calls = &mut self.messages[call.message as usize].parts;
                calls[call.part as usize].link = Some(Link { message: index, part });
                if result.name.is_empty() {
                    result.name = calls[call.part as usize].name.clone();
                }
                first = Some(first.map_or(call.message, |f: u32| f.min(call.message)));
            }
        }
        message.thought = match self.messages.last() {
            Some(last) if last.reasons() => Some(index - 1),
            Some(last) if !last.is_turn() => last.thought,
            _ => None,
        };
        // What the message before it is glued to. Where every call is a message of its own, also a
        // batch of calls, and all that goes back to the same reasoning.
        let last = self.messages.last();
        let said = after_assistant && message.role == Role::Assistant && !message.reasons();
        let calls = |message: &Message| message.calls().next().is_some();
        let batch = || message.thought.is_some() || calls(&message) && last.is_some_and(calls);
        let same = said && self.pairing == Pairing::Loose && batch();
        // Nothing in the body belongs to the leading system messages.
        let opens = index == self.lead;
        if same || !opens && last.is_some_and(|last| last.glued || message.joins) {
            first = Some(first.unwrap_or(index).min(index - 1));
        }
        message.twin = !message.item.is_empty() && self.items.repeats(&message.item);
        self.markers += message.markers;
        self.marked |= message.pinned || message.compaction;
        self.messages.push(message);
        let start = match first {
            None => index,
            Some(call) => {
                // All units since the call close up around it.
                let unit = self.units.partition_point(|unit| unit.end <= call);
                let start = self.units[unit].start;
                self.take_apart(unit);
                start
            }
        };
        self.units.push(Unit {
            start,
            end: index + 1,
            tokens: 0,
            bytes: 0,
            media: 0,
            shown: false,
        });
        self.units.len() - 1
    }

    /// Takes the first waiting call of that id; where none has it, one without an id: the newest
    /// reference that may stand for the call, or the first call of that name.
    fn take_open(&mut self, id: &str, name: &str) -> Option<Link> {
        while self.open.get(self.next_open).is_some_and(Option::is_none) {
            self.next_open += 1;
        }
        let waiting = self.open.get(self.next_open..)?;
        let is = |slot: &Option<Link>, fits: &dyn Fn(&Part) -> bool| {
            slot.is_some_and(|call| {
                fits(&self.messages[call.message as usize].parts[call.part as usize])
            })
        };
        let turn = self.pairing == Pairing::Turn;
        let other = |slot: &Option<Link>| match self.pairing {
            Pairing::Each => false,
            Pairing::Loose => is(slot, &|call| call.id.is_empty()),
            Pairing::Turn => {
                is(slot, &|call| (call.id.is_empty() || id.is_empty()) && *call.name == *name)
            }
        };
        let same = |slot: &Option<Link>| is(slot, &|call| *call.id == *id);
        let named = turn && id.is_empty();
        let same = if named { None } else { waiting.iter().position(same) };
        let at = same.or_else(|| match turn {
            true => waiting.iter().position(other),
            false => waiting.iter().rposition(other),
        })?;
        self.open[self.next_open + at].take()
    }

    /// Where results may come at any time, a response of the model ends the wait of calls from
    /// before the newest turn of the user, and a call that of earlier ones of its id.
    fn supersede(&mut self, index: u32, id: &str) {
        if self.pairing != Pairing::Loose || self.open.iter().all(Option::is_none) {
            return;
        }
        let run = self.run_start(index as usize);
        let turn = self.messages[..run as usize].iter().rposition(Message::is_turn);
        let turn = turn.map_or(0, |turn| turn as u32);
        let messages = &self.messages;
        self.open.retain(|slot| {
            slot.is_some_and(|call| {
                let other = |old: &Message| *old.parts[call.part as usize].id != *id;
                call.message >= run
                    || (call.message > turn && other(&messages[call.message as usize]))
            })
        });
        self.next_open = 0;
    }

    /// Finds the open calls again after messages were cut off the end.
    fn reopen(&mut self) {
        self.open.clear();
        self.next_open = 0;
        let end = self.messages.iter().rposition(|m| m.role == Role::Assistant);
        let Some(end) = end else { return };
        let others = match self.pairing {
            Pairing::Loose => None,
            _ => self.messages[..end].iter().rposition(|m| m.role != Role::Assistant),
        };
        for index in others.map_or(0, |at| at + 1)..=end {
            for part in 0..self.messages[index].parts.len() {
                let call = &self.messages[index].parts[part];
                if call.kind == PartKind::Call {
                    let answered = call.link.is_some_and(|link| link.message < self.len());
                    let id = call.id.clone();
                    let link = Link { message: index as u32, part: part as u32 };
                    self.supersede(index as u32, &id);
                    self.open.push((!answered).then_some(link));
                }
            }
        }
    }

    /// Index of the unit that holds a message.
    pub(crate) fn unit_of(&self, message: u32) -> usize {
        self.units.partition_point(|unit| unit.end <= message)
    }

    pub(crate) fn unit_messages(&self, unit: &Unit) -> &[Message] {
        &self.messages[unit.start as usize..unit.end as usize]
    }

    /// First message whose calls may still get their results: nothing but results came after the
    /// newest assistant messages.
    fn find_pending(&self) -> Option<u32> {
        let last = self.messages.iter().rposition(|message| !message.only_results())?;
        if self.messages[last].role != Role::Assistant {
            return None;
        }
        Some(match self.pairing {
            Pairing::Each => last as u32,
            _ => self.run_start(last),
        })
    }

    /// First of the assistant messages in a row that end with `last`.
    fn run_start(&self, last: usize) -> u32 {
        let other = self.messages[..last].iter().rposition(|m| m.role != Role::Assistant);
        other.map_or(0, |at| at as u32 + 1)
    }

    /// First message of the body that the view can show: not only results without calls.
    pub(crate) fn opening(&self) -> u32 {
        let mut body = self.messages.iter().zip(0u32..).skip(self.lead as usize);
        let nothing = |message: &Message| {
            message.only_results() && message.results().all(|(_, result)| result.link.is_none())
        };
        body.find(|(message, _)| !nothing(message)).map_or(self.len(), |(_, at)| at)
    }

    /// First message whose reasoning the model may still build on: what follows the user's last
    /// turn, and the newest calls even where the user spoke beside their results.
    pub(crate) fn running_turn(&self) -> u32 {
        let turn = self.messages.iter().rposition(Message::is_turn).unwrap_or(0);
        let newest = self.messages.iter().rposition(|message| message.role == Role::Assistant);
        let run = newest.map_or(0..0, |last| self.run_start(last)..last as u32 + 1);
        let calls = run.clone().any(|index| self.messages[index as usize].calls().next().is_some());
        if calls { run.start.min(turn as u32) } else { turn as u32 }
    }

    /// First message the model has not answered yet: trailing input, fresh results and the calls
    /// they belong to.
    pub(crate) fn unanswered_from(&self) -> u32 {
        let mut from = self.len();
        while from > self.lead {
            let message = &self.messages[from as usize - 1];
            if message.role == Role::Assistant {
                break;
            }
            from -= 1;
        }
        // A last message of calls has no results yet, and calls may wait across user messages.
        let newest = self.messages.iter().rposition(|message| message.role == Role::Assistant);
        let newest = newest.map_or(0, |last| self.run_start(last));
        let waiting = self.open.iter().rev().flatten().map(|call| call.message);
        let waiting = waiting.take_while(|message| *message >= newest).min();
        from = from.min(waiting.unwrap_or(from));
        match self.units.get(self.unit_of(from)) {
            // Results pull in their calls.
            Some(unit) => unit.start.min(from),
            None => from,
        }
    }

    /// Running hash of the first `body` messages after the leading system messages.
    pub(crate) fn chain_at(&self, body: u32) -> Option<u64> {
        if body == 0 {
            return Some(0);
        }
        let index = self.lead.saturating_add(body) as usize - 1;
        self.messages.get(index).map(|message| message.chain)
    }
}

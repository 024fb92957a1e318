//! recall: the tool through which the model gets content back, in bounded pages or by search.

use serde::Serialize;

use crate::arguments::{Arguments, parse};
use crate::decision::{Decisions, Ref};
use crate::error::{Error, ErrorCode};
use crate::summary::{entries, full_text};
use crate::transcript::{PartKind, Transcript};
use crate::view::{boundary, thousands};

/// Arguments of a recall call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallArgs {
    /// Reference from a marker, or none to search everything.
    pub reference: Option<String>,
    /// First character of the page, from 0.
    pub offset: Option<f64>,
    /// Characters of the page.
    pub limit: Option<f64>,
    /// Text to look for, upper and lower case alike.
    pub pattern: Option<String>,
}

/// What a recall call leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RecallStep {
    /// The answer for the model.
    Page {
        /// Its text.
        text: String,
    },
    /// The transcript no longer holds it: ask the store, then call `recall_fetched`.
    Fetch {
        /// Key in the store.
        key: String,
    },
}

/// Description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Returns content that was taken out of this conversation to \
    save room. Give the ref that a marker shows to read it in pages, with offset and limit in \
    characters. Give a pattern to search it, or without a ref to search all earlier messages.";

/// JSON schema of the arguments.
pub(crate) const PARAMETERS: &str = r#"{"type":"object","properties":{"ref":{"type":"string","description":"Reference shown by a marker, twelve hexadecimal digits."},"offset":{"type":"integer","minimum":0,"description":"First character of the page. Default 0."},"limit":{"type":"integer","minimum":1,"description":"Characters of the page. Default: as many as fit."},"pattern":{"type":"string","description":"Text to find, upper and lower case alike. Without ref it searches everything."}},"additionalProperties":false}"#;

impl RecallArgs {
    /// Reads the arguments that a model wrote. Models add members and leave nulls: those are
    /// passed over.
    ///
    /// # Errors
    /// `invalid_recall` naming the member.
    pub fn from_json(text: &str) -> Result<RecallArgs, Error> {
        let json = parse(text, "arguments", ErrorCode::InvalidRecall)?;
        let from = Arguments::open(json.root(), "arguments", ErrorCode::InvalidRecall)?;
        let set = |name: &str| from.get(name).is_some_and(|value| !value.is_null());
        let text = |name: &str| if set(name) { from.owned(name) } else { Ok(None) };
        let number = |name: &str| if set(name) { from.number(name) } else { Ok(None) };
        Ok(RecallArgs {
            reference: text("ref")?,
            offset: number("offset")?,
            limit: number("limit")?,
            pattern: text("pattern")?,
        })
    }

    pub(crate) fn checked(&self) -> Result<Checked<'_>, Error> {
        let reference = match self.reference.as_deref().map(str::trim) {
            None | Some("") => None,
            Some(text) => Some(Ref::parse(text)),
        };
        let number = |place: &str, value: Option<f64>| match value {
            None => Ok(None),
            Some(value) if value >= 0.0 => Ok(Some(value as usize)),
            Some(_) => Err(Error::expected(ErrorCode::InvalidRecall, place, "a number from 0 up")),
        };
        let pattern = self.pattern.as_deref().filter(|pattern| !pattern.is_empty());
        if reference.is_none() && pattern.is_none() {
            let what = "expected a ref from a marker or a pattern to search for";
            return Err(Error::at(ErrorCode::InvalidRecall, "arguments.ref", what));
        }
        Ok(Checked {
            reference,
            offset: number("arguments.offset", self.offset)?.unwrap_or(0),
            limit: number("arguments.limit", self.limit)?,
            pattern,
        })
    }
}

pub(crate) struct Checked<'a> {
    /// Outer: whether one was given; inner: whether it is well formed.
    pub reference: Option<Option<Ref>>,
    offset: usize,
    limit: Option<usize>,
    pub pattern: Option<&'a str>,
}

impl Checked<'_> {
    /// The answer over one content: a page, or the places of the pattern.
    pub(crate) fn answer(&self, title: &str, content: &str, most: usize) -> String {
        match self.pattern {
            Some(pattern) => {
                let mut found = Search::new(pattern, self.offset, most);
                found.content(title, content);
                found.finish()
            }
            None => self.page(title, content, most),
        }
    }

    fn page(&self, title: &str, content: &str, most: usize) -> String {
        let total = content.chars().count();
        let limit = self.limit.unwrap_or(most).clamp(1, most);
        let mut places = content.char_indices().map(|(at, _)| at).skip(self.offset);
        let Some(start) = places.next() else {
            let total = thousands(total as u32);
            return format!("[{title}: offset is past the end; there are {total} characters]");
        };
        let mut end = places.nth(limit - 1).unwrap_or(content.len());
        if end < content.len() {
            end = Some(boundary(content, end)).filter(|end| *end > start).unwrap_or(end);
        }
        let shown = content[start..end].chars().count();
        let last = self.offset + shown;
        let more = match last < total {
            true => format!("; go on with offset {last}"),
            false => String::new(),
        };
        format!(
            "[{title}: characters {} to {last} of {}{more}]\n{}",
            self.offset,
            thousands(total as u32),
            &content[start..end]
        )
    }
}

/// Everything that the marker or summary of `reference` stands for.
pub(crate) fn resolve(
    transcript: &Transcript,
    decisions: &Decisions,
    reference: Ref,
) -> Option<(String, String)> {
    let spans = decisions.spans.iter().copied();
    let mut spans = spans.chain(decisions.summary.as_ref().map(|summary| summary.span()));
    if let Some(span) = spans.find(|span| span.reference == reference) {
        let covered = span.covered;
        let to = transcript.lead.saturating_add(covered).min(transcript.len());
        let text = full_text(&entries(transcript, transcript.lead, to));
        return Some((format!("the first {covered} messages"), text));
    }
    // Decisions first: they know the reference without hashing.
    for (place, decision) in decisions.parts.iter().filter(|(_, d)| d.reference == reference) {
        let index = transcript.lead + place.body;
        let message = transcript.messages.get(index as usize)?;
        let part = message.parts.get(place.part as usize)?;
        if message.anchor(part, transcript.key) as u32 == decision.anchor {
            return Some((title(part.kind, &part.name, index), message.content(part).into_owned()));
        }
    }
    for (message, index) in transcript.messages.iter().zip(0u32..) {
        for part in &message.parts {
            let content = message.content(part);
            if Ref::of(&content) == reference {
                return Some((title(part.kind, &part.name, index), content.into_owned()));
            }
        }
    }
    None
}

/// Looks for a pattern in all messages that the view may not show.
pub(crate) fn search(transcript: &Transcript, checked: &Checked<'_>, most: usize) -> String {
    let mut found = Search::new(checked.pattern.unwrap_or_default(), checked.offset, most);
    for (message, index) in transcript.messages.iter().zip(0u32..) {
        for part in message.parts.iter().filter(|part| part.kind != PartKind::Reasoning) {
            let text = message.text(part);
            if found.in_text(&text) {
                let title = title(part.kind, &part.name, index);
                let reference = Ref::of(&message.content(part));
                found.content(&format!("{title}, ref {reference}"), &text);
            }
        }
    }
    found.finish()
}

fn title(kind: PartKind, name: &str, index: u32) -> String {
    let what = match kind {
        PartKind::Result if !name.is_empty() => format!("{name} result"),
        PartKind::Result => "result".to_owned(),
        PartKind::Call => format!("arguments of {name}"),
        PartKind::Image | PartKind::File => "attachment".to_owned(),
        _ => "text".to_owned(),
    };
    format!("{what} in message {index}")
}

struct Search {
    pattern: String,
    skip: usize,
    most: usize,
    total: usize,
    shown: usize,
    chars: usize,
    /// A line did not fit any more.
    full: bool,
    out: String,
}

impl Search {
    fn new(pattern: &str, skip: usize, most: usize) -> Search {
        let pattern = pattern.chars().map(fold).collect();
        Search {
            pattern,
            skip,
            most,
            total: 0,
            shown: 0,
            chars: 0,
            full: false,
            out: String::new(),
        }
    }

    fn in_text(&self, text: &str) -> bool {
        text.chars().map(fold).collect::<String>().contains(&self.pattern)
    }

    /// Adds the lines of a content that hold the pattern, each with its character offset.
    fn content(&mut self, title: &str, content: &str) {
        let mut offset = 0;
        let mut titled = false;
        for line in content.split_inclusive('\n') {
            let length = line.chars().count();
            let lower: String = line.chars().map(fold).collect();
            if let Some(at) = lower.find(&self.pattern) {
                self.total += 1;
                let place = lower[..at].chars().count().min(length);
                let from = place.saturating_sub(BEFORE);
                let window: String = line.trim_end().chars().skip(from).take(WINDOW).collect();
                // What follows a line that does not fit waits for the next page too.
                self.full |= self.total > self.skip
                    && self.shown > 0
                    && self.chars + window.chars().count() > self.most;
                if self.total > self.skip && !self.full {
                    if !titled {
                        self.out.push_str(&format!("[{title}]\n"));
                        self.chars += title.len();
                        titled = true;
                    }
                    self.out.push_str(&format!("{}: {window}\n", offset + from));
                    self.chars += window.chars().count() + 10;
                    self.shown += 1;
                }
            }
            offset += length;
        }
    }

    fn finish(self) -> String {
        if self.total == 0 {
            return format!("[no text with \"{}\" was found]", self.pattern);
        }
        let next = self.skip + self.shown;
        let more = match next < self.total && self.shown > 0 {
            true => format!("; go on with offset {next}"),
            false => String::new(),
        };
        format!(
            "[{} of {} lines with \"{}\", each after its character offset{more}]\n{}",
            self.shown, self.total, self.pattern, self.out
        )
    }
}

/// Lower case of the letters that have a simple one: Latin, Greek, Cyrillic. The full tables of
/// Unicode would be a twentieth of the wasm.
fn fold(scalar: char) -> char {
    let folded = match scalar as u32 {
        upper @ (0x41..=0x5A | 0xC0..=0xD6 | 0xD8..=0xDE | 0x391..=0x3A9 | 0x410..=0x42F) => {
            upper + 0x20
        }
        upper @ 0x400..=0x40F => upper + 0x50,
        upper @ (0x100..=0x137 | 0x14A..=0x177 | 0x460..=0x481 | 0x48A..=0x4BF) => upper | 1,
        other => other,
    };
    char::from_u32(folded).unwrap_or(scalar)
}

/// Characters shown before a match and in all.
const BEFORE: usize = 80;
const WINDOW: usize = 240;

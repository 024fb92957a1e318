//! Decisions: sticky, monotonic choices about what the view shows, keyed by occurrence.
//!
//! Places are counted from the end of the leading system messages, so that a host may change
//! those without moving a decision.

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Where a part stands in the body: message after the leading system messages, part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub body: u32,
    pub part: u32,
}

impl Place {
    /// Its place in the order of the body.
    pub(crate) fn order(self) -> u64 {
        u64::from(self.body) << 32 | u64::from(self.part)
    }
}

/// Short name of content taken out of the view: the first 48 bits of its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(pub(crate) [u8; 6]);

impl Ref {
    /// The reference of a content.
    pub fn of(content: &str) -> Ref {
        let digest = Sha256::digest(content.as_bytes());
        let [a, b, c, d, e, f, ..]: [u8; 32] = digest.into();
        Ref([a, b, c, d, e, f])
    }

    /// Reads the twelve hexadecimal digits that a marker shows.
    pub fn parse(text: &str) -> Option<Ref> {
        let text = text.trim();
        if text.len() != 12 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let [_, _, bytes @ ..] = u64::from_str_radix(text, 16).ok()?.to_be_bytes();
        Some(Ref(bytes))
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::engine::hex(&self.0))
    }
}

/// How a part stands in the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Its first and last bytes around a note; the whole is in the store.
    Offloaded { head: u32, tail: u32 },
    /// Its first and last bytes around a note, because the view fits in no other way.
    Elided { head: u32, tail: u32 },
    /// A note alone.
    Cleared,
    /// A note that points to an identical result further on.
    Duplicate,
    /// A note that points to the result of the same call made again further on.
    Superseded,
    /// Nothing.
    Removed,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::Offloaded { .. } => "offloaded",
            Action::Elided { .. } => "elided",
            Action::Cleared => "cleared",
            Action::Duplicate => "duplicate",
            Action::Superseded => "superseded",
            Action::Removed => "removed",
        }
    }
}

/// One decision about one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub action: Action,
    pub reference: Ref,
    /// Code points of the content.
    pub chars: u32,
    /// Hash of the part it was taken for; what it matches must have the content of the reference.
    pub anchor: u32,
}

/// Who wrote a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// The host's summarizer.
    Host,
    /// The built-in extractive summarizer.
    Local,
}

impl Author {
    /// The name used outside Rust.
    pub fn as_str(self) -> &'static str {
        match self {
            Author::Host => "host",
            Author::Local => "local",
        }
    }
}

/// The running summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub text: String,
    /// Body messages that it stands for.
    pub covered: u32,
    /// Running hash of the body there.
    pub chain: u64,
    /// Reference of the covered messages as one text.
    pub reference: Ref,
    pub by: Author,
    /// Folds so far.
    pub version: u32,
}

/// What is known of a summary beside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Reference of the covered messages as one text.
    pub reference: Ref,
    /// Body messages that it stood for.
    pub covered: u32,
    pub version: u32,
    pub by: Author,
}

impl Summary {
    pub(crate) fn span(&self) -> Span {
        let Summary { reference, covered, version, by, .. } = *self;
        Span { reference, covered, version, by }
    }
}

/// Decisions about parts, in order of their places.
///
/// A sorted vector: decisions are taken oldest first, so that they are mostly appended, and a
/// tree would take more of the wasm than all stages together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(Vec<(Place, Decision)>);

impl Parts {
    fn find(&self, place: Place) -> Result<usize, usize> {
        self.0.binary_search_by(|(at, _)| at.cmp(&place))
    }

    pub(crate) fn get(&self, place: Place) -> Option<&Decision> {
        self.find(place).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn insert(&mut self, place: Place, decision: Decision) {
        match self.find(place) {
            Ok(at) => self.0[at].1 = decision,
            Err(at) => self.0.insert(at, (place, decision)),
        }
    }

    pub(crate) fn remove(&mut self, place: Place) -> Option<Decision> {
        self.find(place).ok().map(|at| self.0.remove(at).1)
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(Place) -> bool) {
        self.0.retain(|(place, _)| keep(*place));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Place, Decision)> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Everything that was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decisions {
    pub parts: Parts,
    pub summary: Option<Summary>,
    /// Body messages that left without a summary; counts from the start, as `covered` does.
    pub dropped: u32,
    /// Running hash of the body there.
    pub dropped_chain: u64,
    /// Of the dropped messages, those that the view shows all the same: from and to, in order.
    pub kept: Vec<(u32, u32)>,
    /// Earlier summaries, newest last.
    pub spans: Vec<Span>,
    /// Messages that a hook pinned: place in the body and spine, ascending.
    pub pins: Vec<(u32, u64)>,
}

impl Decisions {
    pub(crate) fn covered(&self) -> u32 {
        self.summary.as_ref().map_or(0, |summary| summary.covered)
    }

    /// Body messages that the view does not show one by one.
    pub(crate) fn hidden(&self) -> u32 {
        self.covered().max(self.dropped)
    }

    pub(crate) fn any(&self) -> bool {
        !self.parts.is_empty() || self.hidden() > 0
    }

    /// Whether one of these body messages is shown though it stands before the end of what is hidden.
    pub(crate) fn keeps(&self, from: u32, to: u32) -> bool {
        let at = self.kept.partition_point(|kept| kept.1 <= from);
        self.kept.get(at).is_some_and(|kept| kept.0 < to)
    }

    /// Moves the end of what was dropped, and lets go of what lies outside.
    pub(crate) fn drop_upto(&mut self, upto: u32, chain: u64) {
        self.dropped = upto;
        self.dropped_chain = chain;
        let covered = self.covered();
        for kept in &mut self.kept {
            *kept = (kept.0.max(covered), kept.1.min(upto));
        }
        self.kept.retain(|kept| kept.0 < kept.1);
    }

    /// Takes over a summary and lets go of what it makes unnecessary.
    pub(crate) fn cover(&mut self, summary: Summary) {
        if let Some(old) = self.summary.take() {
            self.spans.push(old.span());
            let excess = self.spans.len().saturating_sub(MAX_SPANS);
            self.spans.drain(..excess);
        }
        let past = self.dropped <= summary.covered;
        self.summary = Some(summary);
        match past {
            true => self.drop_upto(0, 0),
            false => self.drop_upto(self.dropped, self.dropped_chain),
        }
    }
}

/// Summaries remembered after they were folded again.
const MAX_SPANS: usize = 32;

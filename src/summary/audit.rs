//! What a summary must not lose: exact identifiers and the user's own rules.
//!
//! [`audit`] finds them in a span, looks for them in a summary, and lists the
//! losses. The local summarizer shares the reading of identifiers and text.

pub(crate) mod identifiers;
pub(crate) mod reading;

use self::identifiers::Kind::{self, *};
use self::identifiers::{LONGEST, identifiers};
use self::reading::{clip, excerpt, fnv, join, letters, ranked, rules, spoken, walk_json};
use super::{Entry, EntryKind};

/// The number of distinct identifiers that survive a pruning; twice as many start one.
const CAPACITY: usize = 4096;
/// Heading of the appendix.
pub(crate) const HEADING: &str = "## Identifiers";

/// The groups of the appendix, in order.
const GROUPS: [(Kind, &str); 8] = [
    (Rule, "Rule"),
    (Path, "Paths"),
    (Url, "URLs"),
    (Id, "IDs"),
    (Name, "Names"),
    (Version, "Versions"),
    (Number, "Numbers"),
    (Hash, "Hashes"),
];

/// The outcome of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Distinct identifiers seen, of the last few thousand.
    pub found: usize,
    /// Those that the summary still holds.
    pub kept: usize,
    /// Those listed in the appendix.
    pub appended: usize,
    /// The appendix, or nothing.
    pub appendix: String,
}

/// Compares `span` with `summary` and lists what the summary lost, best first,
/// in an appendix of at most `max_tokens` as counted by `count`. The identifiers
/// of `previous`, and the rules in its appendix, compete for the same room.
pub(crate) fn audit(
    span: &[Entry<'_>],
    summary: &str,
    previous: Option<&str>,
    max_tokens: usize,
    count: &dyn Fn(&str) -> usize,
) -> Audit {
    let mut bag = Bag::default();
    let previous = previous.unwrap_or("");
    carried(previous, &mut |id, kind| bag.add(id, kind, CARRIED, 0));
    // A fold rewrites the body too: what an earlier summary kept there would be lost unseen.
    identifiers(previous, &mut |id, kind| bag.add(id, kind, CARRIED, 0));
    for (at, entry) in span.iter().enumerate() {
        let late = at * 4 / span.len();
        let text = entry.text.as_ref();
        match entry.kind {
            EntryKind::Call { .. } => walk_json(text, &mut |_, value| {
                let value = value.unwrap_or("");
                // A long value is a text that the assistant wrote, not a name that it used.
                let from = if value.len() > 512 { SAID } else { CALL };
                identifiers(value, &mut |id, kind| bag.add(id, kind, from, late));
            }),
            EntryKind::User | EntryKind::System => {
                let words = spoken(text, entry.index == 0);
                let from = if words.is_empty() || text.len() > 16_384 { OUTPUT } else { USER };
                identifiers(text, &mut |id, kind| bag.add(id, kind, from, late));
                rules(words, &mut |rule| bag.add(&excerpt(rule, LONGEST), Rule, USER, late));
            }
            kind => {
                let from = if kind == EntryKind::Assistant { SAID } else { OUTPUT };
                identifiers(text, &mut |id, kind| bag.add(id, kind, from, late));
            }
        }
    }
    let found = bag.items.len();
    identifiers(summary, &mut |id, _| {
        if let Ok(at) = bag.find(id, fnv(id)) {
            bag.items[at].kept = true;
        }
    });
    let plain = letters(summary);
    bag.rank();
    for item in bag.items.iter_mut().take(1024).filter(|item| !item.kept) {
        item.kept = match item.kind {
            Rule => plain.contains(clip(&letters(&item.text), 60)),
            _ => holds(summary, &item.text),
        };
    }
    bag.items.retain(|item| !item.kept);
    let kept = found - bag.items.len();
    // What was only printed fills the room that is left, where it can be needed word by word.
    bag.items.retain(|item| item.score() > 2 || item.is_exact());
    let (appended, appendix) = compose(&bag.items, max_tokens, count);
    Audit { found, kept, appended, appendix }
}

/// Calls `visit` for each identifier of an appendix.
fn carried(previous: &str, visit: &mut dyn FnMut(&str, Kind)) {
    let mut inside = false;
    for line in previous.lines() {
        let (label, rest) =
            line.get(2..).and_then(|line| line.split_once(": ")).unwrap_or((line, ""));
        if line.starts_with('#') {
            inside = line.trim_end() == HEADING;
        } else if let (true, Some((kind, _))) =
            (inside, GROUPS.iter().find(|group| group.1 == label))
        {
            // A rule is a sentence, and may have commas.
            let gap = if *kind == Rule { "\n" } else { ", " };
            rest.split(gap).for_each(|id| visit(clip(id.trim(), LONGEST), *kind));
        }
    }
}

/// Whether a text has an identifier whole, not as a part of a longer one.
fn holds(text: &str, id: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = text.as_bytes();
    text.match_indices(id).take(64).any(|(at, _)| {
        let led = at > 0 && inner(&bytes[at - 1]) && inner(&id.as_bytes()[0]);
        !led && !bytes.get(at + id.len()).is_some_and(inner)
    })
}

/// Fills the room greedily, then checks the whole and cuts the tail of the
/// ranking until it fits.
fn compose(items: &[Found], max_tokens: usize, count: &dyn Fn(&str) -> usize) -> (usize, String) {
    let (mut used, mut misses, mut opened) = (count(HEADING), 0, [false; GROUPS.len()]);
    let mut chosen: Vec<&Found> = Vec::new();
    for item in items {
        let open = &mut opened[item.kind as usize];
        let label = if *open && item.kind != Rule { 1 } else { 4 };
        let cost = count(&item.text).saturating_add(label);
        // The rules of the user come first, but not alone.
        let room = if item.kind == Rule { max_tokens / 2 + max_tokens / 8 } else { max_tokens };
        if used.saturating_add(cost) <= room {
            used += cost;
            *open = true;
            chosen.push(item);
        } else if misses < 24 {
            misses += 1;
        } else {
            break;
        }
    }
    while !chosen.is_empty() {
        let text = write(&chosen);
        if count(&text) <= max_tokens {
            return (chosen.len(), text);
        }
        chosen.truncate(chosen.len() - 1 - chosen.len() / 8);
    }
    (0, String::new())
}

/// Writes identifiers grouped by kind, each group in ranking order.
fn write(chosen: &[&Found]) -> String {
    let mut out = String::from(HEADING);
    for (kind, label) in GROUPS {
        let mut width = LONGEST * 2;
        for item in chosen.iter().filter(|item| item.kind == kind) {
            width += item.text.len() + 2;
            if width > LONGEST * 2 || kind == Rule {
                out.push_str(&join(&["\n- ", label, ": "]));
                width = item.text.len() + 12;
            } else {
                out.push_str(", ");
            }
            out.push_str(&item.text);
        }
    }
    out
}

const USER: u8 = 1;
const CALL: u8 = 2;
const SAID: u8 = 4;
const OUTPUT: u8 = 8;
const CARRIED: u8 = 16;

#[derive(Default)]
struct Found {
    text: String,
    hash: u64,
    kind: Kind,
    times: u32,
    /// Who said it, as bits.
    from: u8,
    /// The quarter of the span where it was said last.
    late: usize,
    kept: bool,
}

impl Found {
    /// Whether it cannot be guessed or described: no name of a thing, no short number.
    fn is_exact(&self) -> bool {
        match self.kind {
            Path | Url | Id | Hash => true,
            Number => self.text.len() > 3,
            _ => false,
        }
    }

    /// The worth of keeping it: who said it, how often, how lately, what it is.
    fn score(&self) -> i32 {
        let mut score = 2 * (self.times.min(64) + 1).ilog2() as i32 + self.late as i32;
        let call = if self.kind == Name { 3 } else { 6 };
        for (from, worth) in [(USER, 12), (CALL, call), (SAID, 4), (CARRIED, 9)] {
            score += if self.from & from != 0 { worth } else { 0 };
        }
        let error = self.text.ends_with("Error") || self.text.ends_with("Exception");
        let (worth, printed, printed_once) = match self.kind {
            Rule => (30, 0, 0),
            Id | Url => (4, 2, 7),
            Name if error => (4, 4, 4),
            Path => (3, 2, 7),
            Version => (2, 2, 7),
            Hash => (1, 8, 12),
            Name => (-1, 8, 8),
            Number => (-1, 8, 12),
        };
        score += worth;
        match (self.from, self.times) {
            (OUTPUT, 1) => score - printed_once,
            (OUTPUT, _) => score - printed,
            _ => score,
        }
    }
}

/// A bounded set of identifiers: open addressing over a list in order of arrival.
#[derive(Default)]
struct Bag {
    slots: Vec<u32>,
    items: Vec<Found>,
}

impl Bag {
    const SLOTS: usize = CAPACITY * 4;

    /// Where an identifier is, or else the slot it would have.
    fn find(&self, text: &str, hash: u64) -> Result<usize, usize> {
        let mut slot = hash as usize % Self::SLOTS;
        while let Some(at) = self.slots.get(slot).and_then(|at| at.checked_sub(1)) {
            let item = &self.items[at as usize];
            if item.hash == hash && item.text == text {
                return Ok(at as usize);
            }
            slot = (slot + 1) % Self::SLOTS;
        }
        Err(slot)
    }

    fn add(&mut self, text: &str, kind: Kind, from: u8, late: usize) {
        if text.is_empty() {
            return;
        }
        self.slots.resize(Self::SLOTS, 0);
        let hash = fnv(text);
        match self.find(text, hash) {
            Ok(at) => {
                let item = &mut self.items[at];
                (item.times, item.from, item.late) =
                    (item.times.saturating_add(1), item.from | from, late);
            }
            Err(slot) => {
                let text = text.to_string();
                self.items.push(Found { text, hash, kind, times: 1, from, late, kept: false });
                self.slots[slot] = self.items.len() as u32;
            }
        }
        if self.items.len() >= CAPACITY * 2 {
            self.rank();
            self.items.truncate(CAPACITY);
            self.slots.fill(0);
            for (at, item) in self.items.iter().enumerate() {
                if let Err(slot) = self.find(&item.text, item.hash) {
                    self.slots[slot] = at as u32 + 1;
                }
            }
        }
    }

    /// Puts the best first. The slots are stale then.
    fn rank(&mut self) {
        let order = ranked(self.items.len(), &|at| (128 - self.items[at].score()).max(0) as usize);
        let mut items = std::mem::take(&mut self.items);
        self.items.extend(order.into_iter().map(|at| std::mem::take(&mut items[at])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn entry<'a>(index: usize, kind: EntryKind<'a>, text: &'a str) -> Entry<'a> {
        Entry { index, part: 0, kind, text: text.into() }
    }

    const RESULT: EntryKind<'_> = EntryKind::Result { name: "bash", is_error: false };

    #[test]
    fn lists_what_the_summary_lost_and_nothing_else() {
        let call = EntryKind::Call { name: "bash" };
        let span = [
            entry(0, EntryKind::User, "Fix #4711 in src/parse.rs. You must never touch vendor/."),
            entry(1, call, r#"{"command": "cargo test --test wire_format\ncat src/parse.rs"}"#),
            entry(2, RESULT, "thread panicked: ParseError at 550e8400-e29b-41d4-a716-446655440000"),
        ];
        let audit = audit(&span, "Fixing src/parse.rs", None, 200, &count);
        assert!(audit.appendix.starts_with(HEADING), "{}", audit.appendix);
        for kept in ["#4711", "wire_format", "ParseError", "You must never touch vendor/."] {
            assert!(audit.appendix.contains(kept), "{kept}: {}", audit.appendix);
        }
        assert!(!audit.appendix.contains("src/parse.rs"), "{}", audit.appendix);
        assert!(!audit.appendix.contains("ncat"), "an escape is no letter");
        assert_eq!(audit.kept, 1);
        assert!(audit.appended + audit.kept <= audit.found);
    }

    #[test]
    fn says_nothing_when_nothing_is_lost() {
        let span = [entry(0, EntryKind::User, "look at src/a.rs and ERR_TIMEOUT")];
        let audit = audit(&span, "src/a.rs gave ERR_TIMEOUT.", None, 200, &count);
        assert_eq!((audit.found, audit.kept, audit.appended), (2, 2, 0));
        assert_eq!(audit.appendix, "");
    }

    #[test]
    fn a_part_of_a_longer_identifier_is_not_the_identifier() {
        assert!(holds("in /home/x/src/a.rs:3", "src/a.rs"));
        assert!(!holds("in src/a.rst", "src/a.rs"));
        assert!(!holds("id 12345", "1234"));
        assert!(!holds("ERR_CODE_2", "ERR_CODE"));
    }

    #[test]
    fn fits_any_room_and_any_counter() {
        let text: String =
            (0..900).map(|i| format!("dir{i}/file_{i}.rs must never be empty. ")).collect();
        let span = [entry(0, EntryKind::User, &text)];
        for max in (0..400).step_by(3) {
            let audit = audit(&span, "", None, max, &count);
            assert!(count(&audit.appendix) <= max, "{max}");
            assert!(max < 40 || audit.appended > 0, "{max}");
        }
        for counter in [0, 1, usize::MAX] {
            audit(&span, "", None, 100, &|_| counter);
        }
    }

    #[test]
    fn carries_the_previous_appendix_on_and_forgets_what_is_back() {
        let previous = "text\n\n## Identifiers\n- Rule: Always use tabs, never spaces.\n- Paths: a/b.rs, c/d.rs\n";
        let span = [entry(9, EntryKind::User, "hello")];
        let audit = audit(&span, "c/d.rs is done", Some(previous), 100, &count);
        assert_eq!(
            audit.appendix,
            "## Identifiers\n- Rule: Always use tabs, never spaces.\n- Paths: a/b.rs"
        );
        assert_eq!(audit.kept, 1);
    }

    #[test]
    fn noise_of_an_output_ranks_below_what_was_used() {
        let output = "deadbeef01 83741 other_name_here\n";
        let call = EntryKind::Call { name: "read" };
        let span = [entry(0, RESULT, output), entry(1, call, r#"{"path": "src/used.rs"}"#)];
        let appendix = |room| audit(&span, "", None, room, &count).appendix;
        let used = "## Identifiers\n- Paths: src/used.rs";
        assert_eq!(appendix(count(used) + 2), used);
        // Names that were only printed stay away; numbers and hashes fill the room.
        assert_eq!(appendix(200), format!("{used}\n- Numbers: 83741\n- Hashes: deadbeef01"));
    }

    #[test]
    fn memory_is_bounded() {
        let text: String = (0..60_000).map(|i| format!("name_of_{i}x ")).collect();
        let span = [entry(0, RESULT, &text), entry(1, EntryKind::User, "see KEEP_ME_99x")];
        let audit = audit(&span, "", None, 100, &count);
        assert!(audit.found < CAPACITY * 2);
        assert!(audit.appendix.contains("KEEP_ME_99x"), "{}", audit.appendix);
    }
}

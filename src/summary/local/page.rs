//! The page that a summary is: labelled items, kept in six lists within bounds, read back from
//! text, and written under the headings of a template within a number of tokens.

use std::borrow::Cow;

use super::signs::DECISIONS;
use crate::summary::audit::reading::{
    clip, clip_front, ends_in, excerpt, fnv, join, letters, mentions, prose, ranked, unmark,
};
use crate::summary::template::{Template, Topic};

/// What each list may use of the room, in percent: intent, state, facts, artifacts, constraints, next.
const SHARES: [usize; 6] = [24, 20, 18, 16, 14, 8];
/// The longest line, in bytes, but for a marker and a label.
pub(super) const LINE: usize = 380;

macro_rules! labels {
    ($($label:ident: $name:literal, $section:literal, $rank:literal, $step:literal, $cap:literal;)*) => {
        /// The kinds of items, in the order in which they are written.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) enum Label { #[default] $($label),* }
        /// What a kind is called, its section, the rank of the newest item, the
        /// step with age, and how many are remembered.
        const LABELS: &[(Label, &str, usize, usize, usize, usize)] =
            &[$((Label::$label, $name, $section, $rank, $step, $cap)),*];
    };
}
labels! {
    Goal: "Goal", 0, 0, 1, 2;
    Aim: "", 0, 3, 2, 24;
    Asked: "Asked", 0, 4, 2, 32;
    Open: "Latest request (open)", 0, 1, 1, 1;
    Answered: "Latest request (answered)", 0, 1, 1, 1;
    Said: "Last assistant message", 1, 0, 1, 1;
    Question: "Open question", 1, 1, 4, 4;
    Error: "Error", 1, 2, 4, 6;
    Done: "Done", 1, 5, 2, 16;
    Earlier: "Earlier", 1, 20, 1, 12;
    Fact: "", 2, 2, 2, 60;
    Replied: "Replied", 2, 3, 3, 24;
    Measured: "Measured", 2, 3, 3, 8;
    Tool: "Tool", 2, 4, 2, 24;
    Written: "Written", 3, 0, 1, 48;
    Read: "Read", 3, 6, 2, 40;
    Urls: "URLs", 3, 4, 3, 16;
    Directory: "Directory", 3, 3, 20, 2;
    Ran: "Ran", 3, 2, 3, 20;
    Media: "Media", 3, 4, 6, 8;
    Thing: "", 3, 5, 2, 24;
    Rule: "", 4, 0, 1, 40;
    System: "System message", 4, 1, 2, 6;
    Todo: "Todo, not done", 5, 0, 1, 16;
    Planned: "Planned, not done", 5, 1, 1, 8;
    EarlierPlan: "Earlier plan", 5, 20, 1, 8;
}
use Label::*;

impl Label {
    /// The section and the name.
    fn home(self) -> (usize, &'static str) {
        let (_, name, section, ..) = LABELS[self as usize];
        (section, name)
    }

    /// What the items tell of.
    fn topic(self) -> Topic {
        match self {
            Asked | Open | Answered => Topic::Requests,
            Question => Topic::Questions,
            Done => Topic::Done,
            _ => [
                Topic::Intent,
                Topic::State,
                Topic::Facts,
                Topic::Artifacts,
                Topic::Constraints,
                Topic::Next,
            ][self.home().0],
        }
    }

    /// What a text without a label is in the section of a topic.
    fn of(topic: Topic) -> Label {
        match topic {
            Topic::Intent => Aim,
            Topic::Requests => Asked,
            Topic::State => Earlier,
            Topic::Questions => Question,
            Topic::Done => Done,
            Topic::Decisions | Topic::Facts => Fact,
            Topic::Artifacts => Thing,
            Topic::Constraints => Rule,
            Topic::Next => EarlierPlan,
        }
    }

    /// The name that its items have in a section where a text without a label is `plain`.
    fn name(self, plain: Label) -> &'static str {
        match self {
            label if label == plain && matches!(label, Aim | Fact | Thing | Rule) => "",
            Aim => "Aim",
            Fact => "Fact",
            Thing => "Reference",
            Rule => "Rule",
            label => label.home().1,
        }
    }

    /// Whether the items are short names that share lines.
    fn shared(self) -> bool {
        matches!(self, Written | Read | Urls | Directory)
    }

    /// What makes two items the same: paths and commands to the byte, errors and
    /// measurements but for their numbers, anything else by its letters.
    fn key(self, text: &str) -> u64 {
        let before = |mark: &str| text.split_once(mark).map_or(text, |(before, _)| before);
        match self {
            Written | Read | Urls | Directory => fnv(text),
            Ran => fnv(before("` -> ")),
            Error | Measured => {
                let plain = letters(before(" (from `"));
                fnv(clip(&plain.replace(|c: char| c.is_ascii_digit(), ""), 96))
            }
            _ => fnv(clip(&letters(clip(before("\n"), 160)), 96)),
        }
    }
}

/// One item of the page; a text of several lines has them indented.
#[derive(Default)]
pub(super) struct Item {
    pub(super) label: Label,
    pub(super) text: String,
    key: u64,
    /// Its place by worth in the section, and what it costs whole.
    rank: usize,
    cost: usize,
    /// What it was given in the end, and the text it was cut to, if any.
    paid: usize,
    cut: String,
}

#[derive(Default)]
pub(super) struct Page {
    sections: [Vec<Item>; 6],
    /// Words of what gets the most room, in lower case.
    pub(super) focus: Vec<String>,
}

/// The words of a focus that are worth looking for.
pub(super) fn focus_words(focus: &str) -> Vec<String> {
    let apart = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !"_-./".contains(c);
    let words = focus.split(|c| apart(c) || "，。、；：？！".contains(c));
    words.filter(|word| word.len() > 3).take(16).map(str::to_ascii_lowercase).collect()
}

impl Page {
    /// Files an item. What is there already moves to the end, as the newest,
    /// but for the goal and the rules, whose age is their worth.
    pub(super) fn add(&mut self, label: Label, text: String) {
        if text.is_empty() {
            return;
        }
        let (_, _, section, _, _, cap) = LABELS[label as usize];
        let (key, list) = (label.key(&text), &mut self.sections[section]);
        let mut item = Item { label, text, key, ..Item::default() };
        if let Some(at) = list.iter().position(|old| old.key == key) {
            match list[at].label {
                Goal | Rule | System => return,
                Written if label == Read => item.label = Written,
                _ => {}
            }
            list.remove(at);
        }
        list.push(item);
        let mut places = (0..list.len()).filter(|at| list[*at].label == label);
        // The first quarter of a kind stays for good: it tells where things began.
        let dropped = places.nth(cap / 4);
        if places.count() + cap / 4 >= cap {
            dropped.map(|at| list.remove(at));
        }
    }

    pub(super) fn clear(&mut self, label: Label) {
        self.keep(label, &|_| false);
    }

    /// Keeps those items of a kind whose text is wanted.
    pub(super) fn keep(&mut self, label: Label, wanted: &dyn Fn(&str) -> bool) {
        let list = &mut self.sections[label.home().0];
        list.retain(|item| item.label != label || wanted(&item.text));
    }

    /// Turns the newest item of one kind into another, not longer than `max`.
    pub(super) fn turn(&mut self, from: Label, into: Label, max: usize) {
        if let Some(item) = self.pop(from) {
            let short = item.text.len() <= max;
            self.add(into, if short { item.text } else { excerpt(&item.text, max) });
        }
    }

    /// Takes the newest item of a kind out.
    pub(super) fn pop(&mut self, label: Label) -> Option<Item> {
        let list = &mut self.sections[label.home().0];
        let last = list.iter().rposition(|item| item.label == label);
        last.map(|at| list.remove(at))
    }

    /// Whether a text is about the focus.
    pub(super) fn wants(&self, text: &str) -> bool {
        let text = clip(text, 600).to_ascii_lowercase();
        self.focus.iter().any(|word| text.contains(&**word))
    }

    pub(super) fn len(&self) -> usize {
        self.sections.iter().map(Vec::len).sum()
    }

    /// Reads a summary back. A text without the headings is kept as facts; state
    /// and plans that are not ours are labelled as earlier ones when time went on.
    pub(super) fn recall(previous: &str, went_on: bool, template: &Template) -> Self {
        let mut page = Self::default();
        // Where we are, whether it is skipped, and where the last line began an item.
        let (mut place, mut skip, mut begun) = (None, false, None::<usize>);
        for line in previous.lines() {
            let text = line.trim();
            let bold = line.starts_with("**") && ends_in(text, "*:") && text.len() < 48;
            let nested = ["- ", "* ", "• "].iter().any(|mark| text.starts_with(mark));
            if bold || line.starts_with('#') && line.trim_start_matches('#').starts_with(' ') {
                skip = letters(text) == "identifiers";
                let find = |template: Cow<'_, Template>| {
                    template.find(text).map(|section| (template.into_owned(), section))
                };
                place = find(Cow::Borrowed(template))
                    .or_else(|| Template::all().map(Cow::Owned).find_map(find));
                begun = None;
            } else if skip || text.is_empty() || text.starts_with("```") || text == "- none" {
                begun = None;
            } else if let Some(at) = begun
                && !nested
                && line.starts_with("  ")
                && let Some(item) = page.sections[at].last_mut()
                && item.text.len() < 4096
            {
                item.text.push_str(&join(&["\n  ", &excerpt(text, LINE)]));
            } else {
                begun = Some(page.read_item(place.as_ref(), unmark(text), went_on));
            }
        }
        page
    }

    /// Files a text by its label or its section; says in which list.
    fn read_item(&mut self, place: Option<&(Template, usize)>, text: &str, went_on: bool) -> usize {
        let topic = place.map_or(Topic::Facts, |(template, section)| template.topic(*section));
        let plain = Label::of(topic);
        let known = place.and_then(|(template, section)| {
            LABELS.iter().find_map(|(label, ..)| {
                let name = label.name(plain);
                let rest = text.strip_prefix(name)?.strip_prefix(": ")?;
                let here = template.home(label.topic()) == *section
                    || *label == Fact && template.home(Topic::Decisions) == *section;
                (here && !name.is_empty()).then_some((*label, rest))
            })
        });
        match known {
            Some((label, rest)) if label.shared() => {
                rest.split(", ").for_each(|part| self.add(label, excerpt(part, LINE)));
                label.home().0
            }
            Some((label, rest)) => {
                self.add(label, excerpt(rest, LINE));
                label.home().0
            }
            None => {
                let label = match plain {
                    Aim if self.sections[0].is_empty() => Goal,
                    Earlier if !went_on => Fact,
                    label => label,
                };
                if text.len() <= LINE {
                    self.add(label, excerpt(text, LINE));
                } else {
                    prose(text, &mut |part| self.add(label, excerpt(part, LINE)));
                }
                label.home().0
            }
        }
    }

    /// Writes the page: fills the room, checks the whole with `count`, and takes
    /// less until it fits.
    pub(super) fn write(
        &mut self,
        max_tokens: usize,
        template: &Template,
        count: &dyn Fn(&str) -> usize,
    ) -> String {
        let names = template.sections.iter().map(|section| count(&section.name).saturating_add(4));
        let frame = names.fold(0, usize::saturating_add);
        let wanted: [Vec<bool>; 6] = std::array::from_fn(|at| match self.focus.is_empty() {
            true => Vec::new(),
            false => self.sections[at].iter().map(|item| self.wants(&item.text)).collect(),
        });
        for (items, wanted) in self.sections.iter_mut().zip(&wanted) {
            for (rank, at) in order(items, wanted).into_iter().enumerate() {
                items[at].rank = rank;
                items[at].cost = cost(items[at].label, &items[at].text, count);
            }
        }
        let mut room = max_tokens;
        for _ in 0..8 {
            if room < frame.saturating_add(12) {
                break;
            }
            self.fill(room - frame, count);
            let text = self.text(template);
            let over = count(&text).saturating_sub(max_tokens);
            if over == 0 {
                return text;
            }
            room = room.saturating_sub(over.saturating_add(max_tokens / 64 + 1));
        }
        // Hardly any room: the newest request, or else what comes first.
        let newest = self.sections[0].iter().rfind(|item| matches!(item.label, Open | Answered));
        let text =
            newest.or(self.sections.iter().flatten().next()).map_or("none", |item| &item.text);
        let first = &template.sections[template.home(Topic::Requests)].name;
        for head in [&*join(&["## ", first, "\n- "]), ""] {
            for size in [LINE, 280, 200, 140, 100, 70, 50, 35, 24, 12, 4] {
                let text = join(&[head, &excerpt(text, size)]);
                if count(&text) <= max_tokens {
                    return text;
                }
            }
        }
        String::new()
    }

    /// Chooses items by rank: first within the share of each section, where an
    /// item too long for it is cut; then what is left goes round the sections,
    /// and at last to the items that had been cut.
    fn fill(&mut self, room: usize, count: &dyn Fn(&str) -> usize) {
        let mut spare = room;
        for (items, share) in self.sections.iter_mut().zip(SHARES) {
            let share = room / 100 * share;
            let mut rest = share;
            items.iter_mut().for_each(|item| (item.paid, item.cut) = (0, String::new()));
            for rank in 0..items.len() {
                let Some(item) = items.iter_mut().find(|item| item.rank == rank) else {
                    continue;
                };
                item.pay(rest.min(share / 5 * 3), count);
                rest -= item.paid;
                spare -= item.paid;
            }
        }
        let longest = self.sections.iter().map(Vec::len).max().unwrap_or(0);
        for cutting in [false, true] {
            for rank in 0..longest {
                for items in &mut self.sections {
                    let Some(item) = items.iter_mut().find(|item| item.rank == rank) else {
                        continue;
                    };
                    let whole = item.cost - item.paid <= spare;
                    if item.paid < item.cost && (whole || cutting && spare > 11) {
                        spare += item.paid;
                        item.pay(spare, count);
                        spare -= item.paid;
                    }
                }
            }
        }
    }

    fn text(&self, template: &Template) -> String {
        let mut out = String::new();
        let apart = template.home(Topic::Decisions) != template.home(Topic::Facts);
        for (s, section) in template.sections.iter().enumerate() {
            out.push_str(&join(&[if s == 0 { "## " } else { "\n## " }, &section.name]));
            let before = out.len();
            let plain = Label::of(template.topic(s));
            for (label, ..) in LABELS {
                let (list, _) = label.home();
                let name = label.name(plain);
                let mut width = LINE;
                let shown = |item: &&Item| {
                    let decided = apart && *label == Fact && mentions(&item.text, DECISIONS);
                    let topic = if decided { Topic::Decisions } else { label.topic() };
                    item.label == *label && item.paid > 0 && template.home(topic) == s
                };
                for item in self.sections[list].iter().filter(shown) {
                    let text = if item.cut.is_empty() { &item.text } else { &item.cut };
                    width += text.len() + 2;
                    if label.shared() && width < LINE {
                        out.push_str(", ");
                    } else {
                        out.push_str(&join(&[
                            "\n- ",
                            name,
                            if name.is_empty() { "" } else { ": " },
                        ]));
                        width = text.len() + 12;
                    }
                    out.push_str(text);
                }
            }
            if out.len() == before {
                out.push_str("\n- none");
            }
        }
        out
    }
}

impl Item {
    /// Pays for the whole, or for a cut text when there is not enough for it.
    fn pay(&mut self, most: usize, count: &dyn Fn(&str) -> usize) {
        if self.cost <= most {
            (self.paid, self.cut) = (self.cost, String::new());
            return;
        }
        let size = (self.text.len() as u64).saturating_mul(most as u64) / self.cost as u64 * 9 / 10;
        if size < 48 || most <= self.paid || self.label.shared() {
            return;
        }
        let cut = shorten(&self.text, size as usize);
        let price = cost(self.label, &cut, count);
        if price <= most {
            (self.paid, self.cut) = (price, cut);
        }
    }
}

fn cost(label: Label, text: &str, count: &dyn Fn(&str) -> usize) -> usize {
    let (_, name) = label.home();
    let frame = if label.shared() || name.is_empty() { 2 } else { 3 + name.len() / 5 };
    count(text).saturating_add(frame)
}

/// The places of a section's items, the most wanted first: the newest of each
/// label, but the oldest of rules, requests and facts keep a place. What is about the focus comes
/// first.
fn order(items: &[Item], wanted: &[bool]) -> Vec<usize> {
    let mut totals = [0; LABELS.len()];
    items.iter().for_each(|item| totals[item.label as usize] += 1);
    let mut seen = [0; LABELS.len()];
    let mut ranks = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let (_, _, _, rank, step, _) = LABELS[item.label as usize];
        let seen = &mut seen[item.label as usize];
        let (first, last) = (2 * *seen + 1, totals[item.label as usize] - 1 - *seen);
        *seen += 1;
        let early = matches!(item.label, Aim | Asked | Fact | Rule | System);
        let rank = rank + step * if early { last.min(first) } else { last };
        ranks.push(if wanted.get(at) == Some(&true) { rank.min(1) } else { rank });
    }
    ranked(items.len(), &|at| ranks[at])
}

fn shorten(text: &str, max: usize) -> String {
    if !text.contains('\n') || max < 160 {
        return excerpt(text, max.min(LINE));
    }
    join(&[clip(text, max * 2 / 3), "\n  […] ", clip_front(text, max / 3)])
}

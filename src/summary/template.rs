//! Templates: the sections of a summary, what the summarizer is told to put into each, and where
//! the local summarizer files what it finds.

use super::audit;
use super::audit::reading::letters;
use crate::error::Error;
use crate::options::{SummaryOptions, invalid};

/// What the local summarizer knows how to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// What it is all about: the first request.
    Intent,
    /// Later requests, answered or not.
    Requests,
    /// What was said or went wrong last.
    State,
    /// Questions that nobody answered.
    Questions,
    Done,
    Decisions,
    Facts,
    Artifacts,
    Constraints,
    /// What was planned and not done.
    Next,
}

/// The names of topics in options, and where a topic goes that no section claims: to the section
/// of an earlier or of another topic, which ends at the first section.
const TOPICS: [(Topic, &str, Topic); 10] = [
    (Topic::Intent, "intent", Topic::Intent),
    (Topic::Requests, "requests", Topic::Intent),
    (Topic::State, "state", Topic::Intent),
    (Topic::Questions, "questions", Topic::State),
    (Topic::Done, "done", Topic::State),
    (Topic::Decisions, "decisions", Topic::Facts),
    (Topic::Facts, "facts", Topic::State),
    (Topic::Artifacts, "artifacts", Topic::Facts),
    (Topic::Constraints, "constraints", Topic::Intent),
    (Topic::Next, "next", Topic::State),
];

/// One section of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub name: String,
    /// What belongs into it, for the summarizer.
    pub about: String,
}

/// The sections of a summary, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub sections: Vec<Section>,
    /// The section of each topic, and whether it was claimed.
    homes: [Option<u8>; TOPICS.len()],
}

impl Default for Template {
    fn default() -> Template {
        Template::built_in(&BUILT_IN[0])
    }
}

impl Template {
    pub(crate) fn read(options: &SummaryOptions) -> Result<Template, Error> {
        let Some(sections) = &options.sections else {
            let name = options.template.as_deref().unwrap_or("task");
            let found = BUILT_IN.iter().find(|(own, _)| *own == name).map(Template::built_in);
            let wrong = || invalid("options.summary.template", "task, handoff or conversation");
            return found.ok_or_else(wrong);
        };
        let place = "options.summary.sections";
        if options.template.is_some() {
            return Err(invalid(place, "no sections beside a template"));
        }
        if !(1..=24).contains(&sections.len()) {
            return Err(invalid(place, "1 to 24 sections"));
        }
        let mut template = Template { sections: Vec::new(), homes: Default::default() };
        for (section, at) in sections.iter().zip(0..) {
            let name = section.name.trim();
            let key = title(name);
            let taken = template.sections.iter().any(|one| title(&one.name) == key);
            let plain = !key.is_empty() && name.len() <= 120 && !name.contains(['\n', '\r', '#']);
            if taken || !plain || key == title(audit::HEADING) {
                let what = "names of one line, each once, without '#', and not \"Identifiers\"";
                return Err(invalid(place, what));
            }
            for holds in &section.holds {
                let Some(topic) = TOPICS.iter().position(|(_, name, _)| name == holds) else {
                    let names = TOPICS.map(|(_, name, _)| name).join(", ");
                    return Err(invalid(place, &["topics to hold among ", &names].concat()));
                };
                template.homes[topic] = Some(at);
            }
            let (name, about) = (name.to_owned(), section.about.clone().unwrap_or_default());
            template.sections.push(Section { name, about });
        }
        // Names tell what the host does not say.
        for (section, at) in template.sections.iter().zip(0..) {
            if sections[at as usize].holds.is_empty() {
                let key = title(&section.name);
                for (topic, words) in WORDS {
                    let home = &mut template.homes[topic as usize];
                    if home.is_none() && words.split(' ').any(|word| key.contains(word)) {
                        *home = Some(at);
                    }
                }
            }
        }
        Ok(template)
    }

    fn built_in((_, sections): &BuiltIn) -> Template {
        let mut homes = [None; TOPICS.len()];
        let section = |((name, about, topics), at): (&(&str, &str, &[Topic]), u8)| {
            topics.iter().for_each(|topic| homes[*topic as usize] = Some(at));
            Section { name: (*name).to_owned(), about: (*about).to_owned() }
        };
        Template { sections: sections.iter().zip(0..).map(section).collect(), homes }
    }

    /// The section that a topic is written to.
    pub(crate) fn home(&self, topic: Topic) -> usize {
        match (self.homes[topic as usize], TOPICS[topic as usize].2) {
            (Some(home), _) => home.into(),
            (None, next) if next == topic => 0,
            (None, next) => self.home(next),
        }
    }

    /// The topic of a text in a section that has no label.
    pub(crate) fn topic(&self, section: usize) -> Topic {
        let own = |(topic, ..): &&(Topic, &str, Topic)| self.home(*topic) == section;
        TOPICS.iter().find(own).map_or(Topic::Facts, |(topic, ..)| *topic)
    }

    /// The section of a heading.
    pub(crate) fn find(&self, heading: &str) -> Option<usize> {
        let key = title(heading);
        self.sections.iter().position(|section| title(&section.name) == key)
    }

    /// The built-in templates, by which a summary of another template is read.
    pub(crate) fn all() -> impl Iterator<Item = Template> {
        BUILT_IN.iter().map(Template::built_in)
    }

    /// Sections that have no heading in a text.
    pub(crate) fn missing(&self, text: &str) -> Vec<String> {
        let lines: Vec<String> = text.lines().map(title).collect();
        let names = self.sections.iter().map(|section| &section.name);
        let absent = |name: &&String| {
            let key = title(name);
            // Models number headings, and go on behind them.
            !lines.iter().any(|line| {
                line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(&key)
                    || line.starts_with(&key)
            })
        };
        names.filter(absent).cloned().collect()
    }

    /// Whether a reply has headings and nothing under them.
    pub(crate) fn is_hollow(&self, text: &str) -> bool {
        let keys: Vec<String> = self.sections.iter().map(|section| title(&section.name)).collect();
        text.lines().map(title).all(|line| {
            let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
            line.is_empty() || keys.iter().any(|key| key == line) || NOTHING.contains(&line)
        })
    }
}

/// How models say that a section has no content, as [`title`] has it.
const NOTHING: [&str; 8] =
    ["none", "na", "nothing", "unknown", "notapplicable", "nonesofar", "noneyet", "empty"];

/// A heading without marks, spaces and case, "and" being the same as "&".
fn title(heading: &str) -> String {
    letters(heading).replace("and", "")
}

/// Words in the names of sections, as [`title`] has them, that tell what belongs there.
const WORDS: [(Topic, &str); TOPICS.len()] = [
    (Topic::Intent, "intent goal task topic request aim objective"),
    (Topic::Requests, "request"),
    (Topic::State, "state status progress situation"),
    (Topic::Questions, "question"),
    (Topic::Done, "done complet finished"),
    (Topic::Decisions, "decision decided"),
    (Topic::Facts, "fact finding learn result knowledge"),
    (Topic::Artifacts, "artifact file reference resource"),
    (Topic::Constraints, "constraint preference rule limit"),
    (Topic::Next, "next todo remaining plan action pending open"),
];

type BuiltIn = (&'static str, &'static [(&'static str, &'static str, &'static [Topic])]);

const BUILT_IN: [BuiltIn; 3] = [
    (
        "task",
        &[
            (
                "Session intent",
                "What the user wants, in their words; the newest request that is not met yet, quoted.",
                &[Topic::Intent],
            ),
            (
                "Current state",
                "Where things stand: what is done, what was going on last.",
                &[Topic::State],
            ),
            (
                "Key facts & decisions",
                "Facts found, conclusions, decisions, approaches that were ruled out and why.",
                &[Topic::Facts],
            ),
            (
                "Artifacts",
                "Files, ids, URLs, commands and references that will be needed again.",
                &[Topic::Artifacts],
            ),
            (
                "Constraints & preferences",
                "Rules the user gave: must, never, style, limits.",
                &[Topic::Constraints],
            ),
            ("Next steps", "What was planned and not yet done.", &[Topic::Next]),
        ],
    ),
    (
        "handoff",
        &[
            (
                "Active task",
                "What the user wants, in their words, with every rule they gave; the newest request, quoted.",
                &[Topic::Intent, Topic::Constraints],
            ),
            (
                "Completed",
                "What is done, with results, decisions and their reasons.",
                &[Topic::Done, Topic::Facts],
            ),
            (
                "In progress",
                "What was being done last, and how far it got; errors that stand.",
                &[Topic::State],
            ),
            (
                "Pending questions",
                "Questions that wait for an answer of the user.",
                &[Topic::Questions],
            ),
            (
                "Files",
                "Files read and changed, commands, ids and URLs that will be needed again.",
                &[Topic::Artifacts],
            ),
            ("Remaining", "What is left to do, in order.", &[Topic::Next]),
        ],
    ),
    (
        "conversation",
        &[
            ("Topic", "What the conversation is about.", &[Topic::Intent]),
            (
                "Goals",
                "What the user wants to get out of it; the newest request that is not met yet, quoted.",
                &[Topic::Requests],
            ),
            ("Decisions", "What was agreed, and why.", &[Topic::Decisions, Topic::Done]),
            (
                "Facts",
                "What was learned: names, numbers, dates, places, links.",
                &[Topic::Facts, Topic::State],
            ),
            (
                "Action items",
                "What somebody has to do, and questions that are open.",
                &[Topic::Next, Topic::Questions],
            ),
            (
                "Preferences",
                "How the user wants things: style, limits, likes and dislikes.",
                &[Topic::Constraints],
            ),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SectionOptions;

    fn own(names: &[&str]) -> Result<Template, Error> {
        let section =
            |name: &&str| SectionOptions { name: (*name).to_owned(), ..Default::default() };
        let sections = Some(names.iter().map(section).collect());
        Template::read(&SummaryOptions { sections, ..Default::default() })
    }

    #[test]
    fn every_topic_has_a_section_in_every_template() {
        for template in Template::all().chain(own(&["Anything"])).chain(own(&["A", "Files", "Z"])) {
            for (topic, ..) in TOPICS {
                assert!(template.home(topic) < template.sections.len());
            }
            for at in 0..template.sections.len() {
                assert_eq!(template.find(&template.sections[at].name), Some(at));
            }
        }
    }

    #[test]
    fn names_say_what_a_section_holds() {
        let template = own(&["Our goal", "Open questions", "Files", "Todo"]).unwrap();
        assert_eq!(template.home(Topic::Intent), 0);
        assert_eq!(template.home(Topic::Questions), 1);
        assert_eq!(template.home(Topic::Artifacts), 2);
        assert_eq!(template.home(Topic::Constraints), 0);
    }

    #[test]
    fn odd_names_are_refused() {
        for names in [&[][..], &[""], &["a", "A"], &["x\ny"], &["Identifiers"], &["#"]] {
            assert_eq!(own(names).unwrap_err().path(), "options.summary.sections", "{names:?}");
        }
    }

    #[test]
    fn a_heading_is_found_however_models_write_it() {
        let template = Template::default();
        let text = "# SESSION INTENT\n**Current state:** fine\n3. Key Facts & Decisions\nx\n## Artifacts\n\
            ### Constraints & preferences\nwe agreed on the Next steps";
        assert_eq!(template.missing(text), ["Next steps"]);
    }
}

//! Random Anthropic Messages transcripts with the oddities of real ones.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::random::text;

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
pub enum Event {
    User(String),
    /// Blocks of text, an image and a document.
    UserBlocks(String),
    Assistant(String),
    /// Thinking and a text, in one message or in two as logs keep them.
    Thought {
        text: String,
        split: bool,
        redacted: bool,
    },
    /// Thinking that an aborted stream left alone.
    LoneThought,
    /// Calls with ids from a small pool, and which of them are answered in which order.
    Batch {
        ids: Vec<u8>,
        order: Vec<u8>,
        text: String,
        thinking: bool,
        /// Each call and each result in a message of its own.
        spread: bool,
        /// Where the user's text stands beside the results, if anywhere.
        beside: Option<Beside>,
    },
    /// A result that no call waits for, alone or beside text.
    Orphan(u8, String, bool),
    /// A user message between a call and its result.
    Interrupted(u8, String),
    /// A result with odd content.
    Odd(u8, Oddity, String),
    /// A tool that the provider runs, with its result in the same message.
    Search(String),
    /// One whose result comes after that of a tool of the host.
    InFlight(u8, String),
    /// Blocks without text, white space, no blocks, an empty string.
    Blank(u8, bool),
    /// Instructions between a user's and an assistant's message.
    System(String),
    /// A directive without text.
    Directive,
    /// A compaction of the provider's own, or one that failed.
    Compaction(Option<String>),
    /// A block of a kind that nobody knows.
    Unknown(String),
}

#[derive(Clone, Copy, Debug)]
pub enum Beside {
    Before,
    Between,
    After,
}

#[derive(Clone, Copy, Debug)]
pub enum Oddity {
    NoContent,
    Null,
    EmptyError,
    EmptyBlock,
    Image,
    NoInput,
    Surrogate,
}

fn event() -> impl Strategy<Value = Event> {
    use Beside::{After, Before, Between};
    use Oddity::{EmptyBlock, EmptyError, Image, NoContent, NoInput, Null, Surrogate};
    let beside =
        prop::sample::select(vec![None, None, None, Some(Before), Some(Between), Some(After)]);
    let odd = prop::sample::select(vec![
        NoContent, Null, EmptyError, EmptyBlock, Image, NoInput, Surrogate,
    ]);
    prop_oneof![
        5 => text().prop_map(Event::User),
        1 => text().prop_map(Event::UserBlocks),
        4 => text().prop_map(Event::Assistant),
        3 => (text(), any::<bool>(), any::<bool>())
            .prop_map(|(text, split, redacted)| Event::Thought { text, split, redacted }),
        1 => Just(Event::LoneThought),
        9 => (
            prop::collection::vec(0..4u8, 1..5),
            prop::collection::vec(0..5u8, 0..5),
            text(),
            any::<bool>(),
            any::<bool>(),
            beside,
        )
            .prop_map(|(ids, order, text, thinking, spread, beside)| Event::Batch {
                ids, order, text, thinking, spread, beside
            }),
        1 => (0..4u8, text(), any::<bool>())
            .prop_map(|(id, text, beside)| Event::Orphan(id, text, beside)),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Interrupted(id, text)),
        2 => (0..4u8, odd, text()).prop_map(|(id, odd, text)| Event::Odd(id, odd, text)),
        1 => text().prop_map(Event::Search),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::InFlight(id, text)),
        1 => (0..4u8, any::<bool>()).prop_map(|(how, user)| Event::Blank(how, user)),
        1 => text().prop_map(Event::System),
        1 => Just(Event::Directive),
        1 => prop::option::of(text()).prop_map(Event::Compaction),
        1 => text().prop_map(Event::Unknown),
    ]
}

/// Messages as JSON texts. Every text carries a word of its own, `k` and its message's index.
pub fn transcript() -> impl Strategy<Value = Vec<String>> {
    (0..8u8, prop::collection::vec(event(), 1..40)).prop_map(|(start, events)| {
        let mut out = Log::default();
        match start {
            // Some hosts cut the start away.
            2 => out.push(&Event::Orphan(0, "early".to_owned(), false)),
            0 => out.assistant(json!("Hello, how can I help?")),
            1 => out.user(json!("first")),
            _ => out.user(json!([{"type": "text", "text": "start",
                "cache_control": {"type": "ephemeral"}}])),
        }
        for event in &events {
            out.push(event);
        }
        out.messages
    })
}

#[derive(Default)]
struct Log {
    messages: Vec<String>,
    /// Thinking blocks so far: no two are alike.
    thoughts: usize,
    searches: usize,
}

impl Log {
    fn add(&mut self, role: &str, content: Value) {
        let json = json!({"role": role, "content": content}).to_string();
        // A lone surrogate, as a cut emoji leaves it behind.
        self.messages.push(json.replace("😀", "\\ud83d"));
    }

    fn user(&mut self, content: Value) {
        self.add("user", content);
    }

    fn assistant(&mut self, content: Value) {
        self.add("assistant", content);
    }

    fn word(&self, text: &str) -> String {
        match text.is_empty() {
            true => String::new(),
            false => format!("{text} k{}k", self.messages.len()),
        }
    }

    fn thinking(&mut self, text: &str) -> Value {
        self.thoughts += 1;
        let text = text.replace('😀', "");
        json!({"type": "thinking", "thinking": format!("thought {text}"),
            "signature": format!("Sig+{}/==", self.thoughts)})
    }

    fn redacted(&mut self) -> Value {
        self.thoughts += 1;
        json!({"type": "redacted_thinking", "data": format!("Enc+{}/==", self.thoughts)})
    }

    fn push(&mut self, event: &Event) {
        let call = |id: u8, input: Value| {
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": format!("tool_{id}"),
                "input": input})
        };
        let result = |id: u8, content: &str| json!({"type": "tool_result", "tool_use_id": format!("toolu_{id}"), "content": content});
        match event {
            Event::User(text) => {
                let text = self.word(text);
                self.user(json!(text));
            }
            Event::UserBlocks(text) => {
                let text = format!("see {}", self.word(text));
                self.user(json!([
                    {"type": "text", "text": text},
                    {"type": "image", "source":
                        {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    {"type": "document", "title": "d", "source":
                        {"type": "text", "media_type": "text/plain", "data": "inside"}},
                ]));
            }
            Event::Assistant(text) => {
                let text = self.word(text);
                self.assistant(json!(text));
            }
            Event::Thought { text, split, redacted } => {
                let mut thoughts = vec![self.thinking(text)];
                if *redacted {
                    thoughts.push(self.redacted());
                    thoughts.push(json!({"type": "text", "text": "\n\n"}));
                    thoughts.push(self.thinking("more"));
                }
                if *split {
                    self.assistant(json!(thoughts));
                    thoughts = Vec::new();
                }
                let text = format!("so {}", self.word(text));
                thoughts.push(json!({"type": "text", "text": text}));
                self.assistant(json!(thoughts));
            }
            Event::LoneThought => {
                let thought = self.thinking("and then");
                self.assistant(json!([thought]));
            }
            Event::Batch { ids, order, text, thinking, spread, beside } => {
                self.batch(ids, order, text, *thinking, *spread, *beside);
            }
            Event::Orphan(id, text, beside) => {
                let text = self.word(text);
                let mut blocks = vec![result(*id, &text)];
                if *beside {
                    blocks.push(json!({"type": "text", "text": format!("beside {text}")}));
                }
                self.user(json!(blocks));
            }
            Event::Interrupted(id, text) => {
                self.assistant(json!([call(*id, json!({"path": text}))]));
                let word = self.word("wait");
                self.user(json!(word));
                self.user(json!([result(*id, text)]));
            }
            Event::Odd(id, odd, text) => self.odd(*id, *odd, text),
            Event::Search(text) => {
                self.searches += 1;
                let id = format!("srvtoolu_{}", self.searches);
                let text = format!("found {}", self.word(text));
                self.assistant(json!([
                    {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}},
                    {"type": "web_search_tool_result", "tool_use_id": id, "content": [
                        {"type": "web_search_result", "url": "u", "title": "t",
                         "encrypted_content": "RW5j", "page_age": null}]},
                    {"type": "text", "text": text, "citations": null},
                ]));
            }
            Event::InFlight(id, text) => {
                self.searches += 1;
                let search = format!("srvtoolu_{}", self.searches);
                self.assistant(json!([
                    {"type": "server_tool_use", "id": search, "name": "web_search", "input": {}},
                    call(*id, json!({})),
                ]));
                let word = self.word(text);
                self.user(json!([result(*id, &word)]));
                self.assistant(json!([
                    {"type": "web_search_tool_result", "tool_use_id": search, "content": []},
                    {"type": "text", "text": "both done"},
                ]));
            }
            Event::Blank(how, user) => {
                let content = match how {
                    0 => json!(""),
                    1 => json!([]),
                    2 => json!([{"type": "text", "text": ""}]),
                    _ => json!([{"type": "text", "text": " \n"}, {"type": "text", "text": "real"}]),
                };
                self.add(if *user { "user" } else { "assistant" }, content);
            }
            Event::System(text) => {
                let ask = self.word("go on");
                self.user(json!(ask));
                let text = format!("Rule: {}", self.word(text));
                self.add("system", json!(text));
                let word = self.word("yes");
                self.assistant(json!([{"type": "text", "text": word}]));
            }
            Event::Directive => {
                let message =
                    json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
                self.messages.push(message.to_string());
            }
            Event::Compaction(text) => {
                let summary = text.as_ref().map(|text| format!("sum {}", self.word(text)));
                self.assistant(json!([
                    {"type": "compaction", "content": summary, "encrypted_content": null},
                    {"type": "text", "text": "Going on."},
                ]));
            }
            Event::Unknown(text) => {
                let text = self.word(text);
                self.user(json!([{"type": "hologram", "inner": {"text": text}}]));
            }
        }
    }

    fn batch(
        &mut self,
        ids: &[u8],
        order: &[u8],
        text: &str,
        thinking: bool,
        spread: bool,
        beside: Option<Beside>,
    ) {
        let mut calls = Vec::new();
        if thinking {
            calls.push(self.thinking(text));
            calls.push(json!({"type": "text", "text": "Reading."}));
        }
        for id in ids {
            calls.push(json!({"type": "tool_use", "id": format!("toolu_{id}"),
                "name": format!("tool_{id}"), "input": {"path": text}}));
        }
        if spread {
            calls.into_iter().for_each(|call| self.assistant(json!([call])));
        } else {
            self.assistant(json!(calls));
        }
        let mut results = Vec::new();
        for (index, at) in order.iter().enumerate() {
            let id = ids.get(usize::from(*at)).copied().unwrap_or(*at);
            // In a message of its own the result has a word of its own.
            let told = self.messages.len() + if spread { index } else { 0 };
            let text = if text.is_empty() { String::new() } else { format!("{text} k{told}k") };
            results.push(json!({"type": "tool_result", "tool_use_id": format!("toolu_{id}"),
                "content": text}));
        }
        let at = match beside {
            Some(Beside::Before) => 0,
            Some(Beside::Between) => results.len() / 2,
            _ => results.len(),
        };
        if beside.is_some() {
            results.insert(at, json!({"type": "text", "text": "By the way, hurry."}));
        }
        if spread {
            results.into_iter().for_each(|result| self.user(json!([result])));
        } else if !results.is_empty() {
            self.user(json!(results));
        }
    }

    fn odd(&mut self, id: u8, odd: Oddity, text: &str) {
        let id = format!("toolu_{id}");
        let mut call = json!({"type": "tool_use", "id": id, "name": "odd", "input": {}});
        if matches!(odd, Oddity::NoInput) {
            call.as_object_mut().map(|call| call.remove("input"));
        }
        self.assistant(json!([call]));
        let word = self.word(text);
        let mut result = json!({"type": "tool_result", "tool_use_id": id});
        match odd {
            Oddity::NoContent => {}
            Oddity::Null => result["content"] = Value::Null,
            Oddity::EmptyError => {
                result["is_error"] = json!(true);
                result["content"] = json!("");
            }
            Oddity::EmptyBlock => result["content"] = json!([{"type": "text", "text": ""}]),
            Oddity::Image => {
                result["content"] = json!([{"type": "text", "text": format!("list {word}")},
                    {"type": "image", "source": {"type": "url", "url": "u"}}]);
            }
            Oddity::NoInput => result["content"] = json!(word),
            Oddity::Surrogate => {
                result["content"] = json!([{"type": "text", "text": format!("cut 😀 {word}")}])
            }
        }
        self.user(json!([result]));
    }
}

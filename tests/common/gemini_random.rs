//! Random Gemini transcripts with the oddities of real ones.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::random::text;

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
pub enum Event {
    /// A text, with its role or, as the API allows, without.
    User(String, bool),
    /// A text, an image and a video by address.
    UserParts(String),
    Model(String),
    /// A thought, signed or not, alone or before a text.
    Thought {
        text: String,
        signed: bool,
        alone: bool,
    },
    /// A text, and the signature on an empty one, as streams end.
    StreamEnd(String),
    /// Calls of functions from a small pool, and which of them are answered in which order.
    Batch {
        names: Vec<u8>,
        order: Vec<u8>,
        text: String,
        how: How,
    },
    /// A response that no call waits for, alone or beside text.
    Orphan(u8, String, bool),
    /// A user's text between a call and its response.
    Interrupted(u8, String),
    /// A response with odd content.
    Odd(u8, Oddity, String),
    /// Tools of the server: code, or a search, in one content or in two.
    Server(String, bool, bool),
    /// No parts, null, an empty text.
    Blank(u8, bool),
    /// A part of a kind that nobody knows.
    Unknown(String),
}

#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Calls and responses have ids: both, none, only the responses.
    pub ids: u8,
    pub signed: bool,
    /// `function_call` instead of `functionCall`.
    pub snake: bool,
    /// Responses have a text beside them: none, before, after.
    pub beside: u8,
    /// The role of the responses is `function`.
    pub function: bool,
    /// Each call and each response is a content of its own.
    pub spread: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Oddity {
    NoResponse,
    Null,
    Bare,
    List,
    Members,
    Media,
    NoArgs,
    Surrogate,
}

fn event() -> impl Strategy<Value = Event> {
    use Oddity::{Bare, List, Media, Members, NoArgs, NoResponse, Null, Surrogate};
    let odd =
        prop::sample::select(vec![NoResponse, Null, Bare, List, Members, Media, NoArgs, Surrogate]);
    let one = any::<bool>;
    let how = (0..3u8, one(), one(), 0..5u8, one(), 0..4u8).prop_map(
        |(ids, signed, snake, beside, function, spread)| How {
            ids,
            signed,
            snake,
            beside,
            function,
            spread: spread == 0,
        },
    );
    prop_oneof![
        5 => (text(), one()).prop_map(|(text, role)| Event::User(text, role)),
        1 => text().prop_map(Event::UserParts),
        4 => text().prop_map(Event::Model),
        3 => (text(), one(), one())
            .prop_map(|(text, signed, alone)| Event::Thought { text, signed, alone }),
        1 => text().prop_map(Event::StreamEnd),
        9 => (prop::collection::vec(0..4u8, 1..5), prop::collection::vec(0..5u8, 0..5), text(), how)
            .prop_map(|(names, order, text, how)| Event::Batch { names, order, text, how }),
        1 => (0..4u8, text(), one())
            .prop_map(|(name, text, beside)| Event::Orphan(name, text, beside)),
        1 => (0..4u8, text()).prop_map(|(name, text)| Event::Interrupted(name, text)),
        3 => (0..4u8, odd, text()).prop_map(|(name, odd, text)| Event::Odd(name, odd, text)),
        1 => (text(), one(), one())
            .prop_map(|(text, code, split)| Event::Server(text, code, split)),
        1 => (0..4u8, one()).prop_map(|(how, user)| Event::Blank(how, user)),
        1 => text().prop_map(Event::Unknown),
    ]
}

/// Contents as JSON texts. Every text carries a word of its own, `k` and its content's index.
pub fn transcript() -> impl Strategy<Value = Vec<String>> {
    (0..8u8, prop::collection::vec(event(), 1..40)).prop_map(|(start, events)| {
        let mut out = Log::default();
        match start {
            // Some hosts cut the start away.
            0 => out.add("model", json!([{"text": "Hello, how can I help?"}])),
            _ => out.add("user", json!([{"text": "start"}])),
        }
        for event in &events {
            out.push(event);
        }
        out.contents
    })
}

#[derive(Default)]
struct Log {
    contents: Vec<String>,
    /// Signatures so far: no two are alike.
    signatures: usize,
    /// Calls with ids so far.
    calls: usize,
}

fn name(at: u8) -> String {
    format!("tool_{at}")
}

fn response(id: Option<&str>, name: &str, response: Value) -> Value {
    let mut body = json!({"name": name, "response": response});
    if let Some(id) = id {
        body["id"] = json!(id);
    }
    json!({"functionResponse": body})
}

impl Log {
    fn add(&mut self, role: &str, parts: Value) {
        let json = json!({"role": role, "parts": parts}).to_string();
        // A lone surrogate, as a cut emoji leaves it behind.
        self.contents.push(json.replace("😀", "\\ud83d"));
    }

    fn word(&self, text: &str) -> String {
        match text.is_empty() {
            true => String::new(),
            false => format!("{text} k{}k", self.contents.len()),
        }
    }

    fn sign(&mut self, mut part: Value) -> Value {
        self.signatures += 1;
        part["thoughtSignature"] = json!(format!("Sig+{}/==", self.signatures).repeat(9));
        // What the model says is Unicode.
        serde_json::from_str(&part.to_string().replace('😀', "")).expect("JSON")
    }

    fn push(&mut self, event: &Event) {
        match event {
            Event::User(text, role) => {
                let text = format!("u{}", self.word(text));
                match role {
                    true => self.add("user", json!([{"text": text}])),
                    false => {
                        let json = json!({"parts": [{"text": text}]}).to_string();
                        self.contents.push(json.replace("😀", "\\ud83d"));
                    }
                }
            }
            Event::UserParts(text) => {
                let text = format!("see {}", self.word(text));
                self.add(
                    "user",
                    json!([
                        {"text": text},
                        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                        {"file_data": {"mime_type": "video/mp4", "file_uri": "gs://v"},
                         "videoMetadata": {"fps": 1}},
                    ]),
                );
            }
            Event::Model(text) => {
                let text = self.word(text);
                self.add("model", json!([{"text": text}]));
            }
            Event::Thought { text, signed, alone } => {
                let mut thought = json!({"text": format!("thought {text}"), "thought": true});
                if *signed {
                    thought = self.sign(thought);
                }
                let mut parts = vec![thought];
                if !alone {
                    parts.push(json!({"text": format!("so {}", self.word(text))}));
                }
                self.add("model", json!(parts));
            }
            Event::StreamEnd(text) => {
                let text = format!("so {}", self.word(text));
                let end = self.sign(json!({"text": ""}));
                self.add("model", json!([{"text": text}, end]));
            }
            Event::Batch { names, order, text, how } => self.batch(names, order, text, *how),
            Event::Orphan(at, text, beside) => {
                let text = self.word(text);
                let mut parts = vec![response(None, &name(*at), json!({"output": text}))];
                if *beside {
                    parts.push(json!({"text": format!("beside {text}")}));
                }
                self.add("user", json!(parts));
            }
            Event::Interrupted(at, text) => {
                let call = json!({"functionCall": {"name": name(*at), "args": {"path": text}}});
                self.add("model", json!([call]));
                let word = self.word("wait");
                self.add("user", json!([{"text": word}]));
                self.add("user", json!([response(None, &name(*at), json!({"output": text}))]));
            }
            Event::Odd(at, odd, text) => self.odd(*at, *odd, text),
            Event::Server(text, code, split) => {
                let text = format!("found {}", self.word(text));
                let (call, result) = match code {
                    true => (
                        json!({"executableCode": {"language": "PYTHON", "code": "1 + 1"}}),
                        json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}),
                    ),
                    false => {
                        let body = json!({"id": "t", "toolType": "GOOGLE_SEARCH_WEB"});
                        let call = self.sign(json!({"toolCall": body}));
                        (call, self.sign(json!({"toolResponse": body})))
                    }
                };
                match split {
                    true => {
                        self.add("model", json!([call]));
                        self.add("model", json!([result, {"text": text}]));
                    }
                    false => self.add("model", json!([call, result, {"text": text}])),
                }
            }
            Event::Blank(how, user) => {
                let parts = match how {
                    0 => json!([]),
                    1 => Value::Null,
                    2 => json!([{"text": ""}]),
                    _ => json!([{"text": ""}, {"text": "real"}]),
                };
                self.add(if *user { "user" } else { "model" }, parts);
            }
            Event::Unknown(text) => {
                let text = self.word(text);
                self.add("user", json!([{"hologram": {"inner": text}}]));
            }
        }
    }

    fn batch(&mut self, names: &[u8], order: &[u8], text: &str, how: How) {
        let first = self.calls;
        self.calls += names.len();
        let id = |at: usize| format!("call_{}", first + at);
        let mut calls = Vec::new();
        for (at, name_at) in names.iter().enumerate() {
            let mut body = json!({"name": name(*name_at), "args": {"path": text}});
            if how.ids == 0 {
                body["id"] = json!(id(at));
            }
            let mut call = match how.snake {
                true => json!({"function_call": body}),
                false => json!({"functionCall": body}),
            };
            // Of parallel calls only the first is signed.
            if how.signed && at == 0 {
                call = self.sign(call);
            }
            calls.push(call);
        }
        match how.spread {
            true => calls.into_iter().for_each(|call| self.add("model", json!([call]))),
            false => self.add("model", json!(calls)),
        }
        let mut responses = Vec::new();
        for (index, at) in order.iter().enumerate() {
            let told = self.contents.len() + if how.spread { index } else { 0 };
            let text = if text.is_empty() { String::new() } else { format!("{text} k{told}k") };
            let called = names.get(usize::from(*at)).copied().unwrap_or(*at);
            let id = (how.ids != 1).then(|| id(usize::from(*at)));
            responses.push(response(id.as_deref(), &name(called), json!({"output": text})));
        }
        match how.beside {
            0 => responses.insert(0, json!({"text": "By the way, hurry."})),
            1 => responses.push(json!({"text": "By the way, hurry."})),
            _ => {}
        }
        let role = if how.function { "function" } else { "user" };
        if how.spread {
            responses.into_iter().for_each(|response| self.add(role, json!([response])));
        } else if !responses.is_empty() {
            self.add(role, json!(responses));
        }
    }

    fn odd(&mut self, at: u8, odd: Oddity, text: &str) {
        let mut call = json!({"functionCall": {"name": name(at), "args": {"q": text}}});
        if matches!(odd, Oddity::NoArgs) {
            call["functionCall"].as_object_mut().map(|body| body.remove("args"));
        }
        self.add("model", json!([call]));
        let word = self.word(text);
        let mut body = json!({"name": name(at)});
        match odd {
            Oddity::NoResponse => {}
            Oddity::Null => body["response"] = Value::Null,
            Oddity::Bare => body["response"] = json!(word),
            Oddity::List => body["response"] = json!([word, 1]),
            Oddity::Members | Oddity::NoArgs => {
                body["response"] = json!({"error": word, "code": 1, "lines": [text, text]});
            }
            Oddity::Media => {
                body["response"] = json!({"result": word});
                body["parts"] = json!([
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://p"}},
                ]);
            }
            Oddity::Surrogate => body["response"] = json!({"a": format!("cut 😀 {word}")}),
        }
        self.add("user", json!([{"functionResponse": body}]));
    }
}

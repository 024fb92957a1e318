//! A host: a store that can fail, a summarizer of many moods, and the loop that drains effects.

use std::collections::BTreeMap;

use serde_json::Value;
use tidemark::{Effect, Engine, Options, Outcome, PlanRequest, Reply, Step};

pub const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

/// What the host's summarizer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    Blank,
    Verbose,
    Echo,
    Throws,
    ToolCall,
    NoSections,
    /// Another of the others each time, by this seed.
    Fickle(u32),
}

impl Mood {
    fn of_the_moment(self, call: usize) -> Mood {
        use Mood::{Blank, Echo, Good, NoSections, Throws, ToolCall, Verbose};
        match self {
            Mood::Fickle(seed) => [Good, Blank, Verbose, Echo, Good, Throws, ToolCall, NoSections]
                [draw(seed, call, 8)],
            mood => mood,
        }
    }
}

/// A number below `below`, the same for the same seed and call.
fn draw(seed: u32, call: usize, below: usize) -> usize {
    let mixed = (u64::from(seed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ call as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 33) as usize % below
}

pub struct Host {
    pub engine: Engine,
    pub store: BTreeMap<String, String>,
    pub store_fails: bool,
    /// The store fails at some calls, by this seed.
    pub store_flaky: Option<u32>,
    pub mood: Mood,
    /// Prompts that the summarizer was given.
    pub prompts: Vec<String>,
    /// Bursts that began, or wanted to.
    pub bursts: Vec<Effect>,
    /// What the hook before a burst says; it fails where there is none.
    pub go: Option<Reply>,
    /// Spans that were handed over before they were folded.
    pub flushed: Vec<(u32, u32, String)>,
    calls: usize,
    known: usize,
}

/// Options from JSON with the tests' fixed secret.
pub fn options(json: &str) -> Options {
    let mut options = Options::from_json(json).expect("good options");
    options.secret.get_or_insert(SECRET.to_owned());
    options
}

impl Host {
    pub fn new(json: &str) -> Host {
        Host::with(Engine::new(options(json)).expect("good options"))
    }

    pub fn restore(json: &str, checkpoint: &str) -> Host {
        Host::with(Engine::restore(options(json), checkpoint).expect("a good checkpoint"))
    }

    fn with(engine: Engine) -> Host {
        Host {
            engine,
            store: BTreeMap::new(),
            store_fails: false,
            store_flaky: None,
            mood: Mood::Good,
            prompts: Vec::new(),
            bursts: Vec::new(),
            go: Some(Reply::Go { veto: false, pins: Vec::new() }),
            flushed: Vec::new(),
            calls: 0,
            known: 0,
        }
    }

    /// Ingests what is new of the messages, the last known one again, and plans to the end.
    pub fn turn(&mut self, messages: &[String]) -> Outcome {
        self.ingest(messages);
        self.plan(PlanRequest::default())
    }

    pub fn ingest(&mut self, messages: &[String]) {
        let from = self.known.min(messages.len()).saturating_sub(1);
        let json = format!("[{}]", messages[from..].join(","));
        self.engine.ingest(from, &json, &[]).expect("good messages");
        self.known = messages.len();
    }

    pub fn plan(&mut self, request: PlanRequest) -> Outcome {
        let mut step = self.engine.plan(request).expect("a good request");
        let mut due: Vec<Effect> = Vec::new();
        loop {
            match step {
                Step::Done { outcome } => return *outcome,
                Step::Effects { effects } => due.extend(effects),
                Step::Idle => panic!("an effect of the running plan was called abandoned"),
            }
            // Newest first: the order of replies must not matter.
            let effect = due.pop().expect("the engine waits for nothing");
            let reply = self.perform(&effect);
            step = self.engine.resolve(effect.id(), reply).expect("a good reply");
        }
    }

    fn perform(&mut self, effect: &Effect) -> Reply {
        self.calls += 1;
        let flaky = self.store_flaky.is_some_and(|seed| draw(seed, self.calls, 3) == 0);
        match effect {
            Effect::Decide { .. } => Reply::Done,
            Effect::Put { .. } if self.store_fails || flaky => {
                Reply::Failed { message: "disk full".into() }
            }
            Effect::Put { key, content, .. } => {
                self.store.insert(key.clone(), content.clone());
                Reply::Done
            }
            Effect::Burst { .. } => {
                self.bursts.push(effect.clone());
                self.go.clone().unwrap_or(Reply::Failed { message: "no idea".into() })
            }
            Effect::Flush { text, from, to, .. } => {
                self.flushed.push((*from, *to, text.clone()));
                match flaky {
                    true => Reply::Failed { message: "busy".into() },
                    false => Reply::Done,
                }
            }
            Effect::Summarize { prompt, system, max_tokens, .. } => {
                self.prompts.push(prompt.clone());
                match self.mood.of_the_moment(self.calls) {
                    Mood::Throws => Reply::Failed { message: "boom".into() },
                    mood => Reply::Text { text: reply(mood, prompt, system, *max_tokens) },
                }
            }
        }
    }

    /// The view as parsed JSON.
    pub fn view(&self) -> Vec<Value> {
        serde_json::from_str(&self.engine.render_json()).expect("views are JSON")
    }
}

/// The six headings, each with one line.
pub fn good_summary(line: &str) -> String {
    [
        "Session intent",
        "Current state",
        "Key facts & decisions",
        "Artifacts",
        "Constraints & preferences",
        "Next steps",
    ]
    .map(|heading| format!("## {heading}\n- {line}\n"))
    .concat()
}

fn reply(mood: Mood, prompt: &str, system: &str, max_tokens: u32) -> String {
    match mood {
        Mood::Good | Mood::Throws | Mood::Fickle(_) => good_summary("noted"),
        Mood::Blank => " \n ".to_owned(),
        Mood::Verbose => "very long ".repeat(max_tokens as usize * 2),
        Mood::Echo => format!("{system}\n{prompt}"),
        Mood::ToolCall => "<tool_call>{\"name\":\"read\"}</tool_call>".to_owned(),
        Mood::NoSections => "They talked.".to_owned(),
    }
}

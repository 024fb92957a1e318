//! Random lists of OpenAI Responses items with the oddities of real ones.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::random::text;

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
enum Event {
    Instruction(bool, String),
    User(String),
    UserParts(String),
    /// A message of the assistant: its form, and its text.
    Said(u8, String),
    /// A response of the model, and what the host answers.
    Response {
        reasoning: Vec<bool>,
        said: Option<String>,
        hosted: Vec<u8>,
        calls: Vec<(u8, u8)>,
        /// Which calls are answered, in which order; others never are.
        order: Vec<u8>,
        /// Outputs stand between the calls.
        between: bool,
        output: u8,
        text: String,
    },
    /// Reasoning that nothing follows.
    Aborted,
    /// The last items once more, as a host that saved a response twice sends them.
    Again(usize),
    /// An output that no call waits for.
    Orphan(u8, String),
    /// A user message between a call and its output.
    Interrupted(u8, String),
    Approval(bool, String),
    /// A call on the server, and its output here.
    Reference(u8, String),
    Compaction(bool),
    Configuration,
    Tools,
    Unknown(String),
    OddArguments(u8, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let response = (
        prop::collection::vec(any::<bool>(), 0..3),
        prop::option::of(text()),
        prop::collection::vec(0..6u8, 0..3),
        prop::collection::vec((0..6u8, 0..4u8), 0..4),
        prop::collection::vec(0..5u8, 0..5),
        any::<bool>(),
        0..8u8,
        text(),
    )
        .prop_map(|(reasoning, said, hosted, calls, order, between, output, text)| {
            Event::Response { reasoning, said, hosted, calls, order, between, output, text }
        });
    prop_oneof![
        1 => (any::<bool>(), text()).prop_map(|(new, text)| Event::Instruction(new, text)),
        5 => text().prop_map(Event::User),
        1 => text().prop_map(Event::UserParts),
        3 => (0..6u8, text()).prop_map(|(form, text)| Event::Said(form, text)),
        10 => response,
        1 => Just(Event::Aborted),
        1 => (1..6usize).prop_map(Event::Again),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Orphan(id, text)),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Interrupted(id, text)),
        1 => (any::<bool>(), text()).prop_map(|(answered, text)| Event::Approval(answered, text)),
        1 => (0..4u8, text()).prop_map(|(id, text)| Event::Reference(id, text)),
        1 => any::<bool>().prop_map(Event::Compaction),
        1 => Just(Event::Configuration),
        1 => Just(Event::Tools),
        1 => text().prop_map(Event::Unknown),
        1 => (0..4u8, any::<bool>()).prop_map(|(id, some)| Event::OddArguments(id, some)),
    ]
}

/// Items as JSON texts. Every text carries a word of its own, `k` and its item's index; items
/// have ids of their own unless they stand twice.
pub fn transcript() -> impl Strategy<Value = Vec<String>> {
    (any::<bool>(), prop::collection::vec(event(), 1..30)).prop_map(|(system, events)| {
        let mut items = Items::default();
        if system {
            items.add(json!({"role": "developer", "content": "You are careful."}));
        }
        items.push(&Event::User("start".to_owned()));
        for event in &events {
            items.push(event);
        }
        items.out
    })
}

#[derive(Default)]
struct Items {
    out: Vec<String>,
}

impl Items {
    fn add(&mut self, item: Value) {
        // A lone surrogate, as a cut emoji leaves it behind.
        self.out.push(item.to_string().replace("😀", "\\ud83d"));
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.out.len())
    }

    fn word(&self, text: &str) -> String {
        match text.is_empty() {
            true => String::new(),
            false => format!("{text} k{}k", self.out.len()),
        }
    }

    fn user(&mut self, text: &str) {
        let text = self.word(text);
        self.add(json!({"role": "user", "content": text}));
    }

    fn reasoning(&mut self, summary: bool) {
        let summary = match summary {
            true => vec![json!({"type": "summary_text", "text": "**Looking around**\n\nHm."})],
            false => Vec::new(),
        };
        let sealed = format!("gAAAA{}", "Bc9_".repeat(200 + self.out.len()));
        let id = self.id("rs");
        self.add(
            json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed}),
        );
    }

    /// A call of one of six types; returns its type and id.
    fn call(&mut self, kind: u8, id: u8, text: &str) -> (u8, String) {
        let call_id = match kind {
            0..=2 => format!("call_{id}"),
            _ => format!("call_{kind}_{id}"),
        };
        let text = self.word(text);
        let item = match kind {
            0..=2 => json!({"type": "function_call", "id": self.id("fc"), "call_id": call_id,
                "name": format!("tool_{id}"), "arguments": json!({"path": text}).to_string(),
                "status": "completed"}),
            3 => json!({"type": "custom_tool_call", "id": self.id("ctc"), "call_id": call_id,
                "name": "patch", "input": text}),
            4 => json!({"type": "shell_call", "id": self.id("sh"), "call_id": call_id,
                "status": "completed", "action": {"commands": [text]}}),
            _ => json!({"type": "computer_call", "id": self.id("cu"), "call_id": call_id,
                "status": "completed", "pending_safety_checks": [], "action": {"type": "screenshot"}}),
        };
        self.add(item);
        (kind, call_id)
    }

    fn output(&mut self, (kind, id): &(u8, String), form: u8, text: &str) {
        let text = self.word(text);
        let parts = json!([{"type": "input_text", "text": format!("list {text}")},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"}]);
        let output = match form {
            0 => Value::Null,
            1 => json!([]),
            2 => parts,
            3 => json!({"ok": text}),
            _ => json!(text),
        };
        self.add(match kind {
            0..=2 => json!({"type": "function_call_output", "call_id": id, "output": output}),
            3 => json!({"type": "custom_tool_call_output", "call_id": id, "output": output}),
            4 => json!({"type": "shell_call_output", "call_id": id, "output":
                [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
            _ => json!({"type": "computer_call_output", "call_id": id, "output":
                {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}}),
        });
    }

    fn hosted(&mut self, kind: u8) {
        let item = match kind {
            0 => json!({"type": "web_search_call", "id": self.id("ws"), "status": "completed",
                "action": {"type": "search", "query": "weather"}}),
            1 => json!({"type": "file_search_call", "id": self.id("fs"), "status": "completed",
                "queries": ["x"], "results": [{"text": "found ".repeat(50)}]}),
            2 => {
                json!({"type": "code_interpreter_call", "id": self.id("ci"), "status": "completed",
                "code": "print(1)", "container_id": "cntr", "outputs": null})
            }
            3 => {
                json!({"type": "image_generation_call", "id": self.id("ig"), "status": "completed",
                "result": "iVBORw0K".repeat(500)})
            }
            4 => json!({"type": "mcp_list_tools", "id": self.id("mcpl"), "server_label": "s",
                "tools": [{"name": "t", "input_schema": {}}]}),
            _ => json!({"type": "mcp_call", "id": self.id("mcp"), "server_label": "s", "name": "t",
                "arguments": "{}", "output": "called ".repeat(40)}),
        };
        self.add(item);
    }

    fn said(&mut self, form: u8, text: &str) {
        let text = self.word(text);
        let part = json!({"type": "output_text", "annotations": [], "text": text});
        let id = self.id("msg");
        self.add(match form {
            0 => json!({"role": "assistant", "content": text}),
            1 => json!({"type": "message", "role": "assistant", "content": [part]}),
            2 => json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
                "phase": "commentary", "content": [part, {"type": "refusal", "refusal": "no"}]}),
            3 => json!({"type": "message", "id": id, "role": "assistant", "status": "incomplete",
                "content": []}),
            4 => json!({"role": "assistant", "content": null}),
            _ => json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
                "content": [part]}),
        });
    }

    fn push(&mut self, event: &Event) {
        // A response follows another whose calls wait only after what its user says.
        let waits = |last: &String| last.contains("_call\"") && last.contains("call_id");
        let by_user = matches!(event, Event::User(_) | Event::UserParts(_) | Event::Orphan(..));
        if !by_user && self.out.last().is_some_and(waits) {
            self.user("next");
        }
        match event {
            Event::Instruction(new, text) => {
                let role = if *new { "developer" } else { "system" };
                let text = self.word(text);
                self.add(json!({"type": "message", "role": role, "content": text}));
            }
            Event::User(text) => self.user(text),
            Event::UserParts(text) => {
                let text = self.word(text);
                self.add(json!({"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": format!("see {text}")},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                ]}));
            }
            Event::Said(form, text) => self.said(*form, text),
            Event::Response { reasoning, said, hosted, calls, order, between, output, text } => {
                for (at, summary) in reasoning.iter().enumerate() {
                    self.reasoning(*summary);
                    if let Some(kind) = hosted.get(at) {
                        self.hosted(*kind);
                    }
                }
                for kind in hosted.iter().skip(reasoning.len()) {
                    self.hosted(*kind);
                }
                if let Some(said) = said {
                    self.said(5, said);
                }
                let mut made = Vec::new();
                for (kind, id) in calls {
                    let call = self.call(*kind, *id, text);
                    if *between {
                        self.output(&call, *output, text);
                    }
                    made.push(call);
                }
                for at in order.iter().filter(|_| !between) {
                    if let Some(call) = made.get(usize::from(*at)) {
                        self.output(&call.clone(), *output, text);
                    }
                }
            }
            Event::Again(count) => {
                let from = self.out.len().saturating_sub(*count);
                self.out.extend_from_within(from..);
            }
            Event::Aborted => self.reasoning(true),
            Event::Orphan(id, text) => self.output(&(0, format!("lost_{id}")), 7, text),
            Event::Interrupted(id, text) => {
                let call = self.call(0, *id, text);
                self.user("wait");
                self.output(&call, 7, text);
            }
            Event::Approval(answered, text) => {
                let id = self.id("mcpr");
                self.add(json!({"type": "mcp_approval_request", "id": id, "server_label": "s",
                    "name": "t", "arguments": "{}"}));
                match answered {
                    true => {
                        self.add(
                            json!({"type": "mcp_approval_response", "approval_request_id": id,
                            "approve": true}),
                        );
                        self.hosted(5);
                    }
                    false => self.user(text),
                }
            }
            Event::Reference(id, text) => {
                self.add(json!({"type": "item_reference", "id": self.id("fc")}));
                self.output(&(0, format!("served_{id}")), 7, text);
            }
            Event::Compaction(filled) => {
                let id = self.id("cmp");
                let content = filled.then(|| "gAAAAcmp".repeat(150));
                self.add(json!({"type": "compaction", "id": id, "encrypted_content": content}));
            }
            Event::Configuration => {
                self.add(json!({"type": "configuration_update", "reasoning": {"effort": "high"}}));
                self.user("go on");
            }
            Event::Tools => self.add(json!({"type": "additional_tools", "role": "developer",
                "tools": [{"type": "function", "name": "later", "parameters": {}}]})),
            Event::Unknown(text) => {
                let text = self.word(text);
                self.add(json!({"type": "ghost_snapshot", "ghost_commit": {"id": text}}));
            }
            Event::OddArguments(id, some) => {
                let call_id = format!("call_{id}");
                let mut call = json!({"type": "function_call", "call_id": call_id, "name": "odd"});
                if *some {
                    call["arguments"] = json!({"path": "x"});
                }
                self.add(call);
                self.output(&(0, call_id), 7, "odd");
            }
        }
    }
}

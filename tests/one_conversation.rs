//! The same conversation, written in each wire format, takes the same decisions.

mod common;

use std::collections::BTreeSet;

use common::build::{forced, long};
use common::host::Host;
use serde_json::{Value, json};
use tidemark::{FormatName, Outcome};

/// What happens in the conversation. Each text begins with a word of its own.
enum Event {
    User(String),
    Said(String),
    /// Parallel calls with their results, by id.
    Batch(Vec<(String, String)>),
}

use Event::{Batch, Said, User};

/// The messages of an event: those that the model says or the user says, and results.
fn written(format: FormatName, event: &Event) -> [Vec<Value>; 2] {
    let name = "read";
    let args = |id: &str| json!({"path": format!("src/{id}.rs")});
    match (format, event) {
        (FormatName::Gemini, User(text)) => {
            [vec![json!({"role": "user", "parts": [{"text": text}]})], vec![]]
        }
        (FormatName::Gemini, Said(text)) => {
            [vec![json!({"role": "model", "parts": [{"text": text}]})], vec![]]
        }
        (FormatName::OpenaiResponses, User(text)) => {
            let content = json!([{"type": "input_text", "text": text}]);
            [vec![json!({"type": "message", "role": "user", "content": content})], vec![]]
        }
        (FormatName::OpenaiResponses, Said(text)) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            [vec![json!({"type": "message", "role": "assistant", "content": content})], vec![]]
        }
        (_, User(text)) => [vec![json!({"role": "user", "content": text})], vec![]],
        (_, Said(text)) => [vec![json!({"role": "assistant", "content": text})], vec![]],
        (format, Batch(batch)) => {
            let calls = batch.iter().map(|(id, _)| match format {
                FormatName::OpenaiChat => json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": args(id).to_string()}}),
                FormatName::OpenaiResponses => json!({"type": "function_call", "call_id": id,
                    "name": name, "arguments": args(id).to_string()}),
                FormatName::Anthropic => {
                    json!({"type": "tool_use", "id": id, "name": name, "input": args(id)})
                }
                FormatName::Gemini => {
                    json!({"functionCall": {"id": id, "name": name, "args": args(id)}})
                }
                _ => json!({"type": "tool-call", "toolCallId": id, "toolName": name,
                    "input": args(id)}),
            });
            let results = batch.iter().map(|(id, text)| match format {
                FormatName::OpenaiChat => {
                    json!({"role": "tool", "tool_call_id": id, "content": text})
                }
                FormatName::OpenaiResponses => {
                    json!({"type": "function_call_output", "call_id": id, "output": text})
                }
                FormatName::Anthropic => {
                    json!({"type": "tool_result", "tool_use_id": id, "content": text})
                }
                FormatName::Gemini => json!({"functionResponse": {"id": id, "name": name,
                    "response": {"output": text}}}),
                _ => json!({"type": "tool-result", "toolCallId": id, "toolName": name,
                    "output": {"type": "text", "value": text}}),
            });
            let (calls, results): (Vec<Value>, Vec<Value>) = (calls.collect(), results.collect());
            match format {
                FormatName::OpenaiChat => {
                    let message =
                        json!({"role": "assistant", "content": null, "tool_calls": calls});
                    [vec![message], results]
                }
                FormatName::OpenaiResponses => [calls, results],
                FormatName::Anthropic => [
                    vec![json!({"role": "assistant", "content": calls})],
                    vec![json!({"role": "user", "content": results})],
                ],
                FormatName::Gemini => [
                    vec![json!({"role": "model", "parts": calls})],
                    vec![json!({"role": "user", "parts": results})],
                ],
                _ => [
                    vec![json!({"role": "assistant", "content": calls})],
                    vec![json!({"role": "tool", "content": results})],
                ],
            }
        }
    }
}

/// A long session: questions, answers, single and parallel calls, one file read twice. Formats
/// differ by some tokens a message, so texts are long: no mark falls into the difference.
fn session() -> Vec<Event> {
    let mut out = Vec::new();
    for at in 0..24 {
        let text = |tag: &str, words: usize| long(&format!("{tag}{at}w"), words * 10);
        match at % 4 {
            0 => out.push(User(text("user", 60))),
            1 => out.push(Batch(vec![(format!("a{at}"), text("one", 400))])),
            2 => out.push(Batch(
                (0..3).map(|n| (format!("b{at}_{n}"), text(&format!("three{n}x"), 200))).collect(),
            )),
            _ => out.push(Said(text("said", 120))),
        }
    }
    out.push(Batch(vec![("a1_again".to_owned(), long("one1w", 4_000))]));
    out.push(User(long("lastw", 20)));
    out
}

/// The words that open the texts, with what of them the view shows.
fn shown(host: &Host, events: &[Event]) -> Vec<(String, bool)> {
    let view = host.engine.render_json();
    let texts = events.iter().flat_map(|event| match event {
        User(text) | Said(text) => vec![text],
        Batch(batch) => batch.iter().map(|(_, text)| text).collect(),
    });
    let word = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
    texts.map(word).map(|word| (word.clone(), view.contains(&format!("{word}:")))).collect()
}

/// What an outcome decided: kinds with the references of what they concern, which are the same
/// where the contents are; and how often messages left.
fn decided(outcome: &Outcome) -> BTreeSet<(String, String)> {
    let decisions = outcome.decisions.iter();
    decisions
        .map(|decided| {
            let reference = decided.reference.clone().filter(|_| decided.to.is_none());
            (decided.kind.to_owned(), reference.unwrap_or_default())
        })
        .collect()
}

/// What was decided: kinds and the messages they concern.
type Kinds = BTreeSet<(String, String)>;

#[derive(Debug, PartialEq)]
struct Taken {
    /// By plan: what was decided, and what the view shows.
    plans: Vec<(Kinds, Vec<(String, bool)>)>,
    prompts: Vec<String>,
}

/// Walks through the session in one format; with `force` only the last plan compacts.
fn run(format: FormatName, options: &str, force: bool) -> Taken {
    let events = session();
    let mut host = Host::new(&format!("{{\"format\":\"{}\",{options}}}", format.as_str()));
    let mut all: Vec<String> = Vec::new();
    let mut plans = Vec::new();
    for event in &events {
        for half in written(format, event).iter().filter(|half| !half.is_empty()) {
            all.extend(half.iter().map(Value::to_string));
            if !force {
                let outcome = host.turn(&all);
                assert!(outcome.repairs.is_empty(), "{format:?}: {:?}", outcome.repairs);
                plans.push((decided(&outcome), shown(&host, &events)));
            }
        }
    }
    if force {
        host.ingest(&all);
        let outcome = host.plan(forced());
        assert!(outcome.compacted, "{format:?}");
        plans.push((decided(&outcome), shown(&host, &events)));
    }
    Taken { plans, prompts: host.prompts }
}

/// All formats take the decisions of OpenAI Chat, and some at all.
fn same(options: &str, force: bool, kind: &str) {
    let first = run(FormatName::OpenaiChat, options, force);
    let kinds = first.plans.iter().flat_map(|(decided, _)| decided).map(|(kind, _)| kind);
    assert!(kinds.clone().any(|other| other == kind), "no {kind}: {:?}", kinds.collect::<Vec<_>>());
    for format in FormatName::ALL {
        let other = run(format, options, force);
        for (at, (wanted, found)) in first.plans.iter().zip(&other.plans).enumerate() {
            assert_eq!(found, wanted, "{format:?}, plan {at}");
        }
        assert_eq!(other.plans.len(), first.plans.len(), "{format:?}");
        assert_eq!(other.prompts, first.prompts, "{format:?}");
    }
}

#[test]
fn each_stage_alone_takes_the_same_decisions() {
    let options = |stages: &str| {
        format!(
            "\"window\":1000000,\"reserve\":0,\"tail\":10000,\"store\":true,\"stages\":[{stages}]"
        )
    };
    same(&options("\"clear\""), true, "cleared");
    same(&options(r#"{"stage":"offload","minTokens":300}"#), true, "offloaded");
    same(&options("\"dedupe\""), true, "duplicate");
    same(&options(r#"{"stage":"drop","at":2}"#), true, "dropped");
    same(&format!("{},\"summarizer\":true", options("\"summarize\"")), true, "covered");
}

#[test]
fn a_pipeline_takes_the_same_decisions_turn_by_turn() {
    // The formats' framing differs by some tokens, so in a few windows one format crosses a
    // watermark a message earlier than another; these are not among them.
    let covered = [12_000, 15_000, 18_000, 24_500, 30_000].map(|window| (window, "covered"));
    let cleared = [36_000, 53_000, 63_000, 72_000, 80_000].map(|window| (window, "cleared"));
    let kinds = covered.into_iter().chain(cleared);
    for (window, kind) in kinds {
        let options = format!(
            "\"window\":{window},\"preset\":\"late\",\"reserve\":0,\"stages\":[\"clear\",\"summarize\"]"
        );
        same(&options, false, kind);
        // And with a summarizer of the host, which is asked the same.
        same(&format!("{options},\"summarizer\":true"), false, kind);
    }
}

#[test]
fn what_only_elide_can_make_fit_is_cut_in_every_format() {
    same("\"window\":9000,\"reserve\":0,\"stages\":[\"elide\"]", true, "elided");
}

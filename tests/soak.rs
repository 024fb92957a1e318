//! One session of 20,000 turns: what it keeps and what it does for a turn stay what they are.

mod common;

use common::host::{Host, Mood};
use common::openai_chat;
use serde_json::json;
use tidemark::Effect;

const TURNS: usize = 20_000;

/// A turn of an agent: a request now and then, a call, its result and an answer.
fn turn(at: usize, all: &mut Vec<String>) {
    if at.is_multiple_of(25) {
        let text = format!("Request {at}: look at part {at}. Never change module m{}.", at % 40);
        all.push(json!({"role": "user", "content": text}).to_string());
    }
    let (name, arguments) = match at % 3 {
        0 => ("read_file", json!({"path": format!("src/part{at}.rs")})),
        1 => ("bash", json!({"command": format!("cargo test part{at}")})),
        _ => ("edit_file", json!({"file_path": format!("src/part{at}.rs"), "new_string": "x"})),
    };
    let call = json!({"id": format!("call_{}", at % 7), "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()}});
    all.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string());
    let lines = if at.is_multiple_of(11) { 120 } else { 6 };
    let output = format!("part {at}: line of output with number {}\n", at * 31).repeat(lines);
    let id = format!("call_{}", at % 7);
    all.push(json!({"role": "tool", "tool_call_id": id, "content": output}).to_string());
    let text = format!("Part {at} is fixed because its cache of {at} entries was stale.");
    all.push(json!({"role": "assistant", "content": text}).to_string());
}

/// The most of each quarter of the session.
#[derive(Debug, Default)]
struct Quarter {
    checkpoint: usize,
    decisions: usize,
    view: usize,
    /// Items that a render hands over, between bursts.
    items: usize,
    /// Bytes of all effects, and bursts.
    effects: usize,
    bursts: usize,
}

fn soak(options: &str, mood: Mood) -> [Quarter; 4] {
    let mut host = Host::new(options);
    host.mood = mood;
    host.store_flaky = Some(5);
    let mut all = Vec::new();
    let mut quarters: [Quarter; 4] = Default::default();
    let mut stamp = (u32::MAX, 0, 0);
    for at in 0..TURNS {
        let quarter = &mut quarters[at * 4 / TURNS];
        turn(at, &mut all);
        let outcome = host.turn(&all);
        assert!(outcome.fits, "turn {at}");
        let render = host.engine.render(stamp.0, stamp.1, stamp.2);
        stamp = (render.epoch, render.unit, render.items_before);
        quarter.effects += host.prompts.drain(..).map(|prompt| prompt.len()).sum::<usize>();
        quarter.effects += std::mem::take(&mut host.store).values().map(String::len).sum::<usize>();
        quarter.effects += host.flushed.drain(..).map(|(.., text)| text.len()).sum::<usize>();
        if !outcome.compacted {
            quarter.items = quarter.items.max(render.items.len());
            continue;
        }
        quarter.bursts += 1;
        quarter.decisions = quarter.decisions.max(outcome.decisions.len());
        quarter.checkpoint = quarter.checkpoint.max(host.engine.checkpoint().len());
        quarter.view = quarter.view.max(host.engine.render_json().len());
    }
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
    assert!(host.bursts.iter().all(|burst| matches!(burst, Effect::Burst { .. })));
    // The words of the beginning are still found, and the first request still stands in the view
    // unless a summarizer lost it.
    assert!(mood != Mood::Good || host.engine.render_json().contains("Request 0:"));
    assert!(common::build::search(&host.engine, "src/part2.rs").contains("message 7"));
    let restored = Host::restore(options, &host.engine.checkpoint());
    assert_eq!(restored.engine.checkpoint(), host.engine.checkpoint());
    quarters
}

fn assert_flat(quarters: &[Quarter; 4]) {
    let figures = |quarter: &Quarter| {
        let Quarter { checkpoint, decisions, view, items, effects, bursts } = *quarter;
        [checkpoint, decisions, view, items, effects, bursts]
    };
    let names = ["checkpoint", "decisions", "view", "items", "effects", "bursts"];
    let [first, second, _, late] = quarters.each_ref().map(figures);
    // The largest of a quarter is a matter of chance: a quarter may be small, two are not.
    let early = first.into_iter().zip(second).map(|(first, second)| first.max(second));
    for ((name, early), late) in names.iter().zip(early).zip(late) {
        assert!(late <= early + early / 4 + 2, "{name} grew from {early} to {late}: {quarters:?}");
    }
}

#[test]
fn twenty_thousand_turns_with_the_local_summarizer_stay_flat() {
    assert_flat(&soak(r#"{"window":16000,"flush":true}"#, Mood::Good));
}

#[test]
fn twenty_thousand_turns_with_a_fickle_summarizer_and_store_stay_flat() {
    let options = r#"{"window":16000,"summarizer":true,"store":true,"beforeBurst":true}"#;
    let quarters = soak(options, Mood::Fickle(9));
    assert_flat(&quarters);
    assert!(quarters[3].checkpoint < 60_000, "{quarters:?}");
}

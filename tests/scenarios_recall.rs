//! Scenarios of recall and of its way around the store, by their ids in `SCENARIOS.md`.

mod common;

use common::build::*;
use common::host::Host;
use common::openai_chat;
use serde_json::{Value, json};
use tidemark::{Outcome, PlanRequest, RecallArgs, RecallStep, Ref};

const OFFLOAD: &str = r#"{"stage":"offload","keepLast":1,"minTokens":300,"previewTokens":80}"#;

fn offloading(store: bool) -> String {
    options(100_000, &format!("\"tail\":2,\"store\":{store},\"stages\":[{OFFLOAD}]"))
}

/// A text with a needle in its middle, which no preview shows.
fn big(tag: &str) -> String {
    format!("{tag}{} needle-{tag}{}", " word".repeat(600), " word".repeat(600))
}

/// Two large results of which the older is offloaded, and the messages.
fn offloaded(json: &str) -> (Host, Vec<String>, Outcome) {
    let mut all = vec![user("start")];
    all.extend(pair("c1", &big("one")));
    all.extend(pair("c2", &big("two")));
    all.extend([assistant("done"), user("next")]);
    let mut host = Host::new(json);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(decided(&outcome, "offloaded"), [2]);
    (host, all, outcome)
}

fn reference(outcome: &Outcome) -> &str {
    outcome.decisions[0].reference.as_deref().unwrap()
}

/// The same session after the host trimmed the stored output: only the store has the whole.
fn trimmed(store: bool) -> (Host, String) {
    let (mut host, mut all, outcome) = offloaded(&offloading(store));
    all[2] = result("c1", "[trimmed]");
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
    (host, reference(&outcome).to_owned())
}

fn is_unknown(text: &str) -> bool {
    text.starts_with("[nothing is known under ref")
}

#[test]
fn c01_c06_c07_the_transcript_answers_without_a_store() {
    for store in [false, true] {
        let (mut host, _, outcome) = offloaded(&offloading(store));
        host.store.clear();
        assert_eq!(recalled(&host.engine, reference(&outcome)), big("one"));
        // A call id is no reference; a pattern finds what it belongs to.
        assert!(is_unknown(&page(recall(&host.engine, "c1"))));
        let found = search(&host.engine, "needle-one");
        assert!(found.contains(&format!("ref {}", Ref::of(&big("one")))), "{found}");
    }
}

#[test]
fn c02_content_that_is_not_what_the_reference_names_is_refused() {
    let (host, reference) = trimmed(true);
    let args = by_ref(&reference);
    let answer = host.engine.recall_fetched(&args, Some("something else")).unwrap();
    assert!(is_unknown(&answer) && !answer.contains("something else"));
    let almost = big("one").replace("needle-one", "needle-0ne");
    assert!(is_unknown(&host.engine.recall_fetched(&args, Some(&almost)).unwrap()));
}

#[test]
fn c03_c05_what_the_transcript_lost_is_fetched_and_a_miss_is_an_answer() {
    let (host, reference) = trimmed(true);
    let RecallStep::Fetch { key } = recall(&host.engine, &reference) else {
        panic!("the transcript has it no more")
    };
    let stored = &host.store[&key];
    assert_eq!(stored, &big("one"));
    let args = RecallArgs { pattern: Some("NEEDLE".to_owned()), ..by_ref(&reference) };
    assert!(host.engine.recall_fetched(&args, Some(stored)).unwrap().contains("needle-one"));
    let args = by_ref(&reference);
    assert!(host.engine.recall_fetched(&args, Some(stored)).unwrap().contains("one word"));
    // Missing, or the store failed.
    assert!(is_unknown(&host.engine.recall_fetched(&args, None).unwrap()));
    let (host, reference) = trimmed(false);
    assert!(is_unknown(&page(recall(&host.engine, &reference))), "no store to ask");
}

#[test]
fn c04_an_unknown_reference_is_an_answer_and_no_argument_an_error() {
    let (host, ..) = offloaded(&offloading(false));
    for unknown in ["0123456789ab", "not hexadecimal", "c1"] {
        let answer = page(recall(&host.engine, unknown));
        assert!(is_unknown(&answer) && answer.contains(unknown), "{answer}");
    }
    let error = host.engine.recall(&RecallArgs::default()).unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_recall");
    let args = RecallArgs { offset: Some(-1.0), ..by_ref("0123456789ab") };
    assert_eq!(host.engine.recall(&args).unwrap_err().path(), "arguments.offset");
}

#[test]
fn c08_two_sessions_in_one_store_each_get_their_own_text() {
    let mut store = std::collections::BTreeMap::new();
    let mut sessions = Vec::new();
    for (secret, tag) in [("11", "mine"), ("22", "your")] {
        let secret = secret.repeat(16);
        let json = offloading(true).replacen('{', &format!("{{\"secret\":\"{secret}\","), 1);
        let mut all = pair("c", &big(tag)).to_vec();
        all.extend(pair("d", "small"));
        let mut host = Host::new(&json);
        host.ingest(&all);
        let outcome = host.plan(forced());
        store.extend(host.store.clone());
        all[1] = result("c", "[trimmed]");
        host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
        sessions.push((host, reference(&outcome).to_owned(), tag));
    }
    assert_eq!(store.len(), 2);
    let fetched = |host: &Host, reference: &str| {
        let RecallStep::Fetch { key } = recall(&host.engine, reference) else { panic!("fetch") };
        let content = store.get(&key).map(String::as_str);
        host.engine.recall_fetched(&by_ref(reference), content).unwrap()
    };
    for (host, reference, tag) in &sessions {
        assert!(fetched(host, reference).contains(&format!("{tag} word")));
    }
    // Another session's reference leads to another key: no guess reads across.
    assert!(is_unknown(&fetched(&sessions[0].0, &sessions[1].1)));
}

#[test]
fn i01_i03_the_older_result_is_a_preview_and_comes_back_whole() {
    for store in [false, true] {
        let (host, all, outcome) = offloaded(&offloading(store));
        assert_eq!(outcome.stages, ["offload"]);
        assert_eq!(host.store.len(), usize::from(store));
        let view = host.view();
        let preview = view[2]["content"].as_str().unwrap();
        assert!(preview.contains(reference(&outcome)) && !preview.contains("needle"));
        assert_eq!(verbatim(&host, &all), [0, 1, 3, 4, 5, 6]);
        assert_eq!(host.engine.len(), all.len());
        assert_eq!(recalled(&host.engine, reference(&outcome)), big("one"));
    }
}

#[test]
fn i02_the_model_recalls_through_the_offered_tool() {
    let json = offloading(false);
    assert_eq!(Host::new(&json).engine.recall_tool(), None, "nothing is out of the view yet");
    let (mut host, mut all, outcome) = offloaded(&json);
    let tool = host.engine.recall_tool().unwrap();
    let definition: Value = serde_json::from_str(&tool.definition).unwrap();
    assert_eq!(definition["function"]["name"], tool.name);
    let view = host.view();
    assert!(view[2]["content"].as_str().unwrap().contains(&format!("{}(ref=", tool.name)));

    let arguments = json!({"ref": reference(&outcome), "pattern": null}).to_string();
    let function = json!({"name": tool.name, "arguments": arguments});
    let call = json!({"id": "r", "type": "function", "function": function});
    let answer = page(host.engine.recall(&RecallArgs::from_json(&arguments).unwrap()).unwrap());
    assert!(answer.contains("needle-one"));
    all.pop();
    all.push(json!({"role": "assistant", "tool_calls": [call]}).to_string());
    all.push(result("r", &answer));
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
    host.plan(forced());
    assert_eq!(shown(&host).last(), all.last(), "the model has not seen it yet");
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
}

#[test]
fn c01_pages_are_bounded_by_the_option_and_by_the_room_left() {
    let all = [user("start"), calls(&["c"], "x"), result("c", &big("one"))];
    let json = options(100_000, r#""recall":{"pageTokens":200}"#);
    let mut host = Host::new(&json);
    host.ingest(&all);
    let whole = Ref::of(&big("one")).to_string();
    let first = page(recall(&host.engine, &whole));
    assert!(size(&[user(&first)]) <= 240, "{}", size(&[user(&first)]));
    assert!(first.contains("go on with offset"));
    assert_eq!(recalled(&host.engine, &whole), big("one"));
    let args = RecallArgs { limit: Some(1e9), ..by_ref(&whole) };
    assert_eq!(page(host.engine.recall(&args).unwrap()).len(), first.len());
    let args = RecallArgs { offset: Some(1e9), ..by_ref(&whole) };
    assert!(page(host.engine.recall(&args).unwrap()).contains("past the end"));

    // With little room left the page is small, whatever the option allows.
    let mut host = Host::new(&options(size(&all) + 600, "\"compactAt\":1.0"));
    assert!(!host.turn(&all).compacted);
    let room = 600;
    assert!(size(&[user(&page(recall(&host.engine, &whole)))]) <= room / 2 + 40);
}

#[test]
fn i01_whole_summarized_spans_and_user_text_come_back_too() {
    let all = chat(31, 100);
    let mut host = Host::new(&options(3_600, "\"summarizer\":true"));
    let outcome = host.turn(&all);
    let span = outcome.decisions.last().unwrap();
    let text = recalled(&host.engine, span.reference.as_deref().unwrap());
    for at in 0..span.to.unwrap() as usize {
        assert!(text.contains(&long(&format!("m{at}"), 100)), "message {at}");
    }
    // An earlier span's name still works after it was folded again.
    let first = outcome.decisions[0].reference.clone().unwrap();
    let mut all = all;
    all.extend((31..61).map(|at| said(at, 100)));
    assert!(host.turn(&all).stages.contains(&"summarize".into()));
    assert!(recalled(&host.engine, &first).contains("m0: word"));
    assert!(search(&host.engine, "M1:").contains("m1: word"), "upper and lower case alike");
    assert!(search(&host.engine, "no such text").starts_with("[no text"));
    assert!(!host.plan(PlanRequest::default()).compacted);
}

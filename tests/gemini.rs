//! Gemini: the validator, the invariants over random and real transcripts, and the faults of
//! other tools as they look in this format.

mod common;

use common::build::{forced, long, search};
use common::gemini::{keeps_signed, problems};
use common::gemini_random::transcript;
use common::host::{Host, Mood};
use common::walk::{Rules, setting, walk};
use common::{data, messages};
use proptest::prelude::*;
use serde_json::{Value, json};

const RULES: Rules = Rules { format: "gemini", problems, keeps_signed, input, odd };

fn input(content: &str) -> bool {
    !content.contains("\"role\":\"model\"") && !content.contains("functionResponse")
}

fn odd(content: &str) -> bool {
    ["\\ud83d", "\"text\":\"\"", "\"parts\":[]", "\"parts\":null"]
        .iter()
        .any(|sign| content.contains(sign))
}

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in setting()) {
        walk(&all, &setting, &RULES)?;
    }
}

/// The conversation as often as asked, so that small windows have something to leave out.
fn repeated(file: &str, times: usize) -> Vec<String> {
    let all = messages(&data(file));
    (0..times).flat_map(|_| all.clone()).collect()
}

fn replay(file: &str, all: &[String]) {
    for window in [1_000, 2_000, 4_000, 16_000] {
        let options = format!("{{\"format\":\"gemini\",\"window\":{window}}}");
        let mut host = Host::new(&options);
        for end in 1..=all.len() {
            host.turn(&all[..end]);
            let place = format!("{file} at {window}, {end} contents");
            assert_eq!(problems(&host.view()), Vec::<String>::new(), "{place}");
            let view = messages(&host.engine.render_json());
            assert!(keeps_signed(&all[..end], &view), "{place}: signed");
        }
        let mut restored = Host::restore(&options, &host.engine.checkpoint());
        restored.ingest(all);
        assert_eq!(restored.engine.render_json(), host.engine.render_json(), "{file}: restored");
        if window == 16_000 && all.len() < 12 && problems(&values(all)).is_empty() {
            assert_eq!(messages(&host.engine.render_json()), all, "{file}: nothing to do");
        }
    }
}

#[test]
fn real_conversations() {
    for file in ["calls", "server_tools", "stream", "thoughts", "unsigned"] {
        let file = format!("gemini/{file}.json");
        let one = messages(&data(&file));
        // The Gemini API took an empty text from this host; Vertex AI refuses it.
        let mut found = problems(&values(&one));
        found.retain(|problem| !problem.ends_with("must have a text parameter"));
        assert_eq!(found, Vec::<String>::new(), "{file}: as the API took it");
        replay(&file, &one);
        // A conversation that ends in calls leaves them unanswered when it starts again.
        replay(&file, &repeated(&file, 12));
    }
}

#[test]
fn every_recorded_conversation_beside_the_repository() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/gemini");
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        let Ok(json) = serde_json::from_str::<Value>(&text) else { continue };
        for interaction in json["interactions"].as_array().into_iter().flatten() {
            let request = match &interaction["request"] {
                Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
                other => other.clone(),
            };
            let contents: Vec<String> = request["contents"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Value::to_string)
                .collect();
            if !contents.is_empty() {
                replay(&file.path().display().to_string(), &contents);
            }
        }
    }
}

fn values(contents: &[String]) -> Vec<Value> {
    contents.iter().map(|content| serde_json::from_str(content).expect("JSON")).collect()
}

#[test]
fn the_validator_refuses_each_fault() {
    let user = json!({"role": "user", "parts": [{"text": "hi"}]});
    let call = |id: Option<&str>, name: &str| {
        let mut body = json!({"name": name, "args": {}});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        json!({"functionCall": body})
    };
    let model = |parts: &[Value]| json!({"role": "model", "parts": parts});
    let answer = |id: Option<&str>, name: &str| {
        let mut body = json!({"name": name, "response": {}});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        json!({"functionResponse": body})
    };
    let answers = |parts: &[Value]| json!({"role": "user", "parts": parts});
    let two = [call(Some("a"), "f"), call(None, "g")];
    let good = vec![
        user.clone(),
        model(&two),
        answers(&[answer(None, "g"), answer(Some("a"), "f"), json!({"text": "also"})]),
        model(&[json!({"text": "", "thoughtSignature": "c2ln"})]),
        json!({"parts": [{"inline_data": {"mime_type": "image/png", "data": "AA=="}}]}),
    ];
    assert_eq!(problems(&good), Vec::<String>::new());
    assert_eq!(problems(&good[..2]), Vec::<String>::new(), "the host is about to answer");
    let part = |part: Value| vec![json!({"role": "user", "parts": [part]})];
    let faults: Vec<(&str, Vec<Value>)> = vec![
        ("are required", vec![]),
        ("valid role", vec![json!({"role": "assistant", "parts": [{"text": "a"}]})]),
        ("unknown name", vec![json!({"role": "user", "parts": [{"text": "a"}], "content": "a"})]),
        ("must not be empty", vec![json!({"role": "user", "parts": []})]),
        ("must not be empty", vec![json!({"role": "user"})]),
        ("text parameter", part(json!({"text": ""}))),
        ("text parameter", part(json!({"text": 1}))),
        ("required oneof", part(json!({"thought": true}))),
        ("several data", part(json!({"text": "a", "inlineData": {"mimeType": "a", "data": "b"}}))),
        ("are required", part(json!({"fileData": {"fileUri": "u"}}))),
        ("only the model", part(call(None, "f"))),
        ("first turn", vec![model(&[json!({"text": "a"})])]),
        ("immediately after", part(answer(None, "f"))),
        (
            "number of",
            vec![user.clone(), model(&two), user.clone(), model(&[json!({"text": "a"})])],
        ),
        (
            "number of",
            vec![
                user.clone(),
                model(&two),
                answers(&[answer(Some("a"), "f")]),
                answers(&[answer(None, "g")]),
            ],
        ),
        (
            "without its function call",
            vec![user.clone(), model(&two), answers(&[answer(Some("b"), "f"), answer(None, "g")])],
        ),
        (
            "without its function call",
            vec![user.clone(), model(&two), answers(&[answer(Some("a"), "f"), answer(None, "h")])],
        ),
        (
            "an object is expected",
            vec![
                user.clone(),
                model(&two[..1]),
                answers(&[json!({"functionResponse": {"id": "a", "name": "f", "response": "x"}})]),
            ],
        ),
        (
            "inlineData or fileData",
            vec![
                user.clone(),
                model(&two[..1]),
                answers(&[json!({"functionResponse": {"id": "a", "name": "f", "response": {},
                    "parts": [{"text": "a"}]}})]),
            ],
        ),
        (
            "args: an object",
            vec![user, model(&[json!({"functionCall": {"name": "f", "args": "{}"}})])],
        ),
    ];
    for (wanted, contents) in faults {
        let found = problems(&contents);
        assert!(found.iter().any(|found| found.contains(wanted)), "{wanted}: {found:?}");
    }
    let part = r#"{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"a"}]}"#;
    let kept = |view: &str| keeps_signed(&[part.to_owned()], &[view.to_owned()]);
    assert!(kept(part) && kept(r#"{"role":"user","parts":[{"text":"a"}]}"#));
    assert!(!kept(&part.replace("\"a\"", "\"b\"")) && !kept(&part.replace("{\"name", "{ \"name")));
    assert!(!kept(r#"{"role":"model","parts":[{"functionCall":{"name":"f"}}]}"#), "unsigned call");
}

// Builders of contents.

fn user(text: &str) -> String {
    json!({"role": "user", "parts": [{"text": text}]}).to_string()
}

fn model(text: &str) -> String {
    json!({"role": "model", "parts": [{"text": text}]}).to_string()
}

/// Calls of `read`; an empty id is none. The first is signed.
fn calls(ids: &[&str]) -> String {
    let parts: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| {
            let mut part = json!({"functionCall": {"name": "read", "args": {"path": "a"}}});
            if !id.is_empty() {
                part["functionCall"]["id"] = json!(id);
            }
            if at == 0 {
                part["thoughtSignature"] = json!(format!("Sig{id}=="));
            }
            part
        })
        .collect();
    json!({"role": "model", "parts": parts}).to_string()
}

fn results(of: &[(&str, &str)]) -> String {
    let parts: Vec<Value> = of
        .iter()
        .map(|(id, text)| {
            let mut body = json!({"name": "read", "response": {"output": text}});
            if !id.is_empty() {
                body["id"] = json!(id);
            }
            json!({"functionResponse": body})
        })
        .collect();
    json!({"role": "user", "parts": parts}).to_string()
}

fn host(window: u32, more: &str) -> Host {
    Host::new(&format!("{{\"format\":\"gemini\",\"window\":{window},\"reserve\":0{more}}}"))
}

/// Walks through the turns and asks the validator at each; hands back the host at the end.
fn valid(all: &[String], window: u32, more: &str) -> Host {
    let mut host = host(window, more);
    for end in 1..=all.len() {
        host.turn(&all[..end]);
        assert_valid(&host, &all[..end]);
    }
    host
}

fn assert_valid(host: &Host, all: &[String]) {
    let view = host.engine.render_json();
    assert_eq!(problems(&host.view()), Vec::<String>::new(), "{view}");
    assert!(keeps_signed(all, &messages(&view)), "{view}");
}

fn turns(count: usize, words: usize) -> Vec<String> {
    let mut all = vec![user("start")];
    for at in 0..count {
        all.push(calls(&[&format!("c{at}")]));
        all.push(results(&[(&format!("c{at}"), &long(&format!("r{at}"), words))]));
    }
    all
}

#[test]
fn fault_1_a_dangling_call_is_closed_where_the_user_went_on() {
    for id in ["c1", ""] {
        let all = [user("a"), calls(&[id]), user("an error, retry"), model("yes")];
        let host = valid(&all, 10_000, "");
        assert!(host.engine.render_json().contains("[no result was recorded for this call]"));
    }
}

#[test]
fn fault_2_call_and_synthetic_result_leave_together() {
    let mut all = vec![user("a"), calls(&["c1"]), results(&[("c1", "aborted")])];
    all.extend((0..30).map(|at| if at % 2 == 0 { user(&long("u", 60)) } else { model("ok") }));
    let host = valid(&all, 1_000, ",\"stages\":[\"drop\"]");
    assert!(!host.engine.render_json().contains("aborted"));
}

#[test]
fn fault_4_a_result_after_a_second_compaction_finds_its_call() {
    let mut all = turns(12, 100);
    let mut host = host(2_000, ",\"summarizer\":true");
    host.turn(&all);
    for round in 0..3 {
        all.push(calls(&[&format!("d{round}")]));
        host.ingest(&all);
        host.plan(forced());
        assert_valid(&host, &all);
        all.push(results(&[(&format!("d{round}"), &long("late", 100))]));
        host.ingest(&all);
        host.plan(forced());
        assert_valid(&host, &all);
        assert!(host.engine.render_json().contains(&format!("Sigd{round}")));
    }
}

#[test]
fn fault_5_a_parallel_batch_is_never_split() {
    for ids in [["c1", "c2", "c3"], ["", "", ""]] {
        let mut all = vec![user("a")];
        for at in 0..8 {
            all.push(calls(&ids));
            let texts = [0, 1, 2].map(|part| long(&format!("r{at}{part}"), 40));
            all.push(results(&[0, 1, 2].map(|part| (ids[part], &*texts[part]))));
        }
        for window in [500, 700, 900, 1_200] {
            valid(&all, window, ",\"stages\":[\"drop\"]");
        }
    }
}

#[test]
fn fault_7_a_second_plan_does_nothing() {
    let all = turns(20, 100);
    let mut host = valid(&all, 2_000, "");
    let view = host.engine.render_json();
    assert!(!host.turn(&all).compacted);
    assert_eq!(host.engine.render_json(), view);
}

#[test]
fn fault_8_no_cut_stands_before_a_result_though_its_role_is_user() {
    for role in ["user", "function"] {
        let all: Vec<String> = turns(41, 60)
            .iter()
            .map(|content| match content.contains("functionResponse") {
                true => content.replace("\"role\":\"user\"", &format!("\"role\":\"{role}\"")),
                false => content.clone(),
            })
            .collect();
        for stages in ["\"drop\"", "\"summarize\"", "\"clear\",\"drop\""] {
            valid(&all, 900, &format!(",\"stages\":[{stages}]"));
        }
    }
}

#[test]
fn fault_10_orphans_are_left_out_and_reported() {
    let all = [user("a"), results(&[("c9", "orphan")]), model("b")];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    assert_valid(&host, &all);
    assert!(outcome.repairs.iter().any(|repair| repair.kind == "orphan_result"));
    assert!(search(&host.engine, "orphan").contains("orphan"));
}

#[test]
fn fault_11_unanswered_calls_are_never_compacted() {
    let mut all = turns(20, 60);
    let text = calls(&["last", "more"]);
    all.push(text.clone());
    let mut host = host(1_000, "");
    host.ingest(&all);
    host.plan(forced());
    assert_valid(&host, &all);
    assert!(host.engine.render_json().contains(&text));
}

#[test]
fn faults_13_14_a_long_loop_is_valid_at_every_window() {
    let all = turns(41, 30);
    for window in [400, 800, 1_600] {
        valid(&all, window, "");
    }
}

#[test]
fn fault_16_the_running_call_keeps_its_result() {
    let all = [user("a"), calls(&["c1"]), results(&[("c1", &long("big", 700))])];
    let host = valid(&all, 1_000, "");
    assert_eq!(messages(&host.engine.render_json()), all);
}

#[test]
fn fault_22_ids_that_repeat_turn_by_turn_pair_in_order() {
    let mut all = vec![user("a")];
    for at in 0..6 {
        all.push(calls(&["x"]));
        all.push(results(&[("x", &format!("result {at}"))]));
    }
    let host = valid(&all, 10_000, "");
    assert_eq!(messages(&host.engine.render_json()), all);
}

#[test]
fn fault_23_calls_of_one_id_or_none_pair_by_order_and_stay_signed() {
    for id in ["x", ""] {
        let all = [user("a"), calls(&[id, id]), results(&[(id, "one"), (id, "two")]), model("b")];
        let host = valid(&all, 10_000, "");
        assert_eq!(messages(&host.engine.render_json()), all);
    }
}

#[test]
fn calls_without_ids_match_by_name() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let response = |name: &str, id: Option<&str>| {
        let mut body = json!({"name": name, "response": {"output": name}});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        json!({"functionResponse": body})
    };
    for id in [None, Some("made-up")] {
        let parts = [response("list", id), response("read", id)];
        let all = [
            user("a"),
            json!({"role": "model", "parts": [call("read"), call("list"), call("list")]})
                .to_string(),
            json!({"role": "user", "parts": parts}).to_string(),
            user("and?"),
        ];
        let mut host = host(10_000, "");
        let outcome = host.turn(&all);
        assert_valid(&host, &all);
        let kinds: Vec<_> = outcome.repairs.iter().map(|repair| repair.kind).collect();
        assert_eq!(kinds, ["unanswered_call"], "the second call of list");
    }
}

#[test]
fn a_response_whose_call_has_no_id_has_none_beside_calls_that_have() {
    let call = |id: Option<&str>| json!({"functionCall": {"id": id, "name": "f", "args": {}}});
    let mut bare = call(None);
    bare["functionCall"].as_object_mut().unwrap().remove("id");
    let response = |id: Option<&str>, text: &str| {
        let mut body = json!({"name": "f", "response": {"output": text}});
        if let Some(id) = id {
            body["id"] = json!(id);
        }
        json!({"functionResponse": body})
    };
    let all = [
        user("a"),
        json!({"role": "model", "parts": [call(Some("c0")), bare]}).to_string(),
        json!({"role": "user", "parts": [response(Some("c4"), "one"), response(None, "two")]})
            .to_string(),
        user("and?"),
    ];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    assert_valid(&host, &all);
    let kinds: Vec<_> = outcome.repairs.iter().map(|repair| repair.kind).collect();
    assert_eq!(kinds, ["stray_id"]);
    assert_eq!(host.engine.problems()[0].kind, "stray_id");
    let view = host.view();
    assert_eq!(view[2]["parts"][0], response(None, "one"));
}

#[test]
fn fault_25_repeated_results_are_bounded() {
    let all = [
        user("a"),
        calls(&["c1"]),
        results(&[("c1", "one"), ("c1", "two"), ("c1", "three")]),
        results(&[("c1", "four")]),
        model("b"),
    ];
    let host = valid(&all, 10_000, "");
    let view = host.engine.render_json();
    assert_eq!(view.matches("functionResponse").count(), 1, "{view}");
}

#[test]
fn results_in_several_contents_come_together() {
    let all = [
        user("a"),
        calls(&["c1", "c2", "c3"]),
        results(&[("c1", "one")]),
        user("meanwhile"),
        results(&[("c3", "three")]),
        model("b"),
    ];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    assert_valid(&host, &all);
    let view = host.view();
    let texts: Vec<String> =
        view[2]["parts"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(
        texts[0].contains("one") && texts[1].contains("three") && texts[2].contains("no result")
    );
    assert!(view[3].to_string().contains("meanwhile"));
    assert!(outcome.repairs.iter().any(|repair| repair.kind == "misplaced_result"));
}

#[test]
fn faults_28_29_signed_parts_keep_their_bytes_and_their_order() {
    let mut all = vec![user("a")];
    for at in 0..12 {
        all.push(
            json!({"role": "model", "parts": [
                {"text": long(&format!("t{at}"), 30), "thought": true},
                {"text": long(&format!("a{at}"), 30), "thoughtSignature": format!("S{at}==")},
                {"text": long(&format!("b{at}"), 30)}]})
            .to_string(),
        );
        all.push(user(&long("more", 20)));
    }
    for stages in ["", ",\"stages\":[\"reasoning\",\"elide\"]", ",\"stages\":[\"drop\"]"] {
        valid(&all, 900, stages);
    }
}

#[test]
fn fault_32_a_content_of_old_thoughts_leaves_whole() {
    let thought = json!({"role": "model", "parts": [{"text": long("hm", 400), "thought": true}]});
    let all = [user("a"), thought.to_string(), user("b"), model(&long("c", 300)), user("d")];
    let mut host = host(1_000, ",\"stages\":[\"reasoning\"],\"tail\":10");
    host.turn(&all);
    host.plan(forced());
    assert_valid(&host, &all);
    assert!(!host.engine.render_json().contains("thought"));
}

#[test]
fn fault_34_thoughts_stay_where_they_are_between_bursts() {
    let all = messages(&data("gemini/thoughts.json"));
    let mut host = host(100_000, "");
    let mut last = String::from("[]");
    for end in 1..=all.len() {
        host.turn(&all[..end]);
        let view = host.engine.render_json();
        assert!(view.starts_with(&last[..last.len() - 1]));
        last = view;
    }
}

#[test]
fn fault_35_thoughts_and_signatures_of_the_running_turn_stay() {
    let mut all = vec![user("old"), model("ok"), user("go")];
    for at in 0..6 {
        let id = format!("c{at}");
        all.push(
            json!({"role": "model", "parts": [
                {"text": format!("thought{at}"), "thought": true},
                {"functionCall": {"id": id, "name": "read", "args": {}},
                 "thoughtSignature": format!("S{at}==")}]})
            .to_string(),
        );
        all.push(results(&[(&id, &long("r", 80))]));
    }
    let mut host = host(2_000, ",\"stages\":[\"reasoning\"]");
    host.ingest(&all);
    host.plan(forced());
    assert_valid(&host, &all);
    let view = host.engine.render_json();
    assert!(
        (0..6)
            .all(|at| view.contains(&format!("thought{at}")) && view.contains(&format!("S{at}==")))
    );
}

#[test]
fn faults_86_88_89_the_view_starts_with_the_user_and_the_summary_is_the_users() {
    let mut all = vec![model("Hello!")];
    all.extend(turns(10, 100));
    let mut host = host(1_500, ",\"summarizer\":true");
    for end in 1..=all.len() {
        host.turn(&all[..end]);
        assert_valid(&host, &all[..end]);
    }
    host.plan(forced());
    assert_valid(&host, &all);
    let first = host.view()[0].clone();
    assert_eq!(first["role"], "user");
    assert!(first["parts"][0]["text"].as_str().unwrap().contains("summar"), "{first}");
}

#[test]
fn faults_91_92_unanswered_input_stays_verbatim() {
    let mut all = turns(20, 60);
    all.extend([model("done"), user("first wish"), user("second wish")]);
    let host = valid(&all, 1_000, "");
    let view = messages(&host.engine.render_json());
    assert_eq!(view[view.len() - 2..], all[all.len() - 2..]);
}

#[test]
fn fault_97_the_summary_merges_into_the_users_content() {
    let mut all = Vec::new();
    for at in 0..20 {
        all.push(user(&long(&format!("u{at}"), 50)));
        all.push(model(&long(&format!("m{at}"), 50)));
    }
    all.push(user("now"));
    let host = valid(&all, 1_000, ",\"alternate\":true,\"stages\":[\"summarize\"]");
    let view = host.view();
    let roles: Vec<&str> = view.iter().map(|content| content["role"].as_str().unwrap()).collect();
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
}

#[test]
fn fault_100_what_nobody_knows_stays_byte_for_byte() {
    let odd = r#"{"role":"user","parts":[ {"hologram":{"a":null}} ,{"text":"b"}]}"#;
    let all = [user("a"), model("b"), odd.to_owned(), model("c")];
    let host = valid(&all, 10_000, "");
    assert_eq!(messages(&host.engine.render_json()), all);
}

#[test]
fn images_in_results_leave_without_their_result() {
    let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "read",
        "response": {"result": "a picture"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}}]});
    let mut all = vec![user("a")];
    for _ in 0..4 {
        all.push(calls(&[""]));
        all.push(result.to_string());
    }
    all.push(model("b"));
    let mut host = host(100_000, ",\"stages\":[{\"stage\":\"media\",\"keepLast\":1}],\"tail\":2");
    host.ingest(&all);
    host.plan(forced());
    assert_valid(&host, &all);
    let view = host.engine.render_json();
    assert_eq!((view.matches("AAAA").count(), view.matches("a picture").count()), (1, 4), "{view}");
}

#[test]
fn a_summarizer_of_any_mood_keeps_the_view_valid() {
    use Mood::{Blank, Echo, Good, NoSections, Throws, ToolCall, Verbose};
    let all = repeated("gemini/calls.json", 8);
    for mood in [Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections] {
        let mut host = host(3_000, ",\"summarizer\":true,\"store\":true");
        host.mood = mood;
        for end in 1..=all.len() {
            host.turn(&all[..end]);
            assert_valid(&host, &all[..end]);
        }
    }
}

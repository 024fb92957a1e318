//! Faults that users of other tools met, each as the AI SDK's messages would show it; the numbers
//! are those of `tests/FAULTS.md`. First, that the validator refuses what it has to.

mod common;

use common::ai_sdk::problems;
use common::build::{forced, long, recalled, shown};
use common::host::Host;
use serde_json::{Value, json};
use tidemark::{Outcome, PlanRequest};

fn user(text: &str) -> String {
    json!({"role": "user", "content": text}).to_string()
}

fn assistant(parts: &[Value]) -> String {
    json!({"role": "assistant", "content": parts}).to_string()
}

fn tool(parts: &[Value]) -> String {
    json!({"role": "tool", "content": parts}).to_string()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool-call", "toolCallId": id, "toolName": "read", "input": {"path": id}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool-result", "toolCallId": id, "toolName": "read",
        "output": {"type": "text", "value": text}})
}

fn thought(text: &str) -> Value {
    json!({"type": "reasoning", "text": text, "providerOptions": {"anthropic": {"signature": format!("signed {text}")}}})
}

/// `count` turns of a call with a result of so many words.
fn loops(count: usize, words: usize) -> Vec<String> {
    let mut out = Vec::new();
    for at in 0..count {
        let id = format!("c{at}");
        out.push(assistant(&[call(&id)]));
        out.push(tool(&[result(&id, &long(&format!("r{at}"), words))]));
    }
    out
}

fn host(window: u32, more: &str) -> Host {
    Host::new(&format!(r#"{{"format":"ai-sdk","window":{window},"reserve":0{more}}}"#))
}

/// Plans as far as possible over the messages, and checks the view.
fn forced_view(all: &[String], more: &str) -> (Host, Outcome) {
    let mut host = host(4_000, more);
    host.ingest(all);
    let outcome = host.plan(forced());
    valid(&host);
    (host, outcome)
}

fn valid(host: &Host) {
    let view = host.view();
    assert_eq!(problems(&view), Vec::<String>::new(), "{}", host.engine.render_json());
}

fn count(view: &[String], what: &str) -> usize {
    view.iter().map(|message| message.matches(what).count()).sum()
}

fn kinds(outcome: &Outcome) -> Vec<&'static str> {
    outcome.repairs.iter().map(|repair| repair.kind).collect()
}

#[test]
fn the_validator_refuses_each_fault() {
    let asked = json!({"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"});
    let answer = json!({"type": "tool-approval-response", "approvalId": "a1", "approved": true});
    let own = json!({"type": "tool-call", "toolCallId": "s", "toolName": "web", "input": {}, "providerExecuted": true});
    let good = [
        json!({"role": "system", "content": "s"}).to_string(),
        user("u"),
        assistant(&[thought("t"), text("x"), call("c1"), call("c2"), asked.clone()]),
        tool(&[answer.clone(), result("c2", "")]),
        tool(&[result("c1", "r")]),
        assistant(&[own.clone(), result("s", "found"), text("done")]),
        user("u"),
        assistant(&[call("c1")]),
    ];
    let check = |messages: &[String]| {
        let messages: Vec<Value> =
            messages.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
        problems(&messages).join("; ")
    };
    assert_eq!(check(&good), "");
    for (at, bad, expected) in [
        (0, json!({"role": "system", "content": ""}).to_string(), "content must not be empty"),
        (0, json!({"role": "system", "content": []}).to_string(), "content has a wrong type"),
        (1, assistant(&[text("x")]), "the first message must use the user role"),
        (1, user(""), "content must not be empty"),
        (1, json!({"role": "user", "content": []}).to_string(), "content must not be empty"),
        (1, json!({"role": "user", "content": [text("")]}).to_string(), "text must not be empty"),
        (1, json!({"role": "user", "content": [call("c1")]}).to_string(), "cannot stand here"),
        (1, json!({"role": "data", "content": "x"}).to_string(), "invalid role"),
        (2, assistant(&[thought("t")]), "nothing follows the reasoning"),
        (2, assistant(&[call("c1"), call("c1"), asked.clone()]), "ids must be unique"),
        (2, assistant(&[call("c1"), call("c2")]), "no approval was asked for"),
        (2, assistant(&[asked.clone(), text("x")]), "tool call not found for approval request"),
        (3, tool(&[answer.clone(), result("c3", "")]), "no call waits for"),
        (3, tool(&[]), "content must not be empty"),
        (4, user("hello?"), "tool results are missing"),
        (4, assistant(&[text("on")]), "tool results are missing"),
        (
            4,
            tool(&[
                json!({"type": "tool-result", "toolCallId": "c1", "toolName": "read", "output": {"type": "text"}}),
            ]),
            "wrong type or value",
        ),
        (
            4,
            tool(&[
                json!({"type": "tool-result", "toolCallId": "c1", "toolName": "read", "output": {"type": "content", "value": []}}),
            ]),
            "wrong type or value",
        ),
        (
            4,
            tool(&[json!({"type": "tool-result", "toolCallId": "c1", "toolName": "read"})]),
            "wrong type or value",
        ),
        (5, assistant(&[result("s", "found")]), "provider's tool without its call"),
        (
            7,
            assistant(&[json!({"type": "tool-call", "toolCallId": "c", "toolName": "read"})]),
            "without input",
        ),
        (
            7,
            assistant(&[
                json!({"type": "tool-call", "toolCallId": "", "toolName": "read", "input": {}}),
            ]),
            "without id or name",
        ),
        (
            7,
            assistant(&[
                json!({"type": "tool-call", "toolCallId": "c", "toolName": "read", "input": "[left_out]"}),
            ]),
            "no object",
        ),
    ] {
        let mut broken = good.to_vec();
        broken[at] = bad;
        let found = check(&broken);
        assert!(found.contains(expected), "{at}: expected {expected}, found {found}");
    }
    assert!(check(&[]).contains("must not be empty"));
}

// ---- A: calls and results ---------------------------------------------------------------

#[test]
fn fault_1_a_dangling_call_is_pending_or_closed() {
    let mut all = vec![user("start"), assistant(&[call("c1")])];
    let mut host = host(64_000, "");
    host.turn(&all);
    assert_eq!(shown(&host), all, "the host is about to answer");
    all.push(user("error, again"));
    let outcome = host.turn(&all);
    assert_eq!(kinds(&outcome), ["unanswered_call"]);
    valid(&host);
    assert_eq!(count(&shown(&host), "no result was recorded"), 1);
}

#[test]
fn fault_2_call_and_synthetic_result_leave_together() {
    let mut all = vec![
        user("start"),
        assistant(&[call("aborted")]),
        tool(&[result("aborted", "[aborted by the user]")]),
        user("again"),
    ];
    all.extend(loops(30, 100));
    let (host, outcome) = forced_view(&all, "");
    assert!(outcome.compacted);
    let view = shown(&host);
    assert_eq!(count(&view, r#""toolCallId":"aborted""#) % 2, 0);
}

#[test]
fn fault_4_a_result_after_a_second_compaction_finds_its_call() {
    let mut all = vec![user("start")];
    all.extend(loops(20, 100));
    let mut host = host(4_000, "");
    host.ingest(&all);
    host.plan(forced());
    all.push(assistant(&[call("late")]));
    host.ingest(&all);
    host.plan(forced());
    valid(&host);
    all.push(tool(&[result("late", "here")]));
    host.ingest(&all);
    host.plan(forced());
    valid(&host);
    assert!(shown(&host).contains(all.last().expect("a result")));
}

#[test]
fn fault_5_a_batch_is_whole_however_its_results_are_spread() {
    let spread = |ids: [&str; 3]| {
        vec![
            assistant(&ids.map(call)),
            tool(&[result(ids[0], &long(ids[0], 60))]),
            tool(&[result(ids[1], &long(ids[1], 60)), result(ids[2], &long(ids[2], 60))]),
        ]
    };
    let mut seen = Vec::new();
    for behind in 0..12 {
        let mut all = vec![user("start")];
        all.extend(loops(4, 40));
        all.extend(spread(["x1", "x2", "x3"]));
        all.extend(loops(behind, 80));
        let (host, _) = forced_view(&all, r#","stages":["summarize"]"#);
        let view = shown(&host);
        let held = count(&view, r#""toolCallId":"x"#);
        seen.push(held);
    }
    seen.dedup();
    assert_eq!(seen, [6, 0], "the batch stays, then leaves, whole");
}

#[test]
fn fault_7_a_second_plan_does_nothing() {
    let mut all = vec![user("start")];
    all.extend(loops(30, 100));
    let mut host = host(4_000, "");
    let first = host.turn(&all);
    assert!(first.compacted);
    let view = host.engine.render_json();
    assert!(!host.turn(&all).compacted);
    assert_eq!(host.engine.render_json(), view);
}

#[test]
fn faults_10_20_orphans_are_left_out_and_reported() {
    let beside = tool(&[result("c1", "good"), result("c9", "orphan")]);
    let all = [
        user("start"),
        tool(&[result("c9", "orphan")]),
        assistant(&[call("c1")]),
        beside,
        assistant(&[text("done")]),
        user("on"),
    ];
    let mut host = host(64_000, "");
    let outcome = host.turn(&all);
    assert_eq!(kinds(&outcome), ["orphan_result", "orphan_result"]);
    valid(&host);
    assert_eq!(count(&shown(&host), "orphan"), 0);
    assert_eq!(count(&shown(&host), "good"), 1);
    host.plan(forced());
    valid(&host);
}

#[test]
fn fault_11_unanswered_calls_are_never_compacted() {
    let mut all = vec![user("start")];
    all.extend(loops(30, 100));
    all.push(assistant(&[call("running"), call("too")]));
    all.push(tool(&[result("running", "done")]));
    let (host, outcome) = forced_view(&all, "");
    assert!(outcome.compacted);
    let view = shown(&host);
    assert_eq!(view[view.len() - 2..], all[all.len() - 2..]);
}

#[test]
fn faults_13_14_19_a_long_loop_is_valid_at_every_window() {
    let mut all = vec![json!({"role": "system", "content": "s"}).to_string(), user("start")];
    all.extend(loops(40, 60));
    for window in [1_000, 2_000, 3_000, 5_000, 8_000] {
        let mut host = host(window, "");
        for end in 2..=all.len() {
            host.turn(&all[..end]);
            valid(&host);
        }
    }
}

#[test]
fn fault_16_the_running_call_keeps_its_result() {
    let all = [user("start"), assistant(&[call("c1")]), tool(&[result("c1", &long("big", 5_000))])];
    let mut host = host(2_000, "");
    let outcome = host.turn(&all);
    valid(&host);
    assert!(outcome.fits, "{:?}", outcome.reason);
    let view = shown(&host);
    assert_eq!(view.len(), 3);
    assert!(view[2].contains("big:") && view[2].contains("left out"));
}

#[test]
fn fault_17_approvals_leave_with_their_call() {
    let asked = |id: &str| json!({"type": "tool-approval-request", "approvalId": format!("a-{id}"), "toolCallId": id});
    let answer = |id: &str, approved: bool| json!({"type": "tool-approval-response", "approvalId": format!("a-{id}"), "approved": approved});
    let denied = json!({"type": "tool-result", "toolCallId": "d1", "toolName": "read",
        "output": {"type": "execution-denied", "reason": "no"}});
    let mut seen = Vec::new();
    for behind in 0..12 {
        let mut all = vec![user("start")];
        all.extend(loops(2, 40));
        // Approved and run; denied; approved, and then the user went on.
        all.push(assistant(&[call("a1"), asked("a1")]));
        all.push(tool(&[answer("a1", true)]));
        all.push(tool(&[result("a1", &long("ran", 40))]));
        all.push(assistant(&[call("d1"), asked("d1")]));
        all.push(tool(&[answer("d1", false), denied.clone()]));
        all.push(assistant(&[call("w1"), asked("w1"), call("w2")]));
        all.push(tool(&[result("w2", "w")]));
        all.push(tool(&[answer("w1", true)]));
        all.push(user("never mind"));
        all.extend(loops(behind, 80));
        for stages in [r#","stages":["summarize"]"#, r#","stages":["clear","summarize"]"#, ""] {
            let (host, _) = forced_view(&all, stages);
            let view = shown(&host);
            for id in ["a1", "d1", "w1"] {
                // Request and response.
                let held = count(&view, &format!(r#""approvalId":"a-{id}""#));
                assert!(held == 0 || held == 2, "{id}: {held}");
                seen.push(held);
            }
        }
        // What was denied stays denied.
        let (host, _) = forced_view(&all, r#","stages":["clear","elide"]"#);
        assert_eq!(count(&shown(&host), "execution-denied"), 1);
    }
    assert!(seen.contains(&0) && seen.contains(&2));
}

fn asked(approval: &str, id: &str) -> Value {
    json!({"type": "tool-approval-request", "approvalId": approval, "toolCallId": id})
}

fn approved(approval: &str) -> Value {
    json!({"type": "tool-approval-response", "approvalId": approval, "approved": true})
}

#[test]
fn fault_17_a_request_for_approval_follows_its_call_to_a_new_id() {
    let all = [
        user("start"),
        assistant(&[call("x"), asked("a1", "x"), call("x"), asked("a2", "x")]),
        tool(&[approved("a1"), approved("a2")]),
        tool(&[result("x", "one"), result("x", "two")]),
        user("and?"),
    ];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    valid(&host);
    assert_eq!(kinds(&outcome), ["duplicate_id"]);
    let view = host.view();
    let parts = view[1]["content"].as_array().unwrap();
    let ids: Vec<_> = parts.iter().map(|part| part["toolCallId"].as_str().unwrap()).collect();
    assert_eq!((ids[0], ids[1]), ("x", "x"));
    assert_ne!(ids[2], "x");
    assert_eq!(ids[2], ids[3]);
    assert_eq!(view[3]["content"][1]["toolCallId"], ids[2]);
    // A request in a message of its own, all of them behind the calls.
    let all = [
        user("start"),
        assistant(&[call("x"), call("x")]),
        assistant(&[asked("a1", "x"), asked("a2", "x")]),
        tool(&[approved("a1"), approved("a2")]),
    ];
    let mut host = self::host(10_000, "");
    host.turn(&all);
    valid(&host);
    let view = host.view();
    let ids = |message: &Value| {
        let parts = message["content"].as_array().unwrap();
        parts.iter().map(|part| part["toolCallId"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&view[2]), ids(&view[1]));
    assert_ne!(view[2]["content"][1]["toolCallId"], "x");
}

#[test]
fn fault_17_approvals_without_their_other_half_are_left_out_and_told() {
    let all = [
        user("start"),
        assistant(&[text("well"), asked("a1", "lost")]),
        tool(&[approved("a1")]),
        assistant(&[call("c1"), asked("a2", "c1")]),
        tool(&[approved("a2"), approved("a9"), result("c1", "ok")]),
        user("and?"),
    ];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    valid(&host);
    assert_eq!(kinds(&outcome), ["orphan_approval"; 3]);
    let problems = host.engine.problems();
    let found: Vec<_> = problems.iter().map(|problem| (problem.kind, problem.index)).collect();
    assert_eq!(found, [1, 2, 4].map(|index| ("orphan_approval", index)));
    assert!(problems[0].says.contains("not found for approval request"), "{}", problems[0].says);
    let view = host.view();
    assert_eq!(view.len(), 5, "what held nothing else leaves: {view:?}");
    assert_eq!(view[1]["content"], json!([text("well")]));
    assert_eq!(shown(&host)[2], all[3]);
    assert_eq!(view[3]["content"], json!([approved("a2"), result("c1", "ok")]));
}

#[test]
fn fault_17_approvals_of_a_provider_s_own_call_and_late_ones_stay() {
    let own = json!({"type": "tool-call", "toolCallId": "mcp", "toolName": "web", "input": {}, "providerExecuted": true});
    let all = [
        user("start"),
        assistant(&[own, asked("a1", "mcp")]),
        tool(&[approved("a1")]),
        assistant(&[call("c1"), asked("a2", "c1")]),
        user("wait"),
        assistant(&[text("waiting")]),
        tool(&[approved("a2")]),
    ];
    let mut host = host(10_000, "");
    let outcome = host.turn(&all);
    assert!(!kinds(&outcome).contains(&"orphan_approval"), "{outcome:?}");
    assert_eq!(count(&shown(&host), "approvalId"), 4);
}

#[test]
fn a_provider_s_own_call_and_its_later_result_leave_together() {
    let own = json!({"type": "tool-call", "toolCallId": "srv", "toolName": "web", "input": {}, "providerExecuted": true});
    let mut seen = Vec::new();
    for behind in 0..12 {
        let mut all = vec![user("start")];
        all.extend(loops(4, 60));
        all.push(assistant(&[text("searching"), own.clone()]));
        all.push(assistant(&[result("srv", &long("found", 60)), text("found it")]));
        all.extend(loops(behind, 80));
        let (host, _) = forced_view(&all, r#","stages":["summarize"]"#);
        let held = count(&shown(&host), r#""toolCallId":"srv""#);
        seen.push(held);
    }
    seen.dedup();
    assert_eq!(seen, [2, 0], "both stay, then leave together");
}

// ---- B: ids -----------------------------------------------------------------------------

#[test]
fn fault_22_ids_that_repeat_turn_by_turn_pair_in_order() {
    let mut all = vec![user("start")];
    for at in 0..5 {
        all.push(assistant(&[call("x")]));
        all.push(tool(&[result("x", &format!("result {at}"))]));
    }
    let mut host = host(64_000, "");
    let outcome = host.turn(&all);
    assert_eq!(outcome.repairs.len(), 0);
    assert_eq!(shown(&host), all);
}

#[test]
fn fault_23_one_id_twice_in_a_batch_is_made_unique_in_call_and_result() {
    let all = [
        user("start"),
        assistant(&[call("x"), call("x"), call("x~2")]),
        tool(&[result("x", "first"), result("x", "second")]),
        tool(&[result("x~2", "third")]),
        user("on"),
    ];
    let mut host = host(64_000, "");
    let outcome = host.turn(&all);
    assert_eq!(kinds(&outcome), ["duplicate_id"]);
    valid(&host);
    let view = host.view();
    assert_eq!(view[1]["content"][1]["toolCallId"], "x~3");
    assert_eq!(view[2]["content"][1]["toolCallId"], "x~3");
    assert_eq!(view[2]["content"][1]["output"]["value"], "second");
}

#[test]
fn fault_25_repeated_results_are_bounded() {
    let repeated = tool(&[result("c1", "r")]);
    let all = [
        user("start"),
        assistant(&[call("c1")]),
        repeated.clone(),
        repeated.clone(),
        repeated,
        user("on"),
    ];
    let mut host = host(64_000, "");
    host.turn(&all);
    valid(&host);
    assert_eq!(count(&shown(&host), r#""type":"tool-result""#), 1);
}

#[test]
fn fault_26_the_summarizer_is_asked_with_plain_text() {
    let mut all = vec![user("start")];
    all.extend(loops(30, 100));
    let (host, _) = forced_view(&all, r#","summarizer":true"#);
    assert!(!host.prompts.is_empty());
    for prompt in &host.prompts {
        assert!(!prompt.contains("toolCallId") && !prompt.contains(r#""type":"tool"#));
        assert!(prompt.contains("read"));
    }
}

// ---- C: reasoning -----------------------------------------------------------------------

#[test]
fn faults_28_29_signed_reasoning_keeps_its_bytes_and_its_order() {
    let mut all = vec![user("start")];
    for at in 0..30 {
        let id = format!("c{at}");
        let said = text(&format!("then {at}"));
        all.push(assistant(&[thought(&format!("t{at}")), said, call(&id)]));
        all.push(tool(&[result(&id, &long(&id, 80))]));
        if at % 5 == 4 {
            all.push(user("on"));
        }
    }
    for more in
        ["", r#","stages":["clear"]"#, r#","stages":["summarize"]"#, r#","keepReasoning":true"#]
    {
        let (host, outcome) = forced_view(&all, more);
        assert!(outcome.compacted, "{more}: {outcome:?}");
        let thoughts: Vec<Value> = host
            .view()
            .iter()
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
            .filter(|part| part["type"] == "reasoning")
            .collect();
        let mut from = 0;
        for kept in thoughts {
            let place = (from..30).find(|at| kept == thought(&format!("t{at}")));
            from = place.expect("as it was, and in order") + 1;
        }
    }
}

#[test]
fn fault_31_reasoning_that_the_provider_holds_by_an_id_stays_with_what_follows_it() {
    let held = json!({"type": "reasoning", "text": "", "providerOptions":
        {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j"}}});
    let mut all = vec![user("start")];
    for at in 0..12 {
        let id = format!("c{at}");
        all.push(assistant(&[held.clone(), call(&id)]));
        all.push(tool(&[result(&id, &long(&id, 80))]));
        all.push(user("on"));
    }
    for more in ["", r#","stages":["reasoning","clear"]"#, r#","stages":["reasoning","summarize"]"#]
    {
        let (host, _) = forced_view(&all, more);
        let view = shown(&host);
        assert_eq!(count(&view, "rs_1"), count(&view, r#""type":"tool-call""#));
    }
}

#[test]
fn fault_32_a_message_of_nothing_but_reasoning_is_no_message() {
    let held = json!({"type": "reasoning", "text": "hm", "providerOptions": {"openai": {"itemId": "rs_1"}}});
    for alone in [thought("t"), json!({"type": "reasoning", "text": "t"}), held] {
        let all = [user("start"), assistant(&[alone]), user("on")];
        let mut host = host(64_000, "");
        host.turn(&all);
        valid(&host);
    }
}

#[test]
fn faults_34_35_reasoning_stays_in_place_between_bursts_and_in_the_running_turn() {
    let mut all = vec![user("start")];
    let mut host = host(4_000, "");
    let mut last = String::new();
    for at in 0..20 {
        let id = format!("c{at}");
        all.push(assistant(&[thought(&format!("t{at}")), call(&id)]));
        all.push(tool(&[result(&id, &long(&id, 80))]));
        let outcome = host.turn(&all);
        let view = host.engine.render_json();
        if !outcome.compacted && !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]));
        }
        // The newest step of the loop is still thinking.
        assert!(view.contains(&thought(&format!("t{at}")).to_string()));
        last = view;
    }
}

// ---- H: instructions, first message, pending input ----------------------------------------

#[test]
fn faults_86_88_89_the_view_starts_with_the_user_and_the_summary_is_the_users() {
    let mut all = vec![json!({"role": "system", "content": "s"}).to_string(), user("start")];
    all.extend(loops(40, 100));
    let (host, outcome) = forced_view(&all, "");
    assert!(outcome.compacted);
    let view = host.view();
    assert_eq!(view[0]["role"], "system");
    assert_eq!(view[1]["role"], "user");
    let head = view[1]["content"][0]["text"].as_str().expect("a list, as prompts have it");
    assert!(head.starts_with("<conversation_summary>"));
}

#[test]
fn fault_86_a_conversation_that_the_assistant_begins_starts_with_the_user() {
    let all = [assistant(&[text("How can I help?")]), user("So.")];
    let mut host = host(64_000, "");
    let outcome = host.turn(&all);
    assert_eq!(kinds(&outcome), ["assistant_first"]);
    valid(&host);
}

#[test]
fn faults_91_92_unanswered_input_stays_verbatim() {
    let mut all = vec![user("start")];
    all.extend(loops(40, 100));
    all.push(assistant(&[text("done")]));
    let parts = json!({"role": "user", "content": [text("second"),
        {"type": "image", "image": {"$bytes": 900}}]});
    all.extend([user("first"), parts.to_string()]);
    let (mut host, _) = forced_view(&all, "");
    let view = shown(&host);
    assert_eq!(view[view.len() - 2..], all[all.len() - 2..]);
    all.push(user("third"));
    host.ingest(&all);
    host.plan(PlanRequest::default());
    assert_eq!(shown(&host).last(), all.last());
}

// ---- I: roles, emptiness, grammar -----------------------------------------------------------

#[test]
fn faults_97_98_the_summary_merges_into_the_users_message() {
    let mut all = Vec::new();
    for at in 0..30 {
        all.push(
            json!({"role": "user", "content": [text(&long(&format!("u{at}"), 50))]}).to_string(),
        );
        all.extend(loops(1, 50));
        all.push(assistant(&[text(&format!("a{at}"))]));
    }
    all.push(user("and now?"));
    let (host, outcome) = forced_view(&all, r#","alternate":true"#);
    assert!(outcome.compacted);
    let view = host.view();
    let twice = view.windows(2).any(|two| two[0]["role"] == "user" && two[1]["role"] == "user");
    assert!(!twice, "{}", host.engine.render_json());
}

#[test]
fn fault_100_what_nobody_knows_stays_byte_for_byte() {
    let custom = r#"{ "type":"custom", "kind":"x.y", "providerOptions":{"x":{"a":null}} }"#;
    let compaction = r#"{"type":"text","text":"[sum]","providerOptions":{"anthropic":{"type":"compaction","signature":"s"}}}"#;
    let odd = format!(r#"{{"role":"assistant","content":[{compaction},{custom}],"more":[1, 2]}}"#);
    let mut all = vec![user("start")];
    all.extend(loops(4, 300));
    all.push(odd.clone());
    all.push(user("on"));
    let (host, _) = forced_view(&all, r#","stages":["clear","reasoning","media","elide"]"#);
    assert!(shown(&host).contains(&odd));
}

#[test]
fn fault_101_a_cache_marker_is_never_doubled() {
    let marker = json!({"anthropic": {"cacheControl": {"type": "ephemeral"}}});
    let mut all = vec![user("start")];
    for at in 0..20 {
        let ids = [format!("a{at}"), format!("b{at}"), format!("c{at}")];
        all.push(assistant(&ids.each_ref().map(|id| call(id))));
        let results = ids.each_ref().map(|id| result(id, &long(id, 70)));
        let mut message = json!({"role": "tool", "content": results});
        if at >= 16 {
            message["providerOptions"] = marker.clone();
        }
        all.push(message.to_string());
    }
    for more in ["", r#","stages":["clear"]"#, r#","stages":["offload","elide"]"#] {
        let (host, outcome) = forced_view(&all, more);
        assert!(outcome.compacted);
        assert!(count(&shown(&host), "cacheControl") <= 4);
    }
}

#[test]
fn a_cache_marker_that_moves_on_costs_no_decision() {
    let mut all = vec![user("start")];
    all.extend(loops(30, 100));
    let mut host = host(4_000, "");
    host.turn(&all);
    let covered = host.engine.checkpoint();
    let marked = all[2].replace(
        r#""role":"tool""#,
        r#""providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}},"role":"tool""#,
    );
    assert_ne!(marked, all[2]);
    all[2] = marked;
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).expect("good messages");
    assert_eq!(host.engine.checkpoint(), covered);
}

// ---- the shapes of the AI SDK ---------------------------------------------------------------

#[test]
fn every_type_of_output_is_replaced_by_one_that_the_schemas_take_and_comes_back() {
    let words = long("out", 400);
    for (output, kind) in [
        (json!({"type": "text", "value": words}), "text"),
        (json!({"type": "json", "value": {"lines": [words]}}), "text"),
        (json!({"type": "json", "value": [{"text": words}]}), "text"),
        (json!({"type": "json", "value": words}), "text"),
        (json!({"type": "error-text", "value": words}), "error-text"),
        (json!({"type": "error-json", "value": {"error": words}}), "error-text"),
        (json!({"type": "content", "value": [{"type": "text", "text": words}]}), "text"),
    ] {
        let mut all = vec![user("start"), assistant(&[call("c")])];
        let mut typed = result("c", "");
        typed["output"] = output;
        all.push(tool(&[typed]));
        all.extend(loops(4, 300));
        let (host, outcome) = forced_view(&all, r#","stages":["clear"]"#);
        let view = host.view();
        assert_eq!(view[2]["content"][0]["output"]["type"], kind);
        assert!(!host.engine.render_json().contains(&words));
        let reference = outcome.decisions[0].reference.as_ref().expect("a reference");
        assert!(recalled(&host.engine, reference).contains(&words));
    }
}

#[test]
fn large_input_is_cut_to_an_object_and_older_shapes_are_read() {
    let mut old = json!({"type": "tool-call", "toolCallId": "c", "toolName": "write", "args": {"body": long("in", 4_000)}});
    let answer = json!({"type": "tool-result", "toolCallId": "c", "toolName": "write", "result": {"ok": true}});
    for newer in [false, true] {
        if newer {
            let args = old.as_object_mut().and_then(|call| call.remove("args"));
            old["input"] = args.expect("it has some");
        }
        let all = [user("start"), assistant(&[old.clone()]), tool(std::slice::from_ref(&answer))];
        let mut host = host(2_000, "");
        let outcome = host.turn(&all);
        assert!(outcome.fits);
        valid(&host);
        let call = &host.view()[1]["content"][0];
        let input = if newer { &call["input"] } else { &call["args"] };
        assert!(input["left_out"].as_str().is_some_and(|text| text.contains("in:")));
    }
}

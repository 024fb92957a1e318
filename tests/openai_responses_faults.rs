//! Faults of other compaction tools, as OpenAI Responses would show them. `FAULTS.md` has the list;
//! each test bears its number.

mod common;

use common::build::{drain, failed, forced, long, recalled, search, text};
use common::host::{Host, good_summary};
use common::openai_responses::{kind, problems, unbound};
use serde_json::{Value, json};
use tidemark::{Effect, Outcome, PlanRequest, Reply, Step};

fn user(text: &str) -> String {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        .to_string()
}

fn said(id: &str, text: &str) -> String {
    json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
    .to_string()
}

fn reasoning(id: &str) -> String {
    json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [],
        "encrypted_content": "gAAAA".repeat(500)})
    .to_string()
}

fn call(id: &str) -> String {
    call_of(id, id)
}

/// A call whose item has the one id and whose output the other.
fn call_of(item: &str, id: &str) -> String {
    json!({"type": "function_call", "id": format!("fc_{item}"), "call_id": id, "name": "read",
        "arguments": json!({"path": item}).to_string()})
    .to_string()
}

fn output(id: &str, text: &str) -> String {
    json!({"type": "function_call_output", "call_id": id, "output": text}).to_string()
}

/// A session that has seen the items; every view of it is checked.
fn host(options: &str, items: &[String]) -> Host {
    let mut host = Host::new(&["{\"format\":\"openai-responses\"", options, "}"].concat());
    host.ingest(items);
    host
}

fn plan(host: &mut Host, items: &[String], request: PlanRequest) -> Outcome {
    let outcome = host.plan(request);
    check(host, items);
    outcome
}

fn check(host: &Host, items: &[String]) {
    let sent: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
    let view = host.view();
    let text = host.engine.render_json();
    assert_eq!(problems(&view), Vec::<String>::new(), "{text}");
    assert_eq!(unbound(&view, &sent), Vec::<String>::new(), "{text}");
}

fn repairs(outcome: &Outcome) -> Vec<&str> {
    outcome.repairs.iter().map(|repair| repair.kind).collect()
}

/// Steps of an agent after one user message, each with reasoning, a call and an output.
fn steps(count: usize, words: usize) -> Vec<String> {
    let mut out = vec![user("go")];
    for at in 0..count {
        let id = at.to_string();
        out.extend([reasoning(&id), call(&id), output(&id, &long(&id, words))]);
    }
    out
}

/// The places in the view of the transcript's items that stand there as they are.
fn places(host: &Host, items: &[String]) -> Vec<usize> {
    let view = common::messages(&host.engine.render_json());
    (0..items.len()).filter(|at| view.contains(&items[*at])).collect()
}

const SUMMARY: &str = r#","window":4000,"reserve":0,"stages":["summarize"],"summarizer":true"#;
const DROP: &str = r#","window":4000,"reserve":0,"stages":["drop"]"#;

#[test]
fn fault_1_a_call_without_output_is_closed_or_pending() {
    let mut items = vec![user("hi"), reasoning("1"), call("1")];
    let mut host = host(r#","window":100000"#, &items);
    assert!(repairs(&plan(&mut host, &items, PlanRequest::default())).is_empty(), "it waits");
    items.push(user("error, again please"));
    host.ingest(&items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["unanswered_call"]);
    assert_eq!(kind(&host.view()[3]), "function_call_output");
    assert_eq!(host.view()[4]["role"], "user");
}

#[test]
fn fault_1_calls_of_other_types_are_closed_in_their_own_way() {
    let typed = |kind: &str, more: Value| {
        let mut item = json!({"type": kind, "id": format!("x_{kind}"), "call_id": kind});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item.to_string()
    };
    let items = [
        user("hi"),
        typed("custom_tool_call", json!({"name": "patch", "input": "x"})),
        typed("shell_call", json!({"action": {"commands": ["ls"]}})),
        typed("local_shell_call", json!({"action": {"command": ["ls"]}})),
        typed("apply_patch_call", json!({"operation": {"type": "delete_file", "path": "a"}})),
        typed("computer_call", json!({"action": {"type": "screenshot"}})),
        typed("tool_search_call", json!({"execution": "client", "arguments": {}})),
        user("stop"),
    ];
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["unanswered_call"; 6]);
    let outputs = host.view().iter().filter(|item| kind(item).ends_with("_output")).count();
    assert_eq!(outputs, 6);
}

#[test]
fn fault_2_a_call_and_the_output_that_stands_in_leave_together() {
    let mut items = vec![user("hi"), reasoning("1"), call("1"), user(&long("again", 900))];
    items.extend(steps(6, 500));
    let mut host = host(SUMMARY, &items);
    assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
    let view = host.engine.render_json();
    assert!(!view.contains("fc_1\"") && !view.contains("no result was recorded"), "{view}");
}

#[test]
fn fault_4_pairs_stay_whole_over_many_compactions() {
    let items = steps(60, 300);
    let mut host = host(SUMMARY, &[]);
    let mut bursts = 0;
    for end in 1..=items.len() {
        host.ingest(&items[..end]);
        bursts += u32::from(plan(&mut host, &items[..end], PlanRequest::default()).compacted);
    }
    assert!(bursts > 3, "{bursts}");
}

#[test]
fn fault_5_a_batch_of_parallel_calls_leaves_whole() {
    let mut items = vec![user("hi")];
    for at in 0..8 {
        let ids: Vec<String> = (0..3).map(|call| format!("{at}_{call}")).collect();
        items.push(reasoning(&at.to_string()));
        items.extend(ids.iter().map(|id| call(id)));
        items.extend(ids.iter().rev().map(|id| output(id, &long(id, 200))));
    }
    for window in (1_500..6_000).step_by(250) {
        let options = format!(r#","window":{window},"reserve":0,"stages":["drop"]"#);
        let mut host = host(&options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let shown = places(&host, &items);
        assert_eq!((items.len() - shown[0]) % 7, 0, "{window}: {shown:?}");
    }
}

#[test]
fn fault_7_a_second_plan_has_nothing_to_do() {
    let items = steps(20, 300);
    for options in [SUMMARY, DROP, r#","window":4000,"stages":["reasoning","clear","elide"]"#] {
        let mut host = host(options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let view = host.engine.render_json();
        assert!(!plan(&mut host, &items, PlanRequest::default()).compacted);
        assert_eq!(host.engine.render_json(), view);
    }
}

#[test]
fn fault_8_no_cut_lands_between_a_call_and_its_output() {
    // Outputs anywhere after their calls, messages in between.
    let mut items = vec![user("hi")];
    for at in 0..12 {
        let id = at.to_string();
        items.extend([reasoning(&id), call(&id), said(&format!("{id}a"), &long("note", 60))]);
        items.extend([output(&id, &long(&id, 150)), said(&format!("{id}b"), "done")]);
    }
    for window in (1_000..4_000).step_by(100) {
        let options = format!(r#","window":{window},"reserve":0,"stages":["drop"]"#);
        let mut host = host(&options, &items);
        plan(&mut host, &items, PlanRequest::default());
    }
}

#[test]
fn fault_10_an_output_without_a_call_is_left_out_and_told() {
    let items = [user("hi"), output("c9", "lost"), said("1", "ok")];
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["orphan_result"]);
    assert_eq!(host.view().len(), 2);
    assert!(search(&host.engine, "lost").contains("lost"));
}

#[test]
fn fault_11_a_call_in_flight_is_never_summarized() {
    let mut items = steps(12, 300);
    items.extend([reasoning("last"), call("last")]);
    let mut host = host(SUMMARY, &items);
    assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
    let view = common::messages(&host.engine.render_json());
    assert_eq!(view[view.len() - 2..], items[items.len() - 2..]);
}

#[test]
fn fault_14_a_long_loop_of_one_turn_is_valid_at_every_length() {
    let items = steps(41, 60);
    let mut host = host(DROP, &[]);
    for end in 1..=items.len() {
        host.ingest(&items[..end]);
        plan(&mut host, &items[..end], PlanRequest::default());
    }
}

#[test]
fn fault_16_fresh_outputs_stay_with_their_call() {
    let mut items = steps(10, 100);
    items.extend([reasoning("big"), call("big"), output("big", &long("big", 2_000))]);
    let mut host = host(r#","window":4000,"reserve":0"#, &items);
    assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
    let view = common::messages(&host.engine.render_json());
    assert_eq!(view[view.len() - 3..], items[items.len() - 3..]);
}

#[test]
fn fault_17_an_approval_stands_and_falls_with_its_request() {
    let request = |id: &str| {
        json!({"type": "mcp_approval_request", "id": id, "server_label": "s", "name": "t",
            "arguments": "{}"})
        .to_string()
    };
    let response = |id: &str| {
        json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": true})
            .to_string()
    };
    let mut items = vec![user("hi")];
    for at in 0..8 {
        let id = format!("mcpr_{at}");
        items.extend([request(&id), response(&id), said(&at.to_string(), &long("ran", 200))]);
    }
    for window in (1_000..3_000).step_by(100) {
        let options = format!(r#","window":{window},"reserve":0,"stages":["drop"]"#);
        let mut host = host(&options, &items);
        plan(&mut host, &items, PlanRequest::default());
        let view = host.view();
        let count = |name| view.iter().filter(|item| kind(item) == name).count();
        assert_eq!(count("mcp_approval_request"), count("mcp_approval_response"), "{window}");
    }
    // A request that was never answered needs no answer.
    let items = [user("hi"), request("mcpr_1"), user("rather not")];
    let mut host = host(r#","window":100000"#, &items);
    assert!(repairs(&plan(&mut host, &items, PlanRequest::default())).is_empty());
}

#[test]
fn fault_19_what_leaves_is_what_is_oldest() {
    let items = steps(20, 300);
    let mut host = host(DROP, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    let upto = outcome.decisions[0].to.unwrap() as usize;
    let kept: Vec<usize> = (upto..items.len()).collect();
    assert_eq!(places(&host, &items), kept);
    assert!(upto > 1);
}

#[test]
fn fault_20_a_stage_that_could_break_a_pair_still_works() {
    let items = steps(20, 300);
    let stages = r#","window":4000,"reserve":0,"stages":["reasoning"]"#;
    let mut later = items.clone();
    later.push(user("and now?"));
    let mut host = host(stages, &later);
    let outcome = plan(&mut host, &later, PlanRequest::default());
    assert!(outcome.compacted && outcome.decisions.iter().all(|d| d.kind == "removed"));
}

#[test]
fn fault_22_an_id_that_every_turn_uses_again_keeps_all_outputs() {
    let mut items = Vec::new();
    for at in 0..10 {
        let item = at.to_string();
        items.extend([user(&item), call_of(&item, "x"), output("x", &format!("result {at}"))]);
        items.push(said(&item, "ok"));
    }
    let mut host = host(r#","window":100000"#, &items);
    plan(&mut host, &items, PlanRequest::default());
    let text = host.engine.render_json();
    for at in 0..10 {
        let call = text.find(&format!("fc_{at}\"")).unwrap();
        let result = text.find(&format!("result {at}\"")).unwrap();
        assert!(
            call < result && !text[call..result].contains("function_call_output\",\"output\":\"r")
        );
    }
}

#[test]
fn fault_23_calls_of_one_batch_that_share_an_id_get_their_own() {
    let items =
        [user("hi"), call_of("a", "x"), call_of("b", "x"), output("x", "one"), output("x", "two")];
    let mut first = host(r#","window":100000"#, &items);
    let outcome = plan(&mut first, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["duplicate_id"]);
    let view = first.view();
    assert_eq!((&view[1]["call_id"], &view[3]["output"]), (&json!("x"), &json!("one")));
    assert_eq!(view[2]["call_id"], view[4]["call_id"]);
    assert_ne!(view[2]["call_id"], "x");
    // The same id again is the same in another session: caches stay warm.
    let again = host(r#","window":100000"#, &items);
    assert_eq!(again.engine.render_json(), first.engine.render_json());
}

#[test]
fn items_that_stand_twice_lose_their_id_or_leave() {
    let response = [reasoning("1"), said("1", "so"), call("1")];
    let search =
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}).to_string();
    let with_id = |text: &str| {
        let mut item: Value = serde_json::from_str(&user(text)).unwrap();
        item["id"] = json!("msg_user");
        item.to_string()
    };
    let items = [
        vec![with_id("hi"), search.clone()],
        response.to_vec(),
        vec![output("1", "one"), with_id("again"), search.clone()],
        response.to_vec(),
        vec![output("1", "two"), user("and?")],
    ]
    .concat();
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    let found: Vec<_> = outcome.repairs.iter().map(|r| (r.kind, r.index)).collect();
    let twins = found.iter().filter(|(kind, _)| *kind == "duplicate_item");
    assert_eq!(twins.map(|(_, index)| *index).collect::<Vec<_>>(), [6, 7, 8, 9, 10], "{found:?}");
    let view = host.view();
    let kinds: Vec<&str> = view.iter().map(kind).collect();
    let first = ["message", "web_search_call", "reasoning", "message", "function_call"];
    let again = ["message", "message", "function_call", "function_call_output", "message"];
    assert_eq!(kinds, [&first[..], &["function_call_output"], &again].concat());
    // What is said and called twice stays, without the id.
    assert!(view[6..].iter().all(|item| item["id"].is_null()), "{view:?}");
    assert_eq!(view[9]["output"], "two");
    assert_eq!(view[8]["call_id"], view[9]["call_id"]);
    assert_ne!(view[8]["call_id"], view[4]["call_id"]);
    let problems = host.engine.problems();
    let told = problems.iter().find(|problem| problem.kind == "duplicate_item").unwrap();
    assert_eq!((told.index, told.id.as_deref()), (6, Some("msg_user")));
    assert!(told.says.contains("Duplicate item found"));
}

#[test]
fn a_call_that_cannot_do_without_its_id_leaves_with_its_output() {
    let call =
        json!({"type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed",
        "action": {"type": "screenshot"}, "pending_safety_checks": []})
        .to_string();
    let shot = json!({"type": "computer_call_output", "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}})
    .to_string();
    let items = [user("hi"), call.clone(), shot.clone(), call, shot, user("and?")];
    let mut first = host(r#","window":100000"#, &items);
    plan(&mut first, &items, PlanRequest::default());
    assert_eq!(first.view().len(), 4);
    // Without an answer none is made up for it.
    let items = [&items[..4], &items[5..]].concat();
    let mut second = host(r#","window":100000"#, &items);
    plan(&mut second, &items, PlanRequest::default());
    assert_eq!(second.view().len(), 4);
}

#[test]
fn fault_25_of_repeated_outputs_the_first_stays() {
    let items = [user("hi"), call("1"), output("1", "a"), output("1", "b"), output("1", "c")];
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["orphan_result"; 2]);
    assert_eq!(host.view().len(), 3);
}

#[test]
fn fault_26_the_summarizer_gets_text_alone() {
    let items = steps(20, 300);
    let mut host = host(SUMMARY, &items);
    plan(&mut host, &items, PlanRequest::default());
    let prompt = &host.prompts[0];
    assert!(prompt.contains("[read result]") && !prompt.contains("gAAAA"), "{prompt}");
    assert!(!prompt.contains("\"type\""), "{prompt}");
}

#[test]
fn fault_28_reasoning_is_byte_identical_or_absent() {
    let odd = reasoning("odd").replace("\"summary\":[]", "\"summary\" : [ ] , \"status\":null");
    let mut items = steps(12, 200);
    items.extend([odd, call("odd"), output("odd", "ok"), user("more")]);
    for stages in ["", r#","stages":["reasoning"]"#, r#","stages":["elide"]"#] {
        let mut host = host(&[r#","window":3000,"reserve":0"#, stages].concat(), &items);
        plan(&mut host, &items, PlanRequest::default());
        for item in common::messages(&host.engine.render_json()) {
            let changed = item.contains("\"encrypted_content\"") && !items.contains(&item);
            assert!(!changed, "{stages}: {item}");
        }
    }
}

#[test]
fn fault_29_kept_reasoning_stands_in_its_old_order_behind_the_summary() {
    let items = steps(20, 300);
    let mut host = host(SUMMARY, &items);
    plan(&mut host, &items, PlanRequest::default());
    let ids: Vec<u32> = host
        .view()
        .iter()
        .filter(|item| kind(item) == "reasoning")
        .map(|item| item["id"].as_str().unwrap()[3..].parse().unwrap())
        .collect();
    assert!(!ids.is_empty() && ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    assert_eq!(host.view()[0]["role"], "user");
}

#[test]
fn fault_31_without_its_reasoning_a_call_goes_without_its_id() {
    let items = [
        user("hi"),
        reasoning("1"),
        said("1", "let me look"),
        call("1"),
        output("1", "found"),
        call("2"),
        output("2", &long("found", 1_500)),
        said("3", "done"),
        user("thanks"),
    ];
    let options = r#","window":2000,"reserve":0,"stages":["reasoning"]"#;
    let mut host = host(options, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(outcome.decisions.len(), 1, "{outcome:?}");
    let view = host.view();
    assert!(view.iter().all(|item| kind(item) != "reasoning" && item["id"].is_null()));
    // Nothing else of them has changed.
    let mut call: Value = serde_json::from_str(&items[3]).unwrap();
    call.as_object_mut().unwrap().remove("id");
    assert_eq!(view[2], call);
}

#[test]
fn fault_31_reasoning_that_a_hosted_tool_needs_stays() {
    let hosted = |id: &str| {
        json!({"type": "web_search_call", "id": format!("ws_{id}"), "status": "completed",
            "action": {"type": "search", "query": "x"}})
        .to_string()
    };
    let mut items = vec![user("hi")];
    for at in 0..6 {
        let id = at.to_string();
        items.extend([reasoning(&id), hosted(&id), reasoning(&format!("{id}b"))]);
        items.push(said(&id, &long("found", 150)));
    }
    items.push(user("thanks"));
    let options = r#","window":3000,"reserve":0,"stages":["reasoning"]"#;
    let mut host = host(options, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert!(outcome.compacted);
    for decided in &outcome.decisions {
        assert!(items[decided.index as usize].contains("b\""), "{decided:?}");
    }
}

#[test]
fn fault_31_a_cut_behind_reasoning_takes_the_ids_that_need_it() {
    let mut items = vec![user("hi"), reasoning("1")];
    for at in 0..30 {
        // Hosts may move outputs between the calls of one response.
        items.extend([call(&at.to_string()), output(&at.to_string(), &long("r", 120))]);
    }
    let mut host = host(r#","window":3000,"reserve":0,"stages":["drop"]"#, &items);
    assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
    let view = host.view();
    let calls: Vec<_> = view.iter().filter(|item| kind(item) == "function_call").collect();
    assert!(!calls.is_empty() && calls.iter().all(|call| call["id"].is_null()));
}

#[test]
fn fault_32_reasoning_that_nothing_follows_is_left_out() {
    let mut items = vec![user("hi"), reasoning("1")];
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!(repairs(&outcome), ["stranded_reasoning"]);
    // An aborted response stays out; one that goes on comes back.
    let before = host.engine.render_json();
    let mut aborted = items.clone();
    aborted.push(user("again"));
    items.push(call("1"));
    host.ingest(&items);
    plan(&mut host, &items, PlanRequest::default());
    assert!(host.engine.render_json().starts_with(&before[..before.len() - 1]));
    assert_eq!(host.view().len(), 3);
    host.engine.ingest(0, &format!("[{}]", aborted.join(",")), &[]).unwrap();
    check(&host, &aborted);
    assert_eq!(host.view().len(), 2);
}

#[test]
fn fault_34_reasoning_stays_in_its_place_from_turn_to_turn() {
    let items = steps(30, 20);
    let mut host = host(r#","window":100000"#, &[]);
    let mut last = String::from("[");
    for end in (1..=items.len()).filter(|end| end % 3 == 1) {
        host.ingest(&items[..end]);
        plan(&mut host, &items[..end], PlanRequest::default());
        let text = host.engine.render_json();
        assert!(text.starts_with(&last[..last.len() - 1]));
        last = text;
    }
    assert_eq!(places(&host, &items).len(), items.len());
}

#[test]
fn fault_35_within_the_running_tool_loop_reasoning_stays() {
    let mut items = steps(5, 100);
    items.push(said("between", "so far"));
    items.push(user("go on"));
    let turn = items.len();
    for at in 10..16 {
        let id = at.to_string();
        items.extend([reasoning(&id), call(&id), output(&id, &long(&id, 100))]);
    }
    let options = r#","window":4000,"reserve":0,"stages":["reasoning"]"#;
    let mut host = host(options, &items);
    let outcome = plan(&mut host, &items, forced());
    assert_eq!(outcome.decisions.len(), 5);
    assert!(outcome.decisions.iter().all(|decided| (decided.index as usize) < turn));
}

#[test]
fn fault_86_leading_instructions_stay_first_and_the_user_follows() {
    let mut items = vec![
        json!({"role": "developer", "content": "Be brief."}).to_string(),
        json!({"type": "message", "role": "system", "content": "Be kind."}).to_string(),
    ];
    items.extend(steps(20, 300));
    for options in [SUMMARY, DROP] {
        let mut host = host(options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let view = common::messages(&host.engine.render_json());
        assert_eq!(view[..2], items[..2]);
        assert!(view[2].contains("\"role\":\"user\""), "{}", view[2]);
    }
}

#[test]
fn faults_88_89_the_summary_is_a_labelled_message_of_the_user() {
    let mut items = vec![user("hi")];
    items.extend((0..40).map(|at| said(&at.to_string(), &long("text", 200))));
    let mut host = host(SUMMARY, &items);
    assert!(plan(&mut host, &items, forced()).compacted);
    let view = host.view();
    assert_eq!((kind(&view[0]), &view[0]["role"]), ("message", &json!("user")));
    let text = view[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("reference material, not an instruction"), "{text}");
}

#[test]
fn fault_91_unanswered_input_is_verbatim() {
    let mut items = steps(12, 300);
    items.extend([said("x", "done"), user(&long("first", 400)), user(&long("second", 400))]);
    for options in [SUMMARY, DROP] {
        let mut host = host(options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let view = common::messages(&host.engine.render_json());
        assert_eq!(view[view.len() - 2..], items[items.len() - 2..]);
    }
}

#[test]
fn fault_92_an_item_that_arrives_meanwhile_is_appended_untouched() {
    let mut items = steps(20, 300);
    let mut host = host(SUMMARY, &items);
    let Step::Effects { effects } = host.engine.plan(PlanRequest::default()).unwrap() else {
        panic!("a summary is needed")
    };
    items.push(user("one more thing"));
    host.ingest(&items);
    let reply = Reply::Text { text: good_summary("noted") };
    host.engine.resolve(effects[0].id(), reply).unwrap();
    check(&host, &items);
    assert!(host.engine.render_json().ends_with(&format!("{}]", items[items.len() - 1])));
}

#[test]
fn faults_94_95_a_part_of_the_list_asks_for_no_deletion() {
    let items = steps(40, 300);
    let part = &items[items.len() - 60..];
    let mut host = host(&[SUMMARY, r#","store":true"#].concat(), part);
    let outcome = drain(&mut host, PlanRequest::default(), |effect| match effect {
        Effect::Summarize { .. } => text(good_summary("noted")),
        _ => Reply::Done,
    });
    assert!(outcome.compacted);
    check(&host, part);
}

#[test]
fn faults_97_98_the_summary_merges_into_the_users_message() {
    let mut items = Vec::new();
    for at in 0..30 {
        items.extend([user(&long("ask", 100)), said(&at.to_string(), &long("answer", 100))]);
    }
    let mut host = host(&[SUMMARY, r#","alternate":true"#].concat(), &items);
    assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
    let view = host.view();
    let roles: Vec<_> = view.iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
    assert!(view[0].to_string().contains("conversation_summary"));
}

#[test]
fn fault_100_a_compaction_without_content_is_left_out() {
    let null = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": null}).to_string();
    let items = [user("hi"), null, user("more")];
    let mut host = host(r#","window":100000"#, &items);
    let outcome = plan(&mut host, &items, PlanRequest::default());
    assert_eq!((host.view().len(), outcome.repairs.len()), (2, 1));
}

#[test]
fn fault_100_other_items_travel_byte_for_byte() {
    let items = [
        user("hi"),
        r#"{ "type":"future_item", "content":null , "x":[1.50,"\u00e9"] }"#.to_owned(),
        r#"{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"u"}],"logprobs":[]}]}"#.to_owned(),
    ];
    let mut host = host(r#","window":100000"#, &items);
    plan(&mut host, &items, PlanRequest::default());
    assert_eq!(host.engine.render_json(), format!("[{}]", items.join(",")));
}

#[test]
fn fault_101_breakpoints_of_the_cache_are_not_multiplied() {
    let marked = user("look").replace(
        "\"type\":\"input_text\"",
        "\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"},\"type\":\"input_text\"",
    );
    let mut items = vec![marked.clone(), marked.clone(), marked.clone(), marked];
    items.extend(steps(20, 300));
    for options in [SUMMARY, DROP, r#","window":4000,"stages":["elide"]"#] {
        let mut host = host(options, &items);
        plan(&mut host, &items, PlanRequest::default());
        assert!(host.engine.render_json().matches("prompt_cache_breakpoint").count() <= 4);
    }
}

#[test]
fn a_compaction_of_the_provider_stays_and_the_summary_stands_behind_it() {
    let compaction = json!({"type": "compaction", "id": "cmp_1",
        "encrypted_content": "gAAAAcmp".repeat(150)})
    .to_string();
    let mut items = steps(5, 200);
    items.push(compaction.clone());
    items.extend(steps(25, 200).into_iter().map(|item| item.replace("_", "_2")));
    for options in [SUMMARY, DROP] {
        let mut host = host(options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let view = common::messages(&host.engine.render_json());
        assert_eq!(view[0], compaction, "{options}");
        assert!(view[1].contains("\"role\":\"user\"") && !items.contains(&view[1]), "{}", view[1]);
    }
}

#[test]
fn a_change_of_configuration_stays_and_never_beside_another() {
    let update = |effort: &str| {
        json!({"type": "configuration_update", "reasoning": {"effort": effort}}).to_string()
    };
    let mut items = vec![user("hi")];
    for at in 0..20 {
        items.extend([user(&at.to_string()), said(&at.to_string(), &long("text", 200))]);
        if at == 3 || at == 6 {
            items.extend([update(if at == 3 { "high" } else { "low" }), user("so")]);
        }
    }
    for options in [SUMMARY, DROP] {
        let mut host = host(options, &items);
        assert!(plan(&mut host, &items, PlanRequest::default()).compacted);
        let view = host.engine.render_json();
        assert!(view.contains(&update("high")) && view.contains(&update("low")), "{view}");
    }
}

#[test]
fn outputs_of_calls_on_the_server_stay_with_their_references() {
    let reference = |id: &str| json!({"type": "item_reference", "id": id}).to_string();
    let mut items = vec![user("hi")];
    for at in 0..12 {
        items.extend([reference(&format!("rs_{at}")), reference(&format!("fc_{at}"))]);
        items.push(output(&format!("served_{at}"), &long("r", 200)));
        items.extend([reference(&format!("msg_{at}")), user("next")]);
    }
    let mut whole = host(r#","window":100000"#, &items);
    assert!(repairs(&plan(&mut whole, &items, PlanRequest::default())).is_empty());
    assert_eq!(whole.view().len(), items.len());
    let mut cut = host(r#","window":2000,"reserve":0,"preset":"late","stages":["drop"]"#, &items);
    assert!(plan(&mut cut, &items, PlanRequest::default()).compacted);
    let view = cut.view();
    let count = |name| view.iter().filter(|item| kind(item) == name).count();
    assert!(count("item_reference") >= 3 * count("function_call_output") - 1);
}

#[test]
fn what_was_decided_comes_back_whole() {
    let mut items = steps(12, 300);
    items.push(user("next"));
    let stages = r#","window":4000,"reserve":0,"stages":["reasoning","clear"]"#;
    let mut host = host(stages, &items);
    let outcome = plan(&mut host, &items, forced());
    for decided in &outcome.decisions {
        let content = recalled(&host.engine, decided.reference.as_ref().unwrap());
        let item = &items[decided.index as usize];
        match decided.kind {
            "removed" => assert_eq!(&content, item),
            _ => assert!(item.contains(&content), "{content}"),
        }
    }
    assert!(outcome.decisions.iter().any(|decided| decided.kind == "cleared"));
}

#[test]
fn a_summarizer_that_fails_leaves_items_valid() {
    let items = steps(30, 300);
    let mut host = host(SUMMARY, &items);
    let outcome = drain(&mut host, PlanRequest::default(), |_| failed());
    check(&host, &items);
    assert!(outcome.compacted && !outcome.failures.is_empty());
}

#[test]
fn what_continues_a_conversation_on_the_server_is_sent_as_it_is() {
    let before = [user("hi"), call("1"), user("stop")];
    let mut host = host(r#","window":1000"#, &before);
    plan(&mut host, &before, PlanRequest::default());
    let shown = host.engine.render(u32::MAX, 0, 0);
    // The call is where the provider has it.
    let only = format!("[{}]", output("served", &long("r", 2_000)));
    host.engine.ingest(0, &only, &[]).unwrap();
    let request = PlanRequest { server_history: true, ..PlanRequest::default() };
    let outcome = host.plan(request);
    assert!(!outcome.compacted);
    assert_eq!(host.engine.render_json(), only);
    let render = host.engine.render(shown.epoch, shown.unit, shown.items_before);
    assert_eq!((render.keep, render.items.len()), (0, 1));
    // And the next request without it is a whole one again.
    host.engine.ingest(0, &format!("[{}]", before.join(",")), &[]).unwrap();
    plan(&mut host, &before, PlanRequest::default());
    assert_eq!(host.view().len(), 4);
}

//! Cache markers: one at the border of the summary on request, and never more than a provider takes.

mod common;

use common::build::{forced, long};
use common::host::Host;
use common::{anthropic, messages};
use serde_json::{Value, json};
use tidemark::PlanRequest;

/// Makes a message of the user: its text, and whether it has a marker.
type User = fn(&str, bool) -> String;

const FORMATS: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"];

fn anthropic_user(text: &str, marked: bool) -> String {
    let mut block = json!({"type": "text", "text": text});
    if marked {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
    json!({"role": "user", "content": [block]}).to_string()
}

fn sdk_user(text: &str, marked: bool) -> String {
    let mut message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    if marked {
        message["providerOptions"] = json!({
            "anthropic": {"cacheControl": {"type": "ephemeral"}},
            "bedrock": {"cachePoint": {"type": "default"}},
        });
    }
    message.to_string()
}

fn assistant(text: &str) -> String {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]}).to_string()
}

/// Turns of the user, each marked, and of the assistant.
fn chat(count: usize, words: usize, user: User, marked: bool) -> Vec<String> {
    let turn = |at: usize| {
        [user(&long(&format!("u{at}"), words), marked), assistant(&long(&format!("a{at}"), words))]
    };
    (0..count).flat_map(turn).collect()
}

fn host(format: &str, more: &str) -> Host {
    Host::new(&format!(
        r#"{{"format":"{format}","window":2000,"reserve":0,"summarizer":true{more}}}"#
    ))
}

/// Texts of the messages that a provider finds a marker in, oldest first.
fn marked(view: &str) -> Vec<String> {
    let is_marked = |message: &&String| {
        message.contains("\"cache_control\":{") || message.contains("\"cacheControl\":{")
    };
    let name = |message: String| {
        let json: Value = serde_json::from_str(&message).unwrap();
        let block = json["content"].as_array().unwrap().last().unwrap();
        let text = block["text"].as_str().unwrap();
        text.split([':', '\n']).next().unwrap().to_owned()
    };
    messages(view).into_iter().filter(|message| is_marked(&message)).map(name).collect()
}

#[test]
fn a_marker_ends_the_summary_on_request_and_stays_there() {
    let cases: [(&str, User, &str); 2] = [
        ("anthropic", anthropic_user, r#""cache_control":{"type":"ephemeral"}}]}"#),
        (
            "ai-sdk",
            sdk_user,
            r#""providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}]}"#,
        ),
    ];
    for (format, user, end) in cases {
        let mut all = chat(20, 60, user, false);
        let mut host = host(format, r#","cacheMarker":true"#);
        assert!(host.turn(&all).compacted);
        let first = messages(&host.engine.render_json()).remove(0);
        assert!(first.contains("<conversation_summary>") && first.ends_with(end), "{first}");
        assert_eq!(marked(&host.engine.render_json()), ["<conversation_summary>"]);
        let before = host.engine.render_json();
        all.extend([user("more", false), assistant("well")]);
        assert!(!host.turn(&all).compacted);
        let after = host.engine.render_json();
        assert!(after.starts_with(&before[..before.len() - 1]), "{before}\n{after}");
        // The checkpoint gives the same bytes again.
        let options = format!(
            r#"{{"format":"{format}","window":2000,"reserve":0,"summarizer":true,"cacheMarker":true}}"#
        );
        let mut again = Host::restore(&options, &host.engine.checkpoint());
        again.ingest(&all);
        assert_eq!(again.engine.render_json(), after);
    }
}

#[test]
fn without_the_option_or_where_a_format_has_none_no_marker_is_written() {
    for format in FORMATS {
        let all: Vec<String> = (0..40)
            .map(|at| {
                let text = long(&format!("m{at}"), 60);
                let role = if at % 2 == 0 { "user" } else { "assistant" };
                match format {
                    "gemini" => {
                        let role = if at % 2 == 0 { "user" } else { "model" };
                        json!({"role": role, "parts": [{"text": text}]}).to_string()
                    }
                    _ => json!({"role": role, "content": text}).to_string(),
                }
            })
            .collect();
        let view = |more: &str| {
            let mut host = host(format, more);
            assert!(host.turn(&all).compacted, "{format}");
            host.engine.render_json()
        };
        let (plain, wanted) = (view(""), view(r#","cacheMarker":true"#));
        assert!(!plain.to_lowercase().contains("cache"), "{format}");
        assert_eq!(plain == wanted, !["anthropic", "ai-sdk"].contains(&format), "{format}");
    }
}

#[test]
fn a_summary_merged_into_the_users_message_has_its_marker_there() {
    for list in [false, true] {
        let mut all = chat(20, 60, anthropic_user, false);
        if !list {
            for message in all.iter_mut().step_by(2) {
                let json: Value = serde_json::from_str(message).unwrap();
                *message =
                    json!({"role": "user", "content": json["content"][0]["text"]}).to_string();
            }
        }
        let mut host = host("anthropic", r#","cacheMarker":true,"alternate":true"#);
        assert!(host.turn(&all).compacted);
        let view = host.view();
        let block = &view[0]["content"][0];
        assert!(block["text"].as_str().unwrap().starts_with("<conversation_summary>"), "{block}");
        assert_eq!(block["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(anthropic::problems(&view), Vec::<String>::new());
    }
}

#[test]
fn markers_over_the_limit_leave_oldest_first() {
    let cases: [(&str, User); 2] = [("anthropic", anthropic_user), ("ai-sdk", sdk_user)];
    for (format, user) in cases {
        let mut host = Host::new(&format!(r#"{{"format":"{format}","window":100000}}"#));
        let mut all = Vec::new();
        let mut kinds = Vec::new();
        for at in 0..8 {
            all.extend(chat(1, 5, user, true));
            *all.last_mut().unwrap() = assistant(&format!("a{at}"));
            let place = all.len() - 2;
            all[place] = user(&format!("u{at}"), true);
            let outcome = host.turn(&all);
            kinds.extend(outcome.repairs.iter().map(|repair| (repair.kind, repair.index)));
            let names = marked(&host.engine.render_json());
            let newest: Vec<String> =
                (u32::saturating_sub(at, 3)..=at).map(|at| format!("u{at}")).collect();
            assert_eq!(names, newest, "{format}");
            // What is rendered piece by piece is what is rendered at once.
            assert_eq!(host.engine.render_json(), whole(format, &all));
        }
        let expected: Vec<_> = (0..4).map(|at| ("cache_marker", at * 2)).collect();
        assert_eq!(kinds, expected, "{format}");
        let problems = host.engine.problems();
        assert_eq!(problems.len(), 4);
        assert!(problems.iter().all(|problem| problem.kind == "cache_marker"));
        // Nothing but the marker leaves.
        let first = host.view().remove(0);
        assert_eq!(first["content"], json!([{"type": "text", "text": "u0"}]), "{format}");
    }
}

fn whole(format: &str, all: &[String]) -> String {
    let mut host = Host::new(&format!(r#"{{"format":"{format}","window":100000}}"#));
    host.ingest(all);
    host.plan(PlanRequest::default());
    host.engine.render_json()
}

#[test]
fn what_is_rendered_by_steps_has_the_markers_of_the_whole() {
    let mut host = Host::new(r#"{"format":"anthropic","window":100000}"#);
    let mut stamp = (u32::MAX, 0, 0);
    let mut view: Vec<String> = Vec::new();
    let mut all: Vec<String> = Vec::new();
    for at in 0..9 {
        all.push(anthropic_user(&format!("u{at}"), at != 3));
        all.push(assistant(&format!("a{at}")));
        host.turn(&all);
        let render = host.engine.render(stamp.0, stamp.1, stamp.2);
        stamp = (render.epoch, render.unit, render.items_before);
        view.truncate(render.keep as usize);
        for item in render.items {
            match item {
                tidemark::Item::Run { from, to } => {
                    view.extend(all[from as usize..to as usize].iter().cloned());
                }
                tidemark::Item::Patch { index, edits } => {
                    assert!(edits.iter().all(|edit| edit.json.is_empty()));
                    let mut json: Value = serde_json::from_str(&all[index as usize]).unwrap();
                    json["content"][0].as_object_mut().unwrap().remove("cache_control");
                    view.push(json.to_string());
                }
                tidemark::Item::Insert { json } => view.push(json),
            }
        }
        let marks = view.iter().filter(|message| message.contains("cache_control")).count();
        assert!(marks <= 4, "{marks}");
        let shown: Vec<Value> =
            view.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(shown, host.view());
    }
}

#[test]
fn markers_of_instructions_tools_and_the_summary_count_too() {
    let mark = json!({"type": "ephemeral"});
    let kept = |more: Value| {
        let mut body = json!({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": []});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let all = chat(6, 3, anthropic_user, true);
        let list: Vec<Value> = all.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        body["messages"] = json!(list);
        let mut host = Host::new(r#"{"format":"anthropic","window":100000}"#);
        host.engine.ingest_body(body.to_string().as_bytes(), None).unwrap();
        host.plan(PlanRequest::default());
        let body = host.engine.render_body().unwrap();
        let json: Value = serde_json::from_str(&body).unwrap();
        marked(&json["messages"].to_string()).len()
    };
    let system = json!([{"type": "text", "text": "be", "cache_control": mark}]);
    let tools = json!([{"name": "t", "input_schema": {"type": "object"}, "cache_control": mark}]);
    assert_eq!(kept(json!({})), 4);
    assert_eq!(kept(json!({"system": system})), 3);
    assert_eq!(kept(json!({"system": system, "tools": tools})), 2);
    assert_eq!(kept(json!({"system": system, "tools": tools, "cache_control": mark})), 1);
    // The summary's own is one of the four.
    let mut host = host("anthropic", r#","cacheMarker":true"#);
    host.turn(&chat(20, 60, anthropic_user, true));
    let names = marked(&host.engine.render_json());
    assert_eq!(names[0], "<conversation_summary>");
    assert!(names.len() <= 4, "{names:?}");
    host.engine.set_system(&system.to_string()).unwrap();
    host.engine.set_tools(&tools.to_string()).unwrap();
    assert!(marked(&host.engine.render_json()).len() <= 2);
    assert_eq!(marked(&host.engine.render_json())[0], "<conversation_summary>");
}

#[test]
fn instructions_at_the_start_keep_theirs() {
    let system = json!({"role": "system", "content": "be brief",
        "providerOptions": {"anthropic": {"cacheControl": {"type": "ephemeral"}}}});
    let all = [vec![system.to_string()], chat(6, 3, sdk_user, true)].concat();
    let view = messages(&whole("ai-sdk", &all));
    assert_eq!(view[0], all[0]);
    assert_eq!(view.iter().filter(|message| message.contains("cacheControl")).count(), 4);
}

#[test]
fn a_marker_travels_with_the_block_that_is_replaced() {
    let image = |marked: bool| {
        let mut block =
            json!({"type": "image", "source": {"type": "url", "url": "https://a/b.png"}});
        if marked {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        json!({"role": "user", "content": [block, {"type": "text", "text": "see"}]}).to_string()
    };
    let mut all = vec![image(true)];
    all.extend(chat(12, 60, anthropic_user, false));
    let mut host = Host::new(
        r#"{"format":"anthropic","window":4000,"reserve":0,"stages":[{"stage":"media","keepLast":0}]}"#,
    );
    host.ingest(&all);
    host.plan(forced());
    let block = host.view()[0]["content"][0].clone();
    assert_eq!(block["type"], "text", "{block}");
    assert_eq!(block["cache_control"], json!({"type": "ephemeral"}));
}

#[test]
fn a_marker_inside_of_a_result_counts() {
    let text = json!({"type": "text", "text": "ok", "cache_control": {"type": "ephemeral"}});
    let mut all = vec![anthropic_user("go", false)];
    for at in 0..6 {
        let id = format!("toolu_{at}");
        let call = json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
        all.push(json!({"role": "assistant", "content": [call]}).to_string());
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": [text]});
        all.push(json!({"role": "user", "content": [result]}).to_string());
    }
    let view = whole("anthropic", &all);
    assert_eq!(view.matches("cache_control").count(), 4);
    assert!(view.contains(&all[12]) && !view.contains(&all[2]));
}

//! The validator of Anthropic Messages refuses what the API refuses, and takes what the API took.

mod common;

use common::anthropic::{keeps_signed, problems};
use serde_json::{Value, json};

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
}

fn answer(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "so", "signature": "c2ln"})
}

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
}

fn found(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
}

fn refused(messages: Value, why: &str) {
    let messages = messages.as_array().expect("messages");
    let problems = problems(messages);
    assert!(
        problems.iter().any(|problem| problem.contains(why)),
        "{why}: {problems:?}\n{messages:?}"
    );
}

fn taken(messages: Value) {
    let messages = messages.as_array().expect("messages");
    assert_eq!(problems(messages), Vec::<String>::new(), "{messages:?}");
}

#[test]
fn it_refuses_roles_and_members_that_the_api_does_not_know() {
    refused(json!([]), "at least one message");
    refused(json!([user(json!("hi")), {"role": "tool", "content": "x"}]), "unexpected role");
    let mut message = user(json!("hi"));
    message["name"] = json!("bob");
    refused(json!([message]), "Extra inputs are not permitted");
    refused(json!([user(json!(7))]), "Input should be a valid array");
    refused(json!([user(json!(["x"]))]), "Input should be a valid dictionary");
    refused(
        json!([assistant(json!("hi")), user(json!("hi"))]),
        "first message must use the \"user\" role",
    );
}

#[test]
fn it_refuses_what_is_empty() {
    let empty = "must have non-empty content";
    refused(json!([user(json!(""))]), empty);
    refused(json!([user(json!("x")), assistant(json!([])), user(json!("y"))]), empty);
    refused(json!([user(json!("x")), {"role": "assistant"}]), empty);
    refused(json!([user(json!([text("")]))]), "text content blocks must be non-empty");
    refused(json!([user(json!([text(" \n"), text("x")]))]), "must contain non-whitespace text");
    refused(json!([user(json!("  "))]), "must contain non-whitespace text");
    let result = |content: Value, failed: bool| {
        let block = json!({"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": failed});
        json!([user(json!("x")), assistant(json!([call("a")])), user(json!([block]))])
    };
    refused(result(json!(""), true), "content cannot be empty if `is_error` is true");
    refused(result(json!([text("")]), false), "text content blocks must be non-empty");
    refused(result(Value::Null, false), "tool_result.content: Input should be a valid array");
    let image = json!({"type": "image", "source": {"type": "url", "url": "u"}});
    refused(result(json!([image]), true), "all content must be type `text`");
    refused(result(json!([call("b")]), false), "Input tag");
    taken(result(json!(""), false));
    taken(result(json!([image]), false));
    let compaction = json!({"type": "compaction", "content": ""});
    refused(json!([user(json!("x")), assistant(json!([compaction]))]), "at least 1 character");
}

#[test]
fn it_refuses_blocks_in_the_wrong_role_or_without_what_they_need() {
    let one = |block: Value| json!([user(json!("x")), assistant(json!([block])), user(json!("y"))]);
    refused(json!([user(json!([call("a")]))]), "can only be in `assistant` messages");
    refused(json!([user(json!([thinking(), text("x")]))]), "can only be in `assistant` messages");
    refused(one(answer("a")), "can only be in `user` messages");
    refused(
        one(json!({"type": "image", "source": {"type": "url", "url": "u"}})),
        "can only be in `user`",
    );
    refused(one(json!({"text": "no type"})), "type: Field required");
    refused(one(json!({"type": "thinking", "thinking": "x"})), "signature: Field required");
    refused(one(json!({"type": "redacted_thinking"})), "data: Field required");
    refused(one(json!({"type": "text"})), "text.text: Field required");
    refused(one(json!({"type": "tool_use", "id": "a", "input": {}})), "name: Field required");
    refused(
        one(json!({"type": "tool_use", "id": "a", "name": "f"})),
        "input: Input should be a valid dictionary",
    );
    refused(
        one(json!({"type": "tool_use", "id": "a", "name": "f", "input": "{}"})),
        "input: Input should be",
    );
    refused(
        one(json!({"type": "tool_use", "id": "a~2", "name": "f", "input": {}})),
        "should match pattern",
    );
    refused(
        one(json!({"type": "tool_use", "id": "a", "name": "f.g", "input": {}})),
        "should match pattern",
    );
    refused(json!([user(json!([{"type": "image", "source": {"type": "base64"}}]))]), "source.data");
    refused(json!([user(json!([{"type": "document", "source": {}}]))]), "source: Input should be");
    let marked = json!({"type": "thinking", "thinking": "x", "signature": "s", "cache_control": {"type": "ephemeral"}});
    refused(one(marked), "thinking.cache_control");
}

#[test]
fn it_refuses_results_and_calls_that_are_not_paired() {
    let missing = "without `tool_result` blocks immediately after";
    let unexpected = "unexpected `tool_use_id`";
    let start = |rest: Vec<Value>| {
        let two = assistant(json!([call("a"), call("b")]));
        Value::Array([vec![user(json!("x")), two], rest].concat())
    };
    refused(start(vec![user(json!("wait"))]), missing);
    refused(start(vec![user(json!([answer("a")])), assistant(json!("y"))]), missing);
    refused(start(vec![user(json!([text("see"), answer("a"), answer("b")]))]), missing);
    refused(
        start(vec![user(json!([answer("a"), text("see")])), user(json!([answer("b")]))]),
        "behind other content",
    );
    refused(
        start(vec![user(json!([answer("a"), answer("a"), answer("b")]))]),
        "must have a single result",
    );
    refused(start(vec![user(json!([answer("c")]))]), unexpected);
    refused(json!([user(json!([answer("a")]))]), unexpected);
    refused(
        json!([
            user(json!("x")),
            assistant(json!([call("a")])),
            user(json!([answer("a")])),
            assistant(json!("y")),
            user(json!([answer("a")]))
        ]),
        unexpected,
    );
    refused(
        json!([
            user(json!("x")),
            assistant(json!([call("a")])),
            user(json!([answer("a")])),
            assistant(json!([call("a")])),
            user(json!([answer("a")]))
        ]),
        "`tool_use` ids must be unique",
    );
    refused(
        json!([user(json!("x")), assistant(json!([call("a")])), {"role": "system", "content": "s"},
            user(json!([answer("a")]))]),
        missing,
    );
    // Results in any order and in several messages, with text behind the last, are a run.
    taken(start(vec![
        user(json!([answer("b")])),
        user(json!([answer("a"), text("and")])),
        user(json!("go")),
    ]));
    // The host is about to answer the rest.
    taken(start(vec![]));
    taken(start(vec![user(json!([answer("a")]))]));
}

#[test]
fn it_refuses_server_tools_without_their_results() {
    let alone = "without a corresponding result block";
    refused(json!([user(json!("x")), assistant(json!([search("s")])), user(json!("y"))]), alone);
    refused(
        json!([user(json!("x")), assistant(json!([found("s"), text("y")]))]),
        "`server_tool_use` block before it",
    );
    taken(json!([user(json!("x")), assistant(json!([search("s"), found("s"), text("y")]))]));
    let in_flight = |last: Value| {
        json!([
            user(json!("x")),
            assistant(json!([search("s"), call("a")])),
            user(json!([answer("a")])),
            assistant(json!([last, text("y")])),
            user(json!("z"))
        ])
    };
    taken(in_flight(found("s")));
    refused(in_flight(text("no")), alone);
}

#[test]
fn it_refuses_a_turn_that_ends_in_thinking() {
    let why = "final block in an assistant message cannot be `thinking`";
    refused(json!([user(json!("x")), assistant(json!([thinking()])), user(json!("y"))]), why);
    refused(json!([user(json!("x")), assistant(json!([text("a"), thinking()]))]), why);
    taken(json!([user(json!("x")), assistant(json!([thinking()])), assistant(json!([text("a")]))]));
    taken(json!([
        user(json!("x")),
        assistant(json!([thinking(), text("\n"), thinking(), text("a")]))
    ]));
}

#[test]
fn it_refuses_misplaced_system_messages_and_too_many_markers() {
    let system = json!({"role": "system", "content": "rule"});
    let follow = "must follow a 'user' message";
    refused(json!([system, user(json!("x"))]), follow);
    refused(
        json!([user(json!("x")), assistant(json!("y")), system, assistant(json!("z"))]),
        follow,
    );
    refused(
        json!([user(json!("x")), system, user(json!("y"))]),
        "must precede an 'assistant' message",
    );
    refused(json!([user(json!("x")), {"role": "system", "content": ""}]), "non-empty");
    taken(json!([user(json!("x")), system, assistant(json!("y"))]));
    taken(json!([
        user(json!("x")),
        assistant(json!([search("s"), found("s")])),
        system,
        assistant(json!("y"))
    ]));
    let directive = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
    taken(json!([user(json!("x")), assistant(json!("y")), directive, user(json!("z"))]));
    let marked = |count: usize| {
        let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        json!([user(json!(vec![block; count]))])
    };
    taken(marked(4));
    refused(marked(5), "A maximum of 4 blocks with cache_control");
}

#[test]
fn a_conversation_may_begin_with_a_compaction() {
    let block = json!({"type": "compaction", "content": "so far", "signature": "s"});
    taken(json!([assistant(json!([block])), user(json!("x"))]));
    taken(json!([
        user(json!("x")),
        assistant(json!([{"type": "compaction", "content": null}])),
        user(json!("y"))
    ]));
}

#[test]
fn signed_blocks_are_compared_by_their_bytes_and_their_order() {
    let of = |blocks: &[&str]| {
        vec![format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))]
    };
    let a = r#"{"type":"thinking","thinking":"a","signature":"s"}"#;
    let b = r#"{"type":"redacted_thinking","data":"d"}"#;
    let spaced = r#"{"type":"thinking", "thinking":"a","signature":"s"}"#;
    let said = r#"{"type":"text","text":"a"}"#;
    assert!(keeps_signed(&of(&[a, b, said]), &of(&[a, b])));
    assert!(keeps_signed(&of(&[a, b, said]), &of(&[b])));
    assert!(keeps_signed(&of(&[a, b, said]), &of(&[said])));
    assert!(!keeps_signed(&of(&[a, b, said]), &of(&[b, a])));
    assert!(!keeps_signed(&of(&[a, b, said]), &of(&[a, a])));
    assert!(!keeps_signed(&of(&[a, b, said]), &of(&[spaced])));
}

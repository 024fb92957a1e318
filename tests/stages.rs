//! What the options of a stage spare and what they let go, and what the presets do.

mod common;

use common::build::*;
use common::host::Host;
use serde_json::json;
use tidemark::{Engine, Outcome};

/// A call of a tool with an argument, and its result.
fn used_tool(id: &str, tool: &str, argument: &str, result: &str) -> [String; 2] {
    let arguments = json!({"path": argument}).to_string();
    let call = json!({"id": id, "type": "function",
        "function": {"name": tool, "arguments": arguments}});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string(),
        self::result(id, result),
    ]
}

/// Results at 2, 4, 6, … of these tools, and a newest exchange behind them.
fn session(tools: &[&str], words: usize) -> Vec<String> {
    let mut all = vec![user("start")];
    for (at, tool) in tools.iter().enumerate() {
        let id = format!("c{at}");
        all.extend(used_tool(&id, tool, "x", &long(&format!("r{at}"), words)));
    }
    all.extend([assistant("done"), user("next")]);
    all
}

/// What a forced burst of one stage decides.
fn forced_by(stage: &str, all: &[String]) -> Outcome {
    let mut host = Host::new(&options(100_000, &format!("\"tail\":2,\"stages\":[{stage}]")));
    host.ingest(all);
    host.plan(forced())
}

fn cleared(stage: &str, all: &[String]) -> Vec<u32> {
    decided(&forced_by(stage, all), "cleared")
}

#[test]
fn include_and_exclude_say_whose_results_may_leave() {
    let all = session(&["read", "bash", "read", "grep"], 100);
    let clear =
        |lists: &str| cleared(&format!("{{\"stage\":\"clear\",\"keepLast\":0{lists}}}"), &all);
    assert_eq!(clear(""), [2, 4, 6, 8]);
    assert_eq!(clear(r#","include":["read"]"#), [2, 6]);
    assert_eq!(clear(r#","exclude":["read"]"#), [4, 8]);
    assert_eq!(clear(r#","include":["read","bash"],"exclude":["bash"]"#), [2, 6]);
    assert!(clear(r#","include":[]"#).is_empty());
    let newest = r#"{"stage":"clear","keepLast":1,"include":["read"]}"#;
    assert_eq!(cleared(newest, &all), [2], "the newest one of those that it may have");
}

#[test]
fn keep_errors_spares_what_tells_of_a_failure() {
    let mut all = vec![user("start")];
    let words = " word".repeat(100);
    for (at, text) in ["ok", "Error: no such file", "{\"error\":\"denied\"}", "Traceback (most"]
        .iter()
        .enumerate()
    {
        all.extend(used_tool(&format!("c{at}"), "bash", "x", &format!("{text}{words}")));
    }
    all.extend([assistant("done"), user("next")]);
    assert_eq!(cleared(r#"{"stage":"clear","keepLast":0,"keepErrors":true}"#, &all), [2]);
    assert_eq!(cleared(r#"{"stage":"clear","keepLast":0}"#, &all), [2, 4, 6, 8]);
}

#[test]
fn keep_errors_believes_the_format() {
    let block = |id: &str, failed: bool| {
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
            "is_error": failed, "content": long("r", 100)}]})
        .to_string()
    };
    let call = |id: &str| {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "bash",
            "input": {}}]})
        .to_string()
    };
    let said = |role: &str| json!({"role": role, "content": "so"}).to_string();
    let all = [
        said("user"),
        call("a"),
        block("a", true),
        call("b"),
        block("b", false),
        said("assistant"),
        said("user"),
    ];
    let stage = r#"{"stage":"clear","keepLast":0,"keepErrors":true}"#;
    let json = format!("\"format\":\"anthropic\",\"tail\":2,\"stages\":[{stage}]");
    let mut host = Host::new(&options(100_000, &json));
    host.ingest(&all);
    assert_eq!(decided(&host.plan(forced()), "cleared"), [4]);
}

#[test]
fn protect_tokens_spares_the_newest_results_by_their_size() {
    let all = session(&["read"; 6], 100);
    let clear = |tokens: u32| {
        cleared(&format!(r#"{{"stage":"clear","keepLast":0,"protectTokens":{tokens}}}"#), &all)
    };
    assert_eq!(clear(0), [2, 4, 6, 8, 10, 12]);
    assert_eq!(clear(150), [2, 4, 6, 8, 10]);
    assert_eq!(clear(350), [2, 4, 6]);
    assert!(clear(10_000).is_empty());
}

#[test]
fn clear_at_least_waits_until_it_is_worth_a_cold_cache() {
    // Ten results of a hundred tokens, of which nine may leave.
    let all = session(&["read"; 10], 100);
    let whole = size(&all);
    let outcome = |least: &str| {
        let stage = format!(r#"{{"stage":"clear","keepLast":1,"at":0.5{least}}}"#);
        let more = format!("\"recall\":false,\"tail\":2,\"stages\":[{stage}]");
        Host::new(&options(whole * 10 / 9, &more)).turn(&all)
    };
    assert!(outcome("").compacted);
    let least = outcome(r#","clearAtLeast":500"#);
    assert!(least.tokens_before - least.tokens_after >= 500);
    assert!(!outcome(r#","clearAtLeast":2000"#).compacted);
    assert!(!outcome(r#","clearAtLeast":0.95"#).compacted, "a share of usable");
    assert!(!outcome(r#","minSavings":0.9"#).compacted, "a share of the view");
    assert!(outcome(r#","minSavings":0.2"#).compacted);
}

#[test]
fn what_must_be_taken_out_is_taken_out_however_little() {
    let all = session(&["read"; 10], 100);
    let stage = r#"{"stage":"clear","keepLast":1,"clearAtLeast":2000}"#;
    let mut host = Host::new(&options(100_000, &format!("\"tail\":2,\"stages\":[{stage}]")));
    host.ingest(&all);
    assert!(!host.plan(Default::default()).compacted);
    assert!(host.plan(refused(Some(1_500))).compacted);
    assert!(forced_by(stage, &all).compacted);
}

#[test]
fn arguments_leave_as_results_do_where_that_is_asked_for() {
    let mut all = vec![user("start")];
    let big = long("file", 300);
    all.extend(used_tool("c0", "write", &big, "ok"));
    all.extend(used_tool("c1", "read", &big, "ok"));
    all.extend(used_tool("c2", "write", &big, "ok"));
    all.extend([assistant("done"), user("next")]);
    let places = |stage: &str| cleared(stage, &all);
    assert!(places(r#"{"stage":"clear","keepLast":0}"#).is_empty());
    assert!(places(r#"{"stage":"clear","keepLast":0,"includeArguments":false}"#).is_empty());
    let clear = |more: &str| places(&format!(r#"{{"stage":"clear","includeArguments":{more}}}"#));
    assert_eq!(clear(r#"true,"keepLast":0"#), [1, 3, 5]);
    assert_eq!(clear(r#"["write"],"keepLast":0"#), [1, 5]);
    assert_eq!(clear(r#"true,"keepLast":0,"exclude":["write"]"#), [3]);
    assert_eq!(clear(r#"true,"keepLast":1"#), [1, 3], "arguments stay with their result");
    assert!(clear(r#"[],"keepLast":0"#).is_empty());

    let outcome = forced_by(
        r#"{"stage":"offload","keepLast":0,"minTokens":100,"previewTokens":20,"includeArguments":true}"#,
        &all,
    );
    assert_eq!(decided(&outcome, "offloaded"), [1, 3, 5]);
}

#[test]
fn arguments_that_left_are_still_an_object_and_come_back() {
    let mut all = vec![user("start")];
    let big = long("file", 300);
    all.extend(used_tool("c0", "write", &big, "ok"));
    all.extend([assistant("done"), user("next")]);
    let stage = r#"{"stage":"clear","keepLast":0,"includeArguments":true}"#;
    let mut host = Host::new(&options(100_000, &format!("\"tail\":2,\"stages\":[{stage}]")));
    host.ingest(&all);
    let outcome = host.plan(forced());
    let view = host.view();
    let arguments = view[1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    assert!(arguments["left_out"].as_str().unwrap().contains("recall("));
    let reference = outcome.decisions[0].reference.as_deref().unwrap();
    assert!(recalled(&host.engine, reference).contains(&big));
}

#[test]
fn a_stage_runs_from_its_own_watermark() {
    let all = session(&["read"; 10], 100);
    let whole = size(&all);
    let outcome = |at: &str| {
        let more =
            format!("\"recall\":false,\"tail\":2,\"stages\":[{{\"stage\":\"clear\",\"at\":{at}}}]");
        Host::new(&options(whole * 10 / 6, &more)).turn(&all)
    };
    assert!(outcome("0.5").compacted);
    assert!(!outcome("0.7").compacted);
    assert!(outcome(&(whole - 10).to_string()).compacted, "tokens");
}

#[test]
fn what_the_model_has_not_seen_is_not_cleared() {
    // The newest calls and their results wait for the model, however large they are.
    let mut all = session(&["read"; 2], 100);
    let ids = ["n0", "n1", "n2"];
    all.push(calls(&ids, "x"));
    all.extend(ids.iter().map(|id| result(id, &long(id, 400))));
    for stage in ["\"offload\"", r#"{"stage":"clear","keepLast":0}"#, "\"dedupe\""] {
        let outcome = forced_by(stage, &all);
        assert!(outcome.decisions.iter().all(|one| one.index < 7), "{stage}");
    }
    let mut host = Host::new(&options(100_000, "\"tail\":2,\"stages\":[\"clear\"]"));
    host.ingest(&all);
    assert!(host.plan(refused(Some(1_200))).decisions.iter().all(|one| one.index < 7));
}

#[test]
fn bad_options_of_a_stage_name_themselves() {
    for (member, place) in [
        (r#""protectTokens":-1"#, "protectTokens"),
        (r#""clearAtLeast":1.5"#, "clearAtLeast"),
        (r#""minSavings":1"#, "minSavings"),
        (r#""include":"read""#, "include"),
        (r#""include":[1]"#, "include"),
        (r#""keepErrors":"yes""#, "keepErrors"),
        (r#""includeArguments":"read""#, "includeArguments"),
    ] {
        let json = format!("{{\"stages\":[{{\"stage\":\"clear\",{member}}}]}}");
        let read = tidemark::Options::from_json(&json).map(|mut options| {
            options.secret = Some(common::host::SECRET.to_owned());
            options
        });
        let error = read.and_then(Engine::new).err().expect(member);
        assert_eq!(error.code().as_str(), "invalid_option");
        assert_eq!(error.path(), format!("options.stages[0].{place}"));
    }
}

//! What the options of a stage spare and what they let go, and what the presets do.

mod common;

use common::build::*;
use common::host::Host;
use serde_json::json;
use tidemark::{Effect, Engine, Outcome, PlanRequest, Reply, Step, Wanted};

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
    let json = format!("\"recall\":false,\"tail\":2,\"stages\":[{stage}]");
    let mut host = Host::new(&options(100_000, &json));
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
    let json = format!("\"format\":\"anthropic\",\"recall\":false,\"tail\":2,\"stages\":[{stage}]");
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

/// A long conversation of an agent: the task, then calls with results, now and then a word.
fn worked(count: usize) -> Vec<String> {
    let mut all =
        vec![system("You are careful."), user("Port src/parser.rs to Rust. Never touch CI.")];
    for at in 0..count {
        let id = format!("c{at}");
        all.extend(used_tool(&id, "bash", &format!("ls {at}"), &long(&format!("r{at}"), 300)));
        if at % 5 == 4 {
            all.push(assistant(&long(&format!("said {at}"), 60)));
            all.push(user(&format!("go on with part {at}")));
        }
    }
    all
}

fn preset(name: &str, window: u32, more: &str) -> Host {
    Host::new(&options(window, &format!("\"preset\":\"{name}\"{more}")))
}

#[test]
fn every_preset_brings_a_session_below_its_limit_and_keeps_it_valid() {
    let all = worked(40);
    for name in PRESETS {
        let mut host = preset(name, 6_000, ",\"summarizer\":true,\"store\":true");
        let mut bursts = 0;
        for end in 1..=all.len() {
            let outcome = host.turn(&all[..end]);
            assert!(outcome.fits, "{name} at {end}");
            bursts += u32::from(outcome.compacted);
            assert_eq!(common::openai_chat::problems(&host.view()), Vec::<String>::new(), "{name}");
        }
        assert!(bursts > 0, "{name}");
        assert_eq!(shown(&host)[0], all[0], "{name}");
        assert_eq!(shown(&host).last(), all.last(), "{name}");
    }
}

#[test]
fn a_preset_is_its_options_and_nothing_else() {
    let all = worked(40);
    for (name, same) in [
        (
            "two-tier",
            r#""compactAt":0.8,"stages":[{"stage":"clear","at":0.5,"keepLast":6,"clearAtLeast":0.05},"summarize","drop","elide"]"#,
        ),
        ("truncate", r#""compactTo":0.4,"stages":[{"stage":"drop","at":0.85},"elide"]"#),
        ("late", r#""compactAt":0.85,"compactTo":0.6,"tail":0.2,"minBurst":0"#),
        ("default", r#""compactAt":0.55,"compactTo":0.2,"tail":0.1,"minBurst":0.5"#),
    ] {
        let mut named = preset(name, 6_000, "");
        let mut spelled = Host::new(&options(6_000, same));
        for end in 1..=all.len() {
            assert_eq!(named.turn(&all[..end]), spelled.turn(&all[..end]), "{name}");
        }
    }
}

#[test]
fn explicit_options_win_over_those_of_the_preset() {
    let budget = |more: &str| {
        let host = preset("default", 100_000, more);
        let estimate = host.engine.estimate();
        (estimate.trigger.unwrap(), estimate.target.unwrap())
    };
    assert_eq!(budget(""), (55_000, 20_000));
    assert_eq!(budget(",\"compactTo\":0.3"), (55_000, 30_000));
    assert_eq!(budget(",\"compactAt\":0.9"), (90_000, 60_000), "a target belongs to its trigger");
    let waits = budget(",\"compactAt\":0.1").0;
    assert!((20_000..22_000).contains(&waits), "{waits}: twice the tail and the tools");
    let mut host = preset("truncate", 6_000, ",\"stages\":[\"clear\",\"elide\"]");
    let outcome = host.turn(&worked(20));
    assert!(outcome.stages.iter().all(|stage| *stage != "drop"));
}

#[test]
fn an_unknown_preset_names_those_that_there_are() {
    let error = Engine::new(common::host::options(r#"{"preset":"aggressive"}"#)).err().unwrap();
    assert_eq!((error.code().as_str(), error.path()), ("invalid_option", "options.preset"));
    for name in PRESETS {
        assert!(error.message().contains(name), "{name}");
    }
    let error = Engine::new(common::host::options(r#"{"minBurst":1}"#)).err().unwrap();
    assert_eq!(error.path(), "options.minBurst");
}

#[test]
fn the_default_waits_until_half_of_the_view_can_go() {
    // Tools that take a third of the window: at 55 % a burst could free little.
    let tools = json!([{"type": "function", "function": {"name": "t", "parameters":
        {"text": " word".repeat(3_000)}}}]);
    let first = |more: &str| {
        let mut host = preset("default", 10_000, more);
        host.engine.set_tools(&tools.to_string()).unwrap();
        let all = chat(200, 100);
        let mut outcomes = (1..=all.len()).map(|end| host.turn(&all[..end]));
        outcomes.find(|outcome| outcome.compacted).expect("at 85 % a burst begins all the same")
    };
    let eager = first(",\"minBurst\":0");
    assert!(eager.tokens_before < 6_000, "{}", eager.tokens_before);
    let waited = first("");
    assert!(waited.tokens_before > 7_500, "{}", waited.tokens_before);
    let freed = |outcome: &Outcome| outcome.tokens_before - outcome.tokens_after;
    assert!(freed(&waited) > 3 * freed(&eager), "{} {}", freed(&waited), freed(&eager));
}

#[test]
fn two_tier_clears_at_half_and_summarizes_at_four_fifths() {
    let all = session(&["read"; 12], 300);
    let whole = size(&all);
    let first = preset("two-tier", whole * 10 / 6, "").turn(&all);
    assert_eq!(first.stages, ["clear"]);
    assert!(decided(&first, "cleared").iter().all(|at| *at <= 12), "six stay");
    let talk = chat(41, 100);
    let second = preset("two-tier", size(&talk) * 10 / 9, "").turn(&talk);
    assert_eq!(second.stages, ["summarize"]);
    assert!(!preset("two-tier", size(&talk) * 10 / 7, "").turn(&talk).compacted);
}

#[test]
fn the_summarize_preset_asks_no_model_and_llm_summarize_does() {
    let all = chat(41, 100);
    for (name, calls) in [("summarize", 0), ("llm-summarize", 1)] {
        let mut host = preset(name, size(&all), ",\"summarizer\":true");
        assert!(host.turn(&all).summary.is_some(), "{name}");
        assert_eq!(host.prompts.len(), calls, "{name}");
    }
}

#[test]
fn smart_keeps_what_says_most_for_its_size() {
    let mut all = vec![user("Port the parser to Rust.")];
    for at in 0..12 {
        all.extend(used_tool(&format!("a{at}"), "bash", "ls", &long("noise", 200)));
    }
    let rule = all.len();
    all.push(user("You must never touch the file ci/release.yml, whatever the tests say."));
    let error = all.len();
    all.extend(used_tool("e", "bash", "cargo test", "Error: LexerOverflow at src/lexer.rs:88"));
    for at in 0..12 {
        all.extend(used_tool(&format!("b{at}"), "bash", "ls", &long("noise", 200)));
    }
    all.push(assistant("The LexerOverflow in src/lexer.rs:88 is what is left."));
    all.push(user("fix it"));
    let stages = r#""tail":2,"stages":[{"stage":"smart","at":0.5}]"#;
    let mut host = Host::new(&options(size(&all), stages));
    let outcome = host.turn(&all);
    assert!(outcome.compacted && outcome.fits);
    let kept = verbatim(&host, &all);
    for at in [0, rule, error, error + 1, all.len() - 2, all.len() - 1] {
        assert!(kept.contains(&at), "{at} of {kept:?}");
    }
    assert!(kept.len() < all.len() - 20, "the noise leaves");
    assert!(outcome.tokens_after <= outcome.target.unwrap());
    assert!(outcome.tokens_after * 4 > outcome.target.unwrap(), "packed, not emptied");
    assert!(outcome.decisions.iter().all(|one| one.stage == "smart" && one.kind == "dropped"));
    // The note counts what left, and no more than that.
    let left: u32 = outcome.decisions.iter().map(|one| one.to.unwrap() - one.index).sum();
    assert!(shown(&host)[0].contains(&format!("{left} earlier messages left out")));
    assert_eq!(kept.len() as u32, all.len() as u32 - left);
}

#[test]
fn what_smart_kept_can_leave_later_and_never_comes_back() {
    let stages = r#""tail":2,"stages":[{"stage":"smart","at":0.6},"summarize","drop","elide"]"#;
    let all = worked(120);
    let mut host = Host::new(&options(5_000, stages));
    let mut gone: Vec<usize> = Vec::new();
    for end in 1..=all.len() {
        assert!(host.turn(&all[..end]).fits);
        let kept = verbatim(&host, &all[..end]);
        assert!(gone.iter().all(|at| !kept.contains(at)), "at {end}");
        gone = (0..end).filter(|at| !kept.contains(at)).collect();
        let mut resumed = Host::restore(&options(5_000, stages), &host.engine.checkpoint());
        resumed.ingest(&all[..end]);
        assert_eq!(resumed.engine.render_json(), host.engine.render_json());
        assert_eq!(resumed.engine.estimate().tokens, host.engine.estimate().tokens);
    }
}

/// Tokens saved, or place and words of a refusal.
type Told = Result<u32, (String, String)>;

/// Runs one burst with a stage of the host's own, `at` one token, which wants these decisions.
/// Returns what it was told of each, and the outcome.
fn decided_by_host(
    host: &mut Host,
    request: PlanRequest,
    wanted: &[Wanted],
) -> (Vec<Told>, Outcome) {
    let mut told = Vec::new();
    let mut step = host.engine.plan(request).unwrap();
    loop {
        let effects = match step {
            Step::Done { outcome } => return (told, *outcome),
            Step::Effects { effects } => effects,
            Step::Idle => panic!("abandoned"),
        };
        let effect = effects.into_iter().next().expect("something to do");
        let reply = match &effect {
            Effect::Decide { id, .. } => {
                told.extend(wanted.iter().map(|wanted| {
                    let answer = host.engine.propose(*id, *wanted);
                    answer.map_err(|e| (e.path().to_owned(), e.message().to_owned()))
                }));
                Reply::Done
            }

            Effect::Summarize { .. } => Reply::Text { text: common::host::good_summary("noted") },
            _ => Reply::Done,
        };
        step = host.engine.resolve(effect.id(), reply).unwrap();
    }
}

const OWN: &str = r#""recall":false,"tail":2,"stages":[{"stage":"custom","name":"mine","at":2}]"#;

/// A pinned user, two pairs, a batch of two, an assistant and the newest user.
fn small() -> Vec<String> {
    let mut all = vec![user("start")];
    all.extend(pair("a", &long("a", 100)));
    all.extend(pair("b", &long("b", 100)));
    all.push(calls(&["c", "d"], "x"));
    all.extend([result("c", &long("c", 100)), result("d", &long("d", 100))]);
    all.extend([assistant("done"), user("next")]);
    all
}

fn small_host(more: &str) -> Host {
    let mut host = Host::new(&options(100_000, &format!("{OWN}{more}")));
    host.engine.ingest(0, &format!("[{}]", small().join(",")), &[0]).unwrap();
    host
}

#[test]
fn a_stage_of_the_hosts_sees_what_is_in_the_view() {
    let mut host = small_host("");
    let Step::Effects { effects } = host.engine.plan(forced()).unwrap() else { panic!("asks") };
    let [Effect::Decide { id, position: 0, context }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((&*context.stage, context.forced, context.overflow), ("mine", true, false));
    assert_eq!(context.tokens, host.engine.estimate().tokens);
    let units: Vec<_> = context.units.iter().map(|unit| (unit.from, unit.to)).collect();
    assert_eq!(units, [(0, 1), (1, 3), (3, 5), (5, 8), (8, 9), (9, 10)]);
    assert!(context.units[0].pinned && context.units[5].protected);
    let result = context.parts.iter().find(|part| part.index == 2).unwrap();
    assert_eq!(
        (result.kind, result.role, result.tool.as_deref()),
        ("result", "tool", Some("read"))
    );
    assert!(result.tokens >= 100 && !result.pinned && !result.protected);
    let sum: u32 = context.parts.iter().map(|part| part.tokens).sum();
    assert!(sum <= context.tokens && sum * 2 > context.tokens);
    host.engine.resolve(*id, Reply::Done).unwrap();
}

#[test]
fn what_a_stage_of_the_hosts_wants_is_taken() {
    let mut host = small_host(",\"store\":true");
    let (told, outcome) = decided_by_host(
        &mut host,
        forced(),
        &[
            Wanted::Clear { index: 2, part: 0 },
            Wanted::Offload { index: 4, part: 0, tokens: 20 },
            Wanted::Drop { from: 5, to: 8 },
        ],
    );
    assert!(told.iter().all(|saved| saved.as_ref().is_ok_and(|saved| *saved > 20)), "{told:?}");
    let kinds: Vec<_> =
        outcome.decisions.iter().map(|one| (&*one.stage, one.kind, one.index)).collect();
    assert_eq!(kinds, [("mine", "cleared", 2), ("mine", "dropped", 5), ("mine", "offloaded", 4)]);
    assert_eq!(outcome.stages, ["mine"]);
    let saved: u32 = told.iter().flatten().sum();
    let freed = outcome.tokens_before - outcome.tokens_after;
    assert!(freed.abs_diff(saved) < 40, "{freed} {saved}: but for the note of what was dropped");
    assert_eq!(common::openai_chat::problems(&host.view()), Vec::<String>::new());
    // What stands before the drop is still there.
    assert!(verbatim(&host, &small()).contains(&0));
}

#[test]
fn a_stage_of_the_hosts_can_fold_what_it_chose() {
    for summarizer in ["", ",\"summarizer\":true"] {
        let mut host = small_host(summarizer);
        let wanted = [Wanted::Summarize { to: 5 }];
        let (_, outcome) = decided_by_host(&mut host, forced(), &wanted);
        assert_eq!(outcome.summary.expect("a summary").covered, 5);
        assert_eq!(outcome.stages, ["mine"]);
    }
}

#[test]
fn a_decision_that_must_not_be_is_refused_by_name() {
    let mut host = small_host("");
    let first = [Wanted::Clear { index: 2, part: 0 }, Wanted::Drop { from: 3, to: 5 }];
    decided_by_host(&mut host, forced(), &first);
    let clear = |index, part| Wanted::Clear { index, part };
    let cases = [
        (clear(0, 0), "messages[0].parts[0]", "pinned"),
        (clear(9, 0), "messages[9].parts[0]", "protected tail"),
        (clear(2, 0), "messages[2].parts[0]", "already"),
        (clear(4, 0), "messages[4].parts[0]", "left the view"),
        (clear(6, 7), "messages[6].parts[7]", "no such part"),
        (clear(77, 0), "messages[77].parts[0]", "no such part"),
        (clear(8, 0), "messages[8].parts[0]", "nothing smaller"),
        (Wanted::Offload { index: 2, part: 0, tokens: 50 }, "messages[2].parts[0]", "undone"),
        (Wanted::Offload { index: 6, part: 0, tokens: 500 }, "messages[6].parts[0]", "smaller"),
        (Wanted::Drop { from: 1, to: 2 }, "messages[2]", "a unit is cut"),
        (Wanted::Drop { from: 6, to: 8 }, "messages[6]", "messages 5 to 7 leave together"),
        (Wanted::Drop { from: 0, to: 3 }, "messages[0]", "pinned"),
        (Wanted::Drop { from: 3, to: 5 }, "messages[3]", "left the view"),
        (Wanted::Drop { from: 8, to: 10 }, "messages[9]", "protected tail"),
        (Wanted::Drop { from: 5, to: 5 }, "messages[5]", "expected"),
        (Wanted::Drop { from: 5, to: 99 }, "messages[5]", "expected"),
        (Wanted::Summarize { to: 7 }, "messages[7]", "a unit is cut"),
        (Wanted::Summarize { to: 10 }, "messages[10]", "protected tail"),
        (Wanted::Summarize { to: 0 }, "messages[0]", "already"),
    ];
    let before = host.engine.render_json();
    let wanted: Vec<Wanted> = cases.iter().map(|case| case.0).collect();
    let (told, outcome) = decided_by_host(&mut host, forced(), &wanted);
    for ((wanted, place, what), told) in cases.iter().zip(&told) {
        let (path, message) = told.as_ref().expect_err(place);
        assert!(path == place && message.contains(what), "{wanted:?}: {path}: {message}");
    }
    assert!(!outcome.compacted, "a refused decision is none");
    assert_eq!(host.engine.render_json(), before);
}

#[test]
fn a_stage_of_the_hosts_that_fails_decides_nothing_and_the_others_go_on() {
    let stages = r#""tail":2,"stages":[{"stage":"custom","name":"mine"},"clear"]"#;
    let mut host = Host::new(&options(100_000, stages));
    host.ingest(&session(&["read"; 6], 100));
    let Step::Effects { effects } = host.engine.plan(forced()).unwrap() else { panic!("asks") };
    let id = effects[0].id();
    host.engine.propose(id, Wanted::Clear { index: 12, part: 0 }).unwrap();
    let failed = Reply::Failed { message: "boom".to_owned() };
    let Step::Done { outcome } = host.engine.resolve(id, failed).unwrap() else { panic!("ends") };
    assert_eq!((outcome.failures[0].effect, &*outcome.failures[0].message), ("decide", "boom"));
    assert_eq!(decided(&outcome, "cleared"), [2, 4, 6]);
    let late = host.engine.propose(id, Wanted::Clear { index: 12, part: 0 }).unwrap_err();
    assert_eq!(late.code().as_str(), "unknown_effect");
}

#[test]
fn a_dry_run_asks_the_hosts_stage_and_decides_nothing() {
    let mut host = small_host("");
    let before = (host.engine.render_json(), host.engine.checkpoint());
    let dry = PlanRequest { dry_run: true, ..forced() };
    let (_, outcome) = decided_by_host(&mut host, dry, &[Wanted::Drop { from: 1, to: 5 }]);
    assert!(outcome.compacted && outcome.tokens_after < outcome.tokens_before);
    assert_eq!((host.engine.render_json(), host.engine.checkpoint()), before);
}

#[test]
fn a_decision_is_read_from_json_or_refused_by_member() {
    let read = |json: &str| {
        Wanted::from_json(json).map_err(|e| (e.code().as_str().to_owned(), e.path().to_owned()))
    };
    let bad = |place: &str| Err(("invalid_decision".to_owned(), place.to_owned()));
    assert_eq!(read(r#"{"kind":"clear","index":3}"#), Ok(Wanted::Clear { index: 3, part: 0 }));
    let offload = Wanted::Offload { index: 3, part: 1, tokens: 200 };
    assert_eq!(read(r#"{"kind":"offload","index":3,"part":1}"#), Ok(offload));
    assert_eq!(read(r#"{"kind":"drop","from":3,"to":5}"#), Ok(Wanted::Drop { from: 3, to: 5 }));
    assert_eq!(read(r#"{"kind":"summarize","to":5}"#), Ok(Wanted::Summarize { to: 5 }));
    assert_eq!(read("{"), bad("decision"));
    assert_eq!(read(r#"{"kind":"undo"}"#), bad("decision.kind"));
    assert_eq!(read(r#"{"kind":"clear"}"#), bad("decision.index"));
    assert_eq!(read(r#"{"kind":"clear","index":-1}"#), bad("decision.index"));
    assert_eq!(read(r#"{"kind":"drop","from":1,"until":2}"#), bad("decision.until"));
}

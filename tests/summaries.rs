//! Summaries: templates, focus, framing, starting over, chunks, and the local summarizer behind
//! them.

mod common;

use common::host::{Host, Mood, good_summary, options};
use common::openai_chat;
use serde_json::{Value, json};
use tidemark::{Effect, Engine, PlanRequest, Protocols, Reply, Step};

fn user(text: &str) -> String {
    json!({"role": "user", "content": text}).to_string()
}

fn says(text: &str) -> String {
    json!({"role": "assistant", "content": text}).to_string()
}

/// A call of a tool and its result.
fn calls(id: usize, name: &str, arguments: &str, output: &str) -> [String; 2] {
    let call = json!({"id": format!("c{id}"), "type": "function",
        "function": {"name": name, "arguments": arguments}});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string(),
        json!({"role": "tool", "tool_call_id": format!("c{id}"), "content": output}).to_string(),
    ]
}

/// An agent at work: so many turns of some 200 tokens each.
fn session(turns: usize) -> Vec<String> {
    let mut all = vec![user("Make the build faster. Never touch the vendor directory.")];
    for turn in 0..turns {
        let arguments = format!(r#"{{"path":"src/part{turn}.rs"}}"#);
        let output = format!("line {turn} of the file says nothing new\n").repeat(12);
        all.extend(calls(turn, "read_file", &arguments, &output));
        all.push(says(&format!("Part {turn} is fine because its cache is warm.")));
    }
    all
}

fn summary(host: &Host) -> Value {
    let state: Value = serde_json::from_str(&host.engine.checkpoint()).unwrap();
    state["summary"].clone()
}

fn text(host: &Host) -> String {
    summary(host)["text"].as_str().unwrap_or_default().to_owned()
}

const SUMMARIZING: &str = r#""window":6000,"stages":["summarize","drop","elide"]"#;

fn host(more: &str) -> Host {
    Host::new(&format!("{{{SUMMARIZING}{more}}}"))
}

#[test]
fn each_template_names_its_sections_to_both_summarizers() {
    let templates = [
        ("task", ["Session intent", "Current state", "Next steps"]),
        ("handoff", ["Active task", "Pending questions", "Remaining"]),
        ("conversation", ["Topic", "Action items", "Preferences"]),
    ];
    for (name, sections) in templates {
        let option = format!(r#","summary":{{"template":"{name}"}}"#);
        let mut local = host(&option);
        let outcome = local.turn(&session(40));
        assert!(outcome.summary.is_some() && outcome.fits, "{name}");
        let mut asked = host(&format!(r#"{option},"summarizer":true"#));
        asked.engine.ingest(0, &format!("[{}]", session(40).join(",")), &[]).unwrap();
        let Step::Effects { effects } = asked.engine.plan(PlanRequest::default()).unwrap() else {
            panic!("a summary is wanted")
        };
        let Effect::Summarize { system, .. } = &effects[0] else { panic!() };
        for section in sections {
            assert!(text(&local).contains(&format!("## {section}\n")), "{}", text(&local));
            assert!(system.contains(&format!("## {section}\n")), "{system}");
        }
        // The rule of the user is in the summary of every template.
        assert!(text(&local).contains("Never touch the vendor directory"), "{}", text(&local));
    }
}

#[test]
fn a_local_summary_goes_on_under_any_template() {
    for template in [
        r#""template":"task""#,
        r#""template":"handoff""#,
        r#""template":"conversation""#,
        r#""sections":["Was wir wollen","Stand","Dateien"]"#,
        r#""sections":[{"name":"All of it","holds":["intent","facts"]}]"#,
    ] {
        let mut host = host(&format!(r#","summary":{{{template}}}"#));
        let all = session(120);
        for end in 1..=all.len() {
            assert!(host.turn(&all[..end]).fits, "{template}");
        }
        let text = text(&host);
        assert!(summary(&host)["version"].as_u64().unwrap() > 3);
        assert_eq!(text.matches("Make the build faster").count(), 1, "{template}\n{text}");
        assert!(text.contains("Never touch the vendor directory"), "{template}\n{text}");
        assert!(!text.contains("Goal: Goal") && !text.contains("Rule: Rule"), "{text}");
        assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
    }
}

#[test]
fn a_summary_of_another_template_is_read_by_its_own_headings() {
    let mut first = host("");
    first.turn(&session(40));
    let more = format!(r#"{{{SUMMARIZING},"summary":{{"template":"handoff"}}}}"#);
    let mut next = Host::restore(&more, &first.engine.checkpoint());
    let outcome = next.turn(&session(60));
    assert!(outcome.summary.is_some());
    let text = text(&next);
    assert!(text.contains("## Active task\n- Goal: Make the build faster."), "{text}");
    assert!(!text.contains("## Session intent"), "{text}");
}

#[test]
fn own_sections_are_asked_for_and_checked() {
    let sections = r#","summarizer":true,"summary":{"sections":["Plan",{"name":"Risks","about":"What may go wrong."}]}"#;
    let mut host = host(sections);
    host.engine.ingest(0, &format!("[{}]", session(40).join(",")), &[]).unwrap();
    let step = host.engine.plan(PlanRequest::default()).unwrap();
    let Step::Effects { effects } = step else { panic!("a summary is wanted") };
    let Effect::Summarize { system, id, .. } = &effects[0] else { panic!() };
    assert!(system.ends_with("## Plan\n## Risks\nWhat may go wrong."), "{system}");
    // The headings of the default template are none of these.
    let step = host.engine.resolve(*id, Reply::Text { text: good_summary("x") }).unwrap();
    let Step::Effects { effects } = step else { panic!("a second try") };
    let Effect::Summarize { prompt, attempt: 2, id, .. } = &effects[0] else { panic!() };
    assert!(prompt.contains("Plan, Risks"), "{prompt}");
    let text = "## Plan\n- go on\n## Risks\n- none".to_owned();
    host.engine.resolve(*id, Reply::Text { text }).unwrap();
    assert!(host.engine.checkpoint().contains("- go on"));
}

#[test]
fn templates_and_sections_that_make_no_sense_are_refused() {
    for (summary, path) in [
        (r#"{"template":"novel"}"#, "options.summary.template"),
        (r#"{"template":"task","sections":["A"]}"#, "options.summary.sections"),
        (r#"{"sections":[]}"#, "options.summary.sections"),
        (r#"{"sections":["A","a"]}"#, "options.summary.sections"),
        (r#"{"sections":[{"name":"A","holds":["jokes"]}]}"#, "options.summary.sections"),
    ] {
        let error = Engine::new(options(&format!(r#"{{"summary":{summary}}}"#))).err().unwrap();
        assert_eq!(error.path(), path, "{summary}");
    }
}

#[test]
fn focus_decides_what_the_local_summarizer_keeps() {
    let mut all = session(0);
    for turn in 0..60 {
        let command = format!(r#"{{"command":"step {turn}"}}"#);
        let output = match turn {
            7 => "zookeeper answers on port 2181 only\n".to_owned(),
            _ => format!("step {turn} printed something of no interest at all\n").repeat(9),
        };
        all.extend(calls(turn, "bash", &command, &output));
        all.push(says(&format!("Step {turn} is done because nothing went wrong with it.")));
    }
    let mut plain = host("");
    plain.turn(&all);
    let mut focused = host(r#","summary":{"focus":"the zookeeper port"}"#);
    focused.turn(&all);
    assert!(!text(&plain).contains("2181 only"), "{}", text(&plain));
    assert!(text(&focused).contains("zookeeper answers on port 2181 only"), "{}", text(&focused));
    // The request's own focus takes the place of the option's.
    let mut asked = host(r#","summarizer":true,"summary":{"focus":"the zookeeper port"}"#);
    asked.ingest(&all);
    asked.plan(PlanRequest { focus: Some("the linker".into()), ..PlanRequest::default() });
    assert!(asked.prompts[0].contains("Give the most room to: the linker."));
    assert!(!asked.prompts[0].contains("Give the most room to: the zookeeper"));
}

#[test]
fn the_framing_of_the_summary_is_the_hosts_to_choose() {
    let mut own = host(r#","summary":{"prefix":"Notes of the archivist."}"#);
    own.turn(&session(40));
    let view = own.view()[0]["content"].as_str().unwrap().to_owned();
    assert!(
        view.starts_with("<conversation_summary>\nNotes of the archivist. recall(ref="),
        "{view}"
    );
    let mut bare = host(r#","summary":{"prefix":""},"recall":false"#);
    bare.turn(&session(40));
    let view = bare.view()[0]["content"].as_str().unwrap().to_owned();
    assert!(view.starts_with("<conversation_summary>\n\n\n## Session intent"), "{view}");
    // A long one still leaves a view that fits.
    let long = "This is background. ".repeat(60);
    let mut long = host(&format!(r#","summary":{{"prefix":"{long}"}}"#));
    assert!(long.turn(&session(40)).fits);
}

#[test]
fn starting_over_leaves_the_previous_summary_out() {
    for own in [true, false] {
        let option = format!(r#","summarizer":true,"summary":{{"fresh":{own}}}"#);
        let mut host = host(&option);
        let all = session(60);
        for end in 1..=all.len() {
            assert!(host.turn(&all[..end]).fits);
        }
        let folds = summary(&host)["version"].as_u64().unwrap();
        assert!(folds > 2, "{folds}");
        let later = &host.prompts[host.prompts.len() / 2..];
        let first = later.iter().filter(|prompt| prompt.contains("Make the build faster")).count();
        assert_eq!(first > 0, own, "the first message is read again");
        assert_eq!(summary(&host)["by"], "host");
    }
}

#[test]
fn a_summary_that_starts_over_in_chunks_is_taken_once_it_is_whole() {
    let mut host = host(r#","summarizer":true"#);
    let all = session(24);
    host.turn(&all);
    let before = summary(&host);
    let covered = before["covered"].as_u64().unwrap();
    // A summarizer with a small window needs several calls to start over.
    let small =
        format!(r#"{{{SUMMARIZING},"summarizer":true,"summary":{{"window":2000,"maxCalls":30}}}}"#);
    let mut again = Host::restore(&small, &host.engine.checkpoint());
    let json = format!("[{}]", session(30).join(","));
    again.engine.ingest(0, &json, &[]).unwrap();
    let request = PlanRequest { force: true, fresh: true, ..PlanRequest::default() };
    let mut step = again.engine.plan(request).unwrap();
    let mut spans = Vec::new();
    while let Step::Effects { effects } = &step {
        let Effect::Summarize { id, from, to, prompt, .. } = &effects[0] else { panic!() };
        assert_eq!(
            spans.is_empty(),
            !prompt.contains("<summary-"),
            "from nothing, then from drafts"
        );
        if u64::from(*to) < covered {
            assert_eq!(summary(&again), before, "nothing is taken yet");
        }
        spans.push((*from, *to));
        step = again.engine.resolve(*id, Reply::Text { text: good_summary("new") }).unwrap();
    }
    assert!(spans.len() > 2, "{spans:?}");
    assert_eq!(spans[0].0, 0);
    assert!(spans.windows(2).all(|two| two[0].1 == two[1].0), "{spans:?}");
    assert!(summary(&again)["covered"].as_u64().unwrap() >= covered);
    assert!(text(&again).contains("new") && !text(&again).contains("noted"));
}

#[test]
fn starting_over_with_too_few_calls_goes_on_instead() {
    let mut host = host(r#","summarizer":true"#);
    host.turn(&session(24));
    let small =
        format!(r#"{{{SUMMARIZING},"summarizer":true,"summary":{{"window":2000,"maxCalls":2}}}}"#);
    let mut again = Host::restore(&small, &host.engine.checkpoint());
    again.ingest(&session(30));
    let outcome = again.plan(PlanRequest { force: true, fresh: true, ..PlanRequest::default() });
    assert!(again.prompts.len() <= 2, "a cap is a cap");
    assert!(again.prompts[0].contains("<summary-"), "from the summary there is");
    assert!(outcome.fits && outcome.compacted);
}

#[test]
fn a_failure_while_starting_over_leaves_the_whole_to_the_local_summarizer() {
    let mut host = host(r#","summarizer":true"#);
    host.turn(&session(24));
    let covered = summary(&host)["covered"].as_u64().unwrap();
    let small =
        format!(r#"{{{SUMMARIZING},"summarizer":true,"summary":{{"window":2000,"maxCalls":30}}}}"#);
    let mut again = Host::restore(&small, &host.engine.checkpoint());
    again.mood = Mood::Throws;
    again.ingest(&session(30));
    again.plan(PlanRequest { force: true, fresh: true, ..PlanRequest::default() });
    assert_eq!(summary(&again)["by"], "local");
    assert!(summary(&again)["covered"].as_u64().unwrap() >= covered);
    assert!(text(&again).contains("Make the build faster"));
}

#[test]
fn what_recall_brought_back_is_not_summarized_again() {
    let mut all = session(6);
    let page = "[read_file result in message 4: characters 0 to 900 of 900]\nzebra stripes\n";
    all.extend(calls(90, "recall", r#"{"ref":"0123456789ab"}"#, &page.repeat(8)));
    all.push(says("The stripes of the zebra are known now."));
    all.extend(session(30).split_off(1));
    let mut asked = host(r#","summarizer":true"#);
    asked.turn(&all);
    let prompts = asked.prompts.join("\n");
    assert!(!prompts.contains("zebra stripes") && !prompts.contains("0123456789ab"));
    assert!(prompts.contains("The stripes of the zebra are known now."));
    let mut local = host("");
    local.turn(&all);
    assert!(!text(&local).contains("0123456789ab"), "{}", text(&local));
    // A tool of that name that is not ours is a tool.
    let mut other = host(r#","summarizer":true,"recall":{"name":"memory"}"#);
    other.turn(&all);
    assert!(other.prompts.join("\n").contains("zebra stripes"));
}

#[test]
fn protocols_take_the_place_of_ours_one_by_one() {
    let all = session(40);
    let with = |protocols: Protocols, more: &str| {
        let mut host = host(more);
        host.engine.set_protocols(protocols);
        let outcome = host.turn(&all);
        (host, outcome)
    };
    let format = Protocols {
        format: Some(Box::new(|pieces| Ok(format!("{} pieces", pieces.len())))),
        ..Protocols::default()
    };
    let (asked, _) = with(format, r#","summarizer":true"#);
    assert!(asked.prompts[0].contains(" pieces\n</transcript-"), "{}", asked.prompts[0]);
    let prune = Protocols {
        prune: Some(Box::new(|result| Ok(format!("pruned {}", result.text.len())))),
        ..Protocols::default()
    };
    let (asked, _) = with(prune, r#","summarizer":true"#);
    assert!(asked.prompts[0].contains("pruned ") && !asked.prompts[0].contains("nothing new"));
    let build = Protocols {
        build: Some(Box::new(|request| {
            assert_eq!(request.sections.len(), 6);
            Ok(format!("Built of {} pieces.", request.pieces.len()))
        })),
        ..Protocols::default()
    };
    let (built, outcome) = with(build, "");
    assert!(text(&built).starts_with("Built of "), "{}", text(&built));
    assert!(outcome.failures.is_empty());
    let validate = Protocols {
        validate: Some(Box::new(|request| {
            Ok((!request.text.contains("42")).then(|| "the answer is missing".to_owned()))
        })),
        ..Protocols::default()
    };
    let (checked, outcome) = with(validate, r#","summarizer":true"#);
    assert!(checked.prompts[1].contains("the answer is missing"), "{}", checked.prompts[1]);
    assert_eq!(outcome.failures[0].code, "refused");
    assert_eq!(outcome.summary.unwrap().by.as_str(), "local");
}

#[test]
fn a_protocol_that_fails_is_reported_once_and_ours_goes_on() {
    let fails = || "broken".to_owned();
    let protocols = Protocols {
        format: Some(Box::new(move |_| Err(fails()))),
        prune: Some(Box::new(move |_| Err(fails()))),
        build: Some(Box::new(move |_| Err(fails()))),
        validate: Some(Box::new(move |_| Err(fails()))),
    };
    let mut plain = host(r#","summarizer":true"#);
    plain.turn(&session(40));
    let mut broken = host(r#","summarizer":true"#);
    broken.engine.set_protocols(protocols);
    let outcome = broken.turn(&session(40));
    assert_eq!(broken.engine.render_json(), plain.engine.render_json());
    let mut failed: Vec<_> = outcome.failures.iter().map(|failure| failure.effect).collect();
    failed.sort_unstable();
    assert_eq!(failed, ["format", "prune", "validate"]);
    assert!(outcome.failures.iter().all(|failure| failure.message == "broken"));
}

#[test]
fn what_a_protocol_gives_is_held_to_its_bounds() {
    // A build that is too long or blank, and a format that is endless, are no way out of the budget.
    for built in ["word ".repeat(50_000), "  ".to_owned()] {
        let protocols =
            Protocols { build: Some(Box::new(move |_| Ok(built.clone()))), ..Protocols::default() };
        let mut host = host("");
        host.engine.set_protocols(protocols);
        let outcome = host.turn(&session(40));
        assert!(outcome.fits && text(&host).contains("Make the build faster"));
        assert_eq!(outcome.failures[0].effect, "build");
    }
    let protocols = Protocols {
        format: Some(Box::new(|_| Ok("endless text ".repeat(100_000)))),
        ..Protocols::default()
    };
    let mut host = host(r#","summarizer":true"#);
    host.engine.set_protocols(protocols);
    assert!(host.turn(&session(40)).fits);
    assert!(host.prompts.iter().all(|prompt| prompt.len() < 30_000));
}

#[test]
fn a_prompt_that_is_appended_goes_behind_the_view_as_it_was_sent() {
    let option = r#","summarizer":true,"store":true,"summary":{"request":"append"}"#;
    let mut host =
        Host::new(&format!(r#"{{"window":8000,"stages":["clear","summarize","elide"]{option}}}"#));
    let all = session(60);
    let mut asked = 0;
    let mut last = String::new();
    for end in 1..=all.len() {
        host.ingest(&all[..end]);
        let mut step = host.engine.plan(PlanRequest::default()).unwrap();
        while let Step::Effects { effects } = step {
            let Effect::Summarize { id, system, prompt, view, to, .. } = &effects[0] else {
                panic!()
            };
            let view = view.as_ref().expect("it fits");
            assert!(system.is_empty() && !prompt.contains("<transcript"), "{prompt}");
            assert!(prompt.contains("## Session intent\n") && prompt.contains("Stop here"));
            // Every message of it stands in what was sent last, and nothing of the tail does.
            let newest = all[*to as usize - 1].as_str();
            let mut shown = String::new();
            for item in view {
                match item {
                    tidemark::Item::Run { from, to } => {
                        shown += &all[*from as usize..*to as usize].join(",");
                        shown.push(',');
                    }
                    tidemark::Item::Insert { json } => shown += &format!("{json},"),
                    tidemark::Item::Patch { index, .. } => {
                        // A result that was cleared in an earlier burst.
                        shown += &format!("patch {index},");
                    }
                }
            }
            if !shown.contains("patch ") {
                assert!(last.contains(shown.trim_end_matches(',')), "a prefix of what was sent");
                assert!(shown.trim_end_matches(',').ends_with(newest));
            }
            asked += 1;
            step = host.engine.resolve(*id, Reply::Text { text: good_summary("noted") }).unwrap();
        }
        last = host.engine.render_json();
    }
    assert!(asked > 1, "{asked}");
    assert_eq!(summary(&host)["by"], "host");
}

#[test]
fn what_cannot_be_appended_stands_alone() {
    for (option, request) in [
        // Too large for the summarizer's own window.
        (r#","summary":{"request":"append","window":2000}"#, PlanRequest::default()),
        (
            r#","summary":{"request":"append"}"#,
            PlanRequest {
                overflow: Some(tidemark::Overflow {
                    status: Some(400),
                    body: "maximum context length is 4000 tokens, you requested 9000 tokens".into(),
                }),
                ..PlanRequest::default()
            },
        ),
    ] {
        let mut host = host(&format!(r#"{option},"summarizer":true"#));
        host.ingest(&session(40));
        let Step::Effects { effects } = host.engine.plan(request).unwrap() else { panic!() };
        let Effect::Summarize { system, view: None, .. } = &effects[0] else { panic!() };
        assert!(!system.is_empty());
    }
}

#[test]
fn a_request_of_no_known_shape_is_refused() {
    let error = tidemark::Options::from_json(r#"{"summary":{"request":"both"}}"#).err().unwrap();
    assert_eq!(error.path(), "options.summary.request");
}

#[test]
fn the_history_of_summaries_is_kept_and_bounded() {
    let mut host = host(r#","summarizer":true"#);
    host.mood = Mood::Fickle(3);
    let all = session(500);
    let mut known: Vec<tidemark::SummaryVersion> = Vec::new();
    for end in 1..=all.len() {
        host.turn(&all[..end]);
        let now = host.engine.summaries();
        if now.len() > known.len() {
            assert_eq!(now[..known.len()], known[..], "history is not rewritten");
        }
        known = now;
    }
    assert!(known.windows(2).all(|two| two[0].version + 1 == two[1].version));
    assert!(known.windows(2).all(|two| two[0].covered < two[1].covered));
    assert!(known.len() <= 33 && known.last().unwrap().version > 33, "{}", known.len());
    let by: Vec<_> = known.iter().map(|version| version.by.as_str()).collect();
    assert!(by.contains(&"host") && by.contains(&"local"), "{by:?}");
    // It survives a checkpoint, and each names messages that recall finds.
    let json = format!("{{{SUMMARIZING}}}");
    let mut restored = Host::restore(&json, &host.engine.checkpoint());
    restored.ingest(&all);
    assert_eq!(restored.engine.summaries(), known);
    for version in known {
        let page = common::build::recalled(&restored.engine, &version.reference);
        assert!(page.contains("Make the build faster"));
    }
}

#[test]
fn a_checkpoint_of_before_the_history_is_read() {
    let mut host = host("");
    host.turn(&session(40));
    host.turn(&session(60));
    let new = host.engine.checkpoint();
    let from = new.find(r#","spans":[["#).unwrap();
    let row = &new[from..from + new[from..].find("]]").unwrap() + 2];
    let short = format!("{}]]", row.rsplitn(3, ',').last().unwrap());
    let restored = Host::restore(&format!("{{{SUMMARIZING}}}"), &new.replace(row, &short));
    assert_eq!(restored.engine.summaries()[0].version, 0);
    assert_eq!(restored.engine.summaries()[0].covered, host.engine.summaries()[0].covered);
}

#[test]
fn the_hook_before_a_burst_may_veto_it() {
    let mut host = host(r#","beforeBurst":true"#);
    host.go = Some(Reply::Go { veto: true, pins: vec![0] });
    let all = session(40);
    host.ingest(&all);
    let before = host.engine.render_json();
    let outcome = host.plan(PlanRequest::default());
    assert_eq!(outcome.reason, tidemark::Reason::Vetoed);
    assert!(!outcome.compacted && !outcome.fits, "it says that it does not fit");
    assert_eq!(host.engine.render_json(), before);
    let Effect::Burst { cause: "size", tokens, target, .. } = &host.bursts[0] else { panic!() };
    assert!(tokens > target);
    host.go = Some(Reply::Go { veto: false, pins: Vec::new() });
    assert!(host.plan(PlanRequest::default()).compacted);
    // A dry run asks nobody.
    let asked = host.bursts.len();
    host.plan(PlanRequest { dry_run: true, force: true, ..PlanRequest::default() });
    assert_eq!(host.bursts.len(), asked);
    // Under the trigger there is nothing to ask for.
    host.plan(PlanRequest::default());
    assert_eq!(host.bursts.len(), asked);
}

#[test]
fn the_hook_before_a_burst_may_pin_messages_for_good() {
    let mut host = host(r#","beforeBurst":true"#);
    let all = session(60);
    // The third answer, once it is no longer new.
    let pinned = 9;
    host.go = Some(Reply::Go { veto: false, pins: vec![pinned, 1_000_000] });
    for end in 1..=all.len() {
        host.turn(&all[..end]);
    }
    assert!(host.bursts.len() > 2);
    let shown = |host: &Host| host.engine.render_json().contains(&all[pinned as usize]);
    assert!(shown(&host));
    assert!(!host.engine.render_json().contains(&all[pinned as usize + 3]), "others are folded");
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
    let mut restored = Host::restore(&format!("{{{SUMMARIZING}}}"), &host.engine.checkpoint());
    restored.ingest(&all);
    assert!(shown(&restored));
    assert_eq!(restored.engine.render_json(), host.engine.render_json());
    assert_eq!(restored.engine.checkpoint(), host.engine.checkpoint());
}

#[test]
fn what_a_hook_pinned_is_found_again_where_it_stands_now() {
    let all = session(60);
    let pinned = 9;
    let mut host = host(r#","beforeBurst":true"#);
    host.go = Some(Reply::Go { veto: false, pins: vec![pinned as u32] });
    host.turn(&all[..90]);
    assert!(!host.bursts.is_empty());
    host.go = Some(Reply::Go { veto: false, pins: Vec::new() });
    let checkpoint = host.engine.checkpoint();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut changed = all.clone();
        change(&mut changed);
        changed
    };
    let moved = [
        with(&|all| all.insert(3, user("one more thing"))),
        with(&|all| drop(all.drain(1..4))),
        with(&|all| all[2] = says("Something else.")),
        with(&|all| all.swap(pinned, pinned - 3)),
    ];
    for changed in moved {
        let json = format!("[{}]", changed.join(","));
        let mut live = Host::restore(&format!("{{{SUMMARIZING}}}"), &checkpoint);
        live.ingest(&all[..90]);
        let mut restored = Host::restore(&format!("{{{SUMMARIZING}}}"), &checkpoint);
        for host in [&mut live, &mut restored] {
            host.engine.ingest(0, &json, &[]).unwrap();
            for _ in 0..3 {
                host.plan(PlanRequest { force: true, ..PlanRequest::default() });
                assert!(host.engine.render_json().contains(&all[pinned]));
            }
            // Handed over again, it is known as it is.
            host.engine.ingest(0, &json, &[]).unwrap();
            assert!(host.engine.render_json().contains(&all[pinned]));
            assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
        }
        assert_eq!(live.engine.checkpoint(), restored.engine.checkpoint());
    }
    // What is no longer there is let go, and said to be.
    let edited = with(&|all| all[pinned] = says("Something else."));
    host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
    let outcome = host.plan(PlanRequest { force: true, ..PlanRequest::default() });
    assert!(outcome.notices.iter().any(|notice| notice.code == "decisions_dropped"));
    assert!(!host.engine.checkpoint().contains("\"pins\""));
}

#[test]
fn a_hook_that_fails_lets_the_burst_begin() {
    let mut host = host(r#","beforeBurst":true"#);
    host.go = None;
    let outcome = host.turn(&session(40));
    assert!(outcome.compacted && outcome.fits);
    assert_eq!((outcome.failures[0].effect, outcome.failures[0].code), ("burst", "host"));
}

#[test]
fn each_message_is_handed_over_once_before_it_is_folded() {
    for summarizer in [true, false] {
        let mut host = host(&format!(r#","flush":true,"summarizer":{summarizer}"#));
        host.mood = Mood::Fickle(1);
        host.store_flaky = Some(7);
        let all = session(120);
        for end in 1..=all.len() {
            assert!(host.turn(&all[..end]).fits);
        }
        assert!(host.flushed.len() > 2);
        assert_eq!(host.flushed[0].0, 0);
        let joined = host.flushed.windows(2).all(|two| two[0].1 == two[1].0);
        assert!(joined, "each message once, none left out");
        let covered = summary(&host)["covered"].as_u64().unwrap();
        assert!(u64::from(host.flushed.last().unwrap().1) >= covered);
        assert!(host.flushed[0].2.contains("line 0 of the file says nothing new"));
        // A restored session does not begin again.
        let json = format!(r#"{{{SUMMARIZING},"flush":true}}"#);
        let mut restored = Host::restore(&json, &host.engine.checkpoint());
        let more = session(160);
        restored.turn(&more);
        assert_eq!(restored.flushed[0].0, host.flushed.last().unwrap().1);
    }
}

#[test]
fn each_message_is_handed_over_once_before_it_is_dropped() {
    for stages in [r#""drop""#, r#"{"stage":"smart","at":0.6},"drop""#, r#""summarize","drop""#] {
        let mut host = Host::new(&format!(
            r#"{{"window":4000,"tail":100,"flush":true,"stages":[{stages},"elide"]}}"#
        ));
        let all = session(120);
        for end in 1..=all.len() {
            let outcome = host.turn(&all[..end]);
            let gone = outcome.decisions.iter().filter_map(|decided| decided.to).max();
            let handed = host.flushed.last().map_or(0, |flushed| flushed.1);
            assert!(gone <= Some(handed), "{stages}: {gone:?} left, {handed} were handed over");
        }
        assert!(host.flushed.len() > 1, "{stages}");
        assert_eq!(host.flushed[0].0, 0);
        assert!(host.flushed.windows(2).all(|two| two[0].1 == two[1].0), "{stages}: each once");
        assert!(host.flushed[0].2.contains("line 0 of the file says nothing new"));
    }
}

#[test]
fn what_a_stage_of_the_hosts_drops_is_handed_over() {
    let json = r#"{"window":9000,"flush":true,"stages":[{"stage":"custom","at":2}]}"#;
    let mut host = Host::new(json);
    host.ingest(&session(40));
    let Step::Effects { effects } = host.engine.plan(PlanRequest::default()).unwrap() else {
        panic!("a stage is asked")
    };
    let Effect::Decide { id, context, .. } = &effects[0] else { panic!("{effects:?}") };
    let (from, to) = (context.units[1].from, context.units[6].to);
    host.engine.propose(*id, tidemark::Wanted::Drop { from, to }).unwrap();
    let Step::Effects { effects } = host.engine.resolve(*id, Reply::Done).unwrap() else {
        panic!("the text is handed over")
    };
    assert!(matches!(&effects[..], [Effect::Flush { from: 0, to: end, .. }] if *end == to));
    let busy = Reply::Failed { message: "busy".to_owned() };
    let Step::Done { outcome } = host.engine.resolve(effects[0].id(), busy).unwrap() else {
        panic!("nothing else is to be done")
    };
    assert!(outcome.compacted, "whatever the hook does");
    assert_eq!(outcome.failures[0].effect, "flush");
}

#[test]
fn a_reply_of_the_wrong_kind_is_refused_and_waited_for() {
    let mut host = host(r#","beforeBurst":true,"flush":true"#);
    host.ingest(&session(40));
    let Step::Effects { effects } = host.engine.plan(PlanRequest::default()).unwrap() else {
        panic!()
    };
    let error = host.engine.resolve(effects[0].id(), Reply::Done).unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_reply");
    let go = Reply::from_json(r#"{"kind":"go","pins":[2]}"#).unwrap();
    assert_eq!(go, Reply::Go { veto: false, pins: vec![2] });
    let Step::Effects { effects } = host.engine.resolve(effects[0].id(), go).unwrap() else {
        panic!()
    };
    let text = Reply::Text { text: "x".into() };
    assert!(host.engine.resolve(effects[0].id(), text).is_err());
    assert!(Reply::from_json(r#"{"kind":"go","pins":["x"]}"#).is_err());
    let Step::Done { outcome } = host.engine.resolve(effects[0].id(), Reply::Done).unwrap() else {
        panic!("the local summarizer needs no host")
    };
    assert!(outcome.fits);
}

#[test]
fn a_window_that_one_session_learned_serves_another() {
    let json = r#"{"model":"m","endpoint":"e"}"#;
    let mut first = Host::new(json);
    first.ingest(&session(60));
    let body =
        "This model's maximum context length is 6000 tokens, however you requested 9000 tokens";
    let overflow = tidemark::Overflow { status: Some(400), body: body.into() };
    first.plan(PlanRequest { overflow: Some(overflow), ..PlanRequest::default() });
    assert_eq!(first.engine.learned_window(), Some(6000));
    let mut second = Host::new(json);
    assert_eq!(second.engine.window_key().model, "m");
    second.engine.share_window(6000);
    assert!(second.turn(&session(60)).compacted, "before any overflow of its own");
    for odd in [0, 5, u32::MAX] {
        second.engine.share_window(odd);
        assert_eq!(second.engine.learned_window(), Some(6000), "{odd} is no window");
    }
}

#[test]
fn a_summarizer_that_rests_is_tried_again_after_turns_or_growth() {
    let options = r#","summarizer":true,"summary":{"maxFailures":1}"#;
    for many in [false, true] {
        let mut host = host(options);
        host.mood = Mood::Throws;
        let mut turns = 40;
        host.turn(&session(turns));
        let asked = host.prompts.len();
        host.mood = Mood::Good;
        // One plan over a few messages leaves it alone.
        turns += if many { 40 } else { 14 };
        host.turn(&session(turns));
        assert_eq!(host.prompts.len() > asked, many, "{turns}");
        // Many plans wake it as well.
        for _ in 0..30 {
            turns += 1;
            host.turn(&session(turns));
        }
        assert!(host.prompts.len() > asked);
    }
}

#[test]
fn reasoning_is_not_summarized() {
    let mut all = session(6);
    all.push(
        json!({"role": "assistant", "content": "Fine.", "reasoning_content":
            "I secretly think of purple elephants in src/elephant.rs"})
        .to_string(),
    );
    all.extend(session(30).split_off(1));
    let mut asked = host(r#","summarizer":true"#);
    asked.turn(&all);
    assert!(asked.prompts.iter().all(|prompt| !prompt.contains("elephant")));
    let mut local = host("");
    local.turn(&all);
    assert!(!text(&local).contains("elephant"), "{}", text(&local));
}

#[test]
fn a_session_in_another_language_keeps_request_rule_and_question() {
    let languages = [
        (
            "Bitte baue den Kalender um. Du darfst niemals die Tabelle termine löschen.",
            "niemals die Tabelle termine löschen",
            "Soll ich auch src/kalender.rs umbenennen?",
        ),
        (
            "请重写日历模块。不要删除 termine 表。",
            "不要删除 termine 表",
            "要不要也重命名 src/kalender.rs？",
        ),
        (
            "Перепиши календарь. Никогда не удаляй таблицу termine.",
            "Никогда не удаляй таблицу termine",
            "Переименовать ли src/kalender.rs?",
        ),
    ];
    for (request, rule, question) in languages {
        for template in ["task", "handoff", "conversation"] {
            let mut all = vec![user(request)];
            all.extend(session(16).split_off(1));
            all.push(says(question));
            let mut host = host(&format!(r#","summary":{{"template":"{template}"}},"tail":2"#));
            host.ingest(&all);
            all.push(user("ok"));
            host.ingest(&all);
            host.plan(PlanRequest { force: true, ..PlanRequest::default() });
            let view = host.engine.render_json();
            assert!(view.contains(rule), "{template} {view}");
            assert!(view.contains(question), "{template} {view}");
        }
    }
}

/// In one format: words of the user, then two calls, of which the second failed and says so by its
/// format alone.
fn failing(format: &str) -> Vec<Value> {
    let quota = "quota of the volume is used up ".repeat(60);
    let fine = "the volume was read ".repeat(60);
    let say = |role: &str| match format {
        "gemini" => json!({"role": if role == "user" { role } else { "model" },
            "parts": [{"text": "and so on"}]}),
        "openai-responses" => json!({"type": "message", "role": role, "content": "and so on"}),
        _ => json!({"role": role, "content": "and so on"}),
    };
    let mut all = vec![say("user")];
    for (id, failed, text) in [("call_a", false, &fine), ("call_b", true, &quota)] {
        let pair = match format {
            "anthropic" => [
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": id, "name": "bash", "input": {"command": id}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id,
                    "is_error": failed, "content": text}]}),
            ],
            "gemini" => [
                json!({"role": "model", "parts": [
                    {"functionCall": {"name": "bash", "args": {"command": id}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "bash", "response":
                    if failed { json!({"error": text}) } else { json!({"output": text, "error": null}) }
                }}]}),
            ],
            "openai-responses" => [
                json!({"type": "function_call", "call_id": id, "name": "bash",
                    "arguments": format!("{{\"command\":\"{id}\"}}")}),
                json!({"type": "function_call_output", "call_id": id, "output": text,
                    "status": if failed { "incomplete" } else { "completed" }}),
            ],
            _ => [
                json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": id,
                    "toolName": "bash", "input": {"command": id}}]}),
                json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id,
                    "toolName": "bash", "output":
                    {"type": if failed { "error-text" } else { "text" }, "value": text}}]}),
            ],
        };
        all.extend(pair);
    }
    all.extend([say("assistant"), say("user")]);
    all
}

#[test]
fn a_failure_is_known_as_one_in_every_format() {
    for format in ["anthropic", "gemini", "openai-responses", "ai-sdk"] {
        let all: Vec<String> = failing(format).iter().map(Value::to_string).collect();
        let forced = || PlanRequest { force: true, ..PlanRequest::default() };
        let new = |more: &str| {
            let mut host = Host::new(&format!(
                r#"{{"format":"{format}","window":100000,"tail":2,"recall":false,{more}}}"#
            ));
            host.ingest(&all);
            host
        };
        // Stages may spare it.
        let mut host = new(r#""stages":[{"stage":"clear","keepLast":0,"keepErrors":true}]"#);
        let cleared: Vec<u32> = host.plan(forced()).decisions.iter().map(|one| one.index).collect();
        assert_eq!(cleared, [2], "{format}");
        // The host's own formatter is told, and so is the summarizer.
        let mut host = new(r#""summarizer":true,"stages":["summarize"]"#);
        host.plan(forced());
        let prompt = &host.prompts[0];
        assert_eq!(prompt.matches("[bash result, failed] ").count(), 1, "{format}: {prompt}");
        assert_eq!(prompt.matches("[bash result] ").count(), 1, "{format}: {prompt}");
        let mut host = new(r#""summarizer":true,"stages":["summarize"]"#);
        host.engine.set_protocols(Protocols {
            format: Some(Box::new(|pieces| {
                let failed = pieces.iter().filter(|piece| piece.failed);
                Ok(failed.map(|piece| format!("failed: {}", &piece.text[..24])).collect())
            })),
            ..Protocols::default()
        });
        host.plan(forced());
        let told = host.prompts[0].matches("failed: ").count();
        assert!(told == 1 && host.prompts[0].contains("quota of"), "{format}: {}", host.prompts[0]);
        // The local summarizer says what failed.
        let mut host = new(r#""stages":["summarize"]"#);
        host.plan(forced());
        let text = text(&host);
        assert!(text.contains("Ran: `call_b` -> failed"), "{format}: {text}");
        assert!(!text.contains("Ran: `call_a` -> failed"), "{format}: {text}");
    }
}

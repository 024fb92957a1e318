//! Scenarios of the compaction pipeline, by their ids in `SCENARIOS.md`.

mod common;

use common::build::*;
use common::host::{self, Host, Mood, good_summary};
use common::openai_chat;
use serde_json::Value;
use tidemark::{Effect, Engine, Item, Outcome, Overflow, PlanRequest, Reason, Reply, Step};

/// The host's summarizer writes `noted`.
const WITH_SUMMARIZER: &str = "\"summarizer\":true";

fn tools(words: usize) -> String {
    let text = long("schema", words);
    format!(
        "[{{\"type\":\"function\",\"function\":{{\"name\":\"t\",\"description\":\"{text}\"}}}}]"
    )
}

fn problems(host: &Host) -> Vec<String> {
    openai_chat::problems(&host.view())
}

/// The running summary, if the view opens with one that the host's summarizer wrote.
fn has_summary(host: &Host) -> bool {
    let view = host.view();
    let head = view.iter().find(|message| message["role"] != "system");
    let text = head.and_then(|head| head["content"].as_str()).unwrap_or_default();
    head.is_some_and(|head| head["role"] == "user") && text.contains("- noted")
}

/// A host whose view opens with a summary, and its messages.
fn summarized() -> (Host, Vec<String>) {
    let all = chat(31, 100);
    let mut host = Host::new(&options(3_600, WITH_SUMMARIZER));
    let outcome = host.turn(&all);
    assert_eq!(outcome.stages, ["summarize"]);
    assert!(has_summary(&host));
    (host, all)
}

fn window(host: &Host) -> Option<u32> {
    host.engine.estimate().window
}

#[test]
fn p01_bad_options_name_themselves() {
    for (json, place) in [
        (r#"{"compactAt":1.5}"#, "options.compactAt"),
        (r#"{"compactAt":0.6,"compactTo":0.6}"#, "options.compactTo"),
        (r#"{"window":0}"#, "options.window"),
        (r#"{"tail":0}"#, "options.tail"),
        (r#"{"reserve":-1}"#, "options.reserve"),
    ] {
        let error = Engine::new(host::options(json)).err().expect(json);
        assert_eq!((error.code().as_str(), error.path()), ("invalid_option", place));
    }
}

#[test]
fn p02_without_stages_the_view_is_the_transcript() {
    let all = chat(31, 100);
    let mut host = Host::new(&options(3_600, "\"stages\":[]"));
    let outcome = host.turn(&all);
    assert!(!outcome.compacted && outcome.fits);
    let run = Item::Run { from: 0, to: 31 };
    assert_eq!(host.engine.render(u32::MAX, 0, 0).items, [run]);

    // Over the hard limit that is said, with the size that was reached.
    let mut host = Host::new(&options(2_000, "\"stages\":[]"));
    let outcome = host.turn(&all);
    assert_eq!((outcome.reason, outcome.fits), (Reason::CannotFit, false));
    assert_eq!(outcome.smallest, Some(outcome.tokens_after));
}

#[test]
fn p03_a_message_is_read_again_only_where_it_changed() {
    let all = chat(9, 50);
    let mut host = Host::new(&options(100_000, ""));
    host.turn(&all);
    let first = host.engine.render(u32::MAX, 0, 0);
    let stamp = |host: &mut Host| host.engine.render(first.epoch, first.unit, first.items_before);
    host.ingest(&all);
    assert_eq!(stamp(&mut host).keep, 8, "all but the newest stand");
    let mut longer = all.clone();
    longer[8] = said(8, 90);
    host.ingest(&longer);
    assert_eq!(host.engine.estimate().tokens, size(&longer));
    // A rewritten old message of the same length is seen too.
    let edited = all[2].replace("m2", "x2");
    host.engine.ingest(0, &format!("[{},{},{edited}]", all[0], all[1]), &[]).unwrap();
    assert_eq!(shown(&host)[2], edited);
}

#[test]
fn p04_a_large_window_leaves_everything_by_reference() {
    let all = pairs(8, 400);
    let mut host = Host::new(&options(1_000_000, WITH_SUMMARIZER));
    let outcome = host.turn(&all);
    assert_eq!(outcome.reason, Reason::UnderTrigger);
    assert_eq!(host.engine.render(u32::MAX, 0, 0).items, [Item::Run { from: 0, to: 17 }]);
    assert!(host.prompts.is_empty());
}

#[test]
fn p05_no_window_no_proactive_work_but_a_notice() {
    let all = pairs(40, 400);
    let mut host = Host::new("{}");
    host.turn(&all);
    let outcome = host.plan(used(2 * size(&all)));
    assert_eq!((outcome.reason, outcome.compacted), (Reason::UnknownWindow, false));
    assert!(outcome.notices.iter().any(|notice| notice.code == "unknown_window"));
}

#[test]
fn p06_a_reserve_over_the_window_leaves_half_of_it() {
    let all = chat(29, 25);
    let mut host = Host::new(
        r#"{"window":1000,"reserve":5000,"summarizer":true,"summary":{"maxTokens":125}}"#,
    );
    let outcome = host.turn(&all);
    assert!(outcome.tokens_before > 900, "{}", outcome.tokens_before);
    assert_eq!(outcome.usable, Some(500));
    assert!(outcome.compacted && outcome.fits && has_summary(&host));
    assert!(!host.prompts.is_empty());
}

#[test]
fn p07_oldest_user_messages_fold_and_the_tail_stays() {
    let (host, all) = summarized();
    let estimate = host.engine.estimate();
    let view = shown(&host);
    // The tail is 720 tokens; the fold ends where the target is reached, well before it.
    let tail = 720 / size(&all[30..]) as usize;
    assert_eq!(view[view.len() - tail..], all[31 - tail..]);
    assert!(estimate.tokens <= 2_160 && estimate.tokens > 1_800, "{}", estimate.tokens);
    assert!(!view.contains(&all[0]) && view[1..] == all[32 - view.len()..]);
}

#[test]
fn p08_tokens_count_and_not_messages() {
    let mut one = vec![user(&long("old", 9_000))];
    one.extend(chat(3, 5).into_iter().skip(1));
    let mut host = Host::new(&options(10_000, ""));
    assert!(host.turn(&one).compacted);
    let mut host = Host::new(&options(10_000, ""));
    assert!(!host.turn(&chat(101, 3)).compacted);
}

#[test]
fn p09_clear_alone_where_it_is_enough() {
    let all = pairs(20, 400);
    let mut host = Host::new(&options(10_000, WITH_SUMMARIZER));
    let outcome = host.turn(&all);
    assert_eq!(outcome.stages, ["clear"]);
    assert!(host.prompts.is_empty());
    assert_eq!(decided(&outcome, "cleared")[..3], [2, 4, 6], "oldest first");
    assert!(verbatim(&host, &all).contains(&40) && outcome.tokens_after <= 6_000);
}

#[test]
fn p10_planning_again_changes_nothing() {
    let (mut host, all) = summarized();
    let before = host.engine.render_json();
    let outcome = host.turn(&all);
    assert!(!outcome.compacted && outcome.reason == Reason::UnderTrigger);
    assert_eq!(outcome.tokens_before, outcome.tokens_after);
    assert_eq!((host.engine.render_json(), host.prompts.len()), (before, 1));
}

#[test]
fn p11_each_burst_is_measured_on_the_view_of_its_day() {
    let (mut host, mut all) = summarized();
    all.extend((31..51).map(|at| said(at, 100)));
    host.ingest(&all);
    assert!(host.engine.estimate().full.unwrap() >= 0.85);
    let outcome = host.plan(PlanRequest::default());
    assert!(outcome.compacted && outcome.tokens_before > outcome.tokens_after);
    assert!(outcome.tokens_before >= outcome.trigger.unwrap());
    assert!(outcome.tokens_before + 1_000 < size(&all), "the view, not the raw transcript");
}

#[test]
fn p12_decisions_only_grow_and_the_prefix_stands_between_bursts() {
    let all = pairs(36, 150);
    let mut host = Host::new(&options(2_500, WITH_SUMMARIZER));
    let mut last = String::new();
    let (mut gone, mut bursts) = (Vec::new(), 0);
    for turn in 1..=12 {
        let known = &all[..1 + turn * 6];
        let outcome = host.turn(known);
        let view = host.engine.render_json();
        if outcome.compacted {
            bursts += 1;
        } else if !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]), "turn {turn}");
        }
        let now = verbatim(&host, known);
        assert!(gone.iter().all(|at| !now.contains(at)), "turn {turn}: nothing comes back");
        gone = (0..known.len()).filter(|at| !now.contains(at)).collect();
        last = view;
    }
    assert!((3..12).contains(&bursts) && !gone.is_empty(), "{bursts}");
    assert!((1..=4).contains(&host.prompts.len()), "{}", host.prompts.len());
}

#[test]
fn p13_large_results_go_to_the_store_whole() {
    let all = pairs(6, 1_200);
    let mut host = Host::new(&options(8_000, "\"store\":true"));
    let outcome = host.turn(&all);
    assert_eq!(outcome.stages[0], "offload");
    let offloaded = decided(&outcome, "offloaded");
    assert_eq!(offloaded.len(), host.store.len());
    for index in offloaded {
        let message: Value = serde_json::from_str(&all[index as usize]).unwrap();
        let full = message["content"].as_str().unwrap();
        assert!(host.store.values().any(|stored| stored == full), "message {index}");
    }
}

#[test]
fn p14_usage_of_twice_the_estimate_is_learned_at_once() {
    let all = chat(9, 100);
    let mut host = Host::new(&options(100_000, ""));
    host.turn(&all);
    host.plan(used(2 * size(&all)));
    assert_eq!(host.engine.estimate().ratio, 2.0);
    assert_eq!(host.engine.estimate().tokens, 2 * size(&all));
    host.plan(used(size(&all)));
    assert_eq!(host.engine.estimate().ratio, 1.5, "the second sample weighs a half");
}

#[test]
fn p15_tool_schemas_alone_can_start_a_burst() {
    let all = pairs(20, 450);
    let mut host = Host::new(&options(50_000, "\"tail\":0.05"));
    assert!(!host.turn(&all).compacted);
    host.engine.set_tools(&tools(34_000)).unwrap();
    assert!(host.turn(&all).compacted);
}

#[test]
fn p16_p44_the_tools_are_exactly_what_the_estimate_says() {
    let mut host = Host::new(&options(50_000, ""));
    host.ingest(&chat(5, 100));
    let without = host.engine.estimate();
    host.engine.set_tools(&tools(300)).unwrap();
    let with = host.engine.estimate();
    assert!(with.tools > 300 && without.tools == 0);
    assert_eq!(with.tokens - without.tokens, with.tools);
}

#[test]
fn p17_exact_usage_leaves_the_ratio_at_one() {
    let mut host = Host::new(&options(50_000, ""));
    host.engine.set_tools(&tools(3_000)).unwrap();
    let outcome = host.turn(&chat(5, 100));
    host.plan(used(outcome.tokens_after));
    assert_eq!(host.engine.estimate().ratio, 1.0);
}

#[test]
fn p18_a_ratio_learned_small_does_not_blow_up_on_a_large_view() {
    let mut host = Host::new(r#"{"window":200000,"preset":"late"}"#);
    host.engine.set_tools(&tools(27_500)).unwrap();
    let outcome = host.turn(&chat(3, 300));
    let mut all = chat(3, 300);
    all.extend((3..50).map(|at| said(at, 2_100)));
    host.ingest(&all);
    let outcome = host.plan(used(outcome.tokens_after / 20 * 21));
    let estimate = host.engine.estimate();
    assert!((1.04..1.06).contains(&estimate.ratio), "{}", estimate.ratio);
    assert!((130_000..150_000).contains(&estimate.tokens), "{}", estimate.tokens);
    assert!(!outcome.compacted);
}

#[test]
fn p19_swapped_tools_count_at_once() {
    let mut host = Host::new(&options(50_000, ""));
    host.ingest(&chat(5, 100));
    host.engine.set_tools(&tools(300)).unwrap();
    let small = host.engine.estimate();
    host.engine.set_tools(&tools(2_000)).unwrap();
    let large = host.engine.estimate();
    assert!(large.tools > small.tools + 1_500);
    assert_eq!(large.tokens - small.tokens, large.tools - small.tools);
}

#[test]
fn p20_a_rewritten_past_lets_the_summary_go() {
    let (mut host, mut all) = summarized();
    all[0] = all[0].replace("m0", "x0"); // of the same length
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
    assert!(!has_summary(&host));
    let outcome = host.plan(PlanRequest::default());
    assert!(outcome.notices.iter().any(|notice| notice.code == "summary_dropped"));
    assert!(outcome.compacted && has_summary(&host));
    assert!(host.prompts[1].contains("x0") && !host.prompts[1].contains("<summary-"));
}

/// A summary that ends right behind the answered half of a batch, whose other answer then comes.
fn late_answer(start: &[String]) -> (Host, Vec<String>) {
    let mut all = start.to_vec();
    all.extend([calls(&["a", "b"], "two"), result("a", &long("ra", 600))]);
    let end = all.len();
    let tail = [assistant(&long("n", 100))];
    let mut host =
        Host::new(&options(10_000, r#""summarizer":true,"stages":["summarize"],"tail":2"#));
    host.ingest(&[&all[..], &tail].concat());
    let outcome = host.plan(forced());
    assert_eq!(outcome.summary.unwrap().covered as usize, end);
    all.push(result("b", "late"));
    all.extend(tail);
    let late = format!("[{}]", all[end..].join(","));
    host.engine.ingest(end, &late, &[]).unwrap();
    (host, all)
}

#[test]
fn p21_a_summary_that_would_part_a_batch_moves_back_before_it() {
    let (host, all) = late_answer(&[user(&long("m", 300)), assistant("ok")]);
    let view = shown(&host);
    assert!(has_summary(&host) && view[1..] == all[2..]);
    assert_eq!(problems(&host), Vec::<String>::new());

    // A coverage that was tampered with is no place for the summary at all.
    let checkpoint = host.engine.checkpoint();
    let tampered = checkpoint.replace("\"covered\":2", "\"covered\":3");
    assert_ne!(tampered, checkpoint);
    let mut host = Host::restore(&options(10_000, ""), &tampered);
    host.ingest(&all);
    assert_eq!(shown(&host), all);
    let notices = host.plan(PlanRequest::default()).notices;
    assert!(notices.iter().any(|notice| notice.code == "summary_dropped"));
}

#[test]
fn p22_with_no_earlier_cut_the_summary_goes() {
    let (mut host, all) = late_answer(&[]);
    assert_eq!(shown(&host), all);
    assert_eq!(host.engine.recall_tool(), None);
    host.plan(forced());
    let prompt = host.prompts.last().unwrap();
    assert!(prompt.contains("late") && !prompt.contains("<summary-"), "{prompt}");
}

#[test]
fn p23_the_tail_is_measured_as_the_view_shows_it() {
    let mut all = vec![user(&long("old", 300))];
    all.extend(pair("c", &long("big", 1_600)));
    all.extend([assistant(&long("m", 200)), user(&long("n", 200))]);
    let stages =
        r#""tail":600,"summarizer":true,"stages":[{"stage":"clear","keepLast":0},"summarize"]"#;
    let mut host = Host::new(&options(2_700, stages));
    let outcome = host.turn(&all);
    assert_eq!((outcome.stages, host.prompts.len()), (vec!["clear".into()], 0));
    let outcome = host.plan(forced());
    assert_eq!(outcome.summary.unwrap().covered, 1, "the marker is in the tail now");
}

#[test]
fn p24_trimmed_outputs_keep_the_summary() {
    let mut all = pairs(8, 300);
    all.push(user("go on"));
    let mut host =
        Host::new(&options(2_600, r#""summarizer":true,"stages":["summarize"],"tail":0.3"#));
    host.turn(&all);
    let (view, calls) = (host.engine.render_json(), host.prompts.len());
    assert!(has_summary(&host) && !verbatim(&host, &all).contains(&2));
    all[2] = result("c0", "[trimmed]");
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
    let outcome = host.plan(PlanRequest::default());
    assert!(!outcome.compacted && outcome.notices.is_empty());
    assert_eq!((host.engine.render_json(), host.prompts.len()), (view, calls));
}

#[test]
fn p25_a_second_leading_system_message_moves_no_decision() {
    let (mut host, all) = summarized();
    let before = shown(&host);
    let lead = [system("one"), system("two")];
    let now = [&lead[..], &all].concat();
    host.engine.ingest(0, &format!("[{}]", now.join(",")), &[]).unwrap();
    assert_eq!(shown(&host), [&lead[..], &before].concat());
    let outcome = host.plan(PlanRequest::default());
    assert!(outcome.notices.is_empty() && host.prompts.len() == 1);
}

#[test]
fn p26_an_overflow_compacts_even_with_no_window_known() {
    let all = chat(31, 100);
    let mut host = Host::new(&format!("{{{WITH_SUMMARIZER}}}"));
    host.turn(&all);
    let outcome = host.plan(refused(None));
    assert!(outcome.overflow && outcome.compacted);
    assert!(outcome.stages.contains(&"summarize".into()) && has_summary(&host));
    assert_eq!(shown(&host).last(), all.last());
    assert!(outcome.tokens_after < outcome.tokens_before * 3 / 4);
}

#[test]
fn p27_an_overflow_counts_more_than_the_window_that_was_told() {
    let mut host = Host::new(&options(10_000_000, ""));
    assert!(!host.turn(&chat(31, 100)).compacted);
    let outcome = host.plan(refused(None));
    assert!(outcome.compacted && outcome.tokens_after < outcome.tokens_before * 3 / 4);
}

#[test]
fn p28_a_named_window_is_learned_and_kept() {
    let mut all = chat(31, 100);
    let mut host = Host::new(r#"{"model":"m"}"#);
    host.turn(&all);
    let outcome = host.plan(refused(Some(2_048)));
    assert!(outcome.fits && outcome.tokens_after <= 1_536, "{}", outcome.tokens_after);

    let mut next = Host::restore(r#"{"model":"m"}"#, &host.engine.checkpoint());
    all.extend((31..41).map(|at| said(at, 100)));
    next.ingest(&all);
    let estimate = next.engine.estimate();
    assert!(estimate.window == Some(2_048) && estimate.full.unwrap() > 0.85);
    let outcome = next.plan(PlanRequest::default());
    assert!(outcome.compacted && !outcome.overflow && outcome.fits);
}

#[test]
fn p29_p30_the_smaller_of_told_and_learned_holds() {
    for (told, learned, holds) in
        [(10_000_000, 2_048, 2_048), (1_000, 1_000_000, 1_000), (4_000, 4_096, 4_000)]
    {
        let mut host = Host::new(&options(told, ""));
        host.turn(&chat(9, 100));
        host.plan(refused(Some(learned)));
        assert_eq!(window(&host), Some(holds));
    }
}

#[test]
fn p31_p32_windows_are_learned_per_model() {
    let mut host = Host::new(r#"{"model":"m"}"#);
    host.plan(refused(Some(2_048)));
    let mut other = Host::restore(r#"{"model":"other"}"#, &host.engine.checkpoint());
    assert_eq!(window(&other), None);
    other.plan(refused(Some(8_192)));
    let checkpoint = other.engine.checkpoint();
    assert_eq!(window(&Host::restore(r#"{"model":"m"}"#, &checkpoint)), Some(2_048));
    assert_eq!(window(&Host::restore(r#"{"model":"other"}"#, &checkpoint)), Some(8_192));
}

#[test]
fn p33_a_newer_report_replaces_an_older_one() {
    let mut host = Host::new("{}");
    host.plan(refused(Some(4_096)));
    host.plan(refused(Some(8_192)));
    assert_eq!(window(&host), Some(8_192));
}

#[test]
fn p34_on_an_overflow_a_failing_summarizer_is_stood_in_for() {
    let mut host = Host::new(&options(1_000_000, WITH_SUMMARIZER));
    host.mood = Mood::Throws;
    host.turn(&chat(31, 100));
    let outcome = host.plan(refused(None));
    assert_eq!(outcome.failures.len(), 1);
    assert_eq!((outcome.failures[0].effect, outcome.failures[0].code), ("summarize", "host"));
    let summary = serde_json::to_value(outcome.summary).unwrap();
    assert!(outcome.compacted && outcome.fits && summary["by"] == "local");
    let checkpoint: Value = serde_json::from_str(&host.engine.checkpoint()).unwrap();
    assert_eq!(checkpoint["failures"][0], 1);
}

/// Bursts with a failing summarizer until `calls` calls were made; the messages so far.
fn failing(host: &mut Host, calls: usize) -> Vec<String> {
    host.mood = Mood::Throws;
    let mut all = chat(31, 100);
    while host.prompts.len() < calls {
        let outcome = host.turn(&all);
        assert!(outcome.compacted && outcome.fits && outcome.failures.len() == 1);
        all.extend((all.len()..all.len() + 20).map(|at| said(at, 100)));
    }
    all
}

#[test]
fn p35_a_failing_summarizer_is_left_alone_after_three_calls() {
    let mut host = Host::new(&options(3_600, WITH_SUMMARIZER));
    let mut all = failing(&mut host, 3);
    // Fewer messages than wake it.
    for _ in 0..3 {
        let outcome = host.turn(&all);
        assert!(outcome.compacted && outcome.fits && outcome.failures.is_empty());
        all.extend((all.len()..all.len() + 20).map(|at| said(at, 100)));
    }
    assert_eq!(host.prompts.len(), 3);
}

#[test]
fn p36_a_checkpoint_replays_to_the_same_view() {
    let (host, all) = summarized();
    let mut again = Host::restore(&options(3_600, WITH_SUMMARIZER), &host.engine.checkpoint());
    let outcome = again.turn(&all);
    assert!(!outcome.compacted && again.prompts.is_empty());
    assert_eq!(again.engine.render_json(), host.engine.render_json());
}

#[test]
fn p37_p38_p39_p41_after_an_overflow_the_outcome_tells_all() {
    let all = chat(31, 100);
    let mut host = Host::new("{}");
    host.turn(&all);
    let sent = host.engine.render_json();
    let outcome = host.plan(refused(Some(2_048)));
    assert!(host.engine.render_json().len() < sent.len() && problems(&host).is_empty());
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!((&json["overflow"], &json["reason"]), (&true.into(), &"compacted".into()));
    assert_eq!(json["stages"], serde_json::json!(["summarize"]));
    assert!(json["tokensBefore"].as_u64() > json["tokensAfter"].as_u64());
    assert_eq!(json["tokensAfter"], host.engine.estimate().tokens);
    let text = json["summary"]["text"].as_str().unwrap();
    assert!(!text.is_empty() && host.view()[0]["content"].as_str().unwrap().contains(text));
}

#[test]
fn p40_the_defaults_are_a_working_pipeline() {
    let all = pairs(20, 400);
    let mut host = Host::new(r#"{"window":10000}"#);
    let outcome = host.turn(&all);
    let sizes = (outcome.usable, outcome.trigger, outcome.target);
    assert_eq!(sizes, (Some(7_500), Some(4_125), Some(1_500)));
    assert!(outcome.compacted && outcome.tokens_after <= 1_500 && problems(&host).is_empty());
}

#[test]
fn p42_what_cannot_fit_is_said_and_not_touched() {
    let all = [system(&long("rules", 3_000)), user("hi")];
    let mut host = Host::new("{}");
    host.turn(&all);
    let outcome = host.plan(refused(Some(2_048)));
    assert_eq!((outcome.reason, outcome.fits), (Reason::CannotFit, false));
    assert_eq!(outcome.smallest, Some(size(&all)));
    assert_eq!(shown(&host), all);

    // Where the user message is what is too large, its middle is left out.
    let mut host = Host::new("{}");
    host.turn(&[system("rules"), user(&long("paste", 3_000))]);
    let outcome = host.plan(refused(Some(2_048)));
    assert!(outcome.fits && decided(&outcome, "elided") == [1]);
}

#[test]
fn p43_usage_is_not_learned_from_on_an_overflow() {
    let all = chat(9, 100);
    let mut host = Host::new(&options(100_000, ""));
    host.turn(&all);
    let request = PlanRequest { usage: used(2 * size(&all)).usage, ..refused(None) };
    host.plan(request);
    assert_eq!(host.engine.estimate().ratio, 1.0);
}

#[test]
fn p45_a_view_that_hardly_shrank_is_not_worth_a_retry() {
    let mut all = vec![system(&long("rules", 3_000)), user("start")];
    all.extend(pair("c", &long("r", 60)));
    all.extend([assistant("done"), user("next")]);
    let mut host = Host::new(&options(100_000, ""));
    host.turn(&all);
    let outcome = host.plan(refused(None));
    assert!(outcome.tokens_after > outcome.tokens_before / 100 * 95);
    assert!(!outcome.fits && outcome.smallest == Some(outcome.tokens_after));
}

#[test]
fn p46_the_transcript_stays_whole_and_holds_no_summary() {
    let (mut host, all) = summarized();
    assert_eq!(host.engine.len(), all.len());
    assert!(search(&host.engine, "conversation_summary").starts_with("[no text"));
    assert!(search(&host.engine, "m0:").contains("m0: word"));
    // Taken back to its first messages it is what it was.
    host.engine.ingest(0, &format!("[{}]", all[..3].join(",")), &[]).unwrap();
    assert_eq!(shown(&host), all[..3]);
}

#[test]
fn p47_all_that_was_learned_survives_a_checkpoint() {
    let json = options(3_600, WITH_SUMMARIZER);
    let mut host = Host::new(&json);
    let all = failing(&mut host, 2);
    host.ingest(&all);
    let raw = host.engine.estimate().tokens;
    host.plan(PlanRequest::default());
    host.plan(used(host.engine.estimate().tokens / 4 * 5));
    host.plan(refused(Some(3_000)));
    let saved = host.engine.checkpoint();
    let mut again = Host::restore(&json, &saved);
    again.ingest(&all);
    assert_eq!(again.engine.checkpoint(), saved);
    assert_eq!(again.engine.estimate(), host.engine.estimate());
    assert!(again.engine.estimate().ratio > 1.2 && window(&again) == Some(3_000), "{raw}");
}

#[test]
fn p48_the_next_run_inherits_summary_measure_and_failures() {
    let (mut host, all) = summarized();
    host.plan(used(host.engine.estimate().tokens));
    let mut next = Host::restore(&options(3_600, WITH_SUMMARIZER), &host.engine.checkpoint());
    next.ingest(&all);
    assert!(has_summary(&next));
    let tokens = next.engine.estimate().tokens;
    // The first usage report of the run belongs to the last view of the run before.
    let outcome = next.plan(used(tokens / 10 * 12));
    assert!((1.15..1.2).contains(&next.engine.estimate().ratio));
    assert!(!outcome.compacted && next.prompts.is_empty());

    let mut host = Host::new(&options(3_600, WITH_SUMMARIZER));
    let all = failing(&mut host, 3);
    let mut next = Host::restore(&options(3_600, WITH_SUMMARIZER), &host.engine.checkpoint());
    assert!(next.turn(&all).compacted && next.prompts.is_empty());
}

#[test]
fn p49_decisions_without_their_message_are_let_go_and_doubled_ids_keep_theirs() {
    let all = pairs(20, 400);
    let json = options(10_000, "");
    let mut host = Host::new(&json);
    assert!(host.turn(&all).compacted);
    let mut short = Host::restore(&json, &host.engine.checkpoint());
    let other = [user("start"), assistant("an other past"), user("go")];
    short.ingest(&other);
    assert_eq!(shown(&short), other);
    let notices = short.plan(PlanRequest::default()).notices;
    assert!(notices.iter().any(|notice| notice.code == "decisions_dropped"));

    let doubled: Vec<_> = all.iter().map(|m| m.replace("\"c9\"", "\"c1\"")).collect();
    let mut host = Host::new(&json);
    let cleared = decided(&host.turn(&doubled), "cleared");
    assert!(cleared.contains(&4), "the older c1");
    let now = verbatim(&host, &doubled);
    assert!(!now.contains(&4) && now.contains(&40));
    assert_eq!(now.contains(&20), !cleared.contains(&20), "the newer c1 has a fate of its own");
}

#[test]
fn p50_the_outcome_counts_what_it_did() {
    let all = pairs(20, 400);
    // Without the recall tool, whose schema would count from the first decision on.
    let mut host = Host::new(&options(10_000, "\"recall\":false"));
    host.ingest(&all);
    let full = host.engine.estimate().full.unwrap();
    let outcome = host.plan(PlanRequest::default());
    assert_eq!(full, f64::from(outcome.tokens_before) / 10_000.0);
    let cleared = decided(&outcome, "cleared").len();
    assert_eq!(cleared, outcome.decisions.len());
    assert_eq!(all.len() - cleared, verbatim(&host, &all).len());
    let saved: u32 = outcome.decisions.iter().map(|decided| decided.tokens_saved).sum();
    assert_eq!(outcome.tokens_before - outcome.tokens_after, saved);
}

#[test]
fn p52_a_giant_newest_result_becomes_head_and_tail() {
    let mut all = vec![user("start")];
    all.extend(pair("c", &format!("HEAD {} TAIL", " word".repeat(40_000))));
    let mut host = Host::new(&options(1_000_000, ""));
    host.turn(&all);
    let outcome = host.plan(refused(Some(8_000)));
    assert_eq!(decided(&outcome, "elided"), [2]);
    assert!(outcome.fits && outcome.tokens_after < 8_000);
    let view = host.view();
    let text = view[2]["content"].as_str().unwrap();
    assert!(text.starts_with("HEAD") && text.ends_with("TAIL"));
    assert!(text.contains(outcome.decisions[0].reference.as_deref().unwrap()));
}

#[test]
fn p53_every_view_of_a_growing_transcript_is_valid() {
    for stages in ["", r#","stages":["summarize"]"#, r#","stages":["drop","elide"]"#] {
        let mut host = Host::new(&options(1_500, &format!("\"summarizer\":true{stages}")));
        let mut all = vec![user("start")];
        let mut compacted = 0;
        for step in 0..15 {
            let ids: Vec<String> = (0..step % 4 + 1).map(|at| format!("s{step}-{at}")).collect();
            all.push(calls(&ids.iter().map(String::as_str).collect::<Vec<_>>(), "files"));
            for id in ids.iter().rev() {
                all.push(result(id, &long(id, 60)));
                compacted += usize::from(host.turn(&all).compacted);
                assert_eq!(problems(&host), Vec::<String>::new(), "step {step} {stages}");
            }
        }
        assert!(compacted > 2);
    }
}

#[test]
fn p54_watermarks_in_tokens() {
    let marks = r#""compactAt":900,"compactTo":400,"tail":100,"recall":false"#;
    let mut host = Host::new(&options(100_000, marks));
    let few = chat(7, 85);
    assert!(size(&few) > 600 && size(&few) < 900);
    assert!(!host.turn(&few).compacted);
    let all = chat(21, 85);
    assert!(size(&all) > 1_900);
    let outcome = host.turn(&all);
    assert!(outcome.compacted && outcome.tokens_after <= 400, "{}", outcome.tokens_after);
}

#[test]
fn p55_an_abandoned_burst_keeps_what_it_had_committed() {
    let mut all = pairs(6, 100);
    all.extend(chat(25, 100));
    let json = options(3_500, r#""summarizer":true,"stages":["clear","summarize"]"#);
    let mut host = Host::new(&json);
    host.ingest(&all);
    let step = host.engine.plan(PlanRequest::default()).unwrap();
    let Step::Effects { effects } = step else { panic!("{step:?}") };
    assert!(matches!(effects[0], Effect::Summarize { .. }));
    host.engine.cancel();
    assert!(host.view()[2]["content"].as_str().unwrap().contains("cleared"));
    let mut again = Host::restore(&json, &host.engine.checkpoint());
    again.ingest(&all);
    assert_eq!(again.engine.render_json(), host.engine.render_json());
    let reply = host.engine.resolve(effects[0].id(), text(good_summary("noted")));
    assert_eq!(reply.unwrap(), Step::Idle, "a reply that comes too late");
    assert!(host.plan(PlanRequest::default()).compacted && has_summary(&host));
}

#[test]
fn p55_a_burst_abandoned_between_two_puts_leaves_view_and_estimate_in_step() {
    let all = pairs(6, 1_200);
    let json = options(8_000, r#""store":true,"stages":["offload"]"#);
    let edited = result("c5", "another end");
    let last = all.len() - 1;
    let cancel = |host: &mut Host| host.engine.cancel();
    let replan = |host: &mut Host| {
        let tight = PlanRequest { overflow: rate_limit(), ..PlanRequest::default() };
        assert_eq!(host.plan(tight).reason, Reason::RateLimit);
    };
    let rewrite = |host: &mut Host| {
        host.engine.ingest(1, &format!("[{}]", all[1..last].join(",")), &[]).unwrap();
        host.engine.ingest(last, &format!("[{edited}]"), &[]).unwrap();
        host.engine.cancel();
    };
    for abandon in [&cancel as &dyn Fn(&mut Host), &replan, &rewrite] {
        let mut host = Host::new(&json);
        host.ingest(&all);
        let first = host.engine.render(u32::MAX, 0, 0);
        let step = host.engine.plan(PlanRequest::default()).unwrap();
        let Step::Effects { effects } = step else { panic!("{step:?}") };
        assert!(effects.len() > 1);
        host.engine.resolve(effects[0].id(), Reply::Done).unwrap();
        abandon(&mut host);
        let mut now = all.clone();
        if !shown(&host).contains(&all[last]) {
            now[last] = edited.clone();
        }
        let mut again = Host::restore(&json, &host.engine.checkpoint());
        again.ingest(&now);
        assert_eq!(again.engine.render_json(), host.engine.render_json());
        assert_eq!(again.engine.estimate(), host.engine.estimate());
        let render = host.engine.render(first.epoch, first.unit, first.items_before);
        assert_eq!(render.keep, first.items_before, "a stage is taken whole or not at all");
        assert_eq!(host.engine.resolve(effects[1].id(), Reply::Done).unwrap(), Step::Idle);
    }
}

fn rate_limit() -> Option<Overflow> {
    Some(Overflow { status: Some(429), body: "rate limit reached".to_owned() })
}

#[test]
fn p56_a_tail_as_large_as_the_window_leaves_nothing_to_compact() {
    let all = chat(31, 100);
    let mut host = Host::new(&options(3_600, "\"tail\":3600"));
    let outcome = host.turn(&all);
    assert!(outcome.tokens_before >= outcome.trigger.unwrap() && outcome.fits);
    assert_eq!((outcome.reason, outcome.compacted), (Reason::NothingToCompact, false));
    assert_eq!(shown(&host), all);
}

/// The outcome is a plain value for the host to keep.
#[test]
fn p39_p51_an_outcome_is_data() {
    let (mut host, mut all) = summarized();
    all.extend((31..51).map(|at| said(at, 100)));
    let outcome: Outcome = host.turn(&all);
    let json = serde_json::to_value(&outcome).unwrap();
    for decided in json["decisions"].as_array().unwrap() {
        assert!(decided["kind"].is_string() && decided["index"].is_u64(), "{decided}");
    }
    assert_eq!(json["decisions"].as_array().unwrap().len(), outcome.decisions.len());
    assert!(!outcome.decisions.is_empty() && outcome.clone() == outcome);
}

#[test]
fn a_usage_report_of_the_view_before_the_burst_teaches_nothing() {
    let all = pairs(30, 400);
    let mut host = Host::new(&options(10_000, ""));
    let outcome = host.turn(&all);
    assert!(outcome.compacted && outcome.tokens_after < outcome.tokens_before / 3 * 2);
    for _ in 0..3 {
        host.plan(used(outcome.tokens_before));
        assert_eq!(host.engine.estimate().ratio, 1.0);
    }
    host.plan(used(outcome.tokens_before + 1));
    assert!(host.engine.estimate().ratio > 1.0, "the next one is about the view that was sent");
}

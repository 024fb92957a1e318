//! Scenarios of the stages, by their ids in `SCENARIOS.md`.

mod common;

use std::collections::BTreeSet;

use common::build::*;
use common::host::{self, Host, Mood, good_summary};
use common::{messages, openai_chat};
use serde_json::{Value, json};
use tidemark::{Effect, Engine, Outcome, PlanRequest, Reply};

/// Options with a pipeline of these stages and a tail of the newest unit.
fn staged(window: u32, stages: &str) -> String {
    options(window, &format!("\"tail\":2,\"stages\":[{stages}]"))
}

/// The same without the recall tool, whose schema would count from the first decision on.
fn unrecalled(window: u32, stages: &str) -> String {
    options(window, &format!("\"recall\":false,\"tail\":2,\"stages\":[{stages}]"))
}

/// What a forced burst clears of `all`, by message.
fn cleared(stage: &str, all: &[String]) -> Vec<u32> {
    let mut host = Host::new(&unrecalled(100_000, stage));
    host.ingest(all);
    decided(&host.plan(forced()), "cleared")
}

/// Pairs and a newest exchange behind them.
fn old_pairs(count: usize, words: usize) -> Vec<String> {
    let mut all = pairs(count, words);
    all.push(assistant("done"));
    all.push(user("next"));
    all
}

fn content(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap();
    value["content"].as_str().unwrap().to_owned()
}

const CLEAR: &str = r#"{"stage":"clear","keepLast":0}"#;
const OFFLOAD: &str = r#"{"stage":"offload","keepLast":1,"minTokens":300,"previewTokens":80}"#;

#[test]
fn s01_clear_keeps_the_newest_results() {
    assert_eq!(cleared(r#"{"stage":"clear","keepLast":3}"#, &old_pairs(5, 100)), [2, 4]);
    assert_eq!(cleared("\"clear\"", &old_pairs(5, 100)), [2, 4], "three by default");
}

#[test]
fn s02_clear_stops_at_the_target() {
    let all = old_pairs(10, 228);
    let mut host = Host::new(&unrecalled(2_800, CLEAR));
    let outcome = host.turn(&all);
    assert!((2_600..2_800).contains(&outcome.tokens_before), "{}", outcome.tokens_before);
    assert_eq!(decided(&outcome, "cleared"), [2, 4, 6, 8, 10]);
    assert!(outcome.tokens_after <= 1_680);
}

#[test]
fn s03_s13_small_results_stay() {
    assert!(cleared(CLEAR, &old_pairs(5, 10)).is_empty());
    assert_eq!(cleared(r#"{"stage":"clear","minTokens":500}"#, &old_pairs(5, 100)), [0; 0]);
    let mut host = Host::new(&staged(100_000, OFFLOAD));
    host.ingest(&old_pairs(5, 100));
    assert!(!host.plan(forced()).compacted);
}

#[test]
fn s04_a_result_with_an_image_is_cleared_however_short_its_text() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let parts = json!([{"type": "text", "text": "shot"}, image]);
    let shot = json!({"role": "tool", "tool_call_id": "c", "content": parts}).to_string();
    let all = [user("look"), calls(&["c"], "x"), shot, assistant("seen"), user("next")];
    assert_eq!(cleared(CLEAR, &all), [2]);
}

#[test]
fn s05_an_id_used_twice_is_no_reason_to_keep_either() {
    let all: Vec<_> = old_pairs(3, 100).iter().map(|m| m.replace("\"c1\"", "\"c0\"")).collect();
    assert_eq!(cleared(CLEAR, &all), [2, 4, 6]);
}

#[test]
fn s06_s18_results_under_the_summary_are_not_decided_on() {
    let json = staged(100_000, r#""summarize""#);
    let mut all = pairs(4, 200);
    let mut host = Host::new(&json);
    host.ingest(&all);
    let covered = host.plan(forced()).summary.unwrap().covered;
    assert!(covered > 2);
    all.extend(pair("new", &long("new", 400)));
    all.extend([assistant("done"), user("next")]);
    for stage in [CLEAR, OFFLOAD.replace("\"keepLast\":1", "\"keepLast\":0").as_str()] {
        let mut next = Host::restore(&staged(100_000, stage), &host.engine.checkpoint());
        next.ingest(&all);
        let outcome = next.plan(forced());
        assert!(outcome.compacted && outcome.decisions.iter().all(|d| d.index >= covered));
    }
}

#[test]
fn s07_the_tail_is_not_cleared() {
    // A result that the model has not seen is in it, whatever its size.
    assert_eq!(cleared(CLEAR, &pairs(5, 100)), [2, 4, 6, 8]);
    let all = old_pairs(5, 100);
    let tail = size(&all[3..]);
    let stage = format!("\"recall\":false,\"tail\":{tail},\"stages\":[{CLEAR}]");
    let mut host = Host::new(&options(100_000, &stage));
    host.ingest(&all);
    assert_eq!(decided(&host.plan(forced()), "cleared"), [2]);
}

#[test]
fn s08_a_marker_never_takes_the_place_of_something_smaller() {
    let mut host = Host::new(&staged(100_000, "\"clear\""));
    let all = old_pairs(120, 1);
    host.turn(&all);
    let outcome = host.plan(refused(None));
    assert!(outcome.decisions.is_empty() && outcome.tokens_after == outcome.tokens_before);
    // Results that gain by it are cleared whatever the thresholds; the newest one stays.
    let mut host = Host::new(&staged(100_000, r#"{"stage":"clear","minTokens":500}"#));
    host.turn(&old_pairs(5, 100));
    let outcome = host.plan(refused(Some(1_024)));
    assert_eq!(decided(&outcome, "cleared").first(), Some(&2));
    assert!(!decided(&outcome, "cleared").contains(&10));
}

#[test]
fn s09_s15_a_second_burst_finds_nothing_more() {
    for stage in [CLEAR, OFFLOAD] {
        let mut host = Host::new(&staged(100_000, stage));
        host.ingest(&old_pairs(5, 400));
        assert!(host.plan(forced()).compacted);
        let view = host.engine.render_json();
        assert!(!host.plan(forced()).compacted);
        assert_eq!(host.engine.render_json(), view);
    }
}

#[test]
fn s10_a_stage_with_a_low_watermark_works_ahead() {
    let all = old_pairs(10, 100);
    let mut host = Host::new(&staged(3_000, CLEAR));
    assert!(!host.turn(&all).compacted, "under compactAt");
    let mut host = Host::new(&unrecalled(3_000, r#"{"stage":"clear","keepLast":0,"at":0.3}"#));
    let outcome = host.turn(&all);
    assert!(outcome.compacted && decided(&outcome, "cleared").len() < 10);
}

#[test]
fn s11_offload_previews_and_stores_the_whole() {
    let all = old_pairs(4, 400);
    let json = options(100_000, &format!("\"tail\":2,\"store\":true,\"stages\":[{OFFLOAD}]"));
    let mut host = Host::new(&json);
    host.ingest(&all);
    let outcome = host.plan(forced());
    let offloaded: BTreeSet<_> = decided(&outcome, "offloaded").into_iter().collect();
    assert_eq!(offloaded, [2, 4, 6].into(), "the newest stays");
    assert_eq!(host.store.len(), 3);
    let stored: BTreeSet<_> = host.store.values().cloned().collect();
    assert_eq!(stored, [2, 4, 6].map(|at: usize| content(&all[at])).into());
    let view = host.view();
    let preview = view[2]["content"].as_str().unwrap();
    assert!(preview.starts_with("r0: word") && preview.ends_with("word"));
    let first = outcome.decisions.iter().find(|decided| decided.index == 2).unwrap();
    assert!(preview.contains(first.reference.as_deref().unwrap()));
    assert!(preview.len() < content(&all[2]).len() / 2);
}

#[test]
fn s12_offload_needs_no_store() {
    let mut host = Host::new(&staged(100_000, OFFLOAD));
    let all = old_pairs(4, 400);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(decided(&outcome, "offloaded"), [2, 4, 6]);
    let reference = outcome.decisions[0].reference.as_deref().unwrap();
    assert_eq!(recalled(&host.engine, reference), content(&all[2]));
}

#[test]
fn s14_offload_stops_at_the_target() {
    let mut host = Host::new(&staged(4_700, OFFLOAD));
    let outcome = host.turn(&old_pairs(10, 400));
    let count = decided(&outcome, "offloaded").len();
    assert!((4..9).contains(&count), "{count}");
    assert!(outcome.tokens_after <= 2_820);
}

#[test]
fn s16_small_results_do_not_reach_the_store() {
    let json = options(100_000, &format!("\"tail\":2,\"store\":true,\"stages\":[{OFFLOAD}]"));
    let mut host = Host::new(&json);
    let mut all = pair("big", &long("big", 400)).to_vec();
    all.extend(old_pairs(4, 100));
    host.ingest(&all);
    assert_eq!(decided(&host.plan(forced()), "offloaded"), [1]);
    assert_eq!(host.store.into_values().collect::<Vec<_>>(), [content(&all[1])]);
}

#[test]
fn s17_a_put_that_fails_is_no_decision() {
    let json =
        options(100_000, &format!("\"tail\":2,\"store\":true,\"stages\":[{OFFLOAD},{CLEAR}]"));
    let mut host = Host::new(&json);
    host.store_fails = true;
    let all = old_pairs(4, 400);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(outcome.failures.len(), 3);
    assert!(outcome.failures.iter().all(|failure| failure.effect == "put"));
    assert_eq!(outcome.stages, ["clear"], "the next stage goes on");

    let mut host = Host::new(&json.replace(&format!(",{CLEAR}"), ""));
    host.store_fails = true;
    host.ingest(&all);
    assert!(!host.plan(forced()).compacted);
    assert_eq!(shown(&host), all);
}

/// Keys and contents of the puts of a forced burst.
fn puts(more: &str, all: &[String]) -> Vec<(String, String)> {
    let json = options(100_000, &format!("\"tail\":2,\"store\":true,\"stages\":[{OFFLOAD}]{more}"));
    let mut host = Host::new(&json);
    host.ingest(all);
    let mut out = Vec::new();
    drain(&mut host, forced(), |effect| {
        let Effect::Put { key, content, .. } = effect else { panic!("{effect:?}") };
        out.push((key.clone(), content.clone()));
        Reply::Done
    });
    out
}

#[test]
fn s18_equal_contents_share_a_key() {
    let mut all = old_pairs(5, 400);
    all[4] = result("c1", &content(&all[2]));
    let puts = puts("", &all);
    assert_eq!(puts[0], puts[1]);
    assert_ne!(puts[0].0, puts[2].0);
}

#[test]
fn s19_keys_hold_no_id_of_the_host() {
    let all: Vec<_> =
        old_pairs(3, 400).iter().map(|m| m.replace("\"c0\"", "\"../../etc/passwd\"")).collect();
    for (key, _) in puts("", &all) {
        let (namespace, name) = key.split_once('/').unwrap();
        assert!(namespace.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
        assert!(name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    }
}

#[test]
fn s20_sessions_share_keys_only_under_a_common_namespace() {
    let all = old_pairs(3, 400);
    let keys = |more: &str| puts(more, &all).into_iter().map(|put| put.0).collect::<Vec<_>>();
    let other = r#","secret":"ffffffffffffffffffffffffffffffff""#;
    assert_ne!(keys("")[0], keys(other)[0]);
    let team = r#","namespace":"team""#;
    assert_eq!(keys(team), keys(&format!("{other}{team}")));
    assert!(keys(team)[0].starts_with("team/"));
}

/// One call of the summarizer.
#[derive(Debug)]
struct Call {
    from: u32,
    to: u32,
    /// Estimated tokens of all that it would hold: instructions, prompt and answer.
    tokens: u32,
    prompt: String,
    max: u32,
}

/// The calls of a burst, each answered by `reply` with the number of the call.
fn folds(
    host: &mut Host,
    request: PlanRequest,
    reply: impl Fn(usize) -> Reply,
) -> (Vec<Call>, Outcome) {
    let mut calls = Vec::new();
    let outcome = drain(host, request, |effect| {
        let Effect::Summarize { system, prompt, max_tokens, from, to, .. } = effect else {
            panic!("{effect:?}")
        };
        let tokens = size(&[user(system), user(prompt)]) + max_tokens;
        let prompt = prompt.clone();
        calls.push(Call { from: *from, to: *to, tokens, prompt, max: *max_tokens });
        reply(calls.len())
    });
    (calls, outcome)
}

fn noted(_: usize) -> Reply {
    text(good_summary("noted"))
}

/// A session that only summarizes; `summary` are members of the option of that name.
fn folding(window: u32, summary: &str) -> String {
    let more =
        format!(r#""summarizer":true,"stages":["summarize"],"tail":2,"summary":{{{summary}}}"#);
    options(window, &more)
}

fn is_chain(calls: &[Call]) -> bool {
    calls.iter().zip(calls.iter().skip(1)).all(|(one, next)| one.to == next.from)
}

#[test]
fn s21_s23_a_long_span_folds_in_chunks_of_the_summarizers_window() {
    let all = chat(17, 100);
    let mut host = Host::new(&folding(100_000, r#""window":1200,"maxTokens":120"#));
    host.ingest(&all);
    let (calls, outcome) = folds(&mut host, forced(), noted);
    assert!(calls.len() > 2 && calls.len() < 8 && is_chain(&calls));
    assert!(!calls[0].prompt.contains("<summary-"));
    assert!(calls[1..].iter().all(|call| call.prompt.contains("- noted")));
    assert!(calls.iter().all(|call| call.tokens <= 1_200), "{calls:?}");
    assert_eq!((calls[0].from, outcome.summary.unwrap().covered), (0, 16));
    assert_eq!(outcome.decisions.len(), calls.len(), "each fold is committed");
}

#[test]
fn s22_on_an_overflow_chunks_still_follow_the_real_window() {
    let all = chat(61, 100);
    let mut host = Host::new(&folding(1_200, r#""maxCalls":1000"#));
    host.ingest(&all);
    let (calls, _) = folds(&mut host, refused(None), noted);
    assert!(!calls.is_empty());
    let largest = calls.iter().map(|call| call.tokens).max().unwrap();
    assert!(largest <= 1_200, "a call of {largest} tokens for a window of 1,200");
}

#[test]
fn s24_the_summarizers_own_window_binds() {
    let all = chat(61, 100);
    for (window, own) in [(50_000, 1_500), (6_000, 50_000)] {
        let summary = format!("\"window\":{own},\"maxCalls\":1000");
        let mut host = Host::new(&folding(window, &summary));
        host.ingest(&all);
        let (calls, outcome) = folds(&mut host, forced(), noted);
        let largest = calls.iter().map(|call| call.tokens).max().unwrap();
        assert!(largest <= own, "a call of {largest} tokens for a window of {own}");
        assert!((calls.len() > 1) == (own < window) && outcome.summary.unwrap().covered == 60);
    }
}

#[test]
fn s25_a_reserve_over_the_window_leaves_half_of_it_for_the_chunk() {
    let json =
        r#"{"window":4096,"reserve":16384,"summarizer":true,"tail":2,"stages":["summarize"]}"#;
    let mut host = Host::new(json);
    host.ingest(&chat(9, 100));
    let (calls, outcome) = folds(&mut host, forced(), noted);
    assert_eq!((calls.len(), outcome.usable), (1, Some(2_048)));
    assert_eq!((calls[0].from, calls[0].to), (0, 8));
}

#[test]
fn s26_a_long_running_summary_leaves_less_room_for_the_chunk() {
    let mut all = chat(9, 120);
    let mut host = Host::new(&folding(100_000, r#""window":2000,"maxTokens":700"#));
    host.ingest(&all);
    folds(&mut host, forced(), |_| text(good_summary(&"word ".repeat(50))));
    all.extend((9..41).map(|at| said(at, 60)));
    host.ingest(&all);
    let (calls, _) = folds(&mut host, forced(), noted);
    let spans: Vec<_> = calls.iter().map(|call| call.to - call.from).collect();
    assert!(spans.len() > 2 && spans[0] < spans[1], "{spans:?}");
}

#[test]
fn s27_s28_s38_a_summary_over_its_cap_is_refused() {
    let all = chat(17, 100);
    for (summary, most) in [("\"maxTokens\":300", 300), ("\"maxTokens\":1000000", 1_000), ("", 500)]
    {
        for long in ["word ".repeat(200), "长".repeat(300)] {
            let mut host = Host::new(&folding(4_000, summary));
            host.ingest(&all);
            let (calls, outcome) = folds(&mut host, forced(), |_| text(good_summary(&long)));
            assert!(calls.len() == 2 && calls[0].max <= most, "one corrective retry");
            assert_eq!((outcome.failures.len(), outcome.failures[0].code), (1, "too_long"));
            assert!(calls[1].prompt.contains("not accepted"));
            let summary = serde_json::to_value(outcome.summary).unwrap();
            assert_eq!(summary["by"], "local", "the budget holds all the same");
        }
    }
}

#[test]
fn s29_a_summary_too_large_for_a_shrunken_window_does_not_stand_in_the_way() {
    let all = chat(61, 400);
    let json = r#"{"window":40000,"summarizer":true,"summary":{"maxTokens":4000}}"#;
    for fails in [false, true] {
        let mut host = Host::new(json);
        host.ingest(&all);
        let large = |_: usize| text(good_summary(&"word ".repeat(500)));
        let (_, outcome) = folds(&mut host, forced(), large);
        assert!(outcome.summary.unwrap().tokens > 2_500);
        let (calls, outcome) = folds(&mut host, refused(Some(2_048)), |call| match fails {
            true => failed(),
            false => noted(call),
        });
        assert!(outcome.fits, "{} of {:?}", outcome.tokens_after, outcome.usable);
        assert!(calls.iter().all(|call| call.tokens <= 2_048), "{calls:?}");
        assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
    }
}

#[test]
fn s30_s48_a_failure_keeps_what_was_folded_before_it() {
    let all = chat(17, 100);
    let json = folding(100_000, r#""window":1200,"maxTokens":120"#);
    let mut host = Host::new(&json);
    host.ingest(&all);
    let (calls, outcome) = folds(&mut host, forced(), |call| match call {
        1 => text(good_summary("chunk one")),
        _ => failed(),
    });
    assert_eq!((calls.len(), outcome.failures.len()), (2, 1));
    let first = &outcome.decisions[0];
    assert_eq!((first.kind, first.index, first.to), ("covered", 0, Some(calls[0].to)));
    // The local summarizer takes the rest over, and builds on what was written.
    let summary = outcome.summary.unwrap();
    assert_eq!(summary.covered, 16);
    assert!(summary.text.contains("chunk one"), "{}", summary.text);

    // An outage in which nobody answers: what was committed is in the checkpoint.
    let mut host = Host::new(&json);
    host.ingest(&all);
    let tidemark::Step::Effects { effects } = host.engine.plan(forced()).unwrap() else {
        panic!("a summary is wanted")
    };
    host.engine.resolve(effects[0].id(), text(good_summary("chunk one"))).unwrap();
    let mut again = Host::restore(&json, &host.engine.checkpoint());
    again.ingest(&all);
    assert!(again.engine.render_json().contains("chunk one"));
    assert_eq!(shown(&again)[1..], all[calls[0].to as usize..]);
}

#[test]
fn s31_a_chunk_ends_between_units_only() {
    let mut all = pairs(8, 90);
    all.push(assistant("done"));
    for window in (1_000..1_600).step_by(37) {
        let summary = format!("\"window\":{window},\"maxTokens\":100,\"maxCalls\":100");
        let mut host = Host::new(&folding(100_000, &summary));
        host.ingest(&all);
        let (calls, _) = folds(&mut host, forced(), noted);
        assert!(calls.len() > 1 && is_chain(&calls));
        for call in &calls {
            assert!(!all[call.to as usize].contains("\"tool\""), "{window}: {call:?}");
        }
    }
}

#[test]
fn s32_a_unit_over_the_chunk_goes_alone_and_bounded() {
    let mut all = chat(3, 60);
    all.extend(pair("c", &format!("HEAD{} TAIL", " word".repeat(3_000))));
    all.extend(chat(4, 60));
    let mut host = Host::new(&folding(100_000, r#""window":1200,"maxTokens":100"#));
    host.ingest(&all);
    let (calls, outcome) = folds(&mut host, forced(), noted);
    let alone = calls.iter().find(|call| call.prompt.contains("HEAD")).unwrap();
    assert_eq!((alone.from, alone.to), (3, 5));
    assert!(alone.prompt.contains("TAIL") && alone.tokens <= 1_200, "{}", alone.tokens);
    assert!(outcome.summary.unwrap().covered > 5);
}

#[test]
fn s33_a_second_fold_sees_the_old_summary_and_only_what_is_new() {
    let mut all = chat(9, 100);
    let mut host = Host::new(&folding(100_000, ""));
    host.ingest(&all);
    let (first, _) = folds(&mut host, forced(), noted);
    all.extend((9..17).map(|at| said(at, 100)));
    host.ingest(&all);
    let (second, _) = folds(&mut host, forced(), noted);
    assert_eq!((first[0].to, second[0].from, second[0].to), (8, 8, 16));
    assert!(second[0].prompt.contains("- noted") && second[0].prompt.contains("m8:"));
    assert!(!second[0].prompt.contains("m7:"));
}

#[test]
fn s34_no_call_where_the_summary_already_meets_the_tail() {
    let mut host = Host::new(&folding(100_000, ""));
    host.ingest(&chat(9, 100));
    assert_eq!(folds(&mut host, forced(), noted).0.len(), 1);
    let (calls, outcome) = folds(&mut host, forced(), noted);
    assert!(calls.is_empty() && !outcome.compacted);
}

/// Old messages of about 430 tokens before a large newest one.
fn lopsided() -> Vec<String> {
    vec![user(&long("m0", 200)), assistant(&long("m1", 200)), user(&long("new", 2_300))]
}

#[test]
fn s35_a_fold_that_saves_too_little_is_not_made() {
    let fold = |summary: &str| {
        let mut host = Host::new(&folding(3_000, summary));
        host.ingest(&lopsided());
        folds(&mut host, PlanRequest::default(), noted)
    };
    let (calls, outcome) = fold("");
    assert!(outcome.tokens_before >= outcome.trigger.unwrap() && outcome.fits);
    assert!(calls.is_empty() && !outcome.compacted);
    let (calls, outcome) = fold("\"minSavings\":0");
    assert!(calls.len() == 1 && outcome.compacted, "it is the share that decides");
}

#[test]
fn s36_after_an_overflow_every_fold_that_saves_is_made() {
    let mut host = Host::new(&folding(3_000, ""));
    host.ingest(&lopsided());
    let (calls, outcome) = folds(&mut host, refused(Some(2_048)), noted);
    assert!(calls.len() == 1 && outcome.compacted);
}

#[test]
fn s37_a_blank_summary_is_refused() {
    let mut host = Host::new(&folding(100_000, ""));
    host.mood = Mood::Blank;
    host.ingest(&chat(9, 100));
    let outcome = host.plan(forced());
    assert_eq!((host.prompts.len(), outcome.failures.len()), (2, 1));
    assert_eq!(outcome.failures[0].code, "blank");
    assert!(outcome.compacted, "the local summarizer stands in");
}

#[test]
fn s37_a_summary_that_makes_the_view_no_smaller_is_refused() {
    // Smaller than the span, but not with the label around it.
    let all = chat(5, 100);
    let mut host = Host::new(&folding(100_000, ""));
    host.ingest(&all);
    let wordy = good_summary(&"word ".repeat(53));
    assert!(size(&[user(&wordy)]) < size(&all[..4]));
    let (_, outcome) = folds(&mut host, forced(), |_| text(&*wordy));
    assert_eq!(outcome.failures[0].code, "not_smaller");
    assert!(outcome.tokens_after <= outcome.tokens_before && !shown(&host)[0].contains(&wordy));
}

#[test]
fn s39_the_summarizer_sees_what_was_cleared() {
    let json =
        options(100_000, &format!(r#""summarizer":true,"tail":2,"stages":[{CLEAR},"summarize"]"#));
    let mut all = old_pairs(4, 400);
    all[2] = result("c0", &long("port 8471 is open", 600));
    let mut host = Host::new(&json);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(outcome.stages, ["clear", "summarize"]);
    assert!(host.prompts[0].contains("port 8471 is open"));
    assert!(host.prompts[0].len() < content(&all[2]).len() * 4, "in bounded form");
}

/// A forced burst over new messages with the summarizer in that mood; calls made.
fn burst(host: &mut Host, all: &mut Vec<String>, mood: Mood, request: PlanRequest) -> usize {
    let before = host.prompts.len();
    all.extend((all.len()..all.len() + 8).map(|at| said(at, 100)));
    host.mood = mood;
    host.ingest(all);
    assert!(host.plan(request).compacted);
    host.prompts.len() - before
}

#[test]
fn s40_s41_s42_three_failures_open_the_breaker_and_one_success_closes_it() {
    use Mood::{Good, Throws};
    let mut host = Host::new(&folding(100_000, ""));
    let mut all = vec![user("start")];
    let mut next = |mood, request| burst(&mut host, &mut all, mood, request);
    for mood in [Throws, Throws, Good, Throws, Throws, Throws] {
        assert_eq!(next(mood, forced()), 1, "never three in a row so far");
    }
    assert_eq!(next(Good, forced()), 0, "three in a row");
    assert_eq!(next(Good, refused(None)), 1, "an overflow is worth a try");
    assert_eq!(next(Good, forced()), 1, "and it worked");
}

#[test]
fn s43_a_failure_after_an_overflow_is_no_error() {
    let mut host = Host::new(&folding(100_000, ""));
    let mut all = vec![user("start")];
    assert_eq!(burst(&mut host, &mut all, Mood::Throws, refused(None)), 1);
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
}

#[test]
fn s44_s49_bad_stage_options_name_themselves() {
    for (stage, place) in [
        (r#"{"stage":"clear","keepLast":-1}"#, "options.stages[0].keepLast"),
        (r#"{"stage":"clear","minTokens":1.5}"#, "options.stages[0].minTokens"),
        (r#"{"stage":"offload","keepLast":0.5}"#, "options.stages[0].keepLast"),
        (r#"{"stage":"offload","previewTokens":1000}"#, "options.stages[0].previewTokens"),
        (r#"{"stage":"clear","at":0}"#, "options.stages[0].at"),
        (r#"{"stage":"clear","exclude":"read"}"#, "options.stages[0].exclude"),
        (r#"{"stage":"clear","keepFirst":1}"#, "options.stages[0].keepFirst"),
        (r#"{"stage":"compress"}"#, "options.stages[0].stage"),
        (r#""compress""#, "options.stages[0]"),
    ] {
        let json = format!("{{\"secret\":\"{}\",\"stages\":[{stage}]}}", host::SECRET);
        let error = tidemark::Options::from_json(&json).and_then(Engine::new).err().expect(stage);
        assert_eq!((error.code().as_str(), error.path()), ("invalid_option", place));
    }
    for (summary, place) in [
        (r#""minSavings":1"#, "options.summary.minSavings"),
        (r#""maxFailures":0"#, "options.summary.maxFailures"),
        (r#""maxTokens":0"#, "options.summary.maxTokens"),
    ] {
        let error = Engine::new(host::options(&folding(1_000, summary))).err().expect(summary);
        assert_eq!((error.code().as_str(), error.path()), ("invalid_option", place));
    }
}

#[test]
fn s45_s46_s47_a_giant_protected_result_is_elided_only_where_nothing_else_helps() {
    let giant = format!("HEAD{} TAIL", " word".repeat(8_900));
    let all = [&[user("start")][..], &pair("c", &giant)].concat();
    for store in ["", "\"store\":true"] {
        // It fits: over the trigger, but new to the model.
        let mut host = Host::new(&options(10_000, store));
        let outcome = host.turn(&all);
        assert!(outcome.tokens_before >= outcome.trigger.unwrap() && !outcome.compacted);
        assert_eq!(shown(&host), all);
        // It does not.
        let outcome = host.plan(refused(Some(4_096)));
        assert_eq!(decided(&outcome, "elided"), [2]);
        assert!(outcome.fits);
        let text = host.view()[2]["content"].as_str().unwrap().to_owned();
        assert!(text.starts_with("HEAD") && text.ends_with("TAIL"));
        let reference = outcome.decisions[0].reference.as_deref().unwrap();
        assert_eq!(recalled(&host.engine, reference), giant);
        assert_eq!(messages(&host.engine.render_json())[..2], all[..2]);
    }
}

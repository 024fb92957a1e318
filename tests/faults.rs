//! Faults of other compaction tools that belong to no wire format: loops (D), tails too large (E),
//! the summarizer's call (F), budget and counting (G), the prompt cache (J), resuming (L). Each test
//! bears the number of the fault; `FAULTS.md` has the table.

mod common;

use common::build::*;
use common::host::{Host, Mood, good_summary};
use common::openai_chat;
use serde_json::{Value, json};
use tidemark::{
    Author, Effect, Engine, ErrorCode, Options, Outcome, PlanRequest, Reason, Reply, Step,
};

const FOLD: &str = r#""tail":2,"summarizer":true,"stages":["summarize"]"#;

/// The view fits, and a provider would take it.
fn assert_sound(host: &Host, outcome: &Outcome) {
    assert!(outcome.fits, "{outcome:?}");
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
}

fn planned(json: &str, all: &[String]) -> (Host, Outcome) {
    let mut host = Host::new(json);
    let outcome = host.turn(all);
    (host, outcome)
}

/// A forced burst whose summarizer always answers with this text.
fn answered(more: &str, all: &[String], answer: &str) -> (Host, Outcome) {
    let mut host = Host::new(&options(100_000, &format!("{FOLD}{more}")));
    host.ingest(all);
    let outcome = drain(&mut host, forced(), |_| text(answer));
    (host, outcome)
}

/// A conversation with something to fold.
fn talk() -> Vec<String> {
    chat(31, 100)
}

// ---- D: loops, double compaction, no progress ---------------------------------------

#[test]
fn d37_a_second_pass_finds_nothing_and_tiny_views_are_let_be() {
    for stages in ["", FOLD] {
        let (mut host, outcome) = planned(&options(4_000, stages), &chat(41, 100));
        assert!(outcome.compacted);
        let view = host.engine.render_json();
        for _ in 0..3 {
            assert!(!host.plan(PlanRequest::default()).compacted);
            assert_eq!(host.engine.render_json(), view);
        }
    }
    // Not even when the host asks for it: some 30 tokens are no work.
    let tiny = [user("hello"), assistant("hello"), user("how are you?")];
    let mut host = Host::new(&options(4_000, FOLD));
    host.ingest(&tiny);
    assert!(!host.plan(forced()).compacted && host.prompts.is_empty());
    assert_eq!(shown(&host), tiny);
}

#[test]
fn d38_usage_of_before_the_burst_does_not_start_another() {
    let all = chat(41, 100);
    let (mut host, outcome) = planned(&options(4_000, ""), &all);
    assert!(outcome.compacted);
    let view = host.engine.render_json();
    // The report on the large view arrives, or is read from a kept message, after the burst.
    for _ in 0..2 {
        assert!(!host.plan(used(outcome.tokens_before)).compacted);
        assert_eq!(host.engine.render_json(), view);
    }
    let ratio = host.engine.estimate().ratio;
    assert!((0.9..1.3).contains(&ratio), "{ratio}");
}

#[test]
fn d40_a_reserve_as_large_as_the_window_does_not_make_every_step_a_burst() {
    for more in ["\"reserve\":32000", "\"reserve\":16384", "\"reserve\":0"] {
        let mut host = Host::new(&format!("{{\"window\":16384,{more}}}"));
        assert!(host.engine.estimate().usable.unwrap() >= 8_192);
        let mut bursts = 0;
        let all = pairs(60, 100);
        for end in (3..=all.len()).step_by(2) {
            bursts += usize::from(host.turn(&all[..end]).compacted);
        }
        assert!(bursts <= 2, "{more}: {bursts}");
    }
    let zero = Options::from_json(r#"{"window":0}"#).map(Engine::new);
    let error = zero.unwrap().map(|_| ()).unwrap_err();
    assert_eq!((error.code(), error.path()), (ErrorCode::InvalidOption, "options.window"));
    // Nor does a request that lets the model write more than there is.
    let mut engine = Host::new(r#"{"window":16384}"#).engine;
    let body = format!("{{\"max_tokens\":32000,\"messages\":[{}]}}", user("hello"));
    engine.ingest_body(body.as_bytes(), None).unwrap();
    assert!(engine.estimate().usable.unwrap() >= 8_192);
}

#[test]
fn d41_no_window_is_told_and_bursts_that_free_little_rest() {
    let (mut host, outcome) = planned("{}", &pairs(200, 300));
    assert_eq!(outcome.reason, Reason::UnknownWindow);
    assert!(outcome.notices.iter().any(|notice| notice.code == "unknown_window"));
    let outcome = host.plan(refused(None));
    assert!(outcome.compacted && outcome.tokens_after < outcome.tokens_before * 3 / 4);

    // Most of the view is pinned: what is left to free is hardly anything.
    let mut host = Host::new(&options(10_000, ""));
    let mut all = vec![user(&long("pinned", 8_600))];
    let mut bursts = 0;
    for at in 0..14 {
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), 60)));
        host.engine.ingest(0, &format!("[{}]", all.join(",")), &[0]).unwrap();
        bursts += usize::from(host.plan(PlanRequest::default()).compacted);
    }
    assert!(bursts <= 5, "{bursts}");
    // A history with nothing to free is let be.
    let mut host = Host::new(&options(10_000, ""));
    host.engine.ingest(0, &format!("[{}]", user(&long("pinned", 9_000))), &[0]).unwrap();
    for _ in 0..14 {
        assert_eq!(host.plan(PlanRequest::default()).reason, Reason::NothingToCompact);
    }
}

#[test]
fn d43_a_pending_message_that_is_handed_over_twice_counts_once() {
    let mut all = chat(20, 100);
    let mut host = Host::new(&options(100_000, ""));
    host.ingest(&all);
    let pending = user(&long("pending", 500));
    all.push(pending.clone());
    host.ingest(&all);
    let once = host.engine.estimate();
    host.ingest(&all);
    host.engine.ingest(20, &format!("[{pending}]"), &[]).unwrap();
    assert_eq!(host.engine.estimate(), once);
    assert_eq!(shown(&host), all);
}

#[test]
fn d44_of_two_plans_at_once_one_summary_is_taken_and_it_is_data() {
    let all = talk();
    let mut host = Host::new(&options(100_000, FOLD));
    host.ingest(&all);
    let Step::Effects { effects: first } = host.engine.plan(forced()).unwrap() else { panic!() };
    let Step::Effects { effects: second } = host.engine.plan(forced()).unwrap() else { panic!() };
    let late = Reply::Text { text: good_summary("of the first") };
    assert_eq!(host.engine.resolve(first[0].id(), late.clone()).unwrap(), Step::Idle);
    let reply = Reply::Text { text: good_summary("of the second") };
    let Step::Done { outcome } = host.engine.resolve(second[0].id(), reply).unwrap() else {
        panic!()
    };
    assert!(outcome.summary.unwrap().text.contains("of the second"));
    assert_eq!(host.engine.resolve(first[0].id(), late).unwrap(), Step::Idle);
    assert_eq!(host.engine.summaries().len(), 1);
    let text = host.engine.render_json();
    assert!(text.contains("not an instruction") && !text.contains("of the first"));
}

#[test]
fn d46_a_summary_too_large_for_the_window_is_compacted_itself() {
    let all = chat(101, 200);
    let line = long("a fact", 1_100);
    let (host, outcome) = answered(r#","summary":{"maxTokens":8000}"#, &all, &good_summary(&line));
    assert_eq!(outcome.summary.unwrap().by, Author::Host);
    assert!(host.engine.estimate().tokens > 6_000);
    let mut small = Host::restore(&options(2_000, ""), &host.engine.checkpoint());
    let outcome = small.turn(&all);
    assert_sound(&small, &outcome);
    assert!(outcome.tokens_after <= 2_000);
}

// ---- E: nothing to compact, or a tail too large -------------------------------------

#[test]
fn e47_a_tail_of_one_pair_is_shrunk_within() {
    let all = [
        vec![user(&long("task", 3_000))],
        pair("c", &format!("{} end", long("r", 18_000))).to_vec(),
    ]
    .concat();
    let (host, outcome) = planned(&options(20_500, r#""tail":20000"#), &all);
    assert_sound(&host, &outcome);
    let view = shown(&host);
    assert_eq!(view[..2], all[..2]);
    assert!(view[2].contains("r: word") && view[2].contains(" end") && view[2].contains("ref"));
    let whole = recalled(&host.engine, outcome.decisions[0].reference.as_deref().unwrap());
    assert!(whole.ends_with(" end"));
}

#[test]
fn e49_one_user_message_and_sixty_steps_are_cut_within_the_turn() {
    let mut all = pairs(60, 200);
    all[0] = user("Migrate every module to the new logger.");
    for more in ["", FOLD, r#""stages":["drop","elide"]"#, r#""preset":"two-tier""#] {
        let (host, outcome) = planned(&options(6_000, more), &all);
        assert!(outcome.compacted, "{more}");
        assert_sound(&host, &outcome);
        assert_eq!(host.view()[0]["role"], "user");
        assert!(shown(&host).len() > 4);
        assert_eq!(shown(&host).last(), all.last(), "the step that runs");
    }
    let (host, outcome) = planned(&options(6_000, r#""stages":["summarize"]"#), &all);
    assert!(
        outcome.summary.as_ref().unwrap().text.contains("Migrate every module to the new logger.")
    );
    assert_sound(&host, &outcome);
}

#[test]
fn e50_a_view_fits_or_is_said_not_to() {
    let all = [chat(10, 100), pair("c", &long("giant", 153_800)).to_vec()].concat();
    for (stages, fits) in [
        ("", true),
        (r#""stages":["summarize"]"#, false),
        (r#""stages":["clear"]"#, false),
        (r#""stages":[]"#, false),
    ] {
        let (host, outcome) = planned(&options(131_000, stages), &all);
        assert_eq!(outcome.fits, fits, "{stages}");
        assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap());
        assert_eq!(outcome.tokens_after, host.engine.estimate().tokens);
        if !fits {
            assert_eq!(outcome.reason, Reason::CannotFit);
            assert_eq!(outcome.smallest, Some(outcome.tokens_after));
        }
    }
}

#[test]
fn e52_results_that_are_kept_by_count_are_bounded_by_tokens() {
    let all = [pairs(3, 80_000), vec![assistant("read"), user("and now?")]].concat();
    for more in ["", r#""preset":"two-tier""#, r#""stages":["clear","drop","elide"]"#] {
        let (host, outcome) = planned(&options(100_000, more), &all);
        assert_sound(&host, &outcome);
        assert_eq!(shown(&host).last(), all.last(), "{more}");
    }
}

#[test]
fn e53_the_view_is_never_empty() {
    for all in [vec![user(&long("u", 400))], vec![system("be brief"), user(&long("u", 400))]] {
        for window in [1, 25, 60, 300] {
            let (host, outcome) = planned(&options(window, ""), &all);
            let view = host.view();
            assert_eq!(view.len(), all.len());
            assert_eq!(view.last().unwrap()["role"], "user");
            assert!(!view.last().unwrap()["content"].as_str().unwrap().is_empty());
            assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
            assert_eq!(outcome.fits, outcome.reason != Reason::CannotFit);
            assert!(outcome.fits || outcome.smallest.is_some());
        }
    }
}

#[test]
fn e55_what_leaves_is_chosen_by_tokens_and_not_by_count() {
    let mut all = vec![user("start")];
    for at in 0..100 {
        let words = if at % 20 == 10 { 2_500 } else { 8 };
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), words)));
    }
    all.extend([assistant("done"), user("next")]);
    let (host, outcome) = planned(&options(16_000, ""), &all);
    assert_sound(&host, &outcome);
    assert!(outcome.tokens_after <= outcome.target.unwrap());
    assert!(!outcome.decisions.is_empty() && outcome.decisions.len() <= 5, "{outcome:?}");
    assert!(verbatim(&host, &all).len() >= all.len() - 5, "the many small ones stay");
}

#[test]
fn e56_a_batch_of_results_each_small_enough_is_capped_together() {
    let ids = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    let mut all = vec![user("read them"), calls(&ids, "x")];
    all.extend(ids.iter().map(|id| result(id, &long(id, 900))));
    let (host, outcome) = planned(&options(5_000, ""), &all);
    assert_sound(&host, &outcome);
    assert_eq!(shown(&host).len(), all.len());
    for (id, text) in ids.iter().zip(&shown(&host)[2..]) {
        assert!(text.contains(&format!("{id}: word word word")), "{text}");
    }
}

// ---- F: the summarizer's call -------------------------------------------------------

/// Every prompt with its answer is inside a window.
fn assert_prompts_fit(prompts: &[(String, u32)], window: u32) {
    assert!(!prompts.is_empty());
    for (prompt, answer) in prompts {
        let tokens = size(&[user(prompt)]);
        assert!(tokens + answer <= window, "{tokens} + {answer} > {window}");
    }
}

#[test]
fn f58_a_prompt_never_outgrows_the_summarizer_and_a_model_is_not_needed() {
    // The conversation is ten times the window.
    let all = chat(701, 120);
    let mut host = Host::new(&options(8_000, FOLD));
    host.ingest(&all);
    let mut prompts = Vec::new();
    let outcome = drain(&mut host, forced(), |effect| {
        let Effect::Summarize { prompt, system, max_tokens, .. } = effect else { panic!() };
        prompts.push((format!("{system}{prompt}"), *max_tokens));
        text(good_summary("noted"))
    });
    assert_sound(&host, &outcome);
    assert_prompts_fit(&prompts, 8_000);
    // A provider that refuses the prompt all the same, or none at all.
    for summarizer in [true, false] {
        let mut host = Host::new(&options(
            8_000,
            &format!("\"summarizer\":{summarizer},\"stages\":[\"summarize\"]"),
        ));
        host.ingest(&all);
        let reply = Reply::Failed { message: "prompt is too long".into() };
        let outcome = drain(&mut host, forced(), |_| reply.clone());
        assert_sound(&host, &outcome);
        assert_eq!(outcome.summary.unwrap().by, Author::Local);
    }
}

#[test]
fn f59_g85_the_output_is_part_of_the_budget_and_error_turns_can_leave() {
    // A hundredth of 993,726 + 64,000 > 1,048,576.
    let mut all = pairs(30, 280);
    let (host, outcome) =
        planned(r#"{"window":10485,"reserve":1500,"compactAt":1.0,"compactTo":0.9}"#, &all);
    let before = outcome.tokens_before;
    assert!(before + 1_500 > 10_485 && before < 10_485, "{before}");
    assert!(outcome.compacted);
    assert_sound(&host, &outcome);
    // The same where only the request says how much may be written.
    let mut engine = Host::new(r#"{"window":10485,"reserve":0}"#).engine;
    for member in ["max_tokens", "max_completion_tokens"] {
        let body =
            format!("{{\"model\":\"m\",\"{member}\":1500,\"messages\":[{}]}}", all.join(","));
        engine.ingest_body(body.as_bytes(), None).unwrap();
        assert_eq!(engine.estimate().usable, Some(8_985), "{member}");
    }
    // Retries that append the error do not make it grow past the limit.
    let mut host = Host::new(r#"{"window":10485,"reserve":1500}"#);
    for at in 0..30 {
        all.push(assistant(&long(&format!("API error {at}: prompt is too long"), 150)));
        all.push(user("go on"));
        let outcome = host.turn(&all);
        assert_sound(&host, &outcome);
    }
    let first = all.iter().position(|one| one.contains("API error 0:")).unwrap();
    assert!(!shown(&host).contains(&all[first]));
}

#[test]
fn f61_a_summarizer_that_fails_leaves_no_trace_in_the_view() {
    let all = talk();
    let mut host = Host::new(&options(100_000, FOLD));
    host.ingest(&all);
    let boom = Reply::Failed { message: "Error generating summary: boom".into() };
    let outcome = drain(&mut host, forced(), |_| boom.clone());
    assert_eq!(outcome.summary.unwrap().by, Author::Local);
    assert_eq!(outcome.failures[0].code, "host");
    assert!(!host.engine.render_json().contains("boom"));
}

#[test]
fn f62_an_empty_skeleton_is_no_summary_and_the_previous_one_is_carried_on() {
    let mut all = talk();
    all[0] = user("The build id is BUILD-7781-Q. Never force-push.");
    let more = r#","summary":{"maxFailures":100}"#;
    let (mut host, first) = answered(more, &all, &good_summary("noted"));
    assert!(first.summary.is_some());
    // Nothing new: no call, no new summary.
    let again = drain(&mut host, forced(), |effect| panic!("{effect:?}"));
    assert!(!again.compacted && again.summary.is_none());
    let headings = "## Session intent\n## Current state\n## Key facts & decisions\n## Artifacts\n\
        ## Constraints & preferences\n## Next steps\n";
    for skeleton in [
        headings.to_owned(),
        headings.replace('\n', "\n\n"),
        headings.replace('\n', "\n- \n"),
        headings.replace('\n', "\nNone\n"),
        headings.replace('\n', "\n- (none)\n"),
        headings.replace('\n', "\nN/A\n"),
    ] {
        let at = all.len();
        all.extend((at..at + 20).map(|at| said(at, 100)));
        host.ingest(&all);
        let mut asked = 0;
        let outcome = drain(&mut host, forced(), |effect| {
            let Effect::Summarize { prompt, .. } = effect else { panic!() };
            asked += 1;
            assert!(prompt.contains("BUILD-7781-Q"), "the previous summary goes on");
            text(skeleton.clone())
        });
        assert!(asked > 0);
        assert_eq!(outcome.summary.unwrap().by, Author::Local, "{skeleton}");
        let view = host.engine.render_json();
        assert!(view.contains("BUILD-7781-Q") && view.contains("Never force-push"));
    }
}

#[test]
fn f64_f65_an_empty_answer_is_a_failure_and_nothing_else_stands_in_for_it() {
    let mut all = talk();
    let last = "as I said before: ship it";
    all[29] = assistant(last);
    for empty in [
        "",
        " \n",
        "<think>They talk about words.</think>",
        "<think>They talk",
        "<thinking>\nhm\n</thinking>\n",
    ] {
        let (host, outcome) = answered("", &all, empty);
        assert_eq!(outcome.summary.as_ref().unwrap().by, Author::Local, "{empty}");
        assert!(outcome.failures.iter().all(|failure| failure.code == "blank"), "{outcome:?}");
        assert!(!outcome.failures.is_empty());
        assert!(!host.engine.render_json().contains("They talk"), "{empty}");
    }
}

#[test]
fn f67_nothing_is_hidden_before_the_summary_is_there() {
    let all = talk();
    let mut host = Host::new(&options(100_000, FOLD));
    host.ingest(&all);
    let before = (host.engine.render_json(), host.engine.checkpoint());
    let Step::Effects { effects } = host.engine.plan(forced()).unwrap() else { panic!() };
    assert_eq!((host.engine.render_json(), host.engine.checkpoint()), before);
    host.engine.cancel();
    assert_eq!((host.engine.render_json(), host.engine.checkpoint()), before);
    let late = Reply::Text { text: good_summary("late") };
    assert_eq!(host.engine.resolve(effects[0].id(), late).unwrap(), Step::Idle);
    assert_eq!((host.engine.render_json(), host.engine.checkpoint()), before);
    assert_eq!(shown(&host), all);
}

#[test]
fn f68_tool_calls_and_reasoning_are_no_part_of_a_summary() {
    let all = talk();
    for call in [
        "<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>",
        "<function_calls><invoke name=\"read\"></invoke></function_calls>",
        "<function=read>{\"path\": \"a\"}</function>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function",
        "[TOOL_CALLS][{\"name\": \"read\"}]",
        "{\"name\": \"read\", \"arguments\": {}}",
        "[{\"name\": \"read\", \"arguments\": {}}]",
        "```json\n{\"name\": \"read\"}\n```",
        "```tool_code\nread('a')\n```",
    ] {
        // With every heading behind it, so that nothing else is wrong with it.
        let (host, outcome) = answered("", &all, &format!("{call}\n{}", good_summary("noted")));
        assert_eq!(outcome.summary.unwrap().by, Author::Local, "{call}");
        assert!(
            outcome.failures.iter().all(|one| one.code == "tool_call"),
            "{:?}",
            outcome.failures
        );
        assert!(!host.engine.render_json().contains(call));
    }
    for thought in [
        "<think>let me see</think>",
        "\n<thinking>let me\nsee</thinking>\n\n",
        "<reasoning>let me see</reasoning>",
    ] {
        let (host, outcome) = answered("", &all, &format!("{thought}{}", good_summary("noted")));
        assert_eq!(outcome.summary.unwrap().by, Author::Host, "{thought}");
        let view = host.engine.render_json();
        assert!(view.contains("- noted") && !view.contains("let me"), "{thought}");
    }
}

#[test]
fn f70_the_answer_that_is_asked_for_does_not_grow_with_the_history() {
    for (count, window) in [(61, 200_000), (2_001, 1_000_000)] {
        let mut host = Host::new(&options(window, FOLD));
        host.ingest(&chat(count, 150));
        let mut asked = Vec::new();
        drain(&mut host, forced(), |effect| {
            let Effect::Summarize { max_tokens, .. } = effect else { panic!() };
            asked.push(*max_tokens);
            text(good_summary("noted"))
        });
        assert!(!asked.is_empty() && asked.iter().all(|tokens| *tokens <= 4_096), "{asked:?}");
    }
}

#[test]
fn f71_a_summary_that_does_not_shrink_is_refused() {
    let all = chat(9, 40);
    let mut host = Host::new(&options(100_000, FOLD));
    host.ingest(&all);
    let before = host.engine.estimate().tokens;
    let verbose = good_summary(&long("and", 120));
    let outcome = drain(&mut host, forced(), |_| text(verbose.clone()));
    assert!(outcome.tokens_after <= before);
    assert!(!host.engine.render_json().contains(&long("and", 120)));
    assert!(outcome.failures.iter().any(|one| one.code == "not_smaller" || one.code == "too_long"));
}

// ---- G: budget and counting ---------------------------------------------------------

/// Tokens of a text without the frame around a message.
fn text_tokens(text: &str) -> u32 {
    size(&[user(text)]) - size(&[user("")])
}

#[test]
fn g73_a_character_of_chinese_or_japanese_is_about_a_token() {
    let japanese = "今日は天気がいいので、公園まで散歩に行きました。";
    assert_eq!(japanese.chars().count(), 24);
    let tokens = text_tokens(japanese);
    assert!((12..=26).contains(&tokens), "{tokens}");
    let han: String = "今天天气很好我们去公园散步看花".chars().cycle().take(160).collect();
    let tokens = text_tokens(&han);
    assert!((90..=190).contains(&tokens), "{tokens}");
    // So a tail of so many tokens is not one of four times as many.
    let all: Vec<String> = (0..41)
        .map(|at| {
            let text = format!("{at}{han}");
            if at % 2 == 0 { user(&text) } else { assistant(&text) }
        })
        .collect();
    let mut host =
        Host::new(&options(1_000_000, r#""tail":1000,"stages":[{"stage":"drop","at":0.001}]"#));
    host.ingest(&all);
    host.plan(forced());
    assert!(verbatim(&host, &all).len() <= 1_000 / 90, "{:?}", verbatim(&host, &all));
}

#[test]
fn g74_calibration_reaches_far_enough_for_any_script() {
    for factor in [0.25, 0.5, 2.0, 4.0] {
        let mut host = Host::new(&options(1_000_000, ""));
        let all = chat(61, 60);
        for end in (1..=all.len()).step_by(6) {
            host.turn(&all[..end]);
            let estimate = host.engine.estimate();
            let raw = f64::from(estimate.tokens) / estimate.ratio;
            host.plan(used((raw * factor) as u32));
        }
        let ratio = host.engine.estimate().ratio;
        assert!((ratio / factor - 1.0).abs() < 0.05, "{factor}: {ratio}");
    }
}

/// A part with an image of a size that cannot be read, so many bytes long.
fn picture(bytes: usize) -> Value {
    let url = format!("data:image/png;base64,{}", "iVBORw0KGgoA".repeat(bytes / 12));
    json!({"type": "image_url", "image_url": {"url": url}})
}

#[test]
fn g76_the_bytes_of_an_image_are_no_text() {
    let question = json!({"role": "user", "content": [picture(1_400_000),
        {"type": "text", "text": "what is this?"}]});
    let (host, outcome) = planned(&options(16_000, ""), &[question.to_string()]);
    assert_eq!(outcome.reason, Reason::UnderTrigger);
    assert!(host.engine.estimate().tokens < 3_000);
    assert_eq!(shown(&host), [question.to_string()]);
}

#[test]
fn g77_an_image_costs_wherever_it_stands() {
    let in_user = json!({"role": "user", "content": [picture(1_200)]}).to_string();
    assert!(size(&[in_user]) > 500);
    let in_result =
        json!({"role": "tool", "tool_call_id": "c", "content": [picture(1_200)]}).to_string();
    assert!(size(&[user("x"), calls(&["c"], "x"), in_result]) > 500);
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA"});
    let image = json!({"type": "image", "source": source});
    let nested = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c", "content": [image]}]});
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c", "name": "shot", "input": {}}]});
    let mut host = Host::new(r#"{"format":"anthropic"}"#);
    host.ingest(
        &[json!({"role": "user", "content": "x"}), call, nested].map(|one| one.to_string()),
    );
    assert!(host.engine.estimate().tokens > 500);
}

#[test]
fn g79_of_more_images_than_a_request_may_hold_the_oldest_leave() {
    let mut all = Vec::new();
    for at in 0..21 {
        all.push(
            json!({"role": "user", "content": [{"type": "text", "text": format!("image {at}")},
            picture(1_200 + at * 12)]})
            .to_string(),
        );
        all.push(assistant("seen"));
    }
    all.push(user("compare"));
    let (host, outcome) = planned(&options(1_000_000, r#""maxImages":20"#), &all);
    assert_eq!(outcome.decisions.iter().map(|one| one.index).collect::<Vec<_>>(), [0]);
    let text = host.engine.render_json();
    assert_eq!(text.matches("data:image/png").count(), 20);
    assert!(text.contains("image 0") && shown(&host).len() == all.len());
    assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new());
}

#[test]
fn g80_tools_and_instructions_count() {
    let tools: Vec<Value> = (0..30)
        .map(|at| {
            json!({"type": "function", "function": {"name": format!("tool_{at}"),
                "description": long("does", 80), "parameters": {"type": "object"}}})
        })
        .collect();
    let all = chat(9, 40);
    let (mut host, outcome) = planned(&options(3_000, ""), &all);
    assert_eq!(outcome.reason, Reason::UnderTrigger);
    let before = host.engine.estimate().tokens;
    host.engine.set_tools(&json!(tools).to_string()).unwrap();
    assert!(host.engine.estimate().tokens > before + 30 * 80);
    assert_ne!(host.plan(PlanRequest::default()).reason, Reason::UnderTrigger);
    let mut host = Host::new(&options(3_000, ""));
    host.ingest(&all);
    host.engine.set_system(&json!(long("rules", 3_000)).to_string()).unwrap();
    assert_eq!(host.plan(PlanRequest::default()).reason, Reason::CannotFit);
}

#[test]
fn g82_no_window_is_guessed() {
    for model in ["", ",\"model\":\"gpt-4o\"", ",\"model\":\"some-1m-model\""] {
        let mut host = Host::new(&format!("{{\"imageTokens\":1600{model}}}"));
        let outcome = host.turn(&chat(901, 300));
        assert_eq!((outcome.reason, outcome.window), (Reason::UnknownWindow, None));
        assert!(!outcome.compacted && outcome.fits);
        assert!(outcome.notices.iter().any(|notice| notice.code == "unknown_window"));
        assert_eq!(host.engine.estimate().trigger, None);
    }
    // And the window that is given is the one that holds.
    let (_, outcome) = planned(r#"{"window":1000000}"#, &chat(901, 300));
    assert_eq!(outcome.reason, Reason::UnderTrigger);
}

#[test]
fn g83_a_summarizer_smaller_than_the_model_gets_prompts_of_its_own_size() {
    let mut host = Host::new(&options(
        128_000,
        &format!("{FOLD},\"summary\":{{\"window\":8000,\"maxCalls\":100}}"),
    ));
    host.ingest(&chat(701, 140));
    let mut prompts = Vec::new();
    let outcome = drain(&mut host, forced(), |effect| {
        let Effect::Summarize { prompt, system, max_tokens, .. } = effect else { panic!() };
        prompts.push((format!("{system}{prompt}"), *max_tokens));
        text(good_summary("noted"))
    });
    assert_sound(&host, &outcome);
    assert!(prompts.len() > 10);
    assert_prompts_fit(&prompts, 8_000);
}

// ---- J: the prompt cache ------------------------------------------------------------

#[test]
fn j103_j104_between_bursts_each_view_begins_with_the_last() {
    let mut host = Host::new(&options(12_000, ""));
    let mut all = vec![system("rules"), user("start")];
    let (mut last, mut breaks) = (String::new(), 0);
    for at in 0..120 {
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), 100 + at % 7 * 60)));
        let outcome = host.turn(&all);
        assert_sound(&host, &outcome);
        let view = host.engine.render_json();
        let kept = last.is_empty() || view.starts_with(&last[..last.len() - 1]);
        assert!(kept || outcome.compacted, "turn {at} broke the prefix without a burst");
        assert_eq!(outcome.compacted, outcome.cache.is_some());
        if let Some(cache) = outcome.cache {
            let prefix = cache.prefix_bytes as usize;
            assert_eq!(view[..prefix], last[..prefix], "what is said to stay stays");
        }
        breaks += usize::from(!kept);
        last = view;
    }
    assert!((1..=12).contains(&breaks), "{breaks} in 120 turns");
}

#[test]
fn j106_the_summarizers_prompt_stands_alone_or_behind_the_live_prefix() {
    for (request, alone) in [("standalone", true), ("append", false)] {
        let all = talk();
        let more = format!("{FOLD},\"summary\":{{\"request\":\"{request}\"}}");
        let mut host = Host::new(&options(100_000, &more));
        host.ingest(&all);
        let sent = host.engine.render_json();
        drain(&mut host, forced(), |effect| {
            let Effect::Summarize { view, prompt, .. } = effect else { panic!() };
            assert_eq!(view.is_none(), alone);
            assert_eq!(prompt.contains("m0: word"), alone, "the span is not sent twice");
            text(good_summary("noted"))
        });
        assert!(sent.contains("m0: word"));
    }
}

#[test]
fn j107_the_border_of_the_summary_is_a_stable_breakpoint() {
    let mut all = vec![system("rules")];
    all.extend(talk());
    let (mut host, outcome) = {
        let mut host = Host::new(&options(3_600, r#""stages":["summarize"]"#));
        let outcome = host.turn(&all);
        (host, outcome)
    };
    assert!(outcome.summary.is_some());
    let border = shown(&host)[..2].to_vec();
    assert!(border[1].contains("conversation_summary"));
    let stamp = host.engine.render(0, 0, 0);
    for _ in 0..10 {
        let at = all.len() - 1;
        all.extend([said(at, 10), said(at + 1, 10)]);
        assert!(!host.turn(&all).compacted);
        assert_eq!(shown(&host)[..2], border);
        let drawn = host.engine.render(0, 0, 0);
        assert_eq!((drawn.lead, drawn.hidden), (stamp.lead, stamp.hidden), "where it is, is told");
    }
}

// ---- L: persistence and resume ------------------------------------------------------

#[test]
fn l116_a_restored_session_shows_the_summary_and_not_what_it_stands_for() {
    let all = [talk(), pairs(10, 200).split_off(1)].concat();
    let json = options(4_000, r#""summarizer":true,"store":true"#);
    let (host, outcome) = planned(&json, &all);
    let covered = outcome.summary.as_ref().unwrap().covered as usize;
    let mut again = Host::restore(&json, &host.engine.checkpoint());
    again.ingest(&all);
    assert_eq!(again.engine.render_json(), host.engine.render_json());
    assert_eq!(again.engine.checkpoint(), host.engine.checkpoint());
    let view = shown(&again);
    assert!(all[..covered].iter().all(|message| !view.contains(message)));
    assert_eq!(again.engine.render_json().matches("<conversation_summary>").count(), 1);
    assert!(!again.plan(PlanRequest::default()).compacted);
}

#[test]
fn l118_a_note_about_what_left_is_never_taken_for_a_summary() {
    let mut all = talk();
    let (mut host, outcome) = planned(&options(2_500, r#""stages":["drop"]"#), &all);
    assert!(outcome.compacted && outcome.summary.is_none());
    assert!(host.engine.summaries().is_empty());
    let note = shown(&host)[0].clone();
    // A summary taken later is of the messages and not of the note.
    let mut next = Host::restore(&options(2_500, FOLD), &host.engine.checkpoint());
    all.extend((31..41).map(|at| said(at, 100)));
    next.ingest(&all);
    let outcome = next.plan(forced());
    assert!(outcome.summary.is_some() && next.engine.summaries().len() == 1);
    let inside: Value = serde_json::from_str(&note).unwrap();
    let inside = inside["content"].as_str().unwrap();
    assert!(next.prompts.iter().all(|prompt| !prompt.contains(inside)));
    assert!(!next.engine.render_json().contains(inside));
    // Nor does a summary give way to a note without a word.
    host.ingest(&all);
    host.mood = Mood::Good;
    assert_eq!(host.engine.summaries().len(), 0);
}

#[test]
fn l119_rules_that_the_caller_pins_outlive_every_compaction() {
    let rules = user("AGENTS.md: run the linter before each commit");
    let mut all = vec![system("be careful"), user("hello"), rules.clone()];
    let mut host = Host::new(&options(3_000, r#""summarizer":true"#));
    for at in 0..60 {
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), 120)));
        host.engine.ingest(0, &format!("[{}]", all.join(",")), &[2]).unwrap();
        let outcome = host.plan(PlanRequest::default());
        assert_sound(&host, &outcome);
        assert!(shown(&host).contains(&rules), "turn {at}");
    }
    assert!(host.engine.summaries().len() > 1);
    let mut again = Host::restore(&options(3_000, ""), &host.engine.checkpoint());
    again.engine.ingest(0, &format!("[{}]", all.join(",")), &[2]).unwrap();
    assert_eq!(again.engine.render_json(), host.engine.render_json());
}

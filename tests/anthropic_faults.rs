//! Faults that users of other tools met, held against Anthropic Messages, and the rules of thinking.
//!
//! `FAULTS.md` says which test answers which fault.

mod common;

use common::anthropic::{blocks, is_thinking, keeps_signed, problems, signed};
use common::build::{drain, failed, forced, long, shown};
use common::host::{Host, Mood, good_summary};
use serde_json::{Value, json};
use tidemark::{Effect, Outcome, PlanRequest, Reply};

fn message(role: &str, content: Value) -> String {
    json!({"role": role, "content": content}).to_string()
}

fn user(text: &str) -> String {
    message("user", json!(text))
}

fn assistant(text: &str) -> String {
    message("assistant", json!([{"type": "text", "text": text}]))
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a.rs"}})
}

fn calls(ids: &[&str]) -> String {
    message("assistant", ids.iter().map(|id| call(id)).collect())
}

fn answer(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

fn result(id: &str, text: &str) -> String {
    message("user", json!([answer(id, text)]))
}

fn thinking(tag: &str) -> Value {
    json!({"type": "thinking", "thinking": format!("thought {tag}"), "signature": format!("Sig{tag}==")})
}

/// Calls that thinking led to.
fn thought_calls(tag: &str, ids: &[&str]) -> String {
    let blocks: Vec<Value> =
        std::iter::once(thinking(tag)).chain(ids.iter().map(|id| call(id))).collect();
    message("assistant", json!(blocks))
}

/// An answer that thinking led to.
fn thought(tag: &str) -> String {
    message("assistant", json!([thinking(tag), {"type": "text", "text": format!("said {tag}")}]))
}

/// Old turns: user, thought, call, result, answer, of so many words each.
fn turns(count: usize, words: usize) -> Vec<String> {
    let mut out = Vec::new();
    for at in 0..count {
        let id = format!("toolu_{at}");
        out.push(user(&long(&format!("ask{at}"), words)));
        out.push(thought_calls(&format!("old{at}"), &[&id]));
        out.push(result(&id, &long(&format!("res{at}"), words)));
        out.push(assistant(&long(&format!("done{at}"), words)));
    }
    out
}

fn host(options: &str) -> Host {
    Host::new(&format!(r#"{{"format":"anthropic","reserve":0,{options}}}"#))
}

fn check(host: &Host, all: &[String]) {
    assert_eq!(problems(&host.view()), Vec::<String>::new(), "{}", host.engine.render_json());
    assert!(keeps_signed(all, &shown(host)));
}

/// Compacts as far as it goes, and checks the view.
fn squeezed(all: &[String], options: &str) -> (Host, Outcome) {
    let mut host = host(options);
    host.ingest(all);
    let outcome = host.plan(forced());
    check(&host, all);
    (host, outcome)
}

/// The view of messages that need no compaction, checked, and the kinds of the repairs.
fn mended(all: &[String]) -> (Vec<String>, Vec<&'static str>) {
    let mut host = host(r#""window":100000"#);
    let outcome = host.turn(all);
    assert!(!outcome.compacted);
    check(&host, all);
    (shown(&host), outcome.repairs.iter().map(|repair| repair.kind).collect())
}

// A. Pairing of calls and results.

#[test]
fn f01_a_call_that_never_got_its_result_is_closed_or_pending() {
    let all = [user("go"), calls(&["toolu_1"]), user("error, retry")];
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["unanswered_call"]);
    assert!(view[2].contains("no result was recorded"));
    let (view, repairs) = mended(&all[..2]);
    assert_eq!((view, repairs.len()), (all[..2].to_vec(), 0));
}

#[test]
fn f02_a_call_and_a_result_that_the_host_made_up_go_together() {
    let mut all = turns(8, 60);
    all.extend([calls(&["toolu_x"]), result("toolu_x", "[aborted by the user]"), user("now?")]);
    for window in [400, 800, 1_200, 2_000] {
        squeezed(&all, &format!(r#""window":{window}"#));
    }
}

#[test]
fn f04_pairs_hold_through_chained_compactions() {
    let mut all = turns(6, 80);
    let mut host = host(r#""window":1500"#);
    for at in 10..30 {
        let id = format!("toolu_{at}");
        all.push(user(&long(&format!("again{at}"), 80)));
        all.push(calls(&[&id]));
        host.turn(&all);
        check(&host, &all);
        host.plan(forced());
        check(&host, &all);
        all.push(result(&id, &long("late", 80)));
        host.turn(&all);
        check(&host, &all);
    }
}

#[test]
fn f05_a_parallel_batch_is_never_cut() {
    let batch = |spread: bool| {
        let ids = ["toolu_a", "toolu_b", "toolu_c"];
        let mut all = vec![user("start"), calls(&ids)];
        match spread {
            true => all.extend(ids.map(|id| result(id, &long(id, 120)))),
            false => {
                all.push(message("user", ids.map(|id| answer(id, &long(id, 120))).to_vec().into()))
            }
        }
        all.extend([assistant("read"), user("next")]);
        all
    };
    for spread in [false, true] {
        let all = batch(spread);
        for window in [100, 150, 200, 300, 400, 600] {
            let (host, _) =
                squeezed(&all, &format!(r#""window":{window},"stages":["drop","elide"]"#));
            let text = host.engine.render_json();
            let ids = ["\"toolu_a\"", "\"toolu_b\"", "\"toolu_c\""];
            let found = ids.map(|id| text.matches(id).count());
            assert!(found == [2; 3] || found == [0; 3], "{window}: {found:?}");
        }
    }
}

#[test]
fn f07_a_second_plan_does_nothing() {
    let all = turns(10, 80);
    let mut host = host(r#""window":1500"#);
    assert!(host.turn(&all).compacted);
    let view = host.engine.render_json();
    for _ in 0..3 {
        assert!(!host.turn(&all).compacted);
        assert_eq!(host.engine.render_json(), view);
    }
}

#[test]
fn f08_a_user_message_that_only_carries_results_starts_no_turn() {
    let mut all = vec![user("start")];
    for at in 0..20 {
        let id = format!("toolu_{at}");
        all.extend([calls(&[&id]), result(&id, &long("r", 60))]);
    }
    for window in 300..340 {
        let (host, _) = squeezed(&all, &format!(r#""window":{window},"stages":["drop"]"#));
        let view = host.view();
        assert!(view[0]["content"].is_string(), "a result begins the view");
    }
}

#[test]
fn f10_orphans_are_left_out_and_reported() {
    let (view, repairs) = mended(&[user("hi"), result("toolu_9", "orphan"), assistant("ok")]);
    assert_eq!(repairs, ["orphan_result"]);
    assert!(!view.concat().contains("orphan"));
}

#[test]
fn f10_an_orphan_beside_text_leaves_the_text() {
    let beside =
        message("user", json!([answer("toolu_9", "orphan"), {"type": "text", "text": "and you?"}]));
    let (view, repairs) = mended(&[user("hi"), assistant("ok"), beside]);
    assert_eq!(repairs, ["orphan_result"]);
    assert_eq!(view[2], r#"{"content":[{"text":"and you?","type":"text"}],"role":"user"}"#);
}

#[test]
fn f11_unanswered_trailing_calls_are_never_summarized() {
    let mut all = turns(8, 80);
    all.extend([user("last"), thought_calls("now", &["toolu_p", "toolu_q"])]);
    let (host, outcome) = squeezed(&all, r#""window":1200"#);
    assert!(outcome.compacted);
    let view = shown(&host);
    assert_eq!(view[view.len() - 2..], all[all.len() - 2..]);
}

#[test]
fn f13_the_tail_is_counted_in_units() {
    let all = [
        user("one"),
        calls(&["toolu_1"]),
        result("toolu_1", &long("r", 200)),
        assistant("a"),
        user("two"),
        assistant("b"),
    ];
    for window in [60, 80, 100, 200, 300] {
        squeezed(&all, &format!(r#""window":{window}"#));
    }
}

#[test]
fn f14_a_long_loop_is_valid_for_the_strictest_vendor_at_every_length() {
    let mut all = vec![user("start")];
    let mut host = host(r#""window":1000,"summarizer":true"#);
    for at in 0..41 {
        let id = format!("toolu_{}", at % 3);
        all.extend([thought_calls(&at.to_string(), &[&id]), result(&id, &long("r", 40))]);
        host.turn(&all);
        check(&host, &all);
    }
}

#[test]
fn f16_the_running_call_and_its_result_stay() {
    let mut all = turns(3, 20);
    all.extend([user("go"), calls(&["toolu_now"]), result("toolu_now", &long("big", 500))]);
    let mut host = host(r#""window":700"#);
    let outcome = host.turn(&all);
    check(&host, &all);
    assert!(outcome.fits, "{outcome:?}");
    assert!(host.engine.render_json().contains("toolu_now"));
    assert!(shown(&host).contains(&all[all.len() - 2]));
}

#[test]
fn f20_content_beside_a_result_is_no_reason_to_fail() {
    let mut all = turns(2, 40);
    all.extend([
        calls(&["toolu_x", "toolu_y"]),
        message("user", json!([{"type": "text", "text": "look:"}, answer("toolu_x", &long("x", 300)), {"type": "text", "text": "between"}])),
        message("user", json!([answer("toolu_y", &long("y", 300)), {"type": "text", "text": "after"}])),
        assistant("seen"),
        user("next"),
    ]);
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["misplaced_content"]);
    let text = view.concat();
    let places = ["x:", "y:", "after", "look:", "between", "seen"].map(|word| text.find(word));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    for window in [150, 250, 400, 700] {
        squeezed(&all, &format!(r#""window":{window}"#));
    }
}

// B. Ids.

#[test]
fn f22_an_id_that_returns_each_turn_keeps_all_its_results() {
    let mut all = vec![user("start")];
    for at in 0..30 {
        all.extend([calls(&["call_0"]), result("call_0", &format!("value {at};"))]);
    }
    let (view, _) = mended(&all);
    let text = view.concat();
    assert!((0..30).all(|at| text.contains(&format!("value {at};"))));
}

#[test]
fn f22_new_ids_do_not_depend_on_what_was_compacted() {
    let mut all = vec![user("start")];
    for at in 0..30 {
        all.extend([calls(&["call_0"]), result("call_0", &format!("value {at};"))]);
    }
    let (whole, _) = mended(&all);
    let (host, _) = squeezed(&all, r#""window":500,"preset":"late","stages":["drop"]"#);
    let view = shown(&host);
    assert!(view.len() > 3 && view.len() < whole.len());
    assert_eq!(view[1..], whole[whole.len() - (view.len() - 1)..]);
}

#[test]
fn f23_two_calls_of_a_batch_with_one_id_keep_both_results() {
    let all =
        [user("hi"), calls(&["x", "x"]), result("x", "first"), result("x", "second"), user("go")];
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["duplicate_id"]);
    assert_eq!(view[2], all[2]);
    assert!(view[3].contains("second") && view[3].contains("\"x_2\""));
}

#[test]
fn f25_one_result_for_each_call() {
    let all =
        [user("hi"), calls(&["x"]), result("x", "one"), result("x", "two"), result("x", "three")];
    let (view, repairs) = mended(&all);
    assert_eq!(view, all[..3]);
    assert_eq!(repairs, ["orphan_result", "orphan_result"]);
}

#[test]
fn f26_the_summarizer_gets_no_tools_but_text() {
    let all = turns(8, 80);
    let mut host = host(r#""window":1200,"summarizer":true"#);
    host.turn(&all);
    assert!(!host.prompts.is_empty());
    assert!(
        host.prompts
            .iter()
            .all(|prompt| !prompt.contains("\"tool_use\"") && !prompt.contains("Sig"))
    );
}

// C. Thinking.

/// Signed blocks in the view.
fn thoughts(host: &Host) -> Vec<String> {
    signed(&shown(host))
}

#[test]
fn f28_a_message_keeps_all_its_thinking_or_none() {
    let mut all = vec![user(&long("start", 100))];
    for at in 0..12 {
        all.push(message(
            "assistant",
            json!([
            thinking(&format!("{at}a")), {"type": "redacted_thinking", "data": format!("Enc{at}")},
            {"type": "text", "text": "\n\n"}, thinking(&format!("{at}b")),
            {"type": "text", "text": long("said", 60)}]),
        ));
        all.push(user(&long("ask", 60)));
    }
    for keep in [false, true] {
        for stages in ["", r#","stages":["reasoning"]"#, r#","stages":["summarize"]"#] {
            for window in [700, 900, 1_200, 1_600, 2_000] {
                let options = format!(r#""window":{window},"keepReasoning":{keep}{stages}"#);
                let mut host = host(&options);
                host.turn(&all);
                check(&host, &all);
                for message in host.view().iter().filter(|message| message["role"] == "assistant") {
                    let count = blocks(message).iter().filter(|block| is_thinking(block)).count();
                    assert!(count == 0 || count == 3, "{options}: {message}");
                }
            }
        }
    }
}

#[test]
fn f29_older_thinking_goes_when_anything_before_it_changed() {
    let all = [turns(8, 80), vec![user("and now?")]].concat();
    for stages in
        ["", r#","stages":["clear"]"#, r#","stages":["summarize"]"#, r#","stages":["drop"]"#]
    {
        let mut host = host(&format!(r#""window":1600{stages}"#));
        let outcome = host.turn(&all);
        assert!(outcome.compacted);
        check(&host, &all);
        let view = shown(&host);
        let same = view.iter().zip(&all).take_while(|(shown, sent)| shown == sent).count();
        assert_eq!(thoughts(&host), signed(&all[..same]), "{stages}");
        assert!(signed(&all[..same]).len() < 2);
    }
}

#[test]
fn f29_the_option_keeps_older_thinking() {
    let all = [turns(8, 80), vec![user("and now?")]].concat();
    let mut host = host(r#""window":1600,"preset":"late","keepReasoning":true,"stages":["drop"]"#);
    assert!(host.turn(&all).compacted);
    check(&host, &all);
    assert!(!thoughts(&host).is_empty());
}

#[test]
fn f29_between_bursts_thinking_stays_as_it_is() {
    let mut all = turns(6, 80);
    let mut host = host(r#""window":1600"#);
    host.turn(&all);
    let mut kept = thoughts(&host);
    let new = [user("more"), thought("new1"), user("more"), thought("new2"), user("end")];
    kept.extend(signed(&new));
    all.extend(new);
    let outcome = host.turn(&all);
    assert!(!outcome.compacted);
    assert_eq!(thoughts(&host), kept);
}

#[test]
fn f31_thinking_and_what_it_led_to_go_together() {
    // As session logs keep them: a message for each block.
    let mut all = vec![user("start")];
    for at in 0..12 {
        let id = format!("toolu_{at}");
        all.push(message("assistant", json!([thinking(&at.to_string())])));
        all.push(calls(&[&id]));
        all.push(result(&id, &long("r", 60)));
    }
    for window in [300, 400, 500, 700, 900] {
        for stages in ["drop", "summarize", "elide"] {
            let options =
                format!(r#""window":{window},"keepReasoning":true,"stages":["{stages}"]"#);
            let (host, _) = squeezed(&all, &options);
            let text = host.engine.render_json();
            let kept =
                |what: &str| (0..12).filter(|at| text.contains(&format!("\"{what}{at}"))).count();
            assert_eq!(kept("thought "), kept("toolu_"), "{options}");
        }
    }
}

#[test]
fn f32_no_message_is_left_with_nothing_but_thinking() {
    let all = [user("hi"), message("assistant", json!([thinking("aborted")])), user("again")];
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["trailing_reasoning"]);
    assert_eq!(view, [all[0].clone(), all[2].clone()]);
    let aborted = message("assistant", json!([{"type": "text", "text": "well"}, thinking("cut")]));
    let (view, _) = mended(&[user("hi"), aborted, user("again")]);
    assert_eq!(view[1], r#"{"content":[{"text":"well","type":"text"}],"role":"assistant"}"#);
}

#[test]
fn f32_thinking_that_goes_on_in_the_next_message_stays() {
    let all =
        [user("hi"), message("assistant", json!([thinking("a")])), assistant("so"), user("ok")];
    let (view, repairs) = mended(&all);
    assert_eq!((view, repairs.len()), (all.to_vec(), 0));
}

#[test]
fn f34_thinking_stays_in_its_place() {
    let mut all = vec![user("start")];
    let mut host = host(r#""window":100000"#);
    let mut last = String::new();
    for at in 0..20 {
        let id = format!("toolu_{at}");
        all.extend([thought_calls(&at.to_string(), &[&id]), result(&id, "ok")]);
        host.turn(&all);
        let view = host.engine.render_json();
        assert!(last.is_empty() || view.starts_with(&last[..last.len() - 1]));
        last = view;
    }
}

#[test]
fn f35_thinking_of_the_running_loop_stays() {
    let mut all = turns(8, 80);
    all.push(user("go"));
    for at in 0..4 {
        let id = format!("toolu_now{at}");
        all.extend([thought_calls(&format!("now{at}"), &[&id]), result(&id, "ok")]);
    }
    for (stages, forced) in [
        ("", false),
        (r#","recall":false,"stages":["reasoning"]"#, true),
        (r#","stages":["summarize"]"#, false),
    ] {
        let mut host = host(&format!(r#""window":1600{stages}"#));
        host.ingest(&all);
        let request = PlanRequest { force: forced, ..PlanRequest::default() };
        assert!(host.plan(request).compacted, "{stages}");
        check(&host, &all);
        let left = thoughts(&host);
        assert_eq!(left, signed(&all[all.len() - 8..]), "{stages}");
    }
}

#[test]
fn f35_a_word_of_the_user_beside_the_newest_results_ends_no_loop() {
    // With thinking on, the newest calls must come back with the thinking that led to them.
    let beside =
        message("user", json!([answer("toolu_now", "ok"), {"type": "text", "text": "hurry"}]));
    let ends = [
        vec![thought_calls("now", &["toolu_now"]), beside],
        vec![thought_calls("now", &["toolu_now"]), result("toolu_now", "ok"), user("hurry")],
        vec![thought_calls("now", &["toolu_now"]), user("never mind")],
    ];
    for end in ends {
        let all = [turns(8, 80), vec![user("go")], end].concat();
        let mut host = host(r#""window":1600"#);
        assert!(host.turn(&all).compacted);
        check(&host, &all);
        assert_eq!(thoughts(&host), [thinking("now").to_string()]);
    }
}

#[test]
fn thinking_comes_first_where_it_is_kept_with_calls() {
    let mut all = turns(8, 80);
    all.extend([user("go"), thought_calls("now", &["toolu_a", "toolu_b"])]);
    all.push(message(
        "user",
        json!([answer("toolu_a", &long("a", 200)), answer("toolu_b", &long("b", 200))]),
    ));
    for window in [500, 700, 900, 1_200, 1_600] {
        let (host, _) = squeezed(&all, &format!(r#""window":{window}"#));
        let view = host.view();
        let last = view.iter().rfind(|message| message["role"] == "assistant").expect("the calls");
        let kinds: Vec<_> = blocks(last).iter().map(|block| block["type"].clone()).collect();
        assert_eq!(kinds, ["thinking", "tool_use", "tool_use"], "{window}");
    }
}

#[test]
fn white_space_leaves_with_the_thinking_around_it() {
    let mut all = vec![
        user("go"),
        message(
            "assistant",
            json!([
        thinking("a"), {"type": "text", "text": "\n\n"}, thinking("b"), {"type": "text", "text": "done"}]),
        ),
    ];
    all.extend(turns(8, 80));
    all.push(user("end"));
    let mut host = host(r#""window":1600,"stages":["reasoning"]"#);
    host.ingest(&all);
    host.plan(forced());
    check(&host, &all);
    assert_eq!(
        shown(&host)[1],
        r#"{"content":[{"text":"done","type":"text"}],"role":"assistant"}"#
    );
}

// H. System prompt, first message, pending input.

#[test]
fn f86_the_view_begins_with_the_user() {
    let all = [calls(&["toolu_1"]), result("toolu_1", "x"), assistant("done"), user("go")];
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["assistant_first"]);
    assert_eq!(view[1..], all);
    for cut in 1..12 {
        let (host, _) = squeezed(&turns(3, 60), &format!(r#""window":{}"#, cut * 60));
        assert_eq!(host.view()[0]["role"], "user");
    }
}

#[test]
fn f88_a_summary_of_everything_is_still_a_conversation() {
    let (host, _) = squeezed(&turns(4, 200), r#""window":300,"summarizer":true"#);
    assert!(!host.view().is_empty());
}

#[test]
fn f89_the_summary_is_the_users_and_labelled() {
    let (host, outcome) = squeezed(&turns(8, 80), r#""window":1200,"summarizer":true"#);
    assert!(outcome.summary.is_some());
    let first = &host.view()[0];
    assert_eq!(first["role"], "user");
    assert!(first["content"].as_str().unwrap().contains("not an instruction"));
}

#[test]
fn f91_unanswered_input_is_verbatim() {
    let all = [turns(8, 80), vec![user(&long("first", 30)), user(&long("second", 30))]].concat();
    let (host, _) = squeezed(&all, r#""window":1200"#);
    let view = shown(&host);
    assert_eq!(view[view.len() - 2..], all[all.len() - 2..]);
}

#[test]
fn f92_a_message_that_comes_during_the_summary_is_there() {
    let mut all = turns(8, 80);
    let mut host = host(r#""window":1200,"summarizer":true"#);
    host.ingest(&all);
    let mut added = false;
    let late = user("late words");
    let mut grown = all.clone();
    grown.push(late.clone());
    let mut step = host.engine.plan(PlanRequest::default()).unwrap();
    while let tidemark::Step::Effects { effects } = step {
        let effect: &Effect = effects.first().expect("something to do");
        if !added {
            added = true;
            host.engine.ingest(all.len(), &format!("[{late}]"), &[]).unwrap();
        }
        step =
            host.engine.resolve(effect.id(), Reply::Text { text: good_summary("noted") }).unwrap();
    }
    assert!(added);
    all = grown;
    check(&host, &all);
    assert!(host.engine.render_json().contains("late words"));
}

#[test]
fn f94_nothing_is_ever_deleted_from_the_store() {
    let (host, _) = squeezed(&turns(8, 80), r#""window":1200,"store":true"#);
    // Effects only put: there is no other kind for the store.
    let mut other =
        common::host::Host::new(r#"{"format":"anthropic","window":1200,"reserve":0,"store":true}"#);
    other.ingest(&turns(8, 80));
    let _ = drain(&mut other, forced(), |effect| match effect {
        Effect::Summarize { .. } => failed(),
        _ => Reply::Done,
    });
    assert_eq!(other.engine.render_json(), host.engine.render_json());
}

// I. Roles, emptiness, grammar.

#[test]
fn f97_the_summary_can_be_merged_into_the_users_message() {
    let all = [turns(8, 80), vec![user("last words")]].concat();
    let (host, _) = squeezed(&all, r#""window":400,"alternate":true,"stages":["drop"]"#);
    let roles: Vec<_> = host.view().iter().map(|message| message["role"].clone()).collect();
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
}

#[test]
fn f100_a_compaction_that_failed_stays_byte_for_byte() {
    let block = r#"{"role":"assistant","content":[{"type":"compaction","content":null,"encrypted_content":"RW5j"}]}"#;
    let all = [user("hi"), block.to_owned(), user("go on")];
    let (view, repairs) = mended(&all);
    assert_eq!((view, repairs.len()), (all.to_vec(), 0));
}

#[test]
fn f100_a_conversation_may_begin_with_the_providers_compaction() {
    let block = r#"{"role":"assistant","content":[{"type":"compaction","content":"So far.","signature":"c2ln"}]}"#;
    let all = [block.to_owned(), user("go on"), assistant("yes"), user("and?")];
    let (view, repairs) = mended(&all);
    assert_eq!((view, repairs.len()), (all.to_vec(), 0));
}

#[test]
fn f101_cache_markers_travel_with_their_blocks_and_are_never_multiplied() {
    let marker = json!({"type": "ephemeral"});
    let mut all = turns(6, 80);
    all.push(calls(&["toolu_a", "toolu_b", "toolu_c"]));
    let mut results = ["toolu_a", "toolu_b", "toolu_c"].map(|id| answer(id, &long(id, 200)));
    for block in &mut results {
        block["cache_control"] = marker.clone();
    }
    all.push(message("user", json!(results)));
    all.push(message(
        "assistant",
        json!([{"type": "text", "text": "seen", "cache_control": marker}]),
    ));
    all.push(user("next"));
    for window in [300, 600, 900, 1_500] {
        let (host, _) = squeezed(&all, &format!(r#""window":{window}"#));
        let view = host.view();
        for block in view.iter().flat_map(blocks).filter(|block| block["tool_use_id"] == "toolu_b")
        {
            assert_eq!(block["cache_control"], marker, "its content was replaced, not the block");
        }
    }
}

#[test]
fn f101_a_marker_that_moves_undoes_no_decision() {
    let mut host = host(r#""window":2200"#);
    let mut all = turns(9, 60);
    host.turn(&all);
    let before = host.engine.checkpoint();
    // The host took the marker off the newest user message and put it on the next one.
    let marked = |text: &str, on: bool| {
        let mut block = json!({"type": "text", "text": text});
        if on {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        message("user", json!([block]))
    };
    all.push(marked("one", true));
    host.turn(&all);
    let at = all.len() - 1;
    all[at] = marked("one", false);
    all.extend([assistant("yes"), marked("two", true)]);
    host.engine.ingest(at, &format!("[{}]", all[at..].join(",")), &[]).unwrap();
    let outcome = host.plan(PlanRequest::default());
    assert!(!outcome.compacted);
    check(&host, &all);
    let parts =
        |checkpoint: &str| serde_json::from_str::<Value>(checkpoint).unwrap()["parts"].clone();
    assert_eq!(parts(&host.engine.checkpoint()), parts(&before));
}

#[test]
fn what_is_empty_is_mended() {
    let error =
        json!({"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": ""});
    for (blank, repair) in [
        (vec![user("")], "empty_message"),
        (vec![user("  \n")], "empty_message"),
        (vec![message("assistant", json!([]))], "empty_message"),
        (vec![message("assistant", json!([{"type": "text", "text": ""}]))], "empty_message"),
        (
            vec![message(
                "user",
                json!([{"type": "text", "text": ""}, {"type": "text", "text": "x"}]),
            )],
            "empty_text",
        ),
        (
            vec![message(
                "user",
                json!([{"type": "text", "text": " "}, {"type": "text", "text": "x"}]),
            )],
            "empty_text",
        ),
        (vec![calls(&["toolu_1"]), message("user", json!([error]))], "empty_error"),
        (
            vec![
                calls(&["toolu_1"]),
                message(
                    "user",
                    json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": null}]),
                ),
            ],
            "null_result",
        ),
    ] {
        let all = [vec![user("hi")], blank, vec![assistant("and"), user("go")]].concat();
        let (_, repairs) = mended(&all);
        assert_eq!(repairs, [repair], "{all:?}");
    }
}

#[test]
fn a_result_without_content_is_no_fault() {
    let all = [
        user("hi"),
        calls(&["toolu_1"]),
        message("user", json!([{"type": "tool_result", "tool_use_id": "toolu_1"}])),
        user("ok"),
    ];
    let (view, repairs) = mended(&all);
    assert_eq!((view, repairs.len()), (all.to_vec(), 0));
}

#[test]
fn lone_surrogates_are_mended_wherever_they_stand() {
    let all = [
        r#"{"role":"user","content":"a \ud83d"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":"\ud83d","y":1.0}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"\ude00 b"},{"type":"image","source":{"type":"url","url":"u"}}]},{"type":"document","title":"\ud83d","source":{"type":"file","file_id":"f"}}]}"#,
        r#"{"role":"user","content":[{"type":"hologram","name":"\ud83d"}]}"#,
    ]
    .map(str::to_owned);
    let (view, repairs) = mended(&all);
    assert_eq!(repairs, ["lone_surrogate"; 5]);
    for (shown, sent) in view.iter().zip(&all) {
        assert_eq!(*shown, sent.replace("\\ud83d", "\u{FFFD}").replace("\\ude00", "\u{FFFD}"));
    }
}

#[test]
fn tools_of_the_provider_are_never_parted_from_their_results() {
    let mut all = vec![user("start")];
    for at in 0..10 {
        let (search, id) = (format!("srvtoolu_{at}"), format!("toolu_{at}"));
        all.push(message("assistant", json!([
            {"type": "server_tool_use", "id": search, "name": "web_search", "input": {}}, call(&id)])));
        all.push(result(&id, &long("r", 50)));
        all.push(message(
            "assistant",
            json!([
            {"type": "web_search_tool_result", "tool_use_id": search, "content": []},
            {"type": "text", "text": long("both", 30)}]),
        ));
    }
    for window in 200..230 {
        squeezed(&all, &format!(r#""window":{window},"stages":["drop"]"#));
    }
}

#[test]
fn half_of_a_providers_tool_use_is_left_out() {
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let text = json!({"type": "text", "text": "well"});
    let around = |blocks: Value| [user("hi"), message("assistant", blocks), user("go on")];
    for (half, repair) in [(&search, "unanswered_call"), (&found, "orphan_result")] {
        let (view, repairs) = mended(&around(json!([half, text])));
        assert_eq!(repairs, [repair]);
        assert_eq!(view[1], message("assistant", json!([text])));
    }
    let (view, repairs) = mended(&around(json!([search, found, text])));
    assert_eq!((view, repairs.len()), (around(json!([search, found, text])).to_vec(), 0));
    // The provider paused its turn, and goes on with it.
    let paused = [user("hi"), message("assistant", json!([search]))];
    let (view, repairs) = mended(&paused);
    assert_eq!((view, repairs.len()), (paused.to_vec(), 0));
}

#[test]
fn a_summarizer_of_any_mood_leaves_a_valid_view() {
    use Mood::{Blank, Echo, Good, NoSections, Throws, ToolCall, Verbose};
    for mood in [Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections] {
        let mut host = host(r#""window":1200,"summarizer":true"#);
        host.mood = mood;
        let all = turns(10, 80);
        host.turn(&all);
        check(&host, &all);
    }
}

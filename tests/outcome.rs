//! What a host is told: why messages stand as they do, what bursts decided and what they cost, and
//! how little is kept of it.

mod common;

use common::build::*;
use common::host::{Host, Mood};
use serde_json::{Value, json};
use tidemark::{Cause, Outcome, PlanRequest, Reason, Standing};

fn standings(host: &Host) -> Vec<Standing> {
    (0..host.engine.len() as u32).map(|at| host.engine.explain(at).unwrap().standing).collect()
}

#[test]
fn explain_says_why_a_message_is_as_it_is() {
    use Standing::{Changed, Covered, Mended, Pinned, System, Tail, Unanswered, Untouched};
    let mut all = vec![system("be careful"), user("start")];
    for at in 0..4 {
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), 300)));
    }
    all.push(user(""));
    all.extend([assistant("so"), user("next")]);
    let json = options(100_000, r#""tail":16,"stages":["clear"]"#);
    let mut host = Host::new(&json);
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[1]).unwrap();
    assert_eq!(standings(&host)[..3], [System, Pinned, Untouched]);
    host.plan(forced());
    assert_eq!(
        standings(&host),
        [
            System, Pinned, Untouched, Changed, Untouched, Untouched, Untouched, Untouched,
            Untouched, Untouched, Mended, Tail, Unanswered
        ]
    );
    let cleared = host.engine.explain(3).unwrap();
    assert_eq!((cleared.role, cleared.from, cleared.to), ("tool", 2, 4));
    assert!(cleared.shown < cleared.tokens / 3);
    let part = &cleared.parts[0];
    assert_eq!((part.kind, part.tool.as_deref()), ("result", Some("read")));
    assert_eq!(part.decision, Some("cleared"));
    let reference = part.reference.as_deref().unwrap();
    assert!(recalled(&host.engine, reference).contains("r0:"));
    assert_eq!(host.engine.explain(10).unwrap().repairs[0].kind, "empty_message");

    let mut folded = Host::new(&options(100_000, r#""tail":2,"stages":["summarize"]"#));
    folded.ingest(&all);
    let covered = folded.plan(forced()).summary.unwrap().covered;
    let standing = standings(&folded);
    assert!(standing[1..covered as usize].iter().all(|one| *one == Covered), "{standing:?}");
    let told = folded.engine.explain(2).unwrap();
    assert!(told.shown == 0 && told.text.contains("summary"));
    assert!(shown(&folded)[1].contains(told.reference.as_deref().unwrap()));

    let error = host.engine.explain(all.len() as u32).unwrap_err();
    assert_eq!((error.code().as_str(), error.path()), ("invalid_option", "index"));
}

#[test]
fn explain_knows_what_was_dropped_and_what_was_kept_among_it() {
    let mut all = chat(40, 100);
    all[10] = user("You must never touch ci/release.yml.");
    let stages = r#""tail":2,"stages":[{"stage":"smart","at":0.5}]"#;
    let mut host = Host::new(&options(size(&all), stages));
    host.turn(&all);
    let standing = standings(&host);
    assert_eq!(standing[10], Standing::Kept);
    assert!(standing.iter().filter(|one| **one == Standing::Dropped).count() > 10);
    let kept = verbatim(&host, &all);
    for (at, one) in standing.iter().enumerate() {
        assert_eq!(*one == Standing::Dropped, !kept.contains(&at), "{at}");
    }
}

#[test]
fn stats_add_up_over_the_session_and_survive_a_checkpoint() {
    let json = options(4_000, r#""summarizer":true,"stages":["summarize","drop","elide"]"#);
    let mut host = Host::new(&json);
    let before = host.engine.stats();
    assert_eq!((before.bursts, before.tokens_saved, before.turns_to_burst), (0, 0, None));
    let all = chat(200, 60);
    let (mut bursts, mut saved) = (0, 0);
    for end in 1..=all.len() {
        let outcome = host.turn(&all[..end]);
        bursts += u32::from(outcome.compacted);
        saved += if outcome.compacted { outcome.tokens_before - outcome.tokens_after } else { 0 };
    }
    let stats = host.engine.stats();
    assert!(bursts > 2);
    assert_eq!((stats.bursts, stats.tokens_saved), (bursts, saved));
    assert_eq!(stats.summarizer_calls, host.prompts.len() as u32);
    assert_eq!(stats.messages, 200);
    assert!(stats.covered > 100 && stats.dropped == 0);
    let estimate = host.engine.estimate();
    assert_eq!((stats.tokens, stats.full), (estimate.tokens, estimate.full));
    assert!(stats.transcript_tokens > 3 * stats.tokens);

    let mut resumed = Host::restore(&json, &host.engine.checkpoint());
    resumed.ingest(&all);
    assert_eq!(resumed.engine.stats(), stats);
    // A dry run and a plan without anything new count nothing.
    host.plan(PlanRequest { dry_run: true, force: true, ..PlanRequest::default() });
    host.plan(PlanRequest::default());
    assert_eq!(host.engine.stats(), stats);
}

#[test]
fn stats_foretell_the_next_burst() {
    let mut host = Host::new(&options(10_000, r#""stages":["drop"]"#));
    let all = chat(400, 100);
    let mut foretold = None;
    for end in 1..=all.len() {
        let outcome = host.turn(&all[..end]);
        if outcome.compacted {
            let (at, turns) = foretold.expect("an estimate");
            let off = (end as i64 - at as i64 - i64::from(turns)).abs();
            assert!(off <= 2, "foretold {turns} turns at {at}, came at {end}");
            return;
        }
        if end == 20 {
            foretold = host.engine.stats().turns_to_burst.map(|turns| (end, turns));
        }
    }
    panic!("no burst");
}

/// The causes of all decisions.
fn causes(outcome: &Outcome) -> Vec<Cause> {
    assert!(outcome.compacted);
    let mut causes: Vec<Cause> = outcome.decisions.iter().map(|one| one.reason).collect();
    causes.dedup();
    causes
}

#[test]
fn each_decision_says_why_it_was_taken() {
    let all = [pairs(10, 200), vec![assistant("done"), user("next")]].concat();
    let whole = size(&all);
    let host = |window: u32, more: &str| {
        let mut host = Host::new(&options(window, &format!("\"tail\":2{more}")));
        host.ingest(&all);
        host
    };
    let clear = ",\"stages\":[\"clear\"]";
    assert_eq!(causes(&host(whole * 10 / 9, clear).plan(used(whole))), [Cause::Watermark]);
    assert_eq!(causes(&host(100_000, clear).plan(forced())), [Cause::Forced]);
    assert_eq!(causes(&host(100_000, clear).plan(refused(Some(2_000)))), [Cause::Overflow]);
    let drop = ",\"stages\":[\"drop\"]";
    assert_eq!(causes(&host(whole / 2, drop).turn(&all)), [Cause::Limit]);
    let bytes = ",\"maxBytes\":6000,\"stages\":[\"clear\"]";
    assert_eq!(causes(&host(100_000, bytes).turn(&all)), [Cause::Bytes]);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let pictures: Vec<String> = (0..4)
        .flat_map(|_| [json!({"role": "user", "content": [image]}).to_string(), assistant("nice")])
        .chain([user("next")])
        .collect();
    let mut host = Host::new(&options(100_000, "\"maxImages\":2"));
    let outcome = host.turn(&pictures);
    assert_eq!(causes(&outcome), [Cause::Images]);
    assert_eq!(decided(&outcome, "cleared"), [0, 2]);
}

#[test]
fn what_a_burst_leaves_of_the_prefix_is_exact() {
    let all = [chat(6, 100), pairs(10, 300), vec![assistant("done"), user("next")]].concat();
    let all = [vec![system("be careful")], all].concat();
    for stages in ["\"clear\"", "\"summarize\"", "\"drop\"", r#"{"stage":"smart"}"#, "\"offload\""]
    {
        let more = format!("\"recall\":false,\"tail\":2,\"stages\":[{stages}]");
        let mut host = Host::new(&options(100_000, &more));
        for _ in 0..2 {
            host.ingest(&all);
            let before = host.engine.render_json();
            let outcome = host.plan(refused(Some(size(&all) * 3 / 4)));
            let after = host.engine.render_json();
            let Some(cache) = outcome.cache else {
                assert!(!outcome.compacted);
                assert_eq!(before, after);
                continue;
            };
            let prefix = cache.prefix_bytes as usize;
            assert_eq!(before[..prefix], after[..prefix], "{stages}");
            // Nothing more than what one message has in common with its former self.
            let common = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            let rest = &after[prefix..common];
            assert!(!rest.contains("\"},{\"role\""), "{stages}: {rest}");
            assert_eq!(cache.prefix_tokens + cache.reread_tokens, outcome.tokens_after, "{stages}");
            match stages {
                "\"clear\"" | "\"offload\"" => assert!(cache.prefix_tokens > size(&all[..6])),
                _ => assert!(cache.prefix_tokens < size(&all[..2]), "the system message"),
            }
        }
    }
    let mut host = Host::new(&options(100_000, ""));
    assert_eq!(host.turn(&all).cache, None);
}

#[test]
fn the_first_burst_costs_the_whole_cache_where_it_brings_the_recall_tool() {
    let all = [pairs(10, 300), vec![assistant("done"), user("next")]].concat();
    let mut host = Host::new(&options(100_000, r#""tail":2,"stages":["clear"]"#));
    host.ingest(&all);
    let first = host.plan(refused(Some(size(&all) * 3 / 4)));
    let cache = first.cache.unwrap();
    assert_eq!((cache.prefix_tokens, cache.reread_tokens), (0, first.tokens_after));
    assert!(cache.prefix_bytes > 0, "the messages themselves still begin as they did");
    let second = host.plan(refused(Some(size(&all) / 3)));
    assert!(second.cache.unwrap().prefix_tokens > 0);
}

#[test]
fn five_thousand_offloads_make_a_small_checkpoint() {
    let mut host = Host::new(&options(
        1_000_000,
        r#""store":true,"tail":2,"stages":[{"stage":"offload","keepLast":0,"minTokens":150,"previewTokens":100}]"#,
    ));
    let mut all = vec![user("start")];
    for at in 0..5_000 {
        all.extend(pair(&format!("c{at}"), &long(&format!("r{at}"), 400)));
    }
    all.extend([assistant("done"), user("next")]);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(outcome.decisions.len(), 5_000);
    let checkpoint = host.engine.checkpoint();
    assert!(checkpoint.len() <= 200_000, "{} bytes", checkpoint.len());

    // A preview becomes a marker, and both go under the summary.
    let marked = r#""tail":2,"stages":[{"stage":"clear","keepLast":0}]"#;
    let mut host = Host::restore(&options(1_000_000, marked), &checkpoint);
    host.ingest(&all);
    let outcome = host.plan(forced());
    assert_eq!(decided(&outcome, "cleared").len(), 5_000);
    assert!(host.engine.checkpoint().len() < checkpoint.len());
    let folded = r#""tail":2,"stages":["summarize"]"#;
    let mut host = Host::restore(&options(1_000_000, folded), &host.engine.checkpoint());
    host.ingest(&all);
    assert!(host.plan(forced()).summary.is_some());
    let state: Value = serde_json::from_str(&host.engine.checkpoint()).unwrap();
    assert!(state["parts"].is_null(), "nothing is kept of what the summary stands for");
    assert!(host.engine.checkpoint().len() < 20_000);
}

#[test]
fn decisions_come_back_from_a_checkpoint_as_they_were() {
    // Lengths around the steps of the encoding.
    let mut all = vec![user("start")];
    for (at, length) in [126, 127, 128, 300, 16_383, 16_384, 40_000].into_iter().enumerate() {
        all.extend(pair(&format!("c{at}"), &"é ".repeat(length)));
    }
    all.extend([assistant("done"), user("next")]);
    for stages in [
        r#"{"stage":"offload","keepLast":0,"minTokens":60,"previewTokens":20}"#,
        r#"{"stage":"clear","keepLast":0}"#,
        "\"elide\"",
    ] {
        let json = options(3_000, &format!("\"tail\":2,\"stages\":[{stages}]"));
        let mut host = Host::new(&json);
        assert!(host.turn(&all).compacted, "{stages}");
        let mut resumed = Host::restore(&json, &host.engine.checkpoint());
        resumed.ingest(&all);
        assert_eq!(resumed.engine.render_json(), host.engine.render_json());
        assert_eq!(resumed.engine.checkpoint(), host.engine.checkpoint());
    }
}

#[test]
fn what_cannot_fit_says_how_small_it_could_get() {
    // A pinned message larger than the window.
    let all = [vec![user(&long("pinned", 3_000))], chat(20, 100)].concat();
    let mut host = Host::new(&options(2_000, ""));
    host.engine.ingest(0, &format!("[{}]", all.join(",")), &[0]).unwrap();
    let outcome = host.plan(PlanRequest::default());
    assert_eq!(outcome.reason, Reason::CannotFit);
    assert!(!outcome.fits);
    let smallest = outcome.smallest.unwrap();
    assert_eq!(smallest, outcome.tokens_after);
    assert!(smallest > 3_000 && smallest < 4_000, "{smallest}");
    assert_eq!(outcome.notices.iter().filter(|notice| notice.code == "cannot_fit").count(), 1);
    // In a window a little larger it fits, since a summary grows with the window too, and in one of
    // less than what is pinned it does not.
    for (window, fits) in [(smallest + smallest / 10, true), (3_000, false)] {
        let mut host = Host::new(&options(window, ""));
        host.engine.ingest(0, &format!("[{}]", all.join(",")), &[0]).unwrap();
        assert_eq!(host.plan(PlanRequest::default()).fits, fits, "{window}");
    }
}

#[test]
fn tools_alone_over_the_window_cannot_fit_and_nothing_panics() {
    let tools = json!([{"type": "function", "function": {"name": "t", "parameters":
        {"text": " word".repeat(3_000)}}}]);
    let mut host = Host::new(&options(1_000, "\"summarizer\":true"));
    host.mood = Mood::Verbose;
    host.engine.set_tools(&tools.to_string()).unwrap();
    let outcome = host.turn(&chat(9, 100));
    assert_eq!(outcome.reason, Reason::CannotFit);
    assert!(outcome.smallest.unwrap() > 3_000);
}

#[test]
fn no_forced_burst_makes_a_view_larger() {
    for name in PRESETS {
        for (count, words) in [(2, 3), (5, 20), (9, 40), (21, 10)] {
            for all in [chat(count, words), pairs(count, words)] {
                let more = format!("\"preset\":\"{name}\",\"tail\":2,\"summarizer\":true");
                let mut host = Host::new(&options(100_000, &more));
                host.ingest(&all);
                for _ in 0..3 {
                    let outcome = host.plan(forced());
                    let sizes = (outcome.tokens_before, outcome.tokens_after);
                    assert!(sizes.1 <= sizes.0, "{name}, {count} of {words} words: {sizes:?}");
                    assert!(outcome.compacted == (sizes.1 < sizes.0), "{name}: {outcome:?}");
                }
            }
        }
    }
}

#[test]
fn no_model_is_asked_for_a_first_summary_that_the_recall_tool_would_outweigh() {
    let fold = |recall: bool, count: usize| {
        let more = format!(
            "\"recall\":{recall},\"tail\":2,\"summarizer\":true,\"stages\":[\"summarize\"]"
        );
        let mut host = Host::new(&options(100_000, &more));
        host.ingest(&chat(count, 70));
        let outcome = host.plan(forced());
        (host.prompts.len(), outcome.compacted)
    };
    assert_eq!(fold(false, 5), (1, true));
    assert_eq!(fold(true, 5), (0, false));
    assert_eq!(fold(true, 21), (1, true));
}

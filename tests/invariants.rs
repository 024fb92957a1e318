//! The invariants of the design, over random transcripts.
//!
//! The numbers in the names are those of the list in ARCHITECTURE.md.

mod common;

use std::collections::BTreeMap;

use common::host::{Host, Mood, SECRET};
use common::random::{text, transcript};
use common::{messages, openai_chat};
use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Engine, Options, Outcome, PlanRequest, RecallArgs, RecallStep, Reply};

fn mood() -> impl Strategy<Value = Option<Mood>> {
    use Mood::{Blank, Echo, Fickle, Good, NoSections, Throws, ToolCall, Verbose};
    prop_oneof![
        2 => Just(None),
        3 => prop::sample::select(vec![Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections, Fickle(1), Fickle(2), Fickle(3)])
            .prop_map(Some),
    ]
}

#[derive(Clone, Debug)]
struct Setting {
    window: u32,
    store: bool,
    store_fails: bool,
    mood: Option<Mood>,
    stages: &'static str,
    chunk: usize,
}

fn setting() -> impl Strategy<Value = Setting> {
    let stages = prop::sample::select(vec![
        "",
        "",
        r#","stages":["clear","drop"]"#,
        r#","stages":["summarize","elide"]"#,
        r#","stages":[{"stage":"smart","at":0.5},"summarize","drop","elide"]"#,
        r#","preset":"smart""#,
        r#","preset":"sliding""#,
        r#","preset":"late""#,
        r#","stages":[{"stage":"clear","includeArguments":true,"keepErrors":true},"drop","elide"]"#,
        r#","stages":[{"stage":"offload","minTokens":60,"previewTokens":20},"clear","drop","elide"]"#,
        r#","flush":true,"summary":{"sections":["Plan","Files"],"request":"append","focus":"k1k"}"#,
        r#","stages":["summarize","elide"],"beforeBurst":true,"summary":{"template":"handoff","fresh":true,"window":1500}"#,
    ]);
    (1_000..12_000u32, any::<bool>(), any::<bool>(), mood(), stages, 1..6usize).prop_map(
        |(window, store, store_fails, mood, stages, chunk)| Setting {
            window,
            store,
            store_fails,
            mood,
            stages,
            chunk,
        },
    )
}

impl Setting {
    fn json(&self) -> String {
        format!(
            r#"{{"window":{},"store":{},"summarizer":{}{}}}"#,
            self.window,
            self.store,
            self.mood.is_some(),
            self.stages
        )
    }

    fn host(&self) -> Host {
        let mut host = Host::new(&self.json());
        host.store_fails = self.store_fails;
        host.go = Some(Reply::Go { veto: false, pins: vec![3] });
        if let Some(Mood::Fickle(seed)) = self.mood {
            host.store_flaky = Some(seed);
        }
        host.mood = self.mood.unwrap_or(Mood::Good);
        host
    }
}

/// Repairs that a later message can change: the host sends results late or not at all.
const MOVES: [&str; 3] = ["unanswered_call", "misplaced_result", "orphan_result"];

/// Ranks of the decisions in a checkpoint, and how far summary and drop reach.
fn state(checkpoint: &str) -> (BTreeMap<(u64, u64), u8>, u64) {
    let json: Value = serde_json::from_str(checkpoint).unwrap();
    let mut parts = BTreeMap::new();
    for row in json["parts"].as_array().into_iter().flatten() {
        let rank = if row[2].as_str().unwrap().starts_with('c') { 2 } else { 1 };
        parts.insert((row[0].as_u64().unwrap(), row[1].as_u64().unwrap()), rank);
    }
    let covered = json["summary"]["covered"].as_u64().unwrap_or(0);
    (parts, covered.max(json["dropped"][0].as_u64().unwrap_or(0)))
}

fn check_turn(
    host: &Host,
    outcome: &Outcome,
    sent: &[String],
    last: &str,
    late: bool,
) -> Result<(), TestCaseError> {
    let view = host.view();
    // 2: valid for the strictest provider.
    prop_assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
    let systems = view.iter().take_while(|m| m["role"] == "system").count();
    let covered = state(&host.engine.checkpoint()).1;
    if covered > 0 {
        prop_assert_eq!(&view[systems]["role"], "user");
    }
    // 4: what the model has not answered is verbatim unless only elide could make it fit.
    let elided = common::elided(&host.engine.checkpoint());
    let text = host.engine.render_json();
    for message in sent.iter().rev().take_while(|m| m.contains("\"role\":\"user\"")) {
        let odd = message.contains("\\ud83d") || message.contains("\"content\":\"\"");
        prop_assert!(elided || odd || text.contains(message.as_str()), "lost {}", message);
    }
    // 5: the previous view is a byte prefix, unless a late result had to move behind its call.
    if !outcome.compacted && !late && !last.is_empty() {
        prop_assert!(text.starts_with(&last[..last.len() - 1]));
    }
    // 7: it fits or says that it does not.
    prop_assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap());
    prop_assert_eq!(
        outcome.smallest.is_some(),
        !outcome.fits && outcome.reason == tidemark::Reason::CannotFit
    );
    Ok(())
}

/// All pages of a reference, put together.
fn recalled(engine: &Engine, reference: &str) -> String {
    let mut out = String::new();
    let mut offset = 0;
    loop {
        let args = RecallArgs {
            reference: Some(reference.to_owned()),
            offset: Some(f64::from(offset)),
            ..RecallArgs::default()
        };
        let RecallStep::Page { text } = engine.recall(&args).unwrap() else {
            panic!("{reference} is not in the transcript")
        };
        let (title, page) = text.split_once('\n').unwrap_or((&text, ""));
        out.push_str(page);
        match title.split_once("go on with offset ") {
            Some((_, rest)) => offset = rest.trim_end_matches(']').parse::<u32>().unwrap(),
            None => return out,
        }
    }
}

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn i2_i4_i5_i6_i7_i8_i9_hold_turn_by_turn(all in transcript(), setting in setting()) {
        let mut host = setting.host();
        let mut last = String::new();
        let mut before = state(&host.engine.checkpoint());
        let mut misplaced = Vec::new();
        let mut end = 0;
        while end < all.len() {
            end = (end + setting.chunk).min(all.len());
            let outcome = host.turn(&all[..end]);
            misplaced.extend(outcome.repairs.iter().filter(|r| MOVES.contains(&r.kind)).map(|r| r.index));
            let newest = misplaced.iter().max().map_or(0, |index| *index as usize + 1);
            let late = newest + 10 > end.saturating_sub(setting.chunk);
            check_turn(&host, &outcome, &all[..end], &last, late && newest > 0)?;

            // 6: monotonic, idempotent, pure.
            let after = state(&host.engine.checkpoint());
            prop_assert!(after.1 >= before.1);
            for (place, rank) in &before.0 {
                prop_assert!(place.0 < after.1 || after.0.get(place) >= Some(rank));
            }
            last = host.engine.render_json();
            prop_assert_eq!(host.engine.render_json(), last.clone());
            // What a store refused once is offered to it again.
            let refused = outcome.failures.iter().any(|failure| failure.effect == "put");
            let again = host.plan(PlanRequest::default());
            prop_assert!(refused || !again.compacted, "{:?}", again);
            prop_assert!(again.compacted || host.engine.render_json() == last);
            last = host.engine.render_json();
            before = state(&host.engine.checkpoint());

            // 8: whatever was decided on can be recalled whole.
            for decided in outcome.decisions.iter().filter(|d| d.to.is_none()) {
                let reference = decided.reference.as_ref().unwrap();
                prop_assert_eq!(&recalled(&host.engine, reference).is_empty(), &false);
            }
            // ... and a put that failed is no decision.
            if setting.store_fails && setting.store {
                prop_assert!(outcome.decisions.iter().all(|d| d.kind != "offloaded"));
            }
        }
        // 8: every word is in the view or is found by recall.
        for (index, message) in all.iter().enumerate() {
            let word = format!("k{index}k");
            if message.contains(&word) && !last.contains(&word) {
                let args = RecallArgs { pattern: Some(word.clone()), ..RecallArgs::default() };
                let RecallStep::Page { text } = host.engine.recall(&args).unwrap() else {
                    panic!("a search asks for nothing")
                };
                prop_assert!(text.contains(&word) && !text.starts_with("[no text"), "{} {}", word, text);
            }
        }
        // 9: restored, over the same transcript, the same bytes.
        let checkpoint = host.engine.checkpoint();
        let mut restored = Host::restore(&setting.json(), &checkpoint);
        restored.ingest(&all);
        prop_assert_eq!(restored.engine.render_json(), last);
        prop_assert_eq!(restored.engine.checkpoint(), checkpoint);
    }

    #[test]
    fn i9_a_rewritten_transcript_is_never_misapplied(
        all in transcript(),
        setting in setting(),
        at in any::<prop::sample::Index>(),
        new in text(),
        how in 0..3,
    ) {
        let mut host = setting.host();
        for end in 1..=all.len() {
            host.turn(&all[..end]);
        }
        let mut edited = all.clone();
        let at = at.index(all.len());
        match how {
            0 => edited[at] = serde_json::json!({"role": "user", "content": format!("new {new}")}).to_string(),
            1 => { edited.remove(at); }
            _ => edited.truncate(at + 1),
        }
        // Results alone have no calls: no view of them is valid.
        prop_assume!(edited.iter().any(|message| !message.contains("\"role\":\"tool\"")));
        let covered = state(&host.engine.checkpoint()).1;
        let mut restored = Host::restore(&setting.json(), &host.engine.checkpoint());
        restored.ingest(&edited);
        host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
        for one in [&restored, &host] {
            let view = one.view();
            prop_assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
        }
        prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
        let systems = all.iter().take_while(|m| m.contains("\"role\":\"system\"")).count();
        if how == 0 && covered > 0 && at >= systems && ((at - systems) as u64) < covered
            && edited[at] != all[at]
        {
            prop_assert_eq!(state(&restored.engine.checkpoint()).1, 0, "the summary is about another past");
            let text = restored.engine.render_json();
            prop_assert!(text.contains("new "));
        }
    }

    #[test]
    fn ingest_in_any_pieces_is_the_same(all in transcript(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let whole = Host::new(r#"{"window":100000}"#);
        let mut whole = whole;
        whole.ingest(&all);
        let mut pieces = Host::new(r#"{"window":100000}"#);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len()) + 1).collect();
        ends.sort_unstable();
        ends.push(all.len());
        for end in ends {
            pieces.ingest(&all[..end]);
        }
        prop_assert_eq!(pieces.engine.render_json(), whole.engine.render_json());
        prop_assert_eq!(pieces.engine.estimate(), whole.engine.estimate());
        // Rewinding and coming back is no trace either.
        let half = all.len().div_ceil(2);
        pieces.engine.ingest(0, &format!("[{}]", all[..half].join(",")), &[]).unwrap();
        pieces.engine.ingest(half, &format!("[{}]", all[half..].join(",")), &[]).unwrap();
        prop_assert_eq!(pieces.engine.estimate(), whole.engine.estimate());
        prop_assert_eq!(pieces.engine.render_json(), whole.engine.render_json());
    }

    #[test]
    fn incremental_renders_add_up_to_the_view(all in transcript(), setting in setting()) {
        let mut host = setting.host();
        let mut stamp = (u32::MAX, 0, 0);
        let mut shown: Vec<String> = Vec::new();
        for end in 1..=all.len() {
            host.turn(&all[..end]);
            let render = host.engine.render(stamp.0, stamp.1, stamp.2);
            shown.truncate(render.keep as usize);
            for item in &render.items {
                match item {
                    tidemark::Item::Run { from, to } => {
                        shown.extend(all[*from as usize..*to as usize].iter().cloned());
                    }
                    tidemark::Item::Patch { index, .. } => shown.push(format!("patch {index}")),
                    tidemark::Item::Insert { json } => shown.push(json.clone()),
                }
            }
            stamp = (render.epoch, render.unit, render.items_before);
            let view = messages(&host.engine.render_json());
            prop_assert_eq!(shown.len(), view.len());
            for (piece, whole) in shown.iter().zip(&view) {
                prop_assert!(piece.starts_with("patch ") || piece == whole);
            }
        }
    }

    #[test]
    fn i11_any_text_is_refused_or_read(junk in ".{0,200}", json in json_value()) {
        let mut engine = Host::new(r#"{"window":1000}"#).engine;
        let _ = engine.ingest(0, &junk, &[]);
        let _ = engine.ingest(0, &json, &[]);
        let _ = engine.ingest(0, &format!("[{json}]"), &[0, 7]);
        let _ = engine.set_tools(&json);
        let _ = engine.set_tools(&junk);
        let _ = Options::from_json(&json);
        let _ = Options::from_json(&junk);
        let _ = PlanRequest::from_json(&json);
        let _ = Reply::from_json(&json);
        let _ = RecallArgs::from_json(&json).map(|args| engine.recall(&args));
        let _ = engine.plan(PlanRequest::default());
        let _ = engine.render_json();
        let _ = tidemark::classify(None, &junk);
        let options = Options { secret: Some(SECRET.to_owned()), ..Options::default() };
        prop_assert!(Engine::restore(options.clone(), &junk).is_err());
        let _ = Engine::restore(options, &json);
    }

    #[test]
    fn i11_a_damaged_checkpoint_is_refused_or_held_against_the_transcript(
        all in transcript(),
        setting in setting(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut host = setting.host();
        for end in 1..=all.len() {
            host.turn(&all[..end]);
        }
        let mut bytes = host.engine.checkpoint().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let damaged = String::from_utf8_lossy(&bytes).into_owned();
        if let Ok(mut engine) = Engine::restore(common::host::options(&setting.json()), &damaged) {
            engine.ingest(0, &format!("[{}]", all.join(",")), &[]).unwrap();
            let view: Vec<Value> = serde_json::from_str(&engine.render_json()).unwrap();
            prop_assert_eq!(openai_chat::problems(&view), Vec::<String>::new());
            let _ = engine.plan(PlanRequest::default()).unwrap();
        }
    }
}

/// Any JSON, with the names that the readers look for.
fn json_value() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "role",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "tool_call_id",
        "text",
        "type",
        "kind",
        "window",
        "stages",
        "stage",
        "ref",
        "pattern",
        "offset",
        "tidemark",
        "format",
        "secret",
        "parts",
        "summary",
        "usage",
        "x",
    ]);
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<f64>().prop_filter("JSON has none", |f| f.is_finite()).prop_map(|f| f.to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        prop::sample::select(vec![
            "user",
            "assistant",
            "tool",
            "system",
            "text",
            "clear",
            "openai-chat"
        ])
        .prop_map(|text| format!("\"{text}\"")),
        ".{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just("\"\\ud83d\"".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(","))),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

#[test]
fn i11_deep_nesting_and_one_huge_string_are_no_problem() {
    let mut engine = Host::new(r#"{"window":100000}"#).engine;
    let deep = format!("[{}1{}]", "[".repeat(100_000), "]".repeat(100_000));
    let error = engine.ingest(0, &deep, &[]).unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_json");
    let huge = format!(r#"[{{"role":"user","content":"{}"}}]"#, "x".repeat(50_000_000));
    engine.ingest(0, &huge, &[]).unwrap();
    let tidemark::Step::Done { outcome } = engine.plan(PlanRequest::default()).unwrap() else {
        panic!("nothing to do for the host")
    };
    assert!(outcome.fits, "{:?}", outcome.reason);
}

//! The invariants of the design, over random transcripts.
//!
//! The numbers in the names are those of the list in the README.

mod common;

use common::host::{Host, SECRET};
use common::random::{text, transcript};
use common::walk::{Rules, setting, state, walk};
use common::{messages, openai_chat};
use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Engine, Options, PlanRequest, RecallArgs, Reply};

const FORMAT: &str = "openai-chat";

/// Nothing is signed in this format.
const RULES: Rules = Rules {
    format: FORMAT,
    problems: openai_chat::problems,
    keeps_signed: |_, _| true,
    input: |message| message.contains("\"role\":\"user\""),
    odd: |message| message.contains("\\ud83d") || message.contains("\"content\":\"\""),
};

proptest! {
    #![proptest_config(common::cases(192))]

    #[test]
    fn i2_i4_i5_i6_i7_i8_i9_hold_turn_by_turn(all in transcript(), setting in setting()) {
        walk(&all, &setting, &RULES)?;
    }

    #[test]
    fn i9_a_rewritten_transcript_is_never_misapplied(
        all in transcript(),
        setting in setting(),
        at in any::<prop::sample::Index>(),
        new in text(),
        how in 0..3,
    ) {
        let mut host = setting.host(FORMAT);
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
        let mut restored = Host::restore(&setting.json(FORMAT), &host.engine.checkpoint());
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
        let mut host = setting.host(FORMAT);
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
        let mut host = setting.host(FORMAT);
        for end in 1..=all.len() {
            host.turn(&all[..end]);
        }
        let mut bytes = host.engine.checkpoint().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let damaged = String::from_utf8_lossy(&bytes).into_owned();
        if let Ok(mut engine) = Engine::restore(common::host::options(&setting.json(FORMAT)), &damaged) {
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

#[test]
fn i6_what_a_burst_left_high_is_not_folded_right_after_it() {
    // The elided paste brings the recall tool, after which folding the rest saves a few tokens.
    for (lines, marks) in (8..26).flat_map(|lines| (30..70).map(move |marks| (lines, marks))) {
        let mut host =
            Host::new(r#"{"window":1000,"format":"openai-chat","stages":["summarize","elide"]}"#);
        let names = "a .eH.acA_ _.CaCV A_/O aJ.Bv/ A.cv. _.tFlxJ._ _a_ .pJ.y_ JMq.i.h ./A b.A";
        let all = [
            ("user", "start".to_owned()),
            ("user", names.to_owned()),
            ("user", "line one\r\nline two\r\n".repeat(lines)),
            ("assistant", "done".to_owned()),
            ("user", " [k}p0 0 f=k[6p0],=\"5".repeat(marks)),
        ];
        let all = all.map(|(role, content)| {
            serde_json::json!({"role": role, "content": content}).to_string()
        });
        for end in 1..=all.len() {
            let first = host.turn(&all[..end]);
            let view = host.engine.render_json();
            let again = host.plan(PlanRequest::default());
            assert!(!again.compacted, "{lines} {marks} {first:?} {again:?}");
            assert_eq!(host.engine.render_json(), view);
        }
    }
}

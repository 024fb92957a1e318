//! The invariants of the design, checked turn by turn for any wire format.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Outcome, PlanRequest, RecallArgs, RecallStep, Reply};

use super::build::{recalled, search};
use super::host::{Host, Mood};

/// What the strictest provider of a format refuses of a view.
pub type Problems = fn(&[Value]) -> Vec<String>;

/// Options of a session and the host around it.
#[derive(Clone, Debug)]
pub struct Setting {
    pub format: &'static str,
    pub window: u32,
    pub store: bool,
    pub store_fails: bool,
    pub mood: Option<Mood>,
    pub stages: &'static str,
    /// Messages that come between two plans.
    pub chunk: usize,
}

pub fn setting(format: &'static str) -> impl Strategy<Value = Setting> {
    use Mood::{Blank, Echo, Fickle, Good, NoSections, Throws, ToolCall, Verbose};
    let moods = vec![
        Good,
        Blank,
        Verbose,
        Echo,
        Throws,
        ToolCall,
        NoSections,
        Fickle(1),
        Fickle(2),
        Fickle(3),
    ];
    let mood = prop::option::of(prop::sample::select(moods));
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
    (1_000..12_000u32, any::<bool>(), any::<bool>(), mood, stages, 1..6usize).prop_map(
        move |(window, store, store_fails, mood, stages, chunk)| Setting {
            format,
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
    pub fn json(&self) -> String {
        format!(
            r#"{{"format":"{}","window":{},"store":{},"summarizer":{}{}}}"#,
            self.format,
            self.window,
            self.store,
            self.mood.is_some(),
            self.stages
        )
    }

    pub fn host(&self) -> Host {
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

/// Ranks of the decisions in a checkpoint, and how far summary and drop reach.
pub fn state(checkpoint: &str) -> (BTreeMap<(u64, u64), u8>, u64) {
    let json: Value = serde_json::from_str(checkpoint).unwrap();
    let mut parts = BTreeMap::new();
    for row in json["parts"].as_array().into_iter().flatten() {
        let rank = if row[2].as_str().unwrap().starts_with('c') { 2 } else { 1 };
        parts.insert((row[0].as_u64().unwrap(), row[1].as_u64().unwrap()), rank);
    }
    let covered = json["summary"]["covered"].as_u64().unwrap_or(0);
    (parts, covered.max(json["dropped"][0].as_u64().unwrap_or(0)))
}

/// Repairs that a later message can change: the host sends results late or not at all.
const MOVES: [&str; 3] = ["unanswered_call", "misplaced_result", "orphan_result"];

/// Sends the messages in chunks, plans after each, and checks invariants 2 to 9.
pub fn check(all: &[String], setting: &Setting, problems: Problems) -> Result<(), TestCaseError> {
    let mut host = setting.host();
    let mut last = String::new();
    let mut before = state(&host.engine.checkpoint());
    let mut moved = Vec::new();
    let mut end = 0;
    while end < all.len() {
        end = (end + setting.chunk).min(all.len());
        let outcome = host.turn(&all[..end]);
        moved.extend(outcome.repairs.iter().filter(|r| MOVES.contains(&r.kind)).map(|r| r.index));
        let newest = moved.iter().max().map_or(0, |index| *index as usize + 1);
        let late = newest > 0 && newest + 10 > end.saturating_sub(setting.chunk);
        check_turn(&host, &outcome, &all[..end], &last, late, problems)?;
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
        // 8: whatever was decided on can be recalled whole, and a put that failed is no decision.
        for decided in outcome.decisions.iter().filter(|d| d.to.is_none() && d.kind != "removed") {
            let reference = decided.reference.as_ref().unwrap();
            prop_assert!(!recalled(&host.engine, reference).is_empty());
        }
        if setting.store_fails && setting.store {
            prop_assert!(outcome.decisions.iter().all(|d| d.kind != "offloaded"));
        }
    }
    // 8: every word is in the view or is found by recall.
    for (index, message) in all.iter().enumerate() {
        let word = format!("k{index}k");
        if message.contains(&word) && !last.contains(&word) {
            let text = search(&host.engine, &word);
            prop_assert!(
                text.contains(&word) && !text.starts_with("[no text"),
                "{} {}",
                word,
                text
            );
        }
    }
    // 9: restored, over the same transcript, the same bytes.
    let checkpoint = host.engine.checkpoint();
    let mut restored = Host::restore(&setting.json(), &checkpoint);
    restored.ingest(all);
    prop_assert_eq!(restored.engine.render_json(), last);
    prop_assert_eq!(restored.engine.checkpoint(), checkpoint);
    Ok(())
}

fn check_turn(
    host: &Host,
    outcome: &Outcome,
    sent: &[String],
    last: &str,
    late: bool,
    problems: Problems,
) -> Result<(), TestCaseError> {
    let text = host.engine.render_json();
    let view = host.view();
    // 2: valid for the strictest provider.
    prop_assert_eq!(problems(&view), Vec::<String>::new(), "{}", text);
    let covered = state(&host.engine.checkpoint()).1;
    if covered > 0 {
        let systems = view.iter().take_while(|m| m["role"] == "system").count();
        prop_assert_eq!(&view[systems]["role"], "user");
    }
    // 4: what the model has not answered is verbatim unless only elide could make it fit.
    let elided = super::elided(&host.engine.checkpoint());
    for message in sent.iter().rev().take_while(|m| m.contains("\"role\":\"user\"")) {
        let odd = message.contains("\\ud83d") || message.contains("\"\"") || message.contains("[]");
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

/// 9: over a transcript that was rewritten, restored or live, views are valid and alike.
pub fn check_rewritten(
    all: &[String],
    edited: &[String],
    setting: &Setting,
    problems: Problems,
) -> Result<(), TestCaseError> {
    let mut host = setting.host();
    for end in 1..=all.len() {
        host.turn(&all[..end]);
    }
    let mut restored = Host::restore(&setting.json(), &host.engine.checkpoint());
    restored.ingest(edited);
    host.engine.ingest(0, &format!("[{}]", edited.join(",")), &[]).unwrap();
    for one in [&restored, &host] {
        prop_assert_eq!(problems(&one.view()), Vec::<String>::new());
    }
    prop_assert_eq!(restored.engine.render_json(), host.engine.render_json());
    Ok(())
}

/// 11: text, JSON or not, is refused with a typed error or read; nothing panics.
pub fn check_junk(format: &str, junk: &str) {
    let mut engine = Host::new(&format!(r#"{{"window":1000,"format":"{format}"}}"#)).engine;
    let _ = engine.ingest(0, junk, &[]);
    let _ = engine.ingest(0, &format!("[{junk}]"), &[0, 7]);
    let _ = engine.set_tools(junk);
    let _ = engine.plan(PlanRequest::default());
    let _ = engine.render_json();
    let recalled =
        engine.recall(&RecallArgs { pattern: Some("x".into()), ..RecallArgs::default() });
    assert!(matches!(recalled, Ok(RecallStep::Page { .. }) | Err(_)));
}

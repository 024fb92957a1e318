//! A host of random settings walks through a transcript, turn by turn, and what must hold then.
//!
//! The numbers in messages and comments are those of the invariants in the README.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Engine, Outcome, PlanRequest, Reason, RecallArgs, RecallStep, Reply};

use super::host::{Host, Mood};
use super::messages;

/// What is particular to a wire format.
pub struct Rules {
    /// Its name in options.
    pub format: &'static str,
    /// What the strictest provider would refuse in a view.
    pub problems: fn(&[Value]) -> Vec<String>,
    /// Whether the signed parts in a view are those of the transcript, byte for byte.
    pub keeps_signed: fn(&[String], &[String]) -> bool,
    /// Whether a message is the user's alone.
    pub input: fn(&str) -> bool,
    /// Whether something in it needs mending.
    pub odd: fn(&str) -> bool,
}

#[derive(Clone, Debug)]
pub struct Setting {
    pub window: u32,
    pub store: bool,
    pub store_fails: bool,
    pub mood: Option<Mood>,
    pub stages: &'static str,
    pub chunk: usize,
}

pub fn setting() -> impl Strategy<Value = Setting> {
    use Mood::{Blank, Echo, Fickle, Good, NoSections, Throws, ToolCall, Verbose};
    let mood = prop_oneof![
        2 => Just(None),
        3 => prop::sample::select(vec![Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections, Fickle(1), Fickle(2), Fickle(3)])
            .prop_map(Some),
    ];
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
    pub fn json(&self, format: &str) -> String {
        format!(
            r#"{{"format":"{format}","window":{},"store":{},"summarizer":{}{}}}"#,
            self.window,
            self.store,
            self.mood.is_some(),
            self.stages
        )
    }

    pub fn host(&self, format: &str) -> Host {
        let mut host = Host::new(&self.json(format));
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
const MOVES: [&str; 4] =
    ["unanswered_call", "misplaced_result", "orphan_result", "misplaced_content"];

/// Ranks of the decisions in a checkpoint, and how far summary and drop reach.
pub fn state(checkpoint: &str) -> (BTreeMap<(u64, u64), u8>, u64) {
    let json: Value = serde_json::from_str(checkpoint).unwrap();
    let mut parts = BTreeMap::new();
    for row in json["parts"].as_array().into_iter().flatten() {
        let rank = match row[2].as_str().and_then(|decision| decision.chars().next()) {
            Some('o' | 'e') => 1,
            Some('r') => 3,
            _ => 2,
        };
        parts.insert((row[0].as_u64().unwrap(), row[1].as_u64().unwrap()), rank);
    }
    let covered = json["summary"]["covered"].as_u64().unwrap_or(0);
    (parts, covered.max(json["dropped"][0].as_u64().unwrap_or(0)))
}

/// All pages of a reference, put together.
pub fn recalled(engine: &Engine, reference: &str) -> String {
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

/// Walks through the whole transcript and checks the invariants 2 to 9 at each turn.
pub fn walk(all: &[String], setting: &Setting, rules: &Rules) -> Result<Host, TestCaseError> {
    let mut host = setting.host(rules.format);
    let mut last = String::new();
    let mut before = state(&host.engine.checkpoint());
    let mut misplaced = Vec::new();
    let mut end = 0;
    while end < all.len() {
        end = (end + setting.chunk).min(all.len());
        let outcome = host.turn(&all[..end]);
        let moves = outcome.repairs.iter().filter(|repair| MOVES.contains(&repair.kind));
        misplaced.extend(moves.map(|repair| repair.index));
        let newest = misplaced.iter().max().map_or(0, |index| *index as usize + 1);
        let late = newest > 0 && newest + 10 > end.saturating_sub(setting.chunk);
        check_turn(&host, &outcome, &all[..end], &last, late, rules)?;

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

        // 8: whatever was decided on can be recalled whole ...
        for decided in outcome.decisions.iter().filter(|d| d.to.is_none()) {
            let reference = decided.reference.as_ref().unwrap();
            prop_assert!(!recalled(&host.engine, reference).is_empty());
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
            prop_assert!(text.contains(&word) && !text.starts_with("[no text"), "{word}: {text}");
        }
    }
    // 9: restored, over the same transcript, the same bytes.
    let checkpoint = host.engine.checkpoint();
    let mut restored = Host::restore(&setting.json(rules.format), &checkpoint);
    restored.ingest(all);
    prop_assert_eq!(restored.engine.render_json(), last);
    prop_assert_eq!(restored.engine.checkpoint(), checkpoint);
    Ok(host)
}

fn check_turn(
    host: &Host,
    outcome: &Outcome,
    sent: &[String],
    last: &str,
    late: bool,
    rules: &Rules,
) -> Result<(), TestCaseError> {
    let text = host.engine.render_json();
    // 2: valid for the strictest provider.
    prop_assert_eq!((rules.problems)(&host.view()), Vec::<String>::new(), "{}", text);
    // ... and a user message begins what is left of a folded conversation.
    if state(&host.engine.checkpoint()).1 > 0 {
        let view = host.view();
        let mut roles = view.iter().filter_map(|message| message["role"].as_str());
        let first = roles.find(|role| !["system", "developer"].contains(role));
        prop_assert_eq!(first, Some("user"), "{}", text);
    }
    // 3: signed is byte-identical or absent.
    prop_assert!((rules.keeps_signed)(sent, &messages(&text)), "signed: {}", text);
    // 4: what the model has not answered is verbatim unless only elide could make it fit.
    let elided = super::elided(&host.engine.checkpoint());
    for message in sent.iter().rev().take_while(|message| (rules.input)(message)) {
        let odd = (rules.odd)(message);
        prop_assert!(elided || odd || text.contains(message.as_str()), "lost {}", message);
    }
    // 5: the previous view is a byte prefix, unless a late result had to move behind its call.
    if !outcome.compacted && !late && !last.is_empty() {
        prop_assert!(text.starts_with(&last[..last.len() - 1]), "prefix: {} -> {}", last, text);
    }
    // 7: it fits or says that it does not.
    prop_assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap());
    prop_assert_eq!(
        outcome.smallest.is_some(),
        !outcome.fits && outcome.reason == Reason::CannotFit
    );
    Ok(())
}

/// A kind of message, and how the message at a place in the conversation is made.
pub type Piece = (&'static str, fn(usize) -> String);

/// Messages of the model in every order of four, each sent before the next comes. Returns the orders
/// in which one changes what was sent before.
pub fn changed(rules: &Rules, user: &str, pieces: &[Piece]) -> Vec<String> {
    let count = pieces.len();
    let mut out = Vec::new();
    for code in 0..count.pow(4) {
        let picks =
            [code / count.pow(3), code / count.pow(2) % count, code / count % count, code % count];
        let mut host = Host::new(&format!(r#"{{"format":"{}","window":1000}}"#, rules.format));
        let mut all = vec![user.to_owned()];
        let mut last = String::from("[]");
        for (at, pick) in picks.iter().enumerate() {
            all.push(pieces[*pick].1(at));
            host.turn(&all);
            let view = host.engine.render_json();
            assert_eq!((rules.problems)(&host.view()), Vec::<String>::new(), "{view}");
            assert!((rules.keeps_signed)(&all, &messages(&view)), "{view}");
            if !view.starts_with(&last[..last.len() - 1]) {
                let names: Vec<&str> = picks[..=at].iter().map(|pick| pieces[*pick].0).collect();
                out.push(names.join(", "));
            }
            last = view;
        }
    }
    out.dedup();
    out
}

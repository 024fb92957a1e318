//! Stages and policies of the host's own: whatever they want, good, bad or mad, views stay valid, pins
//! and units hold, nothing is undone, and what must not be is refused by name.

mod common;

use std::collections::BTreeSet;

use common::host::{Host, Mood, good_summary};
use common::walk::state;
use common::{anthropic, anthropic_random, gemini, gemini_random, messages, openai_chat};
use common::{openai_responses, openai_responses_random, random};
use proptest::prelude::*;
use serde_json::Value;
use tidemark::{Cause, DecideContext, Effect, Engine, Outcome, PlanRequest, Reply, Step, Wanted};

/// What is particular to a wire format.
struct Rules {
    format: &'static str,
    problems: fn(&[Value]) -> Vec<String>,
    keeps_signed: fn(&[String], &[String]) -> bool,
}

/// What the host does, drawn at random.
#[derive(Clone, Debug)]
struct Mad {
    window: u32,
    stages: &'static str,
    store: bool,
    store_fails: bool,
    mood: Option<Mood>,
    recall: bool,
    chunk: usize,
    /// Messages to pin, as shares of the transcript.
    pins: Vec<prop::sample::Index>,
    /// What the stage wants: a kind and three numbers, taken from where the last plan stopped.
    wishes: Vec<(u8, u16, u16, u16)>,
    /// Wishes for each time that it is asked.
    each: usize,
    /// Every so many plans are forced; none at 0.
    force: usize,
}

fn mad() -> impl Strategy<Value = Mad> {
    use Mood::{Blank, Echo, Fickle, Good, Throws, Verbose};
    let stages = prop::sample::select(vec![
        r#"[{"stage":"custom","name":"policy","at":2}]"#,
        r#"[{"stage":"custom","name":"policy","at":2}]"#,
        r#"[{"stage":"custom","at":0.2},"summarize","drop","elide"]"#,
        r#"["dedupe","offload",{"stage":"custom","at":0.3},"smart","reasoning","drop","elide"]"#,
        r#"["summarize",{"stage":"custom","at":2},"elide",{"stage":"custom","name":"again","at":2}]"#,
    ]);
    let mood = prop::option::of(prop::sample::select(vec![
        Good,
        Good,
        Blank,
        Verbose,
        Echo,
        Throws,
        Fickle(7),
    ]));
    let wish = (any::<u8>(), any::<u16>(), any::<u16>(), any::<u16>());
    let host = (any::<bool>(), any::<bool>(), mood, prop::bool::weighted(0.8));
    let pins = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    let turns = (1..6usize, pins, prop::collection::vec(wish, 1..120), 1..14usize, 0..4usize);
    (600..9_000u32, stages, host, turns).prop_map(
        |(window, stages, (store, store_fails, mood, recall), turns)| {
            let (chunk, pins, wishes, each, force) = turns;
            Mad {
                window,
                stages,
                store,
                store_fails,
                mood,
                recall,
                chunk,
                pins,
                wishes,
                each,
                force,
            }
        },
    )
}

impl Mad {
    fn json(&self, format: &str) -> String {
        format!(
            r#"{{"format":"{format}","window":{},"store":{},"summarizer":{},"recall":{},"stages":{}}}"#,
            self.window,
            self.store,
            self.mood.is_some(),
            self.recall,
            self.stages
        )
    }
}

/// Turns a wish into a decision: some of them sensible, some off by one, some far off.
fn wanted(wish: (u8, u16, u16, u16), seen: &DecideContext, len: u32) -> Wanted {
    let (kind, a, b, c) = wish;
    let near = |number: u16| u32::from(number) % (len + 3);
    let part = seen.parts.get(usize::from(a) % seen.parts.len().max(1));
    let unit = seen.units.get(usize::from(a) % seen.units.len().max(1));
    let other = seen.units.get(usize::from(b) % seen.units.len().max(1));
    match (kind % 12, part, unit, other) {
        (0 | 1, Some(part), ..) => Wanted::Clear { index: part.index, part: part.part },
        (2 | 3, Some(part), ..) => {
            let tokens = u32::from(c) % 120;
            Wanted::Offload { index: part.index, part: part.part, tokens }
        }
        (4, _, Some(unit), _) => Wanted::Drop { from: unit.from, to: unit.to },
        (5, _, Some(unit), Some(other)) => {
            Wanted::Drop { from: unit.from.min(other.from), to: unit.to.max(other.to) }
        }
        (6, _, Some(unit), _) => Wanted::Summarize { to: unit.to },
        (7, ..) => Wanted::Clear { index: near(a), part: u32::from(b) % 6 },
        (8, ..) => Wanted::Offload { index: near(a), part: u32::from(b) % 6, tokens: u32::from(c) },
        (9, ..) => Wanted::Drop { from: near(a), to: near(b) },
        (10, ..) => Wanted::Summarize { to: near(a) },
        _ => match a % 4 {
            0 => Wanted::Clear { index: u32::MAX, part: u32::MAX },
            1 => Wanted::Offload { index: u32::MAX - 1, part: 0, tokens: u32::MAX },
            2 => Wanted::Drop { from: near(b), to: u32::MAX },
            _ => Wanted::Summarize { to: u32::MAX },
        },
    }
}

/// What a stage may want, by what it was shown.
fn may(wanted: Wanted, seen: &DecideContext) -> bool {
    let part = |index, at| {
        let found = seen.parts.iter().find(|part| part.index == index && part.part == at);
        found.is_some_and(|part| !part.pinned && !part.protected)
    };
    let whole = |at: u32| !seen.units.iter().any(|unit| unit.from < at && at < unit.to);
    match wanted {
        Wanted::Clear { index, part: at } | Wanted::Offload { index, part: at, .. } => {
            part(index, at)
        }
        Wanted::Drop { from, to } => {
            let units = seen.units.iter().filter(|unit| unit.from < to && from < unit.to);
            let (mut free, mut covered, mut tokens) = (true, 0, 0);
            for unit in units {
                free &= !unit.pinned && !unit.protected;
                tokens += unit.tokens;
                covered += unit.to - unit.from;
            }
            free && tokens > 0 && whole(from) && whole(to) && from < to && covered == to - from
        }
        Wanted::Summarize { to } => {
            whole(to) && !seen.units.iter().any(|unit| unit.protected && unit.from < to)
        }
    }
}

/// Messages that a decision was taken on may be changed or gone; the others may not.
#[derive(Default)]
struct Taken {
    accepted: usize,
    refused: usize,
    protected: BTreeSet<u32>,
}

fn asked(
    engine: &mut Engine,
    id: u32,
    seen: &DecideContext,
    len: u32,
    mad: &Mad,
    next: &mut usize,
    taken: &mut Taken,
) -> Result<Reply, TestCaseError> {
    for unit in seen.units.iter().filter(|unit| unit.protected) {
        taken.protected.extend(unit.from..unit.to);
    }
    let before = (engine.render_json(), engine.checkpoint());
    let mut dropped: Vec<(u32, u32)> = Vec::new();
    for _ in 0..mad.each {
        let wish = mad.wishes[*next % mad.wishes.len()];
        *next += 1;
        let wanted = wanted(wish, seen, len);
        let again = |wanted| match wanted {
            Wanted::Drop { from, to } => {
                dropped.iter().any(|(first, last)| *first < to && from < *last)
            }
            _ => false,
        };
        match engine.propose(id, wanted) {
            Ok(saved) => {
                prop_assert!(may(wanted, seen), "{wanted:?} was taken: {:?}", seen.units);
                prop_assert!(!again(wanted), "{wanted:?} was taken twice");
                prop_assert!(saved > 0, "{wanted:?} saves nothing");
                if let Wanted::Drop { from, to } = wanted {
                    dropped.push((from, to));
                }
                taken.accepted += 1;
            }
            Err(error) => {
                prop_assert_eq!(error.code().as_str(), "invalid_decision");
                prop_assert!(error.path().starts_with("messages["), "{}", error.path());
                prop_assert!(!error.message().is_empty());
                let drops = matches!(wanted, Wanted::Drop { .. });
                prop_assert!(
                    !drops || !may(wanted, seen) || again(wanted),
                    "{wanted:?} was refused: {error}"
                );
                taken.refused += 1;
            }
        }
    }
    // What is wanted is only noted until the stage has answered.
    prop_assert_eq!((engine.render_json(), engine.checkpoint()), before);
    Ok(match mad.wishes[*next % mad.wishes.len()].0 {
        0..16 => Reply::Failed { message: "the stage threw".to_owned() },
        _ => Reply::Done,
    })
}

fn plan(
    host: &mut Host,
    request: PlanRequest,
    len: u32,
    mad: &Mad,
    next: &mut usize,
    taken: &mut Taken,
) -> Result<Outcome, TestCaseError> {
    let mut step = host.engine.plan(request).expect("a good request");
    let mut due: Vec<Effect> = Vec::new();
    for _ in 0..10_000 {
        match step {
            Step::Done { outcome } => return Ok(*outcome),
            Step::Effects { effects } => due.extend(effects),
            Step::Idle => panic!("an effect of the running plan was called abandoned"),
        }
        let effect = due.pop().expect("the engine waits for nothing");
        let reply = match &effect {
            Effect::Decide { id, context, .. } => {
                asked(&mut host.engine, *id, context, len, mad, next, taken)?
            }
            Effect::Put { .. } if mad.store_fails => {
                Reply::Failed { message: "disk full".to_owned() }
            }
            Effect::Summarize { prompt, .. } => match mad.mood {
                Some(Mood::Good | Mood::Fickle(_)) => Reply::Text { text: good_summary("so") },
                Some(Mood::Blank) => Reply::Text { text: String::new() },
                Some(Mood::Echo) => Reply::Text { text: prompt.clone() },
                Some(Mood::Verbose) => Reply::Text { text: "very long ".repeat(9_000) },
                _ => Reply::Failed { message: "boom".to_owned() },
            },
            _ => Reply::Done,
        };
        step = host.engine.resolve(effect.id(), reply).expect("a good reply");
    }
    panic!("the plan does not end")
}

fn check(all: &[String], mad: &Mad, rules: &Rules) -> Result<(), TestCaseError> {
    let mut pins: Vec<u32> = mad.pins.iter().map(|pin| pin.index(all.len()) as u32).collect();
    pins.sort_unstable();
    pins.dedup();
    let mut host = Host::new(&mad.json(rules.format));
    let (mut next, mut turn, mut end) = (0, 0, 0);
    let mut before = state(&host.engine.checkpoint());
    while end < all.len() {
        end = (end + mad.chunk).min(all.len());
        turn += 1;
        let sent = &all[..end];
        let json = format!("[{}]", sent.join(","));
        host.engine.ingest(0, &json, &pins).expect("good messages");
        // What the view would be if nobody had decided anything.
        let mut bare = Host::new(&format!(r#"{{"format":"{}"}}"#, rules.format)).engine;
        bare.ingest(0, &json, &pins).expect("good messages");
        let bare: BTreeSet<String> = messages(&bare.render_json()).into_iter().collect();

        let mut taken = Taken::default();
        let force = mad.force > 0 && turn % mad.force == 0;
        let request = PlanRequest { force, ..PlanRequest::default() };
        let size = host.engine.estimate().tokens;
        let stood: BTreeSet<String> = messages(&host.engine.render_json()).into_iter().collect();
        let outcome = plan(&mut host, request, end as u32, mad, &mut next, &mut taken)?;
        let text = host.engine.render_json();

        // The view is valid, signed blocks are whole, and no plan makes the view larger.
        prop_assert_eq!(
            (rules.problems)(&host.view()),
            Vec::<String>::new(),
            "{:?} {}",
            outcome.decisions,
            text
        );
        let view = messages(&text);
        prop_assert!((rules.keeps_signed)(sent, &view), "signed: {}", text);
        prop_assert!(outcome.tokens_after <= size, "{} from {}", outcome.tokens_after, size);
        prop_assert_eq!(outcome.tokens_after, host.engine.estimate().tokens);

        // Pins hold, and so does what the stage was told is protected, unless elide had to cut it.
        let whole: BTreeSet<&String> = view.iter().collect();
        let holds = |index: u32, stood: &BTreeSet<String>| {
            let message = &sent[index as usize];
            // Without a word of its own it looks like others; ids of items go with the reasoning that
            // they belong to.
            let other = !message.contains(&format!("k{index}k"));
            let bound = rules.format == "openai-responses" && message.contains("\"id\":");
            other || bound || !stood.contains(message) || whole.contains(message)
        };
        for pin in pins.iter().filter(|pin| (**pin as usize) < end) {
            prop_assert!(
                holds(*pin, &bare),
                "pin {pin} {}: {:?} {text}",
                sent[*pin as usize],
                outcome.decisions
            );
        }
        let only = mad.stages.contains("\"policy\"");
        // What was signed over messages that changed leaves, wherever it stands.
        let signed = |index: u32| {
            outcome.decisions.iter().any(|one| one.index == index && one.reason == Cause::Signature)
        };
        for index in taken.protected.iter().filter(|index| only && !signed(**index)) {
            prop_assert!(
                holds(*index, &stood),
                "{index} {} of {:?}: {text}",
                sent[*index as usize],
                outcome.decisions
            );
        }
        // A policy alone decides everything, and what was refused is not decided.
        if only && taken.accepted == 0 {
            prop_assert!(!outcome.compacted, "{:?}", outcome.decisions);
        }

        // Decisions are never undone.
        let after = state(&host.engine.checkpoint());
        prop_assert!(after.1 >= before.1, "{before:?} {after:?}");
        for (place, rank) in &before.0 {
            prop_assert!(place.0 < after.1 || after.0.get(place) >= Some(rank), "{place:?}");
        }
        before = after;

        // Restored, the same bytes.
        let checkpoint = host.engine.checkpoint();
        let mut restored = Host::restore(&mad.json(rules.format), &checkpoint).engine;
        restored.ingest(0, &json, &pins).expect("good messages");
        prop_assert_eq!(restored.render_json(), text);
        prop_assert_eq!(restored.checkpoint(), checkpoint);
    }
    Ok(())
}

proptest! {
    #![proptest_config(common::cases(256))]

    #[test]
    fn any_wish_leaves_openai_chat_valid(all in random::transcript(), mad in mad()) {
        let rules = Rules {
            format: "openai-chat",
            problems: openai_chat::problems,
            keeps_signed: |_, _| true,
        };
        check(&all, &mad, &rules)?;
    }

    #[test]
    fn any_wish_leaves_anthropic_valid(all in anthropic_random::transcript(), mad in mad()) {
        let rules = Rules {
            format: "anthropic",
            problems: anthropic::problems,
            keeps_signed: anthropic::keeps_signed,
        };
        check(&all, &mad, &rules)?;
    }

    #[test]
    fn any_wish_leaves_gemini_valid(all in gemini_random::transcript(), mad in mad()) {
        let rules = Rules {
            format: "gemini",
            problems: gemini::problems,
            keeps_signed: gemini::keeps_signed,
        };
        check(&all, &mad, &rules)?;
    }

    #[test]
    fn any_wish_leaves_openai_responses_valid(
        all in openai_responses_random::transcript(),
        mad in mad(),
    ) {
        let rules = Rules {
            format: "openai-responses",
            problems: openai_responses::problems,
            keeps_signed: |_, _| true,
        };
        check(&all, &mad, &rules)?;
    }
}

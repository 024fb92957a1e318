//! Mutated inputs for every parser: no panic, no hang, memory bounded by the input.
//!
//! Seeds are real and hand-written inputs; mutations cut, repeat, mix and garble them, and put in
//! the words that the parsers look for. The default run is short and always the same. `npm
//! --prefix js run fuzz` runs each target for `TIDEMARK_FUZZ_SECONDS`, from a seed of its own that
//! it prints; `TIDEMARK_FUZZ_SEED` repeats one. An input that fails is kept under `target/fuzz/`.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::host::{Host, options};
use common::{data, messages};
use tidemark::{
    Engine, FormatName, Options, PlanRequest, RecallArgs, RecallStep, Reply, Step, classify,
};

// ---- memory --------------------------------------------------------------------

/// The system's allocator, which remembers what each thread holds and held at most.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: hands everything to the system's allocator, and allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may stand side by side while the content is copied.
        count(size as isize);
        let moved = unsafe { System.realloc(at, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes that were held while the action ran, beside those held before.
fn most_held(action: impl FnOnce()) -> usize {
    let before = HELD.with(Cell::get);
    MOST.with(|most| most.set(before));
    action();
    (MOST.with(Cell::get) - before).max(0) as usize
}

// ---- inputs --------------------------------------------------------------------

/// A small generator of random numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }
}

/// What the parsers look for, and what is hard on them.
const WORDS: [&str; 61] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "4294967296",
    "0.1",
    "\"\"",
    "{}",
    "[]",
    "\\ud83d",
    "\\u0000",
    "\\ude00\\ud83d",
    "é",
    "汉",
    "👩‍👩‍👧",
    "\u{0}",
    " ",
    "\n",
    "\"role\":\"user\"",
    "\"role\":\"assistant\"",
    "\"role\":\"tool\"",
    "\"role\":\"model\"",
    "\"role\":\"system\"",
    "\"content\":null",
    "\"content\":[]",
    "\"parts\":[]",
    "\"text\":\"\"",
    "\"id\":\"c1\"",
    "\"type\":\"text\"",
    "\"type\":\"reasoning\"",
    "\"type\":\"tool_use\"",
    "\"type\":\"tool_result\"",
    "\"type\":\"function_call\"",
    "\"type\":\"function_call_output\"",
    "\"type\":\"tool-call\"",
    "\"type\":\"tool-result\"",
    "\"type\":\"thinking\",\"signature\":\"s\"",
    "\"thought\":true",
    "\"thoughtSignature\":\"s\"",
    "\"functionCall\":{\"name\":\"f\"}",
    "\"functionResponse\":{\"name\":\"f\"}",
    "\"tool_calls\":[]",
    "\"call_id\":\"c1\"",
    "\"window\":",
    "\"stages\":",
    "\"covered\":4294967295",
    "\"parts\":[[0,0,\"cAAAAAAAAAAAAAAE\"]]",
    "maximum context length is ",
    "18446744073709551616",
    " tokens",
    "\"error\":{",
];

/// Longest input of a mutation, bytes.
const LONGEST: usize = 40_000;

fn mutated(dice: &mut Dice, seeds: &[String]) -> String {
    let mut bytes = seeds[dice.below(seeds.len())].clone().into_bytes();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let most = dice.below(400);
        let end = (at + dice.below(1 + most)).min(bytes.len());
        match dice.below(8) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = bytes[at..end].to_vec();
                let times = 1 + dice.below(30);
                bytes.splice(at..at, piece.repeat(times));
            }
            2 => {
                let other = seeds[dice.below(seeds.len())].as_bytes();
                let from = dice.below(other.len());
                let to = (from + dice.below(600)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            3 => bytes.truncate(at),
            4 if at < bytes.len() => bytes[at] = dice.roll() as u8,
            5 => {
                let nested = if dice.below(2) == 0 { "[" } else { "{\"a\":" };
                let deep = nested.repeat(1 + dice.below(700));
                bytes.splice(at..at, deep.bytes());
            }
            _ => {
                let word = WORDS[dice.below(WORDS.len())];
                bytes.splice(at..end, word.bytes());
            }
        }
        bytes.truncate(LONGEST);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a target over mutations of its seeds. `fixed` are the bytes that it may hold whatever its
/// input: what an engine, or a transcript of the target's own, takes.
fn fuzz(name: &str, fixed: usize, seeds: &[String], target: impl Fn(&str)) {
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = variable("TIDEMARK_FUZZ_SECONDS");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = variable("TIDEMARK_FUZZ_SEED").unwrap_or(if seconds.is_some() { now } else { 1 });
    let mut dice = Dice(seed);
    let start = Instant::now();
    let mut runs = 0u64;
    let (mut slowest, mut largest) = (Duration::ZERO, 0.0f64);
    let mut next = seeds.to_vec();
    let goes_on = |runs: u64| match seconds {
        Some(seconds) => start.elapsed().as_secs() < seconds,
        None => runs < 400,
    };
    while goes_on(runs) {
        let input = next.pop().unwrap_or_else(|| mutated(&mut dice, seeds));
        let began = Instant::now();
        let mut panicked = false;
        let held = most_held(|| {
            panicked = catch_unwind(AssertUnwindSafe(|| target(&input))).is_err();
        });
        let took = began.elapsed();
        slowest = slowest.max(took);
        let multiple = held.saturating_sub(fixed) as f64 / input.len().max(1) as f64;
        largest = largest.max(multiple);
        runs += 1;
        // A hang, not a timing: ten seconds are a thousand times what any such input takes.
        if panicked || took > Duration::from_secs(10) || multiple > MULTIPLE {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/fuzz");
            let file = format!("{folder}/{name}-{seed}-{runs}");
            let _ = std::fs::create_dir_all(folder);
            let _ = std::fs::write(&file, &input);
            panic!(
                "{name}: panicked: {panicked}, took {took:?}, held {held} bytes for {}; kept in {file}",
                input.len()
            );
        }
    }
    println!(
        "{name}: seed {seed}, {runs} inputs, slowest {slowest:.1?}, memory at most {largest:.0} times the input beside {fixed} bytes"
    );
}

/// Bytes of an engine without a transcript, and of one with some pages.
const EMPTY: usize = 32 * 1024;
const PAGES: usize = 1024 * 1024;

/// Most bytes that a run may hold for each byte of its input.
const MULTIPLE: f64 = 48.0;

// ---- targets -------------------------------------------------------------------

fn engine(format: &str, window: u32) -> Engine {
    let json = format!("{{\"format\":\"{format}\",\"window\":{window},\"reserve\":0}}");
    Engine::new(options(&json)).expect("good options")
}

/// Everything that follows from a transcript: plan, view, checks, recall, checkpoint.
fn use_all(engine: &mut Engine) {
    let _ = engine.problems();
    let mut step = engine.plan(PlanRequest { force: true, ..PlanRequest::default() });
    // The host fails at everything it is asked.
    while let Ok(Step::Effects { effects }) = step {
        for effect in &effects[1..] {
            let _ = engine.resolve(effect.id(), Reply::Failed { message: "no".to_owned() });
        }
        let id = effects[0].id();
        step = engine.resolve(id, Reply::Failed { message: "no".to_owned() });
    }
    let view = engine.render_json();
    assert_eq!(engine.render_json(), view);
    let args = RecallArgs { pattern: Some("a".to_owned()), ..RecallArgs::default() };
    let _ = engine.recall(&args);
    let _ = engine.estimate();
    let _ = engine.checkpoint();
}

fn read_messages(format: &str, window: u32, json: &str) {
    let mut engine = engine(format, window);
    if engine.ingest(0, json, &[0]).is_ok() {
        use_all(&mut engine);
    }
}

/// Beginnings of the transcripts in `tests/data`, and one of each format that has every part.
fn transcripts() -> Vec<String> {
    let mut out: Vec<String> = [
        r#"[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}}]},{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]"#,
        r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"type":"function_call","call_id":"c1","id":"fc_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"item_reference","id":"i"},{"type":"compaction","encrypted_content":"e"}]"#,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"x"}]},{"type":"document","source":{}}]}]"#,
        r#"[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},{"role":"model","parts":[{"text":"t","thought":true},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"},{"functionCall":{"id":"c2","name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"file","data":"AA==","mediaType":"image/png"}]},{"role":"assistant","content":[{"type":"reasoning","text":"r"},{"type":"tool-call","toolCallId":"c1","toolName":"f","input":{}},{"type":"tool-approval-request","approvalId":"p","toolCallId":"c1"}]},{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"p","approved":true},{"type":"tool-result","toolCallId":"c1","toolName":"f","output":{"type":"json","value":{"a":1}}}]}]"#,
    ]
    .map(str::to_owned)
    .into();
    for file in ["small.json", "mid.json", "gemini/calls.json", "gemini/server_tools.json"] {
        let all = messages(&data(file));
        for chunk in all.chunks(6).take(3) {
            out.push(format!("[{}]", chunk.join(",")));
        }
    }
    out
}

#[test]
fn messages_of_every_format() {
    let seeds = transcripts();
    for format in FormatName::ALL.map(FormatName::as_str) {
        fuzz(format, EMPTY, &seeds, |json| {
            read_messages(format, 1_000, json);
        });
    }
    fuzz("auto", EMPTY, &seeds, |json| read_messages("auto", 1_000, json));
}

#[test]
fn messages_that_grow_and_are_rewritten() {
    let seeds = transcripts();
    fuzz("rewritten", PAGES, &seeds, |json| {
        let mut engine = engine("auto", 1_000);
        // A good beginning, and the input in its place, behind it, and before it.
        let _ = engine.ingest(0, &seeds[0], &[]);
        for from in [4, 1, 3, 0, 2] {
            if engine.ingest(from, json, &[1]).is_ok() {
                use_all(&mut engine);
            }
        }
    });
}

#[test]
fn request_bodies() {
    let names = ["messages", "input", "contents", "prompt"];
    let seeds: Vec<String> = transcripts()
        .into_iter()
        .enumerate()
        .map(|(at, list)| {
            let name = names[at % names.len()];
            format!("{{\"model\":\"m\",\"max_tokens\":9,\"tools\":[{{\"name\":\"f\"}}],\"system\":\"s\",\"{name}\":{list}}}")
        })
        .collect();
    fuzz("body", EMPTY, &seeds, |json| {
        let mut engine = engine("auto", 1_000);
        if engine.ingest_body(json.as_bytes(), None).is_ok() {
            use_all(&mut engine);
            if let Some(body) = engine.render_body() {
                // That parser takes no nesting over 128 levels.
                let is_json = |text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                assert!(is_json(&body) || !is_json(json), "{body}");
            }
        }
    });
}

#[test]
fn options_requests_replies_and_recall_arguments() {
    let seeds = [
        r#"{"window":1000,"reserve":100,"compactAt":0.8,"compactTo":0.5,"tail":0.2,"format":"gemini","store":true,"summarizer":true,"recall":{"name":"recall"},"stages":["clear",{"stage":"offload","minTokens":90,"previewTokens":10,"exclude":["f"],"at":0.5}],"secret":"000102030405060708090a0b0c0d0e0f"}"#,
        r#"{"usage":{"inputTokens":1000},"force":true,"overflow":{"status":400,"body":"maximum context length is 1000 tokens"},"focus":"f"}"#,
        r#"{"kind":"text","text":"a"}"#,
        r#"{"kind":"failed","message":"m"}"#,
        r#"{"ref":"0123456789ab","offset":1,"limit":2,"pattern":"p"}"#,
        r#"{"pattern":"p"}"#,
        r#"[{"type":"function","function":{"name":"f","parameters":{}}}]"#,
    ]
    .map(str::to_owned);
    let mut filled = Host::new(r#"{"window":2000,"reserve":0}"#);
    filled.ingest(&messages(&data("small.json")));
    let filled = std::cell::RefCell::new(filled.engine);
    let list = transcripts().swap_remove(0);
    fuzz("arguments", PAGES, &seeds, |json| {
        if let Ok(options) = Options::from_json(json) {
            let _ = Engine::new(options).map(|mut engine| {
                let _ = engine.ingest(0, &list, &[]);
                use_all(&mut engine);
            });
        }
        let mut filled = filled.borrow_mut();
        if let Ok(request) = PlanRequest::from_json(json) {
            let _ = filled.plan(request);
            filled.cancel();
        }
        if let Ok(reply) = Reply::from_json(json) {
            let _ = filled.resolve(0, reply);
        }
        if let Ok(args) = RecallArgs::from_json(json)
            && let Ok(RecallStep::Fetch { .. }) = filled.recall(&args)
        {
            let _ = filled.recall_fetched(&args, Some(json));
        }
        let _ = filled.set_tools(json);
        let _ = filled.set_system(json);
    });
}

#[test]
fn bodies_of_errors() {
    let seeds = [
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        "input length and `max_tokens` exceed context limit: 180692 + 34048 > 200000",
        "rate limit reached, retry in 20s",
    ]
    .map(str::to_owned);
    fuzz("overflow", EMPTY, &seeds, |body| {
        for status in [None, Some(400), Some(429)] {
            let _ = classify(status, body);
        }
    });
}

#[test]
fn checkpoints() {
    let all = messages(&data("mid.json"))[..60].to_vec();
    let seeds: Vec<String> = [700, 2_000, 6_000]
        .iter()
        .map(|window| {
            let json =
                format!("{{\"window\":{window},\"reserve\":0,\"summarizer\":true,\"store\":true}}");
            let mut host = Host::new(&json);
            host.turn(&all);
            host.engine.checkpoint()
        })
        .collect();
    let list = format!("[{}]", all[..20].join(","));
    fuzz("checkpoint", PAGES, &seeds, |checkpoint| {
        let options = options(r#"{"window":2000,"reserve":0}"#);
        if let Ok(mut engine) = Engine::restore(options, checkpoint) {
            let _ = engine.checkpoint();
            let _ = engine.ingest(0, &list, &[]);
            use_all(&mut engine);
        }
    });
}

#[test]
fn deep_nesting_is_refused_or_kept_in_every_format() {
    for format in FormatName::ALL.map(FormatName::as_str) {
        for depth in [100, 500, 100_000] {
            let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            read_messages(format, 1_000, &deep);
            for member in ["content", "parts", "output"] {
                read_messages(
                    format,
                    1_000,
                    &format!("[{{\"role\":\"user\",\"{member}\":{deep}}}]"),
                );
            }
            let call = format!(
                "{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{{\"name\":\"f\",\"args\":{deep}}}}}]}}"
            );
            read_messages(format, 1_000, &format!("[{call}]"));
        }
    }
}

#[test]
fn one_string_of_50_mb_is_read_and_cut_in_every_format() {
    let text = "x".repeat(50_000_000);
    for format in FormatName::ALL {
        let json = match format {
            FormatName::Gemini => format!(r#"[{{"role":"user","parts":[{{"text":"{text}"}}]}}]"#),
            _ => format!(r#"[{{"role":"user","content":"{text}"}}]"#),
        };
        let mut engine = engine(format.as_str(), 100_000);
        let held = most_held(|| {
            engine.ingest(0, &json, &[]).expect("good messages");
            let Ok(Step::Done { outcome }) = engine.plan(PlanRequest::default()) else {
                panic!("nothing to do for the host")
            };
            assert!(outcome.fits, "{format:?}: {:?}", outcome.reason);
            assert!(engine.render_json().len() < 2_000_000);
        });
        assert!(held < json.len() * 5, "{format:?}: {held} bytes");
    }
}

/// Many of everything in one message: what follows from each must not grow with the square.
#[test]
fn messages_with_very_many_parts_are_no_hang() {
    let many = |part: &dyn Fn(usize) -> String| -> String {
        (0..WIDE).map(part).collect::<Vec<_>>().join(",")
    };
    let blank = |_: usize| r#"{"type":"text","text":""}"#.to_owned();
    let text = |at: usize| format!(r#"{{"type":"text","text":"t{at}"}}"#);
    let list = |role: &str, member: &str, parts: &str| {
        format!(r#"{{"role":"{role}","{member}":[{parts}]}}"#)
    };
    let ask = r#"{"role":"user","content":"a"}"#;
    let inputs: Vec<(&str, String)> = vec![
        ("openai-chat", list("user", "content", &many(&blank))),
        ("anthropic", list("user", "content", &many(&blank))),
        ("ai-sdk", list("user", "content", &many(&blank))),
        ("openai-chat", list("user", "content", &many(&text))),
        ("gemini", list("user", "parts", &many(&|_| r#"{"text":""}"#.to_owned()))),
        // Calls without ids, answered from the last to the first.
        (
            "gemini",
            format!(
                "{},{}",
                list(
                    "model",
                    "parts",
                    &many(&|at| format!(r#"{{"functionCall":{{"name":"f{at}"}}}}"#))
                ),
                list(
                    "user",
                    "parts",
                    &many(&|at| {
                        let at = WIDE - at;
                        format!(r#"{{"functionResponse":{{"name":"f{at}","response":{{}}}}}}"#)
                    })
                ),
            ),
        ),
        // Calls of one id, without results.
        (
            "anthropic",
            format!(
                "{ask},{},{ask}",
                list(
                    "assistant",
                    "content",
                    &many(&|_| {
                        r#"{"type":"tool_use","id":"x","name":"f","input":{}}"#.to_owned()
                    })
                )
            ),
        ),
        (
            "openai-chat",
            format!(
                "{ask},{},{ask}",
                list(
                    "assistant",
                    "tool_calls",
                    &many(&|_| {
                        r#"{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}"#
                            .to_owned()
                    })
                )
            ),
        ),
        (
            "openai-responses",
            many(&|at| {
                format!(
                    r#"{{"type":"function_call","call_id":"x{}","name":"f","arguments":"{{}}"}}"#,
                    at % 7
                )
            }),
        ),
        ("openai-chat", many(&|_| ask.to_owned())),
        (
            "gemini",
            many(&|_| r#"{"role":"model","parts":[{"functionCall":{"name":"f"}}]}"#.to_owned()),
        ),
    ];
    for (at, (format, messages)) in inputs.iter().enumerate() {
        let began = Instant::now();
        read_messages(format, 1_000, &format!("[{messages}]"));
        let took = began.elapsed();
        println!("wide {at} {format}: {took:?}");
        assert!(took < Duration::from_secs(60), "input {at} of {format} took {took:?}");
    }
}

/// Parts of such a message.
const WIDE: usize = 4_000;

//! The estimate: the same however a conversation comes, for any bytes, and as fast at any length.

mod common;

use common::host::options;
use proptest::prelude::*;
use tidemark::{Engine, PlanRequest};

const FORMATS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// What the engine says of the size of the view and of the transcript.
fn sizes(engine: &Engine) -> String {
    format!("{:?}, {}", engine.estimate(), engine.stats().transcript_tokens)
}

fn engine(format: &str) -> Engine {
    Engine::new(options(&format!(r#"{{"window":10000000,"format":"{format}"}}"#))).unwrap()
}

fn list(messages: &[String]) -> String {
    format!("[{}]", messages.join(","))
}

/// Conversations of every format, and where they are cut into calls of ingest.
fn cut() -> impl Strategy<Value = (&'static str, Vec<String>, Vec<prop::sample::Index>)> {
    use common::{anthropic_random, gemini_random, openai_responses_random, random};
    let any_format = prop_oneof![
        random::transcript().prop_map(|all| (FORMATS[0], all)),
        openai_responses_random::transcript().prop_map(|all| (FORMATS[1], all)),
        anthropic_random::transcript().prop_map(|all| (FORMATS[2], all)),
        gemini_random::transcript().prop_map(|all| (FORMATS[3], all)),
    ];
    (any_format, prop::collection::vec(any::<prop::sample::Index>(), 0..8))
        .prop_map(|((format, all), cuts)| (format, all, cuts))
}

proptest! {
    #![proptest_config(common::cases(96))]

    #[test]
    fn the_estimate_is_the_same_for_any_split_into_calls((format, all, cuts) in cut()) {
        let mut at_once = engine(format);
        at_once.ingest(0, &list(&all), &[]).unwrap();
        let expected = sizes(&at_once);

        let mut one_by_one = engine(format);
        for (at, message) in all.iter().enumerate() {
            one_by_one.ingest(at, &list(std::slice::from_ref(message)), &[]).unwrap();
        }
        prop_assert_eq!(sizes(&one_by_one), expected.as_str(), "one by one");

        // Batches that overlap: what is known is handed over again, as hosts do.
        let mut batches = engine(format);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        ends.sort_unstable();
        ends.push(all.len());
        for (at, end) in ends.iter().enumerate() {
            let known = batches.len();
            let from = known.saturating_sub(at % 3);
            batches.ingest(from, &list(&all[from..*end]), &[]).unwrap();
            batches.plan(PlanRequest::default()).unwrap();
        }
        prop_assert_eq!(sizes(&batches), expected.as_str(), "in batches");

        let member = match format {
            "openai-responses" => "input",
            "gemini" => "contents",
            _ => "messages",
        };
        let mut body = engine(format);
        let bytes = format!("{{ \"{member}\" : {} }}", list(&all));
        body.ingest_body(bytes.as_bytes(), None).unwrap();
        prop_assert_eq!(sizes(&body), expected.as_str(), "as a body");
    }

    #[test]
    fn the_estimate_of_a_message_that_streams_in_is_that_of_its_end(
        (format, all, _) in cut(),
        pieces in prop::collection::vec(common::random::text(), 1..12),
    ) {
        let said = |text: &str| {
            let text = serde_json::to_string(text).unwrap();
            match format {
                "gemini" => format!(r#"{{"role":"model","parts":[{{"text":{text}}}]}}"#),
                _ => format!(r#"{{"role":"assistant","content":{text}}}"#),
            }
        };
        let mut streamed = engine(format);
        streamed.ingest(0, &list(&all), &[]).unwrap();
        let mut text = String::new();
        for piece in &pieces {
            text.push_str(piece);
            streamed.ingest(all.len(), &list(&[said(&text)]), &[]).unwrap();
        }
        let mut whole = engine(format);
        let all = [all, vec![said(&text)]].concat();
        whole.ingest(0, &list(&all), &[]).unwrap();
        prop_assert_eq!(sizes(&streamed), sizes(&whole));
    }

    #[test]
    fn any_bytes_are_counted_or_refused(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..400),
            // Nearly UTF-8: lead bytes, continuations, surrogates, marks of JSON.
            prop::collection::vec(
                prop::sample::select(vec![
                    0u8, b'"', b'\\', b'u', b'd', b'8', b'{', b'}', b'[', b']', b',', b':', b' ',
                    b'\n', b'9', b'e', b'-', 0x80, 0xBF, 0xC3, 0xE2, 0xED, 0xA0, 0xF0, 0x9F, 0xFF,
                ]),
                0..200,
            ),
        ],
        family in prop::sample::select(vec!["o200k", "cl100k", "claude", "llama3", "gemini", "bytes"]),
    ) {
        let json = format!(r#"{{"window":1000,"format":"openai-chat","tokenizer":"{family}"}}"#);
        let counter = || Engine::new(options(&json)).unwrap();
        // As a body, as the messages of one, and as a text in one, where each byte is a character.
        let _ = counter().ingest_body(&bytes, None);
        let body = [br#"{"messages":["#, &bytes[..], b"]}"].concat();
        let _ = counter().ingest_body(&body, None);
        let inside = [br#"{"messages":[{"role":"user","content":""#, &bytes[..], br#""}]}"#].concat();
        let mut raw = counter();
        if raw.ingest_body(&inside, None).is_ok() {
            prop_assert!(raw.estimate().tokens > 0);
        }
        for text in [String::from_utf8_lossy(&bytes), bytes.iter().map(|byte| *byte as char).collect()] {
            let text = serde_json::to_string(&text).unwrap();
            let message = format!(r#"[{{"role":"user","content":{text}}}]"#);
            let mut read = counter();
            read.ingest(0, &message, &[]).unwrap();
            prop_assert!(read.estimate().tokens as usize <= 4 + message.len() * 2);
        }
    }
}

/// One line of so many megabytes, without a line break.
fn line(kind: &str, megabytes: usize) -> String {
    let pattern = match kind {
        "one letter" => "a",
        "spaces" => "        ",
        "alternating" => "a1-é汉B2_ю9",
        "base64" => {
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
        }
        _ => unreachable!("{kind}"),
    };
    pattern.repeat((megabytes << 20) / pattern.len())
}

#[test]
fn a_line_of_fifty_megabytes_counts_as_ten_of_five() {
    for kind in ["one letter", "spaces", "alternating", "base64"] {
        let tokens = |megabytes| {
            let mut engine = engine("openai-chat");
            let text = line(kind, megabytes);
            engine.ingest(0, &format!(r#"[{{"role":"user","content":"{text}"}}]"#), &[]).unwrap();
            f64::from(engine.estimate().tokens)
        };
        let ratio = tokens(50) / tokens(5);
        assert!((9.99..=10.01).contains(&ratio), "{kind}: {ratio}");
    }
}

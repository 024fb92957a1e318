//! Golden digests of views and checkpoints, which `tests/js/golden.test.mjs` must find as well.
//!
//! After a change that is meant to alter views: `TIDEMARK_GOLDEN=write cargo test --test golden`.

mod common;

use std::path::Path;

use common::data;
use common::host::{SECRET, options};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tidemark::{Engine, PlanRequest, Step};

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON without the white space between its tokens, as `JSON.stringify` writes it.
fn compact(text: &str) -> String {
    let mut out = String::new();
    let (mut string, mut escaped) = (false, false);
    for scalar in text.chars() {
        if string || !scalar.is_ascii_whitespace() {
            out.push(scalar);
        }
        string ^= scalar == '"' && !escaped;
        escaped = scalar == '\\' && !escaped;
    }
    out
}

/// View and checkpoint of a transcript read in two halves.
fn vector(file: &str, window: u32) -> Value {
    let text = compact(&data(file));
    let messages = common::messages(&text);
    let json = format!(r#"{{"window":{window}}}"#);
    let mut engine = Engine::new(options(&json)).unwrap();
    for end in [messages.len() / 2, messages.len()] {
        engine.ingest(0, &format!("[{}]", messages[..end].join(",")), &[]).unwrap();
        let Step::Done { .. } = engine.plan(PlanRequest::default()).unwrap() else {
            panic!("the local summarizer needs no host")
        };
    }
    json!({
        "file": file,
        "window": window,
        "secret": SECRET,
        "view": digest(&engine.render_json()),
        "checkpoint": digest(&engine.checkpoint()),
    })
}

#[test]
fn views_and_checkpoints_have_the_golden_digests() {
    let mut vectors = Vec::new();
    for file in ["small.json", "mid.json", "large.json"] {
        for window in [4_000, 16_000, 64_000] {
            vectors.push(vector(file, window));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.json");
    let text = serde_json::to_string_pretty(&vectors).unwrap() + "\n";
    if std::env::var("TIDEMARK_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

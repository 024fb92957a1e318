//! What the tests share: a strict validator of requests, and a host that drives the engine.
#![allow(dead_code)] // each test file uses its own part

pub mod ai_sdk;
pub mod anthropic;
pub mod anthropic_random;
pub mod build;
pub mod gemini;
pub mod gemini_random;
pub mod host;
pub mod openai_chat;
pub mod openai_responses;
pub mod openai_responses_random;
pub mod random;
pub mod walk;

use std::path::Path;

use proptest::test_runner::Config as ProptestConfig;

/// A transcript of `tests/data`, as the text of its file.
pub fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(path).expect("the file is part of the repository")
}

/// Whether a checkpoint holds a decision of the stage elide.
pub fn elided(checkpoint: &str) -> bool {
    let json: serde_json::Value = serde_json::from_str(checkpoint).expect("JSON");
    let mut rows = json["parts"].as_array().into_iter().flatten();
    rows.any(|row| row[2].as_str().expect("a decision").starts_with('e'))
}

/// The messages of a JSON array, each as JSON text.
pub fn messages(json: &str) -> Vec<String> {
    let values: Vec<Box<serde_json::value::RawValue>> =
        serde_json::from_str(json).expect("an array");
    values.iter().map(|value| value.get().to_owned()).collect()
}

/// So many random cases, unless `PROPTEST_CASES` says how many.
pub fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { usual };
    ProptestConfig { cases, ..config }
}

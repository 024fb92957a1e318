//! OpenAI Responses: the invariants over random items, and what reasoning needs.

mod common;

use common::openai_responses::{kind, problems, unbound};
use common::openai_responses_random::transcript;
use common::walk::{Rules, Setting, setting, walk};
use proptest::prelude::*;
use serde_json::Value;

const RULES: Rules = Rules { format: "openai-responses", problems, keeps_signed, plain_input };

/// What is encrypted stands in the view as in the transcript or not at all, and nothing in the
/// view lacks the reasoning it needs.
fn keeps_signed(sent: &[String], view: &[String]) -> bool {
    let parse = |items: &[String]| -> Vec<Value> {
        items.iter().map(|item| serde_json::from_str(item).unwrap()).collect()
    };
    // Half an emoji is no JSON for other readers.
    let sent_values: Vec<_> = sent.iter().map(|item| item.replace("\\ud83d", "?")).collect();
    let (sent_values, view_values) = (parse(&sent_values), parse(view));
    let whole = view.iter().zip(&view_values).all(|(text, item)| {
        !matches!(kind(item), "reasoning" | "compaction") || sent.contains(text)
    });
    whole && unbound(&view_values, &sent_values).is_empty()
}

/// The user speaks, and nothing in it has to be mended.
fn plain_input(item: &str) -> bool {
    item.contains("\"role\":\"user\"")
        && !item.contains("\\ud83d")
        && !item.contains("\"content\":\"\"")
}

/// Settings with the pipelines in which reasoning, media and copies leave by themselves.
fn settings() -> impl Strategy<Value = Setting> {
    let stages = prop::sample::select(vec![
        r#","stages":["reasoning"]"#,
        r#","stages":["dedupe","media","reasoning","clear"]"#,
        r#","stages":["reasoning","summarize","drop","elide"]"#,
    ]);
    (setting(), prop::option::of(stages)).prop_map(|(mut setting, stages)| {
        setting.stages = stages.unwrap_or(setting.stages);
        setting
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in settings()) {
        walk(&all, &setting, &RULES)?;
    }
}

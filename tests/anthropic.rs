//! Anthropic Messages: the invariants over random transcripts.

mod common;

use common::anthropic::{keeps_signed, problems};
use common::anthropic_random::transcript;
use common::walk::{Rules, setting, walk};
use proptest::prelude::*;

const RULES: Rules = Rules { format: "anthropic", problems, keeps_signed, plain_input };

/// The user speaks, and nothing in it has to be mended.
fn plain_input(message: &str) -> bool {
    message.contains("\"role\":\"user\"")
        && !message.contains("tool_result")
        && !message.contains("\\ud83d")
        && !message.contains("\"text\":\"\"")
        && !message.contains("\"text\":\" \\n\"")
        && !message.contains("\"content\":[]")
        && !message.contains("\"content\":\"\"")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_turn_by_turn(all in transcript(), setting in setting()) {
        walk(&all, &setting, &RULES)?;
    }
}

//! Every real transcript of `tests/data`, turn by turn, at many windows.

mod common;

use common::host::{Host, Mood};
use common::{data, messages, openai_chat};

const FILES: [&str; 3] = ["small.json", "mid.json", "large.json"];

/// Replays the turns of a transcript: each assistant message was one model call.
fn replay(file: &str, window: u32, extra: &str, mood: Mood) {
    let all = messages(&data(file));
    let mut host = Host::new(&format!("{{\"window\":{window}{extra}}}"));
    host.mood = mood;
    let mut last = String::new();
    for end in 1..=all.len() {
        let next_is_call = end == all.len() || all[end].contains("\"role\":\"assistant\"");
        if !next_is_call {
            continue;
        }
        let outcome = host.turn(&all[..end]);
        let place = format!("{file} at {window}, {end} messages, {:?}", outcome.reason);
        assert_eq!(openai_chat::problems(&host.view()), Vec::<String>::new(), "{place}");
        assert_eq!(outcome.fits, outcome.tokens_after <= outcome.usable.unwrap(), "{place}");
        let view = host.engine.render_json();
        if !outcome.compacted && outcome.repairs.is_empty() && !last.is_empty() {
            assert!(view.starts_with(&last[..last.len() - 1]), "{place}: prefix");
        }
        if window >= 8_000 {
            assert!(outcome.fits, "{place}: {} of {:?}", outcome.tokens_after, outcome.usable);
        }
        let again = host.turn(&all[..end]);
        assert!(!again.compacted, "{place}: {:?}", again.decisions);
        assert_eq!(host.engine.render_json(), view, "{place}: planned twice");
        last = view;
    }
    let mut restored =
        Host::restore(&format!("{{\"window\":{window}{extra}}}"), &host.engine.checkpoint());
    restored.ingest(&all);
    assert_eq!(restored.engine.render_json(), last, "{file} at {window}: restored");
}

#[test]
fn real_transcripts_with_the_local_summarizer() {
    for file in FILES {
        for window in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 200_000] {
            replay(file, window, "", Mood::Good);
        }
    }
}

#[test]
fn real_transcripts_with_a_summarizer_of_any_mood() {
    use Mood::{Blank, Echo, Good, NoSections, Throws, ToolCall, Verbose};
    for mood in [Good, Blank, Verbose, Echo, Throws, ToolCall, NoSections] {
        replay("mid.json", 12_000, ",\"summarizer\":true,\"store\":true", mood);
    }
}

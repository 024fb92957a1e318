//! The presets: options under a name, and nothing more. Options that the host gives win over them.

use crate::error::Error;
use crate::options::{Options, invalid};

/// Each name with what it stands for, as a host would write it.
pub(crate) const PRESETS: [(&str, &str); 10] = [
    // Early and deep, so that bursts are few and each call reads a small view: on recorded sessions
    // a third cheaper than `late` with no less in sight (`npm --prefix js run bench:peers`). Cheapest
    // first: what is lossless or comes back goes before messages are folded into a summary.
    (
        "default",
        r#"{"compactAt":0.55,"compactTo":0.2,"tail":0.1,"minBurst":0.5,
            "stages":["dedupe","offload","clear","reasoning","media","summarize","drop","elide"]}"#,
    ),
    // Old results become markers at half of the window; a summary at 80 %.
    (
        "two-tier",
        r#"{"compactAt":0.8,"stages":[
            {"stage":"clear","at":0.5,"keepLast":6,"clearAtLeast":0.05},
            "summarize","drop","elide"]}"#,
    ),
    // Late and shallow: as much of the window as possible stays verbatim, at the price of every call.
    (
        "late",
        r#"{"compactAt":0.85,"compactTo":0.6,"tail":0.2,
            "stages":["dedupe","offload","clear","reasoning","media","summarize","drop","elide"]}"#,
    ),
    // The oldest messages leave, half of the view at a time.
    ("truncate", r#"{"compactTo":0.4,"stages":[{"stage":"drop","at":0.85},"elide"]}"#),
    // The newest messages that fit: the oldest leave a little at a time.
    (
        "sliding",
        r#"{"compactAt":0.95,"compactTo":0.8,"stages":[{"stage":"drop","at":0.95},"elide"]}"#,
    ),
    // Only results of tools become smaller, down to head and tail, then to markers.
    (
        "prune",
        r#"{"stages":["dedupe",
            {"stage":"offload","minTokens":150,"previewTokens":75},
            "clear","drop","elide"]}"#,
    ),
    // The units that say the least for their size leave, wherever they stand.
    ("smart", r#"{"stages":["dedupe","offload","reasoning","media","smart","drop","elide"]}"#),
    // The oldest messages are folded into a summary by the local summarizer, without any model.
    ("summarize", r#"{"summary":{"maxCalls":0},"stages":["summarize","drop","elide"]}"#),
    // The same by the host's summarizer.
    ("llm-summarize", r#"{"stages":["summarize","drop","elide"]}"#),
    // For people who talk rather than agents that work: tool output goes first, then a summary.
    (
        "conversation",
        r#"{"tail":0.3,"summary":{"template":"conversation"},"stages":["dedupe",
            {"stage":"clear","keepLast":1},"reasoning","media","summarize","drop","elide"]}"#,
    ),
];

/// Fills in what the preset says and the host does not.
pub(crate) fn apply(mut options: Options) -> Result<Options, Error> {
    let name = options.preset.as_deref().unwrap_or("default");
    let Some((_, json)) = PRESETS.iter().find(|(known, _)| *known == name) else {
        let names = PRESETS.map(|(known, _)| known).join(", ");
        return Err(invalid("options.preset", &["one of ", &*names].concat()));
    };
    let preset = Options::from_json(json)?;
    // A target belongs to its trigger: that of the preset must not cross one of the host's.
    if options.compact_at.is_none() {
        options.compact_to = options.compact_to.or(preset.compact_to);
    }
    options.compact_at = options.compact_at.or(preset.compact_at);
    options.tail = options.tail.or(preset.tail);
    options.min_burst = options.min_burst.or(preset.min_burst);
    options.stages = options.stages.or(preset.stages);
    if options.summary.sections.is_none() {
        options.summary.template = options.summary.template.or(preset.summary.template);
    }
    options.summary.max_calls = options.summary.max_calls.or(preset.summary.max_calls);
    Ok(options)
}

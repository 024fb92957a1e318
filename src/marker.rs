//! Cache markers: where they stand in messages, and which of them a request may keep.
//!
//! A provider takes so many of them in instructions, tools and messages together, and refuses or
//! overlooks the others. Those of the oldest messages are worth least: what stands before the newest
//! is cached with it.

use crate::format::Format;
use crate::json::Value;
use crate::transcript::Step;

/// Most markers that a request may carry.
pub(crate) const MOST: u32 = 4;

/// A place in the conversation's markers: message, and which of its own.
pub(crate) type Mark = (u32, u32);

/// Which markers the view keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// First one of the leading system messages, and first one of the body.
    pub from: [Mark; 2],
    /// The summary gets one of its own.
    pub own: bool,
}

impl Kept {
    pub(crate) fn holds(&self, mark: Mark, lead: u32) -> bool {
        mark >= self.from[usize::from(mark.0 >= lead)]
    }
}

/// The places of the value's own markers: several name the same one to different providers.
fn own(holder: Value<'_>, under: &[Step]) -> Vec<Vec<Step>> {
    let mut out = Vec::new();
    let mut add = |value: Option<Value<'_>>, path: &[Step]| {
        if value.is_some_and(|value| !value.is_null()) {
            out.push([under, path].concat());
        }
    };
    add(holder.get("cache_control"), &[Step::Key("cache_control")]);
    if let Some(options) = holder.get(OPTIONS) {
        for (provider, name) in BY_PROVIDER {
            let value = options.get(provider).and_then(|own| own.get(name));
            add(value, &[Step::Key(OPTIONS), Step::Key(provider), Step::Key(name)]);
        }
    }
    out
}

/// How many of these values, the tools or the instructions of a request, have a marker.
pub(crate) fn count(values: Value<'_>) -> u32 {
    let members = values.members().map(|(_, value)| value);
    let all = members.chain(values.items()).chain([values]);
    all.filter(|value| !own(*value, &[]).is_empty()).count() as u32
}

/// The markers of a message in order, each with all its places; none where the format has none.
pub(crate) fn of(format: &dyn Format, message: Value<'_>) -> Vec<Vec<Vec<Step>>> {
    let mut out = Vec::new();
    if format.marker().is_none() {
        return out;
    }
    let mut last = Vec::new();
    for (block, at) in message.get("content").into_iter().flat_map(|list| list.items()).zip(0u32..)
    {
        let here = [Step::Key("content"), Step::Index(at)];
        let inside = block.get("content").into_iter().flat_map(|list| list.items());
        for (inner, at) in inside.zip(0u32..) {
            out.push(own(inner, &[here[0], here[1], here[0], Step::Index(at)]));
        }
        out.push(std::mem::replace(&mut last, own(block, &here)));
    }
    // One of the whole message is that of its last block.
    last.extend(own(message, &[]));
    out.push(last);
    out.retain(|places| !places.is_empty());
    out
}

const OPTIONS: &str = "providerOptions";

/// Options of the AI SDK's providers that mark.
const BY_PROVIDER: [(&str, &str); 5] = [
    ("anthropic", "cacheControl"),
    ("anthropic", "cache_control"),
    ("bedrock", "cachePoint"),
    ("openrouter", "cacheControl"),
    ("openaiCompatible", "cache_control"),
];

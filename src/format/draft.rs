//! A message while it is read: what the readers of all formats share.

use std::borrow::Cow;
use std::hash::Hasher;

use super::{Fault, Reading};
use crate::count;
use crate::json::{Kind, Value, mended};
use crate::transcript::{Flaw, Message, Part, PartKind, Role, Shape, Step, hasher};

pub(crate) struct Draft<'j> {
    pub parts: Vec<Part>,
    /// Hashes of the decoded values of the parts, zero for results.
    hashes: Vec<u64>,
    /// Offset of the message in the text that is being read.
    base: usize,
    pub reading: Reading,
    /// The role, or what the format has in its place, as the host spelled it.
    pub role_name: Cow<'j, str>,
    /// Name of the speaker.
    pub name: Cow<'j, str>,
    /// Something that a provider takes as content was read.
    pub has_content: bool,
    /// The message stands and falls with the next one.
    pub glued: bool,
    /// The message stands and falls with the one before it.
    pub joins: bool,
    /// It must stay in the view whatever else leaves.
    pub stays: bool,
    /// The provider's own compaction of everything before it.
    pub compaction: bool,
}

impl<'j> Draft<'j> {
    pub(super) fn new(value: Value<'j>, reading: Reading) -> Draft<'j> {
        Draft {
            parts: Vec::new(),
            hashes: Vec::new(),
            base: value.span().start,
            reading,
            role_name: Cow::Borrowed(""),
            name: Cow::Borrowed(""),
            has_content: false,
            glued: false,
            joins: false,
            stays: false,
            compaction: false,
        }
    }

    /// Adds a part whose content is the decoded string at `path`, or the JSON of another value.
    pub(super) fn add(&mut self, kind: PartKind, path: &[Step], value: Value<'_>) -> &mut Part {
        let text = value.string().unwrap_or(Cow::Borrowed(value.raw()));
        let hash = match kind {
            // The content of a result is no part of the spine, and may be large.
            PartKind::Result => 0,
            _ => self.hash(&text),
        };
        self.has_content |= kind == PartKind::Text && !text.is_empty();
        self.push(kind, path, value, count::text(&text), hash)
    }

    /// Adds a text among other content blocks, where providers refuse an empty one.
    pub(super) fn list_text(&mut self, path: &[Step], value: Value<'_>) -> &mut Part {
        let part = self.add(PartKind::Text, path, value);
        if part.end - part.start == 2 {
            part.flaw = Some(Flaw::EmptyText);
        }
        part
    }

    /// Adds a content block that is counted and kept as it is.
    pub(super) fn opaque(&mut self, path: &[Step], block: Value<'_>) -> &mut Part {
        self.has_content = true;
        let hash = self.block_hash(block);
        self.push(PartKind::Opaque, path, block, count::text(block.raw()), hash)
    }

    /// Adds an image or a file, whose payload does not count as text.
    pub(super) fn media(&mut self, kind: PartKind, path: &[Step], block: Value<'_>) -> &mut Part {
        self.has_content = true;
        let hash = self.block_hash(block);
        let part = self.push(kind, path, block, self.reading.image_tokens, hash);
        part.media = true;
        part.shape = Shape::TextBlock;
        part
    }

    /// Adds a result: a string, or a list of blocks that is one value and replaced as a whole.
    pub(super) fn result(&mut self, path: &[Step], value: Value<'_>) -> Result<&mut Part, Fault> {
        self.has_content = true;
        if value.kind() != Kind::Array {
            return Ok(self.add(PartKind::Result, path, value));
        }
        let mut tokens = 0;
        let mut media = false;
        for (item, index) in value.items().zip(0u32..) {
            let text = match item.kind() {
                Kind::String => Some(item),
                Kind::Object => item.get("text").filter(|text| text.kind() == Kind::String),
                _ => return Err(Fault::new("an object with a type").at(index)),
            };
            match text.and_then(|text| text.string()) {
                Some(text) => tokens = count::text(&text).saturating_add(tokens),
                None => {
                    tokens = self.reading.image_tokens.saturating_add(tokens);
                    media = true;
                }
            }
        }
        let part = self.push(PartKind::Result, path, value, tokens, 0);
        part.media = media;
        Ok(part)
    }

    /// Adds a call: its arguments at `path`, its name and id, and `framing` tokens around them.
    pub(super) fn call(
        &mut self,
        path: &[Step],
        arguments: Value<'_>,
        name: &str,
        id: &str,
        framing: u32,
    ) -> &mut Part {
        self.has_content = true;
        let part = self.add(PartKind::Call, path, arguments);
        part.frame(count::text(name) + count::text(id) + framing);
        part.name = name.into();
        part.id = id.into();
        part
    }

    /// Adds the whole message as one part of so many tokens, which no text can stand in for.
    pub(super) fn whole(&mut self, kind: PartKind, value: Value<'_>, tokens: u32) -> &mut Part {
        self.has_content = true;
        let hash = self.hash(value.raw());
        let part = self.push(kind, &[], value, tokens, hash);
        part.shape = Shape::Fixed;
        part
    }

    /// The same, its JSON counted as text.
    pub(super) fn counted(&mut self, kind: PartKind, value: Value<'_>) -> &mut Part {
        self.whole(kind, value, count::text(value.raw()))
    }

    pub(super) fn push(
        &mut self,
        kind: PartKind,
        path: &[Step],
        value: Value<'_>,
        tokens: u32,
        hash: u64,
    ) -> &mut Part {
        let span = value.span();
        self.hashes.push(hash);
        self.parts.push(Part {
            kind,
            path: path.into(),
            block: path.len().min(2) as u8,
            shape: Shape::String,
            start: (span.start - self.base) as u32,
            end: (span.end - self.base) as u32,
            id: "".into(),
            name: "".into(),
            tokens,
            framing: 0,
            media: false,
            signed: false,
            flaw: mended(value.raw()).map(|_| Flaw::LoneSurrogate),
            alias: "".into(),
            link: None,
        });
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Hash of a content block without its cache marker, which hosts move from turn to turn.
    fn block_hash(&self, block: Value<'_>) -> u64 {
        if block.kind() != Kind::Object {
            return self.hash(block.raw());
        }
        let mut hash = hasher(self.reading.key);
        for (name, member) in block.members().filter(|(name, _)| name != "cache_control") {
            hash.write(name.as_bytes());
            hash.write(member.raw().as_bytes());
        }
        hash.finish()
    }

    fn hash(&self, text: &str) -> u64 {
        let mut hash = hasher(self.reading.key);
        hash.write(text.as_bytes());
        hash.finish()
    }

    pub(super) fn message(self, role: Role, raw: &str) -> Message {
        let mut message = Message {
            role,
            parts: self.parts,
            raw: raw.into(),
            tokens: count::MESSAGE_FRAMING + count::text(&self.name),
            empty: !self.has_content && !matches!(role, Role::Tool | Role::Other),
            glued: self.glued,
            joins: self.joins,
            stays: self.stays,
            pinned: self.stays,
            compaction: self.compaction,
            thought: None,
            spine: 0,
            chain: 0,
        };
        let mut spine = hasher(self.reading.key);
        let mut write = |text: &str, hash: u64| {
            spine.write(text.as_bytes());
            spine.write_u8(0xFF); // no byte of UTF-8: the texts stay apart
            spine.write_u64(hash);
        };
        write(&self.role_name, 0);
        write(&self.name, 0);
        for (part, hash) in message.parts.iter().zip(self.hashes) {
            message.tokens = message.tokens.saturating_add(part.tokens);
            write(&part.id, part.kind as u64);
            write(&part.name, hash);
            if part.kind == PartKind::Result {
                message.tokens = message.tokens.saturating_add(count::text(&part.id));
            }
        }
        message.spine = spine.finish();
        message
    }
}

/// A member that must be a string.
pub(super) fn text(value: Option<Value<'_>>) -> Result<Cow<'_, str>, Fault> {
    value.and_then(|value| value.string()).ok_or_else(|| Fault::new("a string"))
}

//! A message while it is read: what the readers of all formats share.

use std::borrow::Cow;
use std::hash::Hasher;

use super::{Fault, Reading};
use crate::count;
use crate::count::media::Payload;
use crate::json::{Kind, Value, mended, write_string};
use crate::transcript::{Flaw, Message, Part, PartKind, Role, Shape, Step, hasher};

pub(crate) struct Draft<'j> {
    pub parts: Vec<Part>,
    /// Hashes of the decoded values of the parts, zero for results.
    hashes: Vec<u64>,
    /// Offset of the message in the text that is being read.
    base: usize,
    pub reading: Reading<'j>,
    /// The role, or what the format has in its place, as the host spelled it.
    pub role_name: Cow<'j, str>,
    /// Name of the speaker.
    pub name: Cow<'j, str>,
    /// Something that a provider takes as content was read.
    pub has_content: bool,
    /// It holds requests for approval, or responses to them.
    pub asks: bool,
    /// Id of the message itself, where none may stand twice.
    pub item: Box<str>,
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
    pub(super) fn new(value: Value<'j>, reading: Reading<'j>) -> Draft<'j> {
        Draft {
            parts: Vec::new(),
            hashes: Vec::new(),
            base: value.span().start,
            reading,
            role_name: Cow::Borrowed(""),
            name: Cow::Borrowed(""),
            has_content: false,
            asks: false,
            item: "".into(),
            glued: false,
            joins: false,
            stays: false,
            compaction: false,
        }
    }

    /// Estimated tokens of a name or an id.
    pub(super) fn tokens(&self, text: &str) -> u32 {
        self.reading.family.text(text)
    }

    /// Tokens of a value: of the text that a string stands for, or of its JSON.
    fn value_tokens(&self, value: Value<'_>) -> u32 {
        let family = self.reading.family;
        if let (Some(inside), None) = (value.inside(), self.reading.exact) {
            return family.escaped(inside); // decoding would cost as much as counting
        }
        let text = value.string().unwrap_or(Cow::Borrowed(value.raw()));
        let exact = self.reading.exact.and_then(|count| count(&text));
        exact.unwrap_or_else(|| family.text(&text))
    }

    /// Adds a part whose content is the decoded string at `path`, or the JSON of another value.
    pub(super) fn add(&mut self, kind: PartKind, path: &[Step], value: Value<'_>) -> &mut Part {
        let hash = match kind {
            // The content of a result is no part of the spine, and may be large.
            PartKind::Result => 0,
            _ => self.value_hash(value),
        };
        self.has_content |= kind == PartKind::Text && value.span().len() > 2;
        self.push(kind, path, value, self.value_tokens(value), hash)
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
        self.push(PartKind::Opaque, path, block, self.value_tokens(block), hash)
    }

    /// Adds an image or a file, whose payload does not count as text.
    pub(super) fn media(&mut self, kind: PartKind, path: &[Step], block: Value<'_>) -> &mut Part {
        self.has_content = true;
        let hash = self.block_hash(block);
        let part = self.push(kind, path, block, self.media_tokens(kind, block), hash);
        part.media = true;
        part.shape = Shape::TextBlock;
        part
    }

    /// What an image, a file or audio costs, by its real size where its payload tells.
    fn media_tokens(&self, kind: PartKind, block: Value<'_>) -> u32 {
        let reading = &self.reading;
        let raw = block.raw();
        let low = raw.len() < LONGEST_URL && raw.contains("\"low\"");
        let payload = Payload::of_text(block.longest_string());
        let size = payload.and_then(Payload::image_size);
        if kind == PartKind::Image || size.is_some() {
            return reading.image.tokens(size, low, reading.image_tokens);
        }
        if let Some(pages) = payload.and_then(Payload::pdf_pages) {
            return reading.family.page_tokens().saturating_mul(pages);
        }
        if let Some(length) = payload.and_then(Payload::audio_milliseconds) {
            return reading.family.audio_tokens(length);
        }
        let head = raw.get(..raw.len().min(200)).unwrap_or_default();
        if head.contains("audio") { reading.audio_tokens } else { reading.file_tokens }
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
            let price = match text {
                Some(text) => self.value_tokens(text),
                None => {
                    media = true;
                    self.media_tokens(PartKind::Image, item)
                }
            };
            tokens = price.saturating_add(tokens);
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
        let framing = self.tokens(name) + self.tokens(id) + framing;
        let part = self.add(PartKind::Call, path, arguments);
        part.frame(framing);
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
        self.whole(kind, value, self.value_tokens(value))
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
            failed: false,
            signed: false,
            flaw: value.usual().map_or_else(|| mended(value.raw()), |_| None).map(|_| LONE),
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

    /// Hash of a value, the same however its strings are spelled.
    fn value_hash(&self, value: Value<'_>) -> u64 {
        if let Some(inside) = value.usual() {
            return self.hash(inside);
        }
        let Some(text) = value.string() else { return self.hash(value.raw()) };
        let mut usual = String::with_capacity(text.len() + 2);
        write_string(&mut usual, &text);
        self.hash(&usual[1..usual.len() - 1])
    }

    fn hash(&self, text: &str) -> u64 {
        let mut hash = hasher(self.reading.key);
        hash.write(text.as_bytes());
        hash.finish()
    }

    pub(super) fn message(mut self, role: Role, raw: &str) -> Message {
        let mut message = Message {
            role,
            parts: std::mem::take(&mut self.parts),
            raw: raw.into(),
            tokens: count::MESSAGE_FRAMING + self.tokens(&self.name),
            empty: !self.has_content && !matches!(role, Role::Tool | Role::Other),
            glued: self.glued,
            joins: self.joins,
            stays: self.stays,
            pinned: self.stays,
            compaction: self.compaction,
            markers: 0,
            asks: self.asks,
            item: std::mem::take(&mut self.item),
            twin: false,
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
        for (part, hash) in message.parts.iter().zip(&self.hashes) {
            message.tokens = message.tokens.saturating_add(part.tokens);
            write(&part.id, part.kind as u64);
            write(&part.name, *hash);
            if part.kind == PartKind::Result {
                message.tokens = message.tokens.saturating_add(self.tokens(&part.id));
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

const LONE: Flaw = Flaw::LoneSurrogate;

/// A block up to this many bytes holds a URL and no payload.
const LONGEST_URL: usize = 4096;

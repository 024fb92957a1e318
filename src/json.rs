//! A borrowing JSON reader that keeps the span of every value.
//!
//! Edits are later spliced into the caller's own bytes, so the reader must say where each value
//! stands; and transcripts hold lone surrogates (`"\ud83d"`), which other readers refuse.

use std::borrow::Cow;
use std::ops::Range;

/// Deepest nesting accepted. Real transcripts stay below 30; the limit bounds our own recursion.
const MAX_DEPTH: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// How a string literal is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    None,
    /// As `JSON.stringify` spells quotes, backslashes, line breaks and the like.
    Usual,
    /// With code units or slashes, which have other spellings.
    Unusual,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    escapes: Escapes,
    start: u32,
    end: u32,
    /// Index of the first node after this one's subtree.
    next: u32,
}

/// Where and why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Byte offset into the text.
    pub at: usize,
    pub what: &'static str,
}

/// A parsed text: a flat list of nodes in document order.
#[derive(Debug)]
pub(crate) struct Json<'a> {
    src: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Json<'a> {
    pub(crate) fn parse(src: &'a str) -> Result<Json<'a>, Fault> {
        let (json, end) = Json::parse_first(src)?;
        let rest = &src[end..];
        match rest.trim_start_matches([' ', '\n', '\r', '\t']) {
            "" => Ok(json),
            more => {
                Err(Fault { at: src.len() - more.len(), what: "text after the end of the value" })
            }
        }
    }

    /// Reads the value that the text begins with; says where it ends.
    pub(crate) fn parse_first(src: &'a str) -> Result<(Json<'a>, usize), Fault> {
        if src.len() > u32::MAX as usize / 2 {
            return Err(Fault { at: 0, what: "text over 2 GiB" });
        }
        let mut reader = Reader { src: src.as_bytes(), at: 0, nodes: Vec::new() };
        reader.value()?;
        Ok((Json { src, nodes: reader.nodes }, reader.at))
    }

    pub(crate) fn root(&self) -> Value<'_> {
        Value { src: self.src, nodes: &self.nodes, at: 0 }
    }
}

/// One value of a parsed text.
#[derive(Clone, Copy)]
pub(crate) struct Value<'j> {
    src: &'j str,
    nodes: &'j [Node],
    at: usize,
}

impl<'j> Value<'j> {
    #[inline(always)]
    fn node(&self) -> Node {
        self.nodes[self.at]
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> Kind {
        self.node().kind
    }

    pub(crate) fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// Byte range of the value in the text, quotes and brackets included.
    #[inline(always)]
    pub(crate) fn span(&self) -> Range<usize> {
        let node = self.node();
        node.start as usize..node.end as usize
    }

    pub(crate) fn raw(&self) -> &'j str {
        &self.src[self.span()]
    }

    /// The decoded string, borrowed where it holds no escape. Lone surrogates become U+FFFD.
    pub(crate) fn string(&self) -> Option<Cow<'j, str>> {
        let inside = self.inside()?;
        Some(match self.node().escapes {
            Escapes::None => Cow::Borrowed(inside),
            _ => Cow::Owned(unescape(inside)),
        })
    }

    /// The inside of a string literal as `JSON.stringify` would spell it, borrowed; none of other
    /// values and spellings.
    pub(crate) fn usual(&self) -> Option<&'j str> {
        self.inside().filter(|_| self.node().escapes != Escapes::Unusual)
    }

    /// The inside of a string literal as it is spelled.
    #[inline(always)]
    pub(crate) fn inside(&self) -> Option<&'j str> {
        let node = self.node();
        let is = node.kind == Kind::String;
        is.then(|| &self.src[node.start as usize + 1..node.end as usize - 1])
    }

    /// The inside of the longest string literal in the value.
    pub(crate) fn longest_string(&self) -> &'j str {
        let end = (self.node().next as usize).max(self.at + 1);
        let strings = self.nodes[self.at..end].iter().filter(|node| node.kind == Kind::String);
        let longest = strings.max_by_key(|node| node.end - node.start);
        longest.map_or("", |node| &self.src[node.start as usize + 1..node.end as usize - 1])
    }

    pub(crate) fn number(&self) -> Option<f64> {
        (self.kind() == Kind::Number).then(|| number(self.raw()))
    }

    /// A whole number of 32 bits, written without point or exponent.
    pub(crate) fn count(&self) -> Option<u32> {
        (self.kind() == Kind::Number).then(|| self.raw().parse().ok()).flatten()
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == "true")
    }

    fn children(&self) -> Children<'j> {
        let node = self.node();
        let end = match node.kind {
            Kind::Array | Kind::Object => node.next as usize,
            _ => self.at + 1,
        };
        Children { src: self.src, nodes: self.nodes, at: self.at + 1, end }
    }

    /// Elements of an array; nothing for other kinds.
    pub(crate) fn items(&self) -> Children<'j> {
        let mut children = self.children();
        if self.kind() != Kind::Array {
            children.end = children.at;
        }
        children
    }

    /// Members of an object in text order; nothing for other kinds.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Cow<'j, str>, Value<'j>)> + use<'j> {
        let mut children = self.children();
        if self.kind() != Kind::Object {
            children.end = children.at;
        }
        std::iter::from_fn(move || {
            let key = children.next()?.string()?;
            Some((key, children.next()?))
        })
    }

    /// The last member of that name, as `JSON.parse` would have it.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'j>> {
        let node = self.node();
        let mut found = None;
        let mut at = self.at + 1;
        // Readers ask for many names: this is the path that all of them take.
        while node.kind == Kind::Object && at < node.next as usize {
            let key = Value { at, ..*self };
            let value = Value { at: at + 1, ..*self };
            let same = match key.usual() {
                Some(inside) if key.node().escapes == Escapes::None => inside == name,
                _ => key.string().is_some_and(|key| key == name),
            };
            if same {
                found = Some(value);
            }
            at = value.node().next as usize;
        }
        found
    }
}

pub(crate) struct Children<'j> {
    src: &'j str,
    nodes: &'j [Node],
    at: usize,
    end: usize,
}

impl<'j> Iterator for Children<'j> {
    type Item = Value<'j>;

    fn next(&mut self) -> Option<Value<'j>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value { src: self.src, nodes: self.nodes, at: self.at };
        self.at = value.node().next as usize;
        Some(value)
    }
}

/// Decodes the inside of a string literal that the reader has accepted. Lone surrogates become
/// U+FFFD.
pub(crate) fn unescape(inner: &str) -> String {
    let bytes = inner.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    loop {
        let at = from + plain(&bytes[from..]);
        out.extend_from_slice(&bytes[from..at]);
        let (Some(b'\\'), Some(code)) = (bytes.get(at), bytes.get(at + 1)) else { break };
        from = at + 2;
        out.push(match code {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let high = hex4(inner, at + 2);
                from = (at + 6).min(bytes.len());
                let mut scalar = char::from_u32(high);
                if (0xD800..0xDC00).contains(&high) && bytes[from..].starts_with(b"\\u") {
                    let low = hex4(inner, from + 2);
                    if (0xDC00..0xE000).contains(&low) {
                        scalar = char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
                        from += 6;
                    }
                }
                let scalar = scalar.unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => *other, // one of " \ /
        });
    }
    // Whole characters of a str and encoded scalars: always UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// The JSON of a value with U+FFFD in place of lone surrogates; none where it has none.
pub(crate) fn mended(raw: &str) -> Option<String> {
    let bytes = raw.as_bytes();
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while let Some(step) = raw.get(at..).and_then(|rest| rest.find('\\')) {
        at += step;
        let unit = |at: usize| match bytes.get(at..at + 2) {
            Some(b"\\u") => hex4(raw, at + 2),
            _ => 0,
        };
        at += match (unit(at), unit(at + 6)) {
            (0xD800..0xDC00, 0xDC00..0xE000) => 12,
            (0xD800..0xE000, _) => {
                out.push_str(raw.get(from..at).unwrap_or_default());
                out.push(char::REPLACEMENT_CHARACTER);
                from = at + 6;
                6
            }
            _ => 2,
        };
    }
    if from == 0 {
        return None;
    }
    out.push_str(raw.get(from..).unwrap_or_default());
    Some(out)
}

/// The place of the first quote, backslash or control character, or the length.
fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    // Eight bytes at a time while none is special.
    for chunk in bytes.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ LOW.wrapping_mul(b'"' as u64);
        let slash = word ^ LOW.wrapping_mul(b'\\' as u64);
        let found = quote.wrapping_sub(LOW) & !quote
            | slash.wrapping_sub(LOW) & !slash
            | word.wrapping_sub(LOW * 0x20) & !word;
        let found = found & (LOW << 7);
        if found != 0 {
            // The lowest mark is exact; a borrow can only make false ones above it.
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1F)) {
        at += 1;
    }
    at
}

/// Value of a number literal, exact where its digits fit 2^53 and its exponent 22, else the
/// nearest of few; the standard parser would take a tenth of the whole wasm.
fn number(literal: &str) -> f64 {
    let (digits, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let mut exponent: i32 = exponent.trim_start_matches('+').parse().unwrap_or(i32::MAX);
    let mut mantissa = 0.0;
    let mut point = false;
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10.0 + f64::from(byte - b'0');
                exponent = exponent.saturating_sub(i32::from(point));
            }
            b'.' => point = true,
            _ => {}
        }
    }
    let scale = 10f64.powi(exponent.clamp(-400, 400).abs());
    let value = if exponent < 0 { mantissa / scale } else { mantissa * scale };
    if literal.starts_with('-') { -value } else { value }
}

fn hex4(text: &str, at: usize) -> u32 {
    text.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}

/// Appends `text` as a JSON string literal, spelled as `JSON.stringify` would.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = from + plain(&bytes[from..]);
        out.push_str(&text[from..at]);
        let Some(byte) = bytes.get(at) else { break };
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.extend(['\\', *byte as char]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(HEX[usize::from(byte >> 4)] as char);
                out.push(HEX[usize::from(byte & 15)] as char);
            }
        }
    }
    out.push('"');
}

struct Reader<'a> {
    src: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
}

impl Reader<'_> {
    fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault { at: self.at, what })
    }

    #[inline(always)]
    fn peek(&self) -> u8 {
        self.src.get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// Iterative, so that hostile nesting cannot exhaust the stack.
    fn value(&mut self) -> Result<(), Fault> {
        let mut open: Vec<usize> = Vec::new();
        loop {
            // A value (in an object, with its key before it).
            self.space();
            if let Some(&parent) = open.last()
                && self.nodes[parent].kind == Kind::Object
            {
                if self.peek() != b'"' {
                    return self.fault("expected a member name in double quotes");
                }
                self.string()?;
                self.space();
                if self.peek() != b':' {
                    return self.fault("expected ':' after the member name");
                }
                self.at += 1;
                self.space();
            }
            match self.peek() {
                b'{' | b'[' => {
                    if open.len() >= MAX_DEPTH {
                        return self.fault("nested deeper than 512 levels");
                    }
                    let object = self.peek() == b'{';
                    let kind = if object { Kind::Object } else { Kind::Array };
                    open.push(self.nodes.len());
                    self.push(kind, self.at, Escapes::None);
                    self.at += 1;
                    self.space();
                    if self.peek() != if object { b'}' } else { b']' } {
                        continue;
                    }
                    self.close(&mut open);
                }
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal("true", Kind::Bool)?,
                b'f' => self.literal("false", Kind::Bool)?,
                b'n' => self.literal("null", Kind::Null)?,
                _ => return self.fault("expected a value"),
            }
            // What may follow a value.
            loop {
                let Some(&parent) = open.last() else { return Ok(()) };
                self.space();
                let object = self.nodes[parent].kind == Kind::Object;
                match (self.peek(), object) {
                    (b',', _) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => self.close(&mut open),
                    (_, true) => return self.fault("expected ',' or '}'"),
                    (_, false) => return self.fault("expected ',' or ']'"),
                }
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, kind: Kind, start: usize, escapes: Escapes) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, escapes, start: start as u32, end: self.at as u32, next });
    }

    fn close(&mut self, open: &mut Vec<usize>) {
        self.at += 1;
        if let Some(index) = open.pop() {
            let next = self.nodes.len() as u32;
            self.nodes[index].end = self.at as u32;
            self.nodes[index].next = next;
        }
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut escapes = Escapes::None;
        self.at += 1;
        loop {
            self.at += plain(&self.src[self.at..]);
            match self.src.get(self.at) {
                None => return self.fault("unterminated string"),
                Some(b'"') => {
                    self.at += 1;
                    self.push(Kind::String, start, escapes);
                    return Ok(());
                }
                Some(b'\\') => {
                    if escapes == Escapes::None {
                        escapes = Escapes::Usual;
                    }
                    match self.src.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                        Some(b'/') => {
                            escapes = Escapes::Unusual;
                            self.at += 2;
                        }
                        Some(b'u') => {
                            let digits = self.src.get(self.at + 2..self.at + 6);
                            if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                                return self.fault("expected four hexadecimal digits after \\u");
                            }
                            escapes = Escapes::Unusual;
                            self.at += 6;
                        }
                        _ => return self.fault("unknown escape in a string"),
                    }
                }
                Some(0..=0x1F) => return self.fault("control character in a string"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else if !self.digits() {
            return self.fault("expected a digit");
        }
        if self.peek() == b'.' {
            self.at += 1;
            if !self.digits() {
                return self.fault("expected a digit after '.'");
            }
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.digits() {
                return self.fault("expected a digit in the exponent");
            }
        }
        self.push(Kind::Number, start, Escapes::None);
        Ok(())
    }

    fn literal(&mut self, word: &str, kind: Kind) -> Result<(), Fault> {
        let start = self.at;
        if !self.src[start..].starts_with(word.as_bytes()) {
            return self.fault("expected a value");
        }
        self.at += word.len();
        self.push(kind, start, Escapes::None);
        Ok(())
    }
}

/// 0x01 in every byte.
const LOW: u64 = u64::from_le_bytes([1; 8]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_strings() {
        let text = r#" {"a": [1, "x\n\ud83d\ude00\ud83d", {"b":null}], "a": true} "#;
        let json = Json::parse(text).unwrap();
        let root = json.root();
        assert_eq!(root.get("a").unwrap().boolean(), Some(true));
        let first = root.members().next().unwrap().1;
        let items: Vec<_> = first.items().collect();
        assert_eq!(items.len(), 3);
        assert_eq!(items[1].string().unwrap(), "x\n\u{1F600}\u{FFFD}");
        assert_eq!(items[2].raw(), r#"{"b":null}"#);
        assert!(items[2].get("b").unwrap().is_null());
    }

    #[test]
    fn faults_name_the_place() {
        for (text, at) in [
            ("", 0),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("[1 2]", 3),
            ("\"abc", 4),
            ("\"\\x\"", 1),
            ("01", 1),
            ("[tru]", 1),
            ("{,}", 1),
            ("[\"a\u{1}\"]", 3),
            ("nullx", 4),
        ] {
            assert_eq!(Json::parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn agrees_with_serde_json_on_valid_text() {
        for text in ["-0.5e+10", "[]", "{}", "\"\\u00e9\\/\"", "[[],[{}],{\"k\":[false]}]"] {
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
            let json = Json::parse(text).unwrap();
            assert_eq!(json.root().raw(), text);
        }
    }

    #[test]
    fn numbers_of_options_are_exact() {
        for text in ["0", "-0", "0.85", "0.6", "128000", "1e3", "2.5E-1", "-7.125", "16384.5"] {
            assert_eq!(number(text).to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(number("1e999"), f64::INFINITY);
        assert_eq!(number("1e-999"), 0.0);
    }

    #[test]
    fn lone_surrogates_are_mended_in_place() {
        assert_eq!(mended(r#"{"a":"\\ud83d \ud83d\ude00 \n","\\ud83d":1}"#), None);
        assert_eq!(
            mended(r#"{"a":"\ud83d","b":["\ude00\ud83d\ude00\ud83d\ud83dx"]}"#).unwrap(),
            "{\"a\":\"\u{FFFD}\",\"b\":[\"\u{FFFD}\\ud83d\\ude00\u{FFFD}\u{FFFD}x\"]}"
        );
    }

    #[test]
    fn writes_what_it_reads() {
        let text = "a\"b\\c\n\u{1}\u{1f}é😀";
        let mut out = String::new();
        write_string(&mut out, text);
        assert_eq!(out, serde_json::to_string(text).unwrap());
        assert_eq!(Json::parse(&out).unwrap().root().string().unwrap(), text);
    }
}

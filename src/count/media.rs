//! What images, documents and audio cost, by the rules that vendors publish.
//!
//! Their real sizes are read from the first bytes of the payload, wherever it stands: as bytes, in
//! base64, in a data URL. What cannot be read has a flat price, which options may replace.

use super::Family;

/// Tokens of an image whose size is not known: what Anthropic counts for its largest.
pub(crate) const IMAGE: u32 = 1_600;
/// Tokens of a file that cannot be read, about that of a page.
pub(crate) const FILE: u32 = 2_250;
/// Tokens of audio whose duration is not known: a minute of Gemini's.
pub(crate) const AUDIO: u32 = 1_920;

// ---- payloads -----------------------------------------------------------------------

/// The bytes of a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    Bytes(&'a [u8]),
    /// Standard or URL-safe, without line breaks.
    Base64(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// The payload of a base64 data URL, or of bare base64.
    pub(crate) fn of_text(text: &'a str) -> Option<Payload<'a>> {
        let bytes = text.as_bytes();
        if !bytes.starts_with(b"data:") {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
            return bytes.first_chunk::<16>()?.iter().all(plain).then_some(Payload::Base64(bytes));
        }
        let comma = bytes.iter().position(|byte| *byte == b',')?;
        bytes[..comma].ends_with(b";base64").then_some(Payload::Base64(&bytes[comma + 1..]))
    }

    /// How many bytes there are.
    pub(crate) fn length(self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Base64(text) => {
                let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
                (text.len() - padding) * 3 / 4
            }
        }
    }

    /// The byte at that place.
    fn get(self, at: usize) -> Option<u8> {
        match self {
            Payload::Bytes(bytes) => bytes.get(at).copied(),
            Payload::Base64(text) => {
                let first = at / 3 * 4 + at % 3;
                let pair = sextet(*text.get(first)?)? << 6 | sextet(*text.get(first + 1)?)?;
                Some((pair >> (4 - at % 3 * 2)) as u8)
            }
        }
    }

    /// So many bytes there as a number, the highest first.
    fn number(self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes).try_fold(0, |number, at| Some(number << 8 | u32::from(self.get(at)?)))
    }

    /// The same, the lowest first.
    fn little(self, at: usize, bytes: usize) -> Option<u32> {
        (at..at + bytes)
            .rev()
            .try_fold(0, |number, at| Some(number << 8 | u32::from(self.get(at)?)))
    }

    fn has(self, at: usize, wanted: &[u8]) -> bool {
        wanted.iter().zip(at..).all(|(byte, at)| self.get(at) == Some(*byte))
    }

    /// Width and height in pixels of a PNG, JPEG, GIF or WebP.
    pub(crate) fn image_size(self) -> Option<(u32, u32)> {
        let size = if self.has(0, b"\x89PNG\r\n\x1A\n") {
            (self.number(16, 4)?, self.number(20, 4)?)
        } else if self.has(0, b"GIF8") {
            (self.little(6, 2)?, self.little(8, 2)?)
        } else if self.has(0, b"RIFF") && self.has(8, b"WEBP") {
            self.webp_size()?
        } else if self.has(0, b"\xFF\xD8") {
            self.jpeg_size()?
        } else {
            return None;
        };
        (size.0 > 0 && size.1 > 0).then_some(size)
    }

    fn webp_size(self) -> Option<(u32, u32)> {
        match self.get(15)? {
            b'X' => Some((self.little(24, 3)? + 1, self.little(27, 3)? + 1)),
            b'L' => {
                let bits = self.little(21, 4)?;
                Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
            }
            _ => Some((self.little(26, 2)? & 0x3FFF, self.little(28, 2)? & 0x3FFF)),
        }
    }

    /// Jumps from segment to segment until one begins a frame.
    fn jpeg_size(self) -> Option<(u32, u32)> {
        let mut at = 2;
        loop {
            let marker = match (self.get(at)?, self.get(at + 1)?) {
                (0xFF, 0xFF) => {
                    at += 1; // padding
                    continue;
                }
                (0xFF, marker) => marker,
                _ => return None,
            };
            if matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
                return Some((self.number(at + 7, 2)?, self.number(at + 5, 2)?));
            }
            at += 2 + self.number(at + 2, 2)?.max(2) as usize;
        }
    }

    /// Pages of a PDF that does not pack its objects, or that says at its start how many it has.
    pub(crate) fn pdf_pages(self) -> Option<u32> {
        if !self.has(0, b"%PDF") {
            return None;
        }
        let mut pages = 0;
        let mut said = None;
        let mut at = 0;
        // Every name of a PDF's dictionaries begins with a slash.
        while let Some(byte) = self.get(at) {
            at += 1;
            if byte != b'/' {
                continue;
            }
            let after = |name: &[u8]| {
                let end = at + name.len();
                let space = |at: &usize| matches!(self.get(*at), Some(b' ' | b'\r' | b'\n'));
                self.has(at, name).then(|| end + (end..).take_while(space).take(8).count())
            };
            if let Some(value) = after(b"Type") {
                // Not `/Pages`.
                let name_ends = !self.get(value + 5).is_some_and(|byte| byte.is_ascii_alphabetic());
                pages += u32::from(self.has(value, b"/Page") && name_ends);
            } else if at < 1_024
                && let Some(value) = after(b"N")
            {
                let digit = |at| self.get(at).filter(u8::is_ascii_digit);
                let digits = (value..value + 6).map_while(digit);
                said =
                    digits.map(|digit| u32::from(digit - b'0')).reduce(|n, digit| n * 10 + digit);
            }
        }
        Some(pages).filter(|pages| *pages > 0).or(said)
    }

    /// Duration of a WAV in milliseconds.
    pub(crate) fn audio_milliseconds(self) -> Option<u32> {
        if !(self.has(0, b"RIFF") && self.has(8, b"WAVE")) {
            return None;
        }
        let mut at = 12;
        let mut rate = 0;
        loop {
            let size = self.little(at + 4, 4)?;
            if self.has(at, b"fmt ") {
                rate = self.little(at + 16, 4)?;
            } else if self.has(at, b"data") {
                // Recorders that stream leave the size open.
                let bytes = (size as usize).min(self.length().saturating_sub(at + 8)) as u64;
                return u32::try_from((bytes * 1_000).checked_div(rate.into())?).ok();
            }
            at = at.checked_add(8 + size as usize + size as usize % 2)?;
        }
    }
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

// ---- prices -------------------------------------------------------------------------

/// How a model's vendor prices an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ImagePrice {
    /// OpenAI: tokens for the image, and for each tile of 512 pixels after it was scaled into
    /// 2,048 and its shorter side to 768. At low detail the first alone.
    Tiles { base: u32, tile: u32 },
    /// OpenAI's small models: hundredths of a token for each patch of 32 pixels, 1,536 at most.
    Patches { hundredths: u32 },
    /// Anthropic: a token for 750 pixels, of an image scaled to 1,568 a side and 1,600 tokens.
    Area,
    /// Google: 258 for each square whose side is two thirds of the shorter side.
    Squares,
    /// The same for every image.
    Flat,
}

/// Prices by how a model id begins. The first that fits.
/// <https://platform.openai.com/docs/guides/images-vision#calculating-costs>
const IMAGE_PRICES: [(&str, ImagePrice); 15] = [
    ("gpt-4o-mini", ImagePrice::Tiles { base: 2_833, tile: 5_667 }),
    ("gpt-4.1-mini", ImagePrice::Patches { hundredths: 162 }),
    ("gpt-4.1-nano", ImagePrice::Patches { hundredths: 246 }),
    ("gpt-5-mini", ImagePrice::Patches { hundredths: 162 }),
    ("gpt-5-nano", ImagePrice::Patches { hundredths: 246 }),
    ("gpt-5", ImagePrice::Tiles { base: 70, tile: 140 }),
    ("o4-mini", ImagePrice::Patches { hundredths: 172 }),
    ("o1", ImagePrice::Tiles { base: 75, tile: 150 }),
    ("o3", ImagePrice::Tiles { base: 75, tile: 150 }),
    ("computer-use", ImagePrice::Tiles { base: 65, tile: 129 }),
    ("gpt-", ImagePrice::Tiles { base: 85, tile: 170 }),
    ("chatgpt", ImagePrice::Tiles { base: 85, tile: 170 }),
    ("claude", ImagePrice::Area),
    ("gemini", ImagePrice::Squares),
    ("llama", ImagePrice::Flat),
];

impl ImagePrice {
    /// The price that holds for a model, or else for its family.
    pub(crate) fn of(model: &str, family: Family) -> ImagePrice {
        super::by_model(&IMAGE_PRICES, model).unwrap_or(match family {
            Family::O200k | Family::Cl100k => ImagePrice::Tiles { base: 85, tile: 170 },
            Family::Claude => ImagePrice::Area,
            Family::Gemini => ImagePrice::Squares,
            Family::Llama3 | Family::Bytes => ImagePrice::Flat,
        })
    }

    /// Tokens of an image of that width and height; `flat` where the size is not known. `low` is
    /// OpenAI's `detail: "low"`.
    pub(crate) fn tokens(self, size: Option<(u32, u32)>, low: bool, flat: u32) -> u32 {
        if let (ImagePrice::Tiles { base, .. }, true) = (self, low) {
            return base;
        }
        let Some((width, height)) = size else { return flat };
        let (mut width, mut height) = (f64::from(width), f64::from(height));
        let mut shrink = |factor: f64| {
            let factor = factor.min(1.0);
            (width, height) = (width * factor, height * factor);
            (width, height)
        };
        match self {
            ImagePrice::Flat => flat,
            ImagePrice::Tiles { base, tile } => {
                let (width, height) = shrink(1.0);
                let (width, height) = shrink(2_048.0 / width.max(height));
                let (width, height) = shrink(768.0 / width.min(height));
                base + tile * (pieces(width, 512.0) * pieces(height, 512.0))
            }
            ImagePrice::Patches { hundredths } => {
                let (width, height) =
                    if low { shrink(512.0 / width.max(height)) } else { shrink(1.0) };
                let mut patches = pieces(width, 32.0) * pieces(height, 32.0);
                if patches > 1_536 {
                    let factor = (1_536.0 * 1_024.0 / (width * height)).sqrt();
                    let (wide, high) = (width * factor / 32.0, height * factor / 32.0);
                    let fit = (wide.floor() / wide).min(high.floor() / high);
                    patches = pieces(wide * fit, 1.0) * pieces(high * fit, 1.0);
                }
                (patches.min(1_536) * hundredths).div_ceil(100)
            }
            ImagePrice::Area => {
                let (width, height) = shrink(1_568.0 / width.max(height));
                (width * height / 750.0).ceil().min(1_600.0) as u32
            }
            ImagePrice::Squares if width <= 384.0 && height <= 384.0 => 258,
            ImagePrice::Squares => {
                let side = (width.min(height) / 1.5).floor().clamp(256.0, 768.0);
                258 * pieces(width, side).saturating_mul(pieces(height, side)).min(1 << 20)
            }
        }
    }
}

/// How many pieces of a size cover a length; a hair's breadth over is rounding.
fn pieces(length: f64, size: f64) -> u32 {
    (length / size - 1e-9).ceil().max(1.0) as u32
}

impl Family {
    /// Tokens of a page of a PDF: Google prices it as an image; Anthropic says 1,500 to 3,000 for
    /// its text and more for its image; OpenAI counts both without a published figure.
    pub(crate) fn page_tokens(self) -> u32 {
        if self == Family::Gemini { 258 } else { FILE }
    }

    /// Tokens of so many milliseconds of audio: 32 a second with Google, 10 with OpenAI.
    pub(crate) fn audio_tokens(self, milliseconds: u32) -> u32 {
        let by_second: u64 = if self == Family::Gemini { 32 } else { 10 };
        u32::try_from((u64::from(milliseconds) * by_second).div_ceil(1_000)).unwrap_or(u32::MAX)
    }
}

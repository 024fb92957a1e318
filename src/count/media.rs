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
    #[cfg(test)]
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
            #[cfg(test)]
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
            #[cfg(test)]
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

pub(crate) fn sextet(byte: u8) -> Option<u32> {
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
        let (width, height) = (f64::from(width), f64::from(height));
        let shrunk = |width: f64, height: f64, factor: f64| {
            let factor = factor.min(1.0);
            (width * factor, height * factor)
        };
        match self {
            ImagePrice::Flat => flat,
            ImagePrice::Tiles { base, tile } => {
                let (width, height) = shrunk(width, height, 2_048.0 / width.max(height));
                let (width, height) = shrunk(width, height, 768.0 / width.min(height));
                base + tile * (pieces(width, 512.0) * pieces(height, 512.0))
            }
            ImagePrice::Patches { hundredths } => {
                let longest = if low { 512.0 } else { f64::MAX };
                let (width, height) = shrunk(width, height, longest / width.max(height));
                let mut patches = pieces(width, 32.0).saturating_mul(pieces(height, 32.0));
                if patches > 1_536 {
                    let factor = (1_536.0 * 1_024.0 / (width * height)).sqrt();
                    let (wide, high) = (width * factor / 32.0, height * factor / 32.0);
                    let fit = (wide.floor() / wide).min(high.floor() / high);
                    patches = pieces(wide * fit, 1.0) * pieces(high * fit, 1.0);
                }
                (patches.min(1_536) * hundredths).div_ceil(100)
            }
            ImagePrice::Area => {
                let (width, height) = shrunk(width, height, 1_568.0 / width.max(height));
                (width * height / 750.0).ceil().min(1_600.0) as u32
            }
            ImagePrice::Squares if width <= 384.0 && height <= 384.0 => 258,
            ImagePrice::Squares => {
                let side = (width.min(height) / 1.5).floor().clamp(256.0, 768.0);
                pieces(width, side).saturating_mul(pieces(height, side)).saturating_mul(258)
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

#[cfg(test)]
mod tests {
    use super::*;

    // Images of 37 by 21 pixels, as Pillow writes them; their ends are left out.
    const IMAGES: [(&str, &str); 6] = [
        ("PNG", "iVBORw0KGgoAAAANSUhEUgAAACUAAAAVCAIAAABOhrD5AAAAJklE"),
        ("GIF", "R0lGODdhJQAVAIEAAMgeHgAAAAAAAAAAACwAAAAAJQAVAEAI"),
        ("WebP", "UklGRkIAAABXRUJQVlA4IDYAAAAwAwCdASolABUAP3G202G0ryqm"),
        ("WebP without loss", "UklGRh4AAABXRUJQVlA4TBEAAAAvJAAFAAdQjyLXo/+BiOh/AAA="),
        ("WebP with Exif", "UklGRqQBAABXRUJQVlA4WAoAAAAIAAAAJAAAFAAAVlA4IDYAAAAwAwCd"),
        (
            "progressive JPEG with Exif",
            "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAwRXhpZgAATU0AKgAAAAgAAQEOAAIAAAANAAAAGgAAAAB4eHh4\
             eHh4eHh4eHgAAP/bAEMAUDc8RjwyUEZBRlpVUF94yIJ4bm549a+5kcj/////////////////////////\
             ///////////////////////////bAEMBVVpaeGl464KC6///////////////////////////////////\
             ///////////////////////////////////////CABEIABUAJQMBIg==",
        ),
    ];

    fn bytes(base64: &str) -> Vec<u8> {
        let payload = Payload::Base64(base64.as_bytes());
        (0..payload.length()).map(|at| payload.get(at).unwrap()).collect()
    }

    #[test]
    fn sizes_are_read_from_bytes_base64_and_data_urls() {
        for (name, base64) in IMAGES {
            let url = format!("data:image/x;base64,{base64}");
            for payload in [Payload::of_text(base64), Payload::of_text(&url)] {
                assert_eq!(payload.unwrap().image_size(), Some((37, 21)), "{name}");
            }
            let bytes = bytes(base64);
            assert_eq!(Payload::Bytes(&bytes).image_size(), Some((37, 21)), "{name}");
            for end in 0..bytes.len() {
                // Cut anywhere it is read whole, or not at all.
                let size = Payload::Bytes(&bytes[..end]).image_size();
                assert!(size.is_none_or(|size| size == (37, 21)), "{name} cut at {end}: {size:?}");
            }
        }
    }

    #[test]
    fn what_is_no_image_has_no_size() {
        assert!(Payload::of_text("https://example.com/a.png").is_none());
        assert!(Payload::of_text("data:image/svg+xml,<svg/>").is_none());
        assert!(Payload::of_text("data:image/png").is_none());
        for text in [
            "",
            "data:;base64,",
            "data:;base64,iVBORw0K",
            "data:;base64,!!!!",
            "/9j//////////////////w==",
        ] {
            assert_eq!(Payload::of_text(text).and_then(Payload::image_size), None, "{text}");
        }
    }

    #[test]
    fn pages_of_a_pdf_are_counted_or_read_from_its_head() {
        let plain = b"%PDF-1.3\n3 0 obj <</Type /Page\n>>\n4 0 obj <</Type/Page/Parent 5 0 R>>\n\
            5 0 obj <</Count 2 /Kids [ 3 0 R 4 0 R ] /Type /Pages>>\n";
        assert_eq!(Payload::Bytes(plain).pdf_pages(), Some(2));
        let linear = b"%PDF-1.5\n5 0 obj\n<</Linearized 1/L 99/O 7/E 9/N 12/T 3/H [ 4 1]>>\nendobj";
        assert_eq!(Payload::Bytes(linear).pdf_pages(), Some(12));
        assert_eq!(Payload::Bytes(b"%PDF-1.5\npacked").pdf_pages(), None);
        assert_eq!(Payload::Bytes(b"/Type/Page").pdf_pages(), None);
    }

    #[test]
    fn a_wav_lasts_as_long_as_its_data() {
        // 1,200 samples at 800 a second.
        let head = "UklGRtQEAABXQVZFZm10IBAAAAABAAEAIAMAACADAAABAAgAZGF0YbAEAACA";
        let mut wav = bytes(head);
        wav.resize(44 + 1_200, 0x80);
        assert_eq!(Payload::Bytes(&wav).audio_milliseconds(), Some(1_500));
        wav[40..44].fill(0xFF); // a stream
        assert_eq!(Payload::Bytes(&wav).audio_milliseconds(), Some(1_500));
        wav[28..32].fill(0);
        assert_eq!(Payload::Bytes(&wav).audio_milliseconds(), None);
    }

    #[test]
    fn images_cost_what_the_vendors_say() {
        let price = |model: &str, width, height| {
            ImagePrice::of(model, Family::O200k).tokens(Some((width, height)), false, IMAGE)
        };
        // https://platform.openai.com/docs/guides/images-vision#calculating-costs
        assert_eq!(price("gpt-4o", 1_024, 1_024), 765);
        assert_eq!(price("gpt-4o", 2_048, 4_096), 1_105);
        assert_eq!(price("gpt-4o", 512, 512), 255);
        assert_eq!(price("openai/gpt-4o-mini", 1_024, 1_024), 2_833 + 4 * 5_667);
        assert_eq!(price("gpt-4.1-mini", 1_024, 1_024), 1_659); // 1,024 patches of 1.62
        assert_eq!(price("o4-mini", 1_800, 2_400), 2_498); // scaled to 33 by 44 patches of 1.72
        let low = ImagePrice::of("gpt-4o", Family::O200k);
        assert_eq!(low.tokens(Some((4_096, 4_096)), true, IMAGE), 85);
        assert_eq!(low.tokens(None, true, IMAGE), 85);
        // https://docs.claude.com/en/docs/build-with-claude/vision
        assert_eq!(price("claude-sonnet-4-5", 200, 200), 54);
        assert_eq!(price("claude-sonnet-4-5", 1_000, 1_000), 1_334);
        assert_eq!(price("claude-sonnet-4-5", 8_000, 8_000), 1_600);
        // https://ai.google.dev/gemini-api/docs/image-understanding
        assert_eq!(price("gemini-2.5-pro", 384, 384), 258);
        assert_eq!(price("gemini-2.5-pro", 960, 540), 6 * 258);
        // Others have a flat price, and so has what cannot be read.
        assert_eq!(ImagePrice::of("mistral", Family::Llama3).tokens(Some((9, 9)), false, 700), 700);
        assert_eq!(ImagePrice::of("x", Family::Claude).tokens(None, false, 700), 700);
        for model in ["gpt-4o", "gpt-5-mini", "claude", "gemini"] {
            for (width, height) in [(1, 1), (1, u32::MAX), (u32::MAX, u32::MAX), (40, 60_000)] {
                assert!(price(model, width, height) > 0);
            }
        }
    }

    #[test]
    fn audio_and_pages_cost_what_the_vendors_say() {
        assert_eq!(Family::Gemini.audio_tokens(1_500), 48);
        assert_eq!(Family::O200k.audio_tokens(1_500), 15);
        assert_eq!(Family::Gemini.page_tokens(), 258);
    }
}

//! Token estimates from one pass over the text, by classes of characters.
//!
//! BPE tables are megabytes; the classes below carry most of what makes a text dear or cheap.
//! Rates are tokens per character of o200k, rounded up to lean to the safe side.

/// Estimated tokens of a text.
pub(crate) fn text(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let mut hundredths: u64 = 0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        match CLASS[usize::from(byte)] {
            Class::Lower | Class::Upper => {
                // A word, split where the case rises: `parseHttpHeader` is three.
                let mut shifts = 0;
                let mut last = CLASS[usize::from(byte)];
                let mut next;
                loop {
                    at += 1;
                    next = bytes.get(at).map_or(Class::Mark, |byte| CLASS[usize::from(*byte)]);
                    match next {
                        Class::Lower => {}
                        Class::Upper => shifts += u64::from(last == Class::Lower),
                        _ => break,
                    }
                    last = next;
                }
                let length = (at - start) as u64;
                let upper = length > 1 && bytes[start + 1].is_ascii_uppercase();
                let after_digit = start > 0 && bytes[start - 1].is_ascii_digit();
                hundredths += if next == Class::Digit || after_digit {
                    // Part of an id, a hash or base64: few letters make a token.
                    (length * 55).max(70)
                } else if upper {
                    100 + length.saturating_sub(3) * 30
                } else {
                    105 + shifts * 75 + length.saturating_sub(7) * 14
                };
            }
            Class::Digit => {
                while at < bytes.len() && bytes[at].is_ascii_digit() {
                    at += 1;
                }
                hundredths += ((at - start) as u64).div_ceil(3) * 100;
            }
            Class::Space => {
                while at < bytes.len() && bytes[at] == b' ' {
                    at += 1;
                }
                // One space joins the word after it.
                hundredths += if at - start == 1 { 4 } else { 85 };
            }
            Class::Line => {
                while at < bytes.len() && matches!(bytes[at], b'\n' | b'\r' | b'\t') {
                    at += 1;
                }
                hundredths += 70;
            }
            Class::Mark => {
                let mut same = true;
                while at < bytes.len() && CLASS[usize::from(bytes[at])] == Class::Mark {
                    same &= bytes[at] == byte;
                    at += 1;
                }
                let length = (at - start) as u64;
                hundredths += match length {
                    1 => 80,
                    _ if same => 100 + length / 16 * 100,
                    _ => 60 + length * 32,
                };
            }
            Class::Wide => {
                // Safe: a class of a lead byte is met only at a character boundary.
                let scalar = text[at..].chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
                at += scalar.len_utf8();
                hundredths += u64::from(rate(scalar as u32));
            }
        }
    }
    u32::try_from(hundredths.div_ceil(100)).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Line,
    Mark,
    Wide,
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' => Class::Space,
            b'\n' | b'\r' | b'\t' => Class::Line,
            0x80.. => Class::Wide,
            _ => Class::Mark,
        };
        byte += 1;
    }
    table
};

/// Hundredths of a token per character, by script.
fn rate(scalar: u32) -> u32 {
    match scalar {
        0x80..=0x24F => 65,                      // Latin with diacritics
        0x370..=0x3FF => 42,                     // Greek
        0x400..=0x52F => 28,                     // Cyrillic
        0x590..=0x5FF => 50,                     // Hebrew
        0x600..=0x77F => 40,                     // Arabic
        0x900..=0xDFF => 38,                     // Devanagari and the other Indic scripts
        0xE00..=0xEFF => 45,                     // Thai, Lao
        0x1100..=0x11FF | 0xAC00..=0xD7AF => 58, // hangul
        0x200D => 100,                           // zero-width joiner
        0x2000..=0x2BFF => 90,                   // punctuation, arrows, box drawing, symbols
        0x3000..=0x303F => 80,                   // CJK punctuation
        0x3040..=0x30FF => 68,                   // kana
        0x3400..=0x9FFF => 78,                   // Han
        0xFE00..=0xFE0F => 100,
        0xFF00..=0xFFEF => 90,
        0x1F000.. => 220, // emoji
        _ => 120,
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn classes_cost_what_they_should() {
        assert_eq!(text(""), 0);
        assert!((8..=12).contains(&text("The quick brown fox jumps over the lazy dog.")));
        assert!(text("3fa85f64-5717-4562-b3fc-2c963f66afa6") >= 18);
        assert!((100..=180).contains(&text(&"汉字".repeat(80))));
        assert!(text(&" ".repeat(1000)) < 10);
    }
}

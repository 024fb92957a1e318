//! Token estimates from one pass over the text, by classes of characters.
//!
//! BPE tables are megabytes; what makes a text dear or cheap is carried by some thirty amounts:
//! words and their length, changes of case, digit groups, runs of spaces, line breaks and marks,
//! and characters by script. One weight each turns them into tokens.
//!
//! The weights were fitted by non-negative least squares to the o200k counts of some 3,400 excerpts
//! of agent transcripts, code, logs, data and prose in a dozen languages, and raised by 3 % to
//! lean to the safe side. Calibration by reported usage does the rest.

/// Tokens around each message: role and delimiters. OpenAI's cookbook counts 3 and one for the
/// role on the models since gpt-3.5-turbo-0613.
pub(crate) const MESSAGE_FRAMING: u32 = 4;

/// Estimated tokens of a text.
pub(crate) fn text(text: &str) -> u32 {
    let amounts = scan(text);
    let thousandths: u64 =
        amounts.iter().zip(WEIGHTS).map(|(amount, weight)| amount * weight).sum();
    u32::try_from(thousandths.div_ceil(1000)).unwrap_or(u32::MAX)
}

/// Amounts of a text, in the order of [`WEIGHTS`].
fn scan(text: &str) -> [u64; WEIGHTS.len()] {
    let bytes = text.as_bytes();
    let mut amounts = [0; WEIGHTS.len()];
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let before = start.checked_sub(1).map_or(Class::Line, |at| CLASS[usize::from(bytes[at])]);
        let class = CLASS[usize::from(bytes[at])];
        match class {
            Class::Lower | Class::Upper => {
                let mut shifts = 0;
                let mut last = class;
                let mut next;
                loop {
                    at += 1;
                    next = bytes.get(at).map_or(Class::Line, |byte| CLASS[usize::from(*byte)]);
                    match next {
                        Class::Lower => {}
                        Class::Upper => shifts += u64::from(last == Class::Lower),
                        _ => break,
                    }
                    last = next;
                }
                let length = (at - start) as u64;
                if next == Class::Digit || before == Class::Digit {
                    amounts[ID_RUN] += 1;
                    amounts[ID_LETTER] += length;
                } else if length > 1 && bytes[start + 1].is_ascii_uppercase() {
                    amounts[CAPITALS] += 1;
                    amounts[CAPITAL_LETTER] += length.saturating_sub(3);
                    amounts[SHIFT] += shifts;
                } else {
                    let joined = !matches!(before, Class::Space | Class::Line);
                    amounts[if joined { JOINED_WORD } else { WORD }] += 1;
                    amounts[LONG_WORD] += length.saturating_sub(7);
                    amounts[VERY_LONG_WORD] += length.saturating_sub(16);
                    amounts[SHIFT] += shifts;
                }
            }
            Class::Digit => {
                while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                    at += 1;
                }
                amounts[DIGITS] += ((at - start) as u64).div_ceil(3);
            }
            Class::Space => {
                while bytes.get(at) == Some(&b' ') {
                    at += 1;
                }
                let next = bytes.get(at).map_or(Class::Line, |byte| CLASS[usize::from(*byte)]);
                amounts[SPACES] += (at - start) as u64 / 80;
                amounts[match (at - start, before, next) {
                    (1, _, Class::Lower | Class::Upper | Class::Wide) => SPACE,
                    (1, _, Class::Digit) => SPACE_DIGIT,
                    (1, ..) => SPACE_MARK,
                    (_, Class::Line, _) => INDENT,
                    _ => SPACES,
                }] += 1;
            }
            Class::Line => {
                while bytes.get(at).is_some_and(|byte| matches!(byte, b'\n' | b'\r' | b'\t')) {
                    at += 1;
                }
                amounts[if before == Class::Mark { LINE_AFTER_MARK } else { LINE }] += 1;
                // A token holds a few line breaks, and no more.
                amounts[LINE] += (at - start - 1) as u64 / 8;
            }
            Class::Mark => {
                let mut same = true;
                while bytes.get(at).is_some_and(|byte| CLASS[usize::from(*byte)] == Class::Mark) {
                    same &= bytes[at] == bytes[start];
                    at += 1;
                }
                let length = (at - start) as u64;
                let next = bytes.get(at).map_or(Class::Line, |byte| CLASS[usize::from(*byte)]);
                let word = matches!(next, Class::Lower | Class::Upper);
                match length {
                    1 if word => amounts[MARK_WORD] += 1,
                    1 => amounts[MARK] += 1,
                    _ if same => {
                        amounts[SAME_MARKS] += 1;
                        amounts[SAME_MARK] += length / 8;
                    }
                    _ => {
                        amounts[MARKS] += 1;
                        amounts[MIXED_MARK] += length - 2;
                    }
                }
            }
            Class::Wide => {
                // A class of a lead byte is met only at a character boundary.
                let scalar = text[at..].chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
                at += scalar.len_utf8();
                amounts[script(scalar as u32)] += 1;
            }
        }
    }
    amounts
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
/// Classes of bytes.
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
/// The amount that a character beyond ASCII adds to.
fn script(scalar: u32) -> usize {
    match scalar {
        0x80..=0x24F | 0x1E00..=0x1EFF => LATIN,
        0x370..=0x3FF => GREEK,
        0x400..=0x52F => CYRILLIC,
        0x590..=0x5FF => HEBREW,
        0x600..=0x77F => ARABIC,
        0x900..=0xDFF => INDIC,
        0xE00..=0xEFF => THAI,
        0x10A0..=0x10FF => GEORGIAN,
        0x1200..=0x139F => ETHIOPIC,
        0x1100..=0x11FF | 0xAC00..=0xD7AF => HANGUL,
        0x200B..=0x200D | 0xFE00..=0xFE0F | 0x300..=0x36F => JOINER,
        0x2000..=0x2BFF => SYMBOL,
        0x3000..=0x303F => CJK_MARK,
        0x3040..=0x30FF => KANA,
        0x3400..=0x9FFF => HAN,
        0xFF00..=0xFFEF => FULL_WIDTH,
        0x1F000.. => EMOJI,
        _ => OTHER,
    }
}

/// Thousandths of a token for each amount.
const WEIGHTS: [u64; 41] = {
    let mut weights = [0; 41];
    weights[WORD] = 1002;
    weights[JOINED_WORD] = 965;
    weights[LONG_WORD] = 125;
    weights[VERY_LONG_WORD] = 300;
    weights[SHIFT] = 1033;
    weights[CAPITALS] = 1296;
    weights[CAPITAL_LETTER] = 93;
    weights[ID_RUN] = 134;
    weights[ID_LETTER] = 619;
    weights[DIGITS] = 1102;
    weights[SPACE] = 20;
    weights[SPACE_DIGIT] = 1165;
    weights[SPACE_MARK] = 317;
    weights[INDENT] = 930;
    weights[SPACES] = 1306;
    weights[LINE] = 1084;
    weights[LINE_AFTER_MARK] = 55;
    weights[MARK] = 1008;
    weights[MARK_WORD] = 292;
    weights[SAME_MARKS] = 1315;
    weights[SAME_MARK] = 213;
    weights[MARKS] = 1236;
    weights[MIXED_MARK] = 50;
    weights[LATIN] = 604;
    weights[GREEK] = 432;
    weights[CYRILLIC] = 330;
    weights[HEBREW] = 515;
    weights[ARABIC] = 412;
    weights[INDIC] = 392;
    weights[THAI] = 464;
    weights[HANGUL] = 767;
    weights[SYMBOL] = 538;
    weights[CJK_MARK] = 908;
    weights[KANA] = 771;
    weights[HAN] = 773;
    weights[JOINER] = 564;
    weights[FULL_WIDTH] = 1270;
    weights[EMOJI] = 2965;
    weights[GEORGIAN] = 370;
    weights[ETHIOPIC] = 1950;
    weights[OTHER] = 1500;
    weights
};

/// Words of up to seven letters after a space or a line break.
const WORD: usize = 0;
/// Words after anything else.
const JOINED_WORD: usize = 1;
/// Letters beyond the seventh of a word.
const LONG_WORD: usize = 2;
/// Letters beyond the sixteenth.
const VERY_LONG_WORD: usize = 3;
/// Rises of case inside a word: `parseHttpHeader` has two.
const SHIFT: usize = 4;
/// Words in capitals.
const CAPITALS: usize = 5;
/// Their letters beyond the third.
const CAPITAL_LETTER: usize = 6;
/// Letters beside digits: ids, hashes, base64.
const ID_RUN: usize = 7;
/// Their letters.
const ID_LETTER: usize = 8;
/// Groups of three digits.
const DIGITS: usize = 9;
/// Single spaces before a word, which join it.
const SPACE: usize = 10;
/// Single spaces before a digit.
const SPACE_DIGIT: usize = 11;
/// Single spaces before a mark.
const SPACE_MARK: usize = 12;
/// Runs of spaces at the start of a line.
const INDENT: usize = 13;
/// Other runs of spaces.
const SPACES: usize = 14;
/// Runs of line breaks and tabs.
const LINE: usize = 15;
/// The same after a mark, which they join.
const LINE_AFTER_MARK: usize = 16;
/// Single marks.
const MARK: usize = 17;
/// Single marks before a word, which often join it.
const MARK_WORD: usize = 18;
/// Runs of one mark.
const SAME_MARKS: usize = 19;
/// Every eight of such a run.
const SAME_MARK: usize = 20;
/// Runs of different marks.
const MARKS: usize = 21;
/// Their marks beyond the second.
const MIXED_MARK: usize = 22;
/// Latin with diacritics, by character.
const LATIN: usize = 23;
const GREEK: usize = 24;
const CYRILLIC: usize = 25;
const HEBREW: usize = 26;
const ARABIC: usize = 27;
/// Devanagari and the other scripts of India.
const INDIC: usize = 28;
/// Thai and Lao.
const THAI: usize = 29;
const HANGUL: usize = 30;
/// Punctuation, arrows, box drawing and the like beyond ASCII.
const SYMBOL: usize = 31;
const CJK_MARK: usize = 32;
const KANA: usize = 33;
const HAN: usize = 34;
/// Joiners, variation selectors, combining marks.
const JOINER: usize = 35;
const FULL_WIDTH: usize = 36;
const EMOJI: usize = 37;
const GEORGIAN: usize = 38;
const ETHIOPIC: usize = 39;
const OTHER: usize = 40;

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn classes_cost_what_they_should() {
        assert_eq!(text(""), 0);
        assert!((8..=12).contains(&text("The quick brown fox jumps over the lazy dog.")));
        assert!(text("3fa85f64-5717-4562-b3fc-2c963f66afa6") >= 18);
        assert!((100..=180).contains(&text(&"汉字".repeat(80))));
        assert!((8..25).contains(&text(&" ".repeat(1000))));
        assert!((100..200).contains(&text(&"\n".repeat(1000))));
    }
}

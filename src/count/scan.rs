//! One pass over a text: an automaton walks through its characters and adds up what each costs.
//!
//! The state says which run the scan is in, and how far: the fourth letter of a word after a space,
//! the second digit of a group, a letter among digits. A state has a weight. So has a pair of
//! neighbouring ASCII characters, which tells common words from rare ones, and so have characters
//! beyond ASCII and pairs of them, which tell common ones of a script from rare ones. Weights are
//! integers and only added: a text costs the same on every platform.

/// What the automaton distinguishes among ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Line,
    Tab,
    Mark,
}

impl Class {
    pub(super) const ALL: [Class; 7] = [
        Class::Lower,
        Class::Upper,
        Class::Digit,
        Class::Space,
        Class::Line,
        Class::Tab,
        Class::Mark,
    ];

    pub(super) const fn of(byte: u8) -> Class {
        match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' => Class::Space,
            b'\n' | b'\r' => Class::Line,
            b'\t' => Class::Tab,
            _ => Class::Mark,
        }
    }
}

// ---- states ---------------------------------------------------------------------
// Each run has as many states as places that matter; the last stands for all beyond it.

/// Line breaks; also the state before the text.
pub(super) const LINE: usize = 0;
pub(super) const TAB: usize = LINE + 3;
/// Spaces at the start of a line.
pub(super) const INDENT: usize = TAB + 2;
pub(super) const SPACE: usize = INDENT + 4;
/// The first mark after a letter or a digit.
pub(super) const MARK: usize = SPACE + 3;
pub(super) const SPACED_MARK: usize = MARK + 1;
/// Marks after marks.
pub(super) const MARKS: usize = SPACED_MARK + 1;
/// Digits: the first, then groups of three, since most tokenizers cut there.
pub(super) const DIGIT: usize = MARKS + 2;
/// Digits after a word.
pub(super) const JOINED_DIGIT: usize = DIGIT + 4;
/// Small letters of a word after a space.
pub(super) const WORD: usize = JOINED_DIGIT + 3;
/// Letters of a word after anything else.
pub(super) const JOINED: usize = WORD + 14;
/// Letters of a capitalized word after a space, the first small one in the second place.
pub(super) const TITLE: usize = JOINED + 14;
pub(super) const JOINED_TITLE: usize = TITLE + 10;
pub(super) const CAPITAL: usize = JOINED_TITLE + 10;
pub(super) const JOINED_CAPITAL: usize = CAPITAL + 6;
/// Letters from a rise of case on, as in `camelCase`.
pub(super) const RISE: usize = JOINED_CAPITAL + 6;
/// Letters whose case changes too often for words, as in base64.
pub(super) const MIXED_UPPER: usize = RISE + 10;
pub(super) const MIXED_LOWER: usize = MIXED_UPPER + 4;
/// Letters and digits after digits and letters: ids, hashes.
pub(super) const ID_LOWER: usize = MIXED_LOWER + 3;
pub(super) const ID_UPPER: usize = ID_LOWER + 5;
pub(super) const ID_DIGIT: usize = ID_UPPER + 5;
/// Letters after a letter with a diacritic.
pub(super) const ACCENTED: usize = ID_DIGIT + 4;
/// Two states for each script: the first character of a run, and the others.
pub(super) const WIDE: usize = ACCENTED + 8;
/// No states, but weighed like them: Han and hangul characters that the fitted texts do not have.
pub(super) const UNSEEN_HAN: usize = WIDE + 2 * SCRIPTS;
pub(super) const UNSEEN_HANGUL: usize = UNSEEN_HAN + 1;
pub(super) const STATES: usize = UNSEEN_HANGUL + 1;

/// The state after an ASCII character.
pub(super) fn step(state: usize, class: Class) -> usize {
    let next = |run: usize, length: usize| {
        (run..run + length).contains(&state).then(|| (state + 1).min(run + length - 1))
    };
    let latin = (WIDE..WIDE + 2 * LATIN_SCRIPTS).contains(&state);
    match class {
        Class::Line => next(LINE, 3).unwrap_or(LINE),
        Class::Tab => next(TAB, 2).unwrap_or(TAB),
        Class::Space => {
            let start = if state < INDENT { INDENT } else { SPACE };
            next(INDENT, 4).or(next(SPACE, 3)).unwrap_or(start)
        }
        Class::Mark => match state {
            MARK | SPACED_MARK => MARKS,
            MARKS..DIGIT => MARKS + 1,
            0..MARK => SPACED_MARK,
            _ => MARK,
        },
        Class::Digit => match state {
            0..DIGIT => DIGIT,
            DIGIT..JOINED_DIGIT => [1, 2, 3, 1][state - DIGIT] + DIGIT,
            JOINED_DIGIT..WORD => [1, 2, 0][state - JOINED_DIGIT] + JOINED_DIGIT,
            MIXED_UPPER..ID_DIGIT => ID_DIGIT,
            ID_DIGIT..ACCENTED => (state + 1).min(ACCENTED - 1),
            _ => JOINED_DIGIT,
        },
        Class::Lower => match state {
            0..MARK => WORD,
            MARK..DIGIT => JOINED,
            DIGIT..WORD | ID_UPPER..ACCENTED => ID_LOWER,
            CAPITAL => TITLE + 1,
            JOINED_CAPITAL => JOINED_TITLE + 1,
            _ if (CAPITAL..RISE).contains(&state) => RISE + 1,
            MIXED_UPPER..MIXED_LOWER => MIXED_LOWER,
            _ if latin => ACCENTED,
            _ => next(WORD, 14)
                .or(next(JOINED, 14))
                .or(next(TITLE, 10))
                .or(next(JOINED_TITLE, 10))
                .or(next(RISE, 10))
                .or(next(MIXED_LOWER, 3))
                .or(next(ID_LOWER, 5))
                .or(next(ACCENTED, 8))
                .unwrap_or(JOINED),
        },
        Class::Upper => match state {
            0..MARK => CAPITAL,
            DIGIT..WORD | ID_LOWER..ID_UPPER | ID_DIGIT..ACCENTED => ID_UPPER,
            // A word of two letters or less is no word.
            WORD..TITLE if (state - WORD) % 14 >= 2 => RISE,
            TITLE..CAPITAL if (state - TITLE) % 10 >= 2 => RISE,
            WORD..CAPITAL | MIXED_LOWER..ID_LOWER => MIXED_UPPER,
            RISE..MIXED_UPPER if state < RISE + 3 => MIXED_UPPER,
            RISE..MIXED_UPPER | ACCENTED..WIDE => RISE,
            _ => next(CAPITAL, 6)
                .or(next(JOINED_CAPITAL, 6))
                .or(next(MIXED_UPPER, 4))
                .or(next(ID_UPPER, 5))
                .unwrap_or(JOINED_CAPITAL),
        },
    }
}

/// The state after a character beyond ASCII.
pub(super) fn step_wide(state: usize, script: usize) -> usize {
    let first = WIDE + 2 * script;
    let goes_on = if script < LATIN_SCRIPTS {
        matches!(state, WORD..MIXED_LOWER | ACCENTED..WIDE)
            || (WIDE..WIDE + 2 * LATIN_SCRIPTS).contains(&state)
    } else {
        state & !1 == first
    };
    first + usize::from(goes_on)
}

// ---- scripts ----------------------------------------------------------------------

/// How many kinds of characters beyond ASCII are told apart.
pub(super) const SCRIPTS: usize = 40;
/// The first of them are letters of Latin words.
const LATIN_SCRIPTS: usize = 3;
const HANGUL: usize = 21;
const HAN: usize = 28;
/// A state's script is found by clearing its lowest bit.
const _: () = assert!(WIDE.is_multiple_of(2));

/// The script of a character beyond ASCII, by Unicode blocks.
pub(super) const fn script(scalar: u32) -> usize {
    match scalar {
        0x80..0x100 => 0,                                       // Latin-1
        0x100..0x250 => 1,                                      // Latin Extended
        0x1E00..0x1F00 => 2, // Latin Extended Additional: Vietnamese
        0x370..0x400 | 0x1F00..0x2000 => 3, // Greek
        0x400..0x530 => 4,   // Cyrillic
        0x530..0x590 => 5,   // Armenian
        0x590..0x600 => 6,   // Hebrew
        0x600..0x780 => 7,   // Arabic
        0x900..0x980 => 8,   // Devanagari
        0x980..0xA00 => 9,   // Bengali
        0xA00..0xB00 => 10,  // Gurmukhi, Gujarati
        0xB80..0xC00 => 11,  // Tamil
        0xC00..0xD80 => 12,  // Telugu, Kannada, Malayalam
        0xD80..0xE00 => 13,  // Sinhala
        0xE00..0xE80 => 14,  // Thai
        0xE80..0xF00 => 15,  // Lao
        0xF00..0x1000 => 16, // Tibetan
        0x1000..0x10A0 => 17, // Myanmar
        0x10A0..0x1100 => 18, // Georgian
        0x1200..0x1400 => 19, // Ethiopic
        0x1780..0x1800 => 20, // Khmer
        0x1100..0x1200 | 0xAC00..0xD7B0 => HANGUL, // Hangul
        0x300..0x370 => 22,  // combining marks
        0x2010..0x2100 => 23, // punctuation, currencies
        0x2100..0x2500 | 0x25A0..0x2600 | 0x2900..0x2E80 => 24, // arrows, mathematics, shapes
        0x2500..0x25A0 => 25, // box drawing
        0x3000..0x3040 => 26, // CJK punctuation
        0x3040..0x3100 => 27, // kana
        0x3400..0xA000 => HAN, // Han
        0xFF00..0xFFF0 => 29, // full-width forms
        0x2000..0x2010 | 0xFE00..0xFE10 => 30, // joiners, variation selectors
        0x1F1E6..0x1F200 => 31, // flags
        0x1F3FB..0x1F400 => 32, // skin tones
        0x1F600..0x1F680 => 33, // faces
        0x1F000..0x1F600 => 34, // pictures
        0x1F680..0x20000 => 35, // further pictures
        0x2600..0x2800 => 36, // dingbats
        0x2800..0x2900 => 37, // braille
        0x10000.. => 38,     // the other planes
        _ => 39,
    }
}

/// What a character of that script costs in addition when the fitted texts do not have it.
pub(super) const fn unseen(script: usize) -> Option<usize> {
    match script {
        HAN => Some(UNSEEN_HAN),
        HANGUL => Some(UNSEEN_HANGUL),
        _ => None,
    }
}

// ---- hashed neighbours --------------------------------------------------------------

/// Bits of the index of a pair of ASCII characters.
pub(super) const PAIR_BITS: u32 = 11;
/// Bits of the index of a character beyond ASCII, or of a pair of them.
pub(super) const WIDE_BITS: u32 = 10;

/// Number of an ASCII character among those whose pairs are told apart: letters without case, a
/// digit, white space, and marks; those that are rare share one.
pub(super) const fn symbol(byte: u8) -> usize {
    const MARKS: &[u8; 31] = b"\"'_-./,:;()[]{}<>=*#|\\`$&+@!?%~";
    match Class::of(byte) {
        Class::Lower => (byte - b'a') as usize,
        Class::Upper => (byte - b'A') as usize,
        Class::Digit => 26,
        Class::Space => 27,
        Class::Line => 28,
        Class::Tab => 29,
        Class::Mark => {
            let mut at = 0;
            while at < MARKS.len() && MARKS[at] != byte {
                at += 1;
            }
            30 + at
        }
    }
}

/// The symbol of every character beyond ASCII.
pub(super) const WIDE_SYMBOL: usize = 62;

/// What is kept of a symbol to make the index of the pair that it begins.
pub(super) const fn pair_start(symbol: usize) -> usize {
    symbol * 43
}

pub(super) const fn pair(start: usize, symbol: usize) -> usize {
    (start + symbol) & ((1 << PAIR_BITS) - 1)
}

/// Index of a character beyond ASCII, or with `mix` of the character before and this one.
pub(super) const fn wide(scalar: u32) -> usize {
    // The golden ratio's fraction spreads neighbours.
    (scalar.wrapping_mul(0x9E37_79B1) >> (32 - WIDE_BITS)) as usize
}

/// Bits of the place of a character among those that the fitted texts have.
pub(super) const SEEN_BITS: u32 = 13;

/// That place.
pub(super) const fn seen(scalar: u32) -> usize {
    (scalar.wrapping_mul(0x85EB_CA6B) >> (32 - SEEN_BITS)) as usize
}

/// Index of two neighbours beyond ASCII.
pub(super) const fn wide_pair(before: u32, scalar: u32) -> usize {
    wide(before.wrapping_mul(31).wrapping_add(scalar))
}

// ---- the pass -----------------------------------------------------------------------

/// A family's weights, laid out for the pass.
pub(super) struct Costs {
    /// By ASCII character: its class, its symbol, and the start of its pairs.
    bytes: [u32; 128],
    /// The script of every sixteen characters below 0x10000, at whose multiples all of them begin.
    blocks: [u8; 4096],
    /// By state and class: the next state, and its weight.
    steps: [u32; 256 * 8],
    /// Weights of the states of scripts.
    scripts: [u32; 2 * SCRIPTS],
    pairs: [u16; 1 << PAIR_BITS],
    wides: [u16; 1 << WIDE_BITS],
    wide_pairs: [u16; 1 << WIDE_BITS],
    /// Weights of unseen Han and hangul.
    unseen: [u16; 2],
    seen: &'static [u8; 1 << (SEEN_BITS - 3)],
}

impl Costs {
    pub(super) fn new(
        states: impl Fn(usize) -> u16,
        pairs: impl Fn(usize) -> u16,
        wides: impl Fn(usize) -> u16,
        seen: &'static [u8; 1 << (SEEN_BITS - 3)],
    ) -> Costs {
        let mut costs = Costs {
            bytes: [0; 128],
            blocks: [0; 4096],
            steps: [0; 256 * 8],
            scripts: [0; 2 * SCRIPTS],
            pairs: [0; 1 << PAIR_BITS],
            wides: [0; 1 << WIDE_BITS],
            wide_pairs: [0; 1 << WIDE_BITS],
            unseen: [states(UNSEEN_HAN), states(UNSEEN_HANGUL)],
            seen,
        };
        for (byte, entry) in (0..).zip(&mut costs.bytes) {
            let symbol = symbol(byte);
            *entry = (Class::of(byte) as usize | symbol << 8 | pair_start(symbol) << 16) as u32;
        }
        for (block, entry) in (0..).zip(&mut costs.blocks) {
            *entry = script(block << 4) as u8;
        }
        for state in 0..UNSEEN_HAN {
            for class in Class::ALL {
                let next = step(state, class);
                let weight = u32::from(states(next));
                costs.steps[state << 3 | class as usize] = (next << 3) as u32 | weight << 11;
            }
        }
        costs.scripts.iter_mut().zip(WIDE..).for_each(|(cost, at)| *cost = states(at).into());
        costs.pairs.iter_mut().zip(0..).for_each(|(cost, at)| *cost = pairs(at));
        costs.wides.iter_mut().zip(0..).for_each(|(cost, at)| *cost = wides(at));
        costs.wide_pairs.iter_mut().zip(1 << WIDE_BITS..).for_each(|(cost, at)| *cost = wides(at));
        costs
    }

    /// Sum of the weights over a text, which `ESCAPED` says is the inside of a JSON string.
    pub(super) fn sum<const ESCAPED: bool>(&self, text: &str) -> u64 {
        let bytes = text.as_bytes();
        let mut total = 0;
        // The state, times eight, as `steps` has it.
        let mut row = LINE << 3;
        let mut start = pair_start(symbol(b'\n'));
        let mut before = 0;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let mut ascii = byte;
            if byte >= 0x80 || ESCAPED && byte == b'\\' {
                let (scalar, length) =
                    if byte >= 0x80 { decode(bytes, at) } else { unescape(bytes, at) };
                at += length;
                if scalar >= 0x80 {
                    let block = self.blocks.get(scalar as usize >> 4);
                    let script = block.map_or_else(|| script(scalar), |block| usize::from(*block));
                    let state = step_wide(row >> 3, script);
                    if let Some(unseen) = unseen(script) {
                        let place = seen(scalar);
                        if self.seen[place >> 3] >> (place & 7) & 1 == 0 {
                            total += u64::from(self.unseen[unseen - UNSEEN_HAN]);
                        }
                    }
                    row = state << 3;
                    total += u64::from(self.scripts[state - WIDE]);
                    total += u64::from(self.wides[wide(scalar)]);
                    if start == pair_start(WIDE_SYMBOL) {
                        total += u64::from(self.wide_pairs[wide_pair(before, scalar)]);
                    }
                    total += u64::from(self.pairs[pair(start, WIDE_SYMBOL)]);
                    start = pair_start(WIDE_SYMBOL);
                    before = scalar;
                    continue;
                }
                ascii = scalar as u8;
            } else {
                at += 1;
            }
            let entry = self.bytes[usize::from(ascii & 0x7F)] as usize;
            let next = self.steps[(row | entry & 7) & (256 * 8 - 1)];
            row = next as usize & 0x7F8;
            total += u64::from(next >> 11);
            total += u64::from(self.pairs[pair(start, entry >> 8 & 63)]);
            start = entry >> 16;
        }
        total
    }
}

/// Bytes of the text that the inside of a JSON string stands for.
pub(super) fn decoded_length(inside: &str) -> usize {
    let bytes = inside.as_bytes();
    let (mut at, mut length) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let (scalar, size) = if *byte == b'\\' { unescape(bytes, at) } else { (0, 1) };
        length += char::from_u32(scalar).map_or(3, char::len_utf8);
        at += size;
    }
    length
}

/// The character beyond ASCII that begins at `at`, and its length.
fn decode(bytes: &[u8], at: usize) -> (u32, usize) {
    let byte = |offset: usize| u32::from(bytes.get(at + offset).copied().unwrap_or(0));
    let tail = |offset: usize| byte(offset) & 0x3F;
    match byte(0) {
        lead @ 0..0xE0 => ((lead & 0x1F) << 6 | tail(1), 2),
        lead @ 0xE0..0xF0 => ((lead & 0xF) << 12 | tail(1) << 6 | tail(2), 3),
        lead => ((lead & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}

/// The character that the escape at `at` stands for, and the escape's length. A lone surrogate
/// stands for U+FFFD, as it does to the JSON reader.
fn unescape(bytes: &[u8], at: usize) -> (u32, usize) {
    let unit = |at: usize| {
        let mut unit = 0;
        for byte in bytes.get(at..at + 4)? {
            unit = unit << 4 | char::from(*byte).to_digit(16)?;
        }
        Some(unit)
    };
    let high = match bytes.get(at + 1) {
        Some(b'n') => return (10, 2),
        Some(b't') => return (9, 2),
        Some(b'r') => return (13, 2),
        Some(b'b') => return (8, 2),
        Some(b'f') => return (12, 2),
        Some(b'u') => unit(at + 2).unwrap_or(0xFFFD),
        Some(other) => return (u32::from(*other), 2),
        None => return (u32::from(b'\\'), 1),
    };
    if !(0xD800..0xE000).contains(&high) {
        return (high, 6);
    }
    let low = bytes.get(at + 6..at + 8).filter(|next| next == b"\\u").and_then(|_| unit(at + 8));
    match low {
        Some(low @ 0xDC00..0xE000) if high < 0xDC00 => {
            (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12)
        }
        _ => (0xFFFD, 6),
    }
}

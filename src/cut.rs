//! Where a text may be cut: never inside a grapheme, and at the end of a line, of a JSON member or
//! of a word where one is near.

/// The first and last bytes of a text, about so many.
pub(crate) fn ends(text: &str, head: u32, tail: u32) -> (&str, &str) {
    let (head, tail) = (head as usize, tail as usize);
    if head + tail >= text.len() {
        return text.split_at(boundary(text, head));
    }
    let json = text.starts_with(['{', '[']);
    let mut from = boundary(text, head);
    let before = &text.as_bytes()[..from];
    let near = |bytes: &[u8], most: usize, wanted: &dyn Fn(u8) -> bool| {
        bytes.iter().rev().take(most).position(|byte| wanted(*byte)).map(|back| from - back)
    };
    let places = [
        near(before, head / 4, &|byte| byte == b'\n'),
        near(before, if json { head / 8 } else { 0 }, &is_joint),
        near(before, 24.min(head / 8), &|byte| byte == b' '),
    ];
    from = places.into_iter().flatten().find(|at| !torn(text, *at)).unwrap_or(from);
    let mut to = boundary(text, text.len() - tail).max(from);
    let after = &text.as_bytes()[to..];
    let near = |most: usize, wanted: &dyn Fn(u8) -> bool| {
        after.iter().take(most).position(|byte| wanted(*byte)).map(|ahead| to + ahead + 1)
    };
    let places = [
        near(tail / 4, &|byte| byte == b'\n'),
        near(if json { tail / 8 } else { 0 }, &is_joint),
        near(24.min(tail / 8), &|byte| byte == b' '),
    ];
    to = places.into_iter().flatten().find(|at| !torn(text, *at)).unwrap_or(to);
    (&text[..from], &text[to..])
}

/// What a member or an element of JSON ends with.
fn is_joint(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']')
}

/// The nearest place at or before `at` where a text can be cut.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    let most = text.floor_char_boundary(at);
    let mut at = most;
    // No grapheme of a living script is that long.
    for _ in 0..LONGEST {
        if !torn(text, at) {
            return at;
        }
        at = text.floor_char_boundary(at - 1);
    }
    most
}

/// Whether a cut would tear a grapheme.
pub(crate) fn torn(text: &str, at: usize) -> bool {
    let last = text[..at].chars().next_back();
    let Some((before, after)) = last.zip(text[at..].chars().next()) else { return false };
    if after.is_ascii() {
        return before == '\r' && after == '\n';
    }
    if is_flag(after) {
        // Flags are pairs of letters.
        return text[..at].chars().rev().take_while(|letter| is_flag(*letter)).count() % 2 == 1;
    }
    let (before, after) = (u32::from(before), u32::from(after));
    let joins = EXTEND.partition_point(|(first, _)| *first <= after);
    joins > 0 && after <= EXTEND[joins - 1].1
        || is_sign(after)
        || before == JOINER
        || (is_indic(before) && before & 0x7F == 0x4D && is_indic(after))
}

fn is_flag(letter: char) -> bool {
    ('\u{1F1E6}'..='\u{1F1FF}').contains(&letter)
}

fn is_indic(letter: u32) -> bool {
    (0x900..0xD80).contains(&letter)
}

/// Whether it is a sign over, under or beside a letter of an Indic script: their blocks are laid
/// out alike.
fn is_sign(letter: u32) -> bool {
    let low = letter & 0x7F;
    is_indic(letter) && matches!(low, 0..=3 | 0x3A..=0x3C | 0x3E..=0x4F | 0x51..=0x57 | 0x62..=0x63)
}

/// The zero-width joiner.
const JOINER: u32 = 0x200D;

/// Scalars in the longest grapheme that is kept whole.
const LONGEST: usize = 64;

/// What continues the grapheme before it: combining marks, vowel signs, the later jamo of a Hangul
/// syllable, variation selectors, skin tones, tags.
const EXTEND: [(u32, u32); 48] = [
    (0x300, 0x36F),
    (0x483, 0x489),
    (0x591, 0x5BD),
    (0x5BF, 0x5C7),
    (0x610, 0x61A),
    (0x64B, 0x65F),
    (0x670, 0x670),
    (0x6D6, 0x6DC),
    (0x6DF, 0x6E4),
    (0x6E7, 0x6E8),
    (0x6EA, 0x6ED),
    (0x711, 0x711),
    (0x730, 0x74A),
    (0x7A6, 0x7B0),
    (0xD82, 0xD83),
    (0xDCA, 0xDDF),
    (0xE31, 0xE31),
    (0xE33, 0xE3A),
    (0xE47, 0xE4E),
    (0xEB1, 0xEB1),
    (0xEB3, 0xEBC),
    (0xEC8, 0xECE),
    (0xF18, 0xF19),
    (0xF35, 0xF39),
    (0xF3E, 0xF3F),
    (0xF71, 0xF87),
    (0xF8D, 0xFBC),
    (0x102B, 0x103E),
    (0x1056, 0x1060),
    (0x1071, 0x1074),
    (0x1082, 0x108D),
    (0x1160, 0x11FF),
    (0x135D, 0x135F),
    (0x1712, 0x1715),
    (0x17B4, 0x17D3),
    (0x180B, 0x180F),
    (0x1AB0, 0x1AFF),
    (0x1B34, 0x1B44),
    (0x1DC0, 0x1DFF),
    (0x200C, 0x200D),
    (0x20D0, 0x20FF),
    (0x302A, 0x302F),
    (0x3099, 0x309A),
    (0xA8E0, 0xA8F1),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0x1F3FB, 0x1F3FF),
    (0xE0020, 0xE01EF),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grapheme_stays_whole() {
        for grapheme in [
            "é",
            "e\u{301}\u{323}",
            "👩‍👩‍👧‍👦",
            "👍🏽",
            "❤️",
            "🇩🇪",
            "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "각",
            "각",
            "क्षि",
            "กำ",
            "\r\n",
            "が",
            "1️⃣",
        ] {
            let text = ["a", grapheme, grapheme, "b"].concat();
            let whole = [0, 1, 1 + grapheme.len(), 1 + 2 * grapheme.len(), text.len()];
            for at in 0..=text.len() {
                let cut = boundary(&text, at);
                let nearest = whole.iter().rev().find(|place| **place <= at);
                assert_eq!(Some(&cut), nearest, "{grapheme:?} at {at}");
            }
        }
        assert_eq!(boundary(&["a", &"\u{301}".repeat(500)].concat(), 600), 600 / 2 * 2 - 1);
    }

    #[test]
    fn a_cut_is_at_the_end_of_a_line_a_member_or_a_word_where_one_is_near() {
        let lines = (0..100).map(|at| format!("line {at}\n")).collect::<String>();
        let (head, tail) = ends(&lines, 200, 200);
        assert!(head.ends_with('\n') && tail.starts_with("line ") && tail.ends_with("99\n"));
        assert!(head.len() > 150 && tail.len() > 150);
        let members = (0..100).map(|at| format!("\"k{at}\":\"v w\"")).collect::<Vec<_>>();
        let json = ["{", &members.join(","), "}"].concat();
        let (head, tail) = ends(&json, 300, 300);
        assert!(head.ends_with("\","), "{head}");
        assert!(tail.starts_with('"') && tail.ends_with('}'), "{tail}");
        let words = "word ".repeat(100);
        let (head, tail) = ends(&words, 98, 98);
        assert!(head.ends_with("word ") && tail.starts_with("word "));
        let (head, tail) = ends("0123456789", 3, 3);
        assert_eq!((head, tail), ("012", "789"));
        assert_eq!(ends("0123456789", 6, 6), ("012345", "6789"), "all of it");
    }
}

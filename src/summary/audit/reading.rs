//! Reading a text once: cuts, sentences, the user's rules, the values of a JSON
//! text. Nothing here panics, and nothing looks back further than a few bytes.

use std::borrow::Cow;

use crate::cut::torn;

/// Words that make a sentence of the user a rule, unless they tell of somebody's
/// habits ("I always ...").
#[rustfmt::skip]
const CUES: &[&str] = &[
    "must", "mustn't", "never", "always", "only", "don't", "don’t", "dont", "avoid",
    "ensure", "should", "shouldn't", "prefer", "preferably", "required", "forbidden",
    "prohibited", "mandatory", "instead", "niemals", "immer", "muss", "müssen", "keine",
    "jamais", "toujours", "doit", "doivent", "uniquement", "seulement", "nunca", "siempre",
    "debe", "deben", "solo", "evita", "evite", "sempre", "deve", "devono", "apenas",
    "somente",
];
const SUBJECTS: &str = "i we they he she it the is was it's i'm";
/// Cues of scripts without spaces; of others, without the letter that may be a capital.
#[rustfmt::skip]
const MARKS: &[&str] = &[
    "必须", "必須", "不要", "不得", "禁止", "务必", "不能", "只能", "始终", "总是", "请用",
    "请使用", "一定要", "不许", "切勿", "必ず", "ないで", "なければ", "べき", "絶対",
    "常に", "반드시", "절대", "항상", "하지 마", "마세요", "말 것", "말아", "금지", "해야",
    "икогда", "сегда", "ельзя", "бязательно", "олько ", "олжн", "يجب", "لا تستخدم", "دائما",
    "हमेशा", "कभी",
];
/// What a model writes to call a tool, and hosts to mark a turn.
const CALLS: &str = "<| <tool_ </tool_ <function </function <invoke </invoke <parameter </parameter \
    \"arguments\" \"tool_calls\" \"function_call\" \"tool_use\" [TOOL {\"name\"";
/// Names of the blocks that hosts put into user messages, and how outputs begin.
const BLOCKS: &str = "reminder|stdout|stderr|caveat|output|command|returncode|context";
const OUTPUTS: &str = "diff --git |[File: |[Request interrupted|> |OBSERVATION:|Observation:";

/// The parts one after the other.
pub(crate) fn join(parts: &[&str]) -> String {
    let mut out = String::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| out.push_str(part));
    out
}

/// A text without the characters of `set` at its ends.
pub(crate) fn strip<'t>(text: &'t str, set: &str) -> &'t str {
    text.trim_matches(|c| set.contains(c))
}

/// Whether the last character of a text is one of `set`.
pub(crate) fn ends_in(text: &str, set: &str) -> bool {
    text.chars().next_back().is_some_and(|c| set.contains(c))
}

/// Whether a list of words parted by spaces has this one, in any case.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|item| item.len() == word.len() && item.eq_ignore_ascii_case(word))
}

/// Whether a text has one of these parts, which are parted by bars.
pub(crate) fn any(text: &str, parts: &str) -> bool {
    parts.split('|').any(|part| text.contains(part))
}

/// The letters and digits of a text, in lower case.
pub(crate) fn letters(text: &str) -> String {
    let chars = text.chars().filter(|c| !c.is_ascii() || c.is_ascii_alphanumeric());
    chars.map(|c| c.to_ascii_lowercase()).collect()
}

/// 64-bit FNV-1a.
pub(crate) fn fnv(text: &str) -> u64 {
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// The numbers below `len` by a small key, stable: a counting sort.
pub(crate) fn ranked(len: usize, key: &dyn Fn(usize) -> usize) -> Vec<usize> {
    let mut starts = [0; 257];
    (0..len).for_each(|at| starts[key(at).min(255) + 1] += 1);
    (1..257).for_each(|at| starts[at] += starts[at - 1]);
    let mut order = vec![0; len];
    for at in 0..len {
        let place = &mut starts[key(at).min(255)];
        order[*place] = at;
        *place += 1;
    }
    order
}

/// The head of a text of at most `max` bytes, cut between graphemes and, where
/// one is near, at a space.
pub(crate) fn clip(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut at = text.floor_char_boundary(max);
    let lowest = at.saturating_sub(128);
    while at > lowest && torn(text, at) {
        at = text.floor_char_boundary(at - 1);
    }
    let near = &text.as_bytes()[at.saturating_sub(24)..at];
    let space = near.iter().rev().position(|byte| *byte == b' ').unwrap_or(at);
    let whole = text.as_bytes()[at].is_ascii_whitespace();
    text[..if whole || space + 1 >= at { at } else { at - space - 1 }].trim_end()
}

/// The tail of a text of at most `max` bytes, cut like [`clip`].
pub(crate) fn clip_front(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut at = text.ceil_char_boundary(text.len() - max);
    let highest = at.saturating_add(128).min(text.len());
    while at < highest && torn(text, at) {
        at = text.ceil_char_boundary(at + 1);
    }
    let near = text.as_bytes()[at..].iter().take(24).position(|byte| *byte == b' ');
    text[at + near.unwrap_or(0)..].trim_start()
}

/// One line of at most `max` bytes: white space collapsed, control characters
/// and terminal colours gone, and nothing left that reads as a tool call or a
/// fence. A longer text keeps its head and, when there is room, its tail.
pub(crate) fn excerpt(text: &str, max: usize) -> String {
    let text = text.trim();
    let (head, whole) = flat(text, max);
    if whole {
        return head;
    }
    if max < 160 {
        return join(&[strip(clip(&head, max.saturating_sub(3)), "…"), "…"]);
    }
    let (tail, _) = flat(clip_front(text, max), max);
    join(&[clip(&head, max * 2 / 3 - 7), " […] ", clip_front(&tail, max / 3)])
}

fn flat(text: &str, max: usize) -> (String, bool) {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if out.len() + c.len_utf8() > max {
            return (out, false);
        }
        let mut width = c.len_utf8();
        if c == '\x1b' {
            let code = rest.bytes().take(16).skip(2).position(|byte| byte.is_ascii_alphabetic());
            width = code.map_or(1, |at| at + 3);
        } else if c.is_whitespace() || c.is_control() {
            if !out.ends_with(' ') && !out.is_empty() {
                out.push(' ');
            }
        } else if c == '`' && rest.starts_with("```") {
            width = rest.bytes().take_while(|byte| *byte == b'`').count();
        } else if "<\"[{".contains(c) && CALLS.split(' ').any(|call| rest.starts_with(call)) {
            out.push(if c == '"' { '\'' } else { '(' });
        } else {
            out.push(c);
        }
        rest = rest.get(width..).unwrap_or("");
    }
    out.truncate(out.trim_end().len());
    (out, true)
}

/// Whether the head of a text has one of the signs, which are in lower case, at
/// the beginning of a word.
pub(crate) fn mentions(text: &str, signs: &[&str]) -> bool {
    let bytes = clip(text, 600).as_bytes();
    let mut firsts = [false; 256];
    signs.iter().for_each(|sign| firsts[sign.as_bytes()[0] as usize] = true);
    let mut inside = false;
    for (at, byte) in bytes.iter().enumerate() {
        let first = byte.to_ascii_lowercase();
        let like = |sign: &&str| {
            let same = |(a, b): &(u8, &u8)| *a == b.to_ascii_lowercase();
            let pairs = sign.bytes().zip(&bytes[at..]).take_while(same);
            sign.as_bytes()[0] == first && pairs.count() == sign.len()
        };
        if firsts[first as usize] && !inside && signs.iter().any(like) {
            return true;
        }
        inside = byte.is_ascii_alphabetic();
    }
    false
}

/// Whether a sentence ends like a question.
pub(crate) fn asks(sentence: &str) -> bool {
    ends_in(sentence, "?？؟")
}

/// Calls `visit` for every rule in the words of a user. Of a very long text
/// only both ends are read.
pub(crate) fn rules(text: &str, visit: &mut dyn FnMut(&str)) {
    let head = clip(text, 65_536);
    let tail = clip_front(&text[head.len()..], 65_536);
    for part in [head, tail] {
        prose(part, &mut |sentence| {
            if is_rule(clip(sentence, 600)) {
                visit(sentence);
            }
        });
    }
}

fn is_rule(sentence: &str) -> bool {
    let odd = sentence.bytes().filter(|byte| b"{}[]();=<>|\\_/".contains(byte)).count();
    if sentence.len() < 8 || asks(sentence) || odd * 6 > sentence.len() {
        return false;
    }
    let (mut before, mut words, mut hit) = ("", 0, false);
    for word in sentence.split(|c: char| c.is_ascii() && !c.is_ascii_alphabetic() && c != '\'') {
        if word.is_empty() {
            continue;
        }
        words += 1;
        hit |= match word.len() {
            3 if has("do", before) => has("not", word),
            4 if has("make", before) => has("sure", word),
            3..=5 if has("please", before) => has("use keep make leave", word),
            _ => false,
        };
        let is = |cue: &&str| cue.len() == word.len() && cue.eq_ignore_ascii_case(word);
        if word.len() > 3 && CUES.iter().any(is) {
            let habit = has(SUBJECTS, before) || has("you", before) && word.starts_with("don");
            hit |= !habit || has("must", word);
        }
        before = word;
    }
    hit && words > 2 || !sentence.is_ascii() && mentions(sentence, MARKS)
}

/// Calls `visit` for each line, trimmed.
pub(crate) fn each_line(text: &str, visit: &mut dyn FnMut(&str)) {
    text.lines().for_each(|line| visit(line.trim()));
}

/// Calls `visit` for each sentence outside code fences, without list markers.
pub(crate) fn prose(text: &str, visit: &mut dyn FnMut(&str)) {
    let mut fenced = false;
    each_line(text, &mut |line| {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced {
            sentences(unmark(line), visit);
        }
    });
}

/// Takes list markers, quote signs and heading signs off a line.
pub(crate) fn unmark(line: &str) -> &str {
    let mut line = line.trim();
    for _ in 0..2 {
        let rest = line.trim_start_matches(|c| "-*•·>#".contains(c));
        line = if rest.starts_with(' ') { rest.trim_start() } else { line };
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = line[digits..].chars();
    match (digits, rest.next()) {
        (1..=3, Some('.' | ')')) if rest.as_str().starts_with(' ') => rest.as_str().trim(),
        (1..=3, Some('、')) => rest.as_str().trim(),
        _ => line,
    }
}

fn sentences(line: &str, visit: &mut dyn FnMut(&str)) {
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let stop = match c {
            '。' | '！' | '？' | '؟' | '।' => true,
            '.' | '!' | '?' => {
                // Not after an initial or an abbreviation such as "e.g.".
                let near = line.floor_char_boundary(at.saturating_sub(6)).max(start);
                let word = line.as_bytes()[near..at].iter().rev().take_while(|byte| **byte != b' ');
                let (len, points) = word.fold((0, 0), |(len, points), byte| {
                    (len + 1, points + usize::from(*byte == b'.'))
                });
                let whole = len > 4 || len > 1 && points == 0;
                line.as_bytes().get(end) == Some(&b' ') && (whole || c != '.')
            }
            _ => false,
        };
        if stop || end == line.len() {
            let sentence = line[start..end].trim();
            if !sentence.is_empty() {
                visit(sentence);
            }
            start = end;
        }
    }
}

/// The user's own words in a user message: without the blocks that hosts put
/// before them, and nothing when the whole is the output of a program, which
/// the first message of a transcript never is.
pub(crate) fn spoken(text: &str, first: bool) -> &str {
    let mut text = text.trim();
    while let Some((name, _)) =
        text.strip_prefix('<').and_then(|rest| clip(rest, 64).split_once('>'))
    {
        let close = join(&["</", name, ">"]);
        match text.find(&close) {
            Some(_) if name.contains("notification") => return "",
            Some(at) if any(name, BLOCKS) => text = text[at + close.len()..].trim_start(),
            _ => break,
        }
    }
    let output = OUTPUTS.split('|').any(|sign| text.starts_with(sign)) || text.ends_with("bash-$");
    if output && !first { "" } else { text }
}

/// Reads the values of a JSON text in order, each with the key it stands under;
/// a value of `None` tells the end of an object. What is no JSON is read as far
/// as it goes; a text that does not begin like JSON is one value without a key.
pub(crate) fn walk_json(text: &str, visit: &mut dyn FnMut(&str, Option<&str>)) {
    let bytes = text.as_bytes();
    if !text.trim_start().starts_with(['{', '[']) {
        return visit("", Some(text));
    }
    let mut stack: Vec<(bool, &str)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (object, key) = stack.last().copied().unwrap_or((false, ""));
        let start = at;
        at += 1;
        match bytes[start] {
            // What is nested deeper than anybody would is read under wrong keys.
            b'{' | b'[' if stack.len() < 64 => stack.push((bytes[start] == b'{', key)),
            b'}' | b']' => {
                stack.pop();
                if bytes[start] == b'}' {
                    visit(key, None);
                }
            }
            b'"' => {
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                let raw = &text[start + 1..text.floor_char_boundary(at)];
                at = at.saturating_add(1).min(bytes.len());
                let mut after = bytes[at..].iter().skip_while(|byte| byte.is_ascii_whitespace());
                match stack.last_mut() {
                    Some(top) if object && after.next() == Some(&b':') => top.1 = raw,
                    _ => visit(key, Some(&unescape(raw))),
                }
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                while at < bytes.len()
                    && (bytes[at].is_ascii_alphanumeric() || b"+-.".contains(&bytes[at]))
                {
                    at += 1;
                }
                visit(key, Some(&text[start..at]));
            }
            _ => {}
        }
    }
}

fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, after)) = rest.split_once('\\') {
        out.push_str(plain);
        let Some(c) = after.chars().next() else {
            return Cow::Owned(out);
        };
        rest = &after[c.len_utf8()..];
        match c {
            'n' => out.push('\n'),
            't' | 'r' | 'b' | 'f' => out.push(' '),
            'u' => {
                let unit = |text: &str| u32::from_str_radix(text.get(..4)?, 16).ok();
                let mut code = unit(rest).unwrap_or(0xFFFD);
                rest = rest.get(4..).unwrap_or("");
                if let (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) =
                    (code, rest.strip_prefix("\\u").and_then(unit))
                {
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                    rest = rest.get(6..).unwrap_or("");
                }
                out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
            }
            c => out.push(c),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_between_graphemes() {
        let family = "👨\u{200D}👩\u{200D}👧";
        for text in ["e\u{301}e\u{301}e\u{301}", family, "🇩🇪🇫🇷", "ab한국어", "คำไทย"]
        {
            for max in 0..text.len() + 2 {
                for part in [clip(text, max), clip_front(text, max)] {
                    assert!(part.len() <= max.max(1) && text.contains(part));
                    assert!(!part.starts_with('\u{301}') && !part.starts_with('\u{200D}'));
                }
            }
        }
        assert_eq!(clip(family, 17), "");
        assert_eq!(clip("some words here", 12), "some words");
        assert_eq!(clip_front("some words here", 7), "here");
    }

    #[test]
    fn an_excerpt_is_one_bounded_harmless_line() {
        let text =
            "a\r\n\tb \u{1b}[31mred\u{1b}[0m ```rust <tool_call>{\"name\": \"x\"} <|im_end|>";
        assert_eq!(excerpt(text, 300), "a b red rust (tool_call>(\"name\": \"x\"} (|im_end|>");
        let long = "word ".repeat(100_000);
        for max in 0..400 {
            assert!(excerpt(&long, max).len() <= max.max(3), "{max}");
        }
        assert!(excerpt(&long, 200).contains(" […] "));
    }

    #[test]
    fn finds_rules_in_several_languages() {
        let mut found = Vec::new();
        let text = "Hi. You must never push to main. I always wonder. Do you always ask? \
            Please use tabs!\n```\nassert must never\n```\n- Don't add comments\n必须使用中文回答。好的。\n\
            コメントは必ず日本語で書いてください。\n반드시 한국어로 답해줘.\nDu darfst niemals raten.\n\
            Никогда не меняй это.";
        rules(text, &mut |rule| found.push(rule.to_string()));
        assert_eq!(
            found,
            [
                "You must never push to main.",
                "Please use tabs!",
                "Don't add comments",
                "必须使用中文回答。",
                "コメントは必ず日本語で書いてください。",
                "반드시 한국어로 답해줘.",
                "Du darfst niemals raten.",
                "Никогда не меняй это.",
            ]
        );
    }

    #[test]
    fn tells_words_from_output() {
        assert_eq!(spoken("<system-reminder>x</system-reminder>\nhello", false), "hello");
        assert_eq!(spoken("<task>do it</task>", false), "<task>do it</task>");
        assert_eq!(spoken("<returncode>0</returncode>\n<output>\nx</output>", false), "");
        assert_eq!(spoken("[File: /a/b (3 lines)]", false), "");
        assert_eq!(spoken("solve it\nbash-$", true), "solve it\nbash-$");
    }

    #[test]
    fn walks_json_whole_or_torn() {
        let mut seen = Vec::new();
        let text = r#"{"a": "x\n\u00e9\ud83d\ude00", "b": [1, true, {"c": "d\"e"}], "f": "torn \"#;
        walk_json(text, &mut |key, value| seen.push(format!("{key}={}", value.unwrap_or("."))));
        assert_eq!(seen, ["a=x\né😀", "b=1", "b=true", "c=d\"e", "c=.", "f=torn "]);
        let mut plain = 0;
        walk_json("*** Begin Patch", &mut |key, value| {
            plain += usize::from(key.is_empty() && value == Some("*** Begin Patch"));
        });
        assert_eq!(plain, 1);
        walk_json(&"[{\"a\":".repeat(100_000), &mut |_, _| {});
    }
}

//! Exact identifiers: finding them in a text and telling their kinds.

use self::Kind::*;
use super::reading::{any, has};

/// The longest identifier that is looked at, in bytes.
pub(crate) const LONGEST: usize = 200;

/// What an identifier looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Rule,
    Path,
    Url,
    Id,
    Name,
    Version,
    Number,
    Hash,
}

/// Calls `visit` for every identifier of a text, in one pass.
pub(crate) fn identifiers(text: &str, visit: &mut dyn FnMut(&str, Kind)) {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        if bytes[at] == b'\\' {
            // An escape in the source of a string is no part of the word after it.
            at += if b"ntr\"\\".contains(&byte(at + 1)) { 2 } else { 1 };
            continue;
        }
        at += 1;
        if !bytes[start].is_ascii_alphanumeric() && !b"/.~@#$_".contains(&bytes[start]) {
            continue;
        }
        let (mut url, drive) = (false, byte(at) == b':' && byte(at + 1) == b'\\');
        while at < bytes.len() {
            let inner = match bytes[at] {
                b'_' | b'-' | b'.' | b'/' | b'@' | b'+' | b'%' | b'~' => true,
                b',' => thousands(&text[start..at], &bytes[at + 1..]),
                b':' if bytes[at..].starts_with(b"://") => {
                    url = true;
                    true
                }
                b':' | b'\\' => drive || url && bytes[at] == b':',
                b'#' | b'$' | b'?' | b'&' | b'=' | b';' | b'!' | b'*' => url,
                other => other.is_ascii_alphanumeric(),
            };
            if !inner {
                break;
            }
            at += 1;
        }
        let token = text[start..at].trim_end_matches(|c| ".-+@,:!?;~*".contains(c));
        let token = match token.as_bytes() {
            // The sides of a diff; the sign of "about".
            [b'a' | b'b', b'/', rest @ ..] if rest.contains(&b'/') => &token[2..],
            [b'~', b'0'..=b'9', ..] => &token[1..],
            _ => token,
        };
        // What follows a bracket is the rest of a longer expression.
        let rest =
            token.starts_with(['/', '.']) && start > 0 && b"<>)]}".contains(&bytes[start - 1]);
        if token.len() < 2 || at - start > LONGEST || rest {
            continue;
        }
        let after = if plain_number(token) { unit_after(&text[at..]) } else { 0 };
        if after > 0 {
            at += after;
            visit(&text[start..at], Number);
        } else if let Some(kind) = classify(token) {
            visit(token, kind);
        }
    }
}

const UNITS: &str = "% ms us ns s sec secs seconds min mins minutes h hr hours days b kb mb gb tb \
    kib mib gib bytes px em rem fps hz khz mhz ghz rpm k m x kg km cm mm usd eur tokens";
const EXTENSIONS: &str = "rs py js ts tsx jsx mjs go c h cc cpp hpp cs java kt swift rb php sh bash \
    ps1 sql html css scss vue json jsonl yaml yml toml lock xml md txt log csv ini cfg conf env \
    ipynb lua pdf png jpg svg zip gz tar patch diff db wasm";

/// Whether a comma between these two parts a number into groups of three.
fn thousands(before: &str, after: &[u8]) -> bool {
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits == 3 && before.bytes().all(|byte| byte.is_ascii_digit() || b",$".contains(&byte))
}

/// Digits in groups, with at most a point.
fn plain_number(token: &str) -> bool {
    let mut points = 0;
    token.bytes().all(|byte| {
        points += usize::from(byte == b'.');
        byte.is_ascii_digit() || byte == b',' || byte == b'.' && points == 1
    })
}

/// The length of a unit after a number: a CJK or currency sign, or a word after a space.
fn unit_after(rest: &str) -> usize {
    let sign = rest.chars().next().filter(|c| "元円원€₽℃￥".contains(*c));
    let word =
        rest.bytes().skip(1).take(10).take_while(|b| b.is_ascii_alphabetic() || *b == b'%').count();
    match sign {
        Some(sign) => sign.len_utf8(),
        None if word > 1 && rest.starts_with(' ') && has(UNITS, &rest[1..=word]) => word + 1,
        None => 0,
    }
}

/// Tells what a token is, if it is an identifier at all.
pub(crate) fn classify(token: &str) -> Option<Kind> {
    let bytes = token.as_bytes();
    let len = bytes.len();
    if bytes.iter().all(u8::is_ascii_lowercase) {
        return None;
    }
    let [mut digits, mut uppers, mut lowers, mut humps, mut hex] = [0; 5];
    let [mut slashes, mut dots, mut dashes, mut unders, mut ats] = [0; 5];
    let mut last = b' ';
    for &byte in bytes {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'A'..=b'Z' => {
                uppers += 1;
                humps += usize::from(last.is_ascii_lowercase());
            }
            b'a'..=b'z' => lowers += 1,
            b'/' | b'\\' => slashes += 1,
            b'.' => dots += 1,
            b'-' => dashes += 1,
            b'_' => unders += usize::from(last.is_ascii_alphanumeric()),
            b'@' => ats += 1,
            _ => {}
        }
        hex += usize::from(byte.is_ascii_hexdigit());
        last = byte;
    }
    let alpha = uppers + lowers;
    let dot = bytes.iter().rposition(|byte| *byte == b'.').unwrap_or(len);
    let (stem, extension) = (&token[..dot], token.get(dot + 1..).unwrap_or(""));
    let first = bytes.first().copied().unwrap_or(b' ');
    let when = |holds: bool, kind: Kind| holds.then_some(kind);
    if alpha + digits == 0 {
        None
    } else if token.contains("://") {
        when(len > 9, Url)
    } else if slashes > 0 {
        let rooted = matches!(bytes, [b'/' | b'~', ..] | [b'.', b'/' | b'.', ..] | [_, b':', ..]);
        let end = extension.strip_suffix('/').unwrap_or(extension);
        let named =
            matches!(end.len(), 1..=8) && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let telling = (unders + dashes + dots > 0 || slashes > 2) && !token.contains('+');
        let path = if rooted { slashes > 1 || named } else { named || telling };
        // Base64 has slashes too: capitals and digits all over, and no marks of a name.
        let random =
            len > 24 && humps * 11 > len && digits * 10 > len && dots + dashes + unders == 0;
        let path = path && !random;
        when(path && alpha > 1 && !token.starts_with("//") && !token.starts_with("/dev/"), Path)
    } else if ats > 0 {
        when(dots > 0 && ats == 1 && first != b'@', Id)
    } else if first == b'#' {
        when(digits + 1 == len, Id)
    } else if first == b'$' {
        when(digits > 0 && alpha < 2, Number)
    } else if token.contains("..") {
        None
    } else if digits > 0 && alpha == 0 && unders == 0 {
        match (dots, dashes) {
            (2.., _) => Some(Version),
            (_, 2) if len == 10 && bytes[4] == b'-' => Some(Version),
            (_, 0) => when(digits > 3 || last == b'%', Number),
            _ => when(digits > 6 && digits + dashes == len, Id),
        }
    } else if let Some(at) = token.find(|c: char| c.is_ascii_alphabetic())
        && at > 0
        && plain_number(&token[..at])
        && has(UNITS, &token[at..])
    {
        Some(Number)
    } else if len == 36 && dashes == 4 && hex == 32 {
        Some(Id)
    } else if hex == len && len >= 7 && digits > 0 && (uppers == 0 || lowers == 0) {
        Some(if len < 10 && uppers > 0 { Id } else { Hash })
    } else if dots > 0 && stem.len() > 1 && has(EXTENSIONS, extension) {
        Some(Path)
    } else if first == b'.' {
        when(dots == 1 && any(token, "rc|ignore|env|git|config"), Path)
    } else if dots > 0
        && digits > 1
        && (first.is_ascii_digit() && dots > 1 || first == b'v' && alpha == 1)
    {
        Some(Version)
    } else if unders > 0 && alpha > 1 && len > 4 {
        let tail = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        Some(if tail > 2 { Id } else { Name })
    } else if dashes > 0
        && digits > 0
        && alpha > 1
        && len > 5
        && (first.is_ascii_alphabetic() || digits > 2 && lowers == 0)
        && dots < 2
    {
        Some(if lowers == 0 { Id } else { Name })
    } else if lowers == 0 && digits > 0 && uppers > 0 && dashes + dots == 0 && matches!(len, 5..=12)
    {
        Some(Id)
    } else {
        when(humps > 0 && len > 4 && dashes == 0 || token.ends_with("Error") && len > 5, Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(String, Kind)> {
        let mut found = Vec::new();
        identifiers(text, &mut |id, kind| found.push((id.to_string(), kind)));
        found
    }

    #[test]
    fn tells_kinds() {
        for (text, kind) in [
            ("/usr/lib/x.so", Path),
            ("src/main.rs", Path),
            ("../up/one", Path),
            ("package.json", Path),
            (".gitignore", Path),
            (r"C:\Users\me\a.txt", Path),
            ("https://example.com/a?b=c#d", Url),
            ("550e8400-e29b-41d4-a716-446655440000", Id),
            ("me+tag@example.com", Id),
            ("#123", Id),
            ("PROJ-1234", Id),
            ("4711-AX", Id),
            ("XEHM4B", Id),
            ("mia_li_3668", Id),
            ("FOO_BAR", Name),
            ("parse_args", Name),
            ("CamelCaseError", Name),
            ("1.2.3", Version),
            ("v2.0", Version),
            ("2024-05-15", Version),
            ("12345", Number),
            ("12.5ms", Number),
            ("30%", Number),
            ("$299", Number),
            ("1,234,567", Number),
            ("51b1093", Hash),
        ] {
            assert_eq!(all(text), [(text.to_string(), kind)], "{text}");
        }
    }

    #[test]
    fn passes_over_words() {
        for text in
            ["hello world", "and/or", "e.g.", "12", "1/2", "...", "I'm", "</div>", "a-b", ""]
        {
            assert_eq!(all(text), [], "{text}");
        }
    }

    #[test]
    fn encoded_data_is_no_path() {
        for text in [
            "4at/n3iVc1kfceMYE5GE4p838GNRLiVqaf/lc8HwhT3jVJi46qttdWwiCyn/rz7F",
            "/H1JSMsbDxTZkQYa7rwxX90m9KeXfI0U2pk2nhwdVgQSQpkmcEjbe4QH/qM4B/4q",
        ] {
            assert_eq!(all(text), [], "{text}");
        }
        for text in
            ["/usr/lib/x86_64-linux-gnu/libX11.so.6", "src/MyApp/Views/HomePage2/Detail.tsx"]
        {
            assert_eq!(all(text), [(text.to_string(), Path)], "{text}");
        }
    }

    #[test]
    fn numbers_take_their_units() {
        assert_eq!(
            all("took 12 ms, 75元 each"),
            [("12 ms".into(), Number), ("75元".into(), Number)]
        );
        assert_eq!(all("看src/main.rs文件，共1234行")[0], ("src/main.rs".into(), Path));
    }

    #[test]
    fn escapes_are_no_letters() {
        assert_eq!(all(r#"a\nsrc/x.rs\n"#), [("src/x.rs".into(), Path)]);
    }
}

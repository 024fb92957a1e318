//! Signs in prose, output and arguments, and what is read by them.

use super::page::LINE;
use crate::summary::audit::identifiers::{Kind, identifiers};
use crate::summary::audit::reading::{
    any, clip, clip_front, each_line, ends_in, excerpt, has, join, mentions, strip,
};

/// Signs of a conclusion, of a plan and of no plan, in lower case.
#[rustfmt::skip]
pub(super) const FINDINGS: &[&str] = &[
    "found", "cause", "root cause", "because", "the issue", "problem", "turns out",
    "decided", "instead", "confirmed", "fixed", "works", "passes", "passed", "fail",
    "cannot", "can't", "require", "faster", "slower", "speedup", "improve", "implemented",
    "added", "changed", "updated", "success", "created", "原因", "因为", "发现", "结论",
    "决定", "修复", "改为", "推荐", "決定", "判明", "修正", "完了", "원인", "결정", "발견",
    "수정", "완료", "추천", "encontr", "porque", "trouv", "gefunden", "найден",
];
#[rustfmt::skip]
pub(super) const PLANS: &[&str] = &[
    "next", "todo", "to do:", "i'll ", "i’ll ", "i will ", "we'll ", "let me ", "let's ",
    "going to ", "need to ", "plan to ", "remaining step", "remaining task",
    "remaining work", "接下来", "下一步", "待办", "次に", "次の", "今後", "다음", "앞으로",
    "siguiente", "prochain", "nächste", "далее", "следующ",
];
#[rustfmt::skip]
pub(super) const NO_PLANS: &[&str] = &[
    "let me know", "don't need", "no need",
];
/// Signs of a decision among what was found.
#[rustfmt::skip]
pub(super) const DECISIONS: &[&str] = &[
    "decided", "decision", "agreed", "chose", "instead", "we will use", "settled", "决定", "決定",
    "改为", "결정", "decid", "entschieden", "beschlossen", "решил",
];
/// Words after a number that make a line a total.
pub(super) const TOTALS: &str = "passed failed tests test errors error warnings skipped passing failing ok \
    changed insertions deletions";
/// Words of tool names.
pub(super) const WRITES: &str = "write|edit|create|patch|replace|insert|delete|rename|move";
pub(super) const READS: &str = "read|view|open|cat|glob|grep|search|list";
/// Programs that print files and directories, and those that change them.
pub(super) const READERS: &str =
    "ls cat pwd echo head tail sed grep rg find cd wc nl tree which open";
pub(super) const MOVERS: &str = "touch mv cp rm create edit";
/// Words of a failure; what a line of a program has and a line of output has not.
pub(super) const FAILURES: &str = "failed failure fatal panicked denied killed aborted timeout";
pub(super) const CODE: &str = "raise |except|catch|throw|import |class |def |return |assert|//|fn |if |print|\
    logger|# |=>|->|&&|();|'''|\"\"\"";

/// The words of a user or assistant over several lines, bounded.
pub(super) fn own_words(text: &str, max: usize) -> String {
    let text = text.trim();
    let mut out = String::new();
    let mut write = |line: &str| {
        let mut rest = if line.starts_with("```") { "" } else { line };
        while !rest.is_empty() {
            let piece = clip(rest, LINE - 30);
            let piece = if piece.is_empty() { rest } else { piece };
            rest = rest[piece.len()..].trim_start();
            let clean = excerpt(piece, LINE - 30);
            // A marker would make the line an item or a heading of its own.
            let (mark, clean) = match clean.split_once(' ') {
                Some(("-" | "*" | "•", rest)) => ("– ", rest),
                Some((mark, rest)) if mark.bytes().all(|byte| byte == b'#') => ("", rest),
                _ => ("", clean.as_str()),
            };
            let gap = if out.is_empty() { "" } else { "\n  " };
            if !clean.is_empty() {
                out.push_str(&join(&[gap, mark, clean]));
            }
        }
    };
    if text.len() <= max {
        each_line(text, &mut write);
    } else {
        each_line(clip(text, max * 2 / 3), &mut write);
        write("[…]");
        each_line(clip_front(text, max / 3), &mut write);
    }
    out
}

/// The files that a patch, or a report of one, names.
pub(super) fn patched(text: &str, files: &mut Vec<(String, bool)>) {
    const SIGNS: [&str; 5] = [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "\n+++ b/",
        "Applied edit to ",
    ];
    for sign in SIGNS {
        for (at, _) in text.match_indices(sign).take(32) {
            let file = text[at + sign.len()..].lines().next().unwrap_or("").trim();
            files.push((excerpt(file, LINE / 2), true));
        }
    }
}

pub(super) fn is_plan(sentence: &str) -> bool {
    mentions(sentence, PLANS) && !mentions(sentence, NO_PLANS)
}

/// Whether a line counts tests, errors or changes.
pub(super) fn is_total(line: &str) -> bool {
    let mut number = false;
    line.split(|c| " ,;:(".contains(c)).filter(|word| !word.is_empty()).any(|word| {
        let hit = number && has(TOTALS, strip(word, ")."));
        number = word.bytes().all(|byte| byte.is_ascii_digit());
        hit
    })
}

/// Whether a line holds a number with a unit, and is no progress bar.
pub(super) fn is_measured(line: &str) -> bool {
    let mut hit = false;
    identifiers(line, &mut |id, kind| {
        hit |= kind == Kind::Number && !id.bytes().last().is_some_and(|byte| byte.is_ascii_digit());
    });
    hit && !any(line, "B/s|eta |ETA|█|##|━")
}

/// The last lines of an output that tell of an error, at most two.
pub(super) fn failures(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for mut line in text.lines() {
        while !line.is_empty() {
            let (part, rest) = line.split_at(line.floor_char_boundary(400));
            line = rest;
            let part = part.trim();
            if part.len() > 9 && found.last() != Some(&part) && tells_failure(part) {
                found.push(part);
                if found.len() > 2 {
                    found.remove(0);
                }
            }
        }
    }
    found
}

pub(super) fn tells_failure(line: &str) -> bool {
    let bytes = line.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while byte(at).is_ascii_alphabetic() {
            at += 1;
        }
        if at == start {
            at += 1;
            continue;
        }
        let word = &line[start..at];
        let error = word.ends_with("Error") || word.ends_with("Exception") || has("error", word);
        if error || matches!(word.len(), 5..=8) && has(FAILURES, word) {
            let ahead = line[..start].trim_end();
            let before = if start > 0 { bytes[start - 1] } else { b' ' };
            let leads = ahead.bytes().all(|byte| !byte.is_ascii_alphanumeric());
            let none = ahead.ends_with(" 0") || ahead == "0" || ahead.ends_with("no");
            let part = b"_-/=(\"'".contains(&before) || b"._-/=(\"'".contains(&byte(at));
            // An error under a JSON key.
            if before == b'"' && line[at..].starts_with("\":") && !line[at..].contains("null") {
                return true;
            }
            if !part && !none && (!error || leads || b":[!*".contains(&byte(at))) {
                return !ends_in(line, "{;(,}") && !any(line, CODE);
            }
        }
    }
    any(line, "not found|No such|can't cd") && line.len() < 300 && !any(line, CODE)
}

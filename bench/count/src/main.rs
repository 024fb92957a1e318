//! Fits the weights of `src/count/families.rs`.
//!
//!   tidemark-fit TOKENS CORPUS OUT
//!
//! TOKENS, made by `tokens.mjs`, has a line for each text and family: the text's file, the family
//! and the length of every token in bytes, between tabs. Only texts under `train/` are fitted;
//! what the others would have is printed.
//!
//! The texts are cut into pieces of some hundred characters. Each gives an equation: the amounts
//! that the scan finds in it, times their weights, are its tokens. So does each whole text. Errors
//! count relative to the text's tokens, and classes of texts count alike but for [`importance`].
//! Weights are not negative and are found by coordinate descent; those of neighbours are then
//! rounded to sixteen levels.

#[allow(dead_code)]
#[path = "../../../src/count/scan.rs"]
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs};

use scan::{
    Class, LINE, PAIR_BITS, SEEN_BITS, STATES, WIDE, WIDE_BITS, WIDE_SYMBOL, pair, pair_start,
    script, seen, step, step_wide, symbol, unseen, wide, wide_pair,
};

const FAMILIES: [&str; 5] = ["o200k", "cl100k", "claude", "llama3", "gemini"];
/// Indices of features: states, then pairs, then characters beyond ASCII and pairs of them.
const PAIRS: usize = STATES;
const WIDES: usize = PAIRS + (1 << PAIR_BITS);
const FEATURES: usize = WIDES + (2 << WIDE_BITS);
const LEVELS: usize = 16;
/// Weights are kept in 1,024ths of a token.
const UNIT: f64 = 1024.0;

/// Characters of a piece.
const PIECE: usize = 12;
/// What a whole text weighs against its pieces.
const WHOLE: f64 = 3.0;
/// Ridge of the weights of states and of neighbours.
const RIDGE: [f64; 2] = [1e-5, 1e-4];

struct Text {
    name: String,
    class: String,
    train: bool,
    /// Byte offset of each character, and its features.
    scanned: Vec<(usize, Vec<usize>)>,
    bytes: usize,
    /// By family: how many tokens begin before each byte.
    begun: Vec<Vec<u32>>,
}

impl Text {
    fn tokens(&self, family: usize) -> f64 {
        f64::from(self.begun[family][self.bytes])
    }
}

/// The features of each character, as `Costs::sum` adds up their weights.
fn features(text: &str, known: impl Fn(usize) -> bool) -> Vec<(usize, Vec<usize>)> {
    let mut state = LINE;
    let mut start = pair_start(symbol(b'\n'));
    let mut before = 0;
    let mut out = Vec::new();
    for (at, character) in text.char_indices() {
        let mut found = Vec::with_capacity(4);
        let scalar = character as u32;
        let symbol = if scalar < 0x80 {
            state = step(state, Class::of(scalar as u8));
            symbol(scalar as u8)
        } else {
            state = step_wide(state, script(scalar));
            if !known(seen(scalar)) {
                found.extend(unseen(script(scalar)));
            }
            found.push(WIDES + wide(scalar));
            if start == pair_start(WIDE_SYMBOL) {
                found.push(WIDES + (1 << WIDE_BITS) + wide_pair(before, scalar));
            }
            before = scalar;
            WIDE_SYMBOL
        };
        found.push(state);
        found.push(PAIRS + pair(start, symbol));
        start = pair_start(symbol);
        out.push((at, found));
    }
    out
}

/// Where a text's Han and hangul characters have their places.
fn places(text: &str) -> BTreeSet<usize> {
    let counted = |character: &char| unseen(script(*character as u32)).is_some();
    text.chars().filter(counted).map(|character| seen(character as u32)).collect()
}

/// In how many of the fitted texts each place is, but for texts drawn by chance.
fn known(corpus: &str) -> Vec<u32> {
    let mut known = vec![0; 1 << SEEN_BITS];
    for file in fs::read_dir(format!("{corpus}/train")).expect("the texts").flatten() {
        if !file.file_name().to_string_lossy().starts_with("rare.") {
            for place in places(&fs::read_to_string(file.path()).expect("a text")) {
                known[place] += 1;
            }
        }
    }
    known
}

fn load(tokens: &str, corpus: &str, known: &[u32]) -> Vec<Text> {
    let mut texts: BTreeMap<String, Text> = BTreeMap::new();
    for line in fs::read_to_string(tokens).expect("the file of tokens").lines() {
        let mut fields = line.split('\t');
        let (name, family) = (fields.next().unwrap(), fields.next().unwrap());
        let lengths = fields.next().unwrap();
        let family = FAMILIES.iter().position(|known| *known == family).expect("a known family");
        let text = texts.entry(name.to_owned()).or_insert_with(|| {
            let content = fs::read_to_string(format!("{corpus}/{name}")).expect("a text");
            let (split, file) = name.split_once('/').expect("a folder");
            // A fitted text must not be what makes its own characters known.
            let own = if split == "train" && !file.starts_with("rare.") {
                places(&content)
            } else {
                BTreeSet::new()
            };
            Text {
                name: name.to_owned(),
                class: file.split('.').next().unwrap().to_owned(),
                train: split == "train",
                scanned: features(&content, |place| known[place] > u32::from(own.contains(&place))),
                bytes: content.len(),
                begun: vec![Vec::new(); FAMILIES.len()],
            }
        });
        let mut begins = vec![0; text.bytes + 1];
        let mut at = 0;
        for length in lengths.split(' ') {
            begins[at + 1] += 1;
            at += length.parse::<usize>().expect("a length");
        }
        assert_eq!(at, text.bytes, "{name}: tokens do not add up");
        begins.iter_mut().fold(0, |sum, begin| {
            *begin += sum;
            *begin
        });
        text.begun[family] = begins;
    }
    texts.into_values().collect()
}

/// Equations, by column: which rows have the feature, and how much of it.
struct System {
    columns: Vec<Vec<(u32, f32)>>,
    /// Right sides.
    wanted: Vec<f64>,
}

fn system(texts: &[&Text], family: usize) -> System {
    let mut in_class: BTreeMap<&str, f64> = BTreeMap::new();
    let pieces = |text: &Text| text.scanned.len().div_ceil(PIECE).max(1);
    for text in texts {
        *in_class.entry(&text.class).or_default() += pieces(text) as f64;
    }
    let mut columns = vec![Vec::new(); FEATURES];
    let mut wanted = Vec::new();
    let mut add = |amounts: &BTreeMap<usize, u32>, tokens: f64, weight: f64| {
        let row = wanted.len() as u32;
        for (feature, amount) in amounts {
            columns[*feature].push((row, (f64::from(*amount) * weight) as f32));
        }
        wanted.push(tokens * weight);
    };
    for text in texts {
        let count = pieces(text);
        let tokens = text.tokens(family);
        let share = importance(&text.class) / in_class[&*text.class].sqrt();
        let mut whole = BTreeMap::new();
        let size = text.scanned.len().div_ceil(count);
        let begun = &text.begun[family];
        for piece in text.scanned.chunks(size) {
            let mut amounts = BTreeMap::new();
            for feature in piece.iter().flat_map(|(_, found)| found) {
                *amounts.entry(*feature).or_default() += 1;
                *whole.entry(*feature).or_default() += 1;
            }
            let from = piece[0].0;
            // Where the piece after this one begins.
            let next = piece.as_ptr_range().end;
            let to = if next == text.scanned.as_ptr_range().end {
                text.bytes
            } else {
                text.scanned[(from_index(text, piece)) + piece.len()].0
            };
            let has = f64::from(begun[to] - begun[from]);
            add(&amounts, has, share * count as f64 / tokens);
        }
        add(&whole, tokens, WHOLE * share * (count as f64).sqrt() / tokens);
    }
    System { columns, wanted }
}

/// What a class weighs beside others: more where conversations carry most of it, and for emoji,
/// of which a text has few of many.
fn importance(class: &str) -> f64 {
    match class {
        "english" | "emoji" => 2.0,
        "code" | "markdown" => 1.5,
        _ => 1.0,
    }
}

fn from_index(text: &Text, piece: &[(usize, Vec<usize>)]) -> usize {
    text.scanned.partition_point(|(at, _)| *at < piece[0].0)
}

/// Coordinate descent under the constraint that `admit` puts on each weight.
fn descend(system: &System, weights: &mut [f64], passes: usize, admit: impl Fn(usize, f64) -> f64) {
    let mut rest: Vec<f64> = system.wanted.iter().map(|wanted| -wanted).collect();
    for (column, weight) in system.columns.iter().zip(&*weights) {
        for (row, amount) in column {
            rest[*row as usize] += f64::from(*amount) * weight;
        }
    }
    for _ in 0..passes {
        for (feature, column) in system.columns.iter().enumerate() {
            if column.is_empty() {
                continue;
            }
            let ridge = RIDGE[usize::from(feature >= PAIRS)];
            let (mut slope, mut bend) = (ridge * weights[feature], ridge);
            for (row, amount) in column {
                slope += f64::from(*amount) * rest[*row as usize];
                bend += f64::from(*amount).powi(2);
            }
            let new = admit(feature, weights[feature] - slope / bend);
            let change = new - weights[feature];
            if change != 0.0 {
                weights[feature] = new;
                for (row, amount) in column {
                    rest[*row as usize] += f64::from(*amount) * change;
                }
            }
        }
    }
}

/// The least that a feature may weigh: a word after a space is a token at least, and what makes
/// words dear can only be added.
fn least(feature: usize) -> f64 {
    if matches!(feature, scan::WORD | scan::CAPITAL) { 1.0 } else { 0.0 }
}

/// Sixteen levels for these weights, the first of them zero: k-means from even quantiles.
fn levels(weights: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = weights.iter().copied().filter(|weight| *weight > 1e-3).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let mut levels: Vec<f64> =
        (0..LEVELS).map(|level| if level == 0 { 0.0 } else { at(level as f64 / 15.5) }).collect();
    for _ in 0..60 {
        let mut sums = [(0.0, 0.0); LEVELS];
        for weight in weights {
            let (sum, count) = &mut sums[nearest(&levels, *weight)];
            *sum += weight;
            *count += 1.0;
        }
        for (level, (sum, count)) in levels.iter_mut().zip(sums).skip(1) {
            if count > 0.0 {
                *level = (sum / count * UNIT).round() / UNIT;
            }
        }
    }
    levels
}

fn nearest(levels: &[f64], weight: f64) -> usize {
    let distance = |level: &usize| (levels[*level] - weight).abs();
    (0..levels.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap()
}

struct Fitted {
    states: Vec<u16>,
    pairs: (Vec<f64>, Vec<usize>),
    wides: (Vec<f64>, Vec<usize>),
}

impl Fitted {
    fn weight(&self, feature: usize) -> f64 {
        match feature {
            0..PAIRS => f64::from(self.states[feature]) / UNIT,
            PAIRS..WIDES => self.pairs.0[self.pairs.1[feature - PAIRS]],
            _ => self.wides.0[self.wides.1[feature - WIDES]],
        }
    }
}

fn fit(texts: &[&Text], family: usize) -> Fitted {
    let system = system(texts, family);
    let mut weights = vec![0.0; FEATURES];
    descend(&system, &mut weights, 250, |feature, weight| weight.max(least(feature)));
    let pairs = levels(&weights[PAIRS..WIDES]);
    let wides = levels(&weights[WIDES..]);
    let admit = |feature: usize, weight: f64| match feature {
        0..PAIRS => weight.max(least(feature)),
        PAIRS..WIDES => pairs[nearest(&pairs, weight)],
        _ => wides[nearest(&wides, weight)],
    };
    descend(&system, &mut weights, 12, admit);
    // Then the states alone, the neighbours as they are.
    let fixed = weights.clone();
    descend(&system, &mut weights, 60, |feature, weight| {
        if feature < PAIRS { weight.max(least(feature)) } else { fixed[feature] }
    });
    let index = |levels: &[f64], weights: &[f64]| {
        weights.iter().map(|weight| nearest(levels, *weight)).collect()
    };
    Fitted {
        states: weights[..PAIRS].iter().map(|weight| (weight * UNIT).round() as u16).collect(),
        pairs: (pairs.clone(), index(&pairs, &weights[PAIRS..WIDES])),
        wides: (wides.clone(), index(&wides, &weights[WIDES..])),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [tokens, corpus, out] = &arguments[..] else { panic!("usage: TOKENS CORPUS OUT") };
    let known = known(corpus);
    let texts = load(tokens, corpus, &known);
    let train: Vec<&Text> = texts.iter().filter(|text| text.train).collect();
    let mut fitted = Vec::new();
    for (family, name) in FAMILIES.iter().enumerate() {
        let result = fit(&train, family);
        report(&texts, family, name, &result);
        fitted.push(result);
    }
    fs::write(out, source(&fitted, &known)).expect("to write the table");
}

/// Prints the error of each class of the texts that were not fitted.
fn report(texts: &[Text], family: usize, name: &str, fitted: &Fitted) {
    let mut classes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut errors = Vec::new();
    for text in texts.iter().filter(|text| !text.train) {
        let found = text.scanned.iter().flat_map(|(_, found)| found);
        let sum: f64 = found.map(|feature| fitted.weight(*feature)).sum();
        let (estimated, real) = classes.entry(&text.class).or_default();
        *estimated += sum;
        *real += text.tokens(family);
        errors.push((sum / text.tokens(family) - 1.0, &text.name));
    }
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = errors.iter().map(|error| error.0).sum::<f64>() / errors.len() as f64;
    let size = errors.iter().map(|error| error.0.abs()).sum::<f64>() / errors.len() as f64;
    let percent = |error: f64| format!("{:+.1}", error * 100.0);
    println!(
        "{name}: mean {}%, size {}%, worst {:?} {:?}",
        percent(mean),
        percent(size),
        errors[0],
        errors.last()
    );
    let all: Vec<String> = classes
        .iter()
        .map(|(class, (estimated, real))| format!("{class} {}", percent(estimated / real - 1.0)))
        .collect();
    println!("  {}", all.join(", "));
    let bad: Vec<String> = errors
        .iter()
        .filter(|error| error.0.abs() > 0.08)
        .map(|error| format!("{} {}", error.1, percent(error.0)))
        .collect();
    println!("  {}", bad.join(", "));
}

fn source(fitted: &[Fitted], known: &[u32]) -> String {
    let mut out = String::from(
        "//! Written by `npm --prefix js run fit`; do not edit.\n//!\n\
         //! Weights in 1,024ths of a token, by family: o200k, cl100k, claude, llama3, gemini.\n\n\
         use super::scan::{Costs, STATES};\n\n\
         /// Families with weights, in the order of [`super::Family`].\n\
         pub(super) const COUNT: usize = 5;\n\n\
         pub(super) fn costs(family: usize) -> Box<Costs> {\n\
         \x20   let level = |levels: &[[u16; 16]; COUNT], places: &[u8], at: usize| {\n\
         \x20       levels[family][usize::from(places[at / 2] >> (at % 2 * 4) & 15)]\n\
         \x20   };\n\
         \x20   Box::new(Costs::new(\n\
         \x20       |state| WEIGHTS[state][family],\n\
         \x20       |pair| level(&PAIR_LEVELS, &PAIRS[family], pair),\n\
         \x20       |wide| level(&WIDE_LEVELS, &WIDES[family], wide),\n\
         \x20       &SEEN,\n\
         \x20   ))\n}\n\n\
         /// By state of the scan.\n#[rustfmt::skip]\nstatic WEIGHTS: [[u16; COUNT]; STATES] = [\n",
    );
    for state in 0..STATES {
        let row: Vec<String> =
            fitted.iter().map(|family| family.states[state].to_string()).collect();
        writeln!(out, "    [{}], // {}", row.join(", "), describe(state)).unwrap();
    }
    out.push_str("];\n");
    table(&mut out, "PAIR", "pairs of ASCII characters", fitted.iter().map(|family| &family.pairs));
    table(
        &mut out,
        "WIDE",
        "characters beyond ASCII, then pairs of them",
        fitted.iter().map(|family| &family.wides),
    );
    let byte = |places: &[u32]| {
        let bits = (0..).zip(places).map(|(bit, texts)| u8::from(*texts > 0) << bit);
        bits.sum::<u8>().to_string()
    };
    let bytes: Vec<String> = known.chunks(8).map(byte).collect();
    let rows: Vec<String> = bytes.chunks(32).map(|row| format!("    {},", row.join(","))).collect();
    writeln!(out, "\n/// Han and hangul characters of the fitted texts: bits by hash.").unwrap();
    writeln!(
        out,
        "#[rustfmt::skip]\nstatic SEEN: [u8; {}] = [\n{}\n];",
        bytes.len(),
        rows.join("\n")
    )
    .unwrap();
    out
}

/// The levels of a family's weights, and two places among them to a byte.
fn table<'a>(
    out: &mut String,
    name: &str,
    what: &str,
    families: impl Iterator<Item = &'a (Vec<f64>, Vec<usize>)> + Clone,
) {
    writeln!(out, "\n/// Weights that {what} may have.").unwrap();
    writeln!(out, "#[rustfmt::skip]\nstatic {name}_LEVELS: [[u16; 16]; COUNT] = [").unwrap();
    for (levels, _) in families.clone() {
        let row: Vec<String> = levels.iter().map(|level| format!("{}", level * UNIT)).collect();
        writeln!(out, "    [{}],", row.join(", ")).unwrap();
    }
    let size = families.clone().next().unwrap().1.len() / 2;
    writeln!(
        out,
        "];\n\n/// Which of them each has, by hash: two to a byte, the lower half first."
    )
    .unwrap();
    writeln!(out, "#[rustfmt::skip]\nstatic {name}S: [[u8; {size}]; COUNT] = [").unwrap();
    for (_, places) in families {
        out.push_str("    [\n");
        for line in places.chunks(64) {
            let bytes: Vec<String> =
                line.chunks(2).map(|two| (two[0] | two[1] << 4).to_string()).collect();
            writeln!(out, "        {},", bytes.join(",")).unwrap();
        }
        out.push_str("    ],\n");
    }
    out.push_str("];\n");
}

/// What a state stands for.
fn describe(state: usize) -> String {
    let runs = [
        (scan::LINE, "line break"),
        (scan::TAB, "tab"),
        (scan::INDENT, "indentation"),
        (scan::SPACE, "space"),
        (scan::MARK, "mark"),
        (scan::SPACED_MARK, "mark after space"),
        (scan::MARKS, "further mark"),
        (scan::DIGIT, "digit"),
        (scan::JOINED_DIGIT, "digit after a word"),
        (scan::WORD, "letter"),
        (scan::JOINED, "letter, joined"),
        (scan::TITLE, "letter of a capitalized word"),
        (scan::JOINED_TITLE, "letter of a capitalized word, joined"),
        (scan::CAPITAL, "capital"),
        (scan::JOINED_CAPITAL, "capital, joined"),
        (scan::RISE, "letter after a rise of case"),
        (scan::MIXED_UPPER, "capital in mixed case"),
        (scan::MIXED_LOWER, "small letter in mixed case"),
        (scan::ID_LOWER, "letter of an id"),
        (scan::ID_UPPER, "capital of an id"),
        (scan::ID_DIGIT, "digit of an id"),
        (scan::ACCENTED, "letter after a diacritic"),
        (WIDE, "script"),
        (scan::UNSEEN_HAN, "unseen Han"),
        (scan::UNSEEN_HANGUL, "unseen hangul"),
    ];
    let (first, name) = runs.iter().rev().find(|(first, _)| *first <= state).unwrap();
    if *first == WIDE {
        let place = if state.is_multiple_of(2) { "first" } else { "further" };
        return format!("script {}, {place}", (state - WIDE) / 2);
    }
    format!("{name} {}", state - first + 1)
}

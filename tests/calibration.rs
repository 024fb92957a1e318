//! What usage reports teach, against the counts of real tokenizers.

mod common;

use common::build::{assistant, user};
use common::host::Host;
use tidemark::{PlanRequest, Usage};

/// Tokens around a message, as vendors publish them.
const FRAMING: f64 = 4.0;

/// Tokenizers in the order of the columns of the corpus's counts.
const TOKENIZERS: [&str; 5] = ["o200k", "cl100k", "claude", "llama3", "gemini"];

/// A piece of a text, and what each tokenizer counts.
type Piece = (String, [f64; 5]);

/// The longer texts of a class, each in six pieces: content that is steady.
fn steady(class: &str) -> Vec<Vec<Piece>> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
    let read = |file: &str| std::fs::read_to_string(format!("{corpus}{file}")).unwrap();
    let counts = read("pieces.tsv");
    let rows: Vec<Vec<&str>> = counts.lines().map(|row| row.split('\t').collect()).collect();
    let of_class = |row: &&Vec<&str>| row[0].split(['/', '.']).nth(1) == Some(class);
    let rows: Vec<&Vec<&str>> = rows.iter().filter(of_class).collect();
    let texts = rows.chunk_by(|a, b| a[0] == b[0]).map(|rows| {
        let text = read(rows[0][0]);
        let mut from = 0;
        let piece = |row: &&Vec<&str>| {
            let end = row[1].parse().unwrap();
            let piece = text[std::mem::replace(&mut from, end)..end].to_owned();
            (piece, std::array::from_fn(|at| row[2 + at].parse().unwrap()))
        };
        rows.iter().map(piece).collect()
    });
    texts.collect()
}

/// One conversation: a text a turn, each call's real size handed to the next plan.
struct Talk {
    host: Host,
    tokenizer: usize,
    said: Vec<String>,
    /// Real tokens of what was said.
    real: f64,
    usage: Option<Usage>,
}

impl Talk {
    fn new(family: &str, tokenizer: usize) -> Talk {
        let options = format!(r#"{{"window":10000000,"tokenizer":"{family}"}}"#);
        Talk { host: Host::new(&options), tokenizer, said: Vec::new(), real: 0.0, usage: None }
    }

    /// Says a text; gives the error of the estimate, as a share of the real size.
    fn turn(&mut self, (text, real): &Piece) -> f64 {
        let say = if self.said.len().is_multiple_of(2) { user } else { assistant };
        self.said.push(say(text));
        self.real += real[self.tokenizer] + FRAMING;
        let json = format!("[{}]", self.said.join(","));
        self.host.engine.ingest(0, &json, &[]).unwrap();
        let usage = self.usage.replace(Usage { input_tokens: self.real });
        self.host.plan(PlanRequest { usage, ..PlanRequest::default() });
        f64::from(self.host.engine.estimate().tokens) / self.real - 1.0
    }

    /// The prose leaves, as after a burst.
    fn forget(&mut self) {
        self.said.clear();
        self.real = 0.0;
    }
}

/// Sizes of the errors of a turn, in percent, over texts, tokenizers and families: the median, the
/// worst of nine in ten, and the worst.
fn measure(turn: usize, run: impl Fn(&mut Talk, usize) -> Option<Vec<f64>>) -> [f64; 3] {
    let mut errors = Vec::new();
    for (tokenizer, own) in TOKENIZERS.into_iter().enumerate() {
        for family in [own, "o200k"] {
            let of = |text| run(&mut Talk::new(family, tokenizer), text);
            errors.extend((0..).map_while(of).map(|errors| errors[turn].abs() * 100.0));
        }
    }
    assert!(errors.len() >= 30);
    errors.sort_by(f64::total_cmp);
    [0.5, 0.9, 1.0].map(|share| errors[((errors.len() - 1) as f64 * share) as usize])
}

/// [`measure`] over the texts of one class, each a conversation of its own.
fn steadily(class: &str, turn: usize) -> [f64; 3] {
    let texts = steady(class);
    measure(turn, |talk, at| Some(texts.get(at)?.iter().map(|piece| talk.turn(piece)).collect()))
}

/// [`measure`] after each shift from a text of one class to one of another.
fn shifted(from: &str, to: &str, turn: usize) -> [f64; 3] {
    let (before, after) = (steady(from), steady(to));
    measure(turn, |talk, at| {
        for piece in before.get(at / after.len())? {
            talk.turn(piece);
        }
        talk.forget();
        Some(after[at % after.len()].iter().map(|piece| talk.turn(piece)).collect())
    })
}

/// [`measure`] of the turns from a large result on, which comes between pieces of another text.
fn interrupted(by: &str, turn: usize) -> [f64; 3] {
    let (prose, results) = (steady("english"), steady(by));
    measure(turn, |talk, at| {
        let text = prose.get(at / results.len())?;
        let (before, after) = text.split_at(3);
        for piece in before {
            talk.turn(piece);
        }
        let whole =
            results[at % results.len()].iter().fold(Piece::default(), |mut whole, piece| {
                whole.0.push_str(&piece.0);
                whole.1.iter_mut().zip(piece.1).for_each(|(sum, tokens)| *sum += tokens);
                whole
            });
        Some([&whole].into_iter().chain(after).map(|piece| talk.turn(piece)).collect())
    })
}

/// Pieces have 150 tokens, so that the one that is new makes a third of the view: what is left of
/// the error is its own. With more turns, and larger ones, it fades.
#[test]
fn two_samples_of_steady_content_bring_the_error_under_two_percent() {
    for class in ["english", "json", "code", "logs"] {
        let ([uncalibrated, ..], [settled, ..]) = (steadily(class, 0), steadily(class, 2));
        assert!(settled < 2.0, "{class}: {settled}");
        let [settled, most, _] = steadily(class, 5);
        assert!(settled < 0.8 && most < 2.0, "{class}, after five: {settled}, {most}");
        assert!(settled < uncalibrated, "{class}, after five: {settled}, {uncalibrated}");
    }
    let [_, most, worst] = steadily("json", 2);
    assert!(most < 2.0 && worst < 4.0, "{most}, {worst}");
}

#[test]
fn a_shift_of_content_is_caught_in_two_turns() {
    let [_, before, _] = shifted("english", "json", 0);
    assert!(before > 6.0, "{before}: no shift");
    let [_, most, worst] = shifted("english", "json", 2);
    assert!(most < 2.0 && worst < 4.0, "{most}, {worst}");
    for (from, to) in [("json", "english"), ("code", "logs"), ("logs", "json")] {
        let [settled, most, _] = shifted(from, to, 2);
        assert!(settled < 2.0 && most < 3.0, "{from} to {to}: {settled}, {most}");
    }
}

#[test]
fn one_report_tells_what_a_large_change_of_content_costs() {
    let [_, _, before] = shifted("english", "cyrillic", 0);
    assert!(before > 30.0, "{before}: no shift");
    for (from, to) in [("english", "cyrillic"), ("cyrillic", "english"), ("code", "logs")] {
        let [settled, most, worst] = shifted(from, to, 1);
        assert!(settled < 3.0 && most < 5.0 && worst < 8.0, "{from} to {to}: {most}, {worst}");
    }
    for by in ["json", "logs", "cyrillic"] {
        let [settled, most, worst] = interrupted(by, 1);
        assert!(settled < 0.5 && most < 2.0 && worst < 4.0, "{by}: {settled}, {most}, {worst}");
    }
}

#[test]
fn a_report_is_used_once() {
    let mut talk = Talk::new("o200k", 2);
    for piece in &steady("json")[0] {
        talk.turn(piece);
    }
    let ratio = |talk: &Talk| talk.host.engine.estimate().ratio;
    let before = ratio(&talk);
    // A report that is off by two, and the host plans again before it sends.
    let strange = Some(Usage { input_tokens: talk.real * 2.0 });
    let report = || PlanRequest { usage: strange, ..PlanRequest::default() };
    talk.host.plan(report());
    let learned = ratio(&talk);
    assert!(learned > before * 1.3, "{before}, {learned}");
    talk.host.plan(report());
    talk.host.plan(report());
    assert_eq!(ratio(&talk), learned);
    // The next one decides.
    talk.usage = Some(Usage { input_tokens: talk.real + 1.0 });
    let error = talk.turn(&steady("json")[0][5]);
    assert!(error.abs() < 0.05, "{error}");
}

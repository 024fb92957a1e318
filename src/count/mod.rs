//! Token estimates from one pass over the text.
//!
//! A tokenizer's table is megabytes; what makes a text dear or cheap is carried by its runs (words
//! and their length, changes of case, groups of digits, indentation, marks), by which letters and
//! marks stand side by side, and by script. [`scan`] adds up a weight for each; [`families`] has
//! the weights, fitted for each family of tokenizers to the counts of real ones. Calibration by
//! reported usage does the rest.
mod families;
pub(crate) mod media;
mod scan;

use std::sync::OnceLock;

/// Tokens around each message: role and delimiters. OpenAI's cookbook counts 3 and one for the
/// role on the models since gpt-3.5-turbo-0613.
pub(crate) const MESSAGE_FRAMING: u32 = 4;

/// Tokenizers whose counts are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// OpenAI's o200k_base: GPT-4o and later. Also what unknown models are counted with.
    #[default]
    O200k,
    /// OpenAI's cl100k_base: GPT-4, GPT-3.5, embeddings.
    Cl100k,
    /// The vocabulary that Anthropic published; that of its newer models is not public, and
    /// counts up to a fifth more.
    Claude,
    /// Llama 3 and 4.
    Llama3,
    /// Gemini and Gemma: SentencePiece.
    Gemini,
    /// A token for each byte: models without a tokenizer, and the most that any can count.
    Bytes,
}

/// Families by the name that options give.
const NAMES: [(&str, Family); 6] = [
    ("o200k", Family::O200k),
    ("cl100k", Family::Cl100k),
    ("claude", Family::Claude),
    ("llama3", Family::Llama3),
    ("gemini", Family::Gemini),
    ("bytes", Family::Bytes),
];

/// Families by how a model id, or what follows a vendor's name in it, begins. The first that fits.
const MODELS: [(&str, Family); 17] = [
    ("gpt-4o", Family::O200k),
    ("gpt-4.", Family::O200k),
    ("gpt-4", Family::Cl100k),
    ("gpt-3.5", Family::Cl100k),
    ("gpt-35", Family::Cl100k),
    ("text-embedding", Family::Cl100k),
    ("gpt-", Family::O200k),
    ("chatgpt", Family::O200k),
    ("o1", Family::O200k),
    ("o3", Family::O200k),
    ("o4", Family::O200k),
    ("claude", Family::Claude),
    ("gemini", Family::Gemini),
    ("gemma", Family::Gemini),
    ("llama", Family::Llama3),
    ("meta-llama", Family::Llama3),
    ("byt5", Family::Bytes),
];

impl Family {
    /// The family of that name.
    pub(crate) fn parse(name: &str) -> Option<Family> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, family)| *family)
    }

    /// All names, for errors.
    pub(crate) fn names() -> String {
        NAMES.map(|(name, _)| name).join(", ")
    }

    /// The family that counts for a model: `gpt-5`, `us.anthropic.claude-sonnet-4-5-v1:0`,
    /// `google/gemini-2.5-pro`. None for ids that say nothing.
    pub(crate) fn of_model(id: &str) -> Option<Family> {
        by_model(&MODELS, id)
    }

    /// Estimated tokens of a text.
    pub(crate) fn text(self, text: &str) -> u32 {
        match self.costs() {
            Some(costs) => tokens(text, costs.sum::<false>(text)),
            None => u32::try_from(text.len()).unwrap_or(u32::MAX),
        }
    }

    /// Estimated tokens of the text that the inside of a JSON string stands for: what [`text`]
    /// says of it, without the work of decoding it.
    ///
    /// [`text`]: Family::text
    pub(crate) fn escaped(self, inside: &str) -> u32 {
        match self.costs() {
            Some(costs) => tokens(inside, costs.sum::<true>(inside)),
            None => u32::try_from(scan::decoded_length(inside)).unwrap_or(u32::MAX),
        }
    }

    /// The weights, laid out at the first use.
    fn costs(self) -> Option<&'static scan::Costs> {
        static COSTS: [OnceLock<Box<scan::Costs>>; families::COUNT] =
            [const { OnceLock::new() }; families::COUNT];
        let family = self as usize;
        let cell = COSTS.get(family)?;
        Some(cell.get_or_init(|| families::costs(family)))
    }
}

/// What a table has for a model id: its first row whose prefix begins the id, or begins what
/// follows a vendor's name in it.
fn by_model<T: Copy>(rows: &[(&str, T)], id: &str) -> Option<T> {
    let id = id.to_ascii_lowercase();
    let begins = |prefix: &str| {
        id.match_indices(prefix)
            .any(|(at, _)| at == 0 || !id.as_bytes()[at - 1].is_ascii_alphanumeric())
    };
    rows.iter().find(|(prefix, _)| begins(prefix)).map(|(_, value)| *value)
}

/// Weights are in 1,024ths of a token; whatever is not empty is one at least.
fn tokens(text: &str, sum: u64) -> u32 {
    let least = u32::from(!text.is_empty());
    u32::try_from(sum.div_ceil(1024)).unwrap_or(u32::MAX).max(least)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::{fs, path};

    use proptest::prelude::*;

    use super::*;

    /// Families that weights were fitted for, in the order of the columns of `truth.tsv`.
    const FITTED: [Family; 5] =
        [Family::O200k, Family::Cl100k, Family::Claude, Family::Llama3, Family::Gemini];

    fn corpus(file: &str) -> String {
        let corpus = path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        fs::read_to_string(corpus.join(file)).unwrap()
    }

    /// How far the estimate of a class of texts may be off, in percent.
    fn bar(class: &str) -> f64 {
        match class {
            "code" | "csv" | "diff" | "english" | "json" | "logs" | "markdown" | "markup"
            | "minified" | "tools" | "urls" => 5.0,
            _ => 6.0,
        }
    }

    #[test]
    fn texts_that_were_not_fitted_are_estimated_within_the_bars() {
        let truth = corpus("truth.tsv");
        for (column, family) in FITTED.into_iter().enumerate() {
            let mut classes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
            let mut errors = Vec::new();
            for row in truth.lines().filter(|row| row.starts_with("test/")) {
                let fields: Vec<&str> = row.split('\t').collect();
                let class = fields[0]["test/".len()..].split('.').next().unwrap();
                let real: f64 = fields[1 + column].parse().unwrap();
                let estimated = f64::from(family.text(&corpus(fields[0])));
                let sums = classes.entry(class).or_default();
                *sums = (sums.0 + estimated, sums.1 + real);
                errors.push(estimated / real - 1.0);
            }
            assert!(errors.len() > 150);
            let mean = errors.iter().sum::<f64>() / errors.len() as f64 * 100.0;
            assert!(mean.abs() <= 2.0, "{family:?}: mean {mean:.1} %");
            for (class, (estimated, real)) in classes {
                let error = (estimated / real - 1.0) * 100.0;
                assert!(error.abs() <= bar(class), "{family:?}, {class}: {error:.1} %");
            }
        }
    }

    #[test]
    fn names_and_model_ids_choose_a_family() {
        assert_eq!(Family::parse("llama3"), Some(Family::Llama3));
        assert_eq!(Family::parse("Llama3"), None);
        for (id, family) in [
            ("gpt-4o-mini", Family::O200k),
            ("gpt-4.1", Family::O200k),
            ("gpt-4-turbo", Family::Cl100k),
            ("openai/gpt-5", Family::O200k),
            ("o3-mini", Family::O200k),
            ("us.anthropic.claude-sonnet-4-5-v1:0", Family::Claude),
            ("google/gemini-2.5-pro", Family::Gemini),
            ("models/gemma-3-27b", Family::Gemini),
            ("meta-llama/Llama-3.3-70B-Instruct", Family::Llama3),
        ] {
            assert_eq!(Family::of_model(id), Some(family), "{id}");
        }
        assert_eq!(Family::of_model("solo3"), None);
        assert_eq!(Family::of_model(""), None);
    }

    #[test]
    fn bytes_are_counted_as_bytes() {
        assert_eq!(Family::Bytes.text("naïve"), 6);
        assert_eq!(Family::Bytes.escaped(r"na\u00efve\n\ud83d\ude00\ud83d"), 6 + 1 + 4 + 3);
    }

    #[test]
    fn nothing_costs_nothing_and_anything_something() {
        for family in FITTED {
            assert_eq!(family.text(""), 0);
            for text in [" ", "\n", "a", "é", "汉", "\0", "\u{10FFFF}"] {
                assert!((1..=8).contains(&family.text(text)), "{family:?} {text:?}");
            }
        }
    }

    #[test]
    fn anything_cut_off_inside_an_escape_is_counted() {
        for text in [r"\", r"\u", r"\u12", r"\ud83d", r"\ud83d\u", r"\ud83d\ude0", r"\é", r"\u00é"]
        {
            Family::O200k.escaped(text);
            Family::Bytes.escaped(text);
        }
    }

    proptest! {
        #[test]
        fn escaped_text_counts_as_what_it_stands_for(
            parts in prop::collection::vec(
                prop_oneof![
                    "[ -~]{0,12}", "\\PC{0,6}", "[\\n\\t\\r\"\\\\/]{1,4}",
                    Just("日本語のテキスト".to_owned()), Just("👩‍💻🇩🇪".to_owned()), Just("\u{8}\u{1}".to_owned()),
                ],
                0..12,
            ),
            ascii in any::<bool>(),
        ) {
            let text = parts.concat();
            let mut inside = String::new();
            crate::json::write_string(&mut inside, &text);
            let mut inside = inside[1..inside.len() - 1].to_owned();
            if ascii {
                inside = inside.encode_utf16().map(|unit| match unit {
                    0x20..0x7F => char::from(unit as u8).to_string(),
                    _ => format!("\\u{unit:04X}"),
                }).collect();
            }
            for (_, family) in NAMES {
                prop_assert_eq!(family.escaped(&inside), family.text(&text));
            }
        }
    }
}

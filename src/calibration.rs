//! Calibration: how many real tokens a provider counts for one of ours.

/// What one model's usage reports taught.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub model: String,
    /// Not where the last report was doubted: the next one decides.
    pub settled: bool,
    /// Real tokens per estimated token.
    pub ratio: f64,
    /// The last report that was believed: estimated and real tokens.
    pub last: (u32, u32),
}

/// One state per model, since tokenizers differ.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calibration {
    pub models: Vec<Learned>,
}

impl Calibration {
    pub(crate) fn ratio(&self, model: &str) -> f64 {
        let learned = self.models.iter().find(|learned| learned.model == model);
        learned.map_or(1.0, |learned| learned.ratio)
    }

    fn of(&mut self, model: &str) -> &mut Learned {
        let at = self.models.iter().position(|learned| learned.model == model);
        let at = at.unwrap_or_else(|| {
            self.models.push(Learned {
                model: model.to_owned(),
                settled: false,
                ratio: 1.0,
                last: (0, 0),
            });
            self.models.len() - 1
        });
        &mut self.models[at]
    }

    /// Takes one usage report: `real` tokens for a view estimated at `raw`. Reports that no
    /// tokenizer can explain (see [`PLAUSIBLE`]) measure something else (a part of the prompt,
    /// another request) and are left aside.
    ///
    /// The next view is mostly the one that was measured, so a report counts whole. One that is off
    /// by more than [`SURPRISE`] must be explained by what came into the view or left it; otherwise
    /// it weighs a half, and the next one decides.
    ///
    /// The same report again, of a view that has not changed, is the same sample.
    ///
    /// Some servers cut what does not fit and report the size of the rest. A report that stands
    /// still while the view has grown is such a one, unless the last report was doubted; a ratio
    /// that could only come from one is taken back.
    pub(crate) fn sample(&mut self, model: &str, real: f64, raw: u32) {
        let seen = real / f64::from(raw.max(1));
        if !PLAUSIBLE.contains(&seen) {
            return;
        }
        let learned = self.of(model);
        if learned.last == (raw, real as u32) {
            return;
        }
        let (before, real_before) = (f64::from(learned.last.0), f64::from(learned.last.1));
        let (grown, more) = (f64::from(raw) - before, real - real_before);
        let stands_still = before > 0.0 && more * PLAUSIBLE.end() < grown;
        if learned.settled && grown > GROWTH && stands_still {
            if learned.ratio < TRUNCATED {
                learned.ratio = 1.0;
            }
            return;
        }
        let explained = match grown > 0.0 {
            true => !stands_still && more <= grown * learned.ratio * DEARER + GROWTH,
            false => -grown > before * SURPRISE,
        };
        let surprising = (seen / learned.ratio - 1.0).abs() > SURPRISE;
        let doubted = learned.settled && before > 0.0 && surprising && !explained;
        let ratio = if doubted { f64::midpoint(learned.ratio, seen) } else { seen };
        learned.last = (raw, real as u32);
        learned.settled = !doubted;
        learned.ratio = rounded(ratio);
    }

    /// The estimate was at least this much too low: an overflow proved it.
    pub(crate) fn raise(&mut self, model: &str, ratio: f64) {
        let ratio = ratio.clamp(*PLAUSIBLE.start(), *PLAUSIBLE.end());
        let learned = self.of(model);
        learned.settled = true;
        learned.ratio = rounded(learned.ratio.max(ratio));
    }
}

/// To millionths, as the checkpoint keeps it: a restored session must decide alike.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1e6).round() / 1e6
}

/// From one call to the next, and over a burst, real views change by less.
const SURPRISE: f64 = 0.2;

/// Tokens by which a view grows that a report cannot miss.
const GROWTH: f64 = 32.0;

/// No tokenizer reads twice as well as estimated; a prompt that was cut looks so.
const TRUNCATED: f64 = 0.5;

/// What is new in a view may be so much dearer than what was there: Cyrillic after English.
const DEARER: f64 = 2.0;

/// Real tokens per estimated one. Counted for o200k, Georgian is 6.4 times as long for the
/// tokenizer of Llama 3, and Gujarati 7.4 times for that of Claude; what is less than a fifth is a
/// part of the prompt.
pub(crate) const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.2..=8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Family;

    #[test]
    fn the_first_sample_decides_and_outliers_count_not_at_all() {
        let mut calibration = Calibration::default();
        calibration.sample("m", 200.0, 100);
        assert_eq!(calibration.ratio("m"), 2.0);
        calibration.sample("m", 204.0, 100);
        assert_eq!(calibration.ratio("m"), 2.04);
        calibration.sample("m", 100_000.0, 100);
        calibration.sample("m", 10.0, 100);
        calibration.sample("m", f64::NAN, 100);
        assert_eq!(calibration.ratio("m"), 2.04);
        assert_eq!(calibration.ratio("other"), 1.0);
    }

    #[test]
    fn one_strange_report_does_not_stand_against_the_next() {
        let mut calibration = Calibration::default();
        for _ in 0..8 {
            calibration.sample("m", 100.0, 100);
        }
        calibration.sample("m", 130.0, 100);
        assert_eq!(calibration.ratio("m"), 1.15);
        calibration.sample("m", 100.0, 100);
        assert_eq!(calibration.ratio("m"), 1.0);
    }

    #[test]
    fn nor_where_the_view_grows_after_it() {
        let mut calibration = Calibration::default();
        calibration.sample("m", 1000.0, 1000);
        calibration.sample("m", 2200.0, 1100);
        assert_eq!(calibration.ratio("m"), 1.5);
        calibration.sample("m", 1200.0, 1200);
        assert_eq!(calibration.ratio("m"), 1.0);
    }

    #[test]
    fn a_large_change_of_content_is_believed_at_once() {
        let mut calibration = Calibration::default();
        calibration.sample("m", 1000.0, 1000);
        // A result comes whose tokens are dearer by half, and with a burst it leaves.
        calibration.sample("m", 7000.0, 5000);
        assert_eq!(calibration.ratio("m"), 1.4);
        calibration.sample("m", 1500.0, 1500);
        assert_eq!(calibration.ratio("m"), 1.0);
    }

    #[test]
    fn a_prompt_that_was_cut_teaches_nothing() {
        let mut calibration = Calibration::default();
        calibration.sample("m", 4000.0, 4000);
        for view in [6000, 12_000, 20_000] {
            calibration.sample("m", 4096.0, view);
            assert_eq!(calibration.ratio("m"), 1.0);
        }
        // One that was cut from the start on is believed until the next.
        calibration.sample("n", 4096.0, 12_000);
        calibration.sample("n", 4096.0, 13_000);
        calibration.sample("n", 4090.0, 14_000);
        assert_eq!(calibration.ratio("n"), 1.0);
    }

    #[test]
    fn what_another_tokenizer_reads_far_worse_is_learned() {
        let llama3 = 4;
        let texts = turns("georgian", Family::O200k, llama3);
        assert!(texts.iter().any(|(estimate, real)| real / f64::from(*estimate) > 6.0));
        for (estimate, real) in texts {
            let mut calibration = Calibration::default();
            calibration.sample("m", real, estimate);
            let error = f64::from(estimate) * calibration.ratio("m") / real - 1.0;
            assert!(error.abs() < 1e-5, "{error}");
        }
    }

    /// Estimated tokens of texts of a class, and what another tokenizer really counts.
    fn turns(class: &str, family: Family, real: usize) -> Vec<(u32, f64)> {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/");
        let read = |file: &str| std::fs::read_to_string(format!("{corpus}{file}")).unwrap();
        let truth = read("truth.tsv");
        let rows = truth.lines().filter(|row| row.split(['/', '.']).nth(1) == Some(class));
        rows.map(|row| {
            let fields: Vec<&str> = row.split('\t').collect();
            (family.text(&read(fields[0])), fields[real].parse().unwrap())
        })
        .collect()
    }

    #[test]
    fn two_samples_settle_it_and_a_shift_from_prose_to_json_is_caught_in_two_turns() {
        let [o200k, cl100k, claude, gemini] = [1, 2, 3, 5];
        for (family, tokenizer) in [
            (Family::O200k, o200k),
            (Family::O200k, cl100k),
            (Family::O200k, claude),
            (Family::Claude, claude),
            (Family::Gemini, gemini),
        ] {
            let mut calibration = Calibration::default();
            let mut view = (0, 0.0);
            let mut errors = Vec::new();
            let mut turn = |view: &mut (u32, f64), text: &(u32, f64)| {
                *view = (view.0 + text.0, view.1 + text.1);
                let estimate = f64::from(view.0) * calibration.ratio("m");
                calibration.sample("m", view.1, view.0);
                (estimate / view.1 - 1.0).abs()
            };
            for text in turns("english", family, tokenizer) {
                errors.push(turn(&mut view, &text));
            }
            for (at, error) in errors.iter().enumerate().skip(2) {
                assert!(*error < 0.02, "prose, turn {at}: {error}");
            }
            // A burst took the prose away; what comes now is JSON.
            view = (0, 0.0);
            errors.clear();
            for text in turns("json", family, tokenizer) {
                errors.push(turn(&mut view, &text));
            }
            for (at, error) in errors.iter().enumerate().skip(2) {
                assert!(*error < 0.03, "JSON, turn {at}: {error}, {errors:?}");
            }
        }
    }
}

//! Calibration: how many real tokens a provider counts for one of ours.

/// What one model's usage reports taught.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub model: String,
    /// Samples so far; 0 where the next one decides.
    pub samples: u32,
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
                samples: 0,
                ratio: 1.0,
                last: (0, 0),
            });
            self.models.len() - 1
        });
        &mut self.models[at]
    }

    /// Takes one usage report: `real` tokens for a view estimated at `raw`. Reports off by more
    /// than the factor [`OUTLIER`] measure something else (a truncated prompt, another request)
    /// and are left aside.
    ///
    /// The next view is mostly the one that was measured, so a sample weighs nearly as much as all
    /// before it. One that is off by more than [`SURPRISE`] tells of a large change of content, or
    /// is wrong: it weighs a half, and the next one decides.
    ///
    /// The same report again, of a view that has not changed, is the same sample.
    ///
    /// Some servers cut what does not fit and report the size of the rest. A report that stands
    /// still while the view has grown is such a one, and a ratio that could only come from one is
    /// taken back.
    pub(crate) fn sample(&mut self, model: &str, real: f64, raw: u32) {
        let seen = real / f64::from(raw.max(1));
        if !(1.0 / OUTLIER..=OUTLIER).contains(&seen) {
            return;
        }
        let learned = self.of(model);
        if learned.last == (raw, real as u32) {
            return;
        }
        let grown = f64::from(raw.saturating_sub(learned.last.0));
        let more = real - f64::from(learned.last.1);
        if learned.last.0 > 0 && grown > GROWTH && more * OUTLIER < grown {
            if learned.ratio < TRUNCATED {
                (learned.ratio, learned.samples) = (1.0, 0);
            }
            return;
        }
        learned.last = (raw, real as u32);
        let surprising = (seen / learned.ratio - 1.0).abs() > SURPRISE;
        let (weight, samples) = match learned.samples {
            0 => (1.0, 1),
            _ if surprising => (0.5, 0),
            before => (0.9, before.saturating_add(1)),
        };
        learned.samples = samples;
        learned.ratio = rounded(learned.ratio + (seen - learned.ratio) * weight);
    }

    /// The estimate was at least this much too low: an overflow proved it.
    pub(crate) fn raise(&mut self, model: &str, ratio: f64) {
        let ratio = ratio.clamp(1.0 / OUTLIER, OUTLIER);
        let learned = self.of(model);
        learned.samples = learned.samples.max(1);
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

/// Scripts and tokenizers differ by up to five from our estimate; more is no measurement.
const OUTLIER: f64 = 5.0;

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
        assert_eq!(calibration.ratio("m"), 2.036);
        calibration.sample("m", 100_000.0, 100);
        calibration.sample("m", f64::NAN, 100);
        assert_eq!(calibration.ratio("m"), 2.036);
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

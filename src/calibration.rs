//! Calibration: how many real tokens a provider counts for one of ours.

/// What one model's usage reports taught.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Learned {
    pub model: String,
    /// Samples so far.
    pub samples: u32,
    /// Real tokens per estimated token.
    pub ratio: f64,
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
            self.models.push(Learned { model: model.to_owned(), samples: 0, ratio: 1.0 });
            self.models.len() - 1
        });
        &mut self.models[at]
    }

    /// Takes one usage report: `real` tokens for a view estimated at `raw`. The first samples
    /// weigh 1/n, later ones a fifth. Reports off by more than the factor `OUTLIER` measure
    /// something else (a truncated prompt, another request) and are left aside.
    pub(crate) fn sample(&mut self, model: &str, real: f64, raw: u32) {
        let seen = real / f64::from(raw.max(1));
        if !(1.0 / OUTLIER..=OUTLIER).contains(&seen) {
            return;
        }
        let learned = self.of(model);
        learned.samples = learned.samples.saturating_add(1);
        let weight = (1.0 / f64::from(learned.samples)).max(0.2);
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

/// Scripts and tokenizers differ by up to five from our estimate; more is no measurement.
const OUTLIER: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_samples_count_most_and_outliers_not_at_all() {
        let mut calibration = Calibration::default();
        calibration.sample("m", 200.0, 100);
        assert_eq!(calibration.ratio("m"), 2.0);
        calibration.sample("m", 100.0, 100);
        assert_eq!(calibration.ratio("m"), 1.5);
        calibration.sample("m", 100_000.0, 100);
        calibration.sample("m", f64::NAN, 100);
        assert_eq!(calibration.ratio("m"), 1.5);
        assert_eq!(calibration.ratio("other"), 1.0);
    }
}

//! The checkpoint: the decisions as versioned JSON, to resume from.

use crate::arguments::{Arguments, parse};
use crate::calibration::{Learned, PLAUSIBLE};
use crate::count::media::sextet;
use crate::decision::{Action, Author, Decision, Place, Ref, Span, Summary};
use crate::engine::{Breaker, Engine, PLAUSIBLE_WINDOWS, Totals, hex};
use crate::error::{Error, ErrorCode};
use crate::format::FormatName;
use crate::json::{Value, write_string};
use crate::options::Options;
use crate::order::sort;

/// Version written by this build.
const VERSION: u32 = 1;

impl Engine {
    /// Everything that was decided, as JSON. It holds the session secret and the summary: keep
    /// it as safe as the transcript.
    pub fn checkpoint(&self) -> String {
        let mut out = Writer(String::from("{"));
        out.member("tidemark", VERSION);
        out.member("format", self.format_name.map_or("auto", FormatName::as_str));
        out.member("secret", &*hex(&self.secret));
        let parts = self.decisions.parts.iter().map(|(place, decision)| {
            let mut row = Writer(String::from("["));
            row.item(place.body).item(place.part).item(&*packed(decision)).close("]")
        });
        out.rows("parts", parts);
        if let Some(summary) = &self.decisions.summary {
            let mut saved = Writer(String::from("{"));
            saved.member("text", &*summary.text);
            saved.member("covered", summary.covered);
            saved.member("chain", &*hex(&summary.chain.to_be_bytes()));
            saved.member("ref", &*summary.reference.to_string());
            saved.member("by", summary.by.as_str());
            saved.member("version", summary.version);
            out.raw("summary", &saved.close("}"));
        }
        if self.decisions.dropped > 0 {
            let mut row = Writer(String::from("["));
            let chain = hex(&self.decisions.dropped_chain.to_be_bytes());
            out.raw("dropped", &row.item(self.decisions.dropped).item(&*chain).close("]"));
        }
        let kept = self.decisions.kept.iter();
        let kept =
            kept.map(|(from, to)| Writer(String::from("[")).item(*from).item(*to).close("]"));
        out.rows("kept", kept);
        let Totals { bursts, calls, saved, growth, seen } = self.totals;
        if bursts > 0 || seen > 0 {
            let mut row = Writer(String::from("["));
            row.item(bursts).item(calls).item(saved).item(growth).item(seen);
            out.raw("totals", &row.close("]"));
        }
        let spans = self.decisions.spans.iter().map(|span| {
            let mut row = Writer(String::from("["));
            row.item(&*span.reference.to_string()).item(span.covered);
            row.item(span.version).item(span.by.as_str()).close("]")
        });
        out.rows("spans", spans);
        let pins = self.decisions.pins.iter().map(|(body, spine)| {
            Writer(String::from("[")).item(*body).item(&*hex(&spine.to_be_bytes())).close("]")
        });
        out.rows("pins", pins);
        if self.flushed > 0 {
            out.member("flushed", self.flushed);
        }
        // Millionths: whole numbers are spelled the same everywhere.
        let calibration = self.calibration.models.iter().map(|learned| {
            let ratio = (learned.ratio * 1e6).round() as u32;
            let mut row = Writer(String::from("["));
            row.item(&*learned.model).item(u32::from(learned.settled)).item(ratio);
            row.item(learned.last.0).item(learned.last.1).close("]")
        });
        out.rows("calibration", calibration);
        let windows = self
            .windows
            .iter()
            .map(|(key, window)| Writer(String::from("[")).item(&**key).item(*window).close("]"));
        out.rows("windows", windows);
        if let Some(measured) = self.measured {
            out.member("measured", measured);
        }
        if let Some(before) = self.before_burst {
            out.member("beforeBurst", before);
        }
        if let Some(stale) = self.stale {
            out.member("staleUsage", stale);
        }
        if self.breaker != Breaker::default() {
            let mut row = Writer(String::from("["));
            row.item(self.breaker.failures).item(self.breaker.turns);
            out.raw("failures", &row.item(self.breaker.at).close("]"));
        }
        if self.rest.is_some() || self.low_savings > 0 {
            let (until, tail) = self.rest.unwrap_or_default();
            let mut row = Writer(String::from("["));
            out.raw("rest", &row.item(until).item(tail).item(self.low_savings).close("]"));
        }
        out.close("}")
    }

    /// Opens a session from a checkpoint. The decisions are held against the transcript at the
    /// next ingest, which must bring it whole; what does not match is let go with a notice.
    ///
    /// # Errors
    /// `invalid_checkpoint` naming the place, `unsupported_checkpoint` for a newer version or
    /// another format, and those of [`Engine::new`].
    pub fn restore(mut options: Options, checkpoint: &str) -> Result<Engine, Error> {
        let json = parse(checkpoint, "checkpoint", ErrorCode::InvalidCheckpoint)?;
        let saved = Saved::open(json.root())?;
        let name = saved.text("format")?;
        let format = FormatName::parse(&name);
        if format.is_none() && name != "auto" {
            return Err(damaged("format"));
        }
        if options.format.is_none() {
            options.format = format;
        } else if format.is_some() && format != options.format {
            let what = "it was made for another wire format than options.format";
            return Err(Error::at(ErrorCode::UnsupportedCheckpoint, "checkpoint.format", what));
        }
        options.secret = Some(saved.text("secret")?);
        let mut engine = Engine::new(options).map_err(|error| match error.path() {
            "options.secret" => damaged("secret"),
            _ => error,
        })?;
        let decisions = &mut engine.decisions;
        for row in saved.rows("parts")? {
            let (place, decision) = read_part(row).ok_or_else(|| damaged("parts"))?;
            decisions.parts.insert(place, decision);
        }
        if let Some(summary) = saved.0.get("summary") {
            decisions.summary = Some(read_summary(summary).ok_or_else(|| damaged("summary"))?);
        }
        for row in saved.rows("spans")? {
            decisions.spans.push(read_span(row).ok_or_else(|| damaged("spans"))?);
        }
        for row in saved.rows("pins")? {
            let mut row = row.items();
            let pin = row.next().and_then(|body| body.count()).zip(row.next().and_then(hash));
            decisions.pins.push(pin.ok_or_else(|| damaged("pins"))?);
        }
        sort(&mut decisions.pins, |(_, spine)| *spine);
        sort(&mut decisions.pins, |(body, _)| u64::from(*body));
        engine.flushed = saved.0.count("flushed")?.unwrap_or_default();
        let decisions = &mut engine.decisions;
        let mut dropped = saved.rows("dropped")?.into_iter();
        if let Some((upto, chain)) = dropped.next().zip(dropped.next()) {
            decisions.dropped = upto.count().ok_or_else(|| damaged("dropped"))?;
            decisions.dropped_chain = hash(chain).ok_or_else(|| damaged("dropped"))?;
        }
        for row in saved.rows("kept")? {
            let mut row = row.items().filter_map(|end| end.count());
            let range = row.next().zip(row.next()).filter(|(from, to)| from < to);
            let last = decisions.kept.last().map_or(decisions.covered(), |last| last.1);
            let range = range.filter(|range| last <= range.0 && range.1 <= decisions.dropped);
            decisions.kept.push(range.ok_or_else(|| damaged("kept"))?);
        }
        for row in saved.rows("calibration")? {
            let learned = read_learned(row).ok_or_else(|| damaged("calibration"))?;
            engine.calibration.models.push(learned);
        }
        for row in saved.rows("windows")? {
            let mut row = row.items();
            let key = row.next().and_then(|key| key.string());
            let window = row.next().and_then(|window| window.count());
            let (key, window) = key.zip(window).ok_or_else(|| damaged("windows"))?;
            if PLAUSIBLE_WINDOWS.contains(&window) {
                engine.learn_window(key.into_owned(), window);
            }
        }
        let totals = saved.rows("totals")?;
        if !totals.is_empty() {
            let mut totals = totals.into_iter().map(|total| total.count());
            let mut next = || totals.next().flatten().ok_or_else(|| damaged("totals"));
            engine.totals = Totals {
                bursts: next()?,
                calls: next()?,
                saved: next()?,
                growth: next()?,
                seen: next()?,
            };
        }
        engine.measured = saved.0.count("measured")?;
        engine.before_burst = saved.0.count("beforeBurst")?;
        engine.stale = saved.0.count("staleUsage")?;
        let failures = saved.rows("failures")?;
        if let [failures, turns, at @ ..] = &failures[..] {
            let read = |value: &Value<'_>| value.count().ok_or_else(|| damaged("failures"));
            let at = at.first().map_or(Ok(0), read)?;
            engine.breaker = Breaker { failures: read(failures)?, turns: read(turns)?, at };
        }
        let rest = saved.rows("rest")?;
        if let [until, tail, low] = &rest[..] {
            let read = |value: &Value<'_>| value.count().ok_or_else(|| damaged("rest"));
            let (until, tail) = (read(until)?, read(tail)?);
            engine.rest = (until > 0).then_some((until, tail));
            engine.low_savings = read(low)?;
        }
        engine.unverified = true;
        Ok(engine)
    }
}

/// Writes the checkpoint. Its layout is fixed here alone: the same decisions give the same bytes.
struct Writer(String);

enum Scalar<'a> {
    Number(u32),
    Text(&'a str),
}

impl From<u32> for Scalar<'_> {
    fn from(number: u32) -> Self {
        Scalar::Number(number)
    }
}

impl<'a> From<&'a str> for Scalar<'a> {
    fn from(text: &'a str) -> Self {
        Scalar::Text(text)
    }
}

impl Writer {
    fn item<'a>(&mut self, value: impl Into<Scalar<'a>>) -> &mut Writer {
        if !self.0.ends_with(['[', '{', ':']) {
            self.0.push(',');
        }
        match value.into() {
            Scalar::Number(number) => self.0.push_str(&number.to_string()),
            Scalar::Text(text) => write_string(&mut self.0, text),
        }
        self
    }

    fn member<'a>(&mut self, name: &str, value: impl Into<Scalar<'a>>) {
        self.item(name).0.push(':');
        self.item(value);
    }

    fn raw(&mut self, name: &str, json: &str) {
        self.item(name).0.push(':');
        self.0.push_str(json);
    }

    /// A list of rows; left away while there are none.
    fn rows(&mut self, name: &str, rows: impl Iterator<Item = String>) {
        let rows: Vec<String> = rows.collect();
        if !rows.is_empty() {
            self.raw(name, &format!("[{}]", rows.join(",")));
        }
    }

    fn close(&mut self, bracket: &str) -> String {
        self.0.push_str(bracket);
        std::mem::take(&mut self.0)
    }
}

/// A checkpoint whose version can be read.
struct Saved<'j>(Arguments<'j>);

impl<'j> Saved<'j> {
    fn open(root: Value<'j>) -> Result<Saved<'j>, Error> {
        let foreign = || {
            let what = "not a tidemark checkpoint: the member `tidemark` is missing";
            Error::at(ErrorCode::InvalidCheckpoint, "checkpoint", what)
        };
        let saved = Arguments::open(root, "checkpoint", ErrorCode::InvalidCheckpoint)
            .map_err(|_| foreign())?;
        match saved.count("tidemark")? {
            None => Err(foreign()),
            Some(version) if version > VERSION => {
                let what = format!(
                    "written by a newer tidemark (layout {version}; this one reads up to \
                     {VERSION}): update the package"
                );
                let place = "checkpoint.tidemark";
                Err(Error::new(ErrorCode::UnsupportedCheckpoint, place.into(), what.into()))
            }
            Some(_) => Ok(Saved(saved)),
        }
    }

    fn text(&self, name: &str) -> Result<String, Error> {
        let text = self.0.owned(name)?;
        self.0.required(name, text)
    }

    fn rows(&self, name: &str) -> Result<Vec<Value<'j>>, Error> {
        Ok(self.0.list(name)?.unwrap_or_default())
    }
}

fn read_part(row: Value<'_>) -> Option<(Place, Decision)> {
    let mut row = row.items();
    let place = Place { body: row.next()?.count()?, part: row.next()?.count()? };
    Some((place, unpacked(&row.next()?.string()?)?))
}

/// A decision as a letter and base64: long sessions hold thousands.
fn packed(decision: &Decision) -> String {
    let (letter, head, tail) = match decision.action {
        Action::Offloaded { head, tail } => ('o', head, tail),
        Action::Elided { head, tail } => ('e', head, tail),
        Action::Cleared => ('c', 0, 0),
        Action::Duplicate => ('d', 0, 0),
        Action::Superseded => ('s', 0, 0),
        Action::Removed => ('r', 0, 0),
    };
    let mut bytes = decision.reference.0.to_vec();
    bytes.extend(decision.anchor.to_le_bytes());
    let numbers = if head + tail > 0 { 3 } else { 1 };
    for mut number in [decision.chars, head, tail].into_iter().take(numbers) {
        while number > 127 {
            bytes.push(number as u8 | 128);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
    let mut out = String::from(letter);
    for three in bytes.chunks(3) {
        let at = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..=three.len() {
            out.push(DIGITS[(bits >> (18 - 6 * digit)) as usize % 64].into());
        }
    }
    out
}

fn unpacked(text: &str) -> Option<Decision> {
    let (letter, digits) = text.as_bytes().split_first()?;
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let mut bits = 0;
        for at in 0..4 {
            let digit = four.get(at).map_or(Some(0), |digit| sextet(*digit))?;
            bits = bits << 6 | digit;
        }
        bytes.extend((1..four.len()).map(|at| (bits >> (24 - 8 * at)) as u8));
    }
    let (reference, rest) = bytes.split_first_chunk::<6>()?;
    let (anchor, rest) = rest.split_first_chunk::<4>()?;
    let mut rest = rest.iter();
    let mut number = || {
        let mut number = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = u32::from(*rest.next()?);
            number |= (byte & 127).checked_shl(shift)?;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    };
    let chars = number()?;
    // Both are left away where they are zero, and no content is as long as their sum could be.
    let (head, tail) = number().map_or(Some((0, 0)), |head| Some((head, number()?)))?;
    head.checked_add(tail)?;
    let action = match letter {
        b'o' => Action::Offloaded { head, tail },
        b'e' => Action::Elided { head, tail },
        b'c' => Action::Cleared,
        b'd' => Action::Duplicate,
        b's' => Action::Superseded,
        b'r' => Action::Removed,
        _ => return None,
    };
    Some(Decision {
        action,
        reference: Ref(*reference),
        chars,
        anchor: u32::from_le_bytes(*anchor),
    })
}

fn read_summary(value: Value<'_>) -> Option<Summary> {
    Some(Summary {
        text: value.get("text")?.string()?.into_owned(),
        covered: value.get("covered")?.count()?,
        chain: hash(value.get("chain")?)?,
        reference: reference(value.get("ref")?)?,
        by: author(value.get("by")?)?,
        version: value.get("version")?.count()?,
    })
}

fn read_span(row: Value<'_>) -> Option<Span> {
    let mut row = row.items();
    let (reference, covered) = (reference(row.next()?)?, row.next()?.count()?);
    // Early checkpoints say no more.
    let version = row.next().map_or(Some(0), |version| version.count())?;
    let by = row.next().map_or(Some(Author::Local), author)?;
    Some(Span { reference, covered, version, by })
}

fn author(value: Value<'_>) -> Option<Author> {
    match &*value.string()? {
        "host" => Some(Author::Host),
        "local" => Some(Author::Local),
        _ => None,
    }
}

fn read_learned(row: Value<'_>) -> Option<Learned> {
    let mut row = row.items();
    let model = row.next()?.string()?.into_owned();
    // Early checkpoints count the samples.
    let settled = row.next()?.count()? > 0;
    let ratio = f64::from(row.next()?.count()?) / 1e6;
    let ratio = ratio.clamp(*PLAUSIBLE.start(), *PLAUSIBLE.end());
    // Early checkpoints say no more.
    let mut count = || row.next().map_or(Some(0), |value| value.count());
    let last = (count()?, count()?);
    Some(Learned { model, settled, ratio, last })
}

fn reference(value: Value<'_>) -> Option<Ref> {
    Ref::parse(&value.string()?)
}

fn hash(value: Value<'_>) -> Option<u64> {
    u64::from_str_radix(&value.string()?, 16).ok()
}

#[cold]
#[inline(never)]
fn damaged(place: &str) -> Error {
    let place = ["checkpoint.", place].concat();
    let what = "damaged: take an earlier checkpoint";
    Error::new(ErrorCode::InvalidCheckpoint, place.into(), what.into())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

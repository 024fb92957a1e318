//! What a provider's error says about the context window.
//!
//! [`classify`] is a pure function of the HTTP status and the response body. Structured fields
//! come first: of a JSON body only the provider's own fields are searched (a request echoed in a
//! validation error is no evidence), and an error code that names the class beats any wording.
//! After that, `TABLE` decides the class from the wording and reads the numbers in it.

use serde::Serialize;
use serde_json::Value;

/// What a provider's error means for the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The prompt, with the output reserved for the answer, does not fit the window.
    Overflow {
        /// The window in tokens, as the provider names it (1,024 to 20,000,000). If the error
        /// names several limits, the smallest.
        limit: Option<u32>,
        /// Tokens the provider counted in the request, with the output if it says so.
        requested: Option<u32>,
    },
    /// The request body, or one string or image in it, is larger than the provider accepts.
    TooManyBytes {
        /// The most the provider accepts, in bytes (characters where it counts characters).
        /// Never the limit for a single image.
        limit: Option<u64>,
    },
    /// More images than one request may hold, or images too large to be sent.
    TooManyImages {
        /// The most images one request may hold.
        limit: Option<u32>,
    },
    /// The request is malformed (an orphan tool result, an unanswered tool call, an invalid
    /// signature, ...): making it smaller cannot help.
    ShapeFault,
    /// A rate, quota or credit limit: never an overflow, whatever else the text mentions.
    RateLimit,
    /// Anything else.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Rate,
    Images,
    Shape,
    /// The cap on the *answer*, which says nothing about the window.
    OutputCap,
    Overflow,
    /// One string over its length: a size limit if the bound is large, else a malformed field.
    Text,
    Bytes,
}

struct Row {
    kind: Kind,
    signs: &'static str,
    numbers: &'static str,
}

/// `Kind "vendor": signs => numbers;` (the vendor is for the reader only).
macro_rules! table {
    ($($kind:ident $vendor:literal: $signs:literal $(=> $numbers:literal)?;)*) => {
        &[$(Row { kind: Kind::$kind, signs: $signs, numbers: concat!($($numbers)?) }),*]
    };
}

/// Error codes and types that name the class on their own, as whole field values.
const CODES: &[Row] = table! {
    Rate "any": "rate_limit_exceeded|rate_limit_error|insufficient_quota|resource_exhausted";
    Overflow "OpenAI, Azure, gateways": "context_length_exceeded|context_window_exceeded";
    Overflow "Z.ai": "model_context_window_exceeded|1261";
    Overflow "llama.cpp": "exceed_context_size_error";
    Overflow "Copilot": "model_max_prompt_tokens_exceeded|max_prompt_tokens_exceeded";
    Overflow "GitHub Models": "tokens_limit_reached";
    Overflow "Baidu": "tokens_too_long|336103";
    Overflow "Perplexity, gateways": "prompt_too_long";
};

/// The first row with one of its signs in the text decides the class. Then the numbers of all rows
/// of that class are read, and the smallest `{limit}` and the largest `{used}` win; two `{used}` in
/// one wording add up. For `|`, ` ` and `*` see [`matches`]; the text is normalised by `Doc::push`.
const TABLE: &[Row] = table! {
    Rate "any": "rate limit|rate_limit|ratelimit|rate-limit|too many requests|throttl|quota";
    Rate "any": "per minute|per min|per_minute|per day|per hour|per second|tpm|rpm|tpd|rpd";
    Rate "any": "requests per|daily|resource_exhausted|resource exhausted|concurrency";
    Rate "OpenAI, Groq": "in organization";
    Rate "Anthropic": "usage limit|extra usage|credit balance";
    Rate "OpenRouter": "insufficient credits|more credits|can only afford";
    Rate "Bedrock": "too many tokens, please wait";
    Rate "Zhipu, Qwen, Moonshot": "速率限制|频率限制|请求频率|限流|并发|额度|余额不足";

    Images "any": "too many images|maximum number of images|allowed number of images"
        => "images*> {limit}|images*limit {limit}|images*limit of {limit}|max is {limit}";
    Images "any": "max {limit} images|maximum of {limit} images|exceeds the image limit"
        => "max {limit}|maximum {limit}|maximum of {limit}|maximum is {limit}";
    Images "Azure": "images allowed" => "maximum allowed {limit}|images allowed is {limit}";
    Images "Anthropic": "too much media|image dimensions exceed" => "media*> {limit}";
    Images "vLLM": "at most {limit} image" => "at most {limit} image";
    Images "Gemini, Vertex": "only include {limit} image|use fewer than {limit} images"
        => "only include {limit} image|use fewer than {limit} images|images is {limit}";
    Images "Groq": "supports up to {limit} images" => "up to {limit} images";

    Shape "Anthropic": "ids were found without tool_result|unexpected tool_use_id found";
    Shape "Anthropic": "tool_use ids must be unique|must have a corresponding tool_use";
    Shape "Anthropic": "invalid signature in thinking|thinking*blocks*cannot be modified";
    Shape "Anthropic": "expected thinking or redacted_thinking|must have non-empty content";
    Shape "Anthropic": "content blocks must be non-empty|must end with a user message";
    Shape "OpenAI": "must be followed by tool messages|no tool output found for function call";
    Shape "OpenAI": "with role tool must be a response|no tool call found for function call";
    Shape "OpenAI": "was provided without its required|encrypted content*could not be verified";
    Shape "DeepSeek": "insufficient tool messages|reasoning_content*must be passed back";
    Shape "Gemini": "function call turn comes immediately after|missing a thought_signature";
    Shape "Gemini": "number of function response parts";
    Shape "Bedrock": "expected toolresult blocks|number of toolresult blocks";
    Shape "Mistral": "not the same number of function calls|unexpected role|expected last role";
    Shape "Moonshot": "tool_call_id is not found|tool_call_id not found";
    Shape "chat templates": "roles must alternate|must alternate between user and assistant";

    OutputCap "Anthropic, Cohere": "maximum allowed number of output tokens|maximum output for";
    OutputCap "OpenAI": "supports at most {limit} completion tokens";

    Overflow "codes in text": "context_length_exceeded|context_window_exceeded";
    Overflow "codes in text": "max_prompt_tokens_exceeded|exceed_context_size|prompt_too_long";
    Overflow "OpenAI, Azure, DeepSeek": "maximum context l|exceeds the context"
        => "maximum context length is {limit}|resulted in {used} tokens|requested {used} tokens";
    Overflow "OpenRouter": "maximum context l" => "you requested about {used} tokens";
    Overflow "Azure": "input tokens exceed*configured limit" => "configured limit of {limit}";
    Overflow "Anthropic": "prompt is too long|input is too long|exceeds model context"
        => "prompt is too long: {used} tokens > {limit}|prompt is too long: {used} > {limit}";
    Overflow "Anthropic": "exceed context limit"
        => "exceed context limit*{used} + {used} > {limit}";
    Overflow "Bedrock": "input length exceeds|number of input tokens exceeds|too many input tokens"
        => "max input tokens {limit}|input token count {used}";
    Overflow "Gemini": "token count*exceeds the maximum|exceeds the maximum number of tokens"
        => "token count {used} exceeds|number of tokens allowed {limit}";
    Overflow "Vertex": "model only supports up to"
        => "token count is {used} but model only supports up to {limit}";
    Overflow "Mistral": "too large for model with"
        => "prompt contains {used} tokens|model with {limit} maximum context length";
    Overflow "Cohere": "too many tokens"
        => "in the prompt cannot exceed {limit}|request cannot exceed {limit}|received {used}";
    Overflow "xAI": "maximum prompt length"
        => "maximum prompt length is {limit}|request contains {used} tokens";
    Overflow "Groq, Cerebras": "reduce the length of the|request too large for model"
        => "current length is {used} while limit is {limit}";
    Overflow "Together, TGI": "inputs tokens + max_new_tokens|inputs must have less than"
        => "max_new_tokens must be <= {limit}|given: {used} inputs tokens and {used} max_new_tokens";
    Overflow "TGI": "inputs must have less than"
        => "inputs must have less than {limit}|less than {limit} tokens. given: {used}";
    Overflow "Together, SGLang": "longer than the models context length"
        => "input {used} tokens is longer|context length {limit}";
    Overflow "Together": "max_tokens*must be less than the context length";
    Overflow "SGLang, LiteLLM": "exceeds the models maximum|exceeds models maximum"
        => "maximum context length of {limit}|a total of {used} tokens|input length {used} exceeds";
    Overflow "vLLM": "longer than the maximum model length|than max_model_len"
        => "prompt length {used} is longer|maximum model length of {limit}|max_model_len {limit}";
    Overflow "vLLM": "maximum context l"
        => "a total of at least {used} tokens|prompt contains at least {used} input tokens";
    Overflow "vLLM": "maximum context l"
        => "request has {used} input tokens|is too large: {used}.*request has {used} input tokens";
    Overflow "vLLM, Modal": "context length is only"
        => "passed {used} input tokens and requested {used} output tokens|length is only {limit}";
    Overflow "vLLM, Modal": "maximum input length" => "maximum input length of {limit}";
    Overflow "Baseten, Poolside": "exceeds the maximum allowed input length"
        => "maximum allowed input length of {limit}";
    Overflow "llama.cpp": "the available context size|context size has been exceeded"
        => "n_ctx {limit}|n_prompt_tokens {used}|request {used} tokens exceeds|context size {limit}";
    Overflow "llama-cpp-python": "exceed context window of"
        => "requested tokens {used} exceed|context window of {limit}";
    Overflow "ds4": "configured context size" => "prompt has {used} tokens|size is {limit} tokens";
    Overflow "LM Studio": "tokens when context*overflows|greater than the context length"
        => "keep the first {used} tokens|context length of only {limit}";
    Overflow "Ollama": "prompt too long|exceeds maximum context|exceeded max context"
        => "prompt too long: {used} tokens|context length of {limit}|context window of {limit}";
    Overflow "Qwen, DashScope": "range of input length should be"
        => "range of input length should be [1, {limit}";
    Overflow "Moonshot": "exceeded model token limit"
        => "model token limit: {limit}|token limit: {limit} requested: {used}";
    Overflow "Zhipu": "prompt 超长|tokens 超出|exceeds max length|more than max tokens allowed";
    Overflow "MiniMax": "context window exceeds limit";
    Overflow "Copilot": "prompt token count*exceeds the limit"
        => "token count of {used} exceeds the limit|count*exceeds the limit of {limit}";
    Overflow "GitHub Models": "request body too large for*tokens" => "max size {limit} tokens";
    Overflow "Fireworks": "model maximum context length"
        => "prompt is too long: {used}, model|maximum context length {limit}";
    Overflow "Baidu, Volcengine": "prompt tokens too long|exceed max message tokens";
    Overflow "SambaNova": "maximum supported sequence length"
        => "requires a sequence length of {used}|supported sequence length is just {limit}";
    Overflow "Cloudflare": "exceeded this model context window limit"
        => "output tokens {used} exceeded|context window limit {limit}";
    Overflow "any": "context length exceeded|context window exceeded|context limit exceeded";
    Overflow "any": "exceeds the models context|exceed the models context|exceeds context";
    Overflow "any": "exceed the context|exceed context window|token limit exceeded|input too long";
    Overflow "any, Chinese": "上下文过长|上下文超|上下文长度超|最大上下文|超过最大长度|超出最大长度";
    Overflow "any, Chinese": "输入过长|输入长度超|输入内容过长|最大 token 限制|token 数量超|tokens 超过";

    Text "OpenAI": "string too long" => "maximum length {limit}";

    Bytes "any": "entity too large|payload too large|content too large|body is too large"
        => "limit {limit}|limit is {limit}|limit of {limit}|max_size {limit}|max size {limit}";
    Bytes "any": "entity.too.large|payload_too_large|413 status code|length limit exceeded"
        => "maximum {limit}|max {limit}|maximum of {limit}|larger than {limit}|exceeds {limit}";
    Bytes "Anthropic": "request_too_large|request exceeds the maximum size"
        => "maximum size {limit}|size of {limit}|allowed size {limit}|size is {limit}";
    Bytes "Anthropic": "exceeds the maximum allowed number of bytes" => "number of bytes {limit}";
    Bytes "Gemini": "payload size exceeds" => "exceeds the limit {limit}";
    Bytes "Moonshot": "total message size*exceeds limit" => "exceeds limit {limit}";
    Bytes "Bedrock": "expected maxlength" => "expected maxlength {limit}";
    Bytes "one image": "image exceeds|image is too large|image size exceeds|image content cannot";
};

/// Bytes of a body that are looked at; the rest is ignored.
const SCAN: usize = 64 * 1024;
/// Bytes a `*` may stand for.
const GAP: usize = 160;
/// Fields in which servers echo the request.
const ECHO: &[&str] = &[
    "input", "inputs", "messages", "prompt", "contents", "request", "body",
];
/// Numeric fields worth reading.
const FIELDS: &[&str] = &["n_ctx", "n_prompt_tokens", "limit", "max_size"];

/// Classifies a provider's error from its HTTP status, if there was one, and its body: JSON, an
/// event stream's `data:` line, a client library's message or an HTML page.
///
/// Never panics. Only the first 64 KiB of the body count.
///
/// - A rate or quota limit is [`ErrorClass::RateLimit`] even if it mentions the context window.
/// - Otherwise the wording decides, at any status: gateways report an overflow as 4xx and as 5xx.
/// - Without a known wording, 413 is [`ErrorClass::TooManyBytes`], 429 is
///   [`ErrorClass::RateLimit`] (402 always is) and the rest is [`ErrorClass::Other`].
///
/// Without an error status (from 400), a numeric code in the body serves as one.
pub fn classify(status: Option<u16>, body: &str) -> ErrorClass {
    let mut doc = Doc::default();
    doc.gather(&body[..body.floor_char_boundary(SCAN)], 0);
    let text = doc.text.as_bytes();
    let any = |row: &&Row| row.signs.split('|').any(|sign| find(text, sign, |_| ()));
    let worded = || TABLE.iter().find(any).map(|row| row.kind);
    let status = status.filter(|s| *s >= 400).or(doc.status);
    let kind = match (doc.kind.or_else(worded), status) {
        (_, Some(402)) => Kind::Rate,
        (Some(kind), _) => kind,
        (None, Some(413)) => Kind::Bytes,
        (None, Some(429)) => Kind::Rate,
        _ => return ErrorClass::Other,
    };
    let range = match kind {
        Kind::Overflow => 1_024..=20_000_000,
        Kind::Images => 0..=100_000,
        // The limit for one image says nothing about the body.
        Kind::Bytes if find(text, "image", |_| ()) => 1..=0,
        Kind::Bytes => 1_024..=1 << 40,
        _ => 0..=u64::MAX,
    };
    let (mut limit, mut used) = (None, None);
    let rows = TABLE.iter().filter(|row| row.kind == kind);
    for wording in rows.flat_map(|row| row.numbers.split('|')) {
        find(text, wording, |found| {
            let found_limit = found.limit.filter(|n| range.contains(n));
            limit = limit.into_iter().chain(found_limit).min();
            used = used.max(found.used);
        });
    }
    let small = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
    match kind {
        Kind::Rate => ErrorClass::RateLimit,
        Kind::Images => ErrorClass::TooManyImages {
            limit: small(limit),
        },
        Kind::Shape => ErrorClass::ShapeFault,
        Kind::OutputCap => ErrorClass::Other,
        Kind::Overflow => ErrorClass::Overflow {
            limit: small(limit),
            requested: small(used).filter(|n| *n > 0),
        },
        Kind::Text if limit.is_some_and(|n| n < 1 << 16) => ErrorClass::ShapeFault,
        Kind::Text | Kind::Bytes => ErrorClass::TooManyBytes { limit },
    }
}

/// What the provider itself says: its words, and what its structured fields name.
#[derive(Default)]
struct Doc {
    /// Lower case, without quotes, brackets and white space as single spaces, a line per field.
    text: String,
    kind: Option<Kind>,
    status: Option<u16>,
}

impl Doc {
    /// Adds `raw`: the fields of the JSON in it, also in its strings, and the text around it.
    fn gather(&mut self, raw: &str, depth: u32) {
        let list = raw.trim_start().starts_with('[');
        let start = raw.find(if list { '[' } else { '{' });
        let Some(start) = start.filter(|_| depth < 4) else {
            return self.push(raw);
        };
        let mut json = serde_json::Deserializer::from_str(&raw[start..]).into_iter::<Value>();
        if let Some(Ok(value)) = json.next() {
            let end = start + json.byte_offset();
            self.push(&raw[..start]);
            self.walk("", &value, depth);
            self.push(&raw[end..]);
        } else {
            // Cut short, or no JSON after all: everything before the first echoed field.
            let echo = |quote: char| {
                let mut keys = ECHO.iter().map(move |key| format!("{quote}{key}{quote}:"));
                keys.by_ref().filter_map(|key| raw.find(&key)).min()
            };
            let end = echo('"').into_iter().chain(echo('\'')).min();
            self.push(&raw[..end.unwrap_or(raw.len())]);
        }
    }

    fn walk(&mut self, key: &str, value: &Value, depth: u32) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let key = key.to_ascii_lowercase();
                    if !ECHO.contains(&key.as_str()) {
                        self.walk(&key, value, depth);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.walk(key, value, depth)),
            Value::String(s) => {
                self.field(key, s);
                self.gather(s, depth + 1);
            }
            Value::Number(n) => self.field(key, &n.to_string()),
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &str) {
        let number = value.bytes().all(|b| b.is_ascii_digit());
        if number && FIELDS.contains(&key) {
            self.push(&format!("{key}:{value}"));
        }
        let code = key.ends_with("code");
        if number && (code || key == "status") {
            let status = value.parse().ok().filter(|s| (400..600).contains(s));
            self.status = self.status.or(status);
        }
        if code || !number {
            let named = |row: &&Row| row.signs.split('|').any(|c| c.eq_ignore_ascii_case(value));
            let kind = CODES.iter().find(named).map(|row| row.kind);
            self.kind = self.kind.into_iter().chain(kind).min();
        }
    }

    /// Adds a line of normalised text.
    fn push(&mut self, raw: &str) {
        let echo = raw.find("input_value=");
        let mut chars = raw[..echo.unwrap_or(raw.len())].chars().peekable();
        while let Some(c) = chars.next() {
            let c = match c {
                '\\' if chars.next_if(|c| matches!(c, 'n' | 'r' | 't')).is_some() => ' ',
                '\\' | '`' | '\'' | '"' | '‘' | '’' | '“' | '”' => continue,
                '(' | ')' => ' ',
                c if c.is_whitespace() => ' ',
                c => c.to_ascii_lowercase(),
            };
            if c != ' ' || !self.text.ends_with([' ', '\n']) {
                self.text.push(c);
            }
        }
        self.text.push('\n');
    }
}

#[derive(Clone, Copy, Default)]
struct Found {
    limit: Option<u64>,
    used: Option<u64>,
}

/// Calls `each` for every place where `pattern` matches; true if there is one. A pattern of up to
/// three bytes must stand alone.
fn find(text: &[u8], pattern: &str, mut each: impl FnMut(Found)) -> bool {
    let Some((&first, rest)) = pattern.as_bytes().split_first() else {
        return false;
    };
    let alone = |i: usize| {
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let before = i.checked_sub(1).and_then(|i| text.get(i));
        !before.is_some_and(word) && !text.get(i + pattern.len()).is_some_and(word)
    };
    let mut any = false;
    for (i, _) in text.iter().enumerate().filter(|(_, b)| **b == first) {
        let mut found = Found::default();
        if matches(text, i + 1, rest, &mut found) && (pattern.len() > 3 || alone(i)) {
            any = true;
            each(found);
        }
    }
    any
}

/// Whether `pattern` matches at `i`. A space stands for any number of spaces, `*` for up to
/// [`GAP`] bytes of the same line (once per pattern, to stay linear), `{limit}` and `{used}` for a
/// number, with up to three of ` :=~` before it.
fn matches(text: &[u8], mut i: usize, mut pattern: &[u8], found: &mut Found) -> bool {
    while let Some((&c, rest)) = pattern.split_first() {
        pattern = rest;
        match c {
            b' ' => i += text[i..].iter().take_while(|b| **b == b' ').count(),
            b'*' => {
                let line = text[i..].iter().take(GAP).take_while(|b| **b != b'\n');
                return (i..=i + line.count()).any(|i| {
                    let before = *found;
                    let ok = matches(text, i, pattern, found);
                    if !ok {
                        *found = before;
                    }
                    ok
                });
            }
            b'{' => {
                let Some((n, end)) = number(text, i) else {
                    return false;
                };
                i = end;
                if pattern.starts_with(b"limit") {
                    found.limit = Some(n);
                } else {
                    found.used = Some(found.used.unwrap_or(0).saturating_add(n));
                }
                pattern = pattern.splitn(2, |b| *b == b'}').nth(1).unwrap_or(&[]);
            }
            c if text.get(i) == Some(&c) => i += 1,
            _ => return false,
        }
    }
    true
}

/// The number at `i`, and where it ends: `4096`, `128,000`, `128_000`, `1 048 576`, `128k`, `1.5M`,
/// `32 MB` (decimal, the smaller reading), `32 MiB`. Saturates.
fn number(text: &[u8], mut i: usize) -> Option<(u64, usize)> {
    let digit = |i: usize| {
        let b = text.get(i).filter(|b| b.is_ascii_digit())?;
        Some(u64::from(b - b'0'))
    };
    let lead = text[i..].iter().take(3);
    i += lead.take_while(|b| b" :=~".contains(b)).count();
    let start = i;
    let mut n = digit(i)?;
    let mut separator = None;
    loop {
        i += 1;
        if let Some(d) = digit(i) {
            n = n.saturating_mul(10).saturating_add(d);
            continue;
        }
        // One kind of separator, after one to three digits and then after every three.
        let sep = text.get(i).filter(|b| b",_ ".contains(b));
        let group = (i + 1..i + 4).all(|i| digit(i).is_some()) && digit(i + 4).is_none();
        let first = separator.is_none() && i - start <= 3;
        if sep.is_none() || !group || !(first || separator == sep) {
            break;
        }
        separator = sep;
    }
    let (mut thousandths, mut place) = (0, 100);
    if text.get(i) == Some(&b'.') && digit(i + 1).is_some() {
        i += 1;
        while let Some(d) = digit(i) {
            thousandths += d * place;
            place /= 10;
            i += 1;
        }
    }
    let gap = usize::from(text.get(i) == Some(&b' '));
    let letters = text[i + gap..]
        .iter()
        .take_while(|b| b.is_ascii_alphabetic());
    let unit = &text[i + gap..i + gap + letters.count()];
    let scale = match (unit, gap) {
        (b"k", 0) | (b"kb", _) => 1_000,
        (b"m", 0) | (b"mb", _) => 1_000_000,
        (b"g", 0) | (b"gb", _) => 1_000_000_000,
        (b"kib", _) => 1 << 10,
        (b"mib", _) => 1 << 20,
        (b"gib", _) => 1 << 30,
        _ => return Some((n, i)),
    };
    let n = n.saturating_mul(scale);
    Some((
        n.saturating_add(thousandths * scale / 1_000),
        i + gap + unit.len(),
    ))
}

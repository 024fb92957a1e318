//! What a provider's error says about the context window.
//!
//! [`classify`] is a pure function of the HTTP status and the response body. Structured fields
//! come first: of a JSON body only the provider's own fields are searched (a request echoed in a
//! validation error is no evidence), and an error code that names the class beats any wording.
//! After that, `TABLE` decides the class from the wording and reads the numbers in it.

use serde::Serialize;

use crate::json::{Json, Kind as JsonKind, Value};

/// What a provider's error means for the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// The prompt, with the output reserved for the answer, does not fit the window.
    Overflow {
        /// The window in tokens, as the provider names it (1,024 to 20,000,000). If the error
        /// names several limits, the smallest.
        limit: Option<u32>,
        /// Tokens the provider counted in the request, with the output if it says so (1 to
        /// 20,000,000).
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
    ($($kind:ident $vendor:literal: $($signs:literal)+ $(=> $($numbers:literal)+)?;)*) => {
        &[$(Row {
            kind: Kind::$kind,
            signs: concat!($($signs, "|"),+),
            numbers: concat!($($($numbers, "|"),+)?),
        }),*]
    };
}

/// Error codes and types that name the class on their own, as whole field values.
const CODES: &[Row] = table! {
    Rate "any": "rate_limit_exceeded|rate_limit_error|insufficient_quota|resource_exhausted";
    Overflow "OpenAI, Azure, gateways": "context_length_exceeded|context_window_exceeded";
    Overflow "llama.cpp, GitHub Models": "exceed_context_size_error|tokens_limit_reached";
    Overflow "Copilot, gateways": "model_max_prompt_tokens_exceeded|prompt_too_long";
    Overflow "Zhipu, Z.ai, Baidu": "1261|model_context_window_exceeded|336103|tokens_too_long";
};

/// The first row with one of its signs in the text decides the class. Then the numbers of all such
/// rows of that class are read, and the smallest `{limit}` and the largest `{used}` win; two
/// `{used}` in one wording add up. For `|`, ` ` and `*` see [`matches`], for the text `Doc::push`.
const TABLE: &[Row] = table! {
    Rate "any": "rate limit|rate_limit|ratelimit|rate-limit|too many requests|throttl|quota";
    Rate "any": "per minute|per min|per day|per hour|per second|requests per|tpm|rpm|tpd|rpd";
    Rate "any": "daily|concurrency|usage limit|resource_exhausted|resource exhausted";
    Rate "OpenAI, Groq, Bedrock": "in organization|too many tokens, please wait";
    Rate "Anthropic, OpenRouter": "extra usage|credit balance|insufficient credits|more credits";
    Rate "Zhipu, Qwen, Moonshot": "速率限制|频率限制|请求频率|限流|并发|额度|余额不足";
    Images "any": "too many images|maximum number of images|allowed number of images"
        "max {limit} images|maximum of {limit} images|exceeds the image limit"
        => "images*> {limit}|images*limit {limit}|images*limit of {limit}|images is {limit}"
        "max {limit}|max is {limit}|maximum {limit}|maximum of {limit}|maximum allowed: {limit}";
    Images "Anthropic": "too much media|image dimensions exceed" => "media*> {limit}";
    Images "vLLM, Groq, Gemini": "at most {limit} image|up to {limit} image|include {limit} image"
        => "at most {limit} image|up to {limit} image|include {limit} image";
    Shape "Anthropic": "ids were found without tool_result|unexpected tool_use_id found";
    Shape "Anthropic": "tool_use ids must be unique|invalid signature in thinking";
    Shape "Anthropic": "thinking*blocks*cannot be modified|expected thinking or redacted_thinking";
    Shape "Anthropic": "must have non-empty content|content blocks must be non-empty";
    Shape "OpenAI": "must be followed by tool messages|with role tool must be a response";
    Shape "OpenAI": "no tool output found for function call|no tool call found for function call";
    Shape "OpenAI": "was provided without its required|encrypted content*could not be verified";
    Shape "DeepSeek": "insufficient tool messages|reasoning_content*must be passed back";
    Shape "Gemini": "function call turn comes immediately after|missing a thought_signature";
    Shape "Gemini, Bedrock": "number of function response parts|expected toolresult blocks";
    Shape "Bedrock, chat templates": "roles must alternate|must alternate between user";
    Shape "Mistral": "not the same number of function calls|unexpected role|expected last role";
    Shape "Moonshot": "tool_call_id is not found|tool_call_id not found";
    OutputCap "Anthropic, Cohere": "maximum allowed number of output tokens|maximum output for";
    OutputCap "OpenAI": "supports at most {limit} completion tokens";
    Overflow "any": "context_length_exceeded|max_prompt_tokens_exceeded|prompt_too_long";
    Overflow "any": "context length exceeded|context window exceeded|context_window_exceeded";
    Overflow "any": "exceeds the models context|exceeds context|exceed the context";
    Overflow "any": "context limit exceeded|token limit exceeded|input too long";
    Overflow "any, Chinese": "上下文过长|上下文超|上下文长度超|最大上下文|超过最大长度";
    Overflow "any, Chinese": "输入过长|输入长度超|输入内容过长|最大 token 限制|tokens 超";
    Overflow "OpenAI, Azure, DeepSeek": "maximum context l|exceeds the context"
        => "maximum context length is {limit}|resulted in {used} tokens|requested {used} tokens";
    Overflow "OpenRouter": "maximum context l" => "you requested about {used} tokens";
    Overflow "Azure": "input tokens exceed" => "configured limit of {limit}|resulted in {used}";
    Overflow "Anthropic": "prompt is too long|input is too long|exceeds model context"
        => "prompt is too long: {used} tokens > {limit}|prompt is too long: {used} > {limit}";
    Overflow "Anthropic": "exceed context limit" => "context limit*{used} + {used} > {limit}";
    Overflow "Bedrock": "input length exceeds|of input tokens exceeds|too many input tokens"
        => "max input tokens {limit}|input token count {used}|context length of {limit}";
    Overflow "Gemini": "token count*exceeds the maximum|exceeds the maximum number of tokens"
        => "token count {used} exceeds|number of tokens allowed {limit}";
    Overflow "Vertex": "model only supports up to" => "count is {used} but|supports up to {limit}";
    Overflow "Mistral": "too large for model" => "prompt contains {used}|with {limit} maximum";
    Overflow "Cohere": "too many tokens"
        => "in the prompt cannot exceed {limit}|request cannot exceed {limit}|received {used}";
    Overflow "xAI": "maximum prompt length" => "length is {limit}|request contains {used} tokens";
    Overflow "Groq, Cerebras": "reduce the length of the|request too large for model"
        => "current length is {used} while limit is {limit}";
    Overflow "Together, TGI": "inputs tokens + max_new_tokens"
        => "must be <= {limit}|given: {used} inputs tokens and {used} max_new_tokens";
    Overflow "TGI": "inputs must have less than" => "less than {limit}|. given: {used}";
    Overflow "Together, SGLang": "longer than the models context|less than the context length"
        => "input {used} tokens is longer|context length {limit}";
    Overflow "SGLang, LiteLLM, Baseten": "token count exceeds|input length {used} exceeds"
        => "context length {limit}|context length of {limit}|input length of {limit}"
        "input length {used} exceeds";
    Overflow "vLLM": "longer than the maximum model length|than max_model_len"
        => "prompt length {used} is longer|maximum model length of {limit}|max_model_len {limit}";
    Overflow "vLLM, SGLang": "maximum context l"
        => "total of {used} tokens|total of at least {used}|is too large: {used}.*has {used} input";
    Overflow "vLLM, Modal": "context length is only"
        => "passed {used} input tokens and requested {used} output|length is only {limit}"
        "maximum input length of {limit}";
    Overflow "llama.cpp": "available context size|context size has been exceed|exceed_context_size"
        => "n_ctx {limit}|n_prompt_tokens {used}|request {used} tokens|context size {limit}";
    Overflow "llama-cpp-py": "exceed context window" => "tokens {used} exceed|window of {limit}";
    Overflow "ds4": "configured context size" => "prompt has {used} tokens|size is {limit} tokens";
    Overflow "LM Studio": "tokens when context*overflows|greater than the context length"
        => "keep the first {used} tokens|context length of only {limit}";
    Overflow "Ollama": "exceeds maximum context|exceeded max context";
    Overflow "oMLX": "prompt too long" => "prompt too long: {used} tokens|window of {limit}";
    Overflow "Qwen, DashScope": "range of input length should be" => "be [1, {limit}";
    Overflow "Moonshot": "exceeded model token limit" => "token limit: {limit}|requested: {used}";
    Overflow "Zhipu": "prompt 超长|exceeds max length|more than max tokens allowed";
    Overflow "MiniMax": "context window exceeds limit"; // the number after it is an error code
    Overflow "Copilot": "prompt token count*exceeds the limit"
        => "token count of {used} exceeds the limit|count*exceeds the limit of {limit}";
    Overflow "GitHub": "too large for*{limit} tokens|tokens_limit_reached" => "max size {limit}";
    Overflow "Fireworks": "prompt is too long" => "too long: {used}, model|context length: {limit}";
    Overflow "Baidu, Volcengine": "prompt tokens too long|exceed max message tokens";
    Overflow "SambaNova": "supported sequence length" => "length of {used},|is just {limit}";
    Overflow "Cloudflare": "exceeded this model context window limit"
        => "output tokens {used} exceeded|context window limit {limit}";
    Text "OpenAI": "string too long" => "maximum length {limit}";
    Bytes "any": "entity too large|payload too large|content too large|body is too large"
        "entity.too.large|payload_too_large|413 status code|length limit exceeded"
        "payload size exceeds|message size*exceeds limit"
        => "limit {limit}|limit is {limit}|limit of {limit}|max_size {limit}|larger than {limit}"
        "maximum {limit}|max {limit}|max size {limit}|maximum of {limit}|exceeds {limit}";
    Bytes "Anthropic": "request_too_large|request exceeds the maximum size|allowed number of bytes"
        => "maximum size {limit}|size of {limit}|allowed size {limit}|size is {limit}";
    Bytes "Bedrock": "expected maxlength" => "expected maxlength {limit}";
    Bytes "any, one image": "image exceeds|image is too large|image size exceeds";
};

/// Bytes of a body that are looked at; the rest is ignored.
const SCAN: usize = 64 * 1024;
/// Bytes a `*` may stand for.
const GAP: usize = 160;
/// Fields in which servers echo the request.
const ECHO: &[&str] = &["input", "inputs", "messages", "prompt", "contents", "request"];
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
    let text = doc.text.as_str();
    let any = |row: &&Row| row.signs.split('|').any(|sign| find(text, sign, &mut |_| ()));
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
        Kind::Bytes => 1_024..=1 << 40,
        _ => 0..=u64::MAX,
    };
    let (mut smallest, mut used) = (None, None);
    let rows = TABLE.iter().filter(|row| row.kind == kind && any(row));
    for wording in rows.flat_map(|row| row.numbers.split('|')) {
        find(text, wording, &mut |found| {
            let limit = found.limit.filter(|n| range.contains(n));
            smallest = smallest.into_iter().chain(limit).min();
            used = used.max(found.used);
        });
    }
    let small = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
    let (limit, requested) =
        (small(smallest), small(used).filter(|n| (1..=20_000_000).contains(n)));
    match kind {
        Kind::Rate => ErrorClass::RateLimit,
        Kind::Images => ErrorClass::TooManyImages { limit },
        Kind::Shape => ErrorClass::ShapeFault,
        Kind::OutputCap => ErrorClass::Other,
        Kind::Overflow => ErrorClass::Overflow { limit, requested },
        Kind::Text if smallest.is_some_and(|n| n < 1 << 16) => ErrorClass::ShapeFault,
        // The limit for one image says nothing about the body.
        Kind::Bytes if find(text, "image", &mut |_| ()) => ErrorClass::TooManyBytes { limit: None },
        Kind::Text | Kind::Bytes => ErrorClass::TooManyBytes { limit: smallest },
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
        if let Ok((json, length)) = Json::parse_first(&raw[start..]) {
            self.push(&raw[..start]);
            self.walk("", json.root(), depth);
            self.push(&raw[start + length..]);
        } else {
            // Cut short, or no JSON after all: everything before the first echoed field, and not
            // the first half of a number.
            let echo = |key: &&str| {
                let find = |quote: char| raw.find(&format!("{quote}{key}{quote}:"));
                find('"').or_else(|| find('\''))
            };
            let end = ECHO.iter().filter_map(echo).min();
            let raw = &raw[..end.unwrap_or(raw.len())];
            self.push(raw.trim_end_matches(|c: char| c.is_ascii_digit() || ",_".contains(c)));
        }
    }

    fn walk(&mut self, key: &str, value: Value<'_>, depth: u32) {
        match value.kind() {
            JsonKind::Object => {
                for (key, value) in value.members() {
                    let key = key.to_ascii_lowercase();
                    if !ECHO.contains(&key.as_str()) {
                        self.walk(&key, value, depth);
                    }
                }
            }
            JsonKind::Array => value.items().for_each(|value| self.walk(key, value, depth)),
            JsonKind::String => {
                let text = value.string().unwrap_or_default();
                self.field(key, &text);
                self.gather(&text, depth + 1);
            }
            JsonKind::Number => self.field(key, value.raw()),
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
        if (code || !number) && !value.is_empty() {
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
fn find(text: &str, pattern: &str, each: &mut dyn FnMut(Found)) -> bool {
    let (head, rest) = pattern.split_at(pattern.find([' ', '*', '{']).unwrap_or(pattern.len()));
    let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = text.as_bytes();
    let mut any = false;
    for (start, _) in text.match_indices(head).filter(|_| !head.is_empty()) {
        let (end, mut found) = (start + head.len(), Found::default());
        let alone = || !word(bytes[..start].last()) && !word(bytes.get(end));
        if (pattern.len() > 3 || alone()) && matches(bytes, end, rest.as_bytes(), &mut found) {
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
            b' ' => i += run(text, i, GAP, |b| b == b' '),
            b'*' => {
                let (before, line) = (*found, run(text, i, GAP, |b| b != b'\n'));
                return (i..=i + line).any(|i| {
                    *found = before;
                    matches(text, i, pattern, found)
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

/// How many bytes from `i` on satisfy `class`, up to `max`.
fn run(text: &[u8], i: usize, max: usize, class: impl Fn(u8) -> bool) -> usize {
    let bytes = text[i..].iter().take(max);
    bytes.take_while(|b| class(**b)).count()
}

/// The number at `i`, and where it ends: `4096`, `128,000`, `128_000`, `1 048 576`, `128k`, `32 MB`
/// (decimal, the smaller reading), `32 MiB`. Saturates; more than 60 digits are no number.
fn number(text: &[u8], mut i: usize) -> Option<(u64, usize)> {
    let digit = |i: usize| text.get(i).filter(|b| b.is_ascii_digit());
    i += run(text, i, 3, |b| b" :=~".contains(&b));
    let start = i;
    let (mut n, mut separator) = (0u64, None);
    digit(i)?;
    loop {
        while let Some(b) = digit(i) {
            n = n.saturating_mul(10).saturating_add(u64::from(b - b'0'));
            i += 1;
            if i - start > 60 {
                return None;
            }
        }
        // One kind of separator: after one to three digits, then after every three.
        let next = text.get(i);
        let first = separator.is_none() && i - start <= 3;
        let same = next.is_some_and(|b| b",_ ".contains(b)) && (first || separator == next);
        if !same || run(text, i + 1, 4, |b| b.is_ascii_digit()) != 3 {
            break;
        }
        separator = next;
        i += 1;
    }
    let gap = i + run(text, i, 1, |b| b == b' ');
    let end = gap + run(text, gap, 4, |b| b.is_ascii_alphabetic());
    let scale = match &text[gap..end] {
        b"k" | b"kb" => 1_000,
        b"m" | b"mb" => 1_000_000,
        b"kib" => 1 << 10,
        b"mib" => 1 << 20,
        _ => return Some((n, i)),
    };
    Some((n.saturating_mul(scale), end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorClass::{Other, RateLimit, ShapeFault};

    fn over(limit: u32, requested: u32) -> ErrorClass {
        let known = |n| (n > 0).then_some(n);
        ErrorClass::Overflow { limit: known(limit), requested: known(requested) }
    }

    fn bytes(limit: u64) -> ErrorClass {
        let limit = (limit > 0).then_some(limit);
        ErrorClass::TooManyBytes { limit }
    }

    fn images(limit: impl Into<Option<u32>>) -> ErrorClass {
        ErrorClass::TooManyImages { limit: limit.into() }
    }

    /// The bodies in which a message arrives.
    fn wrapped(message: &str) -> Vec<String> {
        let quoted = serde_json::to_string(message).unwrap();
        let error = format!(r#"{{"error":{{"message":{quoted},"code":400,"param":null}}}}"#);
        let raw = serde_json::to_string(&error).unwrap();
        vec![
            message.to_string(),
            format!(r#"{{"object":"error","message":{quoted},"type":"BadRequestError"}}"#),
            format!(
                r#"[{{"error":{{"code":400,"message":{quoted},"status":"INVALID_ARGUMENT"}}}}]"#
            ),
            format!(r#"{{"error":{quoted}}}"#),
            format!(r#"{{"detail":[{{"msg":{quoted}}}]}}"#),
            format!(
                r#"{{"error":{{"message":"Provider returned error","metadata":{{"raw":{raw}}}}}}}"#
            ),
            format!("400 {error}"),
            format!("event: error\ndata: {error}\n\n"),
            format!("Error code: 400 - {{'error': {{'message': {quoted}, 'code': 400}}}}"),
            // Cut short.
            error[..error.len() - 25].to_string(),
            error,
        ]
    }

    #[track_caller]
    fn check(status: Option<u16>, message: &str, expected: ErrorClass) {
        for body in wrapped(message) {
            assert_eq!(classify(status, &body), expected, "{status:?} {body}");
        }
    }

    /// (status, wording, limit, requested); 0 is none.
    #[rustfmt::skip]
    const OVERFLOWS: &[(u16, &str, u32, u32)] = &[
        // OpenAI
        (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.", 128_000, 130_000),
        (400, "This model's maximum context length is 4097 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.", 4_097, 9_000),
        (400, "This model's maximum context length is 4097 tokens, however you requested 4130 tokens (130 in your prompt; 4000 for the completion). Please reduce your prompt; or completion length.", 4_097, 4_130),
        (400, "Your input exceeds the context window of this model. Please adjust your input and try again.", 0, 0),
        // Azure
        (400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens (149000 in the messages, 1000 in the functions). Please reduce the length of the messages or functions.", 128_000, 150_000),
        (400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 301213 tokens. Please reduce the length of the messages.", 272_000, 301_213),
        // DeepSeek
        (400, "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.", 131_072, 131_134),
        // OpenRouter
        (400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (30000 of text input, 10000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.", 32_768, 40_000),
        // Anthropic
        (400, "prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
        (400, "prompt is too long: 204521 > 200000", 200_000, 204_521),
        (400, "Prompt is too long", 0, 0),
        (400, "input length and `max_tokens` exceed context limit: 180692 + 34048 > 200000, decrease input length or `max_tokens` and try again", 200_000, 214_740),
        (400, "input length and max_tokens exceed context limit (i.e 156321 + 48384 > 200000)", 200_000, 204_705),
        (400, "The request size exceeds model context window limit", 0, 0),
        // Bedrock
        (400, "ValidationException: Input is too long for requested model.", 0, 0),
        (400, "The model returned the following errors: input length exceeds context window", 0, 0),
        (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.", 0, 0),
        (400, "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9000", 8_192, 9_000),
        // Gemini, Vertex
        (400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", 1_048_576, 1_048_577),
        (400, "Unable to submit request because the input token count is 1234567 but model only supports up to 1048576. Reduce the input token count and try again.", 1_048_576, 1_234_567),
        // Mistral
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768, 40_000),
        (422, "Prompt contains 300735 tokens and 0 images, which is too large for model with 131072 maximum context length", 131_072, 300_735),
        // Cohere
        (400, "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000. Try using a shorter prompt.", 128_000, 130_000),
        (400, "too many tokens: size limit exceeded by 12345 tokens", 0, 0),
        // xAI
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
        // Groq, Cerebras
        (400, "Please reduce the length of the messages or completion.", 0, 0),
        (400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", 8_192, 9_000),
        // Together, TGI
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 1024 `max_new_tokens`", 8_193, 9_024),
        (422, "`inputs` must have less than 4096 tokens. Given: 5000", 4_096, 5_000),
        (400, "Input token count + `max_tokens` parameter must be less than the context length of the model being queried.", 0, 0),
        (400, "The input (516368 tokens) is longer than the model's context length (262144 tokens).", 262_144, 516_368),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 30 `inputs` tokens and 999999999 `max_new_tokens`", 32_769, 0),
        // SGLang, LiteLLM
        (400, "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion.", 131_072, 140_000),
        (400, "Input length (265330) exceeds model's maximum context length (262144).", 262_144, 265_330),
        // Baseten, Poolside
        (400, "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131_040, 131_393),
        // vLLM
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).", 4_096, 5_000),
        (400, "This model's maximum context length is 32768 tokens. However, you requested 16000 output tokens and your prompt contains 20000 input tokens, for a total of 36000 tokens (20000 + 16000 = 36000 > 32768). Please reduce the length of the input prompt or the number of requested output tokens.", 32_768, 36_000),
        (500, "This model's maximum context length is 16384 tokens. However, you requested 4096 output tokens and your prompt contains at least 12289 input tokens, for a total of at least 16385 tokens. (parameter=input_tokens, value=12289)", 16_384, 16_385),
        (400, "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 4000 input tokens (5000 > 4096 - 4000).", 4_096, 9_000),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images and their aspect ratios.", 4_096, 5_000),
        // Modal
        (400, "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 tokens, resulting in a maximum input length of 98304 tokens. Please reduce the length of the input prompt.", 98_304, 131_073),
        // llama.cpp and relatives
        (400, "the request exceeds the available context size, try increasing it", 0, 0),
        (500, "the request exceeds the available context size. try increasing the context size or enable context shift", 0, 0),
        (400, "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192, 9_412),
        (500, "Context size has been exceeded.", 0, 0),
        (400, "Requested tokens (5000) exceed context window of 4096", 4_096, 5_000),
        (400, "Prompt has 256468 tokens, but the configured context size is 256000 tokens", 256_000, 256_468),
        // LM Studio
        (400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input", 4_096, 5_000),
        (400, "The number of tokens to keep from the initial prompt is greater than the context length.", 0, 0),
        // Ollama
        (400, "input length exceeds maximum context length", 0, 0),
        (400, "the input length exceeds the context length of 4096", 4_096, 0),
        (500, "prompt too long; exceeded max context length by 1234 tokens", 0, 0),
        (400, "Prompt too long: 9000 tokens exceeds max context window of 8192 tokens", 8_192, 9_000),
        // Qwen, DashScope
        (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", 30_720, 0),
        // Moonshot
        (400, "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)", 131_072, 140_000),
        (400, "Invalid request: Your request exceeded model token limit: 8192", 8_192, 0),
        // Zhipu, Z.ai
        (400, "Prompt 超长", 0, 0),
        (400, "tokens 超出模型限制", 0, 0),
        (400, "Prompt exceeds max length", 0, 0),
        (400, "tokens in request more than max tokens allowed", 0, 0),
        // MiniMax: the number is its error code
        (400, "invalid params, context window exceeds limit (2013)", 0, 0),
        // GitHub Copilot and Models
        (400, "prompt token count of 140000 exceeds the limit of 128000", 128_000, 140_000),
        (413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", 8_000, 0),
        // Fireworks
        (400, "The prompt is too long: 140000, model maximum context length: 131071", 131_071, 140_000),
        // Baidu, Volcengine, SambaNova, Cloudflare
        (200, "Prompt tokens too long", 0, 0),
        (400, "Total tokens of image and text exceed max message tokens", 0, 0),
        (400, "Requested generation length 1000 is not possible! The provided prompt is 4000 tokens long, so generating 1000 tokens requires a sequence length of 5000, but the maximum supported sequence length is just 4096!", 4_096, 5_000),
        (413, "AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (7968).", 7_968, 9_000),
        // Gateways
        (400, "Unhandled stop reason: model_context_window_exceeded", 0, 0),
        (400, "错误：上下文过长，请减少输入", 0, 0),
        (400, "请求的 tokens 超过了模型最大上下文长度", 0, 0),
        (413, "prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
        (429, "prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
    ];

    #[test]
    fn overflows() {
        for (status, message, limit, requested) in OVERFLOWS {
            check(Some(*status), message, over(*limit, *requested));
            check(None, message, over(*limit, *requested));
        }
    }

    /// Wordings that are something else, however close.
    #[test]
    fn not_overflows() {
        #[rustfmt::skip]
        let table = [
            // Rate limits that talk about tokens and context windows
            (413, "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 15041, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today", RateLimit),
            (429, "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.", RateLimit),
            (429, "Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3", RateLimit),
            (400, "Rate limit: your context window exceeded its tokens per day; maximum context length is 8192 tokens", RateLimit),
            (429, "Requests to the API have exceeded token rate limit of your current pricing tier. Please retry after 6 seconds.", RateLimit),
            (400, "ThrottlingException: Too many tokens, please wait before trying again.", RateLimit),
            (429, "You exceeded your current quota, please check your plan and billing details.", RateLimit),
            (429, "Resource has been exhausted (e.g. check quota).", RateLimit),
            (429, "Extra usage is required for long context requests.", RateLimit),
            (429, "Too Many Requests", RateLimit),
            (402, "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1234.", RateLimit),
            (402, "Prompt tokens limit exceeded: 13000 > 9000. To increase, visit your settings", RateLimit),
            (429, "您的账户已达到速率限制，请控制请求频率", RateLimit),
            // The cap on the answer
            (400, "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022", Other),
            (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", Other),
            (400, "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model", Other),
            (400, "Input validation error: `max_new_tokens` must be <= 4096. Given: 5000", Other),
            (400, "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", Other),
            // Harmless mentions
            (400, "Unknown parameter: 'context_window'.", Other),
            (400, "Unsupported parameter: context_length. Remove it and try again.", Other),
            (400, "Invalid value for 'truncation': input length policy must be 'auto' or 'disabled'.", Other),
            (400, "The long context beta is not yet available for this subscription.", Other),
            (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 instead.", Other),
            // Other errors
            (401, "Incorrect API key provided: sk-abc.", Other),
            (403, "You do not have access to this model.", Other),
            (404, "The model `gpt-9` does not exist or you do not have access to it.", Other),
            (500, "Internal server error", Other),
            (503, "The model is overloaded. Please try again later.", Other),
            (529, "Overloaded", Other),
            (400, "Let's investigate the context overflow bug", Other),
            // Sizes
            (413, "Request exceeds the maximum size", bytes(0)),
            (413, "Request exceeds the maximum allowed number of bytes.", bytes(0)),
            (413, "request_too_large: Request exceeds the maximum size of 32 MB", bytes(32_000_000)),
            (413, "request entity too large", bytes(0)),
            (400, "Request payload size exceeds the limit: 20971520 bytes.", bytes(20_971_520)),
            (400, "Request payload size exceeds the limit of 20 MiB", bytes(20 << 20)),
            (400, "Invalid request: total message size 2306631 exceeds limit 2097152", bytes(2_097_152)),
            (413, "Failed to buffer the request body: length limit exceeded", bytes(0)),
            (400, "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.", bytes(50_000)),
            (400, "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.", bytes(10_485_760)),
            (400, "Invalid 'input[3].name': string too long. Expected a string with maximum length 64, but got a string with length 316 instead.", ShapeFault),
            (400, "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", bytes(0)),
            // Images
            (400, "Too many images in request: 54 > 30", images(30)),
            (400, "Too many images in request. Max is 50.", images(50)),
            (400, "Too many images in request: 51, maximum allowed: 50", images(50)),
            (400, "Invalid request: max 20 images", images(20)),
            (400, "Too much media: 0 document pages + 124 images > 100", images(100)),
            (400, "too many images and documents: 21 + 0 > 20", images(20)),
            (400, "messages.84.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels", images(None)),
            (400, "At most 1 image(s) may be provided in one request.", images(1)),
            (400, "At most 0 image(s) may be provided in one prompt. Set `--limit-mm-per-prompt` to increase this limit.", images(0)),
            (400, "You can only include 10 image links. Please reduce the number accordingly.", images(10)),
            (400, "Too many images provided. This model supports up to 5 images", images(5)),
            (400, "Request exceeded the allowed number of images", images(None)),
            // Malformed requests
            (400, "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", ShapeFault),
            (400, "messages.38.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", ShapeFault),
            (500, "unexpected `tool_use_id` found in `tool_result` blocks: call_x.", ShapeFault),
            (400, "messages.1.content.0: Invalid `signature` in `thinking` block", ShapeFault),
            (400, "messages.5.content.0: Invalid signature in thinking block", ShapeFault),
            (400, "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", ShapeFault),
            (400, "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", ShapeFault),
            (400, "No tool call found for function call output with call_id call_1.", ShapeFault),
            (400, "No tool output found for function call call_1.", ShapeFault),
            (400, "Item 'rs_1' of type 'reasoning' was provided without its required following item.", ShapeFault),
            (400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_tpm_1", ShapeFault),
            (400, "<400> InternalError.Algo.InvalidParameter: An assistant message with \"tool_calls\" must be followed by tool messages", ShapeFault),
            (400, "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", ShapeFault),
            (400, "Please ensure that function call turn comes immediately after a user turn or after a function response turn.", ShapeFault),
            (400, "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.", ShapeFault),
            (400, "Not the same number of function calls and responses", ShapeFault),
            (400, "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1", ShapeFault),
            (400, "Conversation roles must alternate user/assistant/user/assistant/...", ShapeFault),
            (400, "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row", ShapeFault),
        ];
        for (status, message, expected) in table {
            check(Some(status), message, expected);
        }
    }

    #[test]
    fn structured_fields() {
        #[rustfmt::skip]
        let table = [
            // llama.cpp
            (r#"{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#, over(4_096, 5_000)),
            (r#"{"error":{"code":400,"message":"request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":13392,"n_ctx":8192}}"#, over(8_192, 13_392)),
            (r#"{"error":{"type":"exceed_context_size_error","n_ctx":"4096"}}"#, over(4_096, 0)),
            (r#"{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens": 5000,"n_ctx": 4096,"mess"#, over(4_096, 5_000)),
            ("{'error': {'type': 'exceed_context_size_error', 'n_ctx': 4096}}", over(4_096, 0)),
            // OpenAI, Copilot, GitHub Models, Zhipu, Baidu
            (r#"{"error":{"message":"nope","code":"context_length_exceeded"}}"#, over(0, 0)),
            (r#"{"error":{"message":"Too big for the quota of this model","code":"context_length_exceeded"}}"#, over(0, 0)),
            (r#"{"message":"nope","internal_code":"Context_Length_Exceeded"}"#, over(0, 0)),
            (r#"{"error":{"message":"prompt token count of 133252 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#, over(128_000, 133_252)),
            (r#"{"error":{"code":"tokens_limit_reached","message":"Max size: 8000 tokens.","details":null}}"#, over(8_000, 0)),
            (r#"{"error":{"code":"1261","message":"Prompt 超长"}}"#, over(0, 0)),
            (r#"{"error":{"code":"1261","message":"?"}}"#, over(0, 0)),
            (r#"{"error_code":336103,"error_msg":"?"}"#, over(0, 0)),
            (r#"{"error":{"code":"","type":"","message":""}}"#, Other),
            (r#"{"id":1261,"error":{"param":"336103"}}"#, Other),
            // Rate limits
            (r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","code":"rate_limit_exceeded"}}"#, RateLimit),
            (r#"{"type":"error","error":{"type":"rate_limit_error","message":"..."}}"#, RateLimit),
            (r#"{"error":{"code":429,"message":"Provider returned error"}}"#, RateLimit),
            // Sizes
            (r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#, bytes(0)),
            (r#"{"message":"request entity too large","expected":120000,"length":120000,"limit":102400,"type":"entity.too.large"}"#, bytes(102_400)),
            (r#"{"error":"Request entity too large","max_size":1048576,"error_code":"BODY_TOO_LARGE"}"#, bytes(1_048_576)),
            (r#"{"statusCode":413}"#, bytes(0)),
            (r#"<html><head><title>413 Request Entity Too Large</title></head></html>"#, bytes(0)),
            // A request echoed in the error is no evidence, whole or cut short.
            (r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{"messages":[{"content":"prompt is too long: 210000 tokens > 200000 maximum"}]}}]}"#, Other),
            (r#"{"detail":[{"type":"missing","msg":"Field required","input":{"content":"prompt is too long: 210000 tokens > 200000 max"#, Other),
            (r#"{"detail":[{'msg': 'Field required', 'input': {'content': 'prompt is too long: 210000 tokens > 200000 max"#, Other),
            ("1 validation error [type=missing, input_value='prompt is too long', input_type=str]", Other),
            // Wordings are not pieced together from several fields.
            (r#"{"a":"prompt is","b":"too long"}"#, Other),
            // Several limits: the smallest; the wording's count: the largest.
            (r#"{"a":"maximum context length is 32768 tokens","b":"maximum context length is 8192 tokens"}"#, over(8_192, 0)),
            ("maximum context length is 8192 tokens, maximum context length is 1023 tokens", over(8_192, 0)),
        ];
        for (body, expected) in table {
            assert_eq!(classify(None, body), expected, "{body}");
            assert_eq!(classify(Some(200), body), expected, "{body}");
        }
    }

    #[test]
    fn status_alone() {
        for (status, expected) in [
            (None, Other),
            (Some(200), Other),
            (Some(400), Other),
            (Some(401), Other),
            (Some(402), RateLimit),
            (Some(413), bytes(0)),
            (Some(422), Other),
            (Some(429), RateLimit),
            (Some(500), Other),
            (Some(529), Other),
            (Some(0), Other),
            (Some(u16::MAX), Other),
        ] {
            for body in ["", " ", "{}", "[]", "null", "{", "[", "]", "\"", "{}{}", "\u{feff}"] {
                assert_eq!(classify(status, body), expected, "{status:?} {body}");
            }
        }
    }

    #[test]
    fn numbers() {
        for (number, limit) in [
            ("0", 0),
            ("1", 0),
            ("1023", 0),
            ("1,023", 0),
            ("1024", 1_024),
            ("1,024", 1_024),
            ("128,000", 128_000),
            ("128_000", 128_000),
            ("128'000", 128_000),
            ("1 048 576", 1_048_576),
            ("1\u{202f}048\u{a0}576", 1_048_576),
            ("1,048,576", 1_048_576),
            ("1,0485,76", 0),
            ("4096,8192", 4_096),
            ("4096 8192", 4_096),
            ("12,34", 0),
            ("128k", 128_000),
            ("128K", 128_000),
            ("1M", 1_000_000),
            ("4096kilo", 4_096),
            ("1k", 0),
            ("20000000", 20_000_000),
            ("20000001", 0),
            ("20M", 20_000_000),
            ("1000000000000", 0),
            ("18446744073709551616", 0),
            ("9999999999999999999999999999999999999999", 0),
            ("9999999999999999999999999999999999999999k", 0),
            ("-4096", 0),
            ("~4096", 4_096),
            (": 4096", 4_096),
            ("(4096)", 4_096),
            ("\"4096\"", 4_096),
            ("", 0),
            ("many", 0),
        ] {
            for end in ["", " tokens", ".", ", sorry", "\n", " (at 10:30)"] {
                let body = format!("This model's maximum context length is {number}{end}");
                assert_eq!(classify(Some(400), &body), over(limit, 0), "{body}");
            }
        }
        for (count, requested) in [("20000000", 20_000_000), ("20000001", 0), ("0", 0)] {
            let body = format!("prompt is too long: {count} tokens > 200000 maximum");
            assert_eq!(classify(None, &body), over(200_000, requested));
        }
    }

    #[test]
    fn only_the_start_of_a_huge_body_counts() {
        let message = "prompt is too long: 210000 tokens > 200000 maximum";
        let expected = over(200_000, 210_000);
        for filler in ["prompt ", "[", "9", "上", "{\"a\":"] {
            let filler = filler.repeat(5_000_000 / filler.len());
            assert_eq!(classify(Some(400), &format!("{message}. {filler}")), expected);
            assert_eq!(classify(Some(400), &format!("{filler} {message}")), Other);
        }
    }

    #[test]
    fn any_cut_is_harmless() {
        for (_, message, ..) in OVERFLOWS {
            let bodies = wrapped(message);
            for body in [&bodies[5], &bodies[8]] {
                for end in (0..body.len()).step_by(11) {
                    let end = body.floor_char_boundary(end);
                    classify(Some(400), &body[..end]);
                    classify(None, &body[end..]);
                }
            }
        }
    }

    #[test]
    fn a_request_count_is_never_the_limit() {
        for (status, message, _, requested) in OVERFLOWS {
            for end in (0..message.len()).step_by(2) {
                let end = message.floor_char_boundary(end);
                let class = classify(Some(*status), &message[..end]);
                let ErrorClass::Overflow { limit: Some(n), .. } = class else {
                    continue;
                };
                assert!(n != *requested, "{}", &message[..end]);
            }
        }
    }

    #[test]
    fn serialised() {
        for (class, json) in [
            (over(4_096, 0), r#"{"kind":"overflow","limit":4096,"requested":null}"#),
            (bytes(0), r#"{"kind":"too_many_bytes","limit":null}"#),
            (images(5), r#"{"kind":"too_many_images","limit":5}"#),
            (ShapeFault, r#"{"kind":"shape_fault"}"#),
            (RateLimit, r#"{"kind":"rate_limit"}"#),
            (Other, r#"{"kind":"other"}"#),
        ] {
            assert_eq!(serde_json::to_string(&class).unwrap(), json);
        }
    }
}

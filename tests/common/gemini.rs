//! What the Gemini API accepts as `contents`, written from the vendor's API reference, the types
//! of its SDK (`@google/genai`) and the error texts that the API answers with; not from the
//! renderer. Where the Gemini API and Vertex AI differ, the strictest rule stands.

use serde_json::Value;
use serde_json::value::RawValue;

/// The one-of that holds a part's data.
const DATA: [&str; 9] = [
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// What stands beside it.
const BESIDE: [&str; 7] = [
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "mediaResolution",
    "partMetadata",
    "mediaProcessing",
    "speechMetadata",
];

/// What the API would refuse, or nothing. A last batch of calls may still wait for responses: the
/// host is about to add them.
pub fn problems(contents: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    if contents.is_empty() {
        found.push("contents are required".to_owned());
    }
    for (at, content) in contents.iter().enumerate() {
        check_content(at, content, &mut found);
    }
    check_turns(contents, &mut found);
    found
}

/// The member of that name in either spelling.
fn get<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).or_else(|| value.get(snake(name))).unwrap_or(&Value::Null)
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let mut letters = part.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        out + &head.into_iter().collect::<String>() + letters.as_str()
    })
}

fn parts(content: &Value) -> &[Value] {
    content["parts"].as_array().map_or(&[], Vec::as_slice)
}

fn is_model(content: &Value) -> bool {
    content["role"] == "model"
}

fn check_content(at: usize, content: &Value, found: &mut Vec<String>) {
    let mut problem = |what: String| found.push(format!("contents[{at}]{what}"));
    for name in content.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if name != "role" && name != "parts" {
            problem(format!(": unknown name {name:?}"));
        }
    }
    match &content["role"] {
        Value::Null => {}
        Value::String(role) if ["user", "model", "function"].contains(&&**role) => {}
        _ => problem(": please use a valid role: user, model".to_owned()),
    }
    if parts(content).is_empty() {
        problem(".parts: must not be empty".to_owned());
    }
    for (index, part) in parts(content).iter().enumerate() {
        check_part(is_model(content), part, |what| problem(format!(".parts[{index}]{what}")));
    }
}

fn check_part(model: bool, part: &Value, mut problem: impl FnMut(String)) {
    let Some(members) = part.as_object() else { return problem(": not an object".to_owned()) };
    let names: Vec<String> = members.keys().map(|name| camel(name)).collect();
    let data: Vec<&String> = names.iter().filter(|name| DATA.contains(&&***name)).collect();
    let unknown =
        names.iter().find(|name| !DATA.contains(&&***name) && !BESIDE.contains(&&***name));
    // What is newer than these types has its own data.
    match (data.len(), unknown) {
        (1, None) | (0, Some(_)) => {}
        (0, None) => problem(".data: required oneof field must have one initialized field".into()),
        _ => problem(": several data fields in one part".to_owned()),
    }
    let signed = get(part, "thoughtSignature");
    if !signed.is_null() && !signed.is_string() {
        problem(".thoughtSignature: base64 expected".to_owned());
    }
    if part.get("text").is_some_and(|text| text.as_str().is_none_or(str::is_empty))
        && !signed.is_string()
    {
        problem(": must have a text parameter".to_owned());
    }
    let call = get(part, "functionCall");
    if !call.is_null() {
        if !model {
            problem(".functionCall: only the model calls".to_owned());
        }
        if call["name"].as_str().is_none_or(str::is_empty) {
            problem(".functionCall.name: must not be empty".to_owned());
        }
        if !call["args"].is_null() && !call["args"].is_object() {
            problem(".functionCall.args: an object is expected".to_owned());
        }
    }
    let response = get(part, "functionResponse");
    if !response.is_null() {
        if model {
            problem(".functionResponse: the model does not respond".to_owned());
        }
        if response["name"].as_str().is_none_or(str::is_empty) {
            problem(".functionResponse.name: must not be empty".to_owned());
        }
        if !response["response"].is_object() {
            problem(".functionResponse.response: an object is expected".to_owned());
        }
        for item in response["parts"].as_array().into_iter().flatten() {
            let blob = [get(item, "inlineData"), get(item, "fileData")];
            let names = item.as_object().map_or(0, serde_json::Map::len);
            if names != 1 || blob.iter().all(|blob| !blob.is_object()) {
                problem(".functionResponse.parts: inlineData or fileData is expected".to_owned());
            }
        }
    }
    for (name, needs) in
        [("inlineData", ["mimeType", "data"]), ("fileData", ["mimeType", "fileUri"])]
    {
        let blob = get(part, name);
        if !blob.is_null() && needs.iter().any(|member| !get(blob, member).is_string()) {
            problem(format!(".{name}: {needs:?} are required"));
        }
    }
}

fn calls(content: &Value) -> impl Iterator<Item = &Value> {
    parts(content).iter().map(|part| get(part, "functionCall")).filter(|call| !call.is_null())
}

fn responses(content: &Value) -> impl Iterator<Item = &Value> {
    let all = parts(content).iter().map(|part| get(part, "functionResponse"));
    all.filter(|response| !response.is_null())
}

/// Turns: contents of one side in a row. The responses to the calls of a turn come in the very
/// next content, all of them.
fn check_turns(contents: &[Value], found: &mut Vec<String>) {
    if contents.first().is_some_and(is_model) {
        found.push("contents[0]: the first turn must be the user's".to_owned());
    }
    let mut waiting: Vec<&Value> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let mut problem = |what: &str| found.push(format!("contents[{at}]: {what}"));
        if is_model(content) {
            waiting.extend(calls(content));
            continue;
        }
        let answers: Vec<&Value> = responses(content).collect();
        let last = at + 1 == contents.len();
        if waiting.is_empty() && !answers.is_empty() {
            problem("function response turn must come immediately after a function call turn");
        }
        if answers.len() > waiting.len() || (answers.len() < waiting.len() && !last) {
            problem("number of function response parts must equal that of function call parts");
        }
        // By id, then without ids by name, then with the id of one of the two by name.
        let mut answers = answers;
        for ids in [2, 0, 1] {
            answers.retain(|answer| {
                let fits = |call: &&Value| {
                    let both = [&call["id"], &answer["id"]];
                    both.iter().filter(|id| id.is_string()).count() == ids
                        && call["name"] == answer["name"]
                        && (ids < 2 || both[0] == both[1])
                };
                let found = waiting.iter().position(fits).map(|at| waiting.remove(at));
                found.is_none()
            });
        }
        if !answers.is_empty() {
            problem("function response without its function call");
        }
        waiting.clear();
    }
}

/// JSON that may hold half an emoji.
fn parsed(json: &str) -> Value {
    let mended = || serde_json::from_str(&json.replace("\\ud83d", "\\u003f"));
    serde_json::from_str(json).or_else(|_| mended()).expect("JSON")
}

/// Signed parts of contents, each as its bytes, in order.
pub fn signed(contents: &[String]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Content<'m> {
        #[serde(borrow)]
        parts: Option<Vec<&'m RawValue>>,
    }
    let mut out = Vec::new();
    for content in contents {
        let content: Content = serde_json::from_str(content).expect("a content");
        for part in content.parts.unwrap_or_default() {
            let value = parsed(part.get());
            if get(&value, "thoughtSignature").is_string() {
                out.push(part.get().to_owned());
            }
        }
    }
    out
}

/// Whether the signed parts of a view are those of the transcript, byte for byte and in order, but
/// for some that are absent; and no call has lost its signature.
pub fn keeps_signed(transcript: &[String], view: &[String]) -> bool {
    let all = signed(transcript);
    let mut rest = all.iter();
    let whole = signed(view).iter().all(|part| rest.any(|other| other == part));
    let bare = |contents: &[String]| {
        let mut out = Vec::new();
        for content in contents {
            let content = parsed(content);
            for part in parts(&content) {
                let call = get(part, "functionCall");
                if !call.is_null() && get(part, "thoughtSignature").is_null() {
                    out.push((call["id"].clone(), call["name"].clone()));
                }
            }
        }
        out
    };
    let mut known = bare(transcript);
    whole
        && bare(view).iter().all(|call| {
            let at = known.iter().position(|other| other == call);
            at.map(|at| known.swap_remove(at)).is_some()
        })
}

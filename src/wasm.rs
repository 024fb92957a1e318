//! The bindings: strings in, plain objects out, no logic.
//!
//! What comes in is JSON, read by the engine's own reader, whose errors name the member; what
//! goes out are plain objects, which cost less than JSON to hand over.

use js_sys::{Error as JsError, Function};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::{
    BuildRequest, Engine, Error, ErrorCode, Given, Options, Piece, PlanRequest, Protocols,
    RecallArgs, Reply, ValidateRequest, Wanted,
};

/// The engine behind `Session`; see the methods of [`crate::Engine`].
#[wasm_bindgen(js_name = Engine)]
pub struct WasmEngine(Engine);

type Result<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen(js_class = Engine)]
impl WasmEngine {
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, checkpoint: Option<String>) -> Result<WasmEngine> {
        let mut options = Options::from_json(options).map_err(throw)?;
        let engine = match checkpoint {
            Some(checkpoint) => Engine::restore(options, &checkpoint),
            None => {
                if options.secret.is_none() {
                    options.secret = Some(draw_secret()?);
                }
                Engine::new(options)
            }
        };
        engine.map(WasmEngine).map_err(throw)
    }

    /// Takes bytes: the glue would copy a long string one character at a time.
    pub fn ingest(&mut self, from: usize, json: &[u8], pins: &[u32]) -> Result<()> {
        let json = std::str::from_utf8(json)
            .map_err(|_| throw(Error::at(ErrorCode::InvalidJson, "messages", "not UTF-8")))?;
        self.0.ingest(from, json, pins).map_err(throw)
    }

    #[wasm_bindgen(js_name = ingestBody)]
    pub fn ingest_body(&mut self, bytes: &[u8], path: Option<String>) -> Result<()> {
        self.0.ingest_body(bytes, path.as_deref()).map_err(throw)
    }

    #[wasm_bindgen(js_name = renderBody)]
    pub fn render_body(&mut self) -> Option<Vec<u8>> {
        self.0.render_body().map(String::into_bytes)
    }

    pub fn problems(&self) -> Result<JsValue> {
        write(&self.0.problems())
    }

    pub fn sizes(&self) -> Result<JsValue> {
        write(&self.0.sizes())
    }

    /// A function of the text that gives its tokens; where it throws, they are estimated.
    #[wasm_bindgen(js_name = setTokenizer)]
    pub fn set_tokenizer(&mut self, count: Function) {
        self.0.set_tokenizer(Box::new(move |text| {
            let tokens = count.call1(&JsValue::NULL, &text.into()).ok()?.as_f64()?;
            (tokens >= 0.0).then_some(tokens as u32)
        }));
    }

    /// Functions in place of parts of the engine; see [`Protocols`].
    #[wasm_bindgen(js_name = setProtocols)]
    pub fn set_protocols(
        &mut self,
        format: Option<Function>,
        prune: Option<Function>,
        build: Option<Function>,
        validate: Option<Function>,
    ) {
        self.0.set_protocols(Protocols {
            format: format
                .map(|own| Box::new(move |pieces: &[Piece<'_>]| text(ask(&own, pieces)?)) as _),
            prune: prune.map(|own| Box::new(move |piece: &Piece<'_>| text(ask(&own, piece)?)) as _),
            build: build.map(|own| {
                Box::new(move |request: &BuildRequest<'_>| text(ask(&own, request)?)) as _
            }),
            validate: validate.map(|own| {
                Box::new(move |request: &ValidateRequest<'_>| {
                    let given = ask(&own, request)?;
                    let good = given.is_undefined() || given.is_null() || given == true;
                    if good { Ok(None) } else { text(given).map(Some) }
                }) as _
            }),
        });
    }

    #[wasm_bindgen(js_name = setTools)]
    pub fn set_tools(&mut self, json: &str) -> Result<()> {
        self.0.set_tools(json).map_err(throw)
    }

    #[wasm_bindgen(js_name = setSystem)]
    pub fn set_system(&mut self, json: &str) -> Result<()> {
        self.0.set_system(json).map_err(throw)
    }

    pub fn plan(&mut self, request: &str) -> Result<JsValue> {
        let request = PlanRequest::from_json(request).map_err(throw)?;
        write(&self.0.plan(request).map_err(throw)?)
    }

    pub fn resolve(&mut self, id: u32, reply: &str) -> Result<JsValue> {
        let reply = Reply::from_json(reply).map_err(throw)?;
        write(&self.0.resolve(id, reply).map_err(throw)?)
    }

    pub fn propose(&mut self, id: u32, wanted: &str) -> Result<u32> {
        let wanted = Wanted::from_json(wanted).map_err(throw)?;
        self.0.propose(id, wanted).map_err(throw)
    }

    pub fn cancel(&mut self) {
        self.0.cancel();
    }

    pub fn render(&mut self, epoch: u32, unit: u32, items_before: u32) -> Result<JsValue> {
        write(&self.0.render(epoch, unit, items_before))
    }

    pub fn estimate(&self) -> Result<JsValue> {
        write(&self.0.estimate())
    }

    pub fn explain(&self, index: u32) -> Result<JsValue> {
        write(&self.0.explain(index).map_err(throw)?)
    }

    pub fn stats(&self) -> Result<JsValue> {
        write(&self.0.stats())
    }

    #[wasm_bindgen(js_name = recallTool)]
    pub fn recall_tool(&self) -> Result<JsValue> {
        write(&self.0.recall_tool())
    }

    pub fn recall(&self, args: &str) -> Result<JsValue> {
        write(&self.0.recall(&recall_args(args)?).map_err(throw)?)
    }

    #[wasm_bindgen(js_name = recallFetched)]
    pub fn recall_fetched(&self, args: &str, content: Option<String>) -> Result<String> {
        self.0.recall_fetched(&recall_args(args)?, content.as_deref()).map_err(throw)
    }

    /// The summaries that there were, and the running one.
    pub fn summaries(&self) -> Result<JsValue> {
        write(&self.0.summaries())
    }

    #[wasm_bindgen(js_name = windowKey)]
    pub fn window_key(&self) -> Result<JsValue> {
        write(&self.0.window_key())
    }

    #[wasm_bindgen(js_name = learnedWindow)]
    pub fn learned_window(&self) -> Option<u32> {
        self.0.learned_window()
    }

    #[wasm_bindgen(js_name = shareWindow)]
    pub fn share_window(&mut self, window: u32) {
        self.0.share_window(window);
    }

    pub fn checkpoint(&self) -> String {
        self.0.checkpoint()
    }
}

/// Classifies a provider's error; see [`crate::classify`].
#[wasm_bindgen(js_name = classifyError)]
pub fn classify_error(status: Option<u16>, body: &str) -> Result<JsValue> {
    write(&crate::classify(status, body))
}

/// In a debug build a panic is thrown with its message, and with its place in the source.
#[cfg(debug_assertions)]
#[wasm_bindgen(start)]
pub fn throw_panics() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
}

/// Panics, so that a test can see what becomes of that.
#[cfg(debug_assertions)]
#[wasm_bindgen(js_name = panicOnPurpose)]
pub fn panic_on_purpose() {
    panic!("on purpose");
}

fn recall_args(args: &str) -> Result<RecallArgs> {
    RecallArgs::from_json(args).map_err(throw)
}

fn write<T: Serialize>(value: &T) -> Result<JsValue> {
    let json = serde_wasm_bindgen::Serializer::json_compatible();
    value.serialize(&json).map_err(|error| JsError::new(&error.to_string()).into())
}

/// Calls a function of the host; what it throws is a message.
fn ask<T: Serialize + ?Sized>(own: &Function, argument: &T) -> Given<JsValue> {
    let json = serde_wasm_bindgen::Serializer::json_compatible();
    let argument = argument.serialize(&json).map_err(|error| error.to_string())?;
    own.call1(&JsValue::NULL, &argument).map_err(|thrown| {
        let message = js_sys::Reflect::get(&thrown, &"message".into()).ok();
        let message = message.and_then(|message| message.as_string());
        message.or_else(|| thrown.as_string()).unwrap_or_else(|| "it threw".to_owned())
    })
}

fn text(given: JsValue) -> Given<String> {
    given.as_string().ok_or_else(|| "it returned no string".to_owned())
}

fn throw(error: Error) -> JsValue {
    let js = JsError::new(&error.to_string());
    for (name, text) in [("code", error.code().as_str()), ("path", error.path())] {
        // Setting a property of a fresh error object cannot fail.
        let _ = js_sys::Reflect::set(&js, &name.into(), &text.into());
    }
    js.into()
}

fn draw_secret() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| {
        let what = "no source of randomness here: give 32 hexadecimal digits";
        throw(Error::at(ErrorCode::InvalidOption, "options.secret", what))
    })?;
    Ok(crate::engine::hex(&bytes))
}

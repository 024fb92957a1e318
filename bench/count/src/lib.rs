//! The counter alone as a wasm module, for `report.mjs`: how fast it is, and how many bytes of
//! wasm it takes, as the difference to a build without the feature `count`.

#[cfg(feature = "count")]
#[allow(dead_code)]
#[path = "../../../src/count/mod.rs"]
mod count;

/// Room for a text of so many bytes; the caller writes it there.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    Vec::<u8>::leak(vec![0; length]).as_mut_ptr()
}

/// Estimated tokens of the text there, by the number of a family.
///
/// # Safety
/// `text` comes from [`room`] and holds `length` bytes of UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tokens(text: *const u8, length: usize, family: u32, escaped: u32) -> u32 {
    let text = unsafe { str::from_utf8_unchecked(std::slice::from_raw_parts(text, length)) };
    #[cfg(feature = "count")]
    {
        use count::Family::*;
        let families = [O200k, Cl100k, Claude, Llama3, Gemini, Bytes];
        let family = families[family as usize % families.len()];
        if escaped == 0 { family.text(text) } else { family.escaped(text) }
    }
    #[cfg(not(feature = "count"))]
    {
        text.len() as u32 + family + escaped
    }
}

use super::Entry;
pub(crate) struct Audit {
    pub found: usize,
    pub kept: usize,
    pub appended: usize,
    pub appendix: String,
}
pub(crate) fn audit(
    _span: &[Entry<'_>],
    _s: &str,
    _p: Option<&str>,
    _m: usize,
    _c: &dyn Fn(&str) -> usize,
) -> Audit {
    Audit { found: 0, kept: 0, appended: 0, appendix: String::new() }
}

use super::Entry;
pub(crate) const SECTIONS: [&str; 6] = [
    "Session intent",
    "Current state",
    "Key facts & decisions",
    "Artifacts",
    "Constraints & preferences",
    "Next steps",
];
pub(crate) fn summarize(
    previous: Option<&str>,
    span: &[Entry<'_>],
    max: usize,
    _count: &dyn Fn(&str) -> usize,
) -> String {
    let mut out = String::from("## Session intent\n");
    let first = previous
        .map(|p| p.to_owned())
        .unwrap_or_else(|| span.first().map(|e| e.text.to_string()).unwrap_or_default());
    out.extend(first.chars().take(max));
    out
}

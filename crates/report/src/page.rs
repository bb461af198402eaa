//! The page: a shell, a style, scripts, and the reports as JSON. It loads nothing.

use crate::data::Report;
use crate::diff::Diff;
use serde_json::json;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 6] = [
    include_str!("page/words.js"),
    include_str!("page/summary.js"),
    include_str!("page/layers.js"),
    include_str!("page/memory.js"),
    include_str!("page/charts.js"),
    include_str!("page/main.js"),
];

/// Renders a report as a page; with an older report, also how they differ. The same reports give
/// the same bytes.
pub fn html(report: &Report, old: Option<&Report>) -> String {
    let diff = old.map(|old| Diff::new(old, report));
    let data = json!({ "report": report, "old": old, "diff": diff });
    // Without `<`, neither `</script>` nor a comment can begin.
    let data = data.to_string().replace('<', "\\u003c");
    // The data comes last, because its names may look like the other placeholders.
    PAGE.replacen("{{title}}", &escaped(&report.name), 1)
        .replacen("{{style}}", STYLE, 1)
        .replacen("{{scripts}}", &SCRIPTS.concat(), 1)
        .replacen("{{data}}", &data, 1)
}

/// Escapes the text of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('{', "&#123;")
}

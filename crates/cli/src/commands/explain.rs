//! `tfcompile explain`: prints the explanation of an error code.

use crate::files::outputs;
use clap::Args;
use support::{Error, Result};

/// Pages about errors, which have a section for each code, in the order of the codes.
const PAGES: &[&str] = &[
    include_str!("../../../../docs/errors/general.md"),
    include_str!("../../../../docs/errors/command-line.md"),
    include_str!("../../../../docs/errors/graphs.md"),
    include_str!("../../../../docs/errors/interface.md"),
    include_str!("../../../../docs/errors/sizes.md"),
    include_str!("../../../../docs/errors/ops.md"),
    include_str!("../../../../docs/errors/models.md"),
    include_str!("../../../../docs/errors/hlo.md"),
    include_str!("../../../../docs/errors/running.md"),
];

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Code at the end of an error message, such as E0401 [default: list all codes]
    code: Option<String>,
}

/// Prints the section of a code, or the list of codes.
pub(crate) fn run(arguments: &Explain) -> Result<()> {
    let Some(code) = &arguments.code else {
        return outputs::print(&titles().map(|title| format!("{title}\n")).collect::<String>());
    };
    let section = section(code).ok_or_else(|| {
        Error::invalid(format!("unknown error code '{code}'; `tfcompile explain` lists all codes"))
    })?;
    outputs::print(&without_links(section))
}

/// Titles of all sections: codes and their meanings.
fn titles() -> impl Iterator<Item = &'static str> {
    PAGES.iter().flat_map(|page| page.lines()).filter_map(|line| line.strip_prefix("## "))
}

/// Section of a code, up to the next title.
fn section(code: &str) -> Option<&'static str> {
    let title = format!("## {}: ", code.to_ascii_uppercase());
    PAGES.iter().find_map(|page| {
        let start = page.find(&title)? + "## ".len();
        let length = page[start..].find("\n## ").map_or(page.len() - start, |end| end + 1);
        Some(&page[start..start + length])
    })
}

/// Replaces links by their texts, since a terminal cannot follow them.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let start = rest[..middle].rfind('[');
        let end = rest[middle..].find(')');
        let (Some(start), Some(end)) = (start, end) else { break };
        out.push_str(&rest[..start]);
        out.push_str(&rest[start + 1..middle]);
        rest = &rest[middle + end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{section, titles, without_links};
    use support::Code;

    #[test]
    fn each_code_has_a_section_with_cause_and_fix() {
        let titles: Vec<&str> =
            titles().filter_map(|title| title.split_once(": ")).map(|(code, _)| code).collect();
        let codes: Vec<String> = Code::ALL.iter().map(Code::to_string).collect();
        assert_eq!(titles, codes, "sections of docs/errors/, and codes");
        for code in &codes {
            let section = section(code).expect("a section");
            for part in ["**Cause.** ", "**Fix.** "] {
                assert_eq!(section.matches(part).count(), 1, "{code}: {part}");
            }
        }
    }

    #[test]
    fn a_section_ends_before_the_next() {
        let section = section("e0401").expect("a section");
        assert!(section.starts_with("E0401: "), "{section}");
        assert!(!section.contains("E0402: "), "{section}");
    }

    #[test]
    fn the_index_lists_each_title() {
        let index = include_str!("../../../../docs/errors.md");
        let rows = index.lines().filter(|line| line.starts_with("| [E"));
        let listed: Vec<String> = rows
            .filter_map(|row| {
                let (code, title) = row.strip_prefix("| [")?.strip_suffix(" |")?.split_once(") | ")?;
                Some(format!("{}: {title}", code.split_once(']')?.0))
            })
            .collect();
        assert_eq!(listed, titles().collect::<Vec<_>>());
    }

    #[test]
    fn links_become_their_texts() {
        assert_eq!(without_links("see [a b](../c.md#d), [e](f)."), "see a b, e.");
        assert_eq!(without_links("float[2,3] f(x)"), "float[2,3] f(x)");
    }

    #[test]
    fn an_unknown_code_has_no_section() {
        assert_eq!(section("E9999"), None);
        assert_eq!(section(""), None);
    }
}

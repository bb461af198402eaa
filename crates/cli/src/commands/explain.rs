//! `tfcompile explain`: what an error's code means.

use crate::files::outputs;
use clap::Args;
use support::{Error, Result};

/// The index of errors, which has a section for each code.
const INDEX: &str = include_str!("../../../../docs/errors.md");

/// Flags of `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code that an error ends with, such as E0401 [default: a list of all codes]
    code: Option<String>,
}

/// Prints the section of a code, or the list of them.
pub(crate) fn run(arguments: &Explain) -> Result<()> {
    let Some(code) = &arguments.code else {
        let titles = INDEX.lines().filter_map(|line| line.strip_prefix("## E"));
        return outputs::print(&titles.map(|title| format!("E{title}\n")).collect::<String>());
    };
    let section = section(code).ok_or_else(|| {
        Error::invalid(format!("'{code}' is no error's code: `tfcompile explain` lists them"))
    })?;
    outputs::print(section)
}

/// The section of a code, from its title to the next one.
fn section(code: &str) -> Option<&'static str> {
    let title = format!("## {}: ", code.to_ascii_uppercase());
    let start = INDEX.find(&title)? + "## ".len();
    let length = INDEX[start..].find("\n## ").map_or(INDEX.len() - start, |end| end + 1);
    Some(&INDEX[start..start + length])
}

#[cfg(test)]
mod tests {
    use super::{INDEX, section};
    use support::Code;

    #[test]
    fn each_code_has_a_section_with_cause_and_cure() {
        let titles: Vec<&str> = INDEX
            .lines()
            .filter_map(|line| line.strip_prefix("## ")?.split_once(": "))
            .map(|(code, _)| code)
            .collect();
        let codes: Vec<String> = Code::ALL.iter().map(Code::to_string).collect();
        assert_eq!(titles, codes, "sections of docs/errors.md, and codes");
        for code in &codes {
            let section = section(code).expect("a section");
            for part in ["**Cause.** ", "**Cure.** "] {
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
    fn what_is_no_code_has_no_section() {
        assert_eq!(section("E9999"), None);
        assert_eq!(section(""), None);
    }
}

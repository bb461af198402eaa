//! Generated text from templates: files that hold the text as it will be, with names between at signs for what differs.

/// Fills a template: `@NAME@` becomes the value of that name. A line that is a name alone becomes the lines of the value,
/// indented as it is, and nothing for an empty value. Values are not searched for names.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for line in template.lines() {
        let name = line.trim_start();
        match value(name, values) {
            Some((value, "")) => {
                let indentation = &line[..line.len() - name.len()];
                for line in value.lines() {
                    if !line.is_empty() {
                        out.push_str(indentation);
                    }
                    out.push_str(line);
                    out.push('\n');
                }
            }
            _ => {
                fill_line(&mut out, line, values);
                out.push('\n');
            }
        }
    }
    out
}

/// Appends a line with the values of the names in it.
fn fill_line<'t>(out: &mut String, mut line: &'t str, values: &[(&str, &'t str)]) {
    while let Some(at) = line.find('@') {
        out.push_str(&line[..at]);
        line = &line[at..];
        match value(line, values) {
            Some((value, rest)) => {
                out.push_str(value);
                line = rest;
            }
            None => {
                out.push('@');
                line = &line[1..];
            }
        }
    }
    out.push_str(line);
}

/// The value of the name that a text begins with, and the text after the name.
fn value<'t>(text: &'t str, values: &[(&str, &'t str)]) -> Option<(&'t str, &'t str)> {
    let (name, rest) = text.strip_prefix('@')?.split_once('@')?;
    let (_, value) = values.iter().find(|(known, _)| *known == name)?;
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_once_and_lines_of_their_own_keep_their_indentation() {
        let values = [("X", "1"), ("LINES", "a\n\n  @X@\n"), ("NONE", "")];
        assert_eq!(fill("f(@X@, @X@) @Y@ me@example\n", &values), "f(1, 1) @Y@ me@example\n");
        assert_eq!(fill("{\n  @LINES@\n  @NONE@\n}\n", &values), "{\n  a\n\n    @X@\n}\n");
    }
}

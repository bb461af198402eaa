//! Generated text from templates: files that contain the text, with placeholders between at signs.

/// Fills a template: replaces `@NAME@` by the value of that name. A line that consists of a
/// placeholder becomes the lines of the value with the same indentation, or nothing if the value is
/// empty. Values are not searched for placeholders.
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

/// Appends a line with its placeholders replaced.
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

/// Returns the value of the placeholder at the start of `text`, and the text after it.
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

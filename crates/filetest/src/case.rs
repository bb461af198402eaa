//! Parses a test file.

/// Separates the input from the expected output.
const ARROW: &str = "// ==>\n";

/// A test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the directive: `pass` in `// test: pass=dce`.
    pub directive: String,
    /// Text after the `=`: `dce`; empty without one.
    pub argument: String,
    /// Everything above the arrow, including comments, so that line numbers match the file.
    pub input: String,
    /// Everything below the arrow; `None` without an arrow.
    pub expected: Option<String>,
    /// Errors announced by comments, in file order.
    pub errors: Vec<LineError>,
}

/// An error and its one-based line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line.
    pub line: usize,
    /// The message, or a part of it in an expectation.
    pub message: String,
}

impl LineError {
    /// Parses an error whose message starts with its line: `7: unknown operand 'y'`. A message
    /// without a line is about line 1.
    pub fn from_message(message: &str) -> Self {
        let with_line = message.split_once(": ").and_then(|(line, rest)| Some((line.parse().ok()?, rest)));
        let (line, message) = with_line.unwrap_or((1, message));
        Self { line, message: message.to_owned() }
    }
}

impl Case {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let directive = text.lines().next().and_then(|line| line.strip_prefix("// test: "));
        let directive = directive.ok_or("the first line must be '// test: DIRECTIVE'")?.trim();
        let (directive, argument) = directive.split_once('=').unwrap_or((directive, ""));
        let (input, expected) = match text.split_once(ARROW) {
            Some((input, expected)) => (input, Some(expected.to_owned())),
            None => (text, None),
        };
        Ok(Self {
            directive: directive.to_owned(),
            argument: argument.to_owned(),
            input: input.to_owned(),
            expected,
            errors: expected_errors(input),
        })
    }

    /// Returns the input without the comments above its first line.
    pub fn input_without_header(&self) -> &str {
        let mut rest = &self.input[..];
        while let Some((line, following)) = rest.split_once('\n') {
            if !line.trim().is_empty() && !line.starts_with("//") {
                break;
            }
            rest = following;
        }
        rest
    }

    /// Returns the file's text with a different expected output.
    pub fn with_expected(&self, output: &str) -> String {
        format!("{}{ARROW}{output}", self.input)
    }
}

fn expected_errors(input: &str) -> Vec<LineError> {
    let mut errors = Vec::new();
    for (i, line) in input.lines().enumerate() {
        // A line may announce several errors.
        for message in line.split("// error: ").skip(1) {
            let message = message.trim();
            let mut error = LineError::from_message(message);
            if error.message == message {
                error.line = i + 1;
            }
            errors.push(error);
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_falls_into_its_parts() {
        let text = "// test: pass=dce\n// Claim.\n\nHloModule m // error: far\n\
             // error: 9: near\n// ==>\nout\n";
        let case = Case::parse(text).expect("a directive");
        assert_eq!((&case.directive[..], &case.argument[..]), ("pass", "dce"));
        assert_eq!(case.expected.as_deref(), Some("out\n"));
        assert_eq!(case.input_without_header(), "HloModule m // error: far\n// error: 9: near\n");
        let error = |line, message: &str| LineError { line, message: message.to_owned() };
        assert_eq!(case.errors, [error(4, "far"), error(9, "near")]);
        assert_eq!(case.with_expected("new\n"), text.replace("out\n", "new\n"));
    }

    #[test]
    fn a_file_without_a_directive_is_refused() {
        assert!(Case::parse("HloModule m\n").is_err());
    }
}

//! The names in a config file: feeds, fetches, and variables, in order.

use std::path::Path;

/// A feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feed {
    /// Name of the tensor, `node:0`.
    pub tensor: String,
    /// Sizes of the tensor.
    pub sizes: Vec<i64>,
}

/// The parts of a `tensorflow.tf2xla.Config` that describe inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// Feeds, in order.
    pub feeds: Vec<Feed>,
    /// Tensors, in order.
    pub fetches: Vec<String>,
    /// Node names, in order.
    pub variables: Vec<String>,
}

/// Reads a config in text format.
pub(super) fn read(path: &Path) -> Result<Config, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).ok_or_else(|| format!("{}: unsupported config", path.display()))
}

/// Tracks the nesting of `{` and `}` to find four scalar fields, which are distinguished by their
/// enclosing message.
fn parse(text: &str) -> Option<Config> {
    let mut config = Config::default();
    let mut path: Vec<String> = Vec::new();
    let (mut node, mut index, mut sizes) = (String::new(), 0i64, Vec::new());
    let mut words = words(text).into_iter().peekable();
    while let Some(word) = words.next() {
        match word.as_str() {
            "}" => {
                path.pop()?;
                if path.is_empty() {
                    node.clear();
                    index = 0;
                    sizes.clear();
                }
            }
            ":" | "{" => return None,
            _ if words.peek().is_some_and(|next| next == "{") => {
                words.next();
                path.push(word);
                match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                    ["feed"] => config.feeds.push(Feed { tensor: String::new(), sizes: Vec::new() }),
                    ["fetch"] => config.fetches.push(String::new()),
                    ["variable"] => config.variables.push(String::new()),
                    _ => {}
                }
            }
            field => {
                if words.next()? != ":" {
                    return None;
                }
                let value = words.next()?;
                match field {
                    "node_name" => node = value.strip_prefix('"')?.to_owned(),
                    "output_index" => index = value.parse().ok()?,
                    "size" => sizes.push(value.parse().ok()?),
                    _ => {}
                }
                match path.first().map(String::as_str) {
                    Some("feed") => {
                        let feed = config.feeds.last_mut()?;
                        feed.tensor = format!("{node}:{index}");
                        feed.sizes.clone_from(&sizes);
                    }
                    Some("fetch") => *config.fetches.last_mut()? = format!("{node}:{index}"),
                    Some("variable") => config.variables.last_mut()?.clone_from(&node),
                    _ => {}
                }
            }
        }
    }
    path.is_empty().then_some(config)
}

/// Returns words, strings (prefixed by `"`), `{`, `}`, and `:`, without comments.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next().filter(|&c| c != '#') {
            let (word, after) = match c {
                '{' | '}' | ':' => rest.split_at(1),
                '"' => match rest[1..].find('"') {
                    Some(end) => (&rest[..=end], &rest[end + 2..]),
                    None => (rest, ""),
                },
                _ => rest.split_at(rest.find([' ', '\t', ':', '{', '}', '#']).unwrap_or(rest.len())),
            };
            words.push(word.to_owned());
            rest = after.trim_start_matches([' ', '\t', ',', ';']);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_order() {
        let text = r#"
# tensorflow.tf2xla.Config
feed { id { node_name: "a/b" output_index: 1 } shape { dim { size: 2 } dim { size: 3 } } name: "x" }
feed {
  id {
    node_name: "c"  # a comment
  }
  shape { }
  type: DT_INT64
}
fetch { id { node_name: "y" } }
variable { node_name: "v" shape { dim { size: 4 } } type: DT_FLOAT readonly: true }
"#;
        let config = parse(text).unwrap();
        assert_eq!(config.feeds[0], Feed { tensor: "a/b:1".to_owned(), sizes: vec![2, 3] });
        assert_eq!(config.feeds[1], Feed { tensor: "c:0".to_owned(), sizes: vec![] });
        assert_eq!(config.fetches, ["y:0"]);
        assert_eq!(config.variables, ["v"]);
        assert_eq!(parse("feed {"), None);
        assert_eq!(parse("}"), None);
    }
}

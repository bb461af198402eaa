//! Names of nodes in messages and metadata.

/// Returns the name of a node in a function: prefixed with the names of the calls and loops that
/// lead to it. The nodes of TensorFlow 1's loops have the loop's scope in their names; it is not
/// repeated.
pub(crate) fn name_within(prefix: &str, node_name: &str) -> String {
    let scope = prefix.strip_suffix("/while_context/").unwrap_or_default();
    let starts = std::iter::once(0).chain(scope.match_indices('/').map(|(at, _)| at + 1));
    let repeated = starts.map(|start| scope.split_at(start)).find(|(_, scope)| {
        !scope.is_empty() && node_name.strip_prefix(scope).is_some_and(|rest| rest.starts_with('/'))
    });
    match repeated {
        Some((before, _)) => format!("{before}{node_name}"),
        None => format!("{prefix}{node_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_of_a_loop_is_not_repeated() {
        for (prefix, node, name) in [
            ("rnn/while/while_context/", "rnn/while/add", "rnn/while/add"),
            (
                "call/rnn/while/while_context/",
                "rnn/while/in/while_context",
                "call/rnn/while/in/while_context",
            ),
            ("call/rnn/while/in/while_context/", "rnn/while/in/x", "call/rnn/while/in/x"),
            ("rnn/while/while_context/", "rnn/while_1/add", "rnn/while/while_context/rnn/while_1/add"),
            ("rnn/while/while_context/", "rnn/while", "rnn/while/while_context/rnn/while"),
            ("rnn/while/", "rnn/while/add", "rnn/while/rnn/while/add"),
            ("", "x", "x"),
            ("/while_context/", "/x", "/while_context//x"),
        ] {
            assert_eq!(name_within(prefix, node), name, "{node} in {prefix}");
        }
    }
}

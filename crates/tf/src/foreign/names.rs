//! Names of nodes, feeds, and fetches.

use std::collections::BTreeMap;

/// Names in use, with the number of the next one that begins with each.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, u64>);

impl Names {
    /// Returns a name that is not in use: the wanted one, or that with a number.
    pub fn unique(&mut self, wanted: &str) -> String {
        let Some(next) = self.0.get(wanted).copied() else {
            self.0.insert(wanted.to_owned(), 1);
            return wanted.to_owned();
        };
        let mut numbered = (next..).map(|number| (number, format!("{wanted}_{number}")));
        let free = numbered.find(|(_, name)| !self.0.contains_key(name));
        let (number, name) = free.expect("one of infinitely many");
        self.0.insert(wanted.to_owned(), number + 1);
        self.0.insert(name.clone(), 1);
        name
    }
}

/// The name of a node for a tensor.
pub fn of_node(tensor: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let mut name: String = tensor.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') {
        name.insert(0, 't');
    }
    name
}

/// The name of an argument or result: an identifier of C++.
pub fn identifier(tensor: &str) -> String {
    let node = of_node(tensor);
    let mut name: String = node.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert_str(0, "t_");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_differ() {
        assert_eq!(of_node("model/conv2d/Relu"), "model/conv2d/Relu");
        assert_eq!(of_node("serving_default_x:0"), "serving_default_x_0");
        assert_eq!((of_node("").as_str(), of_node("_x").as_str()), ("t", "t_x"));
        assert_eq!(identifier("3d/input:0"), "t_3d_input_0");
        let mut names = Names::default();
        assert_eq!(["a", "a", "a_1", "a"].map(|name| names.unique(name)), ["a", "a_1", "a_1_1", "a_2"]);
    }
}

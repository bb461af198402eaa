//! Names of nodes, feeds, and fetches.

/// The name of a tensor's result: the converter joins the names of operations that became one with
/// semicolons, and the first of them is that of the result.
fn of_result(tensor: &str) -> &str {
    tensor.split(';').next().unwrap_or_default()
}

/// The name of a node for a tensor.
pub(crate) fn of_node(tensor: &str) -> String {
    tf::foreign::of_node(of_result(tensor))
}

/// The name of an argument or result: an identifier of C++.
pub(crate) fn identifier(tensor: &str) -> String {
    tf::foreign::identifier(of_result(tensor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_has_the_name_of_its_last_operation() {
        assert_eq!(of_node("model/conv2d/Relu;model/conv2d/BiasAdd"), "model/conv2d/Relu");
        assert_eq!(identifier("a/b:0;c"), "a_b_0");
    }
}

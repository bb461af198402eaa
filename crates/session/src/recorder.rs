//! Who is told what ran when.

use crate::value::Value;

/// Sees the nodes of a traced run. Nodes run on several threads.
pub trait Recorder: Send + Sync {
    /// Nanoseconds since any fixed moment; asked in front of each node and behind it.
    fn now(&self) -> u64;

    /// A node has run on the calling thread.
    fn ran(&self, span: &Span<'_>);
}

/// One execution of a node.
#[derive(Debug)]
pub struct Span<'a> {
    /// The node: its name, op and inputs.
    pub node: &'a tf::Node,
    /// Where it ran: `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub device: &'a str,
    /// When it began, by [`Recorder::now`].
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// What it made; `None` is dead.
    pub outputs: &'a [Option<Value>],
}

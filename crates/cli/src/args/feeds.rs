//! Flags that set the values of feeds and variables.

use clap::Args;
use hlo::Argument;
use std::path::PathBuf;

/// Inputs of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FeedArgs {
    /// Value of a feed: NAME=FILE.npy, NAME=FILE.npz, NAME=random, NAME=zeros, or NAME=ones; or
    /// @FILE.npz, whose members are feeds of the same names. An array with one more leading
    /// dimension than the feed holds one batch per step. Can be repeated
    #[arg(long, value_name = "NAME=FILE|@FILE.npz")]
    pub(crate) feed: Vec<String>,
    /// Value of a variable before the first run, in the same form as --feed; FILE can also be a
    /// .safetensors file or a checkpoint [default: the value from --variables, else from the model,
    /// else zeros]
    #[arg(long, value_name = "NAME=FILE|@FILE")]
    pub(crate) var: Vec<String>,
    /// Values of variables before the first run: a .npz or .safetensors file, or the common prefix
    /// of a checkpoint's files. Variables without a value and values without a variable are listed.
    /// Can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) variables: Vec<PathBuf>,
    /// Size of a named dimension in the run: batch=7, or x.1=100 for dimension 1 of feed x. Can be
    /// repeated [default: that of the arrays that are fed, else the largest]
    #[arg(long, value_name = "NAME=N")]
    pub(crate) size: Vec<String>,
    /// Fill missing feeds and variables with random numbers that depend only on the seed
    #[arg(long, value_name = "SEED")]
    pub(crate) random: Option<u64>,
}

impl FeedArgs {
    /// True if any of the flags is given.
    pub(crate) fn is_given(&self) -> bool {
        let lists = [&self.feed, &self.var, &self.size].into_iter().any(|list| !list.is_empty());
        lists || !self.variables.is_empty() || self.random.is_some()
    }

    /// True if `--feed` names a file for this feed. The members of an `@FILE` are unknown until it
    /// is read.
    pub(crate) fn has_feed(&self, feed: &Argument) -> bool {
        let file_of = |word: &String| {
            word.split_once('=').is_some_and(|(name, from)| feed.is_called(name) && from != "random")
        };
        self.feed.iter().any(file_of)
    }
}

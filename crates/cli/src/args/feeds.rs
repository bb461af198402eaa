//! Flags that give values to feeds and variables.

use clap::Args;
use hlo::Argument;
use std::path::PathBuf;

/// Inputs of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct FeedArgs {
    /// A feed: NAME=FILE.npy, NAME=FILE.npz, NAME=random, NAME=zeros or NAME=ones; or @FILE.npz, whose members are the
    /// feeds of their names. An array with one leading dimension more than the feed has one batch for each step. May be
    /// given several times
    #[arg(long, value_name = "NAME=FILE|@FILE.npz")]
    pub(crate) feed: Vec<String>,
    /// A variable before the first run, like a feed; FILE may be a .safetensors file or a checkpoint, too [default: what
    /// --variables has, else what the model comes with, else zeros]
    #[arg(long, value_name = "NAME=FILE|@FILE")]
    pub(crate) var: Vec<String>,
    /// Variables before the first run: a .npz or .safetensors file, or a checkpoint, by the common beginning of its files'
    /// names. What it lacks, and what no variable takes, is named. May be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) variables: Vec<PathBuf>,
    /// Fill what is not given with random numbers, the same ones for the same seed
    #[arg(long, value_name = "SEED")]
    pub(crate) random: Option<u64>,
}

impl FeedArgs {
    /// Whether anything is given.
    pub(crate) fn is_given(&self) -> bool {
        let lists = [&self.feed, &self.var].into_iter().any(|list| !list.is_empty());
        lists || !self.variables.is_empty() || self.random.is_some()
    }

    /// Whether a file is named for a feed. What a file without a name has in it is not known before it is read.
    pub(crate) fn has_feed(&self, feed: &Argument) -> bool {
        let file_of = |word: &String| {
            word.split_once('=').is_some_and(|(name, from)| feed.is_called(name) && from != "random")
        };
        self.feed.iter().any(file_of)
    }
}

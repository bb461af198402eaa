//! Commands, one file for each.

pub(crate) mod autotune;
pub(crate) mod bench;
pub(crate) mod build_model;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod explain;
pub(crate) mod headers;
pub(crate) mod hlo;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod manual;
pub(crate) mod profile;
pub(crate) mod quantize;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod verify;

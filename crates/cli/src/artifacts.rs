//! The files that are made of a model.

pub(crate) mod kind;
pub(crate) mod names;
pub(crate) mod observer;
pub(crate) mod request;

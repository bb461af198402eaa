//! Files generated from a model.

pub(crate) mod kind;
pub(crate) mod names;
pub(crate) mod observer;
pub(crate) mod request;

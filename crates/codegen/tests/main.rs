//! Tests of the code generator: objects, versions, units, and addresses.
//!
//! One binary links and compiles the shared code once.

mod addresses;
mod freestanding;
mod large;
mod large_constants;
mod routines;
mod targets;
mod units;
mod versions;

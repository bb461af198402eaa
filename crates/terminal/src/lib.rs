//! Text for people: numbers with units, safe names, and tables that fit the [`Screen`].
//!
//! All commands print through this crate, so that their tables, units, and colors agree. Text that
//! does not go to a terminal has no colors, and tables have the width that they need.

mod number;
mod screen;
mod table;

pub use number::{bytes, count, percent, seconds};
pub use screen::{Screen, Style, printable};
pub use table::{Column, Table};

//! Elementary functions of `F32` and `F64` lanes, in arithmetic alone: no library is called.
//!
//! Each takes and returns values of one type, of any number of lanes.

mod rounding;

pub use rounding::{ceil, floor, round_even, trunc};

use crate::ir::{FunctionBuilder, ValueId};
use support::{Error, Result};
use target::Target;

macro_rules! missing {
    ($($name:ident($($argument:ident),*));*) => {
        $(
            /// Not available.
            pub fn $name(_: &mut FunctionBuilder, _: &Target, $($argument: ValueId),*) -> Result<ValueId> {
                let _ = ($($argument),*);
                Err(Error::unsupported(concat!("the function ", stringify!($name))))
            }
        )*
    };
}

missing!(exp(x); expm1(x); log(x); log1p(x); sin(x); cos(x); tan(x); tanh(x); sinh(x); cosh(x); asin(x); acos(x);
    atan(x); asinh(x); acosh(x); atanh(x); erf(x); logistic(x); cbrt(x); atan2(y, x); pow(x, y); fmod(x, y));

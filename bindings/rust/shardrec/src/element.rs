//! Elements of tensors, those of 16 bits included.
#![forbid(unsafe_code)]

use std::fmt;

use crate::enums::Dtype;

/// An element of a tensor.
pub trait Element: Copy + Default + Send + Sync + private::Sealed + 'static {
    /// What the library calls it.
    const DTYPE: Dtype;
}

mod private {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty: $dtype:ident),*) => {$(
        impl private::Sealed for $type {}
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )*};
}
elements! { u8: Uint8, i32: Int32, i64: Int64, F16: Float16, Bf16: Bfloat16, f32: Float32, f64: Float64 }

/// A number of IEEE 754's binary16, as its bits. Equal are equal bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A number of bfloat16, the upper half of an f32, as its bits. Equal are equal bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bf16(pub u16);

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0xff << 23;

impl F16 {
    /// The nearest one; of two that are equally near, the even one. Beyond 65504 by half a unit: infinity.
    pub fn from_f32(value: f32) -> F16 {
        let magnitude = value.to_bits() & !SIGN;
        let bits = if magnitude > INFINITY {
            0x7e00
        } else if magnitude >= 65520f32.to_bits() {
            0x7c00
        } else if magnitude < (1.0 / 16384.0f32).to_bits() {
            // Subnormal numbers are multiples of 2^-24, which is the last place of 0.5.
            (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()
        } else {
            let odd = magnitude >> 13 & 1;
            (magnitude - (112 << 23) + 0xfff + odd) >> 13 // 112: between the exponents' biases, 127 and 15
        };
        F16((value.to_bits() >> 16 & 0x8000 | bits) as u16)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0 & 0x7fff) << 13;
        let sign = u32::from(self.0 & 0x8000) << 16;
        let of_infinity = 0x1f << 23;
        let bits = if magnitude >= of_infinity {
            magnitude | INFINITY
        } else {
            let bias = f32::from_bits((112 + 127) << 23); // 2^112
            (f32::from_bits(magnitude) * bias).to_bits()
        };
        f32::from_bits(bits | sign)
    }
}

impl Bf16 {
    /// The nearest one; of two that are equally near, the even one.
    pub fn from_f32(value: f32) -> Bf16 {
        let bits = value.to_bits();
        if bits & !SIGN > INFINITY {
            return Bf16((bits >> 16) as u16 | 0x40); // no payload that is cut off makes an infinity of it
        }
        let odd = bits >> 16 & 1;
        Bf16(((bits + 0x7fff + odd) >> 16) as u16)
    }

    /// The same number.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

macro_rules! halves {
    ($($type:ident),*) => {$(
        impl From<$type> for f32 {
            fn from(value: $type) -> f32 {
                value.to_f32()
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }
    )*};
}
halves! { F16, Bf16 }

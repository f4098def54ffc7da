//! Numbers, `bool` and `char` as keys: big-endian, so that the first byte that differs decides, with
//! the sign bit flipped, so that negatives come first.
use super::{AsKey, Cow, Distance, Key, KeyError, Single, take};

// `MIN` is the sign bit alone in a signed integer, and zero in an unsigned one.
macro_rules! integers {
    ($($type:ident as $wide:ident, distance $distance:ident;)*) => {$(
        impl Key for $type {
            fn format() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($wide))
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                let wide = $wide::from_be_bytes(take::<Self, _>(bytes)?) ^ $wide::MIN;
                // Only `usize` and `isize` can fail, on a machine of 32 bits.
                Self::try_from(wide).map_err(|_| KeyError::malformed::<Self>("too large for this machine"))
            }
        }

        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                bytes.extend_from_slice(&(*self as $wide ^ $wide::MIN).to_be_bytes());
                Ok(0)
            }
        }

        impl Single for $type {}

        impl Distance for $type {
            type Distance = $distance;
            #[inline]
            fn distance(&self, other: &Self) -> $distance {
                self.abs_diff(*other)
            }
        }
    )*};
}

integers! {
    u8 as u8, distance u8;
    u16 as u16, distance u16;
    u32 as u32, distance u32;
    u64 as u64, distance u64;
    u128 as u128, distance u128;
    usize as u64, distance usize;
    i8 as i8, distance u8;
    i16 as i16, distance u16;
    i32 as i32, distance u32;
    i64 as i64, distance u64;
    i128 as i128, distance u128;
    isize as i64, distance usize;
}

// IEEE 754 orders the positive floats as their bits; of a negative all bits are turned, since the
// larger magnitude comes first.
macro_rules! floats {
    ($($type:ident in $bits:ident;)*) => {$(
        impl Key for $type {
            fn format() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($type))
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let written = $bits::from_be_bytes(take::<Self, _>(bytes)?);
                let value = Self::from_bits(if written & SIGN == 0 { !written } else { written ^ SIGN });
                if value.is_nan() {
                    return Err(KeyError::malformed::<Self>("they stand for NaN"));
                }
                if value == 0.0 && value.is_sign_negative() {
                    return Err(KeyError::malformed::<Self>("they stand for -0.0"));
                }
                Ok(value)
            }
        }

        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                if self.is_nan() {
                    return Err(KeyError::NotANumber);
                }
                // Adding zero makes 0.0 of -0.0: they are equal, so they are one key.
                let bits = (*self + 0.0).to_bits();
                let written = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
                bytes.extend_from_slice(&written.to_be_bytes());
                Ok(0)
            }
        }

        impl Single for $type {}

        impl Distance for $type {
            type Distance = $type;
            #[inline]
            fn distance(&self, other: &Self) -> $type {
                // An infinity less itself is NaN.
                if self == other { 0.0 } else { (self - other).abs() }
            }
        }
    )*};
}

floats! {
    f32 in u32;
    f64 in u64;
}

impl Key for bool {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("bool")
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match take::<Self, 1>(bytes)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(KeyError::malformed::<Self>("neither 0 nor 1")),
        }
    }
}

impl AsKey<bool> for bool {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        bytes.push(u8::from(*self));
        Ok(0)
    }
}

impl Single for bool {}

impl Key for char {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("char")
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        let number = u32::from_be_bytes(take::<Self, 4>(bytes)?);
        Self::from_u32(number).ok_or_else(|| KeyError::malformed::<Self>("not a character's number"))
    }
}

impl AsKey<char> for char {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        bytes.extend_from_slice(&u32::from(*self).to_be_bytes());
        Ok(0)
    }
}

impl Single for char {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_lie_apart_by_a_number_even_at_the_infinities() {
        assert_eq!(f64::INFINITY.distance(&f64::INFINITY), 0.0);
        assert_eq!(f64::NEG_INFINITY.distance(&f64::INFINITY), f64::INFINITY);
        assert_eq!((-0.0_f32).distance(&0.0), 0.0);
        assert_eq!(1.5_f64.distance(&-1.0), 2.5);
    }

    #[test]
    fn integers_lie_apart_by_more_than_they_hold() {
        assert_eq!(i64::MIN.distance(&i64::MAX), u64::MAX);
        assert_eq!(3_u8.distance(&5), 2);
        assert_eq!((-1_isize).distance(&1), 2);
    }
}

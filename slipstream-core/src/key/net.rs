//! Addresses as keys: their octets, after the version where it may be either.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AsKey, Cow, Key, KeyError, Single, take};

macro_rules! addresses {
    ($($type:ident, $format:literal;)*) => {$(
        impl Key for $type {
            fn format() -> Cow<'static, str> {
                Cow::Borrowed($format)
            }
            #[inline]
            fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
                take::<Self, _>(bytes).map(Self::from_octets)
            }
        }

        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
                bytes.extend_from_slice(&self.octets());
                Ok(0)
            }
        }

        impl Single for $type {}
    )*};
}

addresses! {
    Ipv4Addr, "ipv4";
    Ipv6Addr, "ipv6";
}

impl Key for IpAddr {
    fn format() -> Cow<'static, str> {
        Cow::Borrowed("ip")
    }
    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, KeyError> {
        match take::<Self, 1>(bytes)? {
            [4] => Ipv4Addr::decode(bytes).map(Self::V4),
            [6] => Ipv6Addr::decode(bytes).map(Self::V6),
            _ => Err(KeyError::malformed::<Self>("neither version 4 nor 6")),
        }
    }
}

impl AsKey<IpAddr> for IpAddr {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<usize, KeyError> {
        match self {
            Self::V4(address) => {
                bytes.push(4);
                address.encode(bytes)
            }
            Self::V6(address) => {
                bytes.push(6);
                address.encode(bytes)
            }
        }
    }
}

impl Single for IpAddr {}

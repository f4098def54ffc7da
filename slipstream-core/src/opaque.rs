//! `Debug` for types that hold closures and futures, which have nothing to show but their name.

macro_rules! opaque_debug {
    ($($name:ident<$($parameter:tt),+>;)+) => {$(
        impl<$($parameter),+> std::fmt::Debug for $name<$($parameter),+> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )+};
}
pub(crate) use opaque_debug;

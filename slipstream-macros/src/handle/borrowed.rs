//! What a handler's types may not have, since a flow calls it with items that it owns, of types that have a name.
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypeReference};

/// The part of a type that keeps a companion from naming it.
pub(super) enum Unnameable {
    /// `&T` or `'a`: it borrows, and not for ever.
    Borrow(TokenStream),
    /// `impl Trait`.
    Impl(TokenStream),
}

/// The first such part of `ty`. Within function pointers and trait objects lifetimes are their own affair.
pub(super) fn unnameable(ty: &Type) -> Option<Unnameable> {
    match ty {
        Type::ImplTrait(ty) => Some(Unnameable::Impl(ty.to_token_stream())),
        Type::Reference(ty) if !is_static(ty) => Some(Unnameable::Borrow(ty.to_token_stream())),
        Type::Reference(ty) => unnameable(&ty.elem),
        Type::Array(ty) => unnameable(&ty.elem),
        Type::Slice(ty) => unnameable(&ty.elem),
        Type::Paren(ty) => unnameable(&ty.elem),
        Type::Group(ty) => unnameable(&ty.elem),
        Type::Tuple(ty) => ty.elems.iter().find_map(unnameable),
        Type::Path(ty) => ty.path.segments.iter().find_map(|segment| match &segment.arguments {
            PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(argument),
            _ => None,
        }),
        _ => None,
    }
}

fn argument(argument: &GenericArgument) -> Option<Unnameable> {
    match argument {
        GenericArgument::Type(ty) => unnameable(ty),
        GenericArgument::Lifetime(lifetime) if !lasts(lifetime) => {
            Some(Unnameable::Borrow(lifetime.to_token_stream()))
        }
        _ => None,
    }
}

/// `&'static T`, which is a value like any other.
pub(super) fn is_static(ty: &TypeReference) -> bool {
    ty.lifetime.as_ref().is_some_and(lasts)
}

fn lasts(lifetime: &Lifetime) -> bool {
    lifetime.ident == "static"
}

/// `str`, `[T]`, `dyn Trait`: what a source cannot give by value.
pub(super) fn is_unsized(ty: &Type) -> bool {
    match ty {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Path(ty) => ty.path.is_ident("str"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(ty: &str) -> Option<String> {
        unnameable(&syn::parse_str(ty).unwrap()).map(|found| match found {
            Unnameable::Borrow(part) => format!("borrow {part}"),
            Unnameable::Impl(part) => format!("impl {part}"),
        })
    }

    #[test]
    fn a_borrow_is_found_inside_a_type() {
        assert_eq!(found_in("&Weather").as_deref(), Some("borrow & Weather"));
        assert_eq!(found_in("Result<Option<&Weather>, Error>").as_deref(), Some("borrow & Weather"));
        assert_eq!(found_in("(u8, [Cow<'a, str>; 2])").as_deref(), Some("borrow 'a"));
        assert_eq!(found_in("Cow<'_, str>").as_deref(), Some("borrow '_"));
        assert_eq!(found_in("&'static &'a str").as_deref(), Some("borrow & 'a str"));
    }

    #[test]
    fn an_impl_trait_is_found_inside_a_type() {
        assert_eq!(found_in("Vec<impl Debug>").as_deref(), Some("impl impl Debug"));
    }

    #[test]
    fn owned_and_static_types_are_left_alone() {
        for ty in ["Weather", "(Name, &'static str)", "Cow<'static, str>", "[u8; A & B]", "fn(&u8) -> &u8"] {
            assert!(found_in(ty).is_none(), "{ty}");
        }
        assert!(found_in("Box<dyn Fn(&u8) + 'a>").is_none());
    }
}

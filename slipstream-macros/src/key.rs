//! `derive(Key)`: a struct of one field is that field's key, a struct of several is a tuple of them.
//!
//! ```text
//! struct Origin(String)                          as  String
//! struct Flight { origin: Origin, time: i64 }    as  (Origin, i64)
//! ```
//!
//! What is written holds no logic: it calls the implementations of the field's type and of tuples. A
//! bound that may fail without being a mistake (a `String` has no distance) is written
//! `for<'key> …: __key::lazily::…`, which the compiler proves only where it is used.
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Ident, Type};

use self::validate::{Field, Input};

mod validate;

#[cfg(test)]
mod tests;

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input = match syn::parse2::<DeriveInput>(input) {
        Ok(input) => validate::validate(input),
        Err(error) => return error.into_compile_error(),
    };
    let Input { slipstream, name, generics, fields, error } = input;
    let (error, implementations) = match (error, fields.as_slice()) {
        // With parameters the stand-in would be a second error.
        (Some(error), _) if !generics.params.is_empty() => return error.into_compile_error(),
        (Some(error), _) => (Some(error.into_compile_error()), fallback(&name)),
        (None, [field]) => (None, Derive(name).newtype(field)),
        (None, fields) => (None, Derive(name).tuple(fields)),
    };
    quote! {
        #error
        const _: () = {
            use #slipstream::__private::key as __key;
            #implementations
        };
    }
}

/// Stands in for the key beside an error, so that the uses of the type are no further errors.
fn fallback(name: &Ident) -> TokenStream {
    quote! {
        impl __key::Key for #name {
            fn format() -> ::std::borrow::Cow<'static, str> {
                ::core::unreachable!()
            }
            fn decode(_: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
                ::core::unreachable!()
            }
        }
        impl __key::AsKey<#name> for #name {
            fn encode(&self, _: &mut ::std::vec::Vec<u8>) -> ::core::result::Result<usize, __key::KeyError> {
                ::core::unreachable!()
            }
        }
    }
}

/// The borrowed forms that a key may have. No field is of such a type, so none is written twice.
fn borrowed() -> impl Iterator<Item = TokenStream> {
    [quote!(str), quote!([u8])].into_iter()
}

/// What a look-up is given, with the type parameters in it.
struct Form {
    parameters: TokenStream,
    form: TokenStream,
}

impl Form {
    fn one(form: impl ToTokens) -> Self {
        Self { parameters: TokenStream::new(), form: form.into_token_stream() }
    }

    fn tuple(length: usize) -> Self {
        let names = (0..length).map(|index| format_ident!("Q{index}")).collect::<Vec<_>>();
        Self { parameters: quote!(<#(#names),*>), form: quote!((#(#names,)*)) }
    }
}

/// Writes the implementations for the struct of this name.
struct Derive(Ident);

impl Derive {
    fn newtype(&self, field: &Field) -> TokenStream {
        let Field { member, ty } = field;
        let key = self.key(std::slice::from_ref(field), &quote!(<#ty as __key::Key>::format()));
        let own = self.as_key(
            &Form::one(&self.0),
            &quote!(for<'key> #ty: __key::lazily::AsKey<'key, #ty>),
            &quote!(<#ty as __key::AsKey<#ty>>::encode(&self.#member, bytes)),
        );
        let borrowed = borrowed().map(|form| {
            let as_key = self.as_key(
                &Form::one(&form),
                &quote!(for<'key> #form: __key::lazily::AsKey<'key, #ty>),
                &quote!(<#form as __key::AsKey<#ty>>::encode(self, bytes)),
            );
            let prefix = self.lazy_prefix(&form, ty);
            quote! { #as_key #prefix }
        });
        let distance = self.distance(field);
        quote! { #key #own #(#borrowed)* #distance }
    }

    fn tuple(&self, fields: &[Field]) -> TokenStream {
        let types = fields.iter().map(|field| &field.ty).collect::<Vec<_>>();
        let members = fields.iter().map(|field| &field.member);
        let tuple = quote!((#(#types),*));
        let key = self.key(fields, &quote!(__key::tuple_format(&[#(<#types as __key::Key>::format()),*])));
        let own = self.as_key(
            &Form::one(&self.0),
            &quote!(#(for<'key> #types: __key::lazily::AsKey<'key, #types>),*),
            &quote!(<(#(&#types),*) as __key::AsKey<#tuple>>::encode(&(#(&self.#members),*), bytes)),
        );

        let forms = Form::tuple(fields.len());
        let form = &forms.form;
        let as_tuple = self.as_key(
            &forms,
            &quote!(#form: __key::AsKey<#tuple>),
            &quote!(<#form as __key::AsKey<#tuple>>::encode(self, bytes)),
        );
        let prefixes = (1..fields.len()).map(|length| {
            let forms = Form::tuple(length);
            let form = &forms.form;
            self.prefix(&forms, &tuple, &quote!(#form: __key::PrefixOf<#tuple>))
        });
        // A tuple as the first field is already a prefix in parentheses, which would be a second
        // implementation.
        let first = types.first().filter(|first| !matches!(first, Type::Tuple(_)));
        let bare = first.map(ToTokens::to_token_stream).into_iter().chain(borrowed());
        let bare = bare.map(|form| self.lazy_prefix(&form, &tuple));
        let distance = fields.last().map(|last| self.distance(last));
        quote! { #key #own #as_tuple #(#prefixes)* #(#bare)* #distance }
    }

    fn key(&self, fields: &[Field], format: &TokenStream) -> TokenStream {
        let name = &self.0;
        let types = fields.iter().map(|field| &field.ty);
        // The one place where a field that is no key is an error: all of the bound lies at its type.
        let bounds = types.clone().map(|ty| quote_spanned!(ty.span()=> #ty: __key::Key));
        let members = fields.iter().map(|field| &field.member);
        quote! {
            #[automatically_derived]
            #[allow(trivial_bounds)]
            impl __key::Key for #name where #(#bounds),* {
                fn format() -> ::std::borrow::Cow<'static, str> {
                    #format
                }
                #[inline]
                fn decode(bytes: &mut &[u8]) -> ::core::result::Result<Self, __key::KeyError> {
                    ::core::result::Result::Ok(Self {
                        #(#members: <#types as __key::Key>::decode(bytes)?),*
                    })
                }
            }
            #[automatically_derived]
            impl __key::Single for #name {}
        }
    }

    fn as_key(&self, form: &Form, bound: &TokenStream, encode: &TokenStream) -> TokenStream {
        let name = &self.0;
        let Form { parameters, form } = form;
        quote! {
            #[automatically_derived]
            impl #parameters __key::AsKey<#name> for #form where #bound {
                #[inline]
                fn encode(
                    &self,
                    bytes: &mut ::std::vec::Vec<u8>,
                ) -> ::core::result::Result<usize, __key::KeyError> {
                    #encode
                }
            }
        }
    }

    fn prefix(&self, form: &Form, inner: &impl ToTokens, bound: &TokenStream) -> TokenStream {
        let name = &self.0;
        let Form { parameters, form } = form;
        quote! {
            #[automatically_derived]
            impl #parameters __key::PrefixOf<#name> for #form where #bound {
                #[inline]
                fn encode_prefix(
                    &self,
                    bytes: &mut ::std::vec::Vec<u8>,
                ) -> ::core::result::Result<(), __key::KeyError> {
                    <#form as __key::PrefixOf<#inner>>::encode_prefix(self, bytes)
                }
            }
        }
    }

    fn lazy_prefix(&self, form: &TokenStream, inner: &impl ToTokens) -> TokenStream {
        let bound = quote!(for<'key> #form: __key::lazily::PrefixOf<'key, #inner>);
        self.prefix(&Form::one(form), inner, &bound)
    }

    fn distance(&self, last: &Field) -> TokenStream {
        let name = &self.0;
        let Field { member, ty } = last;
        quote! {
            #[automatically_derived]
            impl __key::Distance for #name
            where
                for<'key> #name: __key::lazily::Key<'key>,
                for<'key> #ty: __key::lazily::Distance<'key>,
            {
                type Distance = <#ty as __key::Distance>::Distance;
                #[inline]
                fn distance(&self, other: &Self) -> Self::Distance {
                    <#ty as __key::Distance>::distance(&self.#member, &other.#member)
                }
            }
        }
    }
}

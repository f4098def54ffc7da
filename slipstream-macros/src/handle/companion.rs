//! The companion: a type of the function's name, which is a handler and can be mounted.
//!
//! It lives among the types, so the function keeps its name among the values.
mod call;
mod mount;

use super::{arguments::Arguments, function::Function, handler::Handler, parameters::Context};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Ident;

/// The companion of a function whose attribute is right.
pub(super) fn expand(function: &Function, handler: &Handler, arguments: &Arguments) -> TokenStream {
    let private = &arguments.private;
    let name = &function.signature.ident;
    let (generics, context, shared) = match &handler.parameters.context {
        Some(Context { ty, .. }) => {
            let shared = quote!(where for<'a> #ty: #private::Context<'a>);
            (None, ty.to_token_stream(), Some(shared))
        }
        None => {
            // Fits any flow. Types are not hygienic, so the user's must not meet this one.
            let any = Ident::new("__Context", Span::mixed_site());
            let bounds = quote!(<#any: ::core::marker::Send + ::core::marker::Sync + 'static>);
            (Some(bounds), any.to_token_stream(), None)
        }
    };
    let declared = function.companion();
    let conditions: Vec<_> = function.conditions().collect();
    let allowances = private.allowances();
    let (call, mount) = (
        call::expand(function, handler, private, &context),
        mount::expand(function, handler, arguments, &context),
    );
    quote! {
        #declared
        #(#conditions)*
        #allowances
        impl #generics #private::Handler<#context> for #name #shared {
            #call
        }
        #(#conditions)*
        #allowances
        impl #generics #private::Mount<#context> for #name #shared {
            #mount
        }
    }
}

/// A name that the user's expressions cannot see, located at the user's token.
fn local(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(span))
}

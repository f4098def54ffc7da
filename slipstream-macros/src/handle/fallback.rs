//! What stands beside the errors: a companion that mounts nothing, so that `flow![…]` is not one more error.
use super::{function::Function, private::Private};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// The empty companion. A method has none, since no type can be declared where it is.
pub(super) fn expand(function: &Function, private: &Private) -> Option<TokenStream> {
    if function.signature.receiver().is_some() || function.handle_again().is_some() {
        return None;
    }
    let name = &function.signature.ident;
    let context = Ident::new("__Context", Span::mixed_site());
    let declared = function.companion();
    let conditions = function.conditions();
    Some(quote! {
        #declared
        #(#conditions)*
        impl<#context> #private::Mount<#context> for #name {
            fn mount<'c>(
                _: &'c #context,
                _: &mut #private::Routes<'c, #context>,
            ) -> ::core::result::Result<(), #private::BoxError> {
                ::core::result::Result::Ok(())
            }
        }
    })
}

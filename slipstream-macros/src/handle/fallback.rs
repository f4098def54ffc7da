//! What stands beside the errors: a companion that mounts nothing, so that `flow![…]` is not one more error.
use super::{arguments::Arguments, function::Function, mention};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{FnArg, Ident, Pat};

/// The empty companion. A method has none, since no type can be declared where it is.
pub(super) fn expand(function: &Function, arguments: &Arguments) -> Option<TokenStream> {
    if function.signature.receiver().is_some() || function.handle_again().is_some() {
        return None;
    }
    let name = &function.signature.ident;
    let context = Ident::new("__Context", Span::mixed_site());
    let declared = function.companion();
    let private = &arguments.private;
    let conditions = function.conditions();
    let imports = imports(function, arguments);
    Some(quote! {
        #declared
        #imports
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

/// Uses what the attribute's expressions begin with, so that an import for them is no unused one beside the error.
fn imports(function: &Function, arguments: &Arguments) -> Option<TokenStream> {
    let parameters: Vec<_> = function.signature.inputs.iter().filter_map(name).collect();
    let mut names: Vec<_> = arguments.expressions().filter_map(mention::begins_with).collect();
    names.retain(|name| !parameters.contains(name));
    let conditions = function.conditions();
    (!names.is_empty()).then(|| {
        quote! {
            #(#conditions)*
            #[allow(unused_imports)]
            const _: () = {
                #(use #names as _;)*
            };
        }
    })
}

fn name(parameter: &FnArg) -> Option<&Ident> {
    match parameter {
        FnArg::Typed(parameter) => match &*parameter.pat {
            Pat::Ident(pattern) => Some(&pattern.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

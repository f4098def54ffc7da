//! `Handler`: how a flow calls the function.
use super::{
    super::{function::Function, handler::Handler, parameters::Item, private::Private},
    local,
};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

/// The inside of `impl Handler`.
pub(super) fn expand(
    function: &Function,
    handler: &Handler,
    private: &Private,
    context: &TokenStream,
) -> TokenStream {
    let signature = &function.signature;
    let waits = signature.asyncness.is_some();
    let item = handler.parameters.item.as_ref().map_or_else(|| quote!(()), |Item { ty, .. }| quote!(#ty));
    let returned = match &handler.returns {
        Some(ty) => quote!(#ty),
        None => quote!(()),
    };
    let (emit, output) = match &handler.parameters.emits {
        Some(ty) => (quote!(#ty), quote!(::core::result::Result<#private::Emitted<#ty>, #private::BoxError>)),
        None => (quote!(#private::Nothing), returned.clone()),
    };
    let method = method(function, handler, private, context, &returned);
    quote! {
        type Item = #item;
        type Emit = #emit;
        type Output = #output;
        const WAITS: bool = #waits;
        #[inline]
        #method
    }
}

/// Located at the function's name, which is where the compiler says that its future is not `Send`.
fn method(
    function: &Function,
    handler: &Handler,
    private: &Private,
    context: &TokenStream,
    returned: &TokenStream,
) -> TokenStream {
    let name = &function.signature.ident;
    let span = name.span();
    let [context_name, item_name, out_name] = ["context", "item", "out"].map(|name| local(name, span));
    let by_reference = handler.parameters.item.as_ref().is_some_and(|item| item.by_reference);

    // A parameter that is not passed on has no name, so it is never unused.
    let mut arguments = Vec::new();
    let mut parameters = [quote!(_), quote!(_), quote!(_)];
    let [context_parameter, item_parameter, out_parameter] = &mut parameters;
    if handler.parameters.context.is_some() {
        *context_parameter = quote!(#context_name);
        arguments.push(quote!(#context_name));
    }
    if handler.parameters.item.is_some() {
        *item_parameter = quote!(#item_name);
        arguments.push(if by_reference { quote_spanned!(span=> &#item_name) } else { quote!(#item_name) });
    }
    if handler.parameters.emits.is_some() {
        *out_parameter = quote_spanned!(span=> mut #out_name);
        arguments.push(quote_spanned!(span=> &mut #out_name));
    }

    let called = quote_spanned!(span=> #name(#(#arguments),*));
    let waits = function.signature.asyncness.is_some();
    let awaited = if waits { quote_spanned!(span=> #called.await) } else { called.clone() };
    let given = match &handler.parameters.emits {
        None => awaited,
        Some(emitted) => {
            // Located at the return type, which is what may be wrong here.
            let span = handler.returns.as_ref().map_or(span, Spanned::span);
            let private = private.at(span);
            let conclude = quote_spanned!(span=> #private::emitted::<#returned, #emitted>);
            quote!(#conclude(#awaited, #out_name))
        }
    };
    let private = private.at(span);
    let [context_parameter, item_parameter, out_parameter] = parameters;
    let parameters = quote_spanned! {span=>
        &'a self,
        #context_parameter: &'a #context,
        #item_parameter: Self::Item,
        #out_parameter: #private::Emitter<Self::Emit>,
    };
    // The function's own future is enough, unless it borrows what is given to `call`.
    if waits && (by_reference || handler.parameters.emits.is_some()) {
        return quote_spanned!(span=> async fn call<'a>(#parameters) -> Self::Output { #given });
    }
    let future = if waits { called } else { quote_spanned!(span=> ::core::future::ready(#given)) };
    quote_spanned! {span=>
        fn call<'a>(
            #parameters
        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
            #future
        }
    }
}

//! `Handler`: how a flow calls the function.
use super::{
    super::{
        function::Function,
        handler::{Handler, Item},
        private::Private,
    },
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
    let item = handler.item.as_ref().map_or_else(|| quote!(()), |Item { ty, .. }| quote!(#ty));
    let returned = match &handler.returns {
        Some(ty) => quote!(#ty),
        None => quote!(()),
    };
    let (emit, output) = match &handler.emits {
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
    let by_reference = handler.item.as_ref().is_some_and(|item| item.by_reference);

    // A parameter that is not passed on has no name, so it is never unused.
    let mut arguments = Vec::new();
    let mut parameters = [quote!(_), quote!(_), quote!(_)];
    let [context_parameter, item_parameter, out_parameter] = &mut parameters;
    if handler.context.is_some() {
        *context_parameter = quote!(#context_name);
        arguments.push(quote!(#context_name));
    }
    if handler.item.is_some() {
        *item_parameter = quote!(#item_name);
        arguments.push(if by_reference { quote_spanned!(span=> &#item_name) } else { quote!(#item_name) });
    }
    if handler.emits.is_some() {
        *out_parameter = quote_spanned!(span=> mut #out_name);
        arguments.push(quote_spanned!(span=> &mut #out_name));
    }

    let called = quote_spanned!(span=> #name(#(#arguments),*));
    let waits = function.signature.asyncness.is_some();
    let awaited = if waits { quote_spanned!(span=> #called.await) } else { called.clone() };
    let given = match &handler.emits {
        None => awaited,
        Some(emitted) => {
            // Located at the return type, which is what may be wrong here.
            let span = handler.returns.as_ref().map_or(span, Spanned::span);
            let private = private.at(span);
            let conclude = quote_spanned!(span=> #private::emitted::<#returned, #emitted>);
            quote!(#conclude(#awaited, #out_name))
        }
    };
    // The function's own future is enough, if it borrows nothing that is made here.
    let body = match (waits, handler.emits.is_some() || by_reference) {
        (false, _) => quote!(::core::future::ready(#given)),
        (true, false) => called,
        (true, true) => quote_spanned!(span=> async move { #given }),
    };
    let private = private.at(span);
    let [context_parameter, item_parameter, out_parameter] = parameters;
    quote_spanned! {span=>
        fn call<'a>(
            &'a self,
            #context_parameter: &'a #context,
            #item_parameter: Self::Item,
            #out_parameter: #private::Emitter<Self::Emit>,
        ) -> impl ::core::future::Future<Output = Self::Output> + ::core::marker::Send + 'a {
            #body
        }
    }
}

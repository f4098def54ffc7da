//! The hidden module that everything written by the macro is named through.
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;

/// `::slipstream::__private`, or the same in the crate that `crate = path` names.
#[derive(Default)]
pub(super) struct Private(Option<Path>);

impl Private {
    pub(super) fn of(path: Path) -> Self {
        Private(Some(path))
    }

    /// For what is written through a user's path, which looks to the compiler as if the user had written it there.
    pub(super) fn allowances(&self) -> Option<TokenStream> {
        self.0.as_ref().map(|_| quote!(#[allow(unused_qualifications)]))
    }

    /// The module's path at the user's token: a call points there only if all of its tokens are as the user's are, in
    /// place and in hygiene.
    pub(super) fn at(&self, span: Span) -> TokenStream {
        let Some(path) = &self.0 else { return quote_spanned!(span=> ::slipstream::__private) };
        let locate = |mut token: TokenTree| {
            token.set_span(token.span().located_at(span));
            token
        };
        // The path of a module has no groups, whose inside would be left where it is.
        let path: TokenStream = path.to_token_stream().into_iter().map(locate).collect();
        quote_spanned!(span=> #path::__private)
    }
}

impl ToTokens for Private {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match &self.0 {
            Some(path) => quote!(#path::__private),
            None => quote!(::slipstream::__private),
        });
    }
}

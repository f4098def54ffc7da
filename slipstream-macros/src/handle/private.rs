//! The hidden module that everything written by the macro is named through.
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::Path;

/// `::slipstream::__private`, or the same in the crate that `crate = path` names.
pub(super) struct Private(TokenStream);

impl Default for Private {
    fn default() -> Self {
        Private(quote!(::slipstream::__private))
    }
}

impl Private {
    pub(super) fn of(path: &Path) -> Self {
        Private(quote!(#path::__private))
    }

    /// The module's path, its tokens located at `span`: a call points at the user's token only if all of its tokens do.
    pub(super) fn at(&self, span: Span) -> TokenStream {
        located(self.0.clone(), span)
    }
}

impl ToTokens for Private {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

fn located(tokens: TokenStream, span: Span) -> TokenStream {
    let locate = |token| match token {
        TokenTree::Group(group) => {
            let mut located = Group::new(group.delimiter(), self::located(group.stream(), span));
            located.set_span(group.span().located_at(span));
            TokenTree::Group(located)
        }
        mut token => {
            token.set_span(token.span().located_at(span));
            token
        }
    };
    tokens.into_iter().map(locate).collect()
}

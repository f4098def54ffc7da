//! `#[handle]`, from the tokens of the attribute and of the function to those of its companion.
//!
//! The function comes first in what is written, token for token, whether the attribute is right or wrong: a mistake in
//! the attribute must not become an error at each call of the function. Only a mistake that hides the function from us
//! ends the search for others; all that is found is reported together.
mod arguments;
mod borrowed;
mod closure;
mod companion;
mod excerpt;
mod fallback;
mod function;
#[cfg(test)]
mod golden;
mod handler;
mod mention;
#[cfg(test)]
mod mistakes;
mod parameters;
mod private;

use arguments::Arguments;
use function::Function;
use handler::Handler;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Error;

/// What `#[handle(attribute)] item` becomes.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let named_in_attribute = attribute.clone();
    let mut mistakes = Mistakes::default();
    let function = match Function::parse(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let mut expanded = item;
            expanded.extend(error.to_compile_error());
            return expanded;
        }
    };
    let arguments = Arguments::parse(attribute, &mut mistakes);
    let handler = Handler::of(&function, &arguments, &mut mistakes);
    match mistakes.into_error() {
        None => {
            let companion = companion::expand(&function, &handler, &arguments);
            let function = function.with_context_used_by(|name| arguments.mention(name));
            quote!(#function #companion)
        }
        Some(error) => {
            let error = error.to_compile_error();
            let companion = fallback::expand(&function, &arguments);
            let function =
                function.with_context_used_by(|name| mention::names(named_in_attribute.clone(), name));
            quote!(#function #error #companion)
        }
    }
}

/// What is wrong with one attribute and its function, in the order found.
#[derive(Default)]
struct Mistakes(Option<Error>);

impl Mistakes {
    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Adds an error whose caret is under all of `tokens`.
    fn at(&mut self, tokens: impl quote::ToTokens, text: impl std::fmt::Display) {
        self.add(Error::new_spanned(tokens, text));
    }

    fn into_error(self) -> Option<Error> {
        self.0
    }
}

//! The annotated function. Its signature is parsed and its body is not; its tokens are kept as they came.
use super::{mention, parameters::ungrouped};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;
use syn::{
    Attribute, Error, FnArg, Ident, LitStr, Pat, Path, Result, Signature, Type, Visibility,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

/// A function, or what looks like one up to its body.
pub(super) struct Function {
    pub(super) attributes: Vec<Attribute>,
    pub(super) visibility: Visibility,
    pub(super) signature: Signature,
    pub(super) body: TokenStream,
    tokens: TokenStream,
}

impl Function {
    /// Fails only on what is not a function.
    pub(super) fn parse(item: TokenStream) -> Result<Self> {
        let tokens = item.clone();
        let parser = |input: ParseStream<'_>| {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse()?;
            if let Some(other) = kind_of_item(input) {
                let text = format!("`#[handle]` makes a function a handler; this is {other}");
                return Err(Error::new(input.span(), text));
            }
            Ok(Function { attributes, visibility, signature: input.parse()?, body: input.parse()?, tokens })
        };
        parser.parse2(item)
    }

    /// The tokens, as they came. But where the attribute uses the first parameter and the function does not, the
    /// compiler is told that this is no oversight.
    pub(super) fn with_context_used_by(self, attribute_uses: impl Fn(&Ident) -> bool) -> TokenStream {
        match self.signature.inputs.first().and_then(name_of_reference) {
            Some(name) if attribute_uses(name) && !mention::names(self.body, name) => {
                with_first_parameter_unused(self.tokens)
            }
            _ => self.tokens,
        }
    }

    /// The companion's type, with nothing in it.
    pub(super) fn companion(&self) -> TokenStream {
        let Function { visibility, signature: Signature { ident, .. }, .. } = self;
        let conditions = self.conditions();
        quote! {
            #(#conditions)*
            #[doc(hidden)]
            #[allow(non_camel_case_types)]
            #visibility struct #ident {}
        }
    }

    /// A second `#[handle]`, which is yet to come.
    pub(super) fn handle_again(&self) -> Option<&Attribute> {
        let is_handle = |path: &Path| path.segments.last().is_some_and(|segment| segment.ident == "handle");
        self.attributes.iter().find(|attribute| is_handle(attribute.path()))
    }

    /// The `#[cfg]`s that the compiler has not looked at yet: the companion exists where the function does.
    pub(super) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }
}

/// The name of a parameter `name: &T`.
fn name_of_reference(parameter: &FnArg) -> Option<&Ident> {
    match parameter {
        FnArg::Typed(parameter) if matches!(ungrouped(&parameter.ty), Type::Reference(_)) => {
            match &*parameter.pat {
                Pat::Ident(pattern) => Some(&pattern.ident),
                _ => None,
            }
        }
        _ => None,
    }
}

fn with_first_parameter_unused(function: TokenStream) -> TokenStream {
    let (mut after_fn, mut done) = (false, false);
    let with_attribute = |token| match token {
        TokenTree::Group(group) if after_fn && !done && group.delimiter() == Delimiter::Parenthesis => {
            done = true;
            let parameters = group.stream();
            let mut group_with =
                Group::new(Delimiter::Parenthesis, quote!(#[allow(unused_variables)] #parameters));
            group_with.set_span(group.span());
            TokenTree::Group(group_with)
        }
        token => {
            after_fn |= matches!(&token, TokenTree::Ident(ident) if ident == "fn");
            token
        }
    };
    function.into_iter().map(with_attribute).collect()
}

/// What comes after attributes and visibility, unless it is a function.
fn kind_of_item(input: ParseStream<'_>) -> Option<&'static str> {
    let ahead = input.fork();
    let mut kind = "something else";
    while let Ok(word) = ahead.call(Ident::parse_any) {
        kind = match word.to_string().as_str() {
            "fn" => return None,
            "struct" => "a struct",
            "enum" => "an enum",
            "union" => "a union",
            "trait" => "a trait: put it on free functions",
            "impl" => "an `impl` block: put it on free functions",
            "mod" => "a module: put it on the functions in it",
            "type" => "a type alias",
            "const" => "a constant",
            "static" => "a static",
            "use" => "an import",
            // A qualifier, or the name of what was found.
            _ => kind,
        };
        // `extern "C"`
        ahead.parse::<Option<LitStr>>().ok()?;
    }
    Some(kind)
}

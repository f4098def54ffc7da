//! A handler as its signature tells it, and what is wrong with it but for its parameters.
//!
//! A handler with a mistake is never mounted, so what is read of it is then not used.
use super::{
    Mistakes,
    arguments::Arguments,
    borrowed::{Unnameable, is_unsized, unnameable},
    function::Function,
    mention::captured,
    parameters::{Context, Item, Parameters, SHAPE, ungrouped},
};
use proc_macro2::{Delimiter, TokenTree};
use quote::quote;
use syn::{Error, GenericArgument, GenericParam, PathArguments, ReturnType, Safety, Type};

/// A handler, as its companion calls it.
pub(super) struct Handler {
    pub(super) parameters: Parameters,
    /// The return type, if it is written.
    pub(super) returns: Option<Type>,
}

impl Handler {
    /// Reads it, and looks for everything that is wrong with it.
    pub(super) fn of(function: &Function, arguments: &Arguments, mistakes: &mut Mistakes) -> Self {
        check_function(function, mistakes);
        let parameters = Parameters::of(function, arguments, mistakes);
        let returns = match &function.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        check_types(&parameters, returns.as_ref(), mistakes);
        let gives_nothing = !parameters.emitter_is_meant && returns.as_ref().is_none_or(is_nothing);
        if gives_nothing && let sinks @ [_, ..] = &arguments.sinks[..] {
            let text =
                "a handler that returns nothing has no output for a sink: return one, or leave out the sink";
            mistakes.at(quote!(#(#sinks),*), text);
        }
        check_closures(&parameters, arguments, mistakes);
        Handler { parameters, returns }
    }
}

/// A closure is kept as long as the flow, and may not borrow what it has only while the flow starts.
fn check_closures(parameters: &Parameters, arguments: &Arguments, mistakes: &mut Mistakes) {
    let Some(name) = parameters.context.as_ref().and_then(|context| context.name.as_ref()) else { return };
    for used in arguments.expressions().filter_map(|expr| captured(expr, name)) {
        let text = format!(
            "`{name}` is lent only while the flow starts, and this closure is kept: clone what it needs, as in \
             `{{ let log = {name}.log.clone(); move |output| log.add(output) }}`"
        );
        mistakes.add(Error::new(used, text));
    }
}

/// What has nothing to do with parameters and types.
fn check_function(function: &Function, mistakes: &mut Mistakes) {
    let signature = &function.signature;
    if let Some(again) = function.handle_again() {
        mistakes.at(again, "a function has one `#[handle]`: give it all sources, `#[handle(a, b)]`");
    }
    if let Some(token) = &signature.constness {
        mistakes.at(token, "a handler cannot be a `const fn`: a flow calls it while it runs");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        mistakes.at(token, "a handler cannot be `unsafe`: a flow calls it with whatever its sources give");
    }
    if let Some(abi) = &signature.abi {
        mistakes.at(abi, "a handler cannot be `extern`: only a flow calls it");
    }
    for parameter in &signature.generics.params {
        let text = match parameter {
            GenericParam::Lifetime(_) => {
                "a handler needs no lifetime parameters: what it takes by reference is lent for the call, so write `&T`"
            }
            GenericParam::Type(_) | GenericParam::Const(_) => {
                "a handler cannot be generic: its sources give one type, name it"
            }
        };
        mistakes.at(parameter, text);
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.at(variadic, format!("a handler cannot be variadic: {SHAPE}"));
    }
    let body = function.body.clone().into_iter().next();
    if !matches!(&body, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace) {
        mistakes.at(&signature.ident, "a handler has a body");
    }
}

/// The companion names these types outside of the function.
fn check_types(parameters: &Parameters, returns: Option<&Type>, mistakes: &mut Mistakes) {
    if let Some(Context { ty, .. }) = &parameters.context {
        match unnameable(ty) {
            Some(Unnameable::Impl(part)) => {
                mistakes.at(part, "a handler cannot be generic: a flow has one context, name its type");
            }
            Some(Unnameable::Borrow(part)) => {
                mistakes.at(
                    part,
                    "a context borrows from nothing, since its flow may outlive that: let it own this",
                );
            }
            None => {}
        }
    }
    if let Some(Item { ty, by_reference }) = &parameters.item {
        match unnameable(ty) {
            Some(Unnameable::Impl(part)) => {
                mistakes.at(part, "a handler cannot be generic: its sources give one type, name it");
            }
            Some(Unnameable::Borrow(part)) => {
                mistakes.at(part, "a handler owns its item, or borrows the whole of it: take `T` or `&T`");
            }
            None if *by_reference && is_unsized(ty) => {
                mistakes.at(ty, "no source gives this by value: take `&String`, `&Vec<T>` or the like");
            }
            None => {}
        }
    }
    for output in [parameters.emits.as_ref(), returns].into_iter().flatten() {
        match unnameable(output) {
            Some(Unnameable::Impl(part)) => {
                mistakes
                    .at(part, "a handler's output has a type with a name: write it out instead of `impl`");
            }
            Some(Unnameable::Borrow(part)) => {
                let text =
                    "a handler's output borrows from nothing, since it outlives the call: return it by value";
                mistakes.at(part, text);
            }
            None => {}
        }
    }
}

/// `()`, or `Result<()>` by that name: under another name the type checker finds it.
fn is_nothing(ty: &Type) -> bool {
    match ungrouped(ty) {
        Type::Tuple(tuple) => tuple.elems.is_empty(),
        Type::Path(path) => {
            let last = path.path.segments.last().filter(|last| last.ident == "Result");
            let ok = match last.map(|last| &last.arguments) {
                Some(PathArguments::AngleBracketed(arguments)) => arguments.args.first(),
                _ => None,
            };
            matches!(ok, Some(GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty())
        }
        _ => false,
    }
}

//! What the signature says: a context, an item and an emitter, in this order, each optional.
//!
//! A handler that cannot be mounted is a mistake, and what is read of it here is then not used.
use super::{
    Mistakes,
    arguments::Arguments,
    borrowed::{Unnameable, is_static, is_unsized, unnameable},
    function::Function,
};
use proc_macro2::{Delimiter, TokenTree};
use syn::{
    FnArg, GenericArgument, GenericParam, Ident, Pat, PatType, PathArguments, ReturnType, Safety, Type,
    TypeReference,
};

const SHAPE: &str =
    "a handler takes `context: &Context`, the item, and `out: &mut Emitter<T>`, in this order";

/// A handler, as its companion calls it.
pub(super) struct Handler {
    pub(super) context: Option<Context>,
    pub(super) item: Option<Item>,
    /// `T` of an `&mut Emitter<T>`.
    pub(super) emits: Option<Type>,
    /// The return type, if it is written.
    pub(super) returns: Option<Type>,
}

/// `app: &App`
pub(super) struct Context {
    /// By which the attribute's expressions know it; `_: &App` has none.
    pub(super) name: Option<Ident>,
    pub(super) ty: Type,
}

/// The item parameter.
pub(super) struct Item {
    pub(super) ty: Type,
    pub(super) by_reference: bool,
}

impl Handler {
    /// Reads it, and looks for everything that is wrong with it.
    pub(super) fn of(function: &Function, arguments: &Arguments, mistakes: &mut Mistakes) -> Self {
        check_function(function, mistakes);
        let mut parameters = parameters(function, mistakes);
        let emits = take_emitter(&mut parameters, arguments, mistakes);
        let (context, item) = context_and_item(&parameters, arguments, mistakes);
        let returns = match &function.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        check_types(item.as_ref(), emits.as_ref(), returns.as_ref(), mistakes);
        if emits.is_none() && returns.as_ref().is_none_or(is_unit) && !arguments.sinks.is_empty() {
            let text =
                "a handler that returns nothing has no output for a sink: return one, or leave out the sink";
            let sinks = &arguments.sinks;
            mistakes.at(quote::quote!(#(#sinks),*), text);
        }
        Handler { context, item, emits, returns }
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

/// The parameters but for `self`.
fn parameters<'f>(function: &'f Function, mistakes: &mut Mistakes) -> Vec<&'f PatType> {
    let mut parameters = Vec::new();
    for input in &function.signature.inputs {
        match input {
            FnArg::Typed(parameter) => parameters.push(parameter),
            FnArg::Receiver(receiver) => {
                let text = "a handler is a free function, not a method: take the context as its first parameter, by `&`";
                mistakes.at(receiver, text);
            }
        }
    }
    parameters
}

/// Takes what is `&mut` out of the parameters: the emitter, which is the last, or a mistake.
fn take_emitter(
    parameters: &mut Vec<&PatType>,
    arguments: &Arguments,
    mistakes: &mut Mistakes,
) -> Option<Type> {
    let count = parameters.len();
    let mut emits = None;
    let mut at = 0;
    parameters.retain(|parameter| {
        at += 1;
        let last = at == count;
        let emitted = emitted(parameter);
        let Some(reference) = by_mut(parameter) else {
            if emitted.is_some() {
                mistakes.at(&parameter.ty, "an emitter is taken by `&mut`: write `out: &mut Emitter<T>`");
            }
            return emitted.is_none();
        };
        match emitted {
            Some(Some(ty)) if last => emits = Some(ty.clone()),
            Some(Some(_)) => mistakes.at(reference, "the emitter is the last parameter"),
            Some(None) => mistakes.at(reference, "say what is emitted: `out: &mut Emitter<T>`"),
            None if at == 1 && (!last || name(parameter).is_some_and(|name| arguments.mention(name))) => {
                let text = "handlers share their context: take it by `&`, and keep what changes in a `Cache` or a `Mutex`";
                mistakes.at(reference, text);
            }
            None => mistakes.at(
                reference,
                "only an `Emitter<T>` is taken by `&mut`: take the item by value, as `mut item: T`",
            ),
        }
        false
    });
    emits
}

/// Of the parameters without the emitter.
fn context_and_item(
    parameters: &[&PatType],
    arguments: &Arguments,
    mistakes: &mut Mistakes,
) -> (Option<Context>, Option<Item>) {
    match *parameters {
        [] => (None, None),
        [lone] => match name(lone) {
            Some(name) if by_shared(lone).is_some() && arguments.mention(name) => {
                (context(lone, mistakes), None)
            }
            _ => (None, Some(item(lone))),
        },
        [first, second, ref more @ ..] => {
            if let [extra, ..] = more {
                mistakes.at(extra, format!("too many parameters: {SHAPE}"));
            }
            (context(first, mistakes), Some(item(second)))
        }
    }
}

fn context(parameter: &PatType, mistakes: &mut Mistakes) -> Option<Context> {
    let Some(reference) = by_shared(parameter) else {
        mistakes.at(
            &parameter.ty,
            "of two parameters the first is the context, by reference, and the second the item",
        );
        return None;
    };
    if is_static(reference) {
        mistakes.at(reference, "the context is lent for the call: write `&Context`");
    }
    let name = name(parameter).cloned();
    if name.is_none() && !matches!(&*parameter.pat, Pat::Wild(_)) {
        mistakes.at(&parameter.pat, "give the context a name: the attribute's expressions use it by that");
    }
    Some(Context { name, ty: (*reference.elem).clone() })
}

fn item(parameter: &PatType) -> Item {
    match by_shared(parameter) {
        Some(reference) if !is_static(reference) => {
            Item { ty: (*reference.elem).clone(), by_reference: true }
        }
        _ => Item { ty: (*parameter.ty).clone(), by_reference: false },
    }
}

/// The companion names these types outside of the function.
fn check_types(item: Option<&Item>, emits: Option<&Type>, returns: Option<&Type>, mistakes: &mut Mistakes) {
    if let Some(Item { ty, by_reference }) = item {
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
    for ty in [emits, returns].into_iter().flatten() {
        match unnameable(ty) {
            Some(Unnameable::Impl(part)) => {
                mistakes
                    .at(part, "a handler's output has a type with a name: write it out instead of `impl`");
            }
            Some(Unnameable::Borrow(part)) => {
                mistakes.at(
                    part,
                    "a handler's output borrows from nothing, since it outlives the call: return it by value",
                );
            }
            None => {}
        }
    }
}

fn name(parameter: &PatType) -> Option<&Ident> {
    match &*parameter.pat {
        Pat::Ident(pattern) => Some(&pattern.ident),
        _ => None,
    }
}

fn by_shared(parameter: &PatType) -> Option<&TypeReference> {
    match &*parameter.ty {
        Type::Reference(reference) if reference.mutability.is_none() => Some(reference),
        _ => None,
    }
}

fn by_mut(parameter: &PatType) -> Option<&TypeReference> {
    match &*parameter.ty {
        Type::Reference(reference) if reference.mutability.is_some() => Some(reference),
        _ => None,
    }
}

/// Of an `Emitter<T>`, behind a reference or not, its `T` if that is written. It is known by its name: a macro sees no
/// types, and a bound would be checked, and found broken, more than once.
fn emitted(parameter: &PatType) -> Option<Option<&Type>> {
    let ty = match &*parameter.ty {
        Type::Reference(reference) => &reference.elem,
        ty => ty,
    };
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Emitter")?;
    Some(match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    })
}

fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

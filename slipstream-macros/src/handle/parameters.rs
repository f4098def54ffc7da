//! The parameters: a context, an item and an emitter, in this order, each optional.
use super::{Mistakes, arguments::Arguments, borrowed::is_static, function::Function};
use syn::{FnArg, GenericArgument, Ident, Pat, PatType, PathArguments, Type, TypeReference};

pub(super) const SHAPE: &str =
    "a handler takes `context: &Context`, the item, and `out: &mut Emitter<T>`, in this order";

/// What a handler takes.
pub(super) struct Parameters {
    pub(super) context: Option<Context>,
    pub(super) item: Option<Item>,
    /// `T` of an `&mut Emitter<T>`.
    pub(super) emits: Option<Type>,
    /// Whether there is an emitter, or something that was meant as one.
    pub(super) emitter_is_meant: bool,
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

impl Parameters {
    /// Reads them, and looks for everything that is wrong with them.
    pub(super) fn of(function: &Function, arguments: &Arguments, mistakes: &mut Mistakes) -> Self {
        let mut parameters = parameters(function, mistakes);
        let count = parameters.len();
        let emits = take_emitter(&mut parameters, arguments, mistakes);
        let emitter_is_meant = parameters.len() < count;
        let (context, item) = context_and_item(&parameters, arguments, mistakes);
        Parameters { context, item, emits, emitter_is_meant }
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

/// Takes the emitter out of the parameters: it is the last, by `&mut`. What can only be meant as one is taken out, too.
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
        let (first, last) = (at == 1, at == count);
        let used = || name(parameter).is_some_and(|name| arguments.mention(name));
        match (by_mut(parameter), emitted(parameter)) {
            (None, None) => return true,
            (None, Some(_)) => {
                mistakes.at(&parameter.ty, "an emitter is taken by `&mut`: write `out: &mut Emitter<T>`");
            }
            (Some(_), Some(Some(ty))) if last => emits = Some(ty.clone()),
            (Some(reference), Some(Some(_))) => mistakes.at(reference, "the emitter is the last parameter"),
            (Some(reference), Some(None)) => {
                mistakes.at(reference, "say what is emitted: `out: &mut Emitter<T>`");
            }
            (Some(reference), None) if first && (!last || used()) => {
                let text = "handlers share their context: take it by `&`, and keep what changes in a `Cache` or a `Mutex`";
                mistakes.at(reference, text);
                return true;
            }
            (Some(reference), None) => {
                let text = "only an `Emitter<T>` is taken by `&mut`: take the item by value, as `mut item: T`";
                mistakes.at(reference, text);
            }
        }
        false
    });
    emits
}

/// Of the parameters without the emitter. A context by `&mut` is a mistake that is told already.
fn context_and_item(
    parameters: &[&PatType],
    arguments: &Arguments,
    mistakes: &mut Mistakes,
) -> (Option<Context>, Option<Item>) {
    match *parameters {
        [] => (None, None),
        [lone] => match name(lone) {
            _ if by_mut(lone).is_some() => (None, None),
            Some(name) if by_shared(lone).is_some() && arguments.mention(name) => {
                (context(lone, mistakes), None)
            }
            Some(name) if arguments.take_field_of(name) => {
                let text = "the attribute uses this parameter, so it is the context: take it by reference, `&Context`";
                mistakes.at(&lone.ty, text);
                (None, None)
            }
            _ => (None, Some(item(lone))),
        },
        [first, second, ref more @ ..] => {
            if let [extra, ..] = more {
                mistakes.at(extra, format!("too many parameters: {SHAPE}"));
            }
            let context = if by_mut(first).is_some() { None } else { context(first, mistakes) };
            (context, Some(item(second)))
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

fn name(parameter: &PatType) -> Option<&Ident> {
    match &*parameter.pat {
        Pat::Ident(pattern) => Some(&pattern.ident),
        _ => None,
    }
}

fn by_shared(parameter: &PatType) -> Option<&TypeReference> {
    match ungrouped(&parameter.ty) {
        Type::Reference(reference) if reference.mutability.is_none() => Some(reference),
        _ => None,
    }
}

fn by_mut(parameter: &PatType) -> Option<&TypeReference> {
    match ungrouped(&parameter.ty) {
        Type::Reference(reference) if reference.mutability.is_some() => Some(reference),
        _ => None,
    }
}

/// The type without parentheses, or what stands for them around a `$ty:ty` of the user's own macro.
pub(super) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(ty) => ungrouped(&ty.elem),
        Type::Paren(ty) => ungrouped(&ty.elem),
        ty => ty,
    }
}

/// Of an `Emitter<T>`, behind a reference or not, its `T` if that is written. It is known by its name: a macro sees no
/// types, and a bound would be checked, and found broken, more than once.
fn emitted(parameter: &PatType) -> Option<Option<&Type>> {
    let ty = match ungrouped(&parameter.ty) {
        Type::Reference(reference) => ungrouped(&reference.elem),
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

//! `Mount`: how a flow finds the handler's sources and sinks.
//!
//! One step for each thing that can be wrong, all of its tokens located at the user's token that can be at fault, so that
//! the compiler's error is there, and is one.
use super::{
    super::{
        arguments::Arguments,
        closure::{closure_in, gives_future},
        excerpt,
        function::Function,
        handler::Handler,
        parameters::Item,
        private::Private,
    },
    local,
};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprReference, Ident, Token, UnOp, ext::IdentExt, spanned::Spanned};

/// The inside of `impl Mount`.
pub(super) fn expand(
    function: &Function,
    handler: &Handler,
    arguments: &Arguments,
    context: &TokenStream,
) -> TokenStream {
    let private = &arguments.private;
    let name = &function.signature.ident;
    let text = name.unraw().to_string();
    let [handled, routes, source] =
        ["handled", "routes", "source"].map(|name| local(name, Span::mixed_site()));
    let context_name = match handler.parameters.context.as_ref().and_then(|context| context.name.as_ref()) {
        Some(name) if arguments.mention(name) => quote!(#name),
        _ => quote!(_),
    };
    let outputs = outputs(handler, !arguments.sinks.is_empty(), name.span(), private);
    let on_error = arguments.on_error.as_ref().map(on_error);
    let closures = arguments.sinks.iter().enumerate().filter_map(|(at, sink)| closure(at, sink));
    let sinks = sinks(&arguments.sinks, name.span());
    let pipes: Vec<_> = arguments.pipes.iter().map(pipe).collect();
    let takes = takes(handler);
    let sources = arguments.sources.iter().map(|expr| {
        let reads = reads(expr);
        quote!(#reads #(#pipes)* #takes #source.mount(&#handled)?;)
    });
    quote! {
        fn mount<'c>(
            #context_name: &'c #context,
            #routes: &mut #private::Routes<'c, #context>,
        ) -> ::core::result::Result<(), #private::BoxError> {
            use #private::{ExactlyOne as _, Whole as _};
            let #handled = #private::handled::<#context, _>(#text, Self {});
            #outputs
            #on_error
            #(#closures)*
            #sinks
            #(#sources)*
            ::core::result::Result::Ok(())
        }
    }
}

/// `let name = value;`, all of it at one place: what is wrong with a call is wrong with the type of what it gives, too,
/// and at one place the compiler says it once.
fn step(name: &str, span: Span, value: &TokenStream) -> TokenStream {
    let name = local(name, span);
    quote_spanned!(span=> let #name = #value;)
}

/// How outputs are got out of what the function returns.
fn outputs(handler: &Handler, for_sinks: bool, name: Span, private: &Private) -> TokenStream {
    let (span, value) = match (&handler.parameters.emits, &handler.returns) {
        (Some(ty), _) => {
            let private = private.at(ty.span());
            (ty.span(), quote_spanned!(ty.span()=> #private::emits()))
        }
        (None, Some(ty)) => {
            let private = private.at(ty.span());
            let way = quote_spanned!(ty.span()=> #private::returns::<#ty>().tries().count());
            // An alias may hide from the macro that the handler returns nothing.
            let way = if for_sinks { quote_spanned!(ty.span()=> #private::gives(#way)) } else { way };
            (ty.span(), way)
        }
        (None, None) => {
            let private = private.at(name);
            (name, quote_spanned!(name=> #private::returns::<()>().tries().count()))
        }
    };
    let handled = local("handled", span);
    step("handled", span, &quote_spanned!(span=> #handled.outputs(#value)))
}

fn on_error(policy: &Expr) -> TokenStream {
    let span = policy.span();
    let handled = local("handled", span);
    step("handled", span, &quote_spanned!(span=> #handled.on_error(#policy)))
}

/// The sinks in one call, as `(((), &a), &b)`: the compiler points at the element that is wrong.
fn sinks(sinks: &[Expr], name: Span) -> TokenStream {
    let span = sinks.first().map_or(name, Spanned::span);
    let list = sinks.iter().enumerate().fold(quote_spanned!(span=> ()), |before, (at, sink)| {
        let sink = if closure_in(sink).is_some() {
            let closure = closure_name(at, sink.span());
            quote_spanned!(sink.span()=> &#closure)
        } else {
            borrow(sink).into_token_stream()
        };
        quote_spanned!(span=> (#before, #sink))
    });
    let handled = local("handled", span);
    step("handled", span, &quote_spanned!(span=> #handled.sinks(#list)))
}

/// No [`local`]: inside of the tuple a name of the macro's own would take the caret to the whole attribute.
fn closure_name(at: usize, span: Span) -> Ident {
    Ident::new(&format!("slipstream_closure{at}"), span)
}

/// A closure goes through a step that gives its parameter the output's type.
fn closure(at: usize, sink: &Expr) -> Option<TokenStream> {
    let closure = closure_in(sink)?;
    let span = sink.span();
    let handled = local("handled", span);
    let value = if closure.asyncness.is_some() || gives_future(&closure.body) {
        quote_spanned!(span=> #handled.closure_async(#sink))
    } else {
        quote_spanned!(span=> #handled.closure(#sink))
    };
    let name = closure_name(at, span);
    Some(quote_spanned!(span=> let #name = #value;))
}

/// A place lives as long as the context, so the route may know the source by its address. The value of another
/// expression is only as old as this call.
fn reads(source: &Expr) -> TokenStream {
    let span = source.span();
    let routes = local("routes", span);
    let text = excerpt::of(unborrowed(source));
    let read = if is_place(unborrowed(source)) {
        let place = borrow(source);
        quote_spanned!(span=> #routes.source(#place, #text))
    } else {
        quote_spanned!(span=> #routes.made(#source, #text))
    };
    step("source", span, &read)
}

fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => true,
        Expr::Unary(unary) => matches!(unary.op, UnOp::Deref(_)),
        Expr::Paren(paren) => is_place(&paren.expr),
        Expr::Group(group) => is_place(&group.expr),
        _ => false,
    }
}

fn pipe(pipe: &Expr) -> TokenStream {
    let span = pipe.span();
    let source = local("source", span);
    step("source", span, &quote_spanned!(span=> #source.pipe(#pipe)))
}

fn takes(handler: &Handler) -> TokenStream {
    let (span, call) = match &handler.parameters.item {
        Some(Item { ty, .. }) => (ty.span(), quote_spanned!(ty.span()=> takes::<#ty>())),
        None => (Span::mixed_site(), quote!(takes_nothing())),
    };
    let source = local("source", span);
    step("source", span, &quote_spanned!(span=> #source.#call))
}

/// `&expr`, once, whether the user wrote the `&` or not.
fn borrow(expr: &Expr) -> ExprReference {
    let expr = unborrowed(expr).clone();
    ExprReference {
        attrs: Vec::new(),
        and_token: Token![&](expr.span()),
        mutability: None,
        expr: Box::new(expr),
    }
}

fn unborrowed(expr: &Expr) -> &Expr {
    match expr {
        Expr::Reference(reference) if reference.mutability.is_none() => unborrowed(&reference.expr),
        Expr::Group(group) => unborrowed(&group.expr),
        expr => expr,
    }
}

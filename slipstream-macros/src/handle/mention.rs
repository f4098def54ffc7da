//! Whether tokens or expressions name a variable.
//!
//! Of the attribute's expressions this decides whether a lone `&T` is the context, so it must not be misled by a field, a
//! method, a path or a closure's own parameter of the same name.
use super::closure::closure_in;
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Expr, ExprClosure, ExprField, ExprPath, Ident, Macro, Pat, PatIdent,
    visit::{self, Visit},
};

/// Whether the expression uses the variable.
pub(super) fn uses(expr: &Expr, variable: &Ident) -> bool {
    let mut search = Search { variable, used: false, field_taken: false };
    search.visit_expr(expr);
    search.used
}

/// Whether the expression takes a field of the variable.
pub(super) fn takes_field_of(expr: &Expr, variable: &Ident) -> bool {
    let mut search = Search { variable, used: false, field_taken: false };
    search.visit_expr(expr);
    search.field_taken
}

struct Search<'v> {
    variable: &'v Ident,
    used: bool,
    field_taken: bool,
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.used |= path.path.is_ident(self.variable);
    }

    fn visit_expr_field(&mut self, field: &'ast ExprField) {
        self.field_taken |= matches!(&*field.base, Expr::Path(path) if path.path.is_ident(self.variable));
        self.visit_expr(&field.base);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        if !closure.inputs.iter().any(|input| binds(input, self.variable)) {
            self.visit_expr(&closure.body);
        }
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.used |= names(called.tokens.clone(), self.variable);
    }
}

/// Whether the pattern makes a new variable of that name.
fn binds(pattern: &Pat, variable: &Ident) -> bool {
    let mut bindings = Bindings { variable, found: false };
    bindings.visit_pat(pattern);
    bindings.found
}

struct Bindings<'v> {
    variable: &'v Ident,
    found: bool,
}

impl<'ast> Visit<'ast> for Bindings<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.found |= pattern.ident == *self.variable;
        visit::visit_pat_ident(self, pattern);
    }
}

/// The name that an expression begins with, if it names a place, calls a function or takes a field.
pub(super) fn begins_with(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() && path.path.leading_colon.is_none() => {
            let first = &path.path.segments.first()?.ident;
            (!["crate", "self", "super", "Self"].iter().any(|word| first == word)).then_some(first)
        }
        Expr::Call(call) => begins_with(&call.func),
        Expr::Field(field) => begins_with(&field.base),
        Expr::Index(index) => begins_with(&index.expr),
        Expr::MethodCall(call) => begins_with(&call.receiver),
        Expr::Paren(paren) => begins_with(&paren.expr),
        Expr::Group(group) => begins_with(&group.expr),
        Expr::Reference(reference) => begins_with(&reference.expr),
        Expr::Try(tried) => begins_with(&tried.expr),
        Expr::Unary(unary) => begins_with(&unary.expr),
        _ => None,
    }
}

/// Where the closure that an expression gives uses the variable, unless anything in the expression has that name, too.
pub(super) fn captured(expr: &Expr, variable: &Ident) -> Option<Span> {
    struct Capture<'v> {
        variable: &'v Ident,
        at: Option<Span>,
    }
    impl<'ast> Visit<'ast> for Capture<'_> {
        fn visit_expr_path(&mut self, path: &'ast ExprPath) {
            if let Some(name) = path.path.get_ident().filter(|name| *name == self.variable) {
                self.at.get_or_insert(name.span());
            }
        }
        fn visit_macro(&mut self, called: &'ast Macro) {
            self.at = self.at.or_else(|| field_taken(called.tokens.clone(), self.variable));
        }
    }
    let closure = closure_in(expr)?;
    let mut bindings = Bindings { variable, found: false };
    bindings.visit_expr(expr);
    let mut capture = Capture { variable, at: None };
    capture.visit_expr(&closure.body);
    capture.at.filter(|_| !bindings.found)
}

/// Where tokens take a field of the variable, or call a method: in what is not parsed a name alone may be anything.
fn field_taken(tokens: TokenStream, variable: &Ident) -> Option<Span> {
    let is_dot = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.');
    let mut after_dot = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => {
                if let Some(found) = field_taken(group.stream(), variable) {
                    return Some(found);
                }
            }
            TokenTree::Ident(ident)
                if ident == variable && !after_dot && tokens.peek().is_some_and(is_dot) =>
            {
                return Some(ident.span());
            }
            _ => {}
        }
        after_dot = is_dot(&token);
    }
    None
}

/// Whether the tokens have the identifier anywhere but after a dot. For what is not parsed: it may say yes too often.
pub(super) fn names(tokens: TokenStream, variable: &Ident) -> bool {
    let mut dots = 0;
    tokens.into_iter().any(|token| {
        let named = match &token {
            TokenTree::Group(group) => names(group.stream(), variable),
            // One dot is a field or a method, two are a range.
            TokenTree::Ident(ident) => dots != 1 && ident == variable,
            _ => false,
        };
        dots = if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.') { dots + 1 } else { 0 };
        named
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app_is_used_in(expr: &str) -> bool {
        let expr = syn::parse_str(expr).unwrap();
        uses(&expr, &syn::parse_str("app").unwrap())
    }

    #[test]
    fn a_variable_is_used_wherever_an_expression_names_it() {
        for expr in [
            "app",
            "app.weather",
            "*app.weather()",
            "&app.topics[0]",
            "topics[app.at]",
            "iter(0..app.end)",
            "app.sink()?",
            "|n| app.log(n)",
            "sink_async(|n: u8| async move { app.log(n) })",
            "Named { app }",
            "vec![app.weather]",
            "vec![0..app.end]",
        ] {
            assert!(app_is_used_in(expr), "{expr}");
        }
    }

    #[test]
    fn another_thing_of_that_name_is_not_the_variable() {
        for expr in [
            "other.app",
            "other.app()",
            "app::source",
            "self::app",
            "app!()",
            "Named { app: 1 }",
            "|app| app.log()",
            "|&app| app + 1",
            "|(app, _)| app + 1",
            "sink_async(|app: u8| async move { see(&app) })",
            "vec![other.app]",
        ] {
            assert!(!app_is_used_in(expr), "{expr}");
        }
    }

    #[test]
    fn a_field_is_taken_of_a_variable_alone() {
        let app = syn::parse_str("app").unwrap();
        for (expr, expected) in
            [("app.weather", true), ("&*app.0.b", true), ("app", false), ("app.named(1)", false)]
        {
            assert_eq!(takes_field_of(&syn::parse_str(expr).unwrap(), &app), expected, "{expr}");
        }
    }

    #[test]
    fn a_closure_captures_what_it_uses_and_has_not_made_itself() {
        let app = syn::parse_str("app").unwrap();
        for (expr, expected) in [
            ("|n| app.log(n)", true),
            ("|n| send(n, app)", true),
            ("|n| async move { app.log(n) }", true),
            ("{ let log = app.log.clone(); move |n| app.log(n) }", true),
            ("|n| assert!(n < app.limit)", true),
            ("{ let log = app.log.clone(); move |n| log.add(n) }", false),
            ("{ let app = app.clone(); move |n| app.log(n) }", false),
            ("|n| { let app = n.app; app.log() }", false),
            ("|app| app.log()", false),
            ("|n| n.app.log()", false),
            ("|n| assert!(matches!(n, Named { app: 1 }))", false),
            ("|n| assert!(n.app.limit > 1)", false),
            ("app.log(|n| app.limit)", false),
        ] {
            assert_eq!(captured(&syn::parse_str(expr).unwrap(), &app).is_some(), expected, "{expr}");
        }
    }

    #[test]
    fn an_expression_begins_with_the_name_that_an_import_may_have_brought() {
        for (expr, expected) in [
            ("print", Some("print")),
            ("&*app.inner.topics[0]", Some("app")),
            ("sources::numbers", Some("sources")),
            ("iter([1, 2]).every(second)", Some("iter")),
            ("Cache::<u8, u8>::open(\"state\")?", Some("Cache")),
            ("crate::numbers", None),
            ("::streams::numbers", None),
            ("|n| print(n)", None),
            ("vec![numbers]", None),
        ] {
            let expr: Expr = syn::parse_str(expr).unwrap();
            assert_eq!(begins_with(&expr).map(ToString::to_string).as_deref(), expected);
        }
    }

    #[test]
    fn a_closure_without_that_parameter_does_not_hide_the_variable_from_what_follows() {
        assert!(app_is_used_in("pair(|app| app + 1, app)"));
    }
}

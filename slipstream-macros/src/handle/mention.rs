//! Whether tokens or expressions name a variable.
//!
//! Of the attribute's expressions this decides whether a lone `&T` is the context, so it must not be misled by a field, a
//! method, a path or a closure's own parameter of the same name.
use proc_macro2::{TokenStream, TokenTree};
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
    let mut bindings = Bindings { variable, found: false };
    bindings.visit_pat(pattern);
    bindings.found
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
    fn a_closure_without_that_parameter_does_not_hide_the_variable_from_what_follows() {
        assert!(app_is_used_in("pair(|app| app + 1, app)"));
    }
}

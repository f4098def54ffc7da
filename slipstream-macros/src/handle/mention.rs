//! Whether tokens or expressions name a variable.
//!
//! Of the attribute's expressions this decides whether a lone `&T` is the context, so it must not be misled by a field, a
//! method, a path or a closure's own parameter of the same name.
use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Expr, ExprClosure, ExprPath, Ident, Macro, Pat, PatIdent,
    visit::{self, Visit},
};

/// Whether the expression uses the variable.
pub(super) fn uses(expr: &Expr, variable: &Ident) -> bool {
    let mut search = Search { variable, found: false };
    search.visit_expr(expr);
    search.found
}

struct Search<'v> {
    variable: &'v Ident,
    found: bool,
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.found |= path.path.is_ident(self.variable);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        if !closure.inputs.iter().any(|input| binds(input, self.variable)) {
            self.visit_expr(&closure.body);
        }
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.found |= names(called.tokens.clone(), self.variable);
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
    fn a_closure_without_that_parameter_does_not_hide_the_variable_from_what_follows() {
        assert!(app_is_used_in("pair(|app| app + 1, app)"));
    }
}

//! Closures among the attribute's expressions.
use syn::{Expr, ExprBlock, ExprClosure, Stmt};

/// A closure, also at the end of a block that makes what it keeps.
pub(super) fn closure_in(sink: &Expr) -> Option<&ExprClosure> {
    match sink {
        Expr::Closure(closure) => Some(closure),
        Expr::Paren(paren) => closure_in(&paren.expr),
        Expr::Group(group) => closure_in(&group.expr),
        Expr::Block(block) => closure_in(last(block)?),
        _ => None,
    }
}

/// Whether a closure's body ends in an `async` block.
pub(super) fn gives_future(body: &Expr) -> bool {
    match body {
        Expr::Async(_) => true,
        Expr::Paren(paren) => gives_future(&paren.expr),
        Expr::Group(group) => gives_future(&group.expr),
        Expr::Block(block) => last(block).is_some_and(gives_future),
        _ => false,
    }
}

/// The value of a block.
fn last(block: &ExprBlock) -> Option<&Expr> {
    match block.block.stmts.last() {
        Some(Stmt::Expr(last, None)) => Some(last),
        _ => None,
    }
}

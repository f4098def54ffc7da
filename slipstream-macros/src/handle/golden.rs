//! What is written for each kind of handler, as formatted Rust in `golden/`: `name.rs` becomes `name.expanded.rs`.
//!
//! A change of the expansion is reviewed there like other code. `UPDATE_GOLDEN=1 cargo test` writes the files anew.
use proc_macro2::{TokenStream, TokenTree};
use std::{fs, path::Path};

/// Splits `#[handle(attribute)] item`.
fn split(source: &str) -> (TokenStream, TokenStream) {
    let mut tokens = source.parse::<TokenStream>().unwrap().into_iter();
    let (Some(TokenTree::Punct(_)), Some(TokenTree::Group(bracket))) = (tokens.next(), tokens.next()) else {
        panic!("an input begins with `#[handle…]`");
    };
    let mut attribute = bracket.stream().into_iter();
    assert_eq!(attribute.next().unwrap().to_string(), "handle");
    let attribute = match attribute.next() {
        Some(TokenTree::Group(arguments)) => arguments.stream(),
        _ => TokenStream::new(),
    };
    (attribute, tokens.collect())
}

fn expanded(source: &str) -> String {
    let (attribute, item) = split(source);
    let expanded = super::expand(attribute, item);
    let file = syn::parse2(expanded).expect("what is written is Rust");
    prettyplease::unparse(&file)
}

#[test]
fn each_expansion_is_the_one_checked_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut names = Vec::new();
    let mut other = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".rs").filter(|name| !name.ends_with(".expanded")) else {
            continue;
        };
        let expanded = expanded(&fs::read_to_string(folder.join(&file)).unwrap());
        let golden = folder.join(format!("{name}.expanded.rs"));
        if update {
            fs::write(golden, expanded).unwrap();
        } else if fs::read_to_string(golden).unwrap_or_default() != expanded {
            other.push(format!("{name}.expanded.rs is not what is written now:\n\n{expanded}"));
        }
        names.push(name.to_owned());
    }
    assert!(names.len() >= 12, "an input is missing, only {names:?} are there");
    assert!(other.is_empty(), "{}\nIf this is right: UPDATE_GOLDEN=1 cargo test", other.join("\n"));
}

#[test]
fn the_function_comes_first_and_as_it_was() {
    for source in [
        "#[handle(app.weather, sink = app.sky)] /// Doc.\n #[inline] pub(crate) async fn f(app: &App, weather: Weather,) \
         -> (i64, Weather,) where u8: Copy { (app.now(), weather) }",
        "#[handle] async fn f(app: &App, (a, b): (u8, u8), c: u8,) { not even ( Rust ) + }",
        "#[handle(a)] struct NotAFunction { field: u8 }",
    ] {
        let (attribute, item) = split(source);
        let expanded = super::expand(attribute, item.clone()).to_string();
        assert!(expanded.starts_with(&item.to_string()), "{expanded}");
    }
}

#[test]
fn a_context_that_the_function_does_not_use_is_allowed_to_be_unused() {
    for attribute in ["app.weather", "app.weather, snik = app.sky", "app.weather, sink = "] {
        let item = "fn f(app: &App, weather: Weather) { other.app }".parse().unwrap();
        let expanded = super::expand(attribute.parse().unwrap(), item).to_string();
        assert!(expanded.starts_with("fn f (# [allow (unused_variables)] app : & App"), "{expanded}");
    }
}

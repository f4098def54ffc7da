//! What is written, beside the files of `tests/golden`, and what is refused.
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::quote;

use super::derive;

/// Compares what is written with the file of that name. With `UPDATE_GOLDEN` set it writes the
/// file instead, to be read like code.
#[track_caller]
fn is_golden(name: &str, input: TokenStream) {
    let written = syn::parse2(derive(input)).map(|file| prettyplease::unparse(&file)).unwrap();
    let path = format!("{}/tests/golden/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &written).unwrap();
    }
    assert_eq!(written, fs::read_to_string(&path).unwrap(), "run again with UPDATE_GOLDEN=1 and read {path}");
}

#[track_caller]
fn is_refused(input: TokenStream, reasons: &[&str]) {
    let written = derive(input).to_string();
    for reason in reasons {
        assert!(written.contains(reason), "{reason}: {written}");
    }
    assert_eq!(written.matches("compile_error").count(), reasons.len(), "{written}");
}

#[test]
fn a_struct_of_one_field_is_that_fields_key() {
    is_golden(
        "key_newtype",
        quote!(
            struct Origin(String);
        ),
    );
}

#[test]
fn a_struct_of_several_fields_is_their_tuple() {
    is_golden(
        "key_struct",
        quote!(
            pub struct Departure {
                origin: Origin,
                time: Timestamp,
            }
        ),
    );
}

#[test]
fn a_first_field_that_is_a_tuple_is_a_prefix_in_its_parentheses_only() {
    is_golden(
        "key_nested",
        quote!(
            #[key(crate = crate::stream)]
            struct Nested((u8, u8), bool, i64);
        ),
    );
}

#[test]
fn an_enum_is_refused_and_stands_as_a_key_beside_the_error() {
    is_golden(
        "key_enum",
        quote!(
            enum Direction {
                Inbound,
                Outbound,
            }
        ),
    );
}

#[test]
fn what_cannot_be_a_key_is_refused_with_the_remedy() {
    is_refused(quote!(union Bits { a: u8 }), &["Make it a struct"]);
    is_refused(
        quote!(
            struct Of<T>(T);
        ),
        &["write concrete types"],
    );
    is_refused(
        quote!(
            struct Of<'a>(&'a str);
        ),
        &["write concrete types", "`String` instead of `&str`"],
    );
    is_refused(
        quote!(
            struct Of(u8)
            where
                u8: Copy;
        ),
        &["write concrete types"],
    );
    is_refused(
        quote!(
            struct Nothing;
        ),
        &["the key is `()`"],
    );
    is_refused(
        quote!(
            struct Seven(u8, u8, u8, u8, u8, u8, u8);
        ),
        &["six fields at most"],
    );
}

#[test]
fn a_wrong_attribute_is_refused_where_it_stands() {
    is_refused(
        quote!(
            #[key(name = "a")]
            struct Origin(String);
        ),
        &["unknown argument"],
    );
    is_refused(
        quote!(
            #[key(crate)]
            struct Origin(String);
        ),
        &["expected `=`"],
    );
    is_refused(
        quote!(
            #[key]
            struct Origin(String);
        ),
        &["expected"],
    );
    is_refused(
        quote!(
            struct Origin(#[key(crate = a)] String);
        ),
        &["stands on the struct"],
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
    let input = quote!(
        #[key(name = "a")]
        struct Of<T>(#[key] T);
    );
    is_refused(input, &["unknown argument", "write concrete types", "stands on the struct"]);
}

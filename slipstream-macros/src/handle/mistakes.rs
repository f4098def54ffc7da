//! Each mistake that the macro tells by itself: once, at the user's token, with the remedy.
use super::{Arguments, Function, Handler, Mistakes};

/// The errors, each as `token: text` without the usage line.
fn mistakes(attribute: &str, item: &str) -> Vec<String> {
    let mut mistakes = Mistakes::default();
    match Function::parse(item.parse().unwrap()) {
        Err(error) => mistakes.add(error),
        Ok(function) => {
            let arguments = Arguments::parse(attribute.parse().unwrap(), &mut mistakes);
            Handler::of(&function, &arguments, &mut mistakes);
        }
    }
    let errors = mistakes.into_error().into_iter().flatten();
    let text = |error: syn::Error| {
        let token = error.span().source_text().unwrap_or_default();
        let text = error.to_string();
        format!("{token}: {}", text.split("\nusage: ").next().unwrap_or_default())
    };
    errors.map(text).collect()
}

/// What is wrong with a handler whose attribute is right.
fn of_handler(item: &str) -> Vec<String> {
    mistakes("app.weather", item)
}

/// What is wrong with an attribute on a handler that is right.
fn of_attribute(attribute: &str) -> Vec<String> {
    mistakes(attribute, "async fn handler(app: &App, weather: Weather) -> Weather { weather }")
}

#[test]
fn nothing_is_wrong_with_a_right_one() {
    for attribute in [
        "app.weather",
        "app.weather,",
        "app.weather, sink = print,",
        "a, b, pipe = f, sink = [s, |weather| t(weather)], crate = crate",
        "a, crate = crate::streams, sink = []",
        "crate::source",
        "sink(1)",
    ] {
        assert_eq!(of_attribute(attribute), [""; 0], "{attribute}");
    }
    for item in [
        "fn f() {}",
        "fn f(app: &App) {}",
        "fn f(_: &App, _: u8) {}",
        "fn f(app: &App, word: &'static str) -> &'static str { word }",
        "fn f(n: u8, out: &mut Emitter<u8>) {}",
        "fn f(app: &App, n: &u8, out: &mut slipstream::Emitter<(u8, Vec<u8>)>) -> Result<()> { Ok(()) }",
        "fn f(Message { key, value, .. }: Message<u8, u8>) {}",
        "fn f(app: (&App), n: u8, out: (&mut Emitter<u8>)) -> () {}",
        "fn f(app: &App, mut n: u8) -> Result<Option<[u8; A & B]>> { g(n) }",
    ] {
        assert_eq!(of_handler(item), [""; 0], "{item}");
    }
}

#[test]
fn an_unknown_argument_names_the_nearest() {
    assert_eq!(of_attribute("a, sinks = [s]"), ["sinks: unknown argument `sinks`: did you mean `sink`?"]);
    assert_eq!(of_attribute("a, Pipe = f"), ["Pipe: unknown argument `Pipe`: did you mean `pipe`?"]);
    assert_eq!(of_attribute("a, group = \"g\""), ["group: unknown argument `group`"]);
}

#[test]
fn a_source_has_no_name() {
    let expected = ["source: unknown argument `source`: sources have no name, they come first"];
    assert_eq!(of_attribute("source = app.weather, sink = s"), expected);
}

#[test]
fn an_argument_is_given_once() {
    let expected = ["sink: `sink` is given twice: write one list, `sink = [a, b]`"];
    assert_eq!(of_attribute("a, sink = s, sink = [t]"), expected);
    assert_eq!(of_attribute("a, crate = b, crate = c"), ["crate: `crate` is given twice"]);
}

#[test]
fn a_source_is_needed() {
    assert_eq!(of_attribute(""), [": `#[handle]` needs a source to read"]);
    assert_eq!(of_attribute("sink = s"), [": `#[handle]` needs a source to read"]);
}

#[test]
fn what_is_not_in_the_grammar_is_said_once_and_ends_the_reading() {
    assert_eq!(of_attribute("app.weather sink = s"), ["sink: expected `,`"]);
    assert_eq!(of_attribute("app.weather, sink = [s t], snik = 1"), ["t: expected `,`"]);
    assert_eq!(of_attribute("a, crate = \"streams\""), ["\"streams\": expected identifier"]);
}

#[test]
fn each_error_of_the_attribute_ends_in_the_usage() {
    for attribute in ["", "a b", "a, sinks = s"] {
        let mut mistakes = Mistakes::default();
        Arguments::parse(attribute.parse().unwrap(), &mut mistakes);
        let text = mistakes.into_error().unwrap().to_string();
        let usage =
            "\nusage: `#[handle(source, …, pipe = [f, g], sink = [s, t], on_error = policy, crate = path)]`";
        assert!(text.ends_with(usage), "{text}");
    }
}

#[test]
fn all_mistakes_of_one_attribute_are_told() {
    let item = "const fn f<T>(app: &mut App, n: T) -> &u8 { &app.n }";
    assert_eq!(mistakes("a, snik = s", item).len(), 5, "{:#?}", mistakes("a, snik = s", item));
}

#[test]
fn only_a_function_can_be_a_handler() {
    for (item, token, kind) in [
        ("pub struct S;", "struct", "a struct"),
        ("#[derive(Debug)] enum E {}", "enum", "an enum"),
        ("impl A for B {}", "impl", "an `impl` block: put it on free functions"),
        ("unsafe trait T {}", "unsafe", "a trait: put it on free functions"),
        ("mod m {}", "mod", "a module: put it on the functions in it"),
        ("const C: u8 = 1;", "const", "a constant"),
        ("static S: fn() = f;", "static", "a static"),
        ("type T = fn();", "type", "a type alias"),
        ("macro_rules! m {}", "macro_rules", "something else"),
        ("extern \"C\" {}", "extern", "something else"),
    ] {
        let expected = format!("{token}: `#[handle]` makes a function a handler; this is {kind}");
        assert_eq!(of_handler(item), [expected]);
    }
}

#[test]
fn a_method_is_no_handler() {
    let expected =
        "a handler is a free function, not a method: take the context as its first parameter, by `&`";
    assert_eq!(of_handler("fn f(&self, n: u8) {}"), [format!("&self: {expected}")]);
    assert_eq!(of_handler("fn f(self: Arc<Self>) {}"), [format!("self: Arc<Self>: {expected}")]);
}

#[test]
fn a_declaration_is_no_handler() {
    assert_eq!(of_handler("fn f(n: u8);"), ["f: a handler has a body"]);
}

#[test]
fn qualifiers_that_a_flow_has_no_use_for_are_refused() {
    let expected = ["const: a handler cannot be a `const fn`: a flow calls it while it runs"];
    assert_eq!(of_handler("const fn f(n: u8) {}"), expected);
    let expected = ["unsafe: a handler cannot be `unsafe`: a flow calls it with whatever its sources give"];
    assert_eq!(of_handler("unsafe fn f(n: u8) {}"), expected);
    let expected = ["extern \"C\": a handler cannot be `extern`: only a flow calls it"];
    assert_eq!(of_handler("extern \"C\" fn f(n: u8) {}"), expected);
    let [abi, variadic] = &of_handler("extern \"C\" fn f(n: u8, ...) {}")[..] else { panic!() };
    assert!(
        abi.starts_with("extern") && variadic.starts_with("...: a handler cannot be variadic"),
        "{variadic}"
    );
}

#[test]
fn a_handler_is_not_generic() {
    let expected = "a handler cannot be generic: its sources give one type, name it";
    assert_eq!(of_handler("fn f<T: Debug>(n: T) {}"), [format!("T: Debug: {expected}")]);
    assert_eq!(of_handler("fn f<const N: usize>(n: [u8; N]) {}"), [format!("const N: usize: {expected}")]);
    assert_eq!(of_handler("fn f(n: impl Debug) {}"), [format!("impl Debug: {expected}")]);
    assert_eq!(of_handler("fn f(app: &App, n: &Vec<impl Debug>) {}"), [format!("impl Debug: {expected}")]);
}

#[test]
fn a_handler_has_no_lifetimes() {
    let expected = "'a: a handler needs no lifetime parameters: what it takes by reference is lent for the call, so \
                    write `&T`";
    assert_eq!(of_handler("fn f<'a>(app: &'a App, n: &'a u8) {}"), [expected]);
    let expected = ["&'static App: the context is lent for the call: write `&Context`"];
    assert_eq!(of_handler("fn f(app: &'static App, n: u8) {}"), expected);
}

#[test]
fn a_context_is_of_one_type_that_owns_what_it_has() {
    let expected = "impl Clock: a handler cannot be generic: a flow has one context, name its type";
    assert_eq!(of_handler("fn f(app: &impl Clock, n: u8) {}"), [expected]);
    let expected = "'_: a context borrows from nothing, since its flow may outlive that: let it own this";
    assert_eq!(of_handler("fn f(app: &App<'_>) {}"), [expected]);
}

#[test]
fn an_item_is_owned() {
    let expected = "a handler owns its item, or borrows the whole of it: take `T` or `&T`";
    assert_eq!(of_handler("fn f(n: Option<&u8>) {}"), [format!("&u8: {expected}")]);
    assert_eq!(of_handler("fn f(n: Cow<'_, str>) {}"), [format!("'_: {expected}")]);
    let expected = "no source gives this by value: take `&String`, `&Vec<T>` or the like";
    assert_eq!(of_handler("fn f(word: &str) {}"), [format!("str: {expected}")]);
    assert_eq!(of_handler("fn f(app: &App, list: &[u8]) {}"), [format!("[u8]: {expected}")]);
}

#[test]
fn an_output_is_owned_and_has_a_named_type() {
    let expected = "a handler's output borrows from nothing, since it outlives the call: return it by value";
    assert_eq!(of_handler("fn f(app: &App, n: u8) -> &Topic { &app.t }"), [format!("&Topic: {expected}")]);
    assert_eq!(of_handler("fn f(n: u8) -> Result<Option<&str>> { g() }"), [format!("&str: {expected}")]);
    assert_eq!(of_handler("fn f(n: u8, out: &mut Emitter<&str>) {}"), [format!("&str: {expected}")]);
    let expected = "a handler's output has a type with a name: write it out instead of `impl`";
    assert_eq!(of_handler("fn f(n: u8) -> impl Debug { n }"), [format!("impl Debug: {expected}")]);
}

#[test]
fn there_are_at_most_three_parameters() {
    let expected = "too many parameters: a handler takes `context: &Context`, the item, and `out: &mut Emitter<T>`, in \
                    this order";
    assert_eq!(of_handler("fn f(app: &App, n: u8, m: u8, o: u8) {}"), [format!("m: u8: {expected}")]);
    let item = "fn f(app: &App, n: u8, m: u8, out: &mut Emitter<u8>) {}";
    assert_eq!(of_handler(item), [format!("m: u8: {expected}")]);
}

#[test]
fn the_context_is_shared() {
    let expected = "&mut App: handlers share their context: take it by `&`, and keep what changes in a `Cache` or a \
                    `Mutex`";
    assert_eq!(of_handler("fn f(app: &mut App) {}"), [expected]);
    assert_eq!(of_handler("fn f(app: &mut App, n: u8) {}"), [expected]);
    assert_eq!(of_handler("fn f(app: &mut App, n: u8, m: u8, out: &mut Emitter<u8>) {}").len(), 2);
}

#[test]
fn a_lone_context_is_taken_by_reference() {
    let expected =
        "App: the attribute uses this parameter, so it is the context: take it by reference, `&Context`";
    assert_eq!(of_handler("fn f(app: App) {}"), [expected]);
    // A function as a source may have the name of the item.
    assert_eq!(mistakes("numbers", "fn f(numbers: Vec<u8>) {}"), [""; 0]);
}

#[test]
fn the_first_of_two_parameters_is_the_context() {
    let expected = "of two parameters the first is the context, by reference, and the second the item";
    assert_eq!(of_handler("fn f(app: App, n: u8) {}"), [format!("App: {expected}")]);
    assert_eq!(of_handler("fn f(n: u8, app: &App) {}"), [format!("u8: {expected}")]);
    let expected = ["App { t, .. }: give the context a name: the attribute's expressions use it by that"];
    assert_eq!(of_handler("fn f(App { t, .. }: &App, n: u8) {}"), expected);
}

#[test]
fn the_emitter_is_last_by_reference_and_says_what_it_emits() {
    let expected = ["&mut Emitter<u8>: the emitter is the last parameter"];
    assert_eq!(of_handler("fn f(out: &mut Emitter<u8>, n: u8) {}"), expected);
    assert_eq!(of_handler("fn f(app: &App, out: &mut Emitter<u8>, n: u8) {}"), expected);
    let expected = "an emitter is taken by `&mut`: write `out: &mut Emitter<T>`";
    assert_eq!(of_handler("fn f(n: u8, out: Emitter<u8>) {}"), [format!("Emitter<u8>: {expected}")]);
    assert_eq!(of_handler("fn f(n: u8, out: &Emitter<u8>) {}"), [format!("&Emitter<u8>: {expected}")]);
    let expected = ["&mut Emitter: say what is emitted: `out: &mut Emitter<T>`"];
    assert_eq!(of_handler("fn f(n: u8, out: &mut Emitter) {}"), expected);
}

#[test]
fn only_an_emitter_is_taken_by_mut() {
    let expected = "only an `Emitter<T>` is taken by `&mut`: take the item by value, as `mut item: T`";
    assert_eq!(of_handler("fn f(n: &mut u8) {}"), [format!("&mut u8: {expected}")]);
    assert_eq!(
        of_handler("fn f(app: &App, n: u8, out: &mut Vec<u8>) {}"),
        [format!("&mut Vec<u8>: {expected}")]
    );
}

#[test]
fn what_returns_nothing_has_nothing_for_a_sink() {
    let text = "a handler that returns nothing has no output for a sink: return one, or leave out the sink";
    for item in [
        "fn f(n: u8) {}",
        "async fn f(n: u8) -> () {}",
        "fn f(n: u8) -> Result<()> { Ok(()) }",
        "fn f(n: u8) -> std::result::Result<(), Error> { Ok(()) }",
    ] {
        assert_eq!(mistakes("a, sink = app.sky", item), [format!("app.sky: {text}")]);
        assert_eq!(mistakes("a, sink = [s, t]", item), [format!("s, t: {text}")]);
    }
    assert_eq!(mistakes("a, sink = s", "fn f(n: u8, out: &mut Emitter<u8>) {}"), [""; 0]);
    assert_eq!(mistakes("a, sink = s", "fn f(n: u8) -> Result<((), u8)> { Ok(((), n)) }"), [""; 0]);
    assert_eq!(
        mistakes("a, sink = s", "fn f(n: u8, out: &mut Emitter<u8>) -> Result<()> { Ok(()) }"),
        [""; 0]
    );
    // An emitter that is wrong is one mistake, not two.
    for item in [
        "fn f(out: &mut Emitter<u8>, n: u8) {}",
        "fn f(n: u8, out: Emitter<u8>) {}",
        "fn f(n: u8, out: &mut Vec<u8>) {}",
    ] {
        assert_eq!(mistakes("a, sink = s", item).len(), 1, "{item}");
    }
}

#[test]
fn a_closure_does_not_borrow_the_context() {
    let item = "fn f(app: &App, n: u8) -> u8 { n }";
    let expected = "app: `app` is lent only while the flow starts, and this closure is kept: clone what it needs, as in \
                    `{ let log = app.log.clone(); move |output| log.add(output) }`";
    assert_eq!(mistakes("app.numbers, sink = |n| app.log.add(n)", item), [expected]);
    assert_eq!(mistakes("app.numbers, pipe = |ns| ns.filter(|n| ready(n < app.limit))", item), [expected]);
    let right = "app.numbers, sink = { let log = app.log.clone(); move |n| log.add(n) }";
    assert_eq!(mistakes(right, item), [""; 0]);
    assert_eq!(mistakes("numbers, sink = |n| app.log.add(n)", "fn f(n: u8) -> u8 { n }"), [""; 0]);
}

#[test]
fn a_function_is_annotated_once() {
    let expected =
        ["#[slipstream::handle(b)]: a function has one `#[handle]`: give it all sources, `#[handle(a, b)]`"];
    assert_eq!(of_handler("#[slipstream::handle(b)] fn f(n: u8) {}"), expected);
}

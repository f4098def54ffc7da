use super::{
    reader::{Reader, Unit},
    *,
};
use std::path::Path;

fn file(text: &str) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&file, text).unwrap();
    file
}

async fn read(path: &Path, start: Positions) -> Vec<(Position, Line)> {
    replay(path).open_at(start).collect().await
}

fn texts(lines: &[(Position, Line)]) -> Vec<&str> {
    lines.iter().map(|(_, line)| line.as_deref().unwrap()).collect()
}

fn after(position: Position) -> Positions {
    let mut positions = Positions::default();
    positions.set(position.partition(), position.next(), position.check());
    positions
}

#[tokio::test]
async fn it_gives_each_line_with_its_number() {
    let file = file("one\ntwo\r\n\nlast");
    let lines = read(&file, Positions::default()).await;
    assert_eq!(texts(&lines), ["one", "two", "", "last"]);
    assert_eq!(lines.iter().map(|(at, _)| at.offset()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(read(&self::file(""), Positions::default()).await.is_empty());
}

#[tokio::test]
async fn it_goes_on_after_each_position_of_a_file_that_has_grown() {
    let text: String = (0..3000).map(|n| format!("line {n}\n")).collect();
    let file = file(&text);
    let lines = read(&file, Positions::default()).await;
    assert_eq!(lines.len(), 3000);
    std::fs::write(&file, text + "more\n").unwrap();
    for at in [0, 1, 1022, 1023, 1024, 2998, 2999] {
        let rest = read(&file, after(lines[at].0)).await;
        assert_eq!(rest.len(), 3000 - at, "after line {at}");
        assert_eq!(rest.first().map(|(position, _)| position.offset()), Some(at as i64 + 1));
        assert_eq!(texts(&rest).last(), Some(&"more"));
    }
}

#[tokio::test]
async fn a_last_line_that_gets_its_end_later_is_the_same_line() {
    let file = file("one\ntwo");
    let lines = read(&file, Positions::default()).await;
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
}

#[tokio::test]
async fn a_last_line_that_gets_its_end_of_two_bytes_later_is_the_same_line() {
    for end in ["one\r\ntwo", "one\r\ntwo\r"] {
        let file = file(end);
        let lines = read(&file, Positions::default()).await;
        assert_eq!(texts(&lines), ["one", "two"]);
        std::fs::write(&file, "one\r\ntwo\r\nthree\r\n").unwrap();
        assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
    }
}

#[test]
fn a_line_that_is_being_written_is_the_last() {
    let file = file("one\ntw");
    let mut reader = Reader::new(&file, &Positions::default(), Unit::Line);
    let batch = reader.batch();
    assert_eq!(texts(&batch), ["one", "tw"]);
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    assert!(reader.batch().is_empty(), "it would begin with the rest of a line");
}

#[tokio::test]
async fn what_is_not_a_line_moves_no_position() {
    let file = file("one\ntwo\nthree\n");
    let start = after(read(&file, Positions::default()).await[1].0);
    for text in [None, Some("one\n"), Some("one\nTWO\nthree\n")] {
        match text {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        for start in [&start, &Positions::default()] {
            let first = read(&file, start.clone()).await.remove(0);
            if first.1.is_err() {
                let moved = after(first.0);
                assert_eq!(moved.next(0).unwrap(), start.next(0).unwrap_or(0), "{text:?}");
                assert_eq!(moved.check(0).unwrap(), start.check(0).unwrap_or(0), "{text:?}");
            }
        }
    }
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    assert_eq!(texts(&read(&file, start).await), ["three"]);
}

#[tokio::test]
async fn a_line_that_is_no_text_is_an_item_like_another() {
    let file = file("");
    std::fs::write(&file, b"one\n\xff\nthree\n").unwrap();
    let lines = read(&file, Positions::default()).await;
    assert!(lines[1].1.as_ref().unwrap_err().to_string().contains("line 2"), "{:?}", lines[1]);
    assert_eq!(lines[2].1.as_deref().unwrap(), "three");
    assert_eq!(texts(&read(&file, after(lines[1].0)).await), ["three"]);
}

#[tokio::test]
async fn another_or_a_shorter_file_is_an_error_that_names_both() {
    let file = file("one\ntwo\nthree\n");
    let start = after(read(&file, Positions::default()).await[1].0);
    std::fs::write(&file, "one\n").unwrap();
    let shorter = read(&file, start.clone()).await;
    let error = shorter[0].1.as_ref().unwrap_err();
    assert!(matches!(**error, ReplayError::Shorter { found: 1, handled: 2, .. }), "{error}");
    std::fs::write(&file, "one\nTWO\nthree\n").unwrap();
    let another = read(&file, start).await;
    let error = another[0].1.as_ref().unwrap_err();
    assert!(matches!(**error, ReplayError::Another { handled: 2, .. }), "{error}");
    assert_eq!((shorter.len(), another.len()), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_read_is_named_with_its_line() {
    let missing = read(Path::new("no/such/file"), Positions::default()).await;
    assert!(missing[0].1.as_ref().unwrap_err().to_string().contains("no/such/file"));
    let file = file("1\n2\nthree\n4\n");
    let values: Vec<_> = replay(&file).json::<u32>().open().collect().await;
    assert_eq!(values[1].as_ref().unwrap(), &2);
    let error = values[2].as_ref().unwrap_err();
    assert!(matches!(**error, ReplayError::Json { line: 3, .. }), "{error}");
}

#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
struct Sale {
    name: String,
    amount: Option<f64>,
}

async fn sales(path: &Path, start: Positions) -> Vec<(Position, Line<Sale>)> {
    replay(path).csv::<Sale>().open_at(start).collect().await
}

fn sold(sales: &[(Position, Line<Sale>)]) -> Vec<(i64, &str, Option<f64>)> {
    let sold = sales.iter().map(|(at, sale)| (at.offset(), sale.as_ref().unwrap()));
    sold.map(|(at, sale)| (at, &*sale.name, sale.amount)).collect()
}

const SALES: &str =
    "\u{feff}amount,name\r\n1.5,apples\r\n\r\n,\"a \"\"pear\"\",\r\nor two\"\r\n2,5\" nails\r\n";

#[tokio::test]
async fn a_record_of_csv_has_the_position_of_its_last_line() {
    let file = file(SALES);
    let read = sales(&file, Positions::default()).await;
    let expected =
        [(1, "apples", Some(1.5)), (4, "a \"pear\",\r\nor two", None), (5, "5\" nails", Some(2.0))];
    assert_eq!(sold(&read), expected);
    for at in 0..3 {
        assert_eq!(sold(&sales(&file, after(read[at].0)).await), expected[at + 1..], "after record {at}");
    }
    // Sought at a line in its middle, a record comes whole.
    assert_eq!(sold(&sales(&file, Positions::from_iter([(0, 4)])).await), expected[1..]);
}

#[tokio::test]
async fn what_is_no_record_is_an_error_that_names_the_line() {
    let file = file("name,amount\na,1\nb\nc,one\nd,\"1");
    let read = sales(&file, Positions::default()).await;
    let errors: Vec<_> = read[1..].iter().map(|(_, sale)| sale.as_ref().unwrap_err()).collect();
    assert!(matches!(*errors[0].as_ref(), ReplayError::Csv { line: 3, .. }), "{:?}", errors[0]);
    let cause = std::error::Error::source(errors[0]).unwrap().to_string();
    assert!(cause.contains("it has 1 fields, and the header names 2"), "{cause}");
    assert!(matches!(*errors[1].as_ref(), ReplayError::Csv { line: 4, .. }), "{:?}", errors[1]);
    assert!(matches!(*errors[2].as_ref(), ReplayError::Unclosed { line: 5, .. }), "{:?}", errors[2]);
    // Which moves no position, so that it is read when it is whole.
    std::fs::write(&file, "name,amount\na,1\nb\nc,one\nd,\"1\"\ne,2\n").unwrap();
    assert_eq!(sold(&sales(&file, after(read[3].0)).await), [(4, "d", Some(1.0)), (5, "e", Some(2.0))]);
}

#[tokio::test]
async fn a_file_of_csv_that_was_changed_in_its_header_or_a_field_is_another() {
    let file = file("name,amount\na,1\nb,2\n");
    let start = after(sales(&file, Positions::default()).await[1].0);
    for changed in ["amount,name\na,1\nb,2\n", "name,amount\na,1\nb,3\n"] {
        std::fs::write(&file, changed).unwrap();
        let read = sales(&file, start.clone()).await;
        let error = read[0].1.as_ref().unwrap_err();
        assert!(matches!(**error, ReplayError::Another { handled: 3, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_place_that_was_sought_needs_no_check_and_has_to_be_in_the_file() {
    let file = file("one\ntwo\nthree\n");
    let rest = read(&file, Positions::from_iter([(0, 1)])).await;
    assert_eq!(texts(&rest), ["two", "three"]);
    assert!(read(&file, Positions::from_iter([(0, 3)])).await.is_empty());
    let past = read(&file, Positions::from_iter([(0, 7)])).await;
    let error = past[0].1.as_ref().unwrap_err();
    assert!(matches!(**error, ReplayError::Sought { found: 3, sought: 7, .. }), "{error}");
    // The position is that of the end, so that what is added is read.
    std::fs::write(&file, "one\ntwo\nthree\nfour\n").unwrap();
    assert_eq!(texts(&read(&file, after(past[0].0)).await), ["four"]);
}

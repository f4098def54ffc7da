use super::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Weather {
    time: i64,
    sky: Option<String>,
}

fn payload<T, C: Codec<T>>(codec: &C, value: &T) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    write(codec, value, &mut bytes).unwrap().then_some(bytes)
}

fn returns<T: Debug + PartialEq, C: Codec<T>>(codec: &C, value: T) {
    let payload = payload(codec, &value);
    assert_eq!(read(codec, payload.as_deref()).unwrap(), value, "{payload:?}");
}

/// Fails the test when it is asked for anything.
struct NeverAsked;

impl Codec<u32> for NeverAsked {
    fn encode(&self, _: &u32, _: &mut Vec<u8>) -> Result<(), CodecError> {
        panic!("the encoder was called");
    }
    fn decode(&self, _: &[u8]) -> Result<u32, CodecError> {
        panic!("the decoder was called");
    }
}

#[test]
fn each_codec_gives_back_what_it_wrote() {
    for sky in [None, Some("⛅".to_owned())] {
        let weather = Weather { time: -1, sky };
        returns(&Json, weather.clone());
        returns(&MessagePack, weather.clone());
        returns(&Json, Some(weather.clone()));
        returns(&MessagePack, Some(weather));
    }
    for text in ["", "a", "ключ", "\0"] {
        returns(&Text, text.to_owned());
        returns::<Arc<str>, _>(&KeyCodec, text.into());
        returns::<Option<Box<str>>, _>(&Text, Some(text.into()));
        returns(&Raw, text.as_bytes().to_vec());
        returns::<Option<Arc<[u8]>>, _>(&KeyCodec, Some(text.as_bytes().into()));
    }
    returns(&KeyCodec, ());
}

#[test]
fn text_bytes_and_keys_are_on_the_wire_as_they_are() {
    for text in ["", "ключ"] {
        let bytes = Some(text.as_bytes().to_vec());
        assert_eq!(payload(&Text, &text.to_owned()), bytes);
        assert_eq!(payload(&KeyCodec, &text.to_owned()), bytes);
        assert_eq!(payload(&KeyCodec, &text.as_bytes().to_vec()), bytes);
        assert_eq!(payload(&Raw, &Some(text.as_bytes().to_vec())), bytes);
    }
}

#[test]
fn an_empty_key_is_a_key_and_a_unit_is_none() {
    assert_eq!(payload(&KeyCodec, &String::new()), Some(Vec::new()));
    assert_eq!(payload(&KeyCodec, &Some(Vec::<u8>::new())), Some(Vec::new()));
    assert_eq!(payload(&KeyCodec, &()), None);
    assert_eq!(payload(&KeyCodec, &None::<String>), None);
    assert_eq!(read::<Option<String>, _>(&KeyCodec, Some(b"")).unwrap(), Some(String::new()));
    assert_eq!(read::<Option<String>, _>(&KeyCodec, None).unwrap(), None);
    // A key that nobody asked for is left out.
    read::<(), _>(&KeyCodec, Some(b"a")).unwrap();
}

#[test]
fn a_null_never_reaches_the_codec() {
    assert!(matches!(read(&NeverAsked, None), Err(CodecError::Null { type_name: "u32" })));
    assert_eq!(read(&Nullable(NeverAsked), None).unwrap(), None);
    assert_eq!(payload(&Nullable(NeverAsked), &None), None);
}

#[test]
fn an_option_is_null_on_the_wire_and_not_the_text_null() {
    assert_eq!(payload(&Json, &None::<Weather>), None);
    assert_eq!(payload(&MessagePack, &None::<Weather>), None);
    assert_eq!(payload(&Text, &None::<String>), None);
    assert_eq!(payload(&Raw, &None::<Vec<u8>>), None);
    assert_eq!(read::<Option<Weather>, _>(&Json, None).unwrap(), None);
    assert_eq!(read::<Option<Weather>, _>(&MessagePack, None).unwrap(), None);
    assert_eq!(read::<Option<Weather>, _>(&Json, Some(b"null")).unwrap(), None);
}

#[test]
fn what_an_option_holds_is_written_as_without_it() {
    assert_eq!(payload(&Json, &Some(7)), payload(&Json, &7));
    assert_eq!(payload(&MessagePack, &Some("a".to_owned())), payload(&MessagePack, &"a".to_owned()));
}

#[test]
fn only_an_option_has_a_value_for_null() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nothing;
    #[derive(Debug, Serialize, Deserialize)]
    struct Optional(Option<u8>);

    assert!(read::<serde_json::Value, _>(&Json, None).is_err());
    assert!(read::<(), _>(&Json, None).is_err());
    assert!(read::<Nothing, _>(&MessagePack, None).is_err());
    assert!(read::<Optional, _>(&Json, None).is_err());
    assert!(read::<Vec<u8>, _>(&Json, None).is_err());
    assert!(read::<String, _>(&Text, None).is_err());
    assert!(read::<String, _>(&KeyCodec, None).is_err());
    // They have bytes instead.
    assert_eq!(payload(&Json, &serde_json::Value::Null).unwrap(), b"null");
    assert_eq!(payload(&Json, &()).unwrap(), b"null");
    assert_eq!(payload(&Json, &Optional(None)).unwrap(), b"null");
    assert!(payload(&MessagePack, &Nothing).is_some());
}

#[test]
fn an_error_names_the_type_the_format_and_what_does_not_fit() {
    let told = |error: CodecError| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        [error.to_string(), cause.unwrap_or_default()]
    };
    let place = module_path!();
    assert_eq!(
        told(read::<Weather, _>(&Json, Some(br#"{"sky":null}"#)).unwrap_err()),
        [
            format!("these bytes are not JSON of type `{place}::Weather`"),
            "missing field `time` at line 1 column 12".to_owned()
        ]
    );
    assert_eq!(
        told(read::<String, _>(&Text, Some(b"a\xff")).unwrap_err()),
        [
            "these bytes are not text of type `alloc::string::String`",
            "invalid utf-8 sequence of 1 bytes from index 1"
        ]
    );
    assert_eq!(
        told(read::<u32, _>(&MessagePack, None).unwrap_err()),
        ["a null is not of type `u32`: where nulls are meant to come, take `Option<u32>`", ""]
    );
    #[derive(Serialize, Deserialize)]
    struct Pairs(BTreeMap<(i32, i32), i32>);
    let pairs = Pairs(BTreeMap::from([((1, 2), 3)]));
    let [error, cause] = told(write(&Json, &pairs, &mut Vec::new()).unwrap_err());
    assert!(error.starts_with("this value of type `") && error.ends_with("Pairs` cannot be written as JSON"));
    assert_eq!(cause, "key must be a string");
}

#[test]
fn a_payload_that_is_cut_short_or_goes_on_is_an_error() {
    let weather = Weather { time: 1, sky: Some("clear".into()) };
    fn check<C: Codec<Weather> + Debug>(codec: &C, weather: &Weather) {
        let mut bytes = payload(codec, weather).unwrap();
        for end in 0..bytes.len() {
            assert!(codec.decode(&bytes[..end]).is_err(), "{codec:?} cut at {end}");
        }
        bytes.push(b'1');
        assert!(codec.decode(&bytes).is_err(), "{codec:?}");
    }
    check(&Json, &weather);
    check(&MessagePack, &weather);
}

#[test]
fn a_struct_in_message_pack_may_gain_and_lose_fields() {
    #[derive(Serialize, Deserialize)]
    struct Older {
        place: String,
        time: i64,
    }
    let older = payload(&MessagePack, &Older { place: "JFK".into(), time: 7 });
    let newer: Weather = read(&MessagePack, older.as_deref()).unwrap();
    assert_eq!(newer, Weather { time: 7, sky: None });
}

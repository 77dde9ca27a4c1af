//! Every vector decodes, prints as its text, and encodes to its bytes. Cut or damaged, it is an
//! error or another message, and never causes a panic. `BLESS=1` writes the texts.

use crate::common::{Any, Vector, exercise, patch_length, vectors};
use bellrock_openflow::Strictness;

/// Number of bytes of a vector to damage, one after the other: all, or only the first ones of a
/// long vector, which repeats similar items. Each damage costs a decoding of the whole message.
fn damaged(vector: &Vector) -> usize {
    const LONG_BYTES: usize = 2048;
    const OF_LONG_BYTES: usize = 256;
    let all = vector.bytes.len();
    if all > LONG_BYTES { OF_LONG_BYTES } else { all }
}

/// Distance between cuts of a long vector after its damaged bytes. It is a prime, so that the cuts
/// hit each offset in an item.
const FAR_CUTS_BYTES: usize = 509;

fn good() -> Vec<Vector> {
    vectors("v10").into_iter().chain(vectors("v13")).collect()
}

fn decode(vector: &Vector) -> Any<'_> {
    Any::decode(vector.direction, &vector.bytes)
        .unwrap_or_else(|error| panic!("{}: {error}", vector.name()))
}

#[test]
fn each_prints_as_its_text_says() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for vector in good() {
        let text = format!("{}\n", decode(&vector));
        let path = vector.path.with_extension("txt");
        if bless {
            std::fs::write(&path, &text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            wrong.push(format!("{} is missing or differs from:\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_text_belongs_to_a_vector() {
    for vector in good() {
        for entry in vector.path.parent().unwrap().read_dir().unwrap() {
            let path = entry.unwrap().path();
            assert!(path.with_extension("hex").exists(), "{} has no vector", path.display());
        }
    }
}

#[test]
fn each_encodes_to_the_same_bytes() {
    for vector in good() {
        let message = decode(&vector);
        assert_eq!(message.encode(), vector.bytes, "{}: {message}", vector.name());
        assert!(exercise(&vector.bytes));
    }
}

#[test]
fn each_truncation_is_refused_or_another_message() {
    for vector in good() {
        let near = damaged(&vector);
        let far = (near..vector.bytes.len()).step_by(FAR_CUTS_BYTES);
        for length in (0..near).chain(far) {
            let mut cut = vector.bytes[..length].to_vec();
            assert!(
                Any::decode(vector.direction, &cut).is_err(),
                "{} cut at {length}",
                vector.name()
            );
            patch_length(&mut cut);
            exercise(&cut);
        }
    }
}

#[test]
fn each_flipped_bit_is_refused_or_another_message() {
    for vector in good() {
        let mut bytes = vector.bytes.clone();
        for bit in 0..damaged(&vector) * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            // The header's length has to be that of the bytes; otherwise the message is refused.
            assert!(!exercise(&bytes) || !(16..32).contains(&bit), "{} bit {bit}", vector.name());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Reads a vector liberally. Its text is the message, and the error of a strict reading.
fn odd(vector: &Vector) -> (Any<'_>, String) {
    let strict = Any::decode(vector.direction, &vector.bytes).unwrap_err();
    let message = Any::decode_as(vector.direction, &vector.bytes, Strictness::Liberal)
        .unwrap_or_else(|error| panic!("{}: {error}", vector.name()));
    let text = format!("{message}\n  remark: {strict} ({})\n", strict.answer);
    (message, text)
}

fn odd_vectors() -> impl Iterator<Item = Vector> {
    vectors("odd/v10").into_iter().chain(vectors("odd/v13"))
}

#[test]
fn each_odd_message_is_refused_by_a_strict_reading_and_kept_by_a_liberal_one() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for vector in odd_vectors() {
        let (message, text) = odd(&vector);
        let path = vector.path.with_extension("txt");
        if bless {
            std::fs::write(&path, &text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            wrong.push(format!("{} is missing or differs from:\n{text}", path.display()));
        }
        if !message.has_data_beside_a_buffer() {
            assert_eq!(message.encode(), vector.bytes, "{}", vector.name());
        }
        for length in 0..vector.bytes.len() {
            let mut cut = vector.bytes[..length].to_vec();
            patch_length(&mut cut);
            exercise(&cut);
        }
        let mut bytes = vector.bytes.clone();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            exercise(&bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bad_messages_are_refused() {
    for vector in vectors("bad/v10").into_iter().chain(vectors("bad/v13")) {
        let result = Any::decode(vector.direction, &vector.bytes);
        assert!(result.is_err(), "{}: {}", vector.name(), result.unwrap());
    }
}

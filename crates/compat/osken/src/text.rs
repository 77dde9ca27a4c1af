//! Addresses as os-ken writes them. Other spellings are left to its own functions.

/// Bytes of the text of an Ethernet address.
const MAC_TEXT_LEN: usize = 17;

/// Writes an Ethernet address: `02:00:00:00:00:0a`.
pub(super) fn mac_to_text(bytes: &[u8; 6]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(MAC_TEXT_LEN);
    for (number, byte) in bytes.iter().enumerate() {
        if number > 0 {
            text.push(':');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Reads an Ethernet address in the form that [`mac_to_text`] writes.
pub(super) fn mac_from_text(text: &str) -> Option<[u8; 6]> {
    let text: &[u8; MAC_TEXT_LEN] = text.as_bytes().try_into().ok()?;
    let mut address = [0; 6];
    for (number, byte) in address.iter_mut().enumerate() {
        let at = number * 3;
        if at > 0 && text[at - 1] != b':' {
            return None;
        }
        *byte = digit(text[at])? << 4 | digit(text[at + 1])?;
    }
    Some(address)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

//! Events of apps' own.

/// Maximum length of the name of an app's event, in bytes.
pub const MAX_APP_EVENT_NAME_BYTES: usize = 64;

/// Maximum length of the text of an app's event, in bytes.
pub const MAX_APP_EVENT_TEXT_BYTES: usize = 1024;

/// An event of an app's own, for [`crate::Network::publish`]. Longer names and texts are cut, and
/// control characters become spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppEvent {
    name: Box<str>,
    text: Box<str>,
    is_alarming: bool,
}

impl AppEvent {
    /// An event with this name, for programs (`scan_seen`), and this text, for people.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let (name, text) =
            (line_of(name, MAX_APP_EVENT_NAME_BYTES), line_of(text, MAX_APP_EVENT_TEXT_BYTES));
        AppEvent { name, text, is_alarming: false }
    }

    /// Makes it an alarm: an operator should look at it.
    #[must_use]
    pub fn alarming(self) -> Self {
        AppEvent { is_alarming: true, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is an alarm.
    #[must_use]
    pub fn is_alarming(&self) -> bool {
        self.is_alarming
    }
}

/// The start of a text, at most `max` bytes, in one line.
fn line_of(text: &str, max: usize) -> Box<str> {
    let mut line = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if line.len() + c.len_utf8() > max {
            break;
        }
        line.push(c);
    }
    line.into()
}

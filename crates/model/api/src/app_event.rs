//! Events of apps' own.

/// Maximum length of the name of an app's event, in bytes.
pub const MAX_APP_EVENT_NAME_BYTES: usize = 64;

/// Maximum length of the text of an app's event, in bytes.
pub const MAX_APP_EVENT_TEXT_BYTES: usize = 1024;

/// Maximum length of what an app's alarm is about, in bytes.
pub const MAX_APP_ALARM_SUBJECT_BYTES: usize = 128;

/// An event of an app's own, for [`crate::Network::publish`]. Longer names, texts and subjects are
/// cut, and control characters become spaces.
///
/// ```
/// use bellrock_api::AppEvent;
///
/// let full = AppEvent::new("link_full", "s1:3 is full").alarming_until_ended("s1:3");
/// let free = AppEvent::new("link_free", "s1:3 has space").ending("link_full", "s1:3");
/// assert!(full.is_alarming() && !free.is_alarming());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppEvent {
    name: Box<str>,
    text: Box<str>,
    alarm: AppAlarm,
}

/// What an app's event has to do with alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AppAlarm {
    /// Nothing.
    None,
    /// It is an alarm without an end.
    Once,
    /// It is an alarm about this subject that lasts.
    Lasting(Box<str>),
    /// It ends the alarm with this name about this subject.
    Ends { name: Box<str>, subject: Box<str> },
}

impl AppEvent {
    /// An event with this name, for programs (`scan_seen`), and this text, for people.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        let (name, text) =
            (line_of(name, MAX_APP_EVENT_NAME_BYTES), line_of(text, MAX_APP_EVENT_TEXT_BYTES));
        AppEvent { name, text, alarm: AppAlarm::None }
    }

    /// Makes it an alarm: an operator should look at it.
    #[must_use]
    pub fn alarming(self) -> Self {
        AppEvent { alarm: AppAlarm::Once, ..self }
    }

    /// Makes it an alarm that lasts: operators see it among the open alarms until an event of the
    /// app ends it ([`Self::ending`]). The subject, such as a port, tells alarms of one name apart.
    #[must_use]
    pub fn alarming_until_ended(self, subject: &str) -> Self {
        let subject = line_of(subject, MAX_APP_ALARM_SUBJECT_BYTES);
        AppEvent { alarm: AppAlarm::Lasting(subject), ..self }
    }

    /// Ends the app's alarm with this name about this subject, if it is open.
    #[must_use]
    pub fn ending(self, alarm: &str, subject: &str) -> Self {
        let name = line_of(alarm, MAX_APP_EVENT_NAME_BYTES);
        let subject = line_of(subject, MAX_APP_ALARM_SUBJECT_BYTES);
        AppEvent { alarm: AppAlarm::Ends { name, subject }, ..self }
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
        matches!(self.alarm, AppAlarm::Once | AppAlarm::Lasting(_))
    }

    /// Whether it is an alarm that lasts until an event ends it.
    #[must_use]
    pub fn lasts(&self) -> bool {
        matches!(self.alarm, AppAlarm::Lasting(_))
    }

    /// Whether it ends this alarm of the same app.
    pub(crate) fn ends(&self, alarm: &AppEvent) -> bool {
        match (&self.alarm, &alarm.alarm) {
            (AppAlarm::Ends { name, subject }, AppAlarm::Lasting(about)) => {
                (name, subject) == (&alarm.name, about)
            }
            _ => false,
        }
    }

    /// Whether it is this lasting alarm again.
    pub(crate) fn repeats(&self, alarm: &AppEvent) -> bool {
        self.lasts() && (&self.name, &self.alarm) == (&alarm.name, &alarm.alarm)
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

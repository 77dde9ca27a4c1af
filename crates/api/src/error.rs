//! Errors: of commands to a switch, and of handlers.

use std::any::{Any, type_name};
use std::error::Error as StdError;
use std::fmt;
use std::hint::cold_path;

use bellrock_openflow::EncodeError;

use crate::Dpid;

/// What the methods of a [`Handler`](crate::Handler) return. Commands to a switch return an [`Error`].
pub type Result<T = (), E = HandlerError> = std::result::Result<T, E>;

/// Why a handler failed: any error that it met. `?` makes one of every type that is an error
/// (`std::error::Error + Send + Sync`); [`HandlerError::new`] makes one of a text.
///
/// The log shows its text, the texts of what caused it, and its type. `bellrock apps` shows the last one of
/// each app, and how many there were.
///
/// It is not a `std::error::Error` itself: `?` could not take all errors then.
///
/// ```
/// use bellrock_api::{Handler, HandlerError, PacketIn, Result, Switch, Verdict};
///
/// struct Names;
///
/// impl Handler for Names {
///     fn packet_in(&mut self, switch: &mut Switch, packet: &PacketIn) -> Result<Verdict> {
///         let headers = packet.headers()?;
///         let name = std::str::from_utf8(packet.data())?;
///         if headers.net.is_none() {
///             return Err(HandlerError::new("neither ARP nor IP"));
///         }
///         Ok(Verdict::Pass)
///     }
/// }
/// ```
pub struct HandlerError(Cause);

enum Cause {
    /// Without an allocation: it can come with every packet, as [`EncodeError::Full`] does.
    Command(Error),
    Other(Box<Other>),
}

struct Other {
    type_name: &'static str,
    error: Box<dyn StdError + Send + Sync>,
}

impl HandlerError {
    /// An error with this text, or of this boxed error.
    #[must_use]
    #[cold]
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        HandlerError(Cause::Other(Box::new(Other { type_name: "", error: error.into() })))
    }

    /// The command to a switch that was not accepted, if that is what failed.
    #[must_use]
    pub fn command(&self) -> Option<&Error> {
        match &self.0 {
            Cause::Command(error) => Some(error),
            Cause::Other(_) => None,
        }
    }

    /// The error that it was made of, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.0 {
            Cause::Command(error) => (error as &dyn Any).downcast_ref(),
            Cause::Other(other) => other.error.downcast_ref(),
        }
    }

    /// The type of the error that it was made of, with its path; empty for a text.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.0 {
            Cause::Command(_) => type_name::<Error>(),
            Cause::Other(other) => other.type_name,
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerError {
    // Which way it goes is known when this is compiled.
    #[inline]
    fn from(error: E) -> Self {
        if let Some(error) = (&error as &dyn Any).downcast_ref::<Error>() {
            return HandlerError(Cause::Command(*error));
        }
        if let Some(error) = (&error as &dyn Any).downcast_ref::<EncodeError>() {
            return HandlerError(Cause::Command(Error::Encode(*error)));
        }
        cold_path();
        HandlerError(Cause::Other(Box::new(Other {
            type_name: type_name::<E>(),
            error: Box::new(error),
        })))
    }
}

/// Errors of commands are equal as they are; others have the same type and the same text.
impl PartialEq for HandlerError {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Cause::Command(this), Cause::Command(that)) => this == that,
            (Cause::Other(this), Cause::Other(that)) => {
                this.type_name == that.type_name && this.error.to_string() == that.error.to_string()
            }
            _ => false,
        }
    }
}

impl PartialEq<Error> for HandlerError {
    fn eq(&self, other: &Error) -> bool {
        self.command() == Some(other)
    }
}

/// Its text, then those of what caused it.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error: &dyn StdError = match &self.0 {
            Cause::Command(error) => error,
            Cause::Other(other) => &*other.error,
        };
        write!(f, "{error}")?;
        // Bounded, in case an author's error is its own source.
        for _ in 0..MAX_SOURCES {
            let Some(source) = error.source() else { break };
            write!(f, ": {source}")?;
            error = source;
        }
        Ok(())
    }
}

/// Texts of causes that are printed behind the text of an error.
const MAX_SOURCES: usize = 8;

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Command(error) => error.fmt(f),
            Cause::Other(other) => other.error.fmt(f),
        }
    }
}

/// Why a command to a switch was not accepted. What was not accepted has no effect at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message cannot be said in the switch's version, or the send buffer is full.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A flow's priority is not one that an app can give: which band of the switch's priorities an app
    /// has, its place in the chain decides ([`crate::PriorityBand`]).
    #[error(
        "an app's flows have priorities from 0 to 4095, not {priority}; which app's flows come first \
         is decided by the order of the apps"
    )]
    Priority {
        /// What was asked for.
        priority: u16,
    },
    /// The switch sent only the beginning of the packet and kept no copy: there is nothing to
    /// send on. Ask for whole packets (`miss_send_len: 65535`, the default).
    #[error("the packet came cut to {have} of {total} bytes, and unbuffered: it cannot be sent on")]
    Truncated {
        /// Bytes that came.
        have: usize,
        /// Bytes of the whole packet.
        total: usize,
    },
    /// Too many requests to this switch wait for their answers.
    #[error(
        "{waiting} requests to this switch are unanswered; wait for answers before asking more"
    )]
    TooManyRequests {
        /// How many wait.
        waiting: usize,
    },
    /// The controller itself asked for what only an app can do: flows belong to an app.
    #[error("flows belong to an app; the controller's own handle to the network can install none")]
    NotAnApp,
    /// No such switch is connected.
    #[error("no switch with datapath id {0} is connected")]
    UnknownSwitch(Dpid),
    /// The switch, or the worker that owns it, has too much to send already.
    #[error("switch {0} does not take messages as fast as they come; try again later")]
    Full(Dpid),
    /// A transaction is to wait for another change, and a handler cannot wait.
    #[error("the transaction waits for another change, and a handler cannot wait")]
    WouldWait,
    /// A transaction was overtaken by others again and again.
    #[error("the transaction was overtaken by others {} times", crate::MAX_ATTEMPTS)]
    Contended,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the table of names is wrong")]
    struct WrongTable(#[source] std::num::ParseIntError);

    fn parse(text: &str) -> Result<u16> {
        Ok(text.parse().map_err(WrongTable)?)
    }

    fn refused() -> Result {
        Err(Error::NotAnApp)?;
        Ok(())
    }

    fn full() -> Result {
        Err(EncodeError::Full)?;
        Ok(())
    }

    #[test]
    fn an_error_of_any_type_keeps_its_type_its_text_and_its_causes() {
        let error = parse("x").unwrap_err();
        assert_eq!(error.to_string(), "the table of names is wrong: invalid digit found in string");
        assert_eq!(error.type_name(), "bellrock_api::error::tests::WrongTable");
        assert!(error.downcast_ref::<WrongTable>().is_some() && error.command().is_none());
    }

    #[test]
    fn commands_that_were_not_accepted_are_told_apart() {
        assert_eq!(refused().unwrap_err().command(), Some(&Error::NotAnApp));
        assert_eq!(full().unwrap_err().command(), Some(&Error::Encode(EncodeError::Full)));
        let text = HandlerError::new("no backend is left");
        assert_eq!((text.to_string().as_str(), text.type_name()), ("no backend is left", ""));
    }

    /// Not one byte more than the error of a command: results of handlers are returned for each packet.
    #[test]
    fn it_is_as_small_as_the_error_of_a_command() {
        assert_eq!(size_of::<HandlerError>(), size_of::<Error>());
    }
}

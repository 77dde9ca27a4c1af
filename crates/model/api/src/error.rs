//! Errors of commands to a switch, and of handlers.

use std::any::{Any, type_name};
use std::error::Error as StdError;
use std::fmt;
use std::hint::cold_path;

use bellrock_openflow::EncodeError;

use crate::Dpid;

/// The result of [`Handler`](crate::Handler) methods. Commands to a switch return an [`Error`].
pub type Result<T = (), E = HandlerError> = std::result::Result<T, E>;

/// Why a handler failed. `?` converts every error type (`std::error::Error + Send + Sync`) to it;
/// [`HandlerError::new`] makes one from a text.
///
/// The log shows its text, the texts of its sources, and its type. `bellrock apps` shows the last
/// error of each app, and the number of errors.
///
/// It does not implement `std::error::Error` itself: otherwise `?` could not convert all errors.
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
    /// Not allocated: it can come with every packet, as [`EncodeError::Full`] does.
    Command(Error),
    Other(Box<Other>),
}

struct Other {
    /// Whether it counts as a panic.
    is_fault: bool,
    type_name: &'static str,
    error: Box<dyn StdError + Send + Sync>,
}

impl HandlerError {
    /// Makes an error from a text, or from a boxed error.
    #[must_use]
    #[cold]
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let (is_fault, type_name, error) = (false, "", error.into());
        HandlerError(Cause::Other(Box::new(Other { is_fault, type_name, error })))
    }

    /// Makes an error that counts as a panic of the app: an app with too many of them is disabled.
    /// For handlers that run code of another language, whose exceptions are no panics.
    #[must_use]
    #[cold]
    pub fn fault(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let (is_fault, type_name, error) = (true, "", error.into());
        HandlerError(Cause::Other(Box::new(Other { is_fault, type_name, error })))
    }

    /// Whether it counts as a panic.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(&self.0, Cause::Other(other) if other.is_fault)
    }

    /// The error of a command to a switch, if that is what failed.
    #[must_use]
    pub fn command(&self) -> Option<&Error> {
        match &self.0 {
            Cause::Command(error) => Some(error),
            Cause::Other(_) => None,
        }
    }

    /// The original error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &self.0 {
            Cause::Command(error) => (error as &dyn Any).downcast_ref(),
            Cause::Other(other) => other.error.downcast_ref(),
        }
    }

    /// Type of the original error, with its path; empty for a text.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.0 {
            Cause::Command(_) => type_name::<Error>(),
            Cause::Other(other) => other.type_name,
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerError {
    // The compiler resolves the branches.
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
            is_fault: false,
            type_name: type_name::<E>(),
            error: Box::new(error),
        })))
    }
}

/// Errors of commands compare by value, others by type and text.
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

/// Prints its text, then the texts of its sources.
impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error: &dyn StdError = match &self.0 {
            Cause::Command(error) => error,
            Cause::Other(other) => &*other.error,
        };
        write!(f, "{error}")?;
        // Bounded, because an error may be its own source.
        for _ in 0..MAX_SOURCES {
            let Some(source) = error.source() else { break };
            write!(f, ": {source}")?;
            error = source;
        }
        Ok(())
    }
}

/// Maximum number of sources that are printed behind the text of an error.
const MAX_SOURCES: usize = 8;

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Command(error) => error.fmt(f),
            Cause::Other(other) => other.error.fmt(f),
        }
    }
}

/// Why a command to a switch was not accepted. Such a command has no effect at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The version of the switch does not support the message, or the send buffer is full.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// An app cannot give this priority to a flow. The app's place in the chain decides its band of
    /// the switch's priorities ([`crate::PriorityBand`]).
    #[error(
        "an app's flows have priorities from 0 to 4095, not {priority}; which app's flows come first \
         is decided by the order of the apps"
    )]
    Priority {
        /// The priority in the command.
        priority: u16,
    },
    /// The switch sent only the beginning of the packet and kept no copy, so the packet cannot be
    /// sent on. Configure whole packets (`miss_send_len: 65535`, the default).
    #[error(
        "the packet came cut to {received} of {total} bytes, and unbuffered: it cannot be sent on"
    )]
    Truncated {
        /// Number of bytes received.
        received: usize,
        /// Number of bytes of the whole packet.
        total: usize,
    },
    /// Too many requests to this switch are unanswered.
    #[error(
        "{unanswered} requests to this switch are unanswered; wait for answers before asking more"
    )]
    TooManyRequests {
        /// Number of unanswered requests.
        unanswered: usize,
    },
    /// The controller itself sent a command that only an app can send: flows belong to an app.
    #[error("flows belong to an app; the controller's own handle to the network can install none")]
    NotAnApp,
    /// An app sent a request that changes the role of the whole controller.
    #[error(
        "this message changes the controller's role at the switch; use `set_role` instead, or ask \
         with `RoleKind::NoChange`"
    )]
    RoleChange,
    /// The app is not allowed to do this: see [`crate::Allowance`].
    #[error("the app is not allowed to {what}")]
    NotAllowed {
        /// What it may not do.
        what: &'static str,
    },
    /// The message expects no reply, so that it is no request.
    #[error("this message expects no reply; send it as a change")]
    NotARequest,
    /// No such switch is connected.
    #[error("no switch with datapath id {0} is connected")]
    UnknownSwitch(Dpid),
    /// This controller stands by at the switch, or has not connected it, and no node of the cluster
    /// that it reaches is master of it.
    #[error(
        "no node that this one reaches is master of switch {0}; try again, or ask a node that serves \
         (`bellrock cluster`)"
    )]
    NoMaster(Dpid),
    /// The send queue of the switch, or of its worker, is full.
    #[error("switch {0} does not take messages as fast as they come; try again later")]
    Full(Dpid),
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

    /// As small as the error of a command: handlers return a result for each packet.
    #[test]
    fn it_is_as_small_as_the_error_of_a_command() {
        assert_eq!(size_of::<HandlerError>(), size_of::<Error>());
    }
}

//! The command line of `bellrock record`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Where switches connect by default: beside the controller, on this machine only.
const DEFAULT_LISTEN: &str = "127.0.0.1:6654";

/// Minimum of --max-size: it holds the largest message.
const MIN_BYTES: u64 = 128 * 1024;

/// Record what passes between switches and a controller
///
/// Stands between them: switches connect to it, and it connects to the controller for each of them.
/// It changes nothing, and writes all messages of both directions to a pcapng file, which
/// Wireshark, `bellrock decode` and `bellrock replay` read. SIGINT or SIGTERM ends it, and with it
/// the connections.
///
/// Connections by TLS pass, but their messages cannot be seen. Only the owner may read the file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordArgs {
    /// The pcapng file to write; `-` is standard output, without a limit
    pub(super) file: PathBuf,

    /// The controller
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6653")]
    pub(super) controller: String,

    /// Where switches connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN)]
    pub(super) listen: SocketAddr,

    /// Maximum size of the file
    ///
    /// With a full file, recording ends, and connections go on.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(super) max_size: u64,

    /// Go on in a new file when one is full, and keep this number of full ones
    ///
    /// FILE.1 is the latest of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) keep: u16,

    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
}

const EXAMPLES: &str = "\
Examples:
  bellrock record channel.pcapng                       between a controller at port 6653 and switches at 6654
  ovs-vsctl set-controller br0 tcp:127.0.0.1:6654      a switch that connects there
  bellrock record - | bellrock decode -                print messages as they pass
  bellrock record channel.pcapng --max-size 64M --keep 9
  bellrock replay channel.pcapng --controller 127.0.0.1:6653";

impl RecordArgs {
    /// The path, unless the recording goes to standard output.
    pub(super) fn path(&self) -> Option<PathBuf> {
        (self.file.as_os_str() != "-").then(|| self.file.clone())
    }
}

/// A number of bytes, with K, M or G for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a number of bytes, also with K, M or G, such as 64M".to_owned();
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let factor = match text.get(digits.len()..) {
        Some("") => 1,
        Some("K") => 1 << 10,
        Some("M") => 1 << 20,
        Some("G") => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    match number.checked_mul(factor) {
        Some(bytes) if bytes >= MIN_BYTES => Ok(bytes),
        Some(_) => Err("at least 128K".to_owned()),
        None => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("131072"), Ok(131_072));
        assert_eq!(size("128K"), Ok(131_072));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for wrong in ["", "M", "1KM", "-1", "1.5G", "64m", "127K", "99999999999999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}

//! The command line of `bellrock replay`.

use std::net::SocketAddr;
use std::path::PathBuf;

use bellrock_api::Dpid;
use clap::Args;

/// Play a recording at a controller, or at switches
///
/// With --controller it plays the switches: it connects, sends what they sent unasked, such as
/// packet_in, at its time, and answers requests with the recorded replies. With --listen it plays
/// the controller: it waits for a switch, and sends it the messages of the recording.
///
/// At the end it prints which messages of the other end differ from those in the recording.
/// Messages with the same contents are equal, whatever their xids and their order are. Hellos and
/// echoes do not count.
///
/// The recording is a file of `bellrock record`, or any capture that `bellrock decode` reads whole.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The recording: a pcapng or pcap file, also .gz
    pub(super) file: PathBuf,

    /// Play the switches at this controller
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) controller: Option<String>,

    /// Play the controller at switches that connect here
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "controller")]
    pub(super) listen: Option<SocketAddr>,

    /// Only this switch of the recording; several times for several
    ///
    /// With --listen and one switch, it is played at whatever switch connects.
    #[arg(long = "switch", value_name = "DPID")]
    pub(super) switches: Vec<Dpid>,

    /// Send without the times of the recording
    #[arg(long)]
    pub(super) fast: bool,

    /// Exit with status 1 if messages differ
    #[arg(long)]
    pub(super) check: bool,
}

const EXAMPLES: &str = "\
Examples:
  bellrock replay channel.pcapng --controller 127.0.0.1:6653       switches, for a controller
  bellrock replay channel.pcapng --listen 127.0.0.1:6653           a controller, for a switch
  bellrock replay channel.pcapng --controller 127.0.0.1:6653 --fast --check

Exit status: 0 if everything was played, 1 if not, or if messages differ and --check is given.";

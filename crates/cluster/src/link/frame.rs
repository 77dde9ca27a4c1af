//! What nodes send to each other: frames of JSON behind their length.
//!
//! ```text
//!  0                   4
//! +-------------------+----------------- - -
//! | length, big-endian|  JSON, of that length
//! +-------------------+----------------- - -
//! ```

use std::io;

use bellrock_api::Dpid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::heartbeat::{Generations, Heartbeat, SwitchReport};
use crate::network::WireNetwork;
use crate::node::NodeSet;
use crate::record::Generation;
use crate::remote::RemoteFrame;

/// Version of the messages between nodes. Nodes of different versions refuse each other.
pub(super) const VERSION: u32 = 2;
/// Maximum length of a message, in bytes: a list of some 25,000 switches with generations, or
/// 50,000 without.
pub(crate) const MAX_FRAME_BYTES: usize = 1 << 20;
/// Maximum length of a greeting, in bytes: the names of nodes and apps. It may come from a
/// stranger.
const MAX_HELLO_BYTES: usize = 16 << 10;

/// The first message of a connection, of the node that connects.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) cluster: String,
    /// The node that connects.
    pub(super) node: String,
    /// The node that it wants.
    pub(super) to: String,
    /// All nodes of the cluster, sorted by name.
    pub(super) nodes: Vec<String>,
    /// The apps of its chain, in order.
    #[serde(default)]
    pub(super) apps: Vec<String>,
    /// A random number of its process.
    pub(super) incarnation: u64,
}

/// The answer to [`Hello`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    /// Why the connection is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
}

/// A message after the greeting.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum WireMessage {
    Heartbeat(WireHeartbeat),
    Remote(RemoteFrame),
    Network(WireNetwork),
}

/// A [`Heartbeat`] as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireHeartbeat {
    serving: bool,
    draining: bool,
    suspects: u16,
    switches: WireReport,
    known: Option<u64>,
    offer: Option<u64>,
    accept: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hears: Option<u64>,
}

/// A generation of 0 is none: no node claims a switch by it.
#[derive(Debug, Serialize, Deserialize)]
enum WireReport {
    Same {
        version: u64,
    },
    Changes {
        from: u64,
        to: u64,
        joined: Vec<u64>,
        left: Vec<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generations: Option<Vec<u64>>,
    },
    All {
        version: u64,
        switches: Vec<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generations: Option<Vec<u64>>,
    },
}

impl From<&Heartbeat> for WireHeartbeat {
    fn from(heartbeat: &Heartbeat) -> Self {
        let numbers = |dpids: &[Dpid]| dpids.iter().map(|dpid| dpid.0).collect();
        let ids = |generations: &Option<Generations>| {
            let of = |it: &Option<Generation>| it.map_or(0, |Generation(id)| id);
            generations.as_ref().map(|generations| generations.iter().map(of).collect())
        };
        WireHeartbeat {
            serving: heartbeat.serving,
            draining: heartbeat.draining,
            suspects: heartbeat.suspects.bits(),
            switches: match &heartbeat.switches {
                SwitchReport::Same { version } => WireReport::Same { version: *version },
                SwitchReport::Changes { from, to, joined, left, generations } => {
                    WireReport::Changes {
                        from: *from,
                        to: *to,
                        joined: numbers(joined),
                        left: numbers(left),
                        generations: ids(generations),
                    }
                }
                SwitchReport::All { version, switches, generations } => WireReport::All {
                    version: *version,
                    switches: numbers(switches),
                    generations: ids(generations),
                },
            },
            known: heartbeat.known,
            offer: heartbeat.offer.map(|dpid| dpid.0),
            accept: heartbeat.accept.map(|dpid| dpid.0),
            incarnation: heartbeat.incarnation,
            hears: heartbeat.hears,
        }
    }
}

impl From<WireHeartbeat> for Heartbeat {
    fn from(wire: WireHeartbeat) -> Self {
        let dpids = |numbers: Vec<u64>| numbers.into_iter().map(Dpid).collect();
        let generations = |ids: Option<Vec<u64>>| {
            let of = |id: u64| (id != 0).then_some(Generation(id));
            ids.map(|ids| ids.into_iter().map(of).collect())
        };
        Heartbeat {
            serving: wire.serving,
            draining: wire.draining,
            suspects: NodeSet::from_bits(wire.suspects),
            switches: match wire.switches {
                WireReport::Same { version } => SwitchReport::Same { version },
                WireReport::Changes { from, to, joined, left, generations: ids } => {
                    SwitchReport::Changes {
                        from,
                        to,
                        joined: dpids(joined),
                        left: dpids(left),
                        generations: generations(ids),
                    }
                }
                WireReport::All { version, switches, generations: ids } => SwitchReport::All {
                    version,
                    switches: dpids(switches),
                    generations: generations(ids),
                },
            },
            known: wire.known,
            offer: wire.offer.map(Dpid),
            accept: wire.accept.map(Dpid),
            incarnation: wire.incarnation,
            hears: wire.hears,
        }
    }
}

/// Writes one message.
pub(super) async fn write<M: Serialize>(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &M,
) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME_BYTES);
    let length = length.ok_or_else(|| too_long(body.len(), MAX_FRAME_BYTES))?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// Reads one message. `None`: the connection has ended between two messages.
pub(super) async fn read<M: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<M>> {
    read_up_to(stream, MAX_FRAME_BYTES).await
}

/// Reads the first message of a connection.
pub(super) async fn read_hello(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Hello>> {
    read_up_to(stream, MAX_HELLO_BYTES).await
}

async fn read_up_to<M: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> io::Result<Option<M>> {
    let mut length = [0; 4];
    // A first byte, or none.
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > limit {
        return Err(too_long(length, limit));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

fn too_long(length: usize, limit: usize) -> io::Error {
    let text = format!("a message of {length} bytes: at most {limit} are allowed");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_heartbeat_is_read_as_it_was_written() {
        let dpids = vec![Dpid(0), Dpid(u64::MAX)];
        let generations = Some(vec![None, Some(Generation(u64::MAX))]);
        let reports = [
            SwitchReport::Same { version: u64::MAX },
            SwitchReport::Changes {
                from: 1,
                to: 2,
                joined: dpids.clone(),
                left: vec![],
                generations: generations.clone(),
            },
            SwitchReport::All { version: 3, switches: dpids, generations },
        ];
        for switches in reports {
            let heartbeat = Heartbeat {
                serving: true,
                draining: false,
                suspects: NodeSet::from_bits(5),
                switches,
                known: Some(u64::MAX),
                offer: Some(Dpid(u64::MAX)),
                accept: None,
                incarnation: Some(u64::MAX),
                hears: Some(0),
            };
            let mut bytes = Vec::new();
            run(write(&mut bytes, &WireHeartbeat::from(&heartbeat))).unwrap();
            let mut rest = bytes.as_slice();
            let again: WireHeartbeat = run(read(&mut rest)).unwrap().unwrap();
            assert_eq!(Heartbeat::from(again), heartbeat);
            let end: Option<WireHeartbeat> = run(read(&mut rest)).unwrap();
            assert!(end.is_none());
            // Every truncation is an error.
            for end in 1..bytes.len() {
                assert!(run(read::<WireHeartbeat>(&mut &bytes[..end])).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn a_heartbeat_of_the_first_release_is_read() {
        let text = r#"{"serving":true,"draining":false,"suspects":0,"switches":{"All":{"version":3,"switches":[7]}},
            "known":null,"offer":null,"accept":null}"#;
        let heartbeat = Heartbeat::from(serde_json::from_str::<WireHeartbeat>(text).unwrap());
        assert_eq!((heartbeat.incarnation, heartbeat.hears), (None, None));
        let all = SwitchReport::All { version: 3, switches: vec![Dpid(7)], generations: None };
        assert_eq!(heartbeat.switches, all);
    }

    #[test]
    fn a_length_that_is_too_large_is_refused_before_memory_is_taken() {
        let error = run(read::<Welcome>(&mut [0xff; 8].as_slice())).unwrap_err();
        assert_eq!(error.to_string(), "a message of 4294967295 bytes: at most 1048576 are allowed");
        let mut hello = vec![0, 0, 0x40, 1];
        hello.resize(4 + 0x4001, b' ');
        let error = run(read_hello(&mut hello.as_slice())).unwrap_err();
        assert_eq!(error.to_string(), "a message of 16385 bytes: at most 16384 are allowed");
    }
}

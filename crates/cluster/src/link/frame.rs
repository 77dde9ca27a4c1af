//! What nodes send to each other: frames of JSON behind their length.
//!
//! ```text
//!  0                   4
//! +-------------------+----------------- - -
//! | length, big-endian|  JSON, of that length
//! +-------------------+----------------- - -
//! ```

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::heartbeat::Heartbeat;
use crate::network::WireNetwork;
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
    Heartbeat(Heartbeat),
    Remote(RemoteFrame),
    Network(WireNetwork),
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
    use bellrock_api::Dpid;

    use super::*;
    use crate::heartbeat::SwitchReport;
    use crate::node::NodeSet;
    use crate::record::Generation;

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
            run(write(&mut bytes, &heartbeat)).unwrap();
            let mut rest = bytes.as_slice();
            let again: Heartbeat = run(read(&mut rest)).unwrap().unwrap();
            assert_eq!(again, heartbeat);
            let end: Option<Heartbeat> = run(read(&mut rest)).unwrap();
            assert!(end.is_none());
            // Every truncation is an error.
            for end in 1..bytes.len() {
                assert!(run(read::<Heartbeat>(&mut &bytes[..end])).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn a_heartbeat_travels_in_a_form_that_the_release_before_reads() {
        let heartbeat = Heartbeat {
            serving: true,
            draining: false,
            suspects: NodeSet::from_bits(5),
            switches: SwitchReport::Changes {
                from: 1,
                to: 2,
                joined: vec![Dpid(7), Dpid(8)],
                left: vec![Dpid(9)],
                generations: Some(vec![None, Some(Generation(257))]),
            },
            known: Some(3),
            offer: Some(Dpid(7)),
            accept: None,
            incarnation: Some(4),
            hears: None,
        };
        let expected = serde_json::json!({"Heartbeat": {
            "serving": true, "draining": false, "suspects": 5,
            "switches": {"Changes": {
                "from": 1, "to": 2, "joined": [7, 8], "left": [9], "generations": [0, 257],
            }},
            "known": 3, "offer": 7, "accept": null, "incarnation": 4,
        }});
        let sent = serde_json::to_value(WireMessage::Heartbeat(heartbeat)).unwrap();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_heartbeat_of_the_first_release_is_read() {
        let text = r#"{"serving":true,"draining":false,"suspects":0,"switches":{"All":{"version":3,"switches":[7]}},
            "known":null,"offer":null,"accept":null}"#;
        let heartbeat: Heartbeat = serde_json::from_str(text).unwrap();
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

//! Connections between controllers, and the frames on them.

use std::sync::Arc;

use super::world::{Frame, Happening, NODES, World, ms, peer};
use crate::exchange::{NotTaken, NumberedFrame, PeerFrame};

impl World {
    pub(super) fn connect(&mut self, from: usize, to: usize) {
        let connection = &mut self.connections[from][to];
        if self.nodes[from].is_alive && self.nodes[to].is_alive && !connection.stands {
            (connection.number, connection.stands) = (connection.number + 1, true);
            self.nodes[from].exchange.connected(peer(to));
        }
    }

    pub(super) fn disconnect(&mut self, from: usize, to: usize) {
        let connection = &mut self.connections[from][to];
        (connection.number, connection.stands) = (connection.number + 1, false);
        self.nodes[from].exchange.disconnected(peer(to));
        self.nodes[to].exchange.lost(peer(from));
    }

    pub(super) fn send(&mut self, node: usize) {
        for to in (0..NODES).filter(|it| *it != node) {
            let it = &self.nodes[node];
            let mut frames = Vec::new();
            if let Some((stream, count)) = it.exchange.applied(peer(to)) {
                frames.push(Frame::Applied(stream, count));
            }
            while let Some(facts) = it.exchange.next_at(peer(to), &it.hosts, self.now) {
                frames.push(Frame::Facts(facts));
            }
            frames.into_iter().for_each(|frame| self.send_frame(node, to, frame));
        }
    }

    pub(super) fn send_frame(&mut self, from: usize, to: usize, mut frame: Frame) {
        if let Frame::Facts(NumberedFrame { frame: frame @ PeerFrame::Differs { .. }, .. }) = &frame
        {
            self.log(|| format!("{from} asks {to}: {frame:?}"));
        }
        if let Frame::Facts(NumberedFrame { frame, .. }) = &mut frame
            && matches!(frame, PeerFrame::Digest { .. })
            && self.spoilt.has_no_digests
        {
            *frame = PeerFrame::Left(Vec::new());
        }
        let delay = ms(self.random.u64(1..5 + self.connections[from][to].slowness_ms));
        let is_lost = self.connections[from][to].loses && self.random.u32(..8) == 0;
        let connection = &mut self.connections[from][to];
        if !connection.stands || is_lost {
            return;
        }
        connection.busy_until = connection.busy_until.max(self.now + delay);
        let (at, connection) = (connection.busy_until - self.now, connection.number);
        self.after(at, Happening::Frame { from, to, connection, frame });
    }

    pub(super) fn receive(&mut self, from: usize, to: usize, frame: Frame) {
        let exchange = Arc::clone(&self.nodes[to].exchange);
        match frame {
            Frame::Applied(stream, count) => exchange.peer_applied(peer(from), stream, count),
            Frame::Again => exchange.again(peer(from)),
            Frame::Facts(frame) => {
                let Err(error) = exchange.receive(peer(from), frame, self.now) else { return };
                self.log(|| format!("{to} does not take a frame of {from}: {error}"));
                if matches!(error, NotTaken::OutOfOrder { number: 1, .. }) {
                    self.fail(format!("the first frame of a stream is out of order: {error}"));
                }
                self.send_frame(to, from, Frame::Again);
            }
        }
    }
}

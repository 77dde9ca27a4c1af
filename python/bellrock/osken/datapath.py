"""A switch as programs for os-ken see it, with a connection of Bellrock."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from time import monotonic

from os_ken.base import app_manager
from os_ken.cfg import CONF
from os_ken.controller import controller, ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER
from os_ken.lib import hub
from os_ken.lib.dpid import dpid_to_str
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0, ofproto_v1_3

from .._native import Error, RawClosed, RawConnection, RawFull
from . import lengths
from .fast import events, messages

LOG = logging.getLogger("bellrock.osken")

MAX_WAITING_BYTES = 1 << 20
"""Bytes of one switch that wait for handlers, above which the switch is not read."""

RETRY_S = 0.01
"""Time between two tries to send to a switch that takes nothing. After 10 s (`stalled_timeout`) its connection ends."""

HEADER_ONLY = lengths.HEADER_BYTES.to_bytes(2, "big")
"""The length of a hello without elements."""

MAX_TURN_S = 0.005
"""Time that messages of one switch take, after which others have a turn. A message may take that long: statistics of 64 KB do."""

MAX_UNSENT_BYTES = 4 << 10
"""Bytes of flow_mods and packet_outs that wait for the next switch of green threads, above which they are sent at once."""

GATHERED = (13, 14)
"""Types of the messages that are gathered, in all versions: packet_out and flow_mod."""

PACKET_IN = {ofproto_v1_0.OFP_VERSION: messages.packet_in_10, ofproto_v1_3.OFP_VERSION: messages.packet_in_13}
"""What parses the packet_ins of each version."""


class UnknownVersion(Exception):
    """A version of OpenFlow whose messages are not read here."""


class BellrockDatapath(controller.Datapath):
    """Has all that os-ken's own has, except the socket."""

    def __init__(self, connection: RawConnection, address: tuple[str, int], hello: bytes) -> None:
        if connection.version not in PACKET_IN:
            known = ", ".join(map(str, PACKET_IN))
            raise UnknownVersion(f"no messages of OpenFlow with the version byte {connection.version} are read here; those of {known} are")
        # That of os-ken's own wants a socket, so its place is taken by that of its base class.
        ofproto_protocol.ProtocolDesc.__init__(self)
        self.address = address
        self.is_active = True
        self.echo_request_interval = CONF.echo_request_interval
        self.max_unreplied_echo_requests = CONF.maximum_unreplied_echo_requests
        self.unreplied_echo_requests: list[int] = []
        self.xid = random.randint(0, self.ofproto.MAX_XID)
        # Known when the reply to the features request comes, as with os-ken.
        self.id: int | None = None
        self._ports = None
        self.flow_format = ofproto_v1_0.NXFF_OPENFLOW10
        self.ofp_brick = app_manager.lookup_service_brick("ofp_event")
        self.state: str | None = None
        self._connection = connection
        self._version = connection.version
        self._hello = hello
        # Messages of a read, or the reason of the end. Its bytes are bounded: see `deliver`.
        self._inbox = hub.Queue()
        # Each is written by one thread only.
        self._taken_bytes = 0
        self._handled_bytes = 0
        self._is_paused = False
        self._packet_in = PACKET_IN[self._version]
        # The hub of the green threads that gather messages. Threads send each message at once.
        self._hub = events.hub_of_green_threads()
        self._unsent = bytearray()
        self._is_scheduled = False

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for handlers."""
        return self._taken_bytes - self._handled_bytes

    def deliver(self, delivered: list[bytes]) -> None:
        """Adds messages. Never waits: a switch with many is not read."""
        self._taken_bytes += sum(map(len, delivered))
        self._inbox.put(delivered)
        if self.waiting_bytes > MAX_WAITING_BYTES and not self._is_paused:
            self._connection.pause()
            self._is_paused = True
            self._resume_if_low()

    def end(self, reason: str) -> None:
        """Reports the end of the connection."""
        self._inbox.put(reason)

    def serve(self, on_end: Callable[[], None]) -> None:
        """Gives out events until the connection ends. It may wait for the queue of an app."""
        try:
            self._begin()
            while self.state != DEAD_DISPATCHER:
                delivered = self._inbox.get()
                if isinstance(delivered, str):
                    LOG.info("switch %s at %s: %s", self._name(), self.address, delivered)
                    break
                self._handle_all(delivered)
        except lengths.Endless as error:
            LOG.error("switch %s at %s: the connection ends, as os-ken may read its message for ever: %s", self._name(), self.address, error)
        except Exception:
            # As with os-ken: what cannot be parsed ends the connection.
            LOG.exception("switch %s at %s: its message cannot be handled", self._name(), self.address)
        finally:
            self.is_active = False
            on_end()
            self.close()

    def _begin(self) -> None:
        self.set_state(HANDSHAKE_DISPATCHER)
        try:
            self._handle(self._hello)
        except lengths.Endless:
            # Bellrock skips elements that it does not know, with their padding; os-ken's parser reads the padding.
            self._handle(self._hello[:2] + HEADER_ONLY + self._hello[4:8])
        # The version has been agreed on, so os-ken's own handler of hellos has nothing to decide.
        self.set_version(self._connection.version)
        self.set_state(CONFIG_DISPATCHER)
        self.send_msg(self.ofproto_parser.OFPFeaturesRequest(self))

    def _handle_all(self, delivered: list[bytes]) -> None:
        began = monotonic()
        for message in delivered:
            if self.state == DEAD_DISPATCHER:
                return
            # A state of the handshake has handlers of os-ken, and is rare.
            if self.state != MAIN_DISPATCHER or message[1] != messages.PACKET_IN or not self._handle_packet_in(message):
                self._handle(message)
            if monotonic() - began > MAX_TURN_S:
                hub.sleep(0)
                began = monotonic()
        self._handled_bytes += sum(map(len, delivered))
        self._resume_if_low()

    def _handle_packet_in(self, message: bytes) -> bool:
        """Handles a packet_in as `_handle` does. Returns whether it is a usual one."""
        packet_in = self._packet_in(self, message)
        brick = self.ofp_brick
        if packet_in is None or brick is None:
            return False
        event, state = events.packet_in(packet_in), self.state
        brick.send_event_to_observers(event, state)
        if type(event) in brick.event_handlers:
            for handler in list(brick.get_handlers(event, state)):
                handler(event)
        return True

    def _handle(self, message: bytes) -> None:
        lengths.check(message)
        version, kind, length, xid = ofproto_parser.header(message)
        # Some parsers keep slices of it, whose type programs see.
        parsed = ofproto_parser.msg(self, version, kind, length, xid, bytearray(message))
        if not parsed or self.ofp_brick is None:
            return
        event = ofp_event.ofp_msg_to_ev(parsed)
        state = self.state
        self.ofp_brick.send_event_to_observers(event, state)
        if state == HANDSHAKE_DISPATCHER:
            return
        for handler in list(self.ofp_brick.get_handlers(event, state)):
            try:
                handler(event)
            except Exception:
                # The one for errors fails at each error of OpenFlow 1.0, which ends the connection with os-ken.
                if state != MAIN_DISPATCHER and kind != ofproto_v1_0.OFPT_ERROR:
                    raise
                LOG.exception("switch %s at %s: a handler of os-ken fails", self._name(), self.address)

    def _resume_if_low(self) -> None:
        if self._is_paused and self.waiting_bytes <= MAX_WAITING_BYTES // 2:
            self._is_paused = False
            self._connection.resume()

    def send(self, buf: bytes, close_socket: bool = False) -> bool:
        """Sends bytes, and waits while the switch takes none. Returns whether they are on their way.

        flow_mods and packet_outs are gathered until the green thread that sends them lets others run. os-ken has a green thread
        that sends, so with it too they leave then.
        """
        if self._hub is not None and not close_socket and self._is_gathered(buf):
            unsent = self._unsent
            if not self._is_scheduled:
                self._is_scheduled = True
                self._hub.schedule_call_global(0, self._send_gathered)
            unsent += buf
            if len(unsent) < MAX_UNSENT_BYTES:
                return True
            return self._send_unsent()
        if self._unsent and not self._send_unsent():
            return False
        return self._send(bytes(buf), close_socket)

    def _is_gathered(self, buf: bytes) -> bool:
        # Others are sent at once, so that what is wrong with them is raised here.
        return (len(buf) >= 8 and buf[1] in GATHERED and buf[0] == self._version
                and len(buf) == buf[2] << 8 | buf[3] and self.state != DEAD_DISPATCHER
                and events.hub_of_green_threads() is self._hub)

    def _send_gathered(self) -> None:
        """Sends what is gathered, from the hub, where nothing may wait."""
        if self._unsent:
            try:
                self._connection.send(bytes(self._unsent))
            except RawFull:
                self._hub.schedule_call_global(RETRY_S, self._send_gathered)
                return
            except Error as error:
                LOG.debug("switch %s at %s: %s", self._name(), self.address, error)
            self._unsent.clear()
        self._is_scheduled = False

    def _send_unsent(self) -> bool:
        """Sends what is gathered, and waits while the switch takes none."""
        # One green thread of those that wait sends it.
        while self._unsent:
            gathered = bytes(self._unsent)
            try:
                self._connection.send(gathered)
            except RawFull:
                hub.sleep(RETRY_S)
                continue
            except Error as error:
                LOG.debug("switch %s at %s: %s", self._name(), self.address, error)
                self._unsent.clear()
                return False
            del self._unsent[:len(gathered)]
        return True

    def _send(self, message: bytes, close_socket: bool) -> bool:
        while self.state != DEAD_DISPATCHER:
            try:
                self._connection.send(message)
            except RawFull:
                hub.sleep(RETRY_S)
                continue
            except RawClosed:
                break
            if close_socket:
                self._close_connection()
            return True
        LOG.debug("switch %s at %s is leaving; a message to it is discarded", self._name(), self.address)
        return False

    def close(self) -> None:
        """Ends the connection behind what was sent. Observers see the state DEAD."""
        self.set_state(DEAD_DISPATCHER)
        self._close_connection()

    def _close_connection(self) -> None:
        self._send_unsent()
        while not self._connection.is_closed:
            try:
                return self._connection.close("the program closes it")
            except RawFull:
                hub.sleep(RETRY_S)

    def _name(self) -> str:
        return "without an id" if self.id is None else str(dpid_to_str(self.id))

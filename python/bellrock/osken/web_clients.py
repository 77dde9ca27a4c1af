"""What clients of REST interfaces may hold: a place for a connection, a request, messages that wait for them."""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import webob
import webob.exc

LOG = logging.getLogger("bellrock.osken")

MAX_CONNECTIONS = 256
"""Connections of clients at a time. Above it, the one that has waited longest for its request to come is closed for a new one."""

CLIENT_TIMEOUT_S = 60
"""Time after which a connection is closed whose client sends nothing, or takes nothing of an answer."""

REQUEST_WITHIN_S = 30
"""Time in which a request has to be there, with its body, and after which a connection without a further request is closed."""

MAX_BODY_BYTES = 16 << 20
"""Length of a request's body."""

MAX_WEBSOCKETS = 128
"""WebSockets at a time. They may be silent for ever, so they do not get all connections."""

MAX_WAITING_MESSAGES = 10_000
"""Messages that wait for the client of a WebSocket, above which it is closed."""

MAX_WAITING_BYTES = 16 << 20
"""The same in bytes."""

RETRY_S = 0.05
"""Time until a connection that was closed for a new one has left its place."""

BEGUN = "bellrock.begun"
"""Key of a request's environment: what to call when the request is there."""

DEFAULT_PORTS = {"http": 80, "https": 443}

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class Clients:
    """The connections. Each waits until its request is there; then the app has it, and it stays open until it is answered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # Since when each one waits, those that wait longest first.
        self._waiting: OrderedDict[Any, float] = OrderedDict()
        self._busy: set[Any] = set()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def wait(self, connection: Any) -> None:
        """It is new, or its request is answered: the next one may come."""
        with self._lock:
            self._busy.discard(connection)
            self._waiting.pop(connection, None)
            self._waiting[connection] = self._clock()

    def begin(self, connection: Any) -> None:
        """Its request is there."""
        with self._lock:
            # One that was closed meanwhile is not in the list any more, and ends.
            if self._waiting.pop(connection, None) is not None:
                self._busy.add(connection)

    def leave(self, connection: Any) -> None:
        """It has ended."""
        with self._lock:
            self._busy.discard(connection)
            self._waiting.pop(connection, None)

    def close_oldest(self) -> None:
        """Closes the one that has waited longest, if any waits."""
        with self._lock:
            oldest = next(iter(self._waiting), None)
        if oldest is not None:
            LOG.debug("a client without a request is closed for a new one: there are %d", MAX_CONNECTIONS)
            self._close(oldest)

    def close_late(self) -> None:
        """Closes those whose request has not come in time."""
        with self._lock:
            before = self._clock() - REQUEST_WITHIN_S
            late = [connection for connection, since in self._waiting.items() if since < before]
        for connection in late:
            self._close(connection)

    def _close(self, connection: Any) -> None:
        with self._lock:
            self._waiting.pop(connection, None)
        shut(connection)


def shut(connection: socket.socket) -> None:
    """Lets its reader see the end. The reader closes it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class WholeRequests:
    """An application that gets requests when they are there whole, so that a slow client costs none of its time."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if "HTTP_UPGRADE" not in environ:
            error = _read_body(environ)
            if error is not None:
                answer: Iterable[bytes] = error(environ, start_response)
                return answer
        begun = environ.get(BEGUN)
        if begun is not None:
            begun()
        return self._application(environ, start_response)


def _read_body(environ: Environ) -> webob.Response | None:
    """Reads the body of a request. Returns what is wrong with it."""
    length = environ.get("CONTENT_LENGTH") or ""
    is_chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
    if length and not length.isdigit():
        return webob.exc.HTTPBadRequest("Content-Length is no number")
    if not length and not is_chunked:
        return None
    wanted = MAX_BODY_BYTES + 1 if is_chunked else int(length)
    if not is_chunked and wanted > MAX_BODY_BYTES:
        return webob.exc.HTTPRequestEntityTooLarge(f"the body has more than {MAX_BODY_BYTES} bytes")
    parts = []
    try:
        while wanted > 0 and (part := environ["wsgi.input"].read(min(wanted, 1 << 16))):
            parts.append(part)
            wanted -= len(part)
    except (OSError, ValueError):
        return webob.exc.HTTPBadRequest("the body is cut off")
    if is_chunked and wanted == 0:
        return webob.exc.HTTPRequestEntityTooLarge(f"the body has more than {MAX_BODY_BYTES} bytes")
    if not is_chunked and wanted > 0:
        return webob.exc.HTTPBadRequest("the body is cut off")
    body = b"".join(parts)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["CONTENT_LENGTH"] = str(len(body))
    environ["wsgi.input"] = io.BytesIO(body)
    return None


def is_of_other_page(origin: str | None, host: str) -> bool:
    """Whether a browser opens a WebSocket for a page of another site. Others than browsers name no page."""
    if origin is None:
        return False
    try:
        page = urlsplit(origin)
        port = page.port or DEFAULT_PORTS.get(page.scheme)
        own = urlsplit(f"//{host}")
        # Without a port, `Host` means that of the page's own scheme.
        own_port = own.port or DEFAULT_PORTS.get(page.scheme)
    except ValueError:
        return True
    return page.hostname is None or (page.hostname, port) != (own.hostname, own_port)


class QueuedWebSocket:
    """A WebSocket of eventlet whose `send` does not wait for the client. One that takes nothing is closed."""

    def __init__(self, ws: Any) -> None:
        import eventlet
        import eventlet.queue

        self._ws = ws
        self._queue = eventlet.queue.LightQueue(MAX_WAITING_MESSAGES)
        self._bytes = 0
        self._is_over = False
        self._timeout = eventlet.Timeout
        self._full = eventlet.queue.Full
        self._yield = eventlet.sleep
        self._sender = eventlet.spawn(self._send_all)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ws, name)

    def send(self, message: Any) -> None:
        """Sends it after those before.

        Raises `ConnectionError` if the client is gone, or has taken nothing for too long.
        """
        size = len(message) if isinstance(message, (str, bytes)) else 0
        if not self._has_room(size):
            # The client may have taken what only its sender does not know yet.
            self._yield(0)
            if not self._has_room(size):
                self._end("it does not take its messages")
        if self._is_over:
            raise ConnectionError("the other end of the WebSocket is gone, or takes no messages")
        self._bytes += size
        self._queue.put_nowait((size, message))

    def finish(self) -> None:
        """Waits until all is sent, or cannot be."""
        if not self._is_over:
            try:
                self._queue.put_nowait(None)
            except self._full:
                return self._end("it does not take its messages")
            try:
                with self._timeout(CLIENT_TIMEOUT_S):
                    self._sender.wait()
            except self._timeout:
                self._end("it does not take its messages")

    def _has_room(self, size: int) -> bool:
        return not self._queue.full() and (self._bytes == 0 or self._bytes + size <= MAX_WAITING_BYTES)

    def _send_all(self) -> None:
        while (item := self._queue.get()) is not None:
            size, message = item
            try:
                with self._timeout(CLIENT_TIMEOUT_S):
                    self._ws.send(message)
            except (OSError, self._timeout) as error:
                return self._end(str(error) or "it does not take its messages")
            self._bytes -= size

    def _end(self, why: str) -> None:
        if not self._is_over:
            self._is_over = True
            LOG.info("a WebSocket is closed: %s", why)
            shut(self._ws.socket)

"""JSON-RPC over WebSockets, with tinyrpc, for `wsgi`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from os_ken.lib import hub
from tinyrpc.client import RPCClient
from tinyrpc.dispatch import RPCDispatcher
from tinyrpc.dispatch import public as rpc_public
from tinyrpc.protocols.jsonrpc import JSONRPCProtocol
from tinyrpc.server import RPCServer
from tinyrpc.transports import ClientTransport, ServerTransport

from .wsgi import WebSocketDisconnectedError

__all__ = ["WebSocketRPCClient", "WebSocketRPCServer", "rpc_public"]

MAX_REPLIES = 16
"""Replies of a client that nobody has waited for, above which it is not read."""


def _text(message: str | bytes) -> str:
    # tinyrpc makes bytes; a WebSocket would send them as a binary message.
    return message.decode() if isinstance(message, bytes) else message


class _ServerTransport(ServerTransport):
    def __init__(self, ws: Any) -> None:
        self._ws = ws

    def receive_message(self) -> tuple[None, str]:
        message = self._ws.wait()
        if message is None:
            raise WebSocketDisconnectedError
        return None, message

    def send_reply(self, context: None, reply: str | bytes) -> None:
        self._ws.send(_text(reply))


class WebSocketRPCServer(RPCServer):
    """Lets the other end of a WebSocket call the methods of an object that `rpc_public` has marked."""

    def __init__(self, ws: Any, rpc_callback: Any) -> None:
        dispatcher = RPCDispatcher()
        dispatcher.register_instance(rpc_callback)
        super().__init__(_ServerTransport(ws), JSONRPCProtocol(), dispatcher)

    def serve_forever(self) -> None:
        """Answers until the other end closes the WebSocket."""
        try:
            super().serve_forever()
        except WebSocketDisconnectedError:
            pass

    def _spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        hub.spawn(func, *args, **kwargs)


class _ClientTransport(ClientTransport):
    def __init__(self, ws: Any, replies: Any) -> None:
        self._ws = ws
        self._replies = replies

    def send_message(self, message: str | bytes, expect_reply: bool = True) -> Any:
        self._ws.send(_text(message))
        if not expect_reply:
            return None
        reply = self._replies.get()
        if reply is None:
            raise ConnectionResetError("the other end has closed the WebSocket")
        return reply


class WebSocketRPCClient(RPCClient):
    """Calls methods of the other end of a WebSocket. `serve_forever` reads their replies, in another thread."""

    def __init__(self, ws: Any) -> None:
        self.ws = ws
        self.queue = hub.Queue(MAX_REPLIES)
        super().__init__(JSONRPCProtocol(), _ClientTransport(ws, self.queue))

    def serve_forever(self) -> None:
        """Reads until the other end closes the WebSocket."""
        while True:
            message = self.ws.wait()
            # At the end it is `None`, for a call that still waits.
            self.queue.put(message)
            if message is None:
                break

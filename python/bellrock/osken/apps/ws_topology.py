"""Changes of the topology to WebSockets, by JSON-RPC: each is a call of `event_link_add` and the like at the client.

It needs the hub of eventlet, and tinyrpc.
"""

from __future__ import annotations

from typing import Any

from os_ken.app.wsgi import ControllerBase, WebSocketRPCClient, WSGIApplication, websocket
from os_ken.base import app_manager
from os_ken.controller.handler import set_ev_cls
from os_ken.topology import event, switches
from tinyrpc.exc import InvalidReplyError


class WebSocketTopology(app_manager.OSKenApp):
    """Calls all clients for each event."""

    _CONTEXTS = {"wsgi": WSGIApplication, "switches": switches.Switches}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rpc_clients: list[Any] = []
        kwargs["wsgi"].register(WebSocketTopologyController, {"app": self})

    @set_ev_cls(event.EventSwitchEnter)
    def _event_switch_enter_handler(self, ev: Any) -> None:
        self._rpc_broadcall("event_switch_enter", ev.switch.to_dict())

    @set_ev_cls(event.EventSwitchLeave)
    def _event_switch_leave_handler(self, ev: Any) -> None:
        self._rpc_broadcall("event_switch_leave", ev.switch.to_dict())

    @set_ev_cls(event.EventLinkAdd)
    def _event_link_add_handler(self, ev: Any) -> None:
        self._rpc_broadcall("event_link_add", ev.link.to_dict())

    @set_ev_cls(event.EventLinkDelete)
    def _event_link_delete_handler(self, ev: Any) -> None:
        self._rpc_broadcall("event_link_delete", ev.link.to_dict())

    @set_ev_cls(event.EventHostAdd)
    def _event_host_add_handler(self, ev: Any) -> None:
        self._rpc_broadcall("event_host_add", ev.host.to_dict())

    def _rpc_broadcall(self, func_name: str, msg: Any) -> None:
        for client in list(self.rpc_clients):
            try:
                getattr(client.get_proxy(), func_name)(msg)
            except OSError:
                self.rpc_clients.remove(client)
            except InvalidReplyError as error:
                self.logger.error("a client of the topology: %s", error)


class WebSocketTopologyController(ControllerBase):
    """Takes the connections of clients."""

    def __init__(self, req: Any, link: Any, data: Any, **config: Any) -> None:
        super().__init__(req, link, data, **config)
        self.app = data["app"]

    @websocket("topology", "/v1.0/topology/ws")
    def _websocket_handler(self, ws: Any) -> None:
        client = WebSocketRPCClient(ws)
        self.app.rpc_clients.append(client)
        client.serve_forever()

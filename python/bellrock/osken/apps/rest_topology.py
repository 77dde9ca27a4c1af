"""Switches, links and hosts by REST: `GET /v1.0/topology/switches`, `links` and `hosts`, of all or of one datapath id."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from os_ken.app.wsgi import ControllerBase, Response, WSGIApplication, route
from os_ken.base import app_manager
from os_ken.lib import dpid as dpid_lib
from os_ken.topology import api

NAME, PATH = "topology", "/v1.0/topology"
OF_ONE = {"dpid": dpid_lib.DPID_PATTERN}


class TopologyAPI(app_manager.OSKenApp):
    """Registers the paths."""

    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kwargs["wsgi"].register(TopologyController, {"topology_api_app": self})


class TopologyController(ControllerBase):
    """Answers them."""

    def __init__(self, req: Any, link: Any, data: Any, **config: Any) -> None:
        super().__init__(req, link, data, **config)
        self.topology_api_app = data["topology_api_app"]

    @route(NAME, f"{PATH}/switches", methods=["GET"])
    def list_switches(self, req: Any, **kwargs: Any) -> Response:
        return self._switches(req, **kwargs)

    @route(NAME, f"{PATH}/switches/{{dpid}}", methods=["GET"], requirements=OF_ONE)
    def get_switch(self, req: Any, **kwargs: Any) -> Response:
        return self._switches(req, **kwargs)

    @route(NAME, f"{PATH}/links", methods=["GET"])
    def list_links(self, req: Any, **kwargs: Any) -> Response:
        return self._links(req, **kwargs)

    @route(NAME, f"{PATH}/links/{{dpid}}", methods=["GET"], requirements=OF_ONE)
    def get_links(self, req: Any, **kwargs: Any) -> Response:
        return self._links(req, **kwargs)

    @route(NAME, f"{PATH}/hosts", methods=["GET"])
    def list_hosts(self, req: Any, **kwargs: Any) -> Response:
        return self._hosts(req, **kwargs)

    @route(NAME, f"{PATH}/hosts/{{dpid}}", methods=["GET"], requirements=OF_ONE)
    def get_hosts(self, req: Any, **kwargs: Any) -> Response:
        return self._hosts(req, **kwargs)

    def _switches(self, req: Any, **kwargs: Any) -> Response:
        return self._answer(api.get_switch, kwargs)

    def _links(self, req: Any, **kwargs: Any) -> Response:
        return self._answer(api.get_link, kwargs)

    def _hosts(self, req: Any, **kwargs: Any) -> Response:
        return self._answer(api.get_host, kwargs)

    def _answer(self, ask: Callable[..., Any], given: dict[str, Any]) -> Response:
        dpid = dpid_lib.str_to_dpid(given["dpid"]) if "dpid" in given else None
        found = [each.to_dict() for each in ask(self.topology_api_app, dpid)]
        return Response(content_type="application/json", body=json.dumps(found))

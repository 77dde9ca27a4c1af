"""A page at `/` that draws switches, links and hosts. It asks `rest_topology` for them every two seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from os_ken.app.wsgi import ControllerBase, Response, WSGIApplication, route
from os_ken.base import app_manager

PAGE = Path(__file__).with_name("page.html")


class GUIServerApp(app_manager.OSKenApp):
    """Registers the page."""

    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kwargs["wsgi"].register(GUIServerController)


class GUIServerController(ControllerBase):
    """Returns it."""

    @route("gui_topology", "/", methods=["GET"])
    def page(self, req: Any, **kwargs: Any) -> Response:
        return Response(content_type="text/html", charset="utf-8", body=PAGE.read_bytes())


app_manager.require_app("os_ken.app.rest_topology")

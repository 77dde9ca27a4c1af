"""A REST interface in both styles of Ryu: routes that methods are marked with, and routes of the mapper."""

import json

from ryu.app.wsgi import ControllerBase, Response, WSGIApplication, route, websocket
from ryu.base import app_manager


class Marked(ControllerBase):
    def __init__(self, req, link, data, **config):
        super().__init__(req, link, data, **config)
        self.numbers = data["numbers"]

    @route("numbers", "/numbers/{name}", methods=["GET"], requirements={"name": "[a-z]+"})
    def show(self, req, name, **_):
        if name not in self.numbers:
            return Response(status=404)
        return Response(content_type="application/json", body=json.dumps({name: self.numbers[name]}))

    @route("numbers", "/numbers/{name}", methods=["PUT"], requirements={"name": "[a-z]+"})
    def put(self, req, name, **_):
        self.numbers[name] = req.json
        return Response(status=201)

    @route("numbers", "/text")
    def text(self, req, **_):
        return "grün " + self.parent.registory["Mapped"]

    @route("numbers", "/wrong")
    def wrong(self, req, **_):
        raise RuntimeError("it fails")


class Mapped(ControllerBase):
    def __before__(self):
        self.prepared = "prepared"

    def show(self, req, number, **_):
        return Response(content_type="text/plain", body=f"{self.prepared} {number} {self.data} {req.GET.get('unit')}")


class Rest(app_manager.RyuApp):
    _CONTEXTS = {"wsgi": WSGIApplication}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        wsgi = kwargs["wsgi"]
        wsgi.register(Marked, {"numbers": {"one": 1}})
        wsgi.register(Pushed)
        wsgi.registory["Mapped"] = "registered"
        wsgi.mapper.connect("mapped", "/mapped/{number}", controller=Mapped, action="show", conditions={"method": ["POST"]})


class Pushed(ControllerBase):
    """WebSockets, to which a request sends more than a client that reads nothing can take."""

    @websocket("pushed", "/pushed")
    def pushed(self, ws):
        ws.send("welcome")
        while ws.wait() is not None:
            pass

    @route("pushed", "/push/{number}")
    def push(self, req, number, **_):
        for _ in range(int(number)):
            self.parent.websocketmanager.broadcast("x" * (64 << 10))
        return Response(body=str(len(self.parent.websocketmanager)))

"""What programs import from `ryu.app.wsgi` and `os_ken.app.wsgi`: REST interfaces and WebSockets.

os-ken 3.1.0 has that module no more, and its manager starts no web server. This one is written for how programs use it; WebOb and
Routes do the work, which os-ken needs too. Under eventlet its server answers. Under the native hub that of the standard library
does, with a thread for each connection and without WebSockets. `web_clients` has the limits of both.
"""

from __future__ import annotations

import functools
import inspect
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from types import MethodType
from typing import Any
from wsgiref import simple_server

import webob
import webob.exc
from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.lib import hub
from routes import Mapper
from routes.util import URLGenerator

from .controller import NotStarted
from .web_clients import (
    BEGUN,
    CLIENT_TIMEOUT_S,
    MAX_CONNECTIONS,
    MAX_WEBSOCKETS,
    REQUEST_WITHIN_S,
    RETRY_S,
    Clients,
    QueuedWebSocket,
    WholeRequests,
    is_of_other_page,
)

CONF = cfg.CONF
LOG = logging.getLogger("bellrock.osken")

HEX_PATTERN = r"0x[0-9a-z]+"
DIGIT_PATTERN = r"[1-9][0-9]*"

RPC_NAMES = ("WebSocketRPCClient", "WebSocketRPCServer", "rpc_public")
"""Names that need tinyrpc."""

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


def __getattr__(name: str) -> Any:
    if name not in RPC_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import rpc
    except ModuleNotFoundError as error:
        if error.name != "tinyrpc":
            raise
        raise ImportError(f"{name} needs tinyrpc; install it: pip install tinyrpc") from error
    return getattr(rpc, name)


def route(
    name: str, path: str, methods: list[str] | None = None, requirements: dict[str, str] | None = None
) -> Callable[[Any], Any]:
    """Marks a method of a controller as the one for a path."""

    def mark(method: Any) -> Any:
        method.routing_info = {"name": name, "path": path, "methods": methods, "requirements": requirements}
        return method

    return mark


def websocket(name: str, path: str) -> Callable[[Any], Any]:
    """Marks a method of a controller as the one for the WebSockets of a path. It has the connection until it returns."""

    def mark(method: Any) -> Any:
        @functools.wraps(method)
        def connect(self: ControllerBase, req: Request, **_: Any) -> Any:
            if not hasattr(hub, "WebSocketWSGI"):
                return webob.exc.HTTPNotImplemented("WebSockets need the hub of eventlet")
            if is_of_other_page(req.headers.get("Origin"), req.host):
                return webob.exc.HTTPForbidden("pages of other sites may not open this WebSocket")
            if len(self.parent.websocketmanager) >= MAX_WEBSOCKETS:
                return webob.exc.HTTPServiceUnavailable(f"there are {MAX_WEBSOCKETS} WebSockets already")
            hub.WebSocketWSGI(WebSocketRegistrationWrapper(method, self))(req.environ, req.start_response)
            return _answered

        return route(name, path)(connect)

    return mark


def _answered(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answers nothing: the WebSocket has."""
    return []


class Request(webob.Request):
    """A request, whose text is UTF-8."""

    DEFAULT_CHARSET = "UTF-8"

    def __init__(self, environ: Environ, charset: str = DEFAULT_CHARSET, *args: Any, **kwargs: Any) -> None:
        super().__init__(environ, charset, *args, **kwargs)


class Response(webob.Response):
    """An answer, whose text is UTF-8, of whatever type it is."""

    DEFAULT_CHARSET = "UTF-8"

    def __init__(self, charset: str = DEFAULT_CHARSET, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, charset=charset, **kwargs)


class ControllerBase:
    """Answers a request: the method that the route names gets it. There is one for each request."""

    special_vars = ["action", "controller"]

    def __init__(self, req: Request, link: URLGenerator, data: Any, **config: Any) -> None:
        self.req = req
        self.link = link
        self.data = data
        self.parent: Any = None
        for name, value in config.items():
            setattr(self, name, value)

    def __call__(self, req: Request) -> Any:
        before = getattr(self, "__before__", None)
        if before is not None:
            before()
        variables = {name: value for name, value in self.req.urlvars.items() if name not in self.special_vars}
        return getattr(self, self.req.urlvars.get("action", "index"))(req, **variables)


class WebSocketDisconnectedError(Exception):
    """The client has closed the WebSocket."""


class WebSocketManager:
    """The WebSockets of an application."""

    def __init__(self) -> None:
        self._connections: list[Any] = []

    def __len__(self) -> int:
        return len(self._connections)

    def add_connection(self, ws: Any) -> None:
        self._connections.append(ws)

    def delete_connection(self, ws: Any) -> None:
        self._connections.remove(ws)

    def broadcast(self, msg: Any) -> None:
        """Sends to all of them. It waits for none, and one that is gone costs the others nothing."""
        # One that ends meanwhile leaves the list.
        for connection in list(self._connections):
            try:
                connection.send(msg)
            except OSError:
                continue


class WebSocketRegistrationWrapper:
    """Keeps a WebSocket in its application's list as long as the method has it."""

    def __init__(self, func: Any, controller: ControllerBase) -> None:
        self._serve = MethodType(func, controller)
        self._manager: WebSocketManager = controller.parent.websocketmanager

    def __call__(self, ws: Any) -> None:
        queued = QueuedWebSocket(ws)
        self._manager.add_connection(queued)
        try:
            self._serve(queued)
        finally:
            self._manager.delete_connection(queued)
            queued.finish()


class WSGIApplication:
    """The routes of all apps. They get it as a context."""

    def __init__(self, **config: Any) -> None:
        self.config = config
        self.mapper = Mapper()
        # Programs write to it under this name.
        self.registory: dict[str, Any] = {}
        self.websocketmanager = WebSocketManager()
        # Set by the first `start_service`.
        self.is_served = False

    def register(self, controller: type[ControllerBase], data: Any = None) -> None:
        """Adds the methods of a controller that `route` or `websocket` has marked. `data` goes to the controller."""
        for action, method in inspect.getmembers(controller, inspect.isroutine):
            info = getattr(method, "routing_info", None)
            if info is None:
                continue
            conditions = {"method": info["methods"]} if info["methods"] else {}
            self.mapper.connect(info["name"], info["path"], controller=controller, action=action,
                                requirements=info["requirements"] or {}, conditions=conditions)
        if data:
            self.registory[controller.__name__] = data

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        request.start_response = start_response
        try:
            answer = self._answer(request)
        except webob.exc.HTTPException as error:
            answer = error
        if answer is None:
            answer = Response()
        elif isinstance(answer, (str, bytes)):
            answer = Response(body=answer)
        sent: Iterable[bytes] = answer(environ, start_response)
        return sent

    def _answer(self, request: Request) -> Any:
        found = self.mapper.match(environ=request.environ)
        if not found:
            return webob.exc.HTTPNotFound()
        request.urlvars = found
        kind = found["controller"]
        link = URLGenerator(self.mapper, request.environ)
        controller = kind(request, link, self.registory.get(kind.__name__), **self.config)
        controller.parent = self
        return controller(request)


class WSGIServer:
    """Listens at the address of the options, and answers when it is called."""

    def __init__(self, application: WSGIApplication, **config: Any) -> None:
        address = (CONF.wsapi_host, CONF.wsapi_port)
        try:
            kind = _GreenServer if hub.HUB_TYPE == "eventlet" else _ThreadedServer
            self._server: Any = kind(address, WholeRequests(application))
            bound = self._server.server_address
        except OSError as error:
            raise NotStarted(f"--wsapi-host {address[0]}, --wsapi-port {address[1]}: {error}; choose another port") from error
        LOG.info("REST interfaces of apps: http://%s:%s", *bound[:2])

    def __call__(self) -> None:
        self._server.serve_forever()


class _GreenServer:
    """That of eventlet, which has no limit of its own for clients that are silent."""

    def __init__(self, address: tuple[str, int], application: WholeRequests) -> None:
        self._application = application
        self._socket = hub.listen(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self.server_address = self._socket.getsockname()
        self._clients = Clients()

    def serve_forever(self) -> None:
        import eventlet.wsgi

        clients = self._clients

        class Protocol(eventlet.wsgi.HttpProtocol):
            def get_environ(self) -> Environ:
                environ: Environ = super().get_environ()
                environ[BEGUN] = functools.partial(clients.begin, self.connection)
                return environ

            def handle_one_request(self) -> None:
                clients.wait(self.connection)
                super().handle_one_request()

            def finish(self) -> None:
                try:
                    super().finish()
                finally:
                    clients.leave(self.connection)

        hub.spawn(self._close_late)
        eventlet.wsgi.server(self, self._application, hub.LoggingWrapper(), protocol=Protocol, max_size=MAX_CONNECTIONS,
                             socket_timeout=CLIENT_TIMEOUT_S, keepalive=CLIENT_TIMEOUT_S)

    def _close_late(self) -> None:
        while True:
            hub.sleep(REQUEST_WITHIN_S / 10)
            self._clients.close_late()

    def accept(self) -> tuple[Any, Any]:
        """For eventlet, which takes the server for its socket: accepts a connection that has a place."""
        connection, address = self._socket.accept()
        while len(self._clients) >= MAX_CONNECTIONS:
            self._clients.close_oldest()
            hub.sleep(RETRY_S)
        self._clients.wait(connection)
        return connection, address

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class _ThreadedServer(ThreadingMixIn, simple_server.WSGIServer):
    """With a thread for each connection, of which there are not more than the limit."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], application: WholeRequests) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.clients = Clients()
        super().__init__(address, _Handler)
        self.set_app(application)

    def server_bind(self) -> None:
        # Without a question to the name server for its own name.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        while not self._free.acquire(timeout=RETRY_S):
            self.clients.close_oldest()
        self.clients.wait(request)
        try:
            super().process_request(request, client_address)
        except BaseException:
            # There is no thread that would free its place.
            self._left(request)
            raise

    def service_actions(self) -> None:
        self.clients.close_late()

    def _left(self, request: Any) -> None:
        self.clients.leave(request)
        self._free.release()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._left(request)


class _Handler(simple_server.WSGIRequestHandler):
    timeout = CLIENT_TIMEOUT_S

    def get_environ(self) -> Environ:
        environ: Environ = super().get_environ()
        server: Any = self.server
        environ[BEGUN] = functools.partial(server.clients.begin, self.connection)
        return environ

    def address_string(self) -> str:
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        LOG.info("%s " + format, self.address_string(), *args)


def start_service(app_mgr: AppManager) -> WSGIServer | None:
    """Listens, if an app has routes and nothing serves them yet."""
    for context in app_mgr.contexts.values():
        if isinstance(context, WSGIApplication) and not context.is_served:
            server = WSGIServer(context)
            context.is_served = True
            return server
    return None


def serve_with_apps() -> None:
    """Lets os-ken's manager serve the routes when it starts the apps. A second call changes nothing."""
    instantiate = AppManager.instantiate_apps
    if getattr(instantiate, "serves_routes", False):
        return

    @functools.wraps(instantiate)
    def instantiate_and_serve(self: AppManager, *args: Any, **kwargs: Any) -> list[Any]:
        # A port that is taken ends the start before apps have threads.
        server = start_service(self)
        threads: list[Any] = instantiate(self, *args, **kwargs)
        if server is not None:
            threads.append(_spawn(server))
        return threads

    instantiate_and_serve.serves_routes = True  # type: ignore[attr-defined]
    AppManager.instantiate_apps = instantiate_and_serve


def _spawn(server: WSGIServer) -> Any:
    if hub.HUB_TYPE == "eventlet":
        return hub.spawn(server)
    # One of the hub would keep the process from ending.
    thread = threading.Thread(target=server, name="web", daemon=True)
    thread.start()
    return thread

"""REST interfaces of programs, with both hubs."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from manager import APPS, LIMIT_S, Manager


class Rest:
    """A program with a REST interface."""

    def __init__(self, hub: str) -> None:
        self.manager = Manager(hub, ["--wsapi-host", "127.0.0.1", "--wsapi-port", "0", str(APPS / "rest.py")])
        self.port = int(self.manager.until("REST interfaces of apps: ").strip().rpartition(":")[2])

    def ask(self, path: str, body: object = None, method: str | None = None) -> tuple[int, str, str]:
        """The status, the type and the text of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
                return reply.status, reply.headers["Content-Type"], reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture
def rest(hub: str) -> Iterator[Rest]:
    rest = Rest(hub)
    yield rest
    rest.manager.process.kill()
    rest.manager.ended()


def test_routes_of_both_styles(rest: Rest) -> None:
    assert rest.ask("/numbers/one") == (200, "application/json", '{"one": 1}')
    assert rest.ask("/numbers/two")[0] == 404
    assert rest.ask("/numbers/two", 2, "PUT")[0] == 201
    assert rest.ask("/numbers/two")[2] == '{"two": 2}'
    assert rest.ask("/mapped/7?unit=m", "", "POST") == (200, "text/plain; charset=UTF-8", "prepared 7 registered m")
    # A method returns text.
    assert rest.ask("/text")[2] == "grün registered"
    # A method that the route does not have, a value that it does not allow, and a path without a route.
    for path, body, method in (("/numbers/one", None, "DELETE"), ("/numbers/1", None, None), ("/mapped/7", None, None), ("/", None, None)):
        assert rest.ask(path, body, method)[0] == 404, path


def test_a_method_that_raises_costs_one_request(rest: Rest) -> None:
    assert rest.ask("/wrong")[0] == 500
    rest.manager.until("RuntimeError: it fails")
    assert rest.ask("/numbers/one")[0] == 200


def test_a_taken_port_ends_the_start(rest: Rest, hub: str) -> None:
    second = Manager(hub, ["--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest.port), str(APPS / "rest.py")])
    assert second.ended() == 1
    assert f"--wsapi-port {rest.port}" in second.lines[-1], "".join(second.lines)

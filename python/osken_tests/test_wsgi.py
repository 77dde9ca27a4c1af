"""REST interfaces of programs, with both hubs."""

from __future__ import annotations

import base64
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from bellrock.osken.web_clients import MAX_CONNECTIONS, MAX_WEBSOCKETS, REQUEST_WITHIN_S, Clients, is_of_other_page
from manager import APPS, LIMIT_S, Manager, wait_until


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


    def connect(self, sent: bytes = b"") -> socket.socket:
        """A connection that has sent this."""
        client = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        client.sendall(sent)
        return client

    def web_socket(self, *headers: str) -> tuple[socket.socket, bytes]:
        """A WebSocket, and the first line of the answer."""
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET /pushed HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", *headers, "", ""]
        client = self.connect("\r\n".join(lines).encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (part := client.recv(1)):
            answer += part
        return client, answer.partition(b"\r\n")[0]


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


def test_silent_clients_give_way_to_new_ones(rest: Rest) -> None:
    # Some have sent a part: of the head, or of the body.
    parts = (b"", b"GET /numbers/one HTTP/1.1\r\n", b"PUT /numbers/two HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n2")
    silent = [rest.connect(parts[number % len(parts)]) for number in range(MAX_CONNECTIONS + 50)]
    for _ in range(3):
        assert rest.ask("/numbers/one")[0] == 200
    # The one that has waited longest is closed, and the last one is not.
    silent[0].settimeout(LIMIT_S)
    try:
        assert silent[0].recv(1) == b""
    except ConnectionResetError:
        pass
    silent[-1].setblocking(False)
    with pytest.raises(BlockingIOError):
        silent[-1].recv(1)
    for client in silent:
        client.close()


def test_a_body_is_taken_whole_or_refused(rest: Rest) -> None:
    head = b"PUT /numbers/three HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    for headers, body, status in ((b"Content-Length: 1", b"3", b"201"), (b"Content-Length: 5", b"3", b"400"),
                                  (b"Content-Length: nine", b"", b"400"), (b"Content-Length: 99999999999", b"", b"413")):
        client = rest.connect(head + headers + b"\r\n\r\n" + body)
        client.shutdown(socket.SHUT_WR)
        assert client.makefile("rb").readline().split()[1] == status, headers
        client.close()
    assert rest.ask("/numbers/three")[2] == '{"three": 3}'


def test_web_sockets_are_for_pages_of_their_own_site(rest: Rest, hub: str) -> None:
    if hub == "native":
        assert b" 501 " in rest.web_socket()[1]
        return
    for origin, status in ((None, b" 101 "), (f"http://127.0.0.1:{rest.port}", b" 101 "), ("http://evil.example", b" 403 "),
                           (f"http://evil.example:{rest.port}", b" 403 "), ("null", b" 403 ")):
        client, answer = rest.web_socket(*[f"Origin: {origin}"] if origin else [])
        assert status in answer, (origin, answer)
        client.close()


@pytest.mark.parametrize("origin, host, is_other", [
    (None, "h", False), ("http://h", "h", False), ("https://h", "h", False), ("http://h:80", "h", False), ("http://H:8080", "h:8080", False),
    ("http://[::1]:8080", "[::1]:8080", False), ("https://h", "h:80", True), ("http://h:81", "h", True), ("http://h.evil", "h", True),
    ("null", "h", True), ("", "h", True), ("http://h:x", "h", True)])
def test_pages_of_other_sites(origin: str | None, host: str, is_other: bool) -> None:
    assert is_of_other_page(origin, host) == is_other


def test_a_web_socket_that_takes_nothing_is_closed_and_stops_nobody(rest: Rest, hub: str) -> None:
    if hub == "native":
        pytest.skip("WebSockets need the hub of eventlet")
    slow, _ = rest.web_socket()
    # It reads nothing. Each request sends 6 MB to it, without waiting.
    sent = [rest.ask("/push/100") for _ in range(8)]
    assert {status for status, _, _ in sent} == {200}, sent
    rest.manager.until("a WebSocket is closed: it does not take its messages")
    wait_until(lambda: rest.ask("/push/0")[2] == "0", "the WebSocket has left the list")
    slow.close()


def test_requests_that_do_not_come_in_time_are_closed() -> None:
    now = 0.0
    clients = Clients(lambda: now)
    pairs = [socket.socketpair() for _ in range(3)]
    late, busy, new = (ours for ours, _ in pairs)
    clients.wait(late)
    clients.wait(busy)
    clients.begin(busy)
    now = REQUEST_WITHIN_S + 1.0
    clients.wait(new)
    clients.close_late()
    for (_, theirs), is_open in zip(pairs, (False, True, True), strict=True):
        theirs.setblocking(False)
        if is_open:
            with pytest.raises(BlockingIOError):
                theirs.recv(1)
        else:
            assert theirs.recv(1) == b""
    # One that was answered waits again, behind those that wait already.
    clients.wait(busy)
    clients.close_oldest()
    assert pairs[2][1].recv(1) == b""
    assert len(clients) == 1
    clients.leave(busy)
    assert len(clients) == 0
    for pair in pairs:
        for end in pair:
            end.close()


def test_web_sockets_do_not_get_all_connections(rest: Rest, hub: str) -> None:
    if hub == "native":
        pytest.skip("WebSockets need the hub of eventlet")
    opened = [rest.web_socket() for _ in range(MAX_WEBSOCKETS)]
    assert all(b" 101 " in answer for _, answer in opened)
    further, answer = rest.web_socket()
    assert b" 503 " in answer
    assert rest.ask("/numbers/one")[0] == 200
    for client in (further, *(client for client, _ in opened)):
        client.close()


def test_a_taken_port_ends_the_start(rest: Rest, hub: str) -> None:
    second = Manager(hub, ["--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest.port), str(APPS / "rest.py")])
    assert second.ended() == 1
    assert f"--wsapi-port {rest.port}" in second.lines[-1], "".join(second.lines)

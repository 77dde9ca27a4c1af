"""Requests in the form of Ryu's REST interface, and what they leave in a switch.

The recorder in `vectors/ryu` asks Ryu, and the tests ask the controller.
"""

import json
import urllib.error
import urllib.request

from .openvswitch import command

PORT = 8081
LIMIT_S = 30


def ask(case):
    """The status, and the JSON or the text of the answer to a case."""
    text = case.get("text", json.dumps(case["body"]) if "body" in case else None)
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{case['path']}", text and text.encode(),
                                     method=case["method"])
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
            status, kind, text = reply.status, reply.headers.get("Content-Type", ""), reply.read().decode()
    except urllib.error.HTTPError as error:
        status, kind, text = error.code, error.headers.get("Content-Type", ""), error.read().decode()
    answer = json.loads(text) if kind.startswith("application/json") and text else text
    if "first" in case and isinstance(answer, dict):
        answer = {dpid: rows[:case["first"]] for dpid, rows in answer.items()}
    return status, answer


def tables(version):
    """The flows, groups and meters of the first switch, without counters."""
    def dump(what, *options):
        printed = command("ovs-ofctl", "-O", version, *options, what, "s1")
        return sorted(line.strip() for line in printed.splitlines() if not line.startswith("OFPST"))
    state = {"flows": dump("dump-flows", "--no-stats")}
    if version == "OpenFlow13":
        state |= {"groups": dump("dump-groups"), "meters": dump("dump-meters")}
    return state

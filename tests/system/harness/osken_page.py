"""The manual's page about Ryu's applications, from the tests that run them."""

from pathlib import Path

from .python import ROOT, python

PAGE = ROOT / "docs" / "book" / "src" / "reference" / "os-ken-applications.md"

PYTHON_2 = "It calls `buffer`, a function of Python 2, and so fails at each packet, also with os-ken. That of OpenFlow 1.3 runs"
# Those that no test runs, and why.
NOT_RUN = {
    "rest_vtep": "Not tested: it starts, and wants two machines with BGP and VXLAN",
    "simple_switch_12": "It wants OpenFlow 1.2 only, which Bellrock does not speak",
    "simple_switch_14": "It wants OpenFlow 1.4 only, which Bellrock does not speak",
    "simple_switch_15": "It wants OpenFlow 1.5 only, which Bellrock does not speak",
    "simple_switch_snort": "Not tested: it wants Snort, and prints its alerts by joining bytes as text, which Python 3 refuses",
    "simple_switch_igmp": PYTHON_2,
    "simple_switch_lacp": PYTHON_2,
    "simple_switch_stp": PYTHON_2,
}
REFUSED = ("simple_switch_12", "simple_switch_14", "simple_switch_15")

HEAD = """\
# Ryu's applications

Ryu came with applications, and so did os-ken until it dropped them. [Programs of Ryu and os-ken](../guide/os-ken.md) run on Bellrock as
they are, and so do these. The tests run those of os-ken 1.4.1, where they are Ryu's with other names of modules, on os-ken 3.1.0 and
Bellrock. The page is made by these tests.

Without more, six are there, since most programs extend or require them: `simple_switch`, `simple_switch_13`, `simple_monitor_13`,
`rest_topology`, `ws_topology` and `gui_topology.gui_topology`. They are Bellrock's own, with the classes, methods and attributes of Ryu's;
the page of the last one is Bellrock's too, and does not need `ofctl_rest`. With Ryu's sources in
`PYTHONPATH`, the names find those of Ryu, and all others:

```sh
PYTHONPATH=~/ryu bellrock osken-manager --observe-links ryu.app.rest_topology ryu.app.simple_switch_13
```

The REST interfaces listen on port 8080 of all addresses, as with Ryu; `--wsapi-host` and `--wsapi-port` change that. os-ken 3.1.0 has
no server for them any more, so `osken-manager` cannot run the applications with one; Bellrock's own module takes the place of
`ryu.app.wsgi`. WebSockets need the hub of eventlet, and those with calls `pip install tinyrpc`. `rest_qos` asks the
database of Open vSwitch by os-ken's library, which needs `pip install 'ovs<2.17'`.

## What runs

Without another remark with OpenFlow 1.3, on Open vSwitch, under eventlet.

| Application | What the tests see it do |
|---|---|
"""

MIDDLE = """
## What does not run

| Application | Why |
|---|---|
"""


def modules():
    """The names of all applications, from the environment of the tests."""
    [folder] = Path(python("tests-osken")).parent.parent.glob("lib/python3*/site-packages/os_ken/app")
    found = (file.relative_to(folder).with_suffix("") for file in folder.rglob("*.py"))
    return {".".join(file.parts) for file in found if file.name != "__init__"}


def applications(tests):
    """Applications that tests run, each with what they see."""
    found = {}
    # In the order of the modules.
    for test in tests:
        method = getattr(test, test._testMethodName)
        for name, what in getattr(method, "applications", ()):
            if what not in found.setdefault(name, []):
                found[name].append(what)
    return found


def page(tests):
    """The text of the page."""
    rows = [f"| `{name}` | {'. '.join(what)} |\n" for name, what in sorted(applications(tests).items())]
    others = [f"| `{name}` | {why} |\n" for name, why in sorted(NOT_RUN.items())]
    return HEAD + "".join(rows) + MIDDLE + "".join(others)

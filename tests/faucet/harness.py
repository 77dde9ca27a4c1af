"""Runs one class of Faucet's integration tests. The interpreter of Faucet's environment calls it, in namespaces of the class.

    python harness.py SOURCE RESULT.json CLASS      runs it, and writes what Faucet's harness reports
    python harness.py SOURCE --list                 writes all classes, and their methods, as JSON to standard output

Faucet's harness expects a machine of its own, with modules of the kernel that are often not there. What is set here:

- Open vSwitch forwards in user space (`OVS_TYPE`), so that the kernel's module is not needed.
  It removes the interface of a bridge with the bridge, which Mininet does not expect (`may_fail`).
- Links have no delay (`DELAY`), for which tc would need netem.
- Hosts compute their checksums (`tx off`), since the datapath in user space takes frames as they are.
- Tagged interfaces come from `tagging.py` where the kernel has no 8021q.
- There is a default route (`UPLINK`): without one Scapy does not send what Faucet's own check of it sends.
- A busy machine is not a reason to give up (`_wait_load`), and a port that was free is free again (`MIN_PORT_AGE`): its namespace has
  no other users.
"""

import inspect
import json
import os
import subprocess
import sys

import tagging

UPLINK = ("link add name uplink type veth peer name nowhere", "link set nowhere up", "link set uplink up", "address add 192.0.2.1/24 dev uplink",
          "route add default via 192.0.2.2")
MODULES = ("mininet_tests", "mininet_multidp_tests", "clib_mininet_tests")


def load(source):
    """Imports Faucet's tests, with the settings above. Returns the modules of classes."""
    sys.path[:0] = [source, os.path.join(source, "clib"), os.path.join(source, "tests", "integration")]
    import clib.config_generator as generator
    import clib.mininet_test_base as base
    import clib.mininet_test_topo as topo
    import clib.mininet_test_util as util

    base.FaucetTestBase.OVS_TYPE = "user"
    base.FaucetTestBase._wait_load = lambda self, load_retries=0: None
    topo.FaucetSwitchTopo.DELAY = generator.FaucetTopoGenerator.DELAY = None
    util.MIN_PORT_AGE = 0
    workaround = topo.FaucetSwitch._workaround

    def may_fail(words):
        return words[0] == "ip link del" or workaround(words)

    topo.FaucetSwitch._workaround = staticmethod(may_fail)
    configure = topo.FaucetHost.config

    def config(self, **params):
        result = configure(self, **params)
        for name in self.intfNames():
            self.cmd(f"ethtool -K {name} tx off")
        return result

    topo.FaucetHost.config = config
    return [__import__(name) for name in MODULES]


def classes(modules):
    """All classes that Faucet's harness would run, by name."""
    found = {name: value for module in modules for name, value in inspect.getmembers(module, inspect.isclass)
             if name.startswith("Faucet") and name.endswith("Test")}
    return dict(sorted(found.items()))


def describe(value):
    """Methods of a class."""
    return {"module": value.__module__, "methods": [name for name in dir(value) if name.startswith("test")]}


def main(source, *words):
    os.chdir(source)
    if words == ("--list",):
        json.dump({name: describe(value) for name, value in classes(load(source)).items()}, sys.stdout)
        return
    # Scapy looks at the routes when it is imported.
    for command in UPLINK:
        subprocess.run(["ip", *command.split()], check=True)
    modules = load(source)
    result, name = words
    os.environ["PATH"] = tagging.path(os.environ["PATH"])
    # -n: the dependencies that are missing here matter to single classes only.
    sys.argv = ["mininet_main.py", "-n", "-s", "--retries", "1", "--order", "0,1,2,3", "--port", "1", "--jsonreport", result, name]
    from clib.clib_mininet_test_main import test_main

    test_main([module.__name__ for module in modules])


if __name__ == "__main__":
    main(*sys.argv[1:])

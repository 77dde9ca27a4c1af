"""What Open vSwitch's log says about elections: which controller a switch obeys, at each moment, and what it was sent by
those that it does not obey.

Open vSwitch handles messages in one thread and logs each one (`trace`). The order of the lines is the order in which it has
handled them. All targets of all switches must differ, since a line names the target and not the switch.
"""

import re

from .openvswitch import command

LINE = re.compile(r"\|vconn\|DBG\|(\S+): (received|sent \(Success\)): (.*)$")
CONNECTED = re.compile(r"\|rconn\|INFO\|\S+<->(\S+): connected")
ROLE = re.compile(r"^(?:OFPT|NXT)_ROLE_(REQUEST|REPLY) .*?role=(\S+)(?: generation_id=(\d+))?")
STATUS = re.compile(r"ROLE_STATUS .*?role=(\S+)")
# Messages that change a switch, or what it forwards.
CHANGES = ("OFPT_FLOW_MOD", "OFPT_GROUP_MOD", "OFPT_METER_MOD", "OFPT_PORT_MOD", "OFPT_TABLE_MOD", "OFPT_PACKET_OUT",
           "OFPT_SET_CONFIG", "OFPT_BUNDLE", "NXT_FLOW_MOD")
# Of a slave, Open vSwitch takes only what concerns the slave's own connection from it.
IGNORED = "OFPT_SET_CONFIG"
XID = re.compile(r"\(xid=(0x[0-9a-f]+)\)")
REFUSED = "OFPBRC_IS_SECONDARY"
# As Open vSwitch 3 calls them.
EQUAL, MASTER, SLAVE = "equal", "primary", "secondary"


def trace():
    """Makes Open vSwitch log every message. It is for switches whose packets do not all go to a controller."""
    command("ovs-appctl", "vlog/set", "vconn:file:dbg")
    command("ovs-appctl", "vlog/disable-rate-limit", "vconn")


class Elections:
    """The elections of one Open vSwitch. `owners`: (switch, node) by target."""

    def __init__(self, log, owners):
        self.log = log
        self.owners, self.roles = {}, {}
        self.add(owners)
        self.read_bytes = 0
        # That of the line that is read, in UTC.
        self.time = ""
        self.newest = {}
        self.requested = {}
        # Masters in their order, by switch.
        self.history = {}
        # Messages that were obeyed, by (switch, node), and those that were refused.
        self.obeyed, self.refused = {}, {}
        self.unanswered = {}
        self.violations = []

    def add(self, owners):
        """More targets."""
        self.owners |= owners
        self.roles |= {owner: EQUAL for owner in owners.values()}

    def update(self):
        """Reads what has been logged since."""
        with open(self.log, "rb") as log:
            log.seek(self.read_bytes)
            whole, _, _ = log.read().rpartition(b"\n")
        self.read_bytes += len(whole) + (1 if whole else 0)
        for line in whole.decode(errors="replace").splitlines():
            self.time = line[:len("2026-01-31T00:00:00.000")]
            if found := CONNECTED.search(line):
                if found[1] in self.owners:
                    self.roles[self.owners[found[1]]] = EQUAL
            elif (found := LINE.search(line)) and found[1] in self.owners:
                self._message(self.owners[found[1]], found[2] == "received", found[3])
        return self

    def masters(self):
        """The node that each switch obeys."""
        return {switch: node for (switch, node), role in self.update().roles.items() if role == MASTER}

    def _message(self, owner, received, text):
        switch, node = owner
        xid = XID.search(text)
        key = (owner, xid and xid[1])
        if received:
            # A request for "nochange" only asks for the role.
            if (found := ROLE.search(text)) and found[2] in (MASTER, SLAVE):
                self.requested[key] = found[3] and int(found[3])
            elif text.startswith(CHANGES):
                self._change(owner, key, text)
            return
        if REFUSED in text:
            if self.unanswered.pop(key, None) is not None:
                self.refused[owner] = self.refused.get(owner, 0) + 1
        elif found := STATUS.search(text):
            self.roles[owner] = found[1]
        elif (found := ROLE.search(text)) and found[1] == "REPLY" and key in self.requested:
            self._elected(switch, node, found[2], self.requested.pop(key))

    def _elected(self, switch, node, role, generation):
        owner = (switch, node)
        self.roles[owner] = role
        if role != MASTER:
            return
        for other in self.roles:
            if other[0] == switch and other != owner and self.roles[other] == MASTER:
                self.roles[other] = SLAVE
        before = self.newest.get(switch)
        if generation is None:
            self.violations.append(f"{switch}: {node} is master without an election")
        elif before is not None and (generation < before[0] or generation == before[0] and node != before[1]):
            self.violations.append(f"{switch}: {node} is master by {generation}, after {before[1]} by {before[0]}")
        self.newest[switch] = (generation, node)
        history = self.history.setdefault(switch, [])
        if not history or history[-1] != node:
            history.append(node)

    def _change(self, owner, key, text):
        role = self.roles[owner]
        if role == MASTER:
            self.obeyed[owner] = self.obeyed.get(owner, 0) + 1
        elif role == SLAVE and not text.startswith(IGNORED):
            # Open vSwitch must refuse it.
            self.unanswered[key] = text
        elif role == EQUAL:
            self.violations.append(f"{owner[0]} obeys {owner[1]}, which no election has made its master: {text}")

    def faults(self):
        """What must never be: two masters, or a message of a node that is no master and was not refused."""
        self.update()
        obeyed = [f"{owner[0]} does not refuse {owner[1]}, which is slave: {text}"
                  for (owner, _), text in self.unanswered.items()]
        return self.violations + obeyed

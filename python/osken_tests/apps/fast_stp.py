"""No app: gives the spanning tree of os-ken's library shorter timers, so that a test need not wait for its 30 s."""

from os_ken.lib import stplib

stplib.Bridge._DEFAULT_VALUE.update({"hello_time": 1, "fwd_delay": 3})

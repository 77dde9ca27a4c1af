"""Ctrl-C under eventlet: it ends the manager, whatever runs when it comes.

Python raises `KeyboardInterrupt` in what runs. With green threads that is mostly a handler of an app, whose loop in os-ken
catches everything and goes on.
"""

from __future__ import annotations

import os
import signal

MAX_SIGNALS = 64
"""Signals that are read at once, a byte each."""


def raise_in_main() -> None:
    """Lets SIGINT raise `KeyboardInterrupt` in the green thread that calls this. A second one is as without this."""
    import eventlet
    from eventlet.hubs import get_hub, trampoline

    main = eventlet.getcurrent()
    signals, written = os.pipe()
    for end in (signals, written):
        os.set_blocking(end, False)

    def wait() -> None:
        while True:
            trampoline(signals, read=True)
            if signal.SIGINT in os.read(signals, MAX_SIGNALS):
                break
        signal.signal(signal.SIGINT, signal.default_int_handler)
        get_hub().schedule_call_global(0, main.throw, KeyboardInterrupt)

    # The interpreter writes there at once, which wakes the hub.
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)
    eventlet.spawn(wait)

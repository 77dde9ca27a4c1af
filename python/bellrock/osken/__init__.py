"""Programs for Ryu and os-ken on Bellrock's engine.

``python -m bellrock.osken APP...`` is osken-manager with another engine: os-ken 3.1.0 is installed beside this package, and
nothing of it is copied. Its events, dispatchers, parsers and libraries stay; what listens, reads and writes is Bellrock.

- `controller`: what takes the place of os-ken's `OpenFlowController`. It takes events of switches, and gives them out.
- `datapath`: a `Datapath` whose connection is Bellrock's.
- `lengths`: finds messages that os-ken's parsers would read for ever.
- `fast`: what os-ken does for each packet, done by the native half.
- `settings`: options of osken-manager become settings of Bellrock.
- `engine_log`: lines of Bellrock's log go where those of os-ken go.
- `interrupt`: Ctrl-C ends the manager under eventlet too.
- `ryu_names`: `import ryu...` finds the modules of os-ken.
- `wsgi` and `rpc`: REST interfaces and WebSockets of apps, which os-ken has no more.

A program with a main of its own calls `install` before it starts the apps.
"""

from __future__ import annotations

__all__ = ["install"]


def install() -> None:
    """Puts Bellrock under os-ken, and lets `ryu...` be imported. Call it after os-ken's hub has patched what it patches."""
    from os_ken.controller import ofp_handler

    from . import controller, fast, ryu_names, settings, wsgi

    settings.register()
    ryu_names.install()
    wsgi.serve_with_apps()
    fast.install()
    # The one place where os-ken takes its engine from.
    ofp_handler.OpenFlowController = controller.BellrockController

"""Programs for Ryu and os-ken on Bellrock's engine.

``python -m bellrock.osken APP...`` is osken-manager with another engine: os-ken 3.1 is installed beside this package, and
nothing of it is copied. Its events, dispatchers, parsers and libraries stay; what listens, reads and writes is Bellrock.

- `controller`: what takes the place of os-ken's `OpenFlowController`. It takes events of switches, and gives them out.
- `datapath`: a `Datapath` whose connection is Bellrock's.
- `lengths`: finds messages that os-ken's parsers would read for ever.
- `fast`: what os-ken does for each packet, done by the native half.
- `settings`: options of osken-manager become settings of Bellrock.
- `engine_log`: lines of Bellrock's log go where those of os-ken go.
- `interrupt`: Ctrl-C ends the manager under eventlet too.
- `ryu_names`: `import ryu...` finds the modules of os-ken.
- `apps`: applications of Ryu that programs extend.
- `manager`: what is around os-ken's manager.
- `old_python`: names programs of Python 2.
- `wsgi` and `rpc`: REST interfaces and WebSockets of apps, which os-ken has no more.

A program with a main of its own runs by `python -m bellrock.osken.program`, or calls `install` before it imports `ryu`.
"""

from __future__ import annotations

__all__ = ["install"]


def install() -> None:
    """Puts Bellrock under os-ken, and lets `ryu...` be imported. Call it after os-ken's hub has patched what it patches."""
    from os_ken.controller import ofp_handler

    from . import controller, fast, manager, old_python, ryu_names, settings, wsgi

    manager.prepare_hub()
    settings.register()
    old_python.install()
    ryu_names.install()
    wsgi.serve_with_apps()
    fast.install()
    # The one place where os-ken takes its engine from.
    ofp_handler.OpenFlowController = controller.BellrockController

"""Lines that apps log, without a record for each.

An app's logger hands what it logs to handlers, as a record with the caller's file and line, the thread and the time. The handler
that osken-manager installs writes only the text. Where that is the only handler, and nothing else would see the record, the text
is written at once: the same bytes, in the same order, flushed before the call returns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from typing import Any


def install() -> None:
    """Gives loggers that are made from now on a class that writes plain lines itself."""
    base: Any = logging.getLoggerClass()

    class BellrockLogger(base):
        """A logger that writes lines itself where a record would have no other use."""

        def _log(self, level: int, msg: Any, args: Any, exc_info: Any = None, extra: Any = None, stack_info: bool = False,
                 stacklevel: int = 1) -> None:
            if exc_info is None and extra is None and not stack_info and (handler := _only_handler(self, level)) is not None:
                try:
                    text = str(msg)
                    if args:
                        # As a record does.
                        if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
                            args = args[0]
                        text = text % args
                except Exception:
                    # The handler reports it, with the record.
                    pass
                else:
                    _write(handler, text, lambda: self.makeRecord(self.name, level, "", 0, msg, args, None))
                    return
            super()._log(level, msg, args, exc_info, extra, stack_info, stacklevel)

    # The caller of the logger is looked for above the frames of the logging package.
    for function in (BellrockLogger._log, _write):
        function.__code__ = function.__code__.replace(co_filename=str(logging._srcfile))
    logging.setLoggerClass(BellrockLogger)


def _write(handler: Any, text: str, record: Callable[[], logging.LogRecord]) -> None:
    """Writes a line. If it cannot be written, the handler reports that for the record."""
    lock, stream = handler.lock, handler.stream
    # A lock of green threads is slow. If it is free, no other green thread can take it before the line is written, since such
    # a stream does not switch to others. Locks of threads do not show their owner.
    is_needed = getattr(lock, "_owner", lock) is not None or type(stream) is not TextIOWrapper
    if is_needed:
        lock.acquire()
    try:
        stream.write(text + handler.terminator)
        stream.flush()
    except RecursionError:
        raise
    except Exception:
        handler.handleError(record())
    finally:
        if is_needed:
            lock.release()


def _only_handler(logger: logging.Logger, level: int) -> Any:
    """The one handler to which a record would go, if it writes nothing but the text, and nothing else sees the record."""
    if logger.filters or logger.disabled or logging.getLogRecordFactory() is not logging.LogRecord:
        return None
    found = None
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            if found is not None or type(handler) is not logging.StreamHandler:
                return None
            found = handler
        if not at.propagate:
            break
        at = at.parent
    if found is None or found.formatter is not None or found.filters or level < found.level:
        return None
    return found

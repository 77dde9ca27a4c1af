"""Waiting for something to become true, always with an end."""

import time

POLL_S = 0.05


def until(condition, limit_s, what):
    """Polls `condition` until it is true and returns its value; after `limit_s` seconds fails, naming `what`."""
    deadline = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(POLL_S)

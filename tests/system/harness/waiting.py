"""Waits until a condition is true, always with a time limit."""

import time

POLL_S = 0.05


def until(condition, limit_s, what, poll_s=POLL_S):
    """Polls `condition` until it is true and returns its value. After `limit_s` seconds it fails and names `what`."""
    deadline = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(poll_s)

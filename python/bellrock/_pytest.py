"""What the package adds to pytest: the fixture `make_lab`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .lab import Lab


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """Makes labs, with the arguments of `bellrock.lab.Lab`. At the end, the test fails if an app of one of
    them has raised an exception."""
    # Not above: tests of other packages need not load it.
    from .lab import Lab

    labs: list[Lab] = []

    def make(*args: object, **keywords: object) -> Lab:
        labs.append(Lab(*args, **keywords))  # type: ignore[arg-type]
        return labs[-1]

    yield make
    raised = [error for lab in labs for error in lab.exceptions]
    if raised:
        raise AssertionError(f"exceptions of apps: {len(raised)}; the first one is above") from raised[0]

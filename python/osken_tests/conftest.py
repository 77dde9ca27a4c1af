"""Programs that the tests start are no tests."""

import pytest

collect_ignore = ["apps"]
HUBS = ["eventlet", "native"]


@pytest.fixture(params=HUBS)
def hub(request: pytest.FixtureRequest) -> str:
    """Each hub of os-ken."""
    return str(request.param)

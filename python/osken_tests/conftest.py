"""Programs that the tests start are no tests."""

collect_ignore = ["apps"]

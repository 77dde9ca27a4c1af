"""Parts of the system tests: a controller, Open vSwitch, Mininet, a capture, and a fake switch for each test."""

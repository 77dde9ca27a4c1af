"""What the system tests stand on: a controller, an Open vSwitch and a Mininet of their own, a capture, a fake switch."""

"""The topology as a page: `gui_topology.gui_topology`, as Ryu calls it."""

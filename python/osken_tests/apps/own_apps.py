"""Lets applications of Ryu be those of Bellrock, also where os-ken's old ones are installed."""

from bellrock.osken import ryu_names

ryu_names.OWN.update({f"os_ken.app.{name}": f"bellrock.osken.apps.{name}" for name in ryu_names.APPS})

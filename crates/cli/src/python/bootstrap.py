# Runs a controller with the package bellrock. `bellrock run` gives this text to Python, so it works in all versions.
import sys

# How to get the package: the command puts it here.
ADVICE = "@ADVICE@"

# What lies in the current folder is not the package.
if sys.path[:1] == [""]:
    del sys.path[0]


def missing(why):
    version = ".".join(str(part) for part in sys.version_info[:3])
    sys.exit("bellrock: %s (Python %s) %s" % (sys.executable, version, why))


try:
    from bellrock._command import main
except ImportError as error:
    if getattr(error, "name", None) == "bellrock":
        missing("has no package bellrock, which apps in Python need. " + ADVICE.replace("@PYTHON@", sys.executable))
    if getattr(error, "name", None) == "bellrock._command":
        missing("has a package bellrock of another version. " + ADVICE.replace("@PYTHON@", sys.executable))
    missing("cannot load the package bellrock: %s" % error)
sys.exit(main(sys.argv[1]))

# Reports this interpreter and its package bellrock, as a line of JSON. `bellrock doctor` gives this text to Python, so
# it works in all versions.
import json
import sys

# What lies in the current folder is not the package.
if sys.path[:1] == [""]:
    del sys.path[0]
package, error, is_missing = None, None, False
try:
    import bellrock

    # The command needs it. Packages of early versions have none.
    import bellrock._command

    package = getattr(bellrock, "__version__", None)
except Exception as raised:
    error = str(raised) or type(raised).__name__
    is_missing = isinstance(raised, ImportError) and getattr(raised, "name", None) == "bellrock"
report = {
    "executable": sys.executable,
    "python": list(sys.version_info[:3]),
    "package": package,
    "error": error,
    "is_missing": is_missing,
}
print("\n" + json.dumps(report))

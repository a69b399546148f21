"""The sentence for a package of an extra that is not installed."""


def describe_missing(package: str, extra: str) -> str:
    """Say which package is missing, and how it is installed: from a clone, as in the README."""
    install = f"`pip install '.[{extra}]'`"
    return f"the package {package} is not installed; in a clone of Herdbook, {install} brings it"

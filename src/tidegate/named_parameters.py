"""Parses the parameters after the name of a policy or a partitioner: `lm?d=3&p=0.2`."""

from __future__ import annotations

from tidegate.errors import OptionError


def parameters_of(text: str, where: str) -> list[tuple[str, str]]:
    """The parameters after the name, as written; OptionError if they are malformed."""
    name, _, written = text.partition("?")
    found: list[tuple[str, str]] = []
    for part in written.split("&") if written else ():
        key, sign, value = part.partition("=")
        if not sign or not value:
            raise OptionError(where, f"must look like {name}?parameter=value", text)
        if key in dict(found):
            raise OptionError(where, f"{name} takes each parameter once", f"{key} twice")
        found.append((key, value))
    return found

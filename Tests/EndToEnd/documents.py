"""Programs in the documentation, which are run as they are printed there."""

import re


def program(text: str, name: str) -> str:
    """The block of code whose first line names it."""
    blocks = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    found = [block for block in blocks if re.match(rf"(#|//) {re.escape(name)}\b", block)]
    assert len(found) == 1, f"{len(found)} blocks are called {name}"
    return found[0]

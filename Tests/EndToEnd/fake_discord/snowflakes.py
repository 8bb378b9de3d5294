"""Discord's IDs. A snowflake holds the time it was made at, which clients read back."""

import itertools
import time

#: Discord's epoch: the first second of 2015, in milliseconds.
EPOCH_MS = 1_420_070_400_000

_increments = itertools.count(1)


def snowflake() -> int:
    """An ID made now, unlike every other of this process."""
    return (time.time_ns() // 1_000_000 - EPOCH_MS) << 22 | next(_increments) & 0x3FFFFF

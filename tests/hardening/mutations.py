"""Random damage to bytes and to nested plain values."""

from __future__ import annotations

import copy
import random
from typing import Any

_STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    "",
    "a",
    "../../etc/passwd",
    "/dev/zero",
    "os:system",
    "\x00",
    "\ud800",
    "😀" * 50,
    "9" * 5000,
    [],
    [[]],
    {},
    [0.0, float("nan")],
    {"": {}},
    {"kind": "torch", "factory": "os:getcwd"},
)


def damage_bytes(data: bytes, generator: random.Random) -> bytes:
    """Flip, cut, repeat or insert a few bytes."""
    damaged = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 8))):
        place = generator.randrange(len(damaged) + 1)
        action = generator.randrange(5)
        if action == 0 and place < len(damaged):
            damaged[place] = generator.randrange(256)
        elif action == 1:
            del damaged[place : place + generator.choice((1, 4, 100, 10**6))]
        elif action == 2:
            damaged[place:place] = generator.randbytes(generator.choice((1, 4, 100)))
        elif action == 3:
            damaged[place:place] = damaged[: generator.choice((4, 100))]
        elif place < len(damaged):
            damaged[place] ^= 1 << generator.randrange(8)
    return bytes(damaged)


def damage_values(values: Any, generator: random.Random) -> Any:
    """A copy of nested dictionaries and lists in which one to three entries are replaced, removed, added or swapped."""
    damaged = copy.deepcopy(values)
    for _ in range(generator.choice((1, 1, 2, 3))):
        places = list(_containers(damaged))
        if not places:
            break
        container = generator.choice(places)
        keys: list[Any] = list(container) if isinstance(container, dict) else list(range(len(container)))
        action = generator.randrange(6)
        if action == 0 and keys:
            del container[generator.choice(keys)]
        elif action == 1 and isinstance(container, dict):
            container[generator.choice(("", "extra", *map(str, keys)))] = copy.deepcopy(generator.choice(_STRANGE))
        elif action == 2 and isinstance(container, list):
            container.append(copy.deepcopy(generator.choice((*_STRANGE, *container))))
        elif action == 3 and len(keys) > 1:
            first, second = generator.sample(keys, 2)
            container[first], container[second] = container[second], container[first]
        elif keys:
            key = generator.choice(keys)
            old = container[key]
            if isinstance(old, int | float) and abs(old) < 1e300 and generator.random() < 0.5:
                container[key] = generator.choice((-old, old + 1, old * 1e9, old / 3, str(old), [old]))
            else:
                container[key] = copy.deepcopy(generator.choice(_STRANGE))
    return damaged


def _containers(values: Any):
    if isinstance(values, dict | list):
        yield values
        for inner in values.values() if isinstance(values, dict) else values:
            yield from _containers(inner)

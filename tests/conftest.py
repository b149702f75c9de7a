"""Check array shapes and types of every call into the package while the tests run, and leave nothing to chance."""

import random
from collections.abc import Generator
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings

# Beartype looks at random members of long containers: with a generator of its own, the global one stays untouched.
with mock.patch("random.getrandbits", random.Random(0).getrandbits):
    import beartype  # noqa: F401
    import rich.style  # noqa: F401 (numbers its styles from one at random)

from tests.checking import check_calls

check_calls("localsmooth")

from tests.order import place  # noqa: E402
from tests.seeding import untouched  # noqa: E402

# The same examples in every run, however slow the machine is.
settings.register_profile("localsmooth", derandomize=True, deadline=None)
settings.load_profile("localsmooth")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run files, and tests in them, in another order")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.shuffle is not None:
        terminalreporter.write_line(f"the same order again: --shuffle {config.option.shuffle}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.shuffle is not None:
        stream = random.Random(config.option.shuffle)
        files = {item.path: stream.random() for item in items}
        items.sort(key=lambda item: (files[item.path], stream.random()))
    else:
        items.sort(key=lambda item: place(item.path))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    with untouched():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    with untouched():
        return (yield)

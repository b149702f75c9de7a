"""The little of the WebDriver protocol that the browser test needs, over the standard library."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-dev-shm-usage", "--window-size=1320,1400",
)  # fmt: skip


def find_browser() -> tuple[str, str] | None:
    """Paths of the driver and the browser, if both are installed."""
    driver = shutil.which("chromedriver")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return (driver, browser) if driver and browser else None


class Session:
    """An open browser window."""

    def __init__(self, address: str, session: str) -> None:
        self.address = f"{address}/session/{session}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return request(method, self.address + path, body)

    def open(self, page: Path) -> None:
        self.call("POST", "/url", {"url": page.as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def settle(self) -> None:
        """Wait until two frames have been drawn."""
        wait = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)));"
        self.call("POST", "/execute/async", {"script": wait, "args": []})

    def press(self, selector: str, keys: str) -> None:
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(element.values()))}/value", {"text": keys})
        self.settle()

    def console(self) -> list[dict[str, Any]]:
        return self.call("POST", "/se/log", {"type": "browser"})


def request(method: str, address: str, body: dict[str, Any] | None = None) -> Any:
    content = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
    sent = urllib.request.Request(address, content, {"Content-Type": "application/json"}, method=method)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(sent, timeout=120) as answer:
        return json.load(answer)["value"]


@contextmanager
def open_browser(driver: str, browser: str) -> Iterator[Session]:
    """Start the driver and a headless browser, and stop both in the end."""
    process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        port = next(found[1] for line in process.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        address = f"http://127.0.0.1:{port}"
        wanted = {
            "goog:chromeOptions": {"binary": browser, "args": list(ARGUMENTS)},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = request("POST", address + "/session", {"capabilities": {"alwaysMatch": wanted}})
        session = Session(address, answer["sessionId"])
        try:
            yield session
        finally:
            session.call("DELETE", "")
    finally:
        process.terminate()
        process.wait(timeout=30)

"""A real browser on the test's own event loop: Chromium without a window, driven through its debugging pipe.

The protocol is Chromium's own (https://chromedevtools.github.io/devtools-protocol): JSON messages that end with a zero byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Tab", "browsing"]

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # it refuses to be root's otherwise
    "--no-proxy-server",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_S = 30.0
"""Longest wait for a browser on a busy machine to start, or to load a page."""
MOST_BYTES = 16 * 1024 * 1024

AWAITED = """new Promise((resolve) => {
    const look = () => { const found = (%s); if (found) { observer.disconnect(); resolve(found); } };
    const observer = new MutationObserver(look);
    observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
    look();
})"""


class Tab:
    """One page."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._numbers = itertools.count(1)
        self._session: dict[str, str] = {}

    async def begin(self) -> None:
        """Open an empty page and speak to it from now on."""
        target = await self._call("Target.createTarget", url="about:blank")
        attached = await self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        await self._call("Page.enable")

    async def open(self, url: str) -> None:
        """Load a page and wait for it."""
        async with asyncio.timeout(START_S):
            await self._call("Page.navigate", url=url)
            while (await self._message()).get("method") != "Page.loadEventFired":
                pass

    async def close_browser(self) -> None:
        """Let it end by itself, for it tidies up behind itself."""
        self._session = {}
        async with asyncio.timeout(START_S):
            await self._call("Browser.close")
            await self._out.read()

    async def evaluate(self, expression: str) -> Any:
        """Return what JavaScript says; a promise is waited for."""
        answer = await self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def when(self, expression: str, patience_s: float) -> Any:
        """Return the value of an expression once it is true; it is looked at whenever the page changes."""
        async with asyncio.timeout(patience_s):
            return await self.evaluate(AWAITED % expression)

    async def _call(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._in.write(json.dumps({"id": number, "method": method, "params": params, **self._session}).encode() + b"\0")
        await self._in.drain()
        while (answer := await self._message()).get("id") != number:
            pass  # something happened in the page
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    async def _message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self._out.readuntil(b"\0"))[:-1])
        return found


@contextlib.asynccontextmanager
async def browsing(profile: Path) -> AsyncIterator[Tab]:
    """Start a browser with a profile of its own and yield its tab; skip the test where none is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium is installed; Debian's package chromium has it")
    # It reads from descriptor 3 and writes to 4, which are the ends of pipes that a process has as 0 and 1.
    command = ["sh", "-c", 'exec "$@" 3<&0 4>&1 0</dev/null 1>/dev/null', "sh", program, *SWITCHES, f"--user-data-dir={profile}"]
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=nowhere, limit=MOST_BYTES)
    try:
        tab = Tab(process)
        async with asyncio.timeout(START_S):
            await tab.begin()
        yield tab
        await tab.close_browser()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

"""A real Chromium, as a person would use it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# As root, and without the calls that a browser makes for itself.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> str:
    """Find the program that scripts/browser made sure of."""
    wanted = os.environ.get("TIDEGATE_BROWSER", "chromium")
    found = (shutil.which(name) for name in (wanted, "chromium-browser", "google-chrome"))
    return next(filter(None, found))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open a browser with an empty profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(_FLAGS))
        yield browser
        browser.close()

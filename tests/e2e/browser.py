"""A real Chromium, driven by Playwright, as people who log in to Airflow."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE = (390, 844)
DESK = (1400, 1000)

expect.set_options(timeout=20_000)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser with a fresh profile."""
    found = subprocess.run([ROOT / "scripts/browser"], capture_output=True, text=True, check=True)
    with sync_playwright() as playwright:
        path = found.stdout.strip()
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def open_page(
    browser: Browser,
    url: str,
    user: str | None = None,
    *,
    theme: str = "light",
    size: tuple[int, int] = DESK,
) -> Iterator[Page]:
    """Open Airflow as somebody, by its own form, or as nobody."""
    context = browser.new_context(
        base_url=url,
        color_scheme=theme,
        viewport={"width": size[0], "height": size[1]},
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    if user:
        log_in(page, user)
    yield page
    context.close()
    assert not problems


def log_in(page: Page, user: str) -> None:
    """Log in; the password is the name."""
    page.goto("/")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(user)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda address: "/auth/login" not in address)


def check_accessibility(page: Page) -> None:
    """Let axe find nothing wrong with the page; what is Airflow's own around it is not looked at."""
    results = Axe().run(page, context=".tg")
    assert results.violations_count == 0, results.generate_report()


def check_fits(page: Page) -> None:
    """See that nothing sticks out of the screen."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "(() => { const tg = document.querySelector('.tg'); return tg.scrollWidth <= tg.clientWidth; })()"
    )


def count_drawn(page: Page) -> int:
    """Count the charts that have anything in them."""
    return page.evaluate(
        """[...document.querySelectorAll('.tg canvas')].filter((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return pixels.some((value) => value !== 0);
        }).length"""
    )

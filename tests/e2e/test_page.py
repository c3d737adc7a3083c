"""The page in Airflow's UI: a real Airflow, a real run, a real browser."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from demo.data import land_orders
from demo.sample import land_sample
from demo.stack import Stack, start_stack
from tests.e2e.browser import (
    DESK,
    PHONE,
    check_accessibility,
    check_fits,
    count_drawn,
    open_browser,
    open_page,
)
from tests.e2e.home import Home
from tidegate.core.settings import Settings

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    # Airflow outlives what started it, and is stopped by its process group.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Popen.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
]

RUN_ID = "manual__the_one_that_the_test_started"


def await_that(is_so, timeout_seconds: float = 180) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.5)


class Airflow:
    """A whole Airflow with logins, as one of them."""

    def __init__(self, stack: Stack, user: str) -> None:
        login = {"username": user, "password": user}
        token = httpx.post(f"{stack.url}/auth/token", json=login).json()["access_token"]
        self._url = f"{stack.url}/api/v2"
        self._headers = {"Authorization": f"Bearer {token}"}

    def read(self, path: str) -> dict:
        return httpx.get(f"{self._url}{path}", headers=self._headers, timeout=30).json()

    def list_dags(self) -> set[str]:
        return {dag["dag_id"] for dag in self.read("/dags")["dags"]}

    def run(self, dag_id: str) -> str:
        runs = f"/dags/{dag_id}/dagRuns"
        body = {"logical_date": None, "dag_run_id": RUN_ID}
        httpx.post(f"{self._url}{runs}", json=body, headers=self._headers).raise_for_status()
        await_that(lambda: self.read(f"{runs}/{RUN_ID}")["state"] in ("success", "failed"), 300)
        return self.read(f"{runs}/{RUN_ID}")["state"]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    """A project with one pipeline that ran by hand, and data for another."""
    home = Home(tmp_path_factory.mktemp("home"))
    (home.folder / "passwords.json").write_text(json.dumps({"admin": "admin", "viewer": "viewer"}))
    land_orders(home.data)
    land_sample("event_fan_out", home.data)
    command = [str(Path(sys.executable).parent / "tidegate"), "run", "event_fan_out"]
    subprocess.run(command, env=home.environment, check=True, timeout=300, capture_output=True)
    return home


@pytest.fixture(scope="module")
def stack(home) -> Iterator[Stack]:
    settings = Settings.from_environment(home.folder, home.environment)
    with pytest.MonkeyPatch.context() as patch:
        for key in [key for key in os.environ if key.startswith(("AIRFLOW", "TIDEGATE"))]:
            patch.delenv(key)
        stack = start_stack(
            settings,
            {
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
                "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(
                    home.folder / "passwords.json"
                ),
            },
        )
        try:
            airflow = Airflow(stack, "admin")
            await_that(lambda: {"orders_bronze", "backfill"} <= airflow.list_dags())
            assert airflow.run("orders_bronze") == "success"
            yield stack
        finally:
            stack.stop()


@pytest.fixture(scope="module")
def browser(stack) -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def viewer(browser, stack) -> Iterator[Page]:
    with open_page(browser, stack.url, "viewer") as page:
        yield page


def open_fleet(page: Page) -> None:
    page.goto("/plugin/tidegate")
    expect(page.get_by_role("heading", name="Pipelines")).to_be_visible()
    expect(page.get_by_role("cell", name="orders_bronze", exact=True)).to_be_visible()


def open_pipeline(page: Page, name: str) -> None:
    page.goto(f"/plugin/tidegate/{name}")
    expect(page.get_by_role("heading", name="Charts")).to_be_visible()
    expect(page.get_by_text("Looking …")).to_have_count(0)


def list_names(page: Page) -> list[str]:
    return page.locator(".tg-fleet tbody tr td:first-child").all_inner_texts()


def test_without_a_login_there_is_only_the_login(browser, stack):
    with open_page(browser, stack.url) as page:
        page.goto("/plugin/tidegate")
        page.wait_for_url("**/auth/login**")
        expect(page.locator(".tg")).to_have_count(0)
        assert page.request.get("/tidegate/api/fleet").status == 401


def test_the_fleet_is_sorted_and_filtered(viewer):
    viewer.goto("/")
    viewer.get_by_role("link", name="Tidegate").click()
    expect(viewer.get_by_role("row", name="orders_bronze committed")).to_be_visible()
    header = viewer.get_by_role("columnheader", name="Pipeline")
    header.get_by_role("button").focus()
    viewer.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "ascending")
    names = list_names(viewer)
    assert names == sorted(names)
    viewer.keyboard.press("Enter")
    expect(header).to_have_attribute("aria-sort", "descending")
    assert list_names(viewer) == sorted(names, reverse=True)
    viewer.get_by_label("Filter").fill("orders committed")
    expect(viewer.get_by_text(f"1 of {len(names)} pipelines")).to_be_visible()
    assert list_names(viewer) == ["orders_bronze"]


def test_the_fleet_refreshes_by_itself(viewer, stack, home):
    open_fleet(viewer)
    row = viewer.get_by_role("row", name="word_count")
    expect(row).to_contain_text("never ran")
    runs = home.folder / "var/state/word_count/runs"
    runs.mkdir(parents=True)
    (runs / "latest.json").write_text("{")
    expect(row).to_contain_text("unknown", timeout=30_000)


def test_a_pipeline_shows_what_its_run_did(viewer):
    open_fleet(viewer)
    viewer.get_by_role("link", name="orders_bronze").click()
    viewer.wait_for_url("**/plugin/tidegate/orders_bronze")
    expect(viewer.get_by_role("heading", name="Charts")).to_be_visible()
    expect(viewer.locator(".tg-timeline li")).to_have_count(2)
    viewer.wait_for_function("document.querySelectorAll('.tg canvas').length >= 3")
    assert count_drawn(viewer) >= 3
    told = re.compile("^Rows in rows. read: newest 1,000, most 1,000")
    expect(viewer.get_by_role("img", name="Rows in rows")).to_have_accessible_name(told)
    viewer.get_by_text("Rows as a table").click()
    table = viewer.get_by_role("table", name="Rows by batch")
    expect(table.get_by_role("row")).to_have_count(3)
    viewer.get_by_role("button", name="by time").click()
    expect(viewer.get_by_role("button", name="by time")).to_have_attribute("aria-pressed", "true")
    assert count_drawn(viewer) >= 3
    expect(viewer.get_by_text("files, committed file log 1")).to_be_visible()
    expect(viewer.get_by_text("Nothing is wrong.")).to_be_visible()
    expect(viewer.locator("pre")).to_contain_text("name: orders_bronze")


def test_a_run_leads_to_its_task_s_log(viewer):
    open_pipeline(viewer, "orders_bronze")
    run = viewer.get_by_role("row", name=RUN_ID)
    expect(run).to_contain_text("success")
    expect(run).to_contain_text("2,000")
    viewer.get_by_role("link", name=f"log of submit in {RUN_ID}").click()
    viewer.wait_for_url("**/dags/orders_bronze/runs/**/tasks/submit")
    expect(viewer.get_by_text("batch 1:").first).to_be_visible()


def test_what_was_put_aside_is_shown(viewer):
    open_pipeline(viewer, "event_fan_out")
    table = viewer.get_by_role("table", name="Put aside, by rule")
    expect(table.get_by_role("cell", name="known_severity")).to_be_visible()


def test_a_dag_has_the_page_as_a_tab(viewer):
    viewer.goto("/dags/orders_bronze")
    viewer.locator("a[href$='/dags/orders_bronze/plugin/tidegate_pipeline']").click()
    viewer.wait_for_url("**/dags/orders_bronze/plugin/tidegate_pipeline")
    expect(viewer.get_by_role("heading", name="Charts")).to_be_visible()
    viewer.goto("/dags/backfill/plugin/tidegate_pipeline")
    expect(viewer.get_by_text("This DAG is not one of a tidegate pipeline.")).to_be_visible()


def test_the_docs_of_a_dag_lead_to_its_page(viewer, stack):
    dag = Airflow(stack, "viewer").read("/dags/orders_bronze/details")
    assert "](/plugin/tidegate/orders_bronze)" in dag["doc_md"]


def test_a_backfill_is_filled_in_and_started(browser, stack):
    with open_page(browser, stack.url, "admin") as page:
        open_pipeline(page, "orders_bronze")
        page.get_by_role("button", name="Backfill").click()
        dialog = page.get_by_role("dialog", name="Backfill orders_bronze")
        expect(dialog.get_by_label("pipeline")).to_have_value("orders_bronze")
        expect(dialog.get_by_label("dry run")).to_be_checked()
        check_accessibility(page)
        dialog.get_by_label("glob").fill("drop-0000-*.json")
        dialog.get_by_role("button", name="Start").click()
        begun = dialog.get_by_role("link", name="It has begun")
        expect(begun).to_be_visible()
        run_id = begun.inner_text().removeprefix("It has begun: ")
        begun.click()
        page.wait_for_url("**/dags/backfill/runs/**")
    run = Airflow(stack, "admin").read(f"/dags/backfill/dagRuns/{run_id}")
    assert run["conf"]["pipeline"] == "orders_bronze"
    assert run["conf"]["glob"] == "drop-0000-*.json"


def test_a_viewer_may_not_start_a_backfill(viewer):
    open_pipeline(viewer, "orders_bronze")
    viewer.get_by_role("button", name="Backfill").click()
    dialog = viewer.get_by_role("dialog")
    dialog.get_by_role("button", name="Start").click()
    expect(dialog.get_by_text("You may not start a backfill.")).to_be_visible()
    viewer.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_it(browser, stack, theme, size):
    with open_page(browser, stack.url, "viewer", theme=theme, size=size) as page:
        open_fleet(page)
        check_accessibility(page)
        check_fits(page)
        open_pipeline(page, "event_fan_out")
        check_accessibility(page)
        check_fits(page)

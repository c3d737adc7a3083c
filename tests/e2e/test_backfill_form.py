"""The form of a backfill, filled in by a person with a browser."""

import json
from collections.abc import Iterator

import pytest
from deltalake import DeltaTable
from playwright.sync_api import Page, expect

from tests.e2e.browser import open_browser
from tests.e2e.waiting import await_end, run_dag, wait_for

pytestmark = [
    pytest.mark.browser,
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.timeout(900),
]


@pytest.fixture
def returns(home, api) -> str:
    """A table of three files, of which the rows of two were damaged."""
    folder = home.data / "landing" / "returns"
    folder.mkdir(parents=True)
    for number in range(3):
        rows = ({"id": number * 10 + n, "n": n} for n in range(10))
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    wait_for(lambda: api.get("/dags/returns").is_success, 120)
    run_dag(api, "returns")
    table = DeltaTable(str(home.data / "bronze/returns"))
    table.delete("id < 20 AND id % 2 = 0")
    table.update(predicate="id < 20", updates={"n": "-1"})
    return "bronze/returns"


@pytest.fixture
def page() -> Iterator[Page]:
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.set_default_timeout(60_000)
        yield page


def fill_in(page: Page, url: str, *, dry_run: bool) -> None:
    page.goto(f"{url}/dags/backfill")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    form.get_by_role("combobox").first.click()
    page.get_by_role("option", name="returns", exact=True).click()
    form.locator("[name=element_slices]").fill("2")
    switch = form.locator("[name=element_dry_run]")
    assert switch.is_checked()
    if not dry_run:
        form.locator("label:has([name=element_dry_run])").click()
        expect(switch).not_to_be_checked()
    form.get_by_role("button", name="Files").click()  # closes what was open
    form.locator("[name=element_glob]").fill("[01].json")
    form.get_by_role("button", name="Trigger").click()
    expect(form).to_be_hidden()


def find_run(api, known: set[str]) -> str:
    def find_new() -> str | None:
        runs = api.get("/dags/backfill/dagRuns").json()["dag_runs"]
        return next((r["dag_run_id"] for r in runs if r["dag_run_id"] not in known), None)

    return wait_for(find_new, 60)


def test_a_person_heals_a_table_by_the_form(returns, home, url, api, page):
    fill_in(page, url, dry_run=True)
    looked = find_run(api, set())
    assert await_end(api, "backfill", looked, 120) == "success"
    page.goto(f"{url}/dags/backfill/runs/{looked}/tasks/plan")
    expect(page.get_by_text("returns: replace 2 files, in 2 slices")).to_be_visible()
    expect(page.get_by_text("bronze/returns has 10 rows of the range")).to_be_visible()
    assert len(home.read_table(returns)) == 20

    fill_in(page, url, dry_run=False)
    begun = find_run(api, {looked})
    assert await_end(api, "backfill", begun, 400) == "success"
    healed = sorted((row["id"], row["n"]) for row in home.read_table(returns))
    assert healed == [(n, n % 10) for n in range(30)]
    page.goto(f"{url}/dags/backfill/runs/{begun}/tasks/slice/mapped/")
    expect(page.get_by_text("1 of 2: 1 file")).to_be_visible()
    expect(page.get_by_text("2 of 2: 1 file")).to_be_visible()
    page.goto(f"{url}/dags/backfill/runs/{begun}/tasks/verify")
    expect(page.get_by_text("it adds up")).to_be_visible()

"""The dashboard asks for gauges that there are."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "docs/grafana/tidegate.json").read_text())
CODE = (ROOT / "src/tidegate/airflow/plugin/gauges.py").read_text()


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_a_panel_asks_for_what_is_served(panel):
    [target] = panel["targets"]
    [name] = re.findall(r"tidegate_\w+", target["expr"])
    assert f'"{name}"' in CODE


def test_every_panel_has_its_own_id():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)

"""The README's DAG, loaded as it stands there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_sensor_s_example_makes_a_dag(database):
    text = (ROOT / "README.md").read_text()
    [example] = [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "DAG(" in b]
    held = example.replace("with DAG(", "with (dag := DAG(").replace('"):\n', '")):\n')
    scope: dict = {}
    exec(compile(held, "README.md", "exec"), scope)  # noqa: S102
    [task] = scope["dag"].tasks
    assert task.list_conditions()[0].target.offsets == {"orders": {"0": 1200, "1": 1180}}

"""The README's own pipeline, written and run as a newcomer would."""

import re
import textwrap
from pathlib import Path

from tidegate.core.spec import load_pipeline

ROOT = Path(__file__).resolve().parents[2]


def find_block(language: str, word: str) -> str:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    [block] = [textwrap.dedent(block) for block in blocks if word in block]
    return block


def test_the_five_steps_give_a_table(runs, settings, rows_of):
    (settings.pipelines / "transforms").mkdir(parents=True)
    (settings.pipelines / "clicks.yaml").write_text(find_block("yaml", "name: clicks"))
    # In the project `transforms` is a package that is there already; here it would be another one.
    step = find_block("python", "def add_host")
    (settings.pipelines / "clicks_step.py").write_text(step)
    spec = (settings.pipelines / "clicks.yaml").read_text()
    changed = spec.replace("transforms.clicks:", "clicks_step:")
    (settings.pipelines / "clicks.yaml").write_text(changed)
    landing = Path(settings.data) / "landing" / "clicks"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text(
        '{"user": "ann", "url": "https://example.org/a?b=c", "at": "2026-01-02T03:04:05Z"}\n'
        '{"url": "https://example.org/", "at": "2026-01-02T03:04:05Z"}\n'
    )
    run = runs.run(load_pipeline(settings.pipelines, "clicks").require())
    assert (run.summary.input_rows, run.summary.output_rows) == (2, 1)
    assert rows_of("bronze/clicks", "user", "host") == [("ann", "example.org")]

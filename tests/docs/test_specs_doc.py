"""The documents say what is so: fields are all told, and the examples work."""

import re
from pathlib import Path

import pytest

from tidegate.core.spec import Pipeline
from tidegate.core.spec.alerts import (
    Alerts,
    AppriseChannel,
    PythonChannel,
    SlackChannel,
    SlackWebhookChannel,
    SmtpChannel,
)
from tidegate.core.spec.expectation import Expectation
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import Decoding, KafkaSource
from tidegate.core.spec.loader import parse_pipeline
from tidegate.core.spec.maintenance import Maintenance
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.sinks.python import PythonSink
from tidegate.core.spec.sinks.spark import SparkSink
from tidegate.core.spec.source import DeltaSource, RateSource
from tidegate.core.spec.transform import StaticDelta, StaticFiles
from tidegate.core.spec.watermark import Watermark

ROOT = Path(__file__).resolve().parents[2]
MODELS = [
    *(Pipeline, FilesSource, DeltaSource, KafkaSource, Decoding, RateSource),
    *(DeltaSink, KafkaSink, JdbcSink, FilesSink, PythonSink, SparkSink),
    *(StaticDelta, StaticFiles, Expectation, Watermark, Maintenance),
    *(Alerts, SmtpChannel, SlackChannel, SlackWebhookChannel, AppriseChannel, PythonChannel),
]


def list_blocks(file: str, language: str) -> list[str]:
    text = (ROOT / file).read_text()
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in blocks]


@pytest.mark.parametrize("model", MODELS)
def test_every_field_is_told(model):
    text = (ROOT / "docs" / "specs.md").read_text()
    names = [field.alias or name for name, field in model.model_fields.items()]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("file", ["README.md", "docs/kafka.md", "docs/specs.md"])
def test_the_specs_in_the_documents_are_valid(file):
    blocks = list_blocks(file, "yaml")
    assert blocks
    assert all(parse_pipeline(text, file).sinks for text in blocks)


def test_the_readme_shows_the_demo_s_spec_as_it_is():
    assert (ROOT / "pipelines" / "orders_bronze.yaml").read_text() in list_blocks(
        "README.md", "yaml"
    )


@pytest.mark.parametrize("text", list_blocks("docs/specs.md", "python"))
def test_the_python_in_the_docs_runs(text):
    scope: dict = {}
    exec(compile(text, "docs/specs.md", "exec"), scope)  # noqa: S102
    assert scope["pipeline"].name == "numbers"


def test_every_link_in_the_documents_leads_somewhere():
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [
        (file, target)
        for file in files
        for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text())
    ]
    assert links
    assert [link for link in links if not (link[0].parent / link[1]).exists()] == []

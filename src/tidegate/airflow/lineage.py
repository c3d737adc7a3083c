"""Lineage by OpenLineage, for those who have its provider installed and set up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from tidegate.core.lineage import Dataset, Lineage
from tidegate.core.listener import add_listener
from tidegate.core.settings import Settings
from tidegate.core.storage import leave_json

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import DatasetFacet, OutputDatasetFacet

# The clients of Python and Java name some options differently.
_JAVA_NAMES = {
    "api_key": "apiKey",
    "apikey": "apiKey",
    "custom_headers": "headers",
    "log_file_path": "location",
}
_JAVA_KINDS = {"async_http": "http"}


def is_lineage_kept(task: BaseOperator) -> bool:
    """Whether OpenLineage's provider is installed, told where to send events, and that of this task."""
    try:
        from airflow.providers.openlineage.conf import is_disabled
        from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
    except ImportError:
        return False
    return not is_disabled() and resolve_task_emission_policy(task, task.dag_id, task.task_id).emit


def connect_driver(
    conf: dict[str, str], name: str, settings: Settings, context: Context
) -> dict[str, str]:
    """Let a driver tell of its own work, by a name, as a part of this task."""
    from airflow.providers.openlineage.plugins.macros import lineage_job_namespace
    from airflow.providers.openlineage.utils.spark import (
        inject_parent_job_information_into_spark_properties,
    )

    named = {
        "spark.openlineage.appName": name,
        "spark.openlineage.namespace": lineage_job_namespace(),
    }
    listening = named | add_listener(conf, settings)
    return inject_parent_job_information_into_spark_properties(listening, context)


@contextmanager
def leave_transport() -> Iterator[dict[str, str]]:
    """Leave for a driver where Airflow sends events to, as long as it runs; it may have a key.

    What is set by variables is not left: a driver has them from its task.
    """
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter

    config = OpenLineageAdapter().get_openlineage_config()
    if not config:
        yield {}
        return
    with leave_json("openlineage.yml", spell_for_java(config)) as file:  # JSON is YAML
        yield {"OPENLINEAGE_CONFIG": str(file)}


def spell_for_java(config: Any) -> Any:
    """Spell the configuration of the Python client as the Java client's."""
    if isinstance(config, list):
        return [spell_for_java(part) for part in config]
    if not isinstance(config, Mapping):
        return config
    spelled = {_JAVA_NAMES.get(key, key): spell_for_java(part) for key, part in config.items()}
    if "timeout" in spelled:
        spelled["timeoutInMillis"] = int(float(spelled.pop("timeout")) * 1000)
    if spelled.get("type") in _JAVA_KINDS:
        spelled["type"] = _JAVA_KINDS[spelled["type"]]
    return spelled


def spell_lineage(lineage: Lineage) -> OperatorLineage[Any, Any]:
    """Spell lineage as the provider takes it."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[_spell_input(dataset) for dataset in lineage.inputs],
        outputs=[_spell_output(dataset) for dataset in lineage.outputs],
    )


def _spell_input(dataset: Dataset) -> InputDataset:
    from openlineage.client.event_v2 import InputDataset

    return InputDataset(dataset.namespace, dataset.name, facets=_list_facets(dataset))


def _spell_output(dataset: Dataset) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    counted: dict[str, OutputDatasetFacet] = {}
    if dataset.rows is not None:
        counted["outputStatistics"] = statistics.OutputStatisticsOutputDatasetFacet(
            rowCount=dataset.rows
        )
    return OutputDataset(
        dataset.namespace, dataset.name, facets=_list_facets(dataset), outputFacets=counted
    )


def _list_facets(dataset: Dataset) -> dict[str, DatasetFacet]:
    from openlineage.client.facet_v2 import dataset_version_dataset, schema_dataset

    facets: dict[str, DatasetFacet] = {}
    if dataset.columns:
        fields = [
            schema_dataset.SchemaDatasetFacetFields(name=column.name, type=column.type)
            for column in dataset.columns
        ]
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    if dataset.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=str(dataset.version)
        )
    return facets

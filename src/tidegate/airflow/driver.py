"""Starting a driver: Airflow's own SparkSubmitOperator, with what would otherwise fail in riddles checked."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidegate.airflow.connection import read_airflow_connection
from tidegate.airflow.lineage import (
    connect_driver,
    is_lineage_kept,
    leave_transport,
    spell_lineage,
)
from tidegate.core.connection import hand_over
from tidegate.core.errors import SettingsError
from tidegate.core.lineage import Lineage, Surveyor
from tidegate.core.listener import has_listener
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import Submission, require_jars

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

_EXAMPLE = """AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}'"""


class DriverOperator(SparkSubmitOperator):
    """Does something for a pipeline by spark-submit."""

    _lineage = Lineage()

    def __init__(self, **kwargs: Any) -> None:
        # It would put the keys of lineage's server on the command line.
        super().__init__(openlineage_inject_transport_info=False, **kwargs)

    def take(self, pipeline: Pipeline, submission: Submission) -> None:
        """Take over what is to be submitted."""
        for field, value in spell_submission(pipeline, submission).items():
            setattr(self, "_conn_id" if field == "conn_id" else field, value)

    def start(self, context: Context, pipeline: Pipeline, settings: Settings) -> None:
        """Submit, and wait until the driver has ended."""
        self._check_connection()
        try:
            require_jars(settings)
        except SettingsError as error:
            raise AirflowFailException(str(error)) from error
        with ExitStack() as held:
            left = held.enter_context(hand_over(pipeline.connections, read_airflow_connection))
            keeps_lineage = is_lineage_kept(self)
            told = self._join_lineage(context, settings, held) if keeps_lineage else {}
            # Only the files' names go this way, which everyone may see.
            self.env_vars = {**(self.env_vars or {}), **left, **told}
            try:
                self.run_driver(context)
            finally:
                if keeps_lineage:
                    surveyor = Surveyor(pipeline, settings, read_airflow_connection)
                    self._note_lineage(context, surveyor)

    def run_driver(self, context: Context) -> None:
        """Call spark-submit."""
        super().execute(context)

    def survey_lineage(self, surveyor: Surveyor, context: Context) -> Lineage:  # noqa: ARG002
        """Find from where to where the driver took rows."""
        return surveyor.survey()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:  # noqa: ARG002
        """Tell OpenLineage's provider from where to where the driver took rows."""
        return spell_lineage(self._lineage)

    def _join_lineage(
        self, context: Context, settings: Settings, held: ExitStack
    ) -> dict[str, str]:
        """Let the driver tell of its work as a part of this task; never a reason to fail."""
        if not has_listener(settings):
            return {}
        try:
            left = held.enter_context(leave_transport())
            self.conf = connect_driver(self.conf or {}, self.name, settings, context)
        except Exception as error:
            # Its text may hold a key.
            self.log.warning(
                "The driver keeps no lineage, for a %s. Check [openlineage] in Airflow's "
                "configuration.",
                type(error).__name__,
            )
            return {}
        return left

    def _note_lineage(self, context: Context, surveyor: Surveyor) -> None:
        # Now, as the provider asks from a process that can no longer reach Airflow.
        try:
            self._lineage = self.survey_lineage(surveyor, context)
        except Exception as error:
            self.log.warning("What was read and written is not told to OpenLineage: %s", error)

    def _check_connection(self) -> None:
        # The hook takes a missing or hostless connection for YARN, without a word.
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except AirflowException as error:
            raise AirflowFailException(
                f"There is no connection {self._conn_id!r}, so Spark's master is unknown. "
                f"Create it, for example by {_EXAMPLE}"
            ) from error
        if not connection.host:
            raise AirflowFailException(
                f"The connection {self._conn_id!r} has no host, so Spark's master is unknown. "
                f"Set its host to local[2], yarn or spark://HOST:PORT, for example by {_EXAMPLE}"
            )


def spell_submission(pipeline: Pipeline, submission: Submission) -> dict[str, Any]:
    """Spell a submission as the operator takes it."""
    return {
        "application": submission.application,
        "application_args": list(submission.arguments),
        "conf": submission.conf,
        "env_vars": submission.environment,
        "conn_id": pipeline.spark_connection,
        "name": f"tidegate {pipeline.name}",
    }

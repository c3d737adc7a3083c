"""Starting a driver: Airflow's own SparkSubmitOperator, with what would otherwise fail in riddles checked."""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidegate.airflow.connection import read_airflow_connection
from tidegate.core.connection import hand_over
from tidegate.core.errors import SettingsError
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import Submission, require_jars

_EXAMPLE = """AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}'"""


class DriverOperator(SparkSubmitOperator):
    """Does something for a pipeline by spark-submit."""

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
        with hand_over(pipeline.connections, read_airflow_connection) as left:
            # Only the file's name goes this way, which everyone may see.
            self.env_vars = {**(self.env_vars or {}), **left}
            self.run_driver(context)

    def run_driver(self, context: Context) -> None:
        """Call spark-submit."""
        super().execute(context)

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

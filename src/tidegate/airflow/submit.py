"""The submit task: Airflow's own SparkSubmitOperator, told by the spec what to run."""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidegate.airflow.connection import read_airflow_connection
from tidegate.core.batchline import describe_batch
from tidegate.core.connection import hand_over
from tidegate.core.errors import SettingsError, TidegateError
from tidegate.core.ledger import Ledger
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_submission, record_silent_end, require_jars

_MOST_BATCHES = 100
"""Of a run with more of them, the newest are told once more."""

_EXAMPLE = """AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}'"""


class SubmitOperator(SparkSubmitOperator):
    """Runs a planned pipeline by spark-submit."""

    def __init__(self, *, pipeline: Pipeline, settings: Settings, **kwargs: Any) -> None:
        submission = prepare_submission(pipeline, settings, "{{ run_id }}", "{{ ti.try_number }}")
        super().__init__(
            application=submission.application,
            application_args=list(submission.arguments),
            conf=submission.conf,
            env_vars=submission.environment,
            conn_id=pipeline.spark_connection,
            name=f"tidegate {pipeline.name}",
            **kwargs,
        )
        self.settings = settings
        self.pipeline_name = pipeline.name
        self.connections = pipeline.connections

    def execute(self, context: Context) -> None:
        """Check what would otherwise fail in riddles, then submit."""
        self._check_connection()
        try:
            require_jars(self.settings)
        except SettingsError as error:
            raise AirflowFailException(str(error)) from error
        with hand_over(self.connections, read_airflow_connection) as left:
            # Only the file's name goes this way, which everyone may see.
            self.env_vars = {**(self.env_vars or {}), **left}
            try:
                super().execute(context)
            except Exception:
                tried = str(context["ti"].try_number)
                record_silent_end(self.settings, self.pipeline_name, context["run_id"], tried)
                raise
            finally:
                self._log_batches(context["run_id"])

    def _log_batches(self, run_id: str) -> None:
        """End the task's log with what the run did, also where the driver's own log is elsewhere."""
        ledger = Ledger.beside(self.settings.state_of(self.pipeline_name))
        try:
            batches = ledger.read_run(run_id).batches
        except (TidegateError, OSError) as error:
            self.log.warning("What the run did cannot be read: %s", error)
            return
        if len(batches) > _MOST_BATCHES:
            self.log.info("%s batches, the newest of them:", f"{len(batches):,}")
        for batch in batches[-_MOST_BATCHES:]:
            self.log.info("%s", describe_batch(batch))

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

"""A driver that runs all its pipelines at once, so that one kill is the end of them all."""

import sys
import traceback
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.spark.runner import run_pipeline

_MOST_AT_WORK = 4  # Spark waits ten seconds for a Python process, which is short where all start
_LOOK_SECONDS = 0.05


def main(marks, run_id, *names):
    """Start each planned pipeline when others stand still; one that ends leaves its error."""
    settings, marks = Settings.from_environment(), Path(marks)
    # Threads that do so at the same time would start two.
    ensure_callback_server_started(SparkSession.builder.getOrCreate().sparkContext._gateway)
    waiting, running = list(names), {}
    with ThreadPoolExecutor(len(names)) as threads:
        while True:
            halted = sum(1 for _ in marks.glob("[!.]*"))
            while waiting and len(names) - len(waiting) - halted < _MOST_AT_WORK:
                pipeline = load_pipeline(settings.pipelines, waiting.pop(0)).require()
                running[threads.submit(run_pipeline, pipeline, settings, run_id)] = pipeline.name
            ended, _ = wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for one in ended:
                error = one.exception() or RuntimeError("it ended")
                _leave(marks / running.pop(one), "".join(traceback.format_exception(error)))


def _leave(mark, told):
    part = mark.with_name(f".{mark.name}")
    part.write_text(told)
    part.rename(mark)


main(*sys.argv[1:])

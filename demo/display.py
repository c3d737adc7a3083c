"""What the demo shows while it works."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from demo.api import DagRun

_TASKS = ("plan", "submit", "confirm")
_MARKS = {
    "success": ("✔", "green"),
    "failed": ("✘", "red"),
    "skipped": ("-", "cyan"),
    "running": ("▶", "yellow"),
    "deferred": ("…", "yellow"),
    "up_for_retry": ("↻", "yellow"),
    "upstream_failed": ("✘", "red"),
}


class Display:
    """The DAGs' tasks as they go, redrawn in place; a line a change where there is no terminal."""

    def __init__(self, dag_ids: tuple[str, ...], console: Console) -> None:
        self._console = console
        self._runs: dict[str, DagRun | None] = dict.fromkeys(dag_ids)
        self._note = ""
        self._began = time.monotonic()
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, run: DagRun, note: str = "") -> None:
        """Show how a run stands, and a note beside it."""
        has_changed = self._runs[run.dag_id] != run or self._note != note
        self._runs[run.dag_id], self._note = run, note
        if has_changed and not self._console.is_terminal:
            tasks = ", ".join(f"{task} {run.tasks.get(task) or 'waiting'}" for task in _TASKS)
            elapsed = time.monotonic() - self._began
            told = f"{run.dag_id}: {run.state} ({tasks})" + (f", {note}" if note else "")
            self._console.print(f"{elapsed:6.1f} s  {told}")

    def _render(self) -> Table:
        table = Table("pipeline", *_TASKS, "", box=None, padding=(0, 2))
        for dag_id, run in self._runs.items():
            is_working = run is not None and not run.is_finished
            marks = [_mark(run.tasks.get(task, "") if run else "") for task in _TASKS]
            table.add_row(dag_id, *marks, Spinner("dots") if is_working else "")
        elapsed = f"{time.monotonic() - self._began:.0f} s"
        table.caption = f"{elapsed}, {self._note}" if self._note else elapsed
        return table


def _mark(state: str) -> Text:
    mark, colour = _MARKS.get(state, ("·", "dim"))
    return Text(f"{mark} {state or 'waiting'}", style=colour)

"""`tidegate checkpoint rewind`, `skip`, `fork`, `move`, `diff`, `backup`, `restore`, `undo`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from upath import UPath

from tidegate.cli.place import Place, PlaceArgument, locate
from tidegate.cli.sinkcheck import SinkCheck
from tidegate.core.errors import SurgeryError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.ledger import Baseline
from tidegate.core.surgery.backup import BACKUP, Backup, Backups
from tidegate.core.surgery.change import Change
from tidegate.core.surgery.copy import CheckpointCopy
from tidegate.core.surgery.difference import compare_checkpoints
from tidegate.core.surgery.rewind import Rewind, find_batch_at, spell_renewal
from tidegate.core.surgery.skip import Skip

_UNCHANGED = "Nothing was changed."
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show which files would change, and change none.")
]

NewQueryId = Annotated[
    bool,
    typer.Option("--new-query-id", help="Let sinks take batches again that they know already."),
]
AcceptDuplicates = Annotated[
    bool,
    typer.Option("--accept-duplicates", help="Rows that sinks still have are written again."),
]
SinksAreChecked = Annotated[
    bool,
    typer.Option(
        "--sinks-are-checked",
        help="You have seen that sinks which cannot be asked would neither lose nor double rows.",
    ),
]


def rewind(
    place: PlaceArgument,
    *,
    to_batch: Annotated[int | None, typer.Option(help="The last batch that is kept.")] = None,
    to_position: Annotated[
        str | None,
        typer.Option(
            help="The newest batch that ends at this position or before it is kept; JSON as Spark "
            """writes it, such as '{"orders": {"0": 1200}}'."""
        ),
    ] = None,
    new_query_id: NewQueryId = False,
    accept_duplicates: AcceptDuplicates = False,
    sinks_are_checked: SinksAreChecked = False,
    dry_run: DryRun = False,
) -> None:
    """Set a query back, so that its next run reads again what followed a batch."""
    found = Place.find(place)
    batch = _choose_batch(found.checkpoint, to_batch, to_position)
    step = Rewind.to(found.checkpoint, batch, renews=new_query_id)

    def plan() -> Change:
        SinkCheck(found, accept_duplicates, sinks_are_checked).check_rewind(step)
        return step.plan()

    _operate(found.checkpoint, "rewind", plan, dry_run)
    if not dry_run:
        print(f"The next run reads all that followed batch {batch}.")


def skip(place: PlaceArgument, *, dry_run: DryRun = False) -> None:
    """Leave out the pending batch, whose rows are then not written; its range is written down."""
    found = Place.find(place)
    _operate(found.checkpoint, "skip", Skip(found.checkpoint).plan, dry_run)
    if not dry_run:
        print(f"What was left out is in {found.checkpoint.parent / 'skips'}.")


def fork(
    place: PlaceArgument,
    target: Annotated[str, typer.Argument(help="A path or URL, or another pipeline's name.")],
    *,
    dry_run: DryRun = False,
) -> None:
    """Copy a checkpoint under a new query id, for a pipeline with sinks of its own."""
    _copy(place, target, is_move=False, dry_run=dry_run)
    if not dry_run:
        print(
            "Give the new query sinks of its own: in the old one's tables, rows would be doubled."
        )


def move(
    place: PlaceArgument,
    target: Annotated[str, typer.Argument(help="A path or URL, or another pipeline's name.")],
    *,
    dry_run: DryRun = False,
) -> None:
    """Move a checkpoint to another path or store; the query goes on there as the same one."""
    _copy(place, target, is_move=True, dry_run=dry_run)


def diff(
    first: PlaceArgument,
    second: Annotated[str, typer.Argument(metavar="PATH|PIPELINE", help="The other one.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell in what two checkpoints differ; ends with 1 if they do."""
    one, other = Place.find(first).checkpoint, Place.find(second).checkpoint
    found = compare_checkpoints(one, other)
    if as_json:
        print(json.dumps({each.what: [each.first, each.second] for each in found}, indent=2))
    elif found:
        table = Table("", first, second)
        for each in found:
            table.add_row(*map(Text, (each.what, each.first, each.second)))
        Console().print(table)
    else:
        print("They do not differ.")
    raise typer.Exit(1 if found else 0)


def backup(place: PlaceArgument) -> None:
    """Copy a checkpoint and its run ledger, to be restored by name."""
    found = Place.find(place)
    with _hold(found.checkpoint, BACKUP, dry_run=False):
        made = Backups(found.checkpoint).make(BACKUP)
    print(f"{made.name}: {len(made.manifest.files):,} files in {made.folder}")


def backups(place: PlaceArgument) -> None:
    """List the backups of a checkpoint."""
    found = Backups(locate(place)).list_all()
    table = Table("backup", "batch", "query id", "files")
    for each in found:
        facts = (each.manifest.committed_batch, each.manifest.query_id, len(each.manifest.files))
        table.add_row(each.name, *("-" if fact is None else str(fact) for fact in facts))
    Console().print(table if found else "There are none.")


def restore(
    place: PlaceArgument,
    name: Annotated[str, typer.Argument(help="The backup, as 'backups' lists it.")],
    *,
    new_query_id: NewQueryId = False,
    accept_duplicates: AcceptDuplicates = False,
    sinks_are_checked: SinksAreChecked = False,
    dry_run: DryRun = False,
) -> None:
    """Bring a checkpoint and its run ledger back to what they were."""
    found = Place.locate(place)
    backup = Backups(found.checkpoint).find(name)
    check = SinkCheck(found, accept_duplicates, sinks_are_checked)

    def plan() -> Change:
        check.check_return(backup.manifest, renews=new_query_id)
        change = Backups(found.checkpoint).plan_restore(backup)
        if not new_query_id:
            return change
        renewed = Baseline(str(uuid4()), backup.manifest.committed_batch)
        return replace(
            change, writes=dict(change.writes) | spell_renewal(found.checkpoint, renewed)
        )

    _operate(found.checkpoint, "restore", plan, dry_run)
    if not dry_run:
        _tell_restored(found.checkpoint, backup)


def undo(place: PlaceArgument, *, dry_run: DryRun = False) -> None:
    """Undo the last rewind, skip, restore, fork or move, if no run has gone on from it."""
    checkpoint = locate(place)
    made = [each for each in Backups(checkpoint).list_all() if each.manifest.why != BACKUP]
    if not made:
        raise SurgeryError(f"Nothing was done to {checkpoint} that could be undone.")
    last = made[-1]
    if not last.is_untouched():
        raise SurgeryError(
            f"The last change, {last.name}, cannot be undone: a run has gone on since.",
            remedy=f"'tidegate checkpoint restore {place} {last.name}' goes back all the same, if the "
            "sinks allow it.",
        )
    end = last.find_end()
    if end is not None and end != checkpoint:
        _take_back(checkpoint, end, last, dry_run=dry_run)
        return
    _operate(checkpoint, "restore", lambda: Backups(checkpoint).plan_restore(last), dry_run)
    if not dry_run:
        _tell_restored(checkpoint, last)


def _take_back(checkpoint: UPath, end: UPath, backup: Backup, *, dry_run: bool) -> None:
    """Undo a fork or a move: the copy goes, and what was moved is where it was."""
    is_move = backup.manifest.why == "move"
    if is_move:
        _operate(checkpoint, "restore", lambda: Backups(checkpoint).plan_restore(backup), dry_run)
    print(f"delete {end}")
    if not dry_run:
        with _hold(end, "undo", dry_run=False):
            CheckpointCopy(checkpoint, end, is_move).take_back()


def _tell_restored(checkpoint: UPath, backup: Backup) -> None:
    manifest = backup.manifest
    print(f"{checkpoint} is as it was at {manifest.made_at}, batch {manifest.committed_batch}.")


def _choose_batch(checkpoint: UPath, batch: int | None, position: str | None) -> int:
    if (batch is None) == (position is None):
        raise SurgeryError("Name --to-batch or --to-position, one of the two.")
    if position is None:
        return batch or 0
    try:
        wanted = json.loads(position)
    except ValueError as error:
        raise SurgeryError(
            f"--to-position is not JSON: {error}.",
            remedy="""Write it as Spark does, such as '{"orders": {"0": 1200}}'.""",
        ) from error
    found = find_batch_at(checkpoint, wanted)
    print(f"Batch {found} is the newest that ends there or before.")
    return found


def _copy(place: str, target: str, *, is_move: bool, dry_run: bool) -> None:
    found = Place.find(place)
    why = "move" if is_move else "fork"
    copy = CheckpointCopy(found.checkpoint, locate(target), is_move)
    with _hold(found.checkpoint, why, dry_run=dry_run):
        copy.check()
        for line in copy.describe():
            print(line)
        if dry_run:
            print(_UNCHANGED)
            return
        made = Backups(found.checkpoint).make(why)
        copy.apply()
        made.note_end(copy.target)
    print(
        f"Undo it by 'tidegate checkpoint undo {found.checkpoint}', as long as no run has gone on."
    )


def _operate(checkpoint: UPath, why: str, plan: Callable[[], Change], dry_run: bool) -> None:
    """Plan a change while nobody else writes; show it; back all up; do it."""
    with _hold(checkpoint, why, dry_run=dry_run):
        change = plan()
        for line in change.describe():
            print(line)
        if dry_run:
            print(_UNCHANGED)
            return
        made = Backups(checkpoint).make(why)
        print(f"backup {made.folder}")
        change.apply()
        made.note_end(checkpoint)
    print("Undo it by 'tidegate checkpoint undo', as long as no run has gone on from here.")


@contextmanager
def _hold(checkpoint: UPath, why: str, *, dry_run: bool) -> Iterator[None]:
    """Hold the lease meanwhile; to look at what would be done, it is enough that nobody does."""
    folder = LeaseFolder.beside(checkpoint)
    if dry_run:
        folder.refuse_held()
        yield
        return
    with hold_lease(folder, f"tidegate checkpoint {why}", seconds=30, waits=False):
        yield

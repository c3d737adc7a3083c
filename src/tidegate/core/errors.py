"""Every error this package raises on purpose.

TidegateError
├── SettingsError            the environment or the installation is not usable
├── ConnectionSpecError      a connection is missing or cannot be used
├── SpecError                one or more mistakes in one spec file
├── CheckpointError          a checkpoint cannot be judged
│   ├── NotACheckpointError  the path holds no checkpoint
│   ├── CorruptLogError      a log file is broken
│   ├── UnsupportedLogError  a log file is of a newer format
│   └── TargetMismatchError  a target speaks of a source that the checkpoint does not have
├── SourceError              the source cannot be read at all
│   └── SourceAwayError      the source does not answer; it may do so later
├── TransformError           a transform does not import, run or return a DataFrame
├── ExpectationError         too many rows of a batch are not as expected
├── SinkError                the sink cannot take what the pipeline writes
│   └── SinkAwayError        the sink does not answer; it may do so later
├── BackfillError            a backfill cannot be done as it was asked for
├── MaintenanceError         a table could not be tidied up
├── ReplayError              what was put aside cannot be taken up again
├── LedgerError              the run ledger misses or contradicts something
├── LeaseError               a checkpoint is not this process's to write to
│   ├── LeaseHeldError       another process holds it
│   └── LeaseLostError       another process has taken it over
├── DeliveryError            somebody could not be told of an alert
├── SurgeryError             a checkpoint must not be changed in this way
├── BlockedError             no retry can mend this run
├── TargetMissedError        the job ended before its target was committed
└── SubmitError              spark-submit failed
"""

from __future__ import annotations

from typing import Any


class TidegateError(Exception):
    """An error told as fact, cause and remedy in one message."""

    def __init__(self, fact: str, *, cause: str = "", remedy: str = "") -> None:
        self.fact = fact
        self.cause = cause
        self.remedy = remedy
        super().__init__(" ".join(part for part in (fact, cause, remedy) if part))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries; keyword-only arguments need this to survive pickling.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[TidegateError], args: tuple[Any, ...], facts: dict[str, Any]
) -> TidegateError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class SettingsError(TidegateError):
    """The environment or the installation is not usable."""


class ConnectionSpecError(TidegateError):
    """A connection is missing or cannot be used."""


def _tell_mistakes(what: str, problems: tuple[str, ...]) -> str:
    count = f"{len(problems)} mistake{'s' if len(problems) != 1 else ''}"
    return f"{what} has {count}:" + "".join(f"\n  - {problem}" for problem in problems)


class SpecError(TidegateError):
    """One or more mistakes in one spec file, all told at once."""

    def __init__(self, file: str, problems: tuple[str, ...]) -> None:
        self.file = file
        self.problems = problems
        super().__init__(_tell_mistakes(file, problems))


class CheckpointError(TidegateError):
    """A checkpoint cannot be judged."""


class NotACheckpointError(CheckpointError):
    """The path holds no checkpoint."""


class CorruptLogError(CheckpointError):
    """A log file is broken."""


class UnsupportedLogError(CheckpointError):
    """A log file is of a format newer than this release reads."""


class TargetMismatchError(CheckpointError):
    """A target speaks of a source that the checkpoint does not have."""


class SourceError(TidegateError):
    """The source cannot be read at all."""


class SourceAwayError(SourceError):
    """The source does not answer; it may do so later."""


class TransformError(TidegateError):
    """A transform does not import, run or return a DataFrame."""


class ExpectationError(TidegateError):
    """Too many rows of a batch are not as expected."""


class SinkError(TidegateError):
    """The sink cannot take what the pipeline writes."""


class SinkAwayError(SinkError):
    """The sink does not answer; it may do so later."""


class BackfillError(TidegateError):
    """A backfill cannot be done as it was asked for; all mistakes at once."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__(_tell_mistakes("The backfill", problems))


class MaintenanceError(TidegateError):
    """A table could not be tidied up."""


class ReplayError(TidegateError):
    """What was put aside cannot be taken up again."""


class LedgerError(TidegateError):
    """The run ledger misses or contradicts something."""


class LeaseError(TidegateError):
    """A checkpoint is not this process's to write to."""


class LeaseHeldError(LeaseError):
    """Another process holds the checkpoint."""


class LeaseLostError(LeaseError):
    """Another process has taken the checkpoint over."""


class DeliveryError(TidegateError):
    """Somebody could not be told of an alert."""


class SurgeryError(TidegateError):
    """A checkpoint must not be changed in this way."""


class BlockedError(TidegateError):
    """No retry can mend this run."""

    def __init__(
        self, fact: str, *, code: str = "blocked", cause: str = "", remedy: str = ""
    ) -> None:
        super().__init__(fact, cause=cause, remedy=remedy)
        self.code = code
        """By which a program knows what is wrong."""


class TargetMissedError(TidegateError):
    """The job ended before its target was committed."""


class SubmitError(TidegateError):
    """spark-submit failed."""

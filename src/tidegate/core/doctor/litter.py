"""What killed drivers leave behind, and files that are not what was written."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

from upath import UPath

from tidegate.core.doctor.fault import Fault, Severity
from tidegate.core.storage import is_local, list_names, read_bytes

_TEMPORARY = re.compile(r"\.(\d+(\.compact)?|metadata)\..+\.tmp|\.\..+\.tmp\.crc")
_CHECKSUM = re.compile(r"\.(\d+(?:\.compact)?|metadata)\.crc")
_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\0"
_SUM_BYTES = 4


def find_litter(folder: UPath, *, next_entry: int, checks_sums: bool) -> Iterator[Fault]:
    """Find temporary files, checksums without a file, and files that do not match theirs."""
    names = set(list_names(folder))
    for name in sorted(names):
        file = str(folder / name)
        if _TEMPORARY.fullmatch(name):
            yield Fault(
                "temporary_file",
                Severity.INFO,
                file,
                f"{file} was left by a driver that was killed while it wrote. Spark ignores it.",
                "It may be deleted.",
            )
        elif (match := _CHECKSUM.fullmatch(name)) and is_local(folder):
            if match[1] not in names:
                yield _judge_orphan(file, match[1], next_entry)
            elif checks_sums and not _matches(folder, match[1], name):
                entry = str(folder / match[1])
                yield Fault(
                    "checksum_mismatch",
                    Severity.WARNING,
                    entry,
                    f"{entry} is not what was written: it does not match {name}. Spark does not "
                    "notice.",
                    "If nobody changed it on purpose, restore it from a backup.",
                )


def _judge_orphan(file: str, entry: str, next_entry: int) -> Fault:
    number = entry.partition(".")[0]
    # Hadoop will not rename a file to a name whose checksum is there.
    if not number.isdigit() or int(number) < next_entry:
        message = f"{file} is the checksum of a file that is gone. Spark ignores it."
        return Fault("orphan_checksum", Severity.INFO, file, message, "It may be deleted.")
    return Fault(
        "orphan_checksum",
        Severity.ERROR,
        file,
        f"{file} is the checksum of a file that is not there, and is in the way of it. Spark would "
        "fail with 'Multiple streaming queries are concurrently using …', which is misleading.",
        "Delete it.",
    )


def _matches(folder: UPath, name: str, checksum: str) -> bool:
    """Whether a file is what Hadoop summed up when it was written."""
    try:
        data, sums = read_bytes(folder / name), read_bytes(folder / checksum)
    except FileNotFoundError:
        return True  # gone meanwhile
    if len(sums) < _HEADER.size:
        return False
    magic, size = _HEADER.unpack_from(sums)
    if magic != _MAGIC or not size:
        return True  # of a format that is not known here
    expected = b"".join(
        zlib.crc32(data[start : start + size]).to_bytes(_SUM_BYTES, "big")
        for start in range(0, len(data), size)
    )
    return expected == sums[_HEADER.size :]

"""Whatever bytes a log file holds: the reader ends, and never takes a batch for committed that is not."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.errors import TidegateError
from tidegate.core.target import FilesTarget, KafkaTarget, find_shortfall

KAFKA = {"orders": {"0": 500, "1": 700}}
FILES = ("metadata", "offsets/1", "offsets/2", "commits/2", "commits/1", "sources/0/2")


@st.composite
def mutations(draw):
    """A way to change bytes: cut off, overwritten, doubled, with rubbish put in, or all new."""
    kind = draw(st.sampled_from(["cut", "flip", "insert", "double", "replace", "swap"]))
    where = draw(st.floats(0, 1))
    rubbish = draw(st.binary(min_size=1, max_size=12))

    def mutate(data: bytes) -> bytes:
        at = int(where * len(data))
        match kind:
            case "cut":
                return data[:at]
            case "flip":
                return data[:at] + rubbish + data[at + len(rubbish) :]
            case "insert":
                return data[:at] + rubbish + data[at:]
            case "double":
                return data + data[at:]
            case "replace":
                return rubbish * 20
            case _:
                return data[at:] + data[:at]

    return mutate


def build(new_checkpoint):
    checkpoint = new_checkpoint()
    for batch in range(3):
        checkpoint.log_files(batch, f"/landing/{batch}.json")
        ends = {"orders": {"0": 100 * (batch + 1), "1": 200 * (batch + 1)}}
        checkpoint.offset(batch, {"logOffset": batch}, ends)
        if batch < 2:
            checkpoint.commit(batch)
    return checkpoint


@pytest.mark.timeout(120)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.sampled_from(FILES), min_size=1, max_size=3), mutate=mutations())
def test_no_damage_crashes_the_reader_or_is_taken_for_a_commit(new_checkpoint, names, mutate):
    checkpoint = build(new_checkpoint)  # batch 2 is pending
    for name in names - {"commits/2"}:
        checkpoint.put(name, mutate(checkpoint.read(name)))
    progress = read_progress(checkpoint.path)
    assert progress.state in set(State)
    assert progress.committed_batch in (None, 0, 1)
    assert progress.state is not State.COMMITTED
    for target in (FilesTarget(("/landing/2.json",)), KafkaTarget({"orders": {"0": 10**15}}, "1")):
        if not progress.is_readable:
            continue
        try:
            shortfall = find_shortfall(target, progress, checkpoint.path)
        except TidegateError:
            continue
        assert shortfall is not None or _was_made_to_say_so(checkpoint)
    for fault in examine_checkpoint(checkpoint.path):
        assert fault.message
        assert fault.remedy


def _was_made_to_say_so(checkpoint):
    """Whether the position that the newest commit names was itself changed, into a valid one."""
    original = b'{"logOffset":1}\n{"orders":{"0":200,"1":400}}'
    return original not in checkpoint.read("offsets/1")


@pytest.mark.timeout(120)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), mutations().map(lambda m: m(b'v1\n{"a":1}'))))
def test_a_commit_of_any_bytes_is_valid_only_if_it_reads_as_one(new_checkpoint, content):
    checkpoint = build(new_checkpoint).put("commits/2", content)
    progress = read_progress(checkpoint.path)
    if progress.state is State.COMMITTED:
        first, _, rest = content.decode().partition("\n")
        assert first.strip() in {"v1", "v2", "v3"}
        assert not rest or rest.lstrip().startswith("{")
    else:
        assert progress.state in {State.CORRUPT, State.UNSUPPORTED}


@pytest.mark.parametrize("bomb", ["[" * 100_000, '{"a":' * 50_000, "9" * 10_000, "\0" * 1_000_000])
@pytest.mark.parametrize("name", FILES)
def test_a_bomb_ends_in_words(new_checkpoint, name, bomb):
    checkpoint = build(new_checkpoint).put(name, f"v1\n{bomb}".encode())
    assert not read_progress(checkpoint.path).is_readable or name in {"sources/0/2", "commits/1"}
    assert examine_checkpoint(checkpoint.path)

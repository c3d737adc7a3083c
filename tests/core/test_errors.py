"""Errors keep their facts, also when they cross a process boundary."""

from multiprocessing import Pipe

import pytest

from tidegate.core import errors
from tidegate.core.errors import BackfillError, SpecError, TidegateError

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, TidegateError)
]
PLAIN = [kind for kind in KINDS if kind not in (SpecError, BackfillError)]


def send(error):
    here, there = Pipe()
    with here, there:
        here.send(error)
        return there.recv()


@pytest.mark.parametrize("kind", PLAIN)
def test_an_error_is_pickled_with_its_facts(kind):
    error = kind("It broke.", cause="It was old.", remedy="Buy another.")
    copy = send(error)
    assert type(copy) is kind
    assert str(copy) == str(error) == "It broke. It was old. Buy another."
    assert (copy.fact, copy.cause, copy.remedy) == ("It broke.", "It was old.", "Buy another.")


@pytest.mark.parametrize("kind", PLAIN)
def test_an_error_needs_only_its_fact(kind):
    assert str(kind("It broke.")) == "It broke."
    assert str(kind("It broke.", remedy="Buy another.")) == "It broke. Buy another."


@pytest.mark.parametrize(
    ("problems", "text"),
    [
        (("name: bad",), "a.yaml has 1 mistake:\n  - name: bad"),
        (("one", "two"), "a.yaml has 2 mistakes:\n  - one\n  - two"),
    ],
)
def test_a_spec_error_is_pickled_with_all_its_mistakes(problems, text):
    copy = send(SpecError("a.yaml", problems))
    assert type(copy) is SpecError
    assert (copy.file, copy.problems, str(copy)) == ("a.yaml", problems, text)


def test_a_backfill_s_error_is_pickled_with_all_its_mistakes():
    copy = send(BackfillError("one", "two"))
    assert type(copy) is BackfillError
    assert copy.problems == ("one", "two")
    assert str(copy) == "The backfill has 2 mistakes:\n  - one\n  - two"


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_stands_in_the_tree(kind):
    assert kind.__name__ in errors.__doc__
    assert kind.__doc__

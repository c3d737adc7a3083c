import sys
from pathlib import Path

import pytest

from tidegate.core.errors import TransformError
from tidegate.core.function import load_function


@pytest.fixture
def folder(tmp_path):
    """Write modules into a folder."""

    def fill(**modules):
        for name, code in modules.items():
            file = tmp_path / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(code)
        return tmp_path

    return fill


def test_a_function_is_imported_from_the_folder(folder):
    function = load_function("steps_a:double", folder(steps_a="def double(n): return 2 * n"))
    assert function(21) == 42


def test_a_function_of_a_package_is_imported(folder):
    where = folder(
        steps_b__orders="from steps_b.helper import one\ndef add(n): return n + one",
        steps_b__helper="one = 1",
    )
    assert load_function("steps_b.orders:add", where)(1) == 2


def test_the_folder_comes_first_and_only_once_on_the_path(folder):
    where = folder(steps_c="def f(): ...\ndef g(): ...")
    load_function("steps_c:f", where)
    load_function("steps_c:g", where)
    assert sys.path[0] == str(where)
    assert sys.path.count(str(where)) == 1


def test_anything_that_can_be_called_will_do(folder):
    where = folder(steps_d="class Step:\n    def __call__(self): return 7\nstep = Step()")
    assert load_function("steps_d:step", where)() == 7


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:", "SyntaxError: "),
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
        ("from os import no_such_name", "ImportError: cannot import name 'no_such_name'"),
    ],
)
def test_a_module_that_does_not_import_is_told_with_its_reason(folder, code, told):
    where = folder(steps_e=code)
    with pytest.raises(TransformError) as raised:
        load_function("steps_e:f", where)
    assert f"The transform steps_e:f cannot be imported: {told}" in str(raised.value)
    assert f"Check that steps_e.py is below {where} and imports." in str(raised.value)
    assert raised.value.__cause__ is not None


def test_a_module_that_ends_the_program_at_import_is_told(folder):
    with pytest.raises(TransformError, match="steps_f:f cannot be imported"):
        load_function("steps_f:f", folder(steps_f="import sys\nsys.exit(0)"))


@pytest.mark.parametrize("reference", ["no_such_module:f", "no.such.module:f"])
def test_a_module_that_is_not_there_is_told_with_the_file_to_write(folder, reference):
    where = folder()
    file = reference.partition(":")[0].replace(".", "/") + ".py"
    with pytest.raises(TransformError, match=f"Check that {file} is below {where}"):
        load_function(reference, where)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("def b(): ...\ndef a(): ...\nn = 1", "It has a, b."),
        ("from os import getcwd\nn = 1", "It has no functions."),
        ("", "It has no functions."),
        ("f = 5", "It has no functions."),
    ],
)
def test_a_function_that_is_not_there_is_told_with_those_that_are(folder, code, remedy):
    with pytest.raises(TransformError) as raised:
        load_function("steps_g:f", folder(steps_g=code))
    assert str(raised.value) == (
        f"The transform steps_g:f does not exist: steps_g has no function 'f'. {remedy}"
    )


def test_a_module_that_failed_can_be_mended_and_imported(folder):
    with pytest.raises(TransformError):
        load_function("steps_h:f", folder(steps_h="1 / 0  # long enough to change the file's size"))
    assert load_function("steps_h:f", folder(steps_h="def f(): return 1"))() == 1


def test_the_demo_transform_is_imported_without_spark(monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    demo = Path(__file__).parents[2] / "pipelines"
    function = load_function("transforms.orders:deduplicate", demo)
    assert Path(function.__code__.co_filename) == demo / "transforms" / "orders.py"

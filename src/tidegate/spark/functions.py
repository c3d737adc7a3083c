"""The Python functions that specs name, with all that executors need of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value

from tidegate.core.function import load_function


def load_shipped_function(reference: str, folder: Path) -> Callable[..., Any]:
    """Import a function; what it refers to in the pipelines' folder goes to executors by value.

    They may be on machines that have no such folder, and their Python does not look there.
    """
    function = load_function(reference, folder)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(folder):
            register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return function

"""The Python functions that specs name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate.core.errors import TransformError


def load_function(reference: str, folder: Path, what: str = "transform") -> Callable[..., Any]:
    """Import a function, named as module:function, from the pipelines' folder."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module_name, _, function_name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise TransformError(
            f"The {what} {reference} cannot be imported: {type(error).__name__}: {error}.",
            remedy=f"Check that {module_name.replace('.', '/')}.py is below {folder} and imports.",
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        found = sorted(name for name, value in vars(module).items() if _is_own(value, module_name))
        raise TransformError(
            f"The {what} {reference} does not exist: {module_name} has no function "
            f"{function_name!r}.",
            remedy=f"It has {', '.join(found) or 'no functions'}.",
        )
    return function  # type: ignore[no-any-return]


def _is_own(value: Any, module: str) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module

"""The Python functions that a workflow file names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from backedge.core.errors import WorkflowError
from backedge.core.suggestions import did_you_mean
from backedge.project.results import stdout_for_results


def imported(name: str, folder: Path) -> Callable[..., object]:
    """The function that module:function names; the module is in the folder or installed. Raises WorkflowError."""
    module, _, function = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        with stdout_for_results():
            found: object = import_module(module)
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise WorkflowError(
            f"agent python:{name} cannot be imported: {kind}{error}{_other_modules(module, folder, error)}"
        ) from error
    for part in function.split("."):
        holder, found = found, getattr(found, part, None)
        if found is None:
            raise WorkflowError(f"module {module!r} has no function {function!r}: {_other_functions(part, holder)}")
    if not callable(found):
        raise WorkflowError(
            f"module {module!r} has a value {function!r}, not a function: correct the name, or write the function"
        )
    made: Callable[..., object] = found
    return made


def _other_modules(module: str, folder: Path, error: BaseException) -> str:
    """A suggestion: the module of the folder that was probably meant."""
    if not isinstance(error, ModuleNotFoundError) or error.name != module.partition(".")[0]:
        return ""
    suggestion = did_you_mean(module, sorted(path.stem for path in folder.glob("*.py")))
    return (
        f": {suggestion}"
        if suggestion.startswith("did you mean")
        else f": write {module.replace('.', '/')}.py, or install it"
    )


def _other_functions(function: str, holder: object) -> str:
    known = [name for name, each in vars(holder).items() if callable(each) and not name.startswith("_")]
    suggestion = did_you_mean(function, known)
    return suggestion if suggestion.startswith("did you mean") else "correct the name, or write it"

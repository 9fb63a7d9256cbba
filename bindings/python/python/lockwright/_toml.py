"""Writing TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ._errors import BadInput, Fault
from ._time import Duration


def toml_lines(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """The lines of a table. A value of `None` is left out."""
    return [f"{key} = {toml(value)}" for key, value in pairs if value is not None]


def toml(value: Any) -> str:
    """A value. Raises `BadInput` if TOML has no such value."""
    if isinstance(value, (str, Duration)):
        # A JSON string is a TOML string, except for characters outside the basic plane, which stay as they are.
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, Mapping):
        return f"{{ {', '.join(toml_lines(value.items()))} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(toml, value))}]"
    raise BadInput([Fault(f"{value!r} is neither a number nor text, nor a list or a mapping of these")])

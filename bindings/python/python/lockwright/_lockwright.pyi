"""The compiled part of the package. Programs use the functions of `lockwright`."""

from typing import Any

__version__: str

def call(arguments: list[str], input: bytes) -> tuple[int, str, str]: ...
def main(arguments: list[str]) -> int: ...
def parse(
    source: bytes,
) -> tuple[dict[str, Any] | None, list[tuple[str, str | None, int | None, int | None]]]: ...

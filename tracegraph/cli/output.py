"""What the command prints, and the codes it ends with. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, NoReturn

from tracegraph.plain_data import safe_repr, safe_str, to_plain_data

__all__ = [
    "CliError",
    "ExitCode",
    "RunOptions",
    "fail",
    "command_line",
    "has_terminal",
    "json_line",
    "json_text",
    "local_time",
    "note",
    "one_line",
    "print_data",
    "print_line",
    "print_text",
    "printable",
    "safe_repr",
    "safe_str",
    "to_plain_data",
]


class ExitCode(IntEnum):
    """What a script can tell apart."""

    COMPLETED = 0
    FAILED = 1
    USAGE = 2
    """The command cannot be carried out: a bad argument, an unreadable file, a graph that does not load."""
    INTERRUPTED = 3
    """The run pauses for an answer, or at a breakpoint."""
    NOT_FOUND = 4
    """There is no such checkpoint database, thread or checkpoint."""
    NOT_PENDING = 5
    """The thread asks nothing, or nothing of it is left to run."""
    WRONG_ANSWER = 6
    """The answers do not fit the questions: one is missing, ambiguous, or for a question that nobody asks."""
    KEYBOARD = 130
    TERMINATED = 143
    """SIGTERM; the run stopped between two supersteps."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is traced, and how it is shown."""

    is_json: bool
    has_store: bool
    shows_traceback: bool


class CliError(Exception):
    """Ends the command with one line on stderr."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        self.code = code
        super().__init__(message)


def fail(message: str, cause: BaseException | None = None) -> NoReturn:
    """End the command because it cannot be carried out."""
    raise CliError(message) from cause


def has_terminal(name: str) -> bool:
    """Say whether ``stdout`` or ``stderr`` is a terminal."""
    return bool(getattr(sys, name).isatty())


def note(text: str) -> None:
    """Print a line for people, where it does not get into the result."""
    print(printable(text), file=sys.stderr, flush=True)


# Characters that move the cursor, colour the terminal, break the line or turn the writing round; lone surrogates.
_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def printable(text: str) -> str:
    r"""Return text with control characters as escapes: a name that somebody chose must not steer the terminal.

    >>> print(printable("one\ntwo"))
    one\ntwo
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def print_line(text: str) -> None:
    """Print a line of a list or a heading."""
    print_text(printable(text))


def command_line(name: str, arguments: Sequence[str], options: Sequence[str]) -> str:
    """Return a command for a shell; *options* are put as they are.

    >>> command_line("state", ["t 1"], ["--history"])
    "tracegraph state 't 1' --history"
    >>> command_line("state", ["-t"], ["--history"])
    'tracegraph state --history -- -t'
    """
    quoted = [_quoted(argument) for argument in arguments]
    # What begins like an option is taken for one unless two dashes stand before it.
    needs_dashes = any(argument.startswith("-") for argument in arguments)
    return " ".join(["tracegraph", name, *([*options, "--", *quoted] if needs_dashes else [*quoted, *options])])


def _quoted(text: str) -> str:
    if _CONTROL.search(text) is None:
        return shlex.quote(text)
    # Bash and Zsh read the escapes in it.
    return "$'" + printable(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def local_time(at: datetime) -> str:
    """Return a time as lists show it: to the second, where the user is."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def one_line(text: str) -> str:
    r"""Return text on one line, for an error that must not look like a traceback.

    >>> one_line("two faults:\n- a\n- b")
    'two faults: - a - b'
    """
    return " ".join(text.split())


def json_text(data: Any, *, indent: int | None = 2) -> str:
    """Return data as indented JSON, or on one line."""
    # ASCII only: a lone surrogate, or a terminal of another encoding, must not break the output.
    is_safe = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(data, indent=indent, ensure_ascii=not is_safe)
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    # Only strings have such letters; json escapes those below the space alone.
    return _CONTROL_8_BIT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_CONTROL_8_BIT = re.compile("[\\x7f-\\x9f]")


def json_line(data: Any) -> str:
    """Return data as JSON on one line, which a terminal gets shortened; a pipe gets everything."""
    text = json_text(data, indent=None)
    if len(text) <= _MOST_ON_TERMINAL or not has_terminal("stdout"):
        return text
    return f"{text[:_MOST_ON_TERMINAL]}... ({len(text)} characters; --json has all)"


_MOST_ON_TERMINAL = 400


def print_text(text: str) -> None:
    """Print a result that is a text; what the terminal or pipe cannot take is escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def print_data(data: Any) -> None:
    """Print JSON, in colours on a terminal."""
    text = json_text(data)
    if not has_terminal("stdout"):
        print(text, flush=True)
        return
    from rich.console import Console
    from rich.json import JSON

    # The terminal breaks long lines, not rich: what is copied from it stays JSON.
    Console().print(JSON(text, ensure_ascii=text.isascii()), soft_wrap=True)

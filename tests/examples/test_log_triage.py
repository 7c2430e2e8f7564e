"""The log triage example, on the log that the repository ships and on logs made here."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = runpy.run_path(str(EXAMPLES / "log_triage.py"), run_name="log_triage")
SHIPPED_LOG = EXAMPLES / "data" / "package-manager.log"


def triage(path: Path, **more: str) -> dict[str, Any]:
    answer: dict[str, Any] = EXAMPLE["graph"].invoke({"path": str(path), **more})
    return answer


def test_shipped_log_is_read_with_two_codecs() -> None:
    """A piece that is not UTF-8 is retried with the next codec; the others are not."""
    answer = triage(SHIPPED_LOG)

    assert answer["tally"] == {"lines": 427, "utf-8": 1, "cp1252": 1}
    assert "zurückgehaltene defekte Pakete" in answer["report"]
    assert "## Errors: 17 lines, 12 kinds" in answer["report"]


def test_lines_that_differ_in_ids_and_paths_are_one_kind(tmp_path: Path) -> None:
    """Counts are added up over the pieces."""
    log = tmp_path / "app.log"
    log.write_text(
        "".join(f"2026-01-01 10:00:{n % 60:02} ERROR cannot open /srv/data/{n}.json (try {n})\n" for n in range(2000)), "utf-8"
    )

    answer = triage(log)

    assert answer["tally"]["lines"] == 2000
    assert answer["tally"]["utf-8"] > 1
    assert "## Errors: 2000 lines, 1 kinds\n\n- 2000 x `<time> ERROR cannot open <path> (try <n>" in answer["report"]


def test_empty_log_gives_a_report(tmp_path: Path) -> None:
    """With nothing to send, the run goes straight to the report."""
    log = tmp_path / "empty.log"
    log.touch()

    assert "0 lines in 0 pieces (empty)" in triage(log)["report"]


def test_report_is_written_where_asked(tmp_path: Path) -> None:
    """The file holds what is returned, and its folder is made."""
    report = tmp_path / "reports" / "triage.md"

    answer = triage(SHIPPED_LOG, report_path=str(report))

    assert report.read_text("utf-8") == answer["report"]


def test_missing_log_is_an_error_of_the_file_system(tmp_path: Path) -> None:
    """Nothing wraps or hides it."""
    with pytest.raises(FileNotFoundError):
        triage(tmp_path / "none.log")


def test_without_a_path_the_machine_s_own_log_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty and unreadable candidates are passed over; the shipped log is the last resort."""
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    assert EXAMPLE["find_log"]() == SHIPPED_LOG

    (tmp_path / "dpkg.log").touch()
    (tmp_path / "syslog").write_text("kernel: warning: full\n", "utf-8")
    assert EXAMPLE["find_log"]() == tmp_path / "syslog"


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("dpkg: error processing archive x.deb", "error"),
        ("E: Unable to locate package", "error"),
        ("Traceback (most recent call last):", "error"),
        ("dpkg: Fehler: unerwartetes Dateiende", "error"),
        ("WARNING: retrying", "warning"),
        ("status installed libgpg-error-dev:amd64 1.46", "other"),
        ("Unpacking liberror-perl (0.17029-2) ...", "other"),
        ("wrote /var/log/error.log", "other"),
    ],
)
def test_level_is_read_from_words_not_from_names(line: str, level: str) -> None:
    """A package or file called error is no error."""
    assert EXAMPLE["level_of"](line) == level

"""The upload hook: the full content of model calls goes to a file system or object store, and spans refer to it.

Named and laid out as the GenAI utilities of OpenTelemetry have it: ``{id}_inputs.json``, ``{id}_outputs.json``, and
instructions and tool definitions under the hash of what they say, so that they are stored once.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import threading
from collections import OrderedDict, deque
from typing import Any, Final, Literal
from uuid import uuid4

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.content.capture import HOOK_VARIABLE

__all__ = ["Upload"]

logger = logging.getLogger("tracegraph.telemetry")

PATH_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH"
FORMAT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_UPLOAD_FORMAT"
QUEUE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_UPLOAD_MAX_QUEUE_SIZE"

_MOST_KNOWN: Final = 1_024
"""Names of stored instructions and definitions that are remembered."""


class Upload:
    """Writes files in a thread of its own; what does not fit into the queue is dropped and counted, and no run waits.

    Args:
        base_path: where to, as fsspec has it: a folder, ``s3://bucket/prompts``, ``gs://...``, ``memory://...``.
        format: ``json``, one array a file, or ``jsonl``, one object a line with its ``index``.
        max_queue_size: files that may wait.

    Raises:
        InvalidInputError: fsspec or what it needs for this path is not installed, or an argument is wrong.
    """

    def __init__(self, base_path: str, *, format: Literal["json", "jsonl"] = "json", max_queue_size: int = 20) -> None:
        if format not in ("json", "jsonl"):
            raise InvalidInputError(f"content is uploaded as json or jsonl, not {format!r}: correct {FORMAT_VARIABLE}")
        if max_queue_size < 1:
            raise InvalidInputError(f"the upload queue needs a place at least, not {max_queue_size}: correct {QUEUE_VARIABLE}")
        self.format = format
        self.max_queue_size = max_queue_size
        self.dropped_count = 0
        """Files that found the queue full."""
        self.failed_count = 0
        """Files that could not be written."""
        self._file_system, self.base_path = _open(base_path)
        self._start()

    @classmethod
    def from_environment(cls) -> Upload | None:
        """Return what the standard variables ask for, None if they name no hook.

        Raises:
            InvalidInputError: they name another hook, no path, or a wrong format or size.
        """
        hook = os.environ.get(HOOK_VARIABLE, "").strip()
        if not hook or hook.lower() in ("none", "no-op"):
            return None
        if hook != "upload":
            raise InvalidInputError(f"{HOOK_VARIABLE} is {hook!r}, but the only hook there is, is 'upload'")
        path = os.environ.get(PATH_VARIABLE, "").strip()
        if not path:
            raise InvalidInputError(f"{HOOK_VARIABLE} is 'upload', so {PATH_VARIABLE} must say where to: a folder or s3://...")
        size = os.environ.get(QUEUE_VARIABLE, "").strip() or "20"
        if not size.isdecimal():
            raise InvalidInputError(f"{QUEUE_VARIABLE} must be a number, not {size!r}")
        chosen: Any = os.environ.get(FORMAT_VARIABLE, "").strip().lower() or "json"
        made = cls(path, format=chosen, max_queue_size=int(size))
        atexit.register(made.shutdown)
        return made

    def _start(self) -> None:
        self._process = os.getpid()
        self._queue: deque[tuple[str, Any]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = 0
        self._is_closed = False
        self._known: OrderedDict[str, None] = OrderedDict()

    def submit(self, kind: str, data: list[Any], call_id: str, *, is_shared: bool = False) -> str | None:
        """Let *data*, a list that nobody changes, be written; return where it will be, None if it was dropped.

        Args:
            kind: what it is, for its name: ``inputs``, ``outputs``.
            call_id: of which call, for its name.
            is_shared: name it after what it says instead, and write it once.
        """
        name = _hash(data) if is_shared else call_id
        return self._enqueue(f"{self.base_path}/{name}_{kind}.{self.format}", data, is_shared=is_shared)

    def _enqueue(self, path: str, data: list[Any] | bytes, *, is_shared: bool) -> str | None:
        if os.getpid() != self._process:
            self._start()  # a fork has neither the thread nor any business with its parent's queue
        with self._changed:
            if is_shared and path in self._known:
                self._known.move_to_end(path)
                return path
            if self._is_closed or len(self._queue) + self._busy >= self.max_queue_size:
                self.dropped_count += 1
                if self.dropped_count == 1:
                    logger.warning("the upload queue is full: content was dropped; further drops are only counted")
                return None
            if is_shared:
                self._known[path] = None
                if len(self._known) > _MOST_KNOWN:
                    self._known.popitem(last=False)
            self._queue.append((path, data))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tracegraph-upload", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return path

    def store_blob(self, data: bytes, mime_type: str | None) -> str | None:
        """Let binary data be written under the hash of what it is; return where it will be, None if it was dropped."""
        import mimetypes

        suffix = (mimetypes.guess_extension(mime_type) if mime_type else None) or ".bin"
        return self._enqueue(f"{self.base_path}/{hashlib.sha256(data).hexdigest()}{suffix}", data, is_shared=True)

    @staticmethod
    def new_id() -> str:
        """Return an id for the files of one call."""
        return str(uuid4())

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until nothing waits; return whether that was within *timeout_s* seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout_s)

    def shutdown(self, timeout_s: float = 10.0) -> bool:
        """Write what waits and take nothing more; return whether all was written in time. Harmless if repeated."""
        is_done = self.flush(timeout_s) if os.getpid() == self._process else True
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        return is_done

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._is_closed)
                if not self._queue:
                    self._thread = None
                    return
                path, data = self._queue.popleft()
                self._busy = 1
            try:
                self._write(path, data)
            except Exception as error:  # noqa: BLE001  # the store is anybody's, and may fail in any way
                self._failed(path, error)
            finally:
                with self._changed:
                    self._busy = 0
                    self._changed.notify_all()

    def _write(self, path: str, data: list[Any] | bytes) -> None:
        if isinstance(data, bytes):
            with self._file_system.open(path, "wb") as file:
                file.write(data)
            return
        items = [data] if self.format == "json" else [_indexed(item, at) for at, item in enumerate(data)]
        with self._file_system.open(path, "w", encoding="utf-8") as file:
            for item in items:
                file.write(json.dumps(item, ensure_ascii=False) + "\n")

    def _failed(self, path: str, error: Exception) -> None:
        with self._changed:
            self.failed_count += 1
            self._known.pop(path, None)
            is_first = self.failed_count == 1
        if is_first:
            logger.warning("content could not be uploaded to %s: %r; further failures are only counted", self.base_path, error)


def _open(base_path: str) -> tuple[Any, str]:
    """Return the file system of a path, and the path with its protocol."""
    try:
        import fsspec
    except ImportError as error:
        raise InvalidInputError("uploading content needs fsspec: pip install 'tracegraph[upload]'") from error
    try:
        file_system, path = fsspec.url_to_fs(base_path, auto_mkdir=True) if _is_local(base_path) else fsspec.url_to_fs(base_path)
        return file_system, file_system.unstrip_protocol(path).rstrip("/")
    except Exception as error:
        raise InvalidInputError(f"content cannot be uploaded to {base_path!r}: {error}; correct {PATH_VARIABLE}") from error


def _is_local(path: str) -> bool:
    return "://" not in path or path.startswith(("file://", "local://"))


def _indexed(item: Any, at: int) -> Any:
    return {**item, "index": at} if isinstance(item, dict) else {"value": item, "index": at}


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

"""One request by OTLP/HTTP, with protocol buffers."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import requests

from tracegraph_exporters.spool.answers import Answer
from tracegraph_exporters.spool.destination import Destination
from tracegraph_exporters.spool.services import rejected_of

__all__ = ["HttpTransport"]

_RETRYABLE: Final = frozenset({429, 502, 503, 504})
_ABOUT_US: Final = frozenset({401, 403, 407})
"""These say that the key is wrong, not the data: whoever runs the collector can mend that, and what waits can be sent then.

The protocol has them dropped. What it finds at no such address (404) is dropped here too: a Jaeger takes no log records, ever.
"""

_TOO_LARGE: Final = 413


class HttpTransport:
    """Sends to *destination* over one kept connection."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._session = requests.Session()
        self._session.headers.update(destination.headers)
        self._session.headers["Content-Type"] = "application/x-protobuf"
        if destination.is_compressed:
            self._session.headers["Content-Encoding"] = "gzip"
        self._session.verify = destination.certificate or True
        if destination.client_certificate is not None:
            key = destination.client_key
            self._session.cert = (destination.client_certificate, key) if key is not None else destination.client_certificate

    def send(self, body: bytes) -> Answer:
        """Send *body*; what the network says is a reason to try again, too."""
        destination = self._destination
        try:
            response = self._session.post(
                destination.endpoint,
                data=gzip.compress(body, 6) if destination.is_compressed else body,
                timeout=destination.timeout_s,
                # A POST that is redirected becomes a GET, and would be answered by a page.
                allow_redirects=False,
            )
        except (requests.RequestException, OSError, ValueError) as error:
            return Answer("later", f"{type(error).__name__}: {_reason(error)}")
        return _meaning(response, destination)

    def close(self) -> None:
        """Drop the connection."""
        self._session.close()


def _reason(error: Exception) -> object:
    """Return what went wrong, without the URL and the headers: these texts are logged, and those may hold keys."""
    if isinstance(error, ValueError):
        return "the endpoint or a header is not valid"
    cause = error.args[0] if error.args else ""
    # What urllib3 says of retries quotes the path; its reason is what the network said.
    return getattr(cause, "reason", None) or cause


def _meaning(response: Any, destination: Destination) -> Answer:
    status = response.status_code
    text = f"HTTP {status} {response.reason or ''}".strip()
    if 200 <= status < 300:
        rejected, message = rejected_of(destination.signal, response.content)
        return Answer("taken", message, rejected=rejected)
    if status == _TOO_LARGE:
        return Answer("too_large", text)
    if status in _RETRYABLE or status in _ABOUT_US or 300 <= status < 400:
        return Answer("later", text, wait_s=_retry_after(response.headers.get("Retry-After")))
    return Answer("refused", text)


def _retry_after(value: str | None) -> float | None:
    """Return what the header asks for: seconds, or a date.

    >>> _retry_after("7"), _retry_after("soon"), _retry_after("Thu, 01 Jan 1970 00:00:00 GMT")
    (7.0, None, 0.0)
    """
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())

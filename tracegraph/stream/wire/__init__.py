"""The wire form: whatever a stream yields as JSON, with a version and a schema, and as NDJSON or server-sent events."""

from tracegraph.stream.wire.encoding import to_ndjson, to_sse
from tracegraph.stream.wire.form import WIRE_VERSION, to_wire
from tracegraph.stream.wire.schema import wire_schema

__all__ = ["WIRE_VERSION", "to_ndjson", "to_sse", "to_wire", "wire_schema"]

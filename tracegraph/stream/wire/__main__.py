"""Prints the JSON schema of the wire form, as it is in ``docs/wire``."""

from __future__ import annotations

import json
import sys

from tracegraph.stream.wire.schema import wire_schema

sys.stdout.write(json.dumps(wire_schema(), indent=1) + "\n")

"""Grafana dashboards, alert rules and a stack to look at them with, built from the registry of what telemetry says.

``python -m dashboards`` writes what is checked in below this folder. Every metric, label and attribute is looked up in
:mod:`tracegraph.telemetry.semconv`, so a query about something that there is not fails to build.
"""

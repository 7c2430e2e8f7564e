"""The flat events of ``astream_events(version="v2")``: one dict for each start, piece and end of whatever runs."""

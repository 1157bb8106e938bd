"""Rule files as records: scan, gate, convert and check, without ever importing the engine.

The engine's parser comes in as a function (``Parser``), so that this package runs anywhere.
"""

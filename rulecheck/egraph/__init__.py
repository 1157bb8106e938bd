"""The engine: loading, matching and reading back in the child; the client in the parent.

Only ``bindings`` imports egglog. ``client`` and ``rematch`` belong to the parent and import none
of the rest.
"""

"""rulecheck: verify the cuBLASLt rewrite rules of e-graph tensor compilers."""

__version__ = "0.1.0"

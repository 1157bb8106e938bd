"""Small correct rules, written so that a bug can be planted by substituting text.

Every field of the new call stands on its own line behind a comment that names it
(``; new ldc``), so that a test can say where a caret belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.luminal_terms import GEMM_FIELDS

COLUMN = {f"{operand}_order": '"COL"' for operand in "abcd"}
ONE = {"batch_count": "(MNum 1)", **{f"stride_{operand}": "(MNum 0)" for operand in "abcd"}}
PLAIN = {"compute_type": '"default"', "scale_dtype": '"default"', "a_layout": '"N"'}
NO_C = {"beta": "0.0", "epilogue": '"DEFAULT"'}


def dtypes(name: str) -> dict[str, str]:
    """All four types alike."""
    return {f"{operand}_dtype": f"({name})" for operand in "abcd"}


def inputs(*names: str, tail: str = "(INil)") -> str:
    """An input list."""
    for name in reversed(names):
        tail = f"(ICons {name} {tail})"
    return tail


def old_call(fields: Mapping[str, str], listed: str) -> str:
    """A library matmul of the left side; a field that is not given is a variable."""
    spelled = " ".join(fields.get(name, f"?{name}") for name in GEMM_FIELDS)
    return f"(Op (cublaslt {spelled}) {listed})"


def new_call(fields: Mapping[str, str], listed: str) -> str:
    """A library matmul of the right side, one field a line."""
    lines = [f"      {fields.get(name, f'?{name}')} ; new {name}" for name in GEMM_FIELDS]
    return "\n".join(["(Op (cublaslt", *lines, f"    ) {listed} ; new inputs", "  )"])


def rule(name: str, body: str, head: str) -> str:
    """A rule of the backend's ruleset."""
    return f'(rule (\n{body}\n) (\n  {head}\n) :ruleset matmul_backend :name "{name}")\n'


_F32 = {**dtypes("F32"), **COLUMN, **ONE, **PLAIN, **NO_C, "ldc": "?m", "ldd": "?m"}
_RANK_2 = "(= ?shape (ECons ?n (ECons ?m (ENil))))"
_DENSE = "(ECons (MMul (MIter) ?m) (ECons (MIter) (ENil)))"

RESIDUAL = rule(
    "residual",
    f"""  (= ?ab {old_call(_F32, inputs("?a", "?b"))})
  (= ?sum (Op (Add ?shape ?s ?rs ?s) {inputs("?ab", "?r")}))
  {_RANK_2}
  (= ?s {_DENSE})
  (= ?rs {_DENSE}) ; strides of the residual""",
    f"(union ?sum {new_call({**_F32, 'beta': '1.0'}, inputs('?a', '?b', '?r'))})",
)
WIDEN = rule(
    "widen",
    f"""  (= ?ab {old_call({**dtypes("Bf16"), **PLAIN, **NO_C}, inputs("?a", "?b", tail="?more"))})
  (= ?wide (Op (Cast ?size (F32)) {inputs("?ab")}))""",
    "(union ?wide "
    + new_call(
        {**dtypes("Bf16"), **PLAIN, **NO_C, "c_dtype": "(F32)", "d_dtype": "(F32)"},
        inputs("?a", "?b", tail="?more"),
    )
    + ")",
)
_WITH_BIAS = {**_F32, "epilogue": '"BIAS"'}
BIAS = rule(
    "bias",
    f"""  (= ?ab {old_call(_F32, inputs("?a", "?b"))})
  (= ?sum (Op (Add ?shape ?s ?vs ?s) {inputs("?ab", "?v")}))
  {_RANK_2}
  (= ?s {_DENSE})
  (= ?vs (ECons (MNum 0) (ECons (MIter) (ENil)))) ; strides of the bias""",
    f"(union ?sum {new_call(_WITH_BIAS, inputs('?a', '?b', '?v'))})",
)
_ROW_MAJOR = {
    **{f"{operand}_dtype": "?dt" for operand in "abcd"},
    **COLUMN,
    **ONE,
    **PLAIN,
    **NO_C,
    **dict(zip("mn", ("?n", "?m"), strict=True)),
    **dict.fromkeys(("lda", "ldc", "ldd"), "?n"),
    "ldb": "?k",
    "b_layout": '"N"',
    "alpha": "1.0",
}
LAYOUT = rule(
    "layout",
    f"""  (= ?kind (GenericMatmul ?out ?mul ?k ?sa ?sb ?sp (MIter) ?so ?dt))
  (= ?sum (Op ?kind {inputs("?a", "?b")}))
  (= ?out (ECons ?m (ECons ?n (ENil))))
  (= ?mul (ECons ?m (ECons ?n (ECons ?k (ENil)))))
  (= ?sa (ECons (MMul (MIter) ?k) (ECons (MNum 0) (ECons (MIter) (ENil)))))
  (= ?sb (ECons (MNum 0) (ECons (MIter) (ECons (MMul (MIter) ?n) (ENil)))))
  (= ?sp (ECons (MMul (MIter) (MMul ?n ?k)) (ECons (MMul (MIter) ?k) (ENil))))
  (= ?so (ECons (MMul (MIter) ?n) (ECons (MIter) (ENil))))
  (= ?dt (dtype ?a))
  (!= ?m (MNum 0))
  (!= ?n (MNum 0))
  (cublaslt_base_dtype ?dt)""",
    f"(union ?sum {new_call(_ROW_MAJOR, inputs('?b', '?a'))})",
)
SCALE = rule(
    "scale",
    f"""  (= ?ab {old_call({**_F32, "alpha": "1.0"}, inputs("?a", "?b"))})
  (= ?s (Op (Constant ?value) (INil)))
  (= ?scaled (Op (Mul ?shape ?st ?zero ?st) {inputs("?ab", "?s")}))
  {_RANK_2}
  (= ?st {_DENSE})
  (= ?zero (ECons (MNum 0) (ECons (MNum 0) (ENil))))""",
    f"(union ?scaled {new_call({**_F32, 'alpha': '?value'}, inputs('?a', '?b'))})",
)
RULES = {
    "residual": RESIDUAL,
    "widen": WIDEN,
    "bias": BIAS,
    "layout": LAYOUT,
    "scale": SCALE,
}


Plant = Callable[[str], str]


def fields(**values: str) -> Plant:
    """Give fields of the new call other values."""

    def plant(text: str) -> str:
        for name, value in values.items():
            (line,) = [line for line in text.split("\n") if line.endswith(f" ; new {name}")]
            text = text.replace(line, f"      {value} ; new {name}")
        return text

    return plant


def swap(*pairs: tuple[str, str]) -> Plant:
    """Substitute text, which must be there."""

    def plant(text: str) -> str:
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return plant


def rename(text: str, name: str) -> str:
    """The same rule under another name."""
    before, _, after = text.rpartition(':name "')
    return f'{before}:name "{name}"{after.partition(chr(34))[2]}'

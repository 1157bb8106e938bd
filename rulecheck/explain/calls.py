"""RC2xx: the call is not what the buffers, or the library, allow."""

from __future__ import annotations

from rulecheck.explain.entry import Entry

ENTRIES = (
    Entry(
        "RC201",
        "a buffer is read or written as another dtype",
        ("misread",),
        "The call's descriptor gives an operand another dtype than the op that wrote the buffer.",
        "A descriptor field says how bytes are looked at; it converts nothing. Two bf16 elements "
        "are read as one f32, and the second half of the read lies past the buffer's end. Whether "
        "the model then fails depends on what the allocator left there.",
        "Restrict the rule to calls that do not read the operand (beta = 0, no bias in the "
        "epilogue), or cast the operand in the new input list.",
        "Cast to F32 fused over a bf16 matmul that has a bf16 C: c_dtype Bf16 → F32",
    ),
    Entry(
        "RC202",
        "an operand ends before the call stops reading or writing it",
        ("misread",),
        "Rows, columns, leading dimension, batch count and stride span more elements than the "
        "buffer has.",
        "The call reads what lies behind the buffer, or writes over it. No library checks this.",
        "Derive the extents from the same dimensions as the graph does; look at batch strides and "
        "at leading dimensions that were taken from another operand.",
        "stride_c = m * n on a C that has a single matrix",
    ),
    Entry(
        "RC203",
        "leading dimension too small, or changed at launch",
        ("misread", "illegal"),
        "A leading dimension is smaller than the rows (column order) or columns (row order) that "
        "it has to keep apart.",
        "The library refuses it. A launcher that raises it to the minimum makes the call legal and "
        "reads a layout that nobody wrote.",
        "Match the stride of the graph and pass it on; guard the rule with the relation that "
        "bounds leading dimensions.",
        "lda = k for a column-order A with m > k rows",
    ),
    Entry(
        "RC204",
        "C and D differ in type, shape, order or batch",
        ("illegal",),
        "C and D must have the same type, rows, columns, batch count and order; only the leading "
        "dimension may differ (8-bit floats have rows of their own for the types).",
        "The library refuses the call. Where an order is changed on both, the residual is added to "
        "the wrong elements, and with m = n nothing else shows it.",
        "Swap the operands (and with them m and n) instead of the order, or set both orders.",
        "d_order ROW with c_order COL",
    ),
    Entry(
        "RC205",
        "bias with a wrong dtype, length or batch",
        ("misread", "illegal"),
        "The bias vector has one element per row of D. Where the call does not set its type, the "
        "library takes a default that depends on the type of D.",
        "A bf16 bias under an F32 D is read as F32 by default: half as many numbers as there are, "
        "all wrong. A bias along n instead of m is only seen when m and n differ.",
        "Set the bias type, convert the bias, or restrict the rule to an epilogue without bias.",
        "d_dtype Bf16 → F32 with epilogue RELU_BIAS and the bias input unchanged",
    ),
    Entry(
        "RC206",
        "operands overlap in a way the call does not allow",
        ("misread", "illegal"),
        "D shares memory with A, B or the bias, or with a C of another layout.",
        "Tiles of D are written while others still read the operand: the result depends on the "
        "order of the tiles. In place is allowed for C = D with one layout only.",
        "Let D be a buffer of its own.",
        "D written over A",
    ),
    Entry(
        "RC207",
        "writes outside D, or to one element twice",
        ("misread",),
        "The layout of D reaches outside its buffer, or lets two elements of the result share one "
        "place (a batch stride or leading dimension that is too small).",
        "The last writer wins, and neighbours are overwritten: damage shows up far from the call.",
        "Give D the extents and strides of the buffer that the graph's output op has.",
        "stride_d = 0 with batch_count 3",
    ),
    Entry(
        "RC208",
        "the op is ill-typed for its inputs",
        ("misread", "illegal"),
        "An op that is not a library call gets inputs whose dtypes, counts or shapes it is not "
        "defined for.",
        "What it would compute is not defined, so the member cannot equal the graph.",
        "Add the cast or the shape that is missing on the right side.",
        "Add of an F32 and a Bf16 buffer",
    ),
    Entry(
        "RC211",
        "not in cuBLASLt's support table",
        ("illegal",),
        "The combination of compute type, scale type and the types of A, B, C, D is not a row of "
        "cuBLASLt's table.",
        "The library answers NOT_SUPPORTED. In an e-graph the call is a legal-looking member that "
        "fails at run time, or is silently replaced.",
        "Restrict the rule to the combinations that exist: the base-dtype relations are for this.",
        "A, B, C Bf16 with D F32",
    ),
    Entry(
        "RC212",
        "the epilogue does not go with the other fields",
        ("illegal",),
        "The epilogue needs a column-order D or another type of D or bias than the call has.",
        "The library answers NOT_SUPPORTED or finds no algorithm.",
        "Keep D in column order for epilogues with bias; otherwise use DEFAULT and a separate op.",
        "epilogue BIAS with d_order ROW",
    ),
    Entry(
        "RC213",
        "8-bit floats: layout or alignment",
        ("illegal",),
        "Matrices of 8-bit floats need A transposed and B not, dimensions and leading dimensions "
        "in multiples of 16 bytes, and at least one operand that is F8E4M3.",
        "The library answers NOT_SUPPORTED, or finds no algorithm.",
        "Produce the transposed layout on the left side, and guard the dimensions.",
        "F8E4M3 operands with a_layout N",
    ),
    Entry(
        "RC214",
        "an extent or a batch count is zero, negative or too large",
        ("illegal",),
        "m, n, k, a leading dimension or the batch count is outside the library's range.",
        "The library refuses the descriptor, while the graph gives an empty result, or zeros for "
        "k = 0.",
        "Guard the rule: zero is legal in the graph.",
        "k = 0",
    ),
    Entry(
        "RC215",
        "the matrices' shapes or batch counts do not fit together",
        ("illegal",),
        "After transposition A must be m by k, B k by n, D m by n, with one batch count.",
        "The library refuses the descriptor.",
        "Derive m, n and k from the same lists on both sides; a transposed operand swaps its own "
        "rows and columns only.",
        "a_layout N → T with rows and columns left as they were",
    ),
    Entry(
        "RC216",
        "a scale pointer is not allowed there, or is no F32 scalar",
        ("illegal", "misread"),
        "Scale pointers belong to 8-bit operands, and each points at one F32.",
        "On other types the library refuses them; a scale of another type is read as F32 bytes.",
        "Use the scaled call only for 8-bit operands, and swap the scales with the operands.",
        "a_scale on a Bf16 A",
    ),
    Entry(
        "RC217",
        "the compiler's launch code refuses a field",
        ("illegal",),
        "A field of the op holds a value that the dialect's launch code does not know, so no call "
        "is made at all.",
        "The compile ends with an error as soon as this member is extracted.",
        "Use one of the values that the report lists; spelling and case count.",
        'epilogue "RELU_BIAS_AUX"',
    ),
)

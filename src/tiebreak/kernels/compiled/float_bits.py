"""The bits of numbers in a vector, in LLVM: `scalar.py` says the same in numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from tiebreak.kernels.compiled.scalar import (
    EXPONENTS,
    ONE_BITS,
    ROOT_HALF_BITS,
    TWO_52,
    TWO_52_BITS,
)


def _whole(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _bits(builder: Any, vector: Any) -> tuple[Any, Any]:
    kind = ir.VectorType(ir.IntType(64), vector.type.count)
    return builder.bitcast(vector, kind), kind


def times_power_bits(builder: Any, vector: Any, rounded: Any) -> Any:
    """Return vector · 2^n: see `scalar.times_power`."""
    bits, kind = _bits(builder, rounded)
    half = builder.lshr(bits, _whole(kind, 1))
    for part in (half, builder.sub(bits, half)):
        power = builder.add(builder.shl(part, _whole(kind, 52)), _whole(kind, ONE_BITS))
        vector = builder.fmul(vector, builder.bitcast(power, vector.type))
    return vector


def add_exponent_bits(builder: Any, vector: Any, rounded: Any) -> Any:
    """Return vector · 2^n: see `scalar.add_exponent`."""
    power, kind = _bits(builder, rounded)
    bits, _ = _bits(builder, vector)
    scaled = builder.add(bits, builder.shl(power, _whole(kind, 52)))
    return builder.bitcast(scaled, vector.type)


def _raised_exponent(builder: Any, bits: Any, kind: Any) -> Any:
    above = builder.add(bits, _whole(kind, (EXPONENTS << 52) - ROOT_HALF_BITS))
    return builder.lshr(above, _whole(kind, 52))


def exponent_bits(builder: Any, vector: Any) -> Any:
    """Return n: see `scalar.exponent`."""
    bits, kind = _bits(builder, vector)
    raised = builder.or_(_raised_exponent(builder, bits, kind), _whole(kind, TWO_52_BITS))
    shift = ir.Constant(vector.type, [TWO_52 + EXPONENTS] * kind.count)
    return builder.fsub(builder.bitcast(raised, vector.type), shift)


def mantissa_bits(builder: Any, vector: Any) -> Any:
    """Return m: see `scalar.mantissa`."""
    bits, kind = _bits(builder, vector)
    raised = builder.shl(_raised_exponent(builder, bits, kind), _whole(kind, 52))
    mantissa = builder.add(builder.sub(bits, raised), _whole(kind, EXPONENTS << 52))
    return builder.bitcast(mantissa, vector.type)

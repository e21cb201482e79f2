"""What numba can't say by itself: unaligned loads, stores and comparisons of more than one element, a prefetch hint."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tokctl.kernels._jit import jit


def _element_pointer(context, builder, array_type, array, index):
    """Address of ``array[index]`` of a one-dimensional contiguous array, without bounds or wraparound checks."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def load8(typingctx, data, index):
    """``uint64`` from ``data[index : index + 8]`` (little-endian); the caller keeps it inside the array."""
    if not (isinstance(data, types.Array) and data.dtype == types.uint8 and isinstance(index, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        pointer = builder.bitcast(pointer, word.as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(data, index), codegen


@intrinsic
def load2(typingctx, data, index):
    """``int64`` from ``data[index : index + 2]`` (little-endian); the caller keeps it inside the array."""
    if not (isinstance(data, types.Array) and data.dtype == types.uint8 and isinstance(index, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        pointer = builder.bitcast(pointer, ir.IntType(16).as_pointer())
        return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

    return types.int64(data, index), codegen


@intrinsic
def load4(typingctx, data, index):
    """``int64`` from ``data[index : index + 4]`` (little-endian); the caller keeps it inside the array."""
    if not (isinstance(data, types.Array) and data.dtype == types.uint8 and isinstance(index, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        pointer = builder.bitcast(pointer, ir.IntType(32).as_pointer())
        return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

    return types.int64(data, index), codegen


@intrinsic
def store4_sums(typingctx, array, index, base, table, row):
    """``array[index + j] = base + table[4 * row + j]`` for j < 4, all int64, at once; the caller keeps it inside the arrays."""
    for given in (array, table):
        if not (isinstance(given, types.Array) and given.dtype == types.int64):
            return None

    def codegen(context, builder, signature, args):
        four = ir.VectorType(ir.IntType(64), 4)
        numbers = [context.cast(builder, args[k], signature.args[k], types.int64) for k in (1, 2, 4)]
        place = _element_pointer(context, builder, signature.args[0], args[0], numbers[0])
        first = builder.shl(numbers[2], ir.Constant(ir.IntType(64), 2))
        source = _element_pointer(context, builder, signature.args[3], args[3], first)
        addends = builder.load(builder.bitcast(source, four.as_pointer()), align=8)
        zero = ir.Constant(ir.IntType(32), 0)
        base_vector = builder.insert_element(ir.Constant(four, ir.Undefined), numbers[1], zero)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), [0, 0, 0, 0])
        spread = builder.shuffle_vector(base_vector, ir.Constant(four, ir.Undefined), mask)
        builder.store(builder.add(spread, addends), builder.bitcast(place, four.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, index, base, table, row), codegen


@intrinsic
def store8(typingctx, array, index, value):
    """Write ``value uint64`` (little-endian) over the 8 bytes from ``array[index]`` on; the caller keeps it inside the array."""
    if not (isinstance(array, types.Array) and isinstance(index, types.Integer) and value == types.uint64):
        return None

    def codegen(context, builder, signature, args):
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        builder.store(args[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


@intrinsic
def equal16(typingctx, array, index, low, high):
    """Whether ``array[index] == low and array[index + 1] == high`` (uint64), compared at once: one branch, not two."""
    if not (isinstance(array, types.Array) and array.dtype == types.uint64 and isinstance(index, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        wide = ir.IntType(128)
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        found = builder.load(builder.bitcast(pointer, wide.as_pointer()), align=8)
        shifted = builder.shl(builder.zext(args[3], wide), ir.Constant(wide, 64))
        return builder.icmp_unsigned("==", found, builder.or_(builder.zext(args[2], wide), shifted))

    return types.boolean(array, index, types.uint64, types.uint64), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of ``array[index]``; a hint that changes nothing else."""
    if not (isinstance(array, types.Array) and isinstance(index, types.Integer)):
        return None

    def codegen(context, builder, signature, args):
        position = context.cast(builder, args[1], signature.args[1], types.intp)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], position)
        byte_pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        address = builder.bitcast(pointer, byte_pointer)
        builder.call(function, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, index), codegen


@jit(inner=True)
def load_short(data, start, stop):
    """``(low, high)``: the at most 16 bytes of ``data[start:stop]`` as two little-endian ``uint64``, zero-padded."""
    length = stop - start
    if start + 16 <= data.size:
        low = load8(data, start)
        if length <= 8:
            return low & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * length)), np.uint64(0)
        high = load8(data, start + 8)
        return low, high & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(128 - 8 * length))
    low = np.uint64(0)
    high = np.uint64(0)
    for i in range(length):
        byte = np.uint64(data[start + i])
        if i < 8:
            low |= byte << np.uint64(8 * i)
        else:
            high |= byte << np.uint64(8 * (i - 8))
    return low, high


@jit(inner=True)
def big_endian(value):
    """The bytes of a ``uint64`` reversed, so that integer order is the order of the bytes."""
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)) | (
        (value >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    )
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)) | (
        (value >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    )
    return (value << np.uint64(32)) | (value >> np.uint64(32))


@jit(inner=True)
def prefix8(data, start, stop):
    """The first 8 bytes of ``data[start:stop]`` as an integer that orders like them (zero-padded at the end)."""
    if stop - start > 8:
        stop = start + 8
    if stop == start:
        return np.uint64(0)
    return big_endian(load_short(data, start, stop)[0])


@jit(inner=True)
def equal_bytes(left, left_start, right, right_start, length):
    """Whether ``length`` bytes are the same in both arrays."""
    i = 0
    while i + 8 <= length:
        if load8(left, left_start + i) != load8(right, right_start + i):
            return False
        i += 8
    while i < length:
        if left[left_start + i] != right[right_start + i]:
            return False
        i += 1
    return True


@jit(inner=True)
def compare_bytes(left, left_start, left_stop, right, right_start, right_stop):
    """-1, 0 or 1: the bytewise order of two ranges; a proper prefix comes first."""
    length = min(left_stop - left_start, right_stop - right_start)
    i = 0
    while i + 8 <= length:
        a = load8(left, left_start + i)
        b = load8(right, right_start + i)
        if a != b:
            return -1 if big_endian(a) < big_endian(b) else 1
        i += 8
    while i < length:
        a1 = left[left_start + i]
        b1 = right[right_start + i]
        if a1 != b1:
            return -1 if a1 < b1 else 1
        i += 1
    if left_stop - left_start == right_stop - right_start:
        return 0
    return -1 if left_stop - left_start < right_stop - right_start else 1


@jit(inner=True)
def copy_bytes(source, start, stop, target, at):
    """Copy ``source[start:stop]`` to ``target[at:]``. A loop: slice assignment takes numba a second to compile."""
    for i in range(stop - start):
        target[at + i] = source[start + i]

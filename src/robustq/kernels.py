"""How kernels are compiled, and the types of what they take.

Inputs are read-only: nothing a kernel does may change a model; outputs are not.
"""

import functools
import gc
import hashlib
import pickle
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.cgutils import get_or_insert_function, ir, unpack_tuple
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from .ahead import wait_for
from .interpreter import PATIENCE, Interpreted, is_small

try:
    from .compiler import KernelCompiler, PartCompiler
except ImportError:  # a numba that is not as we know it
    OF_KERNELS: dict[str, Any] = {}
    OF_PARTS: dict[str, Any] = {}
else:
    OF_KERNELS = {"pipeline_class": KernelCompiler}
    OF_PARTS = {"pipeline_class": PartCompiler, "_nrt": False}

__all__ = [
    "KERNELS",
    "add_scaled",
    "bool_vector",
    "code_matrix",
    "code_matrix_out",
    "code_vector",
    "code_vector_out",
    "count_bits",
    "digest",
    "find_bytes",
    "float_matrix",
    "float_matrix_out",
    "float_vector",
    "float_vector_out",
    "fused",
    "inlined",
    "inner",
    "int_matrix_out",
    "int_vector",
    "int_vector_out",
    "joined",
    "kernel",
    "lowest_bit",
    "prefetch",
]

code_matrix = types.Array(types.int32, 2, "C", readonly=True)
code_vector = types.Array(types.int32, 1, "C", readonly=True)
bool_vector = types.Array(types.boolean, 1, "C", readonly=True)
int_vector = types.Array(types.int64, 1, "C", readonly=True)
float_matrix = types.Array(types.float64, 2, "C", readonly=True)
float_vector = types.Array(types.float64, 1, "C", readonly=True)

code_matrix_out = types.Array(types.int32, 2, "C")
code_vector_out = types.Array(types.int32, 1, "C")
int_matrix_out = types.Array(types.int64, 2, "C")
int_vector_out = types.Array(types.int64, 1, "C")
float_vector_out = types.Array(types.float64, 1, "C")
float_matrix_out = types.Array(types.float64, 2, "C")


# For a few lines that are to be computed as their caller is. What is longer makes it slow to
# compile: some of numba's passes take time that grows with the square of a function.
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")


def _compile_within(function, **options):
    """Compile what kernels call, when one that calls it is compiled.

    Only Python needs wrappers, and it calls none of these.
    """
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **OF_PARTS,
        **options,
    )(function)
    find = compiled.get_call_template

    def find_general(arguments, names):
        # A number that is written down has a type of its own, and would get a copy of its own.
        names = {name: types.unliteral(type_) for name, type_ in dict(names).items()}
        return find(tuple(types.unliteral(type_) for type_ in arguments), names)

    compiled.get_call_template = find_general
    return compiled


inner = _compile_within
# What is called in a loop, and best computed as a part of it.
joined = functools.partial(_compile_within, forceinline=True)
# Loops over lanes of which every one is full: a product and a sum may be one instruction.
fused = functools.partial(_compile_within, fastmath={"contract"})


@intrinsic
def count_bits(_context, _word):
    """Return how many bits of a word are set, by the instruction for it."""

    def generate(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def lowest_bit(_context, _word):
    """Return the place of the lowest bit of a word that is set; some is."""

    def generate(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def prefetch(_context, _array, _place):
    """Ask for the line of the cache in which a number of an array stands: it is soon read."""

    def generate(context, builder, signature, arguments):
        array, place = arguments
        data = context.data_model_manager[signature.args[0]].get(builder, array, "data")
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole]),
            "llvm.prefetch.p0i8",
        )
        # To read, into all caches, of data.
        how = (ir.Constant(whole, number) for number in (0, 3, 1))
        builder.call(function, [builder.bitcast(builder.gep(data, [place]), byte), *how])
        return context.get_dummy_value()

    return types.void(_array, types.int64), generate


@intrinsic
def find_bytes(_context, _text, _place, _byte):
    """Return which of the 64 bytes from a place on are a given one, as bits."""

    def generate(context, builder, signature, arguments):
        text, place, byte = arguments
        lanes = ir.VectorType(ir.IntType(8), 64)
        data = context.data_model_manager[signature.args[0]].get(builder, text, "data")
        point = builder.bitcast(builder.gep(data, [place]), lanes.as_pointer())
        first = ir.Constant(lanes, ir.Undefined)
        first = builder.insert_element(first, byte, ir.Constant(ir.IntType(32), 0))
        nowhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), nowhere)
        found = builder.icmp_unsigned("==", builder.load(point, align=1), wanted)
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(_text, types.int64, types.uint8), generate


# The same for Python.
MEANINGS: dict[Any, Callable[..., Any]] = {
    prefetch: lambda _array, _place: None,
    count_bits: lambda word: np.uint64(int(word).bit_count()),
    lowest_bit: lambda word: np.uint64((int(word) & -int(word)).bit_length() - 1),
    find_bytes: lambda text, place, byte: np.uint64(
        int.from_bytes(np.packbits(text[place : place + 64] == byte, bitorder="little"), "little")
    ),
}


@intrinsic
def add_scaled(_context, _out, _row, _table, _place, _side, _factor):
    """Add factor · table[place, side] to out[row], sixteen floats of 32 bits each.

    Compilers cannot know that the two do not overlap, and go one by one.
    """

    def generate(context, builder, signature, arguments):
        out, row, table, place, side, factor = arguments
        lanes = ir.VectorType(ir.FloatType(), 16)

        def point(kind, array, *indices):
            model = context.data_model_manager[kind]
            at = indices[0]
            sizes = unpack_tuple(builder, model.get(builder, array, "shape"))[1:]
            for index, size in zip(indices[1:], sizes, strict=False):
                at = builder.add(builder.mul(at, size), index)
            at = builder.mul(at, ir.Constant(at.type, 16))
            data = model.get(builder, array, "data")
            return builder.bitcast(builder.gep(data, [at]), lanes.as_pointer())

        target = point(signature.args[0], out, row)
        source = point(signature.args[2], table, place, side)
        scaled = ir.Constant(lanes, ir.Undefined)
        for lane in range(16):
            scaled = builder.insert_element(scaled, factor, ir.Constant(ir.IntType(32), lane))
        product = builder.fmul(builder.load(source, align=4), scaled)
        builder.store(builder.fadd(builder.load(target, align=4), product), target, align=4)
        return context.get_dummy_value()

    return types.void(_out, types.int64, _table, types.int64, types.int64, types.float32), generate


# What compiles each kernel of the modules that are imported, or finds it on disk.
KERNELS: dict[str, Callable[[], None]] = {}


def kernel(signature, *, allocates=False):
    """Compile a function for one signature, when it is first called with more than a little.

    One that makes no arrays needs no code that counts references to them, which saves a
    quarter of the time to compile.

    It is kept on disk where there is a place for it. Division by zero gives infinity, as in
    numpy; a check for it would keep loops from running on several lanes at once.
    """

    def wrap(function):
        tiers = _Tiers(function, signature, allocates)

        @functools.wraps(function)
        def call(*arguments):
            if tiers.compiled is None:
                return tiers.run(arguments)
            return tiers.compiled(*arguments)

        KERNELS[_name(function)] = tiers.compile
        return call

    return wrap


def _name(function):
    return f"{function.__module__}.{function.__qualname__}"


class _Tiers:
    """A kernel as it is found on disk, interpreted while there is little to do, or compiled."""

    def __init__(self, function, signature, allocates):
        self.compiled: Any = None
        self._made = function, signature, allocates
        self._lock = threading.Lock()
        self._dispatcher: Any = None
        self._interpreted: Any = None
        self._patience = PATIENCE

    def compile(self):
        """Compile it, or find it on disk."""
        with self._lock:
            self._find()
            if self.compiled is None and wait_for(_name(self._made[0])):
                self.compiled = _load(self._dispatcher, self._made[1])
            if self.compiled is None:
                self.compiled = _compile(self._dispatcher, self._made[1])

    def run(self, arguments):
        """Return what it does, while it is not compiled."""
        if self._patience > 0.0 and is_small(arguments):
            with self._lock:
                self._find()
            if self.compiled is None and self._patience > 0.0:
                began = time.perf_counter()
                try:
                    return self._interpreted(arguments)
                except LookupError:
                    self._patience = 0.0
                finally:
                    self._patience -= time.perf_counter() - began
        self.compile()
        return self.compiled(*arguments)

    def _find(self):
        if self._dispatcher is not None:
            return
        function, signature, allocates = self._made
        self._dispatcher = _declare(function, signature, allocates)
        self.compiled = _load(self._dispatcher, signature)
        try:
            self._interpreted = Interpreted(function, signature, MEANINGS)
        except LookupError:
            self._patience = 0.0


def _declare(function, signature, allocates):
    """Return what is to be compiled, and where it is kept."""
    options = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        **OF_KERNELS,
    }
    if OF_KERNELS and not allocates:
        options["_nrt"] = False
    try:
        declared = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither beside the package nor at home may anything be written.
        return numba.njit(**options)(function)
    # There is no public way to say how it is kept.
    cache = declared._cache  # noqa: SLF001
    stamp = digest(function, signature, allocates)
    cache._cache_file = _CacheFile(cache.cache_path, cache._impl.filename_base, stamp)  # noqa: SLF001
    return declared


def _load(declared, signature):
    """Return a kernel as it is found on disk, or None."""
    file = getattr(declared._cache, "_cache_file", None)  # noqa: SLF001
    if file is None:
        return None
    file.only_looks = True
    try:
        return _compile(declared, signature)
    except _NotKeptError:
        return None
    finally:
        file.only_looks = False


def _compile(declared, signature):
    with _without_collecting():
        declared.compile(signature)
    declared.disable_compile()
    return declared


@contextmanager
def _without_collecting():
    """Let the compiler make its many small objects without looking for garbage among them."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _describe(function, known):
    """Yield what a function is compiled from: its own code, and whatever it finds by name.

    Code is taken without its lines, so that a comment, or a function nearby, changes nothing.
    """
    if function in known:
        return
    known.add(function)
    yield from _describe_code(function.__code__)
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    found = function.__globals__ | dict(zip(function.__code__.co_freevars, enclosed, strict=True))
    for name in sorted(_names(function.__code__) & found.keys()):
        value = found[name]
        if isinstance(value, Dispatcher):
            yield f"{name} {value.targetoptions}"
            yield from _describe(value.py_func, known)
        elif hasattr(value, "_defn"):  # an intrinsic
            yield from _describe(value._defn, known)  # noqa: SLF001
        elif isinstance(value, (FunctionType, ModuleType)):  # numba's own: its version is known
            yield f"{name} {value.__name__}"
        else:
            yield f"{name} {value!r}"


def _describe_code(code):
    yield repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _describe_code(constant)
        else:
            yield repr(constant)


def _names(code):
    names = {*code.co_names, *code.co_freevars}
    return names.union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def digest(function, *options):
    """Return a checksum of all that decides what a function is compiled to."""
    described = "\n".join([*_describe(function, set()), COMPILER, repr(options)])
    return hashlib.sha256(described.encode()).hexdigest()


# How these files compile decides too.
COMPILER = repr(
    [
        hashlib.sha256(Path(__file__).with_name(name).read_bytes()).hexdigest()
        for name in ("kernels.py", "compiler.py", "lowering.py", "passes.py", "vectors.py")
    ]
    + [bool(OF_KERNELS)]
)


class _NotKeptError(Exception):
    """A kernel is not on disk."""


class _CacheFile(IndexDataCacheFile):
    """A compiled kernel on disk, good for the very code, numba and machine it was made with.

    numba looks at the file of the function alone, and never notices a change in one it calls; and
    it runs whatever its file holds. Here a checksum of the purpose and of the content comes
    first: what is damaged, or made for something else, is as good as not there, and is replaced.
    """

    only_looks = False  # instead of letting numba compile what is not there

    def load(self, key):
        found = self._read(key)
        if found is None and self.only_looks:
            raise _NotKeptError
        return found

    def _read(self, key):
        try:
            content = Path(self._path(key)).read_bytes()
        except OSError:
            return None
        length = hashlib.sha256().digest_size
        checksum, data = content[:length], content[length:]
        return pickle.loads(data) if checksum == self._checksum(key, data) else None  # noqa: S301

    def save(self, key, data):
        content = self._dump(data)
        # Where nothing can be kept, it is compiled every time.
        with suppress(OSError), self._open_for_write(self._path(key)) as file:
            file.write(self._checksum(key, content) + content)

    def _path(self, key):
        # Machines that share a disk have a file each.
        return self._data_path(self._data_name(zlib.crc32(repr(key[1]).encode())))

    def _checksum(self, key, content):
        purpose = repr((self._version, self._source_stamp, key)).encode()
        return hashlib.sha256(hashlib.sha256(purpose).digest() + content).digest()

"""How kernels are compiled, and the types of what they take.

Inputs are read-only: nothing a kernel does may change a model; outputs are not.
"""

import functools
import gc
import hashlib
import pickle
import threading
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.cgutils import ir, unpack_tuple
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import intrinsic

__all__ = [
    "add_scaled",
    "bits_of",
    "bool_vector",
    "code_matrix",
    "code_matrix_out",
    "code_vector",
    "code_vector_out",
    "count_bits",
    "float_matrix",
    "float_matrix_out",
    "float_vector",
    "float_vector_out",
    "from_bits",
    "fused",
    "inlined",
    "inner",
    "int_matrix_out",
    "int_vector",
    "int_vector_out",
    "kernel",
    "leading_zeros",
    "lowest_bit",
    "reordered",
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


class _Part(JITCodeLibrary):
    """What is compiled of a function that only kernels call: no more than they need to link it.

    They optimize all that they call, together with what they are themselves. Every function on
    the way would do so too, and make machine code that nobody runs.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        """Leave out what Python objects in a function would need: there are none."""


# What passes are for that kernels have no use for, and that take a tenth of the time: closures, and
# expressions of whole arrays.
_UNUSED = {"inline_closure_likes", "nopython_rewrites"}


class _KernelCompiler(Compiler):
    """Compiles with as few passes as kernels need."""

    def define_pipelines(self):
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [step for step in pipeline.passes if step[0].name() not in _UNUSED]
        return pipelines


class _PartCompiler(_KernelCompiler):
    """Compiles a function to a part."""

    def _compile_core(self):
        if self.state.library is None:
            name = self.state.func_id.func_qualname
            self.state.library = _Part(self.state.targetctx.codegen(), name)
        return super()._compile_core()


def _compile_within(function, **options):
    """Compile what kernels call, when one that calls it is compiled.

    Only Python needs wrappers, and it calls none of these.
    """
    compiled = numba.njit(
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        _nrt=False,
        pipeline_class=_PartCompiler,
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
# Sums in whatever order is fastest: the same one each time.
reordered = functools.partial(_compile_within, fastmath={"reassoc"})
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
def leading_zeros(_context, _word):
    """Return how many bits of a word come before the highest one that is set; some is."""

    def generate(_context, builder, _signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def add_scaled(_context, _out, _row, _table, _place, _side, _factor):
    """Add factor · table[place, side] to out[row], sixteen floats of 32 bits each.

    Compilers cannot know that the two do not overlap, and go one by one.
    """

    def generate(context, builder, signature, arguments):
        out, row, table, place, side, factor = arguments
        lanes = ir.VectorType(ir.FloatType(), 16)

        def point(kind, array, *indices):
            given = context.make_array(kind)(context, builder, array)
            at = indices[0]
            sizes = unpack_tuple(builder, given.shape)[1:]
            for index, size in zip(indices[1:], sizes, strict=False):
                at = builder.add(builder.mul(at, size), index)
            at = builder.mul(at, ir.Constant(at.type, 16))
            return builder.bitcast(builder.gep(given.data, [at]), lanes.as_pointer())

        target = point(signature.args[0], out, row)
        source = point(signature.args[2], table, place, side)
        scaled = ir.Constant(lanes, ir.Undefined)
        for lane in range(16):
            scaled = builder.insert_element(scaled, factor, ir.Constant(ir.IntType(32), lane))
        product = builder.fmul(builder.load(source, align=4), scaled)
        builder.store(builder.fadd(builder.load(target, align=4), product), target, align=4)
        return context.get_dummy_value()

    return types.void(_out, types.int64, _table, types.int64, types.int64, types.float32), generate


@intrinsic
def bits_of(_context, _number):
    """Return the bits of a float as a whole number."""

    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def from_bits(_context, _word):
    """Return the float that has these bits."""

    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


def kernel(signature, *, allocates=False):
    """Compile a function for one signature, when it is first called.

    One that makes no arrays needs no code that counts references to them, which saves a
    quarter of the time to compile.

    It is kept on disk where there is a place for it. Division by zero gives infinity, as in
    numpy; a check for it would keep loops from running on several lanes at once.
    """

    def wrap(function):
        compiled: list[Any] = []
        lock = threading.Lock()

        @functools.wraps(function)
        def call(*arguments):
            if not compiled:
                with lock:
                    if not compiled:
                        compiled.append(_compile(function, signature, allocates))
            return compiled[0](*arguments)

        return call

    return wrap


def _compile(function, signature, allocates):
    options = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "_nrt": allocates,
        "pipeline_class": _KernelCompiler,
    }
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither beside the package nor at home may anything be written.
        compiled = numba.njit(**options)(function)
    else:
        # There is no public way to say how it is kept.
        cache = compiled._cache  # noqa: SLF001
        cache._cache_file = _CacheFile(cache.cache_path, cache._impl.filename_base, SOURCES)  # noqa: SLF001
    with _without_collecting():
        compiled.compile(signature)
    compiled.disable_compile()
    return compiled


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


def _digest_sources():
    """Return a checksum of all sources, of their sizes and times: reading them all takes longer."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        about = path.stat()
        digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


# Taken when kernels are first imported: what is changed later is not what is compiled here.
SOURCES = _digest_sources()


class _CacheFile(IndexDataCacheFile):
    """A compiled kernel on disk, good for the very sources, numba and machine it was made with.

    numba looks at the file of the function alone, and never notices a change in one it calls; and
    it runs whatever its file holds. Here a checksum of the purpose and of the content comes
    first: what is damaged, or made for something else, is as good as not there, and is replaced.
    """

    def load(self, key):
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

"""How kernels are compiled, and the types of what they take.

Inputs are read-only: nothing a kernel does may change a model; outputs are not.
"""

import functools
import hashlib
import pickle
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

__all__ = [
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


# What kernels call. Only Python needs wrappers, and it calls none of these; what is called at one
# place only compiles faster when it is inlined.
inner = numba.njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False
)
inlined = numba.njit(nogil=True, error_model="numpy", inline="always")
# Loops over lanes of which every one is full: a product and a sum may be one instruction.
fused = numba.njit(
    nogil=True,
    error_model="numpy",
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    _nrt=False,
    fastmath={"contract"},
)


@intrinsic
def count_bits(_context, _word):
    """Return how many bits of a word are set, by the instruction for it."""

    def generate(_context, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


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
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": allocates}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither beside the package nor at home may anything be written.
        compiled = numba.njit(**options)(function)
    else:
        # There is no public way to say how it is kept.
        cache = compiled._cache  # noqa: SLF001
        cache._cache_file = _CacheFile(cache.cache_path, cache._impl.filename_base, SOURCES)  # noqa: SLF001
    compiled.compile(signature)
    compiled.disable_compile()
    return compiled


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

"""As much of libstair's C interface (include/stair.h) as the example needs, through ctypes.

Not a binding: no cancellation, no building, no logging. It needs no package, and may be used from
several threads at the same time: ctypes lets go of Python's lock during a call.
"""

import ctypes
import math
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

ABI_VERSION = 1
NONE = 2**32 - 1  # STAIR_NONE


class StairError(Exception):
    """What the library refused: `code` and `name` are its status, the text says cause and remedy."""

    def __init__(self, code, name, message):
        super().__init__(message)
        self.code = code
        self.name = name


class _Struct(ctypes.Structure):
    """A struct that begins with its own size, so that header and library may differ in version."""

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(self))


class _ModelOptions(_Struct):
    _fields_ = [("struct_size", c_uint32), ("gpu_layers", c_int32), ("disable_mmap", c_uint32),
                ("vocabulary_only", c_uint32), ("context_memory", c_uint64)]


class _RetrieverOptions(_Struct):
    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("context_tokens", c_uint32),
                ("max_question_tokens", c_uint32), ("max_parallel", c_uint32), ("kv_type", c_uint32),
                ("deterministic", c_uint32), ("max_waiting", c_uint32), ("cache_dir", c_char_p),
                ("cache_dir_len", c_size_t)]


class _RetrieveOptions(_Struct):
    _fields_ = [("struct_size", c_uint32), ("k", c_uint32), ("scoring", c_uint32),
                ("timeout_ms", c_uint32), ("lexical_weight", c_float)]


# Texts are read with their length, so they are addresses here and not c_char_p.
class _Hit(_Struct):
    _fields_ = [("struct_size", c_uint32), ("section", c_uint32), ("page", c_uint32),
                ("path_len", c_uint32), ("span_start", c_uint64), ("span_end", c_uint64),
                ("log_prob", c_double), ("number", c_void_p), ("number_len", c_size_t),
                ("title", c_void_p), ("title_len", c_size_t), ("text", c_void_p),
                ("text_len", c_size_t), ("score", c_double), ("lexical", c_double)]


class _Stats(_Struct):
    _fields_ = [("struct_size", c_uint32), ("decodes", c_uint32), ("question_tokens", c_uint32),
                ("search_tokens", c_uint32), ("prefix_tokens", c_uint32), ("restored_tokens", c_uint32),
                ("legal_mass", c_double), ("prefill_ms", c_double), ("search_ms", c_double),
                ("total_ms", c_double)]


# Name: result, arguments. Handles are c_void_p, and so is a stair_cancel, which is always NULL here.
_FUNCTIONS = {
    "stair_abi_version": (c_uint32, []),
    "stair_version": (c_char_p, []),
    "stair_status_name": (c_char_p, [c_int32]),
    "stair_error_message": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "stair_error_free": (None, [c_void_p]),
    "stair_model_options_init": (c_int32, [c_void_p, c_size_t]),
    "stair_model_open": (c_int32, [c_char_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "stair_model_free": (None, [c_void_p]),
    "stair_index_open": (c_int32, [c_char_p, c_size_t, c_uint32, c_void_p, c_void_p]),
    "stair_index_free": (None, [c_void_p]),
    "stair_retriever_options_init": (c_int32, [c_void_p, c_size_t]),
    "stair_retriever_new": (c_int32, [c_void_p] * 5),
    "stair_retriever_warm": (c_int32, [c_void_p] * 3),
    "stair_retriever_free": (None, [c_void_p]),
    "stair_retrieve_options_init": (c_int32, [c_void_p, c_size_t]),
    "stair_retrieve": (c_int32, [c_void_p, c_char_p, c_size_t] + [c_void_p] * 4),
    "stair_results_count": (c_size_t, [c_void_p]),
    "stair_results_get": (c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "stair_results_path": (c_int32, [c_void_p, c_size_t, c_size_t] + [c_void_p] * 3),
    "stair_results_stats": (c_int32, [c_void_p] * 3),
    "stair_results_free": (None, [c_void_p]),
}


class Retriever:
    """A model and an index together. `close` frees it; so does the end of a `with`."""

    def __init__(self, library, model, index, *, threads=0, max_parallel=0, cache_dir=None,
                 gpu_layers=0):
        """`library` is the path of libstair.so; the rest as in include/stair.h, with 0 and None for
        the defaults. Returns when the table of contents is decoded, or read from `cache_dir`."""
        self._handle = None
        self._lib = ctypes.CDLL(library)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._lib, name)
            function.restype, function.argtypes = result, arguments
        if self._lib.stair_abi_version() != ABI_VERSION:
            version = self._lib.stair_version().decode()
            raise ImportError(f"libstair {version} has ABI {self._lib.stair_abi_version()}, not {ABI_VERSION}")

        model_options = self._options(_ModelOptions, self._lib.stair_model_options_init)
        model_options.gpu_layers = gpu_layers
        options = self._options(_RetrieverOptions, self._lib.stair_retriever_options_init)
        options.threads, options.max_parallel = threads, max_parallel
        if cache_dir is not None:
            options.cache_dir = cache_dir.encode()
            options.cache_dir_len = len(cache_dir.encode())

        opened_model, opened_index, handle = c_void_p(), c_void_p(), c_void_p()
        path = model.encode()
        try:
            self._call("stair_model_open", path, len(path), byref(model_options), None, byref(opened_model))
            path = index.encode()
            self._call("stair_index_open", path, len(path), 0, byref(opened_index))
            self._call("stair_retriever_new", opened_model, opened_index, byref(options), byref(handle))
            self._handle = handle
            self._call("stair_retriever_warm", self._handle, None)
        except BaseException:
            self.close()
            raise
        finally:
            # A retriever keeps its own references; freeing NULL is allowed.
            self._lib.stair_index_free(opened_index)
            self._lib.stair_model_free(opened_model)

    def retrieve(self, question, *, k=None, lexical_weight=0.0, timeout_ms=0):
        """The `k` best sections (None: 3, or all when there are fewer), and what they cost: two
        values, a list of dictionaries and a dictionary. Raises StairError."""
        options = self._options(_RetrieveOptions, self._lib.stair_retrieve_options_init)
        options.timeout_ms, options.lexical_weight = timeout_ms, lexical_weight
        if k is not None:
            options.k = k
        # What JSON can hold and UTF-8 cannot (half a surrogate pair) the library refuses by name.
        question = question.encode("utf-8", "surrogatepass")
        results = c_void_p()
        self._call("stair_retrieve", self._handle, question, len(question), byref(options), None, byref(results))
        try:
            hits = [self._hit(results, i) for i in range(self._lib.stair_results_count(results))]
            stats = _Stats()
            self._call("stair_results_stats", results, byref(stats))
            return hits, {name: getattr(stats, name) for name, _ in _Stats._fields_[1:]}
        finally:
            self._lib.stair_results_free(results)

    def close(self):
        """Frees the retriever; a warm file is written to its end. May be called again."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._lib.stair_retriever_free(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _hit(self, results, i):
        hit = _Hit()
        self._call("stair_results_get", results, i, byref(hit))
        path = []
        for entry in range(hit.path_len):
            text, length = c_void_p(), c_size_t()
            self._call("stair_results_path", results, i, entry, byref(text), byref(length))
            path.append(_text(text.value, length.value))
        # As `stair retrieve --json` prints it.
        found = {
            "section": hit.section,
            "number": _text(hit.number, hit.number_len),
            "title": _text(hit.title, hit.title_len),
            "path": path,
            "log_prob": hit.log_prob,
            "span": [hit.span_start, hit.span_end],
        }
        if not math.isnan(hit.lexical):
            found["score"], found["lexical"] = hit.score, hit.lexical
        if hit.page != NONE:
            found["page"] = hit.page
        return found

    def _options(self, struct, init):
        options = struct()
        status = init(byref(options), ctypes.sizeof(options))
        if status != 0:
            raise self._error(status, None)
        return options

    def _call(self, name, *arguments):
        """Calls a function whose last parameter receives an error."""
        error = c_void_p()
        status = getattr(self._lib, name)(*arguments, byref(error))
        if status != 0:
            raise self._error(status, error)

    def _error(self, status, error):
        length = c_size_t()
        message = _text(self._lib.stair_error_message(error, byref(length)), length.value)
        self._lib.stair_error_free(error)
        return StairError(status, self._lib.stair_status_name(status).decode(), message)


def _text(address, length):
    """A text that the library lent, copied."""
    return ctypes.string_at(address, length).decode() if address else ""

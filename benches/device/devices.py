"""Prints, as one JSON object, what ggml in FOLDER sees: devices, and why a CUDA plugin failed."""

import ctypes
import json
import os
import sys

KINDS = {0: "cpu", 1: "gpu", 2: "gpu", 3: "accelerator"}


def main(folder):
    # The library finds it by its own search path, which this program does not have.
    openmp = os.path.join(folder, "libgomp.so.1")
    if os.path.exists(openmp):
        ctypes.CDLL(openmp)
    base = ctypes.CDLL(os.path.join(folder, "libggml-base.so.0"), mode=ctypes.RTLD_GLOBAL)
    ggml = ctypes.CDLL(os.path.join(folder, "libggml.so.0"))
    ggml.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
    ggml.ggml_backend_load_all_from_path(os.fsencode(folder))
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    for text in ("name", "description"):
        function = getattr(base, f"ggml_backend_dev_{text}")
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_char_p
    base.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
    base.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p] + [ctypes.POINTER(ctypes.c_size_t)] * 2
    base.ggml_backend_dev_memory.restype = None

    devices = []
    for i in range(ggml.ggml_backend_dev_count()):
        device = ggml.ggml_backend_dev_get(i)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        base.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        devices.append(
            {
                "name": base.ggml_backend_dev_name(device).decode(),
                "description": base.ggml_backend_dev_description(device).decode().strip(),
                "kind": KINDS.get(base.ggml_backend_dev_type(device), "other"),
                "mib": total.value >> 20,
            }
        )
    plugin = os.path.join(folder, "libggml-cuda.so")
    state = "absent"
    if os.path.exists(plugin):
        try:
            ctypes.CDLL(plugin)
            state = "loaded"
        except OSError as error:
            state = str(error)
    print(json.dumps({"devices": devices, "cuda_plugin": state}))


if __name__ == "__main__":
    main(sys.argv[1])

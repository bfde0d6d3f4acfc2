"""Makes the files that tests/files/safetensors_test.cpp reads and must write alike, with the safetensors library
(0.8.0; numpy, ml_dtypes). Run it in its own folder."""
import numpy as np
import ml_dtypes
from safetensors.numpy import save_file

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def tensor(dtype, sizes):
    """Small integers, which every type holds: element i is i % 2 for bool, else i % 100."""
    count = int(np.prod(sizes))
    values = np.arange(count) % (2 if dtype == "bool" else 100)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return values.astype(kind).reshape(sizes)


tensors = {f"{dtype}_values": tensor(dtype, (2, 3)) for dtype in NAMES}
tensors["scalar"] = tensor("float32", ())
tensors["empty"] = tensor("int32", (0, 4))
tensors["größe \"x\"\n"] = tensor("float32", (3,))
tensors["long"] = tensor("int16", (257,))
save_file(tensors, "all.safetensors", metadata={"format": "pt"})
save_file({}, "none.safetensors")

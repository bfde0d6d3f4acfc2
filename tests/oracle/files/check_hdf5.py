"""Checks with h5py, and Keras, what our writer writes. Make a file with

    STET_WRITTEN_HDF5=/tmp/w.h5 stet_tests --gtest_filter=Hdf5.TheLibraryReadsWhatIsWritten

and give it: python check_hdf5.py /tmp/w.h5. Prints "as it should be" at the end."""
import sys

import h5py
import ml_dtypes
import numpy as np
from keras.src.saving.saving_lib import H5IOStore

path = sys.argv[1]
KINDS = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8"}
with h5py.File(path) as file:
    for name, kind in KINDS.items():
        values = file["types/" + name]
        assert values.dtype == np.dtype("<" + kind), (name, values.dtype)
        assert np.array_equal(values[()], (np.arange(6) - 3).reshape(2, 3).astype(kind)), name
    assert file["types/u8"].dtype == np.uint8 and file["types/u8"][()].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file["types/bool"].dtype == np.bool_ and file["types/bool"][()].tolist() == [[False, True, False], [True, False, True]]
    assert file["types/u32"].dtype == np.uint32 and file["types/u32"][()].tolist() == [1, 4000000000]
    assert file["types/bf16"].attrs["dtype"] == "bfloat16"
    assert file["scalar"][()] == np.float32(2.5) and file["scalar"].shape == ()
    assert file["empty"].shape == (0, 4) and file["empty"][()].shape == (0, 4)
    assert len(file["nothing in it"]) == 0
    assert file.attrs["root"] == "größe"
    assert file["nothing in it"].attrs["none"] == ""
    assert list(file["nothing in it"].attrs["words"]) == ["a", "", "ccc"]
    assert list(file["nothing in it"].attrs["no words"]) == []
    assert file["scalar"].attrs["integer"] == -7 and file["scalar"].attrs["real"] == 0.25
    assert len(file["many"]) == 300 and sorted(file["many"], key=int) == [str(i) for i in range(300)]
    for i in range(300):
        assert file[f"many/{i}"][()].tolist() == [i] and file[f"many/{i}"].attrs["name"] == f"number {i}"

# As Keras reads a weight: bfloat16 by its attribute.
store = H5IOStore(path, mode="r")
group = store.get("types")
with h5py.File(path) as file:
    weight = file["types/bf16"]
    values = np.array(weight, dtype=ml_dtypes.bfloat16)
    assert values.astype("f4").tolist() == [[-3, -2, -1], [0, 1, 2]]
store.close()

# The library changes the file: what it finds must hold together.
with h5py.File(path, "r+") as file:
    for i in range(100):
        file[f"many/new {i}"] = i
        file[f"nothing in it/{i}"] = i
    del file["many/7"]
    file.attrs["root"] = "another"
with h5py.File(path) as file:
    assert len(file["many"]) == 399 and file["many/new 99"][()] == 99 and file["many/250"][()].tolist() == [250]
print("as it should be")

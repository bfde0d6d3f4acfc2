"""Makes the files that tests/files/hdf5_test.cpp reads, with h5py and (keras.weights.h5) with Keras. Run it in its own
folder: python make_hdf5.py."""
import os
import zlib

import h5py
import numpy as np

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def counted(kind, sizes):
    """Element i is i - 3, which for unsigned types wraps around."""
    return (np.arange(int(np.prod(sizes))) - 3).astype(np.int64).astype(kind).reshape(sizes)


def types(path, **options):
    with h5py.File(path, "w", **options) as file:
        for kind in NUMBERS:
            file[f"little/{kind}"] = counted("<" + kind, (2, 3))
            file[f"big/{kind}"] = counted(">" + kind, (2, 3))
        file["bool"] = np.array([True, False, True])
        file["opaque"] = np.array([b"ab", b"cd"], "V2")
        file["scalar"] = np.float32(2.5)
        file["empty"] = np.zeros((0, 4), "i4")
        file["nothing"] = h5py.Empty("f4")
        file["fixed"] = np.array([b"one", b"two", b"three"])
        file.create_dataset("strings", data=["eins", "", "größe"], dtype=h5py.string_dtype())
        file["enumeration"] = np.array([0, 7], h5py.enum_dtype({"A": 0, "B": 7}, "i4"))
        attributes = file.create_group("attributes").attrs
        attributes["string"] = "größe"
        attributes["empty string"] = ""
        attributes["bytes"] = np.bytes_(b"old")
        attributes["strings"] = ["a", "bc"]
        attributes["fixed strings"] = np.array([b"a", b"bc"])
        attributes["integer"] = -7
        attributes["small"] = np.uint8(200)
        attributes["real"] = 0.25
        attributes["half"] = np.float16(0.5)
        attributes["flag"] = True
        attributes["vector"] = np.array([1, 2, 3], ">i4")


types("types.h5")
# Superblock 3, object headers 2, links in headers; groups of more than eight would be dense.
with h5py.File("latest.h5", "w", libver="latest") as file:
    for kind in ["i4", "f4", "f8"]:
        file[f"layers/dense/vars/{kind}"] = counted(kind, (2, 3))
    file["layers"].attrs["name"] = "wörter"
    space, kind = h5py.h5s.create_simple((3,)), h5py.h5t.NATIVE_INT32
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"compact", kind, space, options).write(space, space, np.array([5, 6, 7], "i4"))
with h5py.File("ordered.h5", "w", track_order=True) as file:
    for name in ["z", "b", "a"]:
        file[name] = np.int32(1)
    for name in ["second", "first"]:
        file.attrs[name] = name

with h5py.File("chunked.h5", "w") as file:
    plain = counted("f4", (7, 5))
    file.create_dataset("plain", data=plain, chunks=(3, 2))
    file.create_dataset("gzip", data=plain, chunks=(3, 2), compression="gzip")
    file.create_dataset("all", data=plain, chunks=(4, 4), compression="gzip", shuffle=True, fletcher32=True)
    file.create_dataset("checked", data=plain, chunks=(7, 5), fletcher32=True)
    file.create_dataset("large chunk", data=np.arange(3), chunks=(1000,), compression="gzip", shuffle=True,
                        maxshape=(None,))
    file.create_dataset("many", data=np.arange(500, dtype="i2"), chunks=(3,))  # more than a node of the tree holds
    file.create_dataset("deep", data=np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5), chunks=(1, 2, 3, 2))
    file.create_dataset("no rows", shape=(0, 3), maxshape=(None, 3), chunks=(2, 3))
    file.create_dataset("strings", data=[f"word {i}" for i in range(10)], chunks=(4,), compression="gzip")

# Filters may be left out for single chunks: deflate for the second one here, shuffle (the first filter) for the third.
with h5py.File("skipped_filters.h5", "w") as file:
    some = counted("i4", (16,))
    file.create_dataset("plain", data=some)
    packed = file.create_dataset("packed", data=some, chunks=(4,), compression="gzip", shuffle=True)
    shuffled = np.frombuffer(some[4:8].tobytes(), "u1").reshape(4, 4).T.tobytes()
    packed.id.write_direct_chunk((4,), shuffled, filter_mask=2)
    packed.id.write_direct_chunk((8,), zlib.compress(some[8:12].tobytes()), filter_mask=1)
    assert (packed[:] == some).all()

with h5py.File("packed.h5", "w") as file:
    file.create_dataset("zeros", data=np.zeros(1 << 17, "f4"), chunks=(1 << 15,), compression="gzip")

with h5py.File("many.h5", "w") as file:
    for i in range(130):
        file[f"a/b/c/{i}"] = np.int32(i)

# What is refused.
with h5py.File("refused_soft_link.h5", "w") as file:
    file["a"] = h5py.SoftLink("/b")
with h5py.File("refused_external_link.h5", "w") as file:
    file["a"] = h5py.ExternalLink("/etc/passwd", "/b")
with h5py.File("refused_hard_link.h5", "w") as file:
    file["a"] = 1
    file["b"] = file["a"]
with h5py.File("refused_circle.h5", "w") as file:
    file["a/b"] = file["/"]
with h5py.File("refused_external_storage.h5", "w") as file:
    file.create_dataset("a", (4,), "u1", external=[("/etc/passwd", 0, 4)])
with h5py.File("refused_virtual.h5", "w") as file:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("/etc/passwd", "a", (4,))
    file.create_virtual_dataset("a", layout)
with h5py.File("refused_committed.h5", "w") as file:
    file["type"] = np.dtype("f4")
with h5py.File("refused_committed_use.h5", "w") as file:
    file["z"] = np.dtype("f4")
    file.create_dataset("a", data=[1, 2], dtype=file["z"])
with h5py.File("refused_lzf.h5", "w") as file:
    file.create_dataset("a", data=np.zeros(9), compression="lzf")
with h5py.File("refused_compound.h5", "w") as file:
    file["a"] = np.zeros(2, [("x", "f4"), ("y", "i4")])
with h5py.File("refused_unwritten.h5", "w") as file:
    file.create_dataset("a", (1 << 40,), "f8")
with h5py.File("refused_holes.h5", "w") as file:
    file.create_dataset("a", (1 << 20,), "f8", chunks=(1 << 10,))[5] = 1
with h5py.File("refused_dense.h5", "w", libver="latest") as file:
    for i in range(9):
        file[str(i)] = 1
with h5py.File("refused_dense_attributes.h5", "w", libver="latest") as file:
    for i in range(9):
        file.attrs[str(i)] = 1
with h5py.File("refused_new_chunks.h5", "w", libver="latest") as file:
    file.create_dataset("a", data=np.arange(9), chunks=(2,))
with h5py.File("refused_reference.h5", "w") as file:
    file.attrs["a"] = file.ref
with h5py.File("refused_user_block.h5", "w", userblock_size=512) as file:
    file["a"] = 1
with h5py.File("refused_long_path.h5", "w") as file:
    file.create_group("/".join(letter * 260 for letter in "abcd"))
with h5py.File("refused_array.h5", "w") as file:
    file.create_dataset("a", (2,), np.dtype([("x", "i4", (3,))])["x"])

if not os.environ.get("WITHOUT_KERAS"):
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((3,)),
        keras.layers.Dense(2, name="first"),
        keras.layers.Dropout(0.5, name="drop"),
        keras.layers.Dense(2, dtype="bfloat16", name="second"),
    ])
    model.layers[2].set_weights([np.array([[0.5, 1.5], [-2, 3]]), np.array([0.25, -1])])
    model.layers[0].set_weights([np.arange(6).reshape(3, 2) / 4, np.array([7, 8])])
    model.compile("adam", "mse")
    model.save_weights("keras.weights.h5")
    model.save("model.keras")

"""What stet writes, read by NumPy, TensorFlow, Pillow and Python.

The test DataWriting.WritesFilesForOthers writes the files into the folder that STET_WRITTEN_FILES names:

    STET_WRITTEN_FILES=/tmp/written build/release/stet_public_tests --gtest_filter=DataWriting.*
    python check_readers.py /tmp/written
"""

import os
import pathlib
import sys
import wave

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import ml_dtypes
import numpy as np
import tensorflow as tf
from PIL import Image

folder = pathlib.Path(sys.argv[1])
x = np.arange(24).reshape(2, 3, 4)

for name in "bool uint8 int8 int16 int32 int64 float16 float32 float64".split():
    a = np.load(folder / f"{name}.npy")
    assert a.dtype == name and np.array_equal(a, x.astype(name)), name
assert np.array_equal(np.load(folder / "bfloat16.npy").view(ml_dtypes.bfloat16).astype("float32"), x)
assert np.load(folder / "scalar.npy").shape == () and np.load(folder / "empty.npy").shape == (0, 3)
archive = np.load(folder / "arrays.npz")
assert sorted(archive.files) == ["layer/kernel", "x", "ß"]
assert np.array_equal(archive["x"], x) and np.array_equal(archive["layer/kernel"], np.arange(5)) and archive["ß"] == 2.5

for compression in ("NONE", "GZIP", "ZLIB"):
    records = list(tf.data.TFRecordDataset(str(folder / f"{compression}.tfrecord"), compression.replace("NONE", "")).as_numpy_iterator())
    assert len(records) == 4 and records[3] == b""
    for i, record in enumerate(records[:3]):
        features = tf.io.parse_single_example(
            record,
            {
                "label": tf.io.FixedLenFeature([], tf.int64),
                "point": tf.io.FixedLenFeature([2], tf.float32),
                "name": tf.io.FixedLenFeature([], tf.string),
                "words": tf.io.VarLenFeature(tf.string),
                "nothing": tf.io.VarLenFeature(tf.int64),
                "negative": tf.io.FixedLenFeature([2], tf.int64),
            },
        )
        assert features["label"] == i
        assert np.array_equal(features["point"], np.float32([i + 0.5, -1.25]))
        assert features["name"] == b"number %d" % i
        assert features["words"].values.numpy().tolist() == [b"a", b"", b"\x00\xff"]
        assert features["nothing"].values.shape == (0,)
        assert features["negative"].numpy().tolist() == [-1, -(2**63)]
        assert tf.train.Example.FromString(record).SerializeToString(deterministic=True) == record

for channels, mode in {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}.items():
    expected = (np.arange(5 * 7 * channels) * 3 % 256).astype("uint8").reshape(5, 7, channels)
    image = Image.open(folder / f"{channels}.png")
    assert image.mode == mode and np.array_equal(np.array(image).reshape(5, 7, channels), expected)
for name, mode in {"gray": "L", "rgb": "RGB"}.items():
    image = Image.open(folder / f"{name}.jpg")
    image.load()
    assert image.mode == mode and image.size == (7, 5)

numbers = np.arange(-5, 5) / 5
for bits in (8, 16, 24, 32):
    with wave.open(str(folder / f"{bits}.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (1, bits // 8, 8000, 10)
        body = file.readframes(10)
    width = bits // 8
    read = [int.from_bytes(body[i : i + width], "little", signed=bits > 8) - (128 if bits == 8 else 0) for i in range(0, len(body), width)]
    # What is computed from are floats.
    assert np.abs(np.array(read) - np.float32(numbers).astype(float) * 2 ** (bits - 1)).max() <= 0.5, bits
assert np.allclose(tf.audio.decode_wav((folder / "16.wav").read_bytes())[0][:, 0], numbers, atol=2**-16)
print("all is as it was written")

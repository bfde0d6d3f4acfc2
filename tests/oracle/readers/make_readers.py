"""Files in the formats that stet/data reads, as NumPy, TensorFlow, Pillow and Python write them, and what they hold.

Run in a virtual environment with numpy, tensorflow, keras and pillow: python make_readers.py. What it writes is stored
in files/ beside it, and read by tests/public/data_*_test.cpp.
"""

import csv
import gzip
import os
import pathlib
import random
import struct
import wave
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import ml_dtypes
import numpy as np
import tensorflow as tf
from PIL import Image

out = pathlib.Path(__file__).parent / "files"
out.mkdir(exist_ok=True)

# --- NPY: [2, 3] of 0, 1, 2, …; of signed types less 2, of floating ones times 0.75; bool: 1 where odd
plain = np.arange(6).reshape(2, 3)
arrays = {}
for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
    a = plain.astype(name)
    if name.startswith("int"):
        a = a - np.array(2, name)
    if name.startswith("float"):
        a = a * np.array(0.75, name)
    arrays[name] = a
arrays["bool"] = plain % 2 == 1
for name, a in arrays.items():
    np.save(out / f"{name}.npy", a)
    if a.dtype.itemsize > 1:
        np.save(out / f"{name}_big.npy", a.astype(a.dtype.newbyteorder(">")))
np.save(out / "bfloat16.npy", (plain * 0.75).astype(ml_dtypes.bfloat16))
np.save(out / "fortran.npy", np.asfortranarray(np.arange(24, dtype="float32").reshape(2, 3, 4)))
np.save(out / "scalar.npy", np.float32(2.5))
np.save(out / "empty.npy", np.zeros((0, 3), "float32"))
np.save(out / "complex.npy", np.zeros(2, "complex64"))
np.save(out / "strings.npy", np.array(["a", "bc"]))
np.save(out / "dates.npy", np.array(["2020-01-01"], "datetime64[D]"))
np.save(out / "records.npy", np.zeros(2, [("x", "f4"), ("y", "i4")]))
np.save(out / "objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
for version in (2, 3):
    with open(out / f"version{version}.npy", "wb") as file:
        np.lib.format.write_array(file, arrays["float32"], version=(version, 0))
np.savez(out / "plain.npz", weights=arrays["float32"], steps=np.int64(7), empty=np.zeros((0, 2)))
np.savez_compressed(out / "compressed.npz", weights=arrays["float32"], zeros=np.zeros((100, 100), "int32"))

# --- TFRecord
def feature(**kind):
    return tf.train.Feature(**kind)


def example(i):
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "label": feature(int64_list=tf.train.Int64List(value=[i])),
                "big": feature(int64_list=tf.train.Int64List(value=[-1, 2**62, -(2**63)])),
                "point": feature(float_list=tf.train.FloatList(value=[i + 0.5, -1.25])),
                "name": feature(bytes_list=tf.train.BytesList(value=[f"number {i}".encode()])),
                "words": feature(bytes_list=tf.train.BytesList(value=[b"a", b"", b"\x00\xff"])),
                "many": feature(float_list=tf.train.FloatList(value=range(i))),
                "nothing": feature(),
            }
        )
    ).SerializeToString(deterministic=True)


for compression in ("", "GZIP", "ZLIB"):
    with tf.io.TFRecordWriter(str(out / f"examples{compression}.tfrecord"), compression) as writer:
        for i in range(3):
            writer.write(example(i))
        writer.write(b"")

# --- images: smooth, so that JPEG keeps them nearly as they are
def picture(height, width, channels, bits=8, phase=0.0):
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    v = 0.5 + 0.3 * np.sin(0.35 * x + phase + c) + 0.2 * np.cos(0.3 * y - 0.7 * c)
    return np.round(v * (2**bits - 1)).astype("uint8" if bits == 8 else "uint16")


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(path, a, color, bits, interlaced=False, extra=b""):
    """Pillow does not write all that PNG has."""
    height, width = a.shape[:2]
    a = a.reshape(height, width, -1)

    def lines(part):
        if part.shape[0] == 0 or part.shape[1] == 0:
            return b""
        body = b""
        for row in part:
            if bits == 16:
                line = row.astype(">u2").tobytes()
            elif bits == 8:
                line = row.astype("u1").tobytes()
            else:
                text = "".join(format(int(v), f"0{bits}b") for v in row[:, 0])
                text += "0" * (-len(text) % 8)
                line = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
            body += b"\0" + line
        return body

    if interlaced:
        steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
        body = b"".join(lines(a[y::dy, x::dx]) for y, x, dy, dx in steps)
    else:
        body = lines(a)
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")
    )


h, w = 11, 13
for name, channels in {"gray": 1, "gray_alpha": 2, "rgb": 3, "rgba": 4}.items():
    a = picture(h, w, channels)
    Image.fromarray(a[..., 0] if channels == 1 else a, {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]).save(out / f"{name}.png")
    np.save(out / f"{name}.png.npy", a)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    raw_png(out / f"{name}_interlaced.png", a, color, 8, interlaced=True)
    raw_png(out / f"{name}16.png", picture(h, w, channels, 16), color, 16)
    np.save(out / f"{name}16.png.npy", picture(h, w, channels, 16).astype("int32"))
palette = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7]], "u1")
indices = (np.add.outer(np.arange(h), np.arange(w)) % 4).astype("u1")
plte = chunk(b"PLTE", palette.tobytes())
raw_png(out / "palette.png", indices, 3, 8, extra=plte)
raw_png(out / "palette2bits.png", indices, 3, 2, extra=plte)
raw_png(out / "palette_transparent.png", indices, 3, 8, extra=plte + chunk(b"tRNS", bytes([0, 128, 255])))
raw_png(out / "bits.png", indices % 2, 0, 1)
raw_png(out / "gamma.png", picture(h, w, 3), 2, 8, extra=chunk(b"gAMA", struct.pack(">I", 45455)))
# What TensorFlow makes of all of them, with every number of channels. (Not grey from colours: its weights are wrong.)
for path in sorted(out.glob("*.png")):
    for channels in (0, 3, 4):
        np.save(f"{path}.{channels}.npy", tf.io.decode_png(path.read_bytes(), channels).numpy())
np.save(out / "rgb.png.1.npy", np.array(Image.open(out / "rgb.png").convert("L"))[..., None])

a = picture(37, 45, 3)
for name, options in {
    "420": dict(subsampling=2),
    "422": dict(subsampling=1),
    "444": dict(subsampling=0),
    "progressive": dict(progressive=True),
    "restarts": dict(restart_marker_blocks=2),
}.items():
    Image.fromarray(a).save(out / f"{name}.jpg", quality=90, **options)
Image.fromarray(a[..., 0]).save(out / "gray.jpg", quality=90)
Image.fromarray(a).convert("CMYK").save(out / "cmyk.jpg", quality=95)
for path in sorted(out.glob("*.jpg")):
    image = Image.open(path)
    np.save(f"{path}.npy", np.array(image.convert("RGB") if image.mode == "CMYK" else image).reshape(37, 45, -1))

# --- a folder of images
folder = out / "folder"
for label, (name, count) in enumerate({"cat": 5, "dog": 4, "emu": 3}.items()):
    (folder / name / "more").mkdir(parents=True, exist_ok=True)
    for i in range(count):
        where = folder / name / ("more" if i == 2 else "") / f"{name}{i}.png"
        Image.fromarray(picture(9 + i, 14 - 2 * label, 3, phase=label + 0.3 * i)).save(where)
(folder / "cat" / "notes.txt").write_text("no image\n")
for name, options in {
    "bilinear": {},
    "nearest": dict(interpolation="nearest"),
    "bicubic": dict(interpolation="bicubic"),
    "cropped": dict(crop_to_aspect_ratio=True),
    "padded": dict(pad_to_aspect_ratio=True),
    "padded_wide": dict(pad_to_aspect_ratio=True, image_size=(5, 21)),
    "larger": dict(image_size=(23, 17)),
    "rgba": dict(color_mode="rgba"),
    "categorical": dict(label_mode="categorical"),
}.items():
    options = {"image_size": (6, 8), "shuffle": False, "batch_size": 100, "verbose": False} | options
    dataset = keras.utils.image_dataset_from_directory(folder, **options)
    x, y = next(iter(dataset))
    np.savez(out / f"folder_{name}.npz", x=x.numpy(), y=y.numpy())
with open(out / "folder_splits.txt", "w") as file:
    for seed in (0, 1, 123, 2**31):
        for split in (0.25, 0.5):
            for subset in ("training", "validation"):
                dataset = keras.utils.image_dataset_from_directory(
                    folder, seed=seed, validation_split=split, subset=subset, image_size=(6, 8), verbose=False
                )
                names = " ".join(sorted(pathlib.Path(p).stem for p in dataset.file_paths))
                file.write(f"{seed} {split} {subset} {names}\n")

# --- WAV: what is stored is drawn, what comes out is divided by the largest number
draw = np.random.default_rng(1)
for bits in (8, 16, 24, 32):
    numbers = draw.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (7, 2))
    numbers[0] = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    with wave.open(str(out / f"pcm{bits}.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(bits // 8)
        file.setframerate(8000)
        stored = numbers + 128 if bits == 8 else numbers
        file.writeframes(b"".join(int(v).to_bytes(bits // 8, "little", signed=bits > 8) for v in stored.ravel()))
    np.save(out / f"pcm{bits}.wav.npy", (numbers / 2.0 ** (bits - 1)).astype("float32"))
assert np.array_equal(tf.audio.decode_wav((out / "pcm16.wav").read_bytes())[0], np.load(out / "pcm16.wav.npy"))
floats = draw.normal(size=(5, 1))
for bits in (32, 64):
    body = floats.astype(f"<f{bits // 8}").tobytes()
    fmt = struct.pack("<HHIIHH", 3, 1, 44100, 44100 * bits // 8, bits // 8, bits)
    chunks = b"LIST" + struct.pack("<I", 3) + b"abc\0" + b"fmt " + struct.pack("<I", 16) + fmt
    chunks += b"data" + struct.pack("<I", len(body)) + body
    (out / f"float{bits}.wav").write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
np.save(out / "float.wav.npy", floats.astype("float32"))

# --- CSV: whatever Python's writer makes of wild fields, and files written by hand, as Python's reader reads them
rows = []
rng = random.Random(3)
letters = ['"', ",", "\n", "\r\n", "a", "ß", " ", "'", ";", "x y", "1", "\t"]
for _ in range(60):
    rows.append(["".join(rng.choice(letters) for _ in range(rng.randrange(6))) for _ in range(4)])
for row in rows:
    row[0] = "r" + row[0]  # no empty lines
with open(out / "wild.csv", "w", newline="") as file:
    csv.writer(file).writerows([["a", "b", "c", "d"]] + rows)
with open(out / "wild.csv", newline="") as file:
    read = list(csv.reader(file))[1:]
assert read == rows
(out / "wild.txt").write_bytes("\x1e".join("\x1f".join(row) for row in read).encode())

# --- compressed ones
(out / "csv.gz").write_bytes(gzip.compress(b"a,b,c\n" + b"".join(b"%d,%.2f,word%d\n" % (i, i / 7, i % 5) for i in range(50)), mtime=0))
(out / "idx.gz").write_bytes(gzip.compress(b"\0\0\x08\x02\0\0\0\x14\0\0\0\x0a" + bytes(range(200)), mtime=0))

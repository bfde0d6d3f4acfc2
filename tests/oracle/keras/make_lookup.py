"""Discretization, CategoryEncoding, Hashing, HashedCrossing, IntegerLookup, StringLookup and TextVectorization.

Needs TensorFlow beside Keras, which uses it for strings: KERAS_BACKEND=tensorflow does, too.
Strings are written as bytes with a 0 between any two, "texts"; rows of them have as many as "lengths" says.
"""

from values import Cases

import keras
import numpy as np
from keras import layers

cases = Cases("lookup")


def joined(strings):
    return np.frombuffer("\0".join(strings).encode(), dtype=np.uint8)


def numbers(y):
    y = np.asarray(y)
    return y.astype("float32") if y.dtype == np.float64 else y


def integers(name, layer, x):
    x = np.asarray(x)
    cases.add(name, x0=x, weights=np.int32(0), y=numbers(layer(x)))


def strings(name, layer, rows, **more):
    tensors = {}
    if rows and isinstance(rows[0], list):
        tensors["lengths"] = np.array([len(row) for row in rows], dtype="int64")
        flat = [token for row in rows for token in row]
    else:
        flat = rows
    cases.add(name, texts=joined(flat), y=numbers(layer(rows)), **tensors, **more)


def vocabulary(layer):
    return {"vocabulary": joined([str(token) for token in layer.get_vocabulary()])}


# --- hashes

letters = "".join(chr(97 + (i * 7) % 26) for i in range(220))
words = [letters[i : i + n] for i, n in enumerate(list(range(1, 70)) + [95, 127, 128, 129, 130, 191, 192, 193])]
words += ["Zürich", "日本語", "a b", "🙂"]
for salt in (None, 133, [133, 137], [2**62 + 5, 1]):
    name = "none" if salt is None else str(salt).replace(", ", "_").strip("[]")
    strings(f"hash_{name}", layers.Hashing(1000003, salt=salt), words)
whole = np.array([[0, 1, -1, 7], [12345678901234, -(2**63), 2**63 - 1, 10]], dtype="int64")
integers("hash_integers", layers.Hashing(1000003), whole)
integers("hash_integers_salt", layers.Hashing(97, salt=[1, 2]), whole)
integers("hash_mask", layers.Hashing(5, mask_value=7), whole)
integers("hash_one_hot", layers.Hashing(4, output_mode="one_hot"), whole)
integers("hash_one_hot_column", layers.Hashing(4, output_mode="one_hot"), whole[:, :1])
integers("hash_multi_hot", layers.Hashing(4, output_mode="multi_hot"), whole)
integers("hash_count", layers.Hashing(4, mask_value=0, output_mode="count"), whole)
strings("hash_rows", layers.Hashing(3, mask_value="b"), [["a", "b"], ["c", "d"], ["", "b"]])
strings("hash_rows_count", layers.Hashing(3, mask_value="", output_mode="count"), [["a", "b"], ["c", ""]])

cities, codes = ["A", "B", "A", "Zürich", ""], np.array([101, 101, -7, 102, 0])
cross = layers.HashedCrossing(100003)
cases.add("cross_strings", texts=joined(cities), codes=codes, y=numbers(cross((np.array(cities), codes))))
cases.add("cross_integers", x0=codes, x1=codes * 3, x2=codes - 1, weights=np.int32(0),
          y=numbers(cross((codes, codes * 3, codes - 1))))
cases.add("cross_one_hot", x0=codes[:, None], x1=codes[:, None] * 3, weights=np.int32(0),
          y=numbers(layers.HashedCrossing(5, output_mode="one_hot")((codes[:, None], codes[:, None] * 3))))

# --- bins

values = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, np.nan], [-np.inf, np.inf, 0.999999, 2.0]], dtype="float32")
for mode in ("int", "one_hot", "multi_hot", "count"):
    layer = layers.Discretization(bin_boundaries=[0.0, 1.0, 2.0], output_mode=mode)
    integers(f"bins_{mode}", layer, values)
integers("bins_one_hot_column", layers.Discretization(bin_boundaries=[0.0, 1.0], output_mode="one_hot"), values[:, 1:2])
random = np.random.default_rng(5)
data = np.round(random.normal(size=2000), 3).astype("float32")
cases.add("quantiles_data", data=data)
for bins, epsilon, parts in ((4, 0.01, 1), (10, 0.01, 3), (7, 0.05, 4), (50, 0.001, 2), (1, 0.01, 1), (300, 0.01, 1)):
    layer = layers.Discretization(num_bins=bins, epsilon=epsilon)
    layer.adapt(iter(np.array_split(data, parts)) if parts > 1 else data)
    cases.add(f"quantiles_{bins}_{parts}", found=np.array(layer.bin_boundaries, dtype="float64"))
few = np.array([3.0, 1.0, 2.0, 2.0, 5.0], dtype="float32")
layer = layers.Discretization(num_bins=3)
layer.adapt(few)
cases.add("quantiles_few", data=few, found=np.array(layer.bin_boundaries, dtype="float64"))

# --- codes

tokens = np.array([[0, 1, 1], [3, 3, 3], [2, 0, 1]], dtype="int64")
for mode in ("one_hot", "multi_hot", "count"):
    integers(f"codes_{mode}", layers.CategoryEncoding(5, output_mode=mode), tokens)
integers("codes_one_hot_column", layers.CategoryEncoding(5, output_mode="one_hot"), tokens[:, :1])
integers("codes_vector", layers.CategoryEncoding(5, output_mode="one_hot"), tokens[0])
weights = np.array([[0.5, 1.0, 2.0], [1.0, 0.25, -1.0], [0.0, 3.0, 4.0]], dtype="float32")
cases.add("codes_weights", x0=tokens, x1=weights, weights=np.int32(0),
          y=numbers(layers.CategoryEncoding(5, output_mode="count")(tokens, count_weights=weights)))

# --- integers

known = [12, 36, 1138, 42]
given = np.array([[12, 1138, 42, 0], [42, 1000, 36, -7], [7, 7, 12, 9]], dtype="int64")
for mode in ("int", "one_hot", "multi_hot", "count"):
    integers(f"integer_{mode}", layers.IntegerLookup(vocabulary=known, output_mode=mode), given)
    integers(f"integer_mask_{mode}",
             layers.IntegerLookup(vocabulary=known, mask_token=0, num_oov_indices=2, output_mode=mode), given)
integers("integer_special", layers.IntegerLookup(vocabulary=[0, -1] + known, mask_token=0), given)
integers("integer_oov_4", layers.IntegerLookup(vocabulary=known, num_oov_indices=4), given)
integers("integer_farmhash", layers.IntegerLookup(vocabulary=known, num_oov_indices=4, oov_method="farmhash"), given)
integers("integer_salt",
         layers.IntegerLookup(vocabulary=known, num_oov_indices=4, oov_method="farmhash", salt=[5, 6]), given)
integers("integer_no_oov", layers.IntegerLookup(vocabulary=known, num_oov_indices=0), given[:1, :3])
integers("integer_padded",
         layers.IntegerLookup(vocabulary=known, max_tokens=9, pad_to_max_tokens=True, output_mode="count"), given)
integers("integer_tf_idf",
         layers.IntegerLookup(vocabulary=known, idf_weights=[0.25, 0.75, 0.6, 0.4], output_mode="tf_idf"), given)
integers("integer_tf_idf_padded",
         layers.IntegerLookup(vocabulary=[-1] + known, idf_weights=[0.1, 0.25, 0.75, 0.6, 0.4], output_mode="tf_idf",
                              max_tokens=8, pad_to_max_tokens=True), given)
indices = np.array([[1, 3, 4, 0], [5, 2, -1, 9]], dtype="int64")
integers("integer_invert", layers.IntegerLookup(vocabulary=known, invert=True), indices)
integers("integer_invert_mask", layers.IntegerLookup(vocabulary=known, mask_token=0, oov_token=-5, invert=True), indices)
seen = np.array([[5, 3, 5, 0], [3, 9, 5, -1], [2, 2, 9, 0]], dtype="int64")
for mode in ("int", "tf_idf"):
    for limit in (None, 4):
        layer = layers.IntegerLookup(mask_token=0, output_mode=mode, max_tokens=limit)
        layer.adapt(seen)
        cases.add(f"integer_adapt_{mode}_{limit or 'all'}", data=seen, x0=given, y=numbers(layer(given)),
                  found=np.array(layer.get_vocabulary(), dtype="int64"))

# --- strings

fruit = ["apple", "pear", "fig"]
rows = [["apple", "fig", "kiwi"], ["", "pear", "apple"]]
for mode in ("int", "one_hot", "multi_hot", "count"):
    strings(f"string_{mode}", layers.StringLookup(vocabulary=fruit, output_mode=mode), rows)
    strings(f"string_mask_{mode}",
            layers.StringLookup(vocabulary=fruit, mask_token="", num_oov_indices=3, output_mode=mode), rows)
strings("string_list", layers.StringLookup(vocabulary=fruit, output_mode="one_hot"), ["fig", "x", "pear"])
strings("string_salt", layers.StringLookup(vocabulary=fruit, num_oov_indices=7, salt=[3, 4]), rows)
layer = layers.StringLookup(output_mode="tf_idf")
layer.adapt(np.array([["b", "a", "b"], ["c", "a", "[UNK]"], ["d", "é", "d"]]))
strings("string_adapt", layer, [["a", "b", "b"], ["é", "x", "d"]], **vocabulary(layer))
layer = layers.StringLookup(max_tokens=4, num_oov_indices=2)
layer.adapt(["b", "a", "b", "z", "Z", "é", "a"])
strings("string_adapt_list", layer, ["b", "a", "é", "q"], **vocabulary(layer))

# --- texts

corpus = ["The quick brown fox, the LAZY dog!", "  It's a dog's life.\tÄPFEL\nund Birnen_", "", "the end - of it",
          "日本語 text \x0b here\u00a0too 🙂"]
texts = ["The dog, the fox", "", "nothing of THIS here", "äPFEL Äpfel 日本語"]
for standardize in ("lower_and_strip_punctuation", "lower", "strip_punctuation", None):
    for split in ("whitespace", "character"):
        layer = layers.TextVectorization(standardize=standardize, split=split)
        layer.adapt(corpus)

        strings(f"text_{standardize or 'none'}_{split}", layer, texts, **vocabulary(layer))
for name, options in {
    "bigrams": {"ngrams": 2}, "ngrams_3_1": {"ngrams": (3, 1)}, "short": {"output_sequence_length": 2},
    "long": {"output_sequence_length": 9}, "limited": {"max_tokens": 5}, "multi_hot": {"output_mode": "multi_hot"},
    "count": {"output_mode": "count"}, "tf_idf": {"output_mode": "tf_idf"},
    "tf_idf_padded": {"output_mode": "tf_idf", "max_tokens": 40, "pad_to_max_tokens": True},
    "count_bigrams": {"output_mode": "count", "ngrams": (2,)},
}.items():
    layer = layers.TextVectorization(**options)
    layer.adapt(corpus)
    strings(f"text_{name}", layer, texts, **vocabulary(layer))
layer = layers.TextVectorization(split=None, standardize="lower")
layer.adapt(["New York", "Rome", "rome"])
strings("text_unsplit", layer, ["ROME", "new york", "Oslo"], **vocabulary(layer))
strings("text_unsplit_rows", layer, [["ROME", "new york"], ["Oslo", ""]], **vocabulary(layer))
layer = layers.TextVectorization(vocabulary=["earth", "wind", "and", "fire"], output_sequence_length=4)
strings("text_given", layer, [["earth, wind & fire"], ["and and"]], **vocabulary(layer))

cases.write()

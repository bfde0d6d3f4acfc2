"""What tf.data gives for stages whose order has rules of its own: pipelines.txt, one case a line.

    python make_pipelines.py > pipelines.txt        (TensorFlow 2)

A line: the stage, its arguments, "=", then the elements: "[shape] values" of each, between "|".
Run it again when a case is added; the tests read the file, and TensorFlow is not needed for them.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

D = tf.data.Dataset


def show(dataset):
    out = []
    for element in dataset:
        values = np.asarray(element)
        out.append("[%s] %s" % (",".join(map(str, values.shape)), " ".join(str(v) for v in values.reshape(-1))))
    return "|".join(out)


def line(stage, arguments, dataset):
    print(stage, " ".join(map(str, arguments)), "=", show(dataset))


def lengths(values):
    """Element i is values[i] times the number i."""
    return D.from_tensor_slices(np.array(values, np.int64)).enumerate().map(lambda i, n: tf.fill([n], i))


# interleave: the datasets of n are n elements 10 * position, 10 * position + 1, ...
for cycle, block, counts in [
    (1, 1, [2, 3]), (2, 1, [2, 3, 1, 4]), (2, 2, [3, 3, 3]), (3, 1, [1, 0, 4, 2, 2]), (3, 2, [5, 1, 0, 3, 2, 2]),
    (4, 3, [2, 7, 4]), (2, 1, [0, 0, 3]), (3, 4, [9, 2, 6, 1, 1, 1]),
]:
    d = D.from_tensor_slices(np.array(counts, np.int64)).enumerate()
    d = d.interleave(lambda i, n: D.range(n).map(lambda j: 10 * i + j), cycle_length=cycle, block_length=block)
    line("interleave", [cycle, block, *counts], d)

# window: size shift stride drop count
for size, shift, stride, drop, count in [
    (3, 3, 1, 0, 7), (3, 1, 1, 0, 5), (3, 1, 1, 1, 5), (2, 3, 1, 0, 8), (2, 3, 1, 1, 8), (3, 2, 2, 0, 9),
    (3, 2, 2, 1, 9), (2, 1, 4, 0, 6), (4, 5, 3, 0, 11), (1, 2, 1, 0, 5), (3, 7, 1, 0, 5), (3, 1, 1, 1, 2),
]:
    d = D.range(count).window(size, shift=shift, stride=stride, drop_remainder=bool(drop)).flat_map(
        lambda w: w.batch(size))
    line("window", [size, shift, stride, drop, count], d)

# bucket: pad_to_bucket_boundary drop; boundaries, batch sizes and lengths between ";"
for pad, drop, boundaries, sizes, given in [
    (0, 0, [3, 5], [2, 2, 2], [1, 4, 2, 6, 3, 7, 0, 4, 9]),
    (1, 0, [3, 5, 9], [2, 3, 1, 1], [1, 4, 2, 6, 3, 7, 0, 4, 8]),
    (0, 1, [3, 5], [2, 2, 2], [1, 4, 2, 6, 3, 7, 0, 4, 9]),
    (0, 0, [2], [3, 2], [2, 2, 2, 1, 1, 0, 5]),
    (1, 0, [4], [3, 2], [3, 3, 1, 2]),
]:
    d = lengths(given).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], boundaries, sizes, pad_to_bucket_boundary=bool(pad), drop_remainder=bool(drop),
        padding_values=np.int64(-1))
    line("bucket", [pad, drop, ";", *boundaries, ";", *sizes, ";", *given], d)

# padded_batch: batch size, padded size (-1: the longest), drop, lengths
for size, to, drop, given in [(2, -1, 0, [1, 3, 0, 2, 4]), (3, 5, 0, [1, 3, 0, 2, 4]), (2, -1, 1, [2, 1, 4])]:
    d = lengths(given).padded_batch(size, padded_shapes=[None if to < 0 else to], padding_values=np.int64(9),
                                    drop_remainder=bool(drop))
    line("padded_batch", [size, to, drop, *given], d)

# shard: shards index count; choose: stop; choices; counts of the datasets (elements 10 * dataset + position)
for shards, index, count in [(3, 0, 10), (3, 2, 10), (4, 3, 3), (1, 0, 4)]:
    line("shard", [shards, index, count], D.range(count).shard(shards, index))
for stop, choices, counts in [(1, [0, 1, 0, 1, 0, 0, 1], [3, 9]), (0, [0, 1, 0, 1, 0, 0, 1], [3, 9]),
                              (0, [0, 0, 0, 1, 1, 0], [1, 1]), (1, [2, 2, 0], [4, 4, 4])]:
    sets = [D.range(n).map(lambda j, i=i: 10 * i + j) for i, n in enumerate(counts)]
    d = D.choose_from_datasets(sets, D.from_tensor_slices(np.array(choices, np.int64)), stop_on_empty_dataset=bool(stop))
    line("choose", [stop, ";", *choices, ";", *counts], d)

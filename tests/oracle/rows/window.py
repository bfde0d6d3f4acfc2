"""Convolutions and pools, straight from the definitions in stet/ir/specs.h."""

import itertools

import numpy as np

from oracle import ALL, FLOATING, NUMBERS, row


def positions(sizes):
    return itertools.product(*(range(size) for size in sizes))


def terms(inputs, windows, outputs, strides, dilations, low):
    """(input position, window position, output position) of all products that are not with padding."""
    for o in positions(outputs):
        for k in positions(windows):
            i = tuple(a * s + b * d - p for a, s, b, d, p in zip(o, strides, k, dilations, low))
            if all(0 <= at < size for at, size in zip(i, inputs)):
                yield i, k, o


def at(position):
    return (slice(None), *position)


def contracted(letters, x, y):
    """np.einsum, also of objects."""
    if x.dtype != object:
        return np.einsum(letters, x, y)
    first, second, result = letters.replace("->", ",").split(",")
    summed = [letter for letter in first if letter not in result]
    order = result + "".join(summed)
    spread = [np.transpose(a, [names.index(n) for n in order if n in names])[
        tuple(slice(None) if n in names else None for n in order)] for a, names in ((x, first), (y, second))]
    return np.add.reduce(spread[0] * spread[1], axis=-1)


@row("conv", types=FLOATING)
def conv(x, filter, strides, dilations, low, sizes):
    *windows, channels, groups, features = filter.shape
    x = x.reshape(*x.shape[:-1], groups, channels)
    out = np.zeros((x.shape[0], *sizes, groups, features), dtype=x.dtype)
    for i, k, o in terms(x.shape[1:-2], windows, sizes, strides, dilations, low):
        out[at(o)] += contracted("bgc,cgf->bgf", x[at(i)], filter[k])
    return out.reshape(x.shape[0], *sizes, groups * features)


@row("conv_input", types=FLOATING)
def conv_input(output, filter, strides, dilations, low, sizes):
    *windows, channels, groups, features = filter.shape
    output = output.reshape(*output.shape[:-1], groups, features)
    x = np.zeros((output.shape[0], *sizes, groups, channels), dtype=output.dtype)
    for i, k, o in terms(sizes, windows, output.shape[1:-2], strides, dilations, low):
        x[at(i)] += contracted("bgf,cgf->bgc", output[at(o)], filter[k])
    return x.reshape(output.shape[0], *sizes, groups * channels)


@row("conv_filter", types=FLOATING)
def conv_filter(x, output, strides, dilations, low, sizes):
    *windows, channels, groups, features = sizes
    x = x.reshape(*x.shape[:-1], groups, channels)
    output = output.reshape(*output.shape[:-1], groups, features)
    filter = np.zeros(sizes, dtype=x.dtype)
    for i, k, o in terms(x.shape[1:-2], windows, output.shape[1:-2], strides, dilations, low):
        filter[k] += contracted("bgc,bgf->cgf", x[at(i)], output[at(o)])
    return filter


def pool_windows(inputs, window, outputs, strides, low):
    """For every window its position, and the numbers and input positions of its elements that exist."""
    for o in positions(outputs):
        elements = []
        for number, k in enumerate(positions(window)):
            i = tuple(a * s - p + b for a, s, p, b in zip(o, strides, low, k))
            if all(0 <= at < size for at, size in zip(i, inputs)):
                elements.append((number, i))
        yield o, elements


@row("max_pool", types=NUMBERS)
def max_pool(x, window, strides, low, sizes):
    lowest = -np.inf if x.dtype != object else None
    values = np.empty((x.shape[0], *sizes, x.shape[-1]), dtype=x.dtype)
    numbers = np.zeros(values.shape, dtype=np.int64)
    for o, elements in pool_windows(x.shape[1:-1], window, sizes, strides, low):
        if not elements:
            values[at(o)] = lowest
            continue
        stacked = np.stack([x[at(i)] for _, i in elements])
        first = np.argmax(stacked.astype(np.float64), axis=0)
        values[at(o)] = np.take_along_axis(stacked, first[None], 0)[0]
        numbers[at(o)] = np.array([number for number, _ in elements])[first]
    return values, numbers


@row("pool_pick", types=FLOATING)
def pool_pick(x, numbers, window, strides, low, sizes):
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]), dtype=x.dtype)
    for o, elements in pool_windows(x.shape[1:-1], window, sizes, strides, low):
        for number, i in elements:
            out[at(o)] += np.where(numbers[at(o)] == number, x[at(i)], 0)
    return out


@row("pool_place", types=FLOATING)
def pool_place(x, numbers, window, strides, low, sizes):
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]), dtype=x.dtype)
    for o, elements in pool_windows(sizes, window, x.shape[1:-1], strides, low):
        for number, i in elements:
            out[at(i)] += np.where(numbers[at(o)] == number, x[at(o)], 0)
    return out


@row("average_pool", types=FLOATING)
def average_pool(x, window, strides, low, sizes):
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]), dtype=x.dtype)  # 0 where a window is empty
    for o, elements in pool_windows(x.shape[1:-1], window, sizes, strides, low):
        if elements:
            out[at(o)] = np.mean([x[at(i)] for _, i in elements], axis=0)
    return out


@row("pool_spread", types=FLOATING)
def pool_spread(x, window, strides, low, sizes):
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]), dtype=x.dtype)
    for o, elements in pool_windows(sizes, window, x.shape[1:-1], strides, low):
        for _, i in elements:
            out[at(i)] += x[at(o)] / len(elements)
    return out


@row("extract_patches", types=ALL)
def extract_patches(x, window, strides, rates, low, sizes):
    out = np.zeros((x.shape[0], *sizes, *window, x.shape[-1]), dtype=x.dtype)
    for i, k, o in terms(x.shape[1:-1], window, sizes, strides, rates, low):
        out[at(o + k)] = x[at(i)]
    return out.reshape(x.shape[0], *sizes, -1) if out.size else np.zeros(
        (x.shape[0], *sizes, int(np.prod(window)) * x.shape[-1]), dtype=x.dtype)

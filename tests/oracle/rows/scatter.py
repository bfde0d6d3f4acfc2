import numpy as np

from oracle import ALL, NUMBERS, row

COMBINE = {  # by the number of Combine (stet/ir/op.h)
    0: lambda old, value: value,
    1: lambda old, value: old + value,
    2: lambda old, value: old * value,
    3: lambda old, value: old if old != old or old >= value else value,  # NaN wins, as in np.maximum.at
    4: lambda old, value: old if old != old or old <= value else value,
}


def scattered(x, indices, updates, axis, combine):
    out = np.array(x)
    lines = np.moveaxis(out, axis, 0)
    parts = np.moveaxis(updates.reshape(x.shape[: axis % x.ndim] + (indices.size,) + x.shape[axis % x.ndim + 1:]), axis, 0)
    for k, place in enumerate(indices.reshape(-1)):
        for at in np.ndindex(lines.shape[1:]):
            lines[(place, *at)] = COMBINE[combine](lines[(place, *at)], parts[(k, *at)])
    return out


def scatter(x, indices, updates, axis, combine):
    return scattered(x, indices, updates, axis, combine)


row("scatter_update")(scatter)
for name in ("scatter_add", "scatter_multiply", "scatter_min", "scatter_max"):
    row(name, types=NUMBERS)(scatter)


@row("put_along_axis", types=lambda a: NUMBERS if a["combine"] else ALL)
def put_along_axis(x, indices, values, axis, combine):
    out = np.array(x)
    axis %= x.ndim
    for at in np.ndindex(indices.shape):
        place = at[:axis] + (int(indices[at]),) + at[axis + 1:]
        out[place] = COMBINE[combine](out[place], values[at])
    return out

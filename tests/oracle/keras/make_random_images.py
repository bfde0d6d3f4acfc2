"""Affine transforms of images, and the matrices that random layers make: tests/public/keras_random_images_test.cpp."""

from layer_cases import draw
from values import Cases

import keras
import numpy as np

cases = Cases("random_images")

images = draw("images", (2, 5, 7, 2), -2, 2)
one = draw("one", (4, 6, 1), -2, 2)
rows = {
    "same": [1, 0, 0, 0, 1, 0],
    "moved": [1, 0, 1.3, 0, 1, -2.4],
    "far": [1, 0, 23.2, 0, 1, -31.7],
    "zoomed": [1.7, 0, -2.1, 0, 0.6, 0.8],
    "turned": [0.8, -0.6, 2.3, 0.6, 0.8, -1.1],
    "sheared": [1.1, 0.4, -0.7, -0.3, 0.9, 1.2],
}
for name, row in rows.items():
    for fill in ("constant", "nearest", "wrap", "reflect"):
        for interpolation in ("bilinear", "nearest"):
            transform = np.array(row + [0, 0], dtype="float32")
            value = 0.5 if fill == "constant" else 0.0
            y = keras.ops.image.affine_transform(images, np.tile(transform, (2, 1)), interpolation=interpolation,
                                                 fill_mode=fill, fill_value=value)
            cases.add(f"{name}_{fill}_{interpolation}", transform=transform, y=np.asarray(y))
cases.add("images", x=images, one=one)
each = np.array([rows["moved"] + [0, 0], rows["turned"] + [0, 0]], dtype="float32")
y = keras.ops.image.affine_transform(images, each, fill_mode="reflect")
cases.add("each", transform=each, y=np.asarray(y))
y = keras.ops.image.affine_transform(one, each[1], fill_mode="wrap")
cases.add("one", transform=each[1], y=np.asarray(y))
first = np.moveaxis(images, -1, 1)
y = keras.ops.image.affine_transform(first, each, fill_mode="nearest", data_format="channels_first")
cases.add("channels_first", transform=each, y=np.asarray(y))

# Layers whose factor leaves nothing to chance.
for name, layer in {
    "rotation": keras.layers.RandomRotation((0.1, 0.1)),
    "rotation_back": keras.layers.RandomRotation((-0.3, -0.3), fill_mode="constant", fill_value=0.25),
    "translation": keras.layers.RandomTranslation((0.3, 0.3), (-0.2, -0.2), fill_mode="wrap"),
    "translation_nearest": keras.layers.RandomTranslation((-0.4, -0.4), (0.3, 0.3), interpolation="nearest"),
    "zoom": keras.layers.RandomZoom((0.4, 0.4), (-0.3, -0.3)),
    "zoom_both": keras.layers.RandomZoom((-0.5, -0.5), fill_mode="nearest"),
}.items():
    cases.add("layer_" + name, y=np.asarray(layer(images, training=True)), one=np.asarray(layer(one, training=True)))

cases.write()

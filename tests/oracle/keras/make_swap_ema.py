"""Training with moving averages of the weights, and SwapEMAWeights."""

from layer_cases import draw
from values import Cases

import keras
import numpy as np

cases = Cases("swap_ema")
x, y = draw("x", (6, 3)), draw("y", (6, 1))
kernel = draw("kernel", (3, 1))
cases.add("data", x=x, y=y, kernel=kernel)
for name, callbacks in {
    "none": [],
    "swap": [keras.callbacks.SwapEMAWeights()],
    "swap_on_epoch": [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
}.items():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, use_bias=False)])
    model.set_weights([kernel])
    model.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.7), "mean_squared_error")
    seen = []
    tell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(model.get_weights()[0]))
    history = model.fit(x, y, batch_size=2, epochs=4, shuffle=False, verbose=0, validation_data=(x, y),
                        callbacks=callbacks + [tell])
    cases.add(name, loss=np.array(history.history["loss"], dtype="float32"),
              val_loss=np.array(history.history["val_loss"], dtype="float32"), seen=np.stack(seen),
              kernel=model.get_weights()[0])
cases.write()

#!/usr/bin/env python3
"""make_model_checkpoint.py > model_checkpoint.txt: which files Keras's ModelCheckpoint writes for given logs, and what it
says. A model that only notes the paths stands for one.

Lines of a case: `case`, its name and its options; then `batch`/`epoch` with the number and the logs that the callback
is told; what it saves, `saves`, and what it prints, `says`, follow the line that it is told.
"""

import contextlib
import io
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ["COLUMNS"] = "200"
import keras  # noqa: E402


class Model:
    metrics = []
    saved = []

    def save(self, path, overwrite=True):
        self.saved.append(path)

    def save_weights(self, path, overwrite=True):
        self.saved.append(path)


values = [0.9, 0.5, 0.5, 0.7, float("nan"), 0.25, 0.3, 0.125]
cases = {
    "every": ("m{epoch:02d}-{val_loss:.2f}.keras", {}),
    "best": ("best.keras", {"save_best_only": True, "verbose": 1}),
    "largest": ("{epoch}-{val_loss:.3f}.keras", {"save_best_only": True, "mode": "max", "verbose": 1}),
    "threshold": ("best.keras", {"save_best_only": True, "initial_value_threshold": 0.4, "verbose": 1}),
    "batches": ("e{epoch}-b{batch:03d}-{loss:.1f}.keras", {"save_freq": 3, "verbose": 1}),
    "best of batches": ("b{batch}.keras", {"save_freq": 2, "save_best_only": True, "monitor": "loss", "mode": "min"}),
    "weights": ("w{epoch}.weights.h5", {"save_weights_only": True, "verbose": 1}),
    "missing": ("{epoch}.keras", {"save_best_only": True, "monitor": "other", "mode": "min"}),
}
for name, (path, options) in cases.items():
    print("case", name, path, *(f"{k}={v}" for k, v in options.items()), sep="\t")
    callback = keras.callbacks.ModelCheckpoint(path, **options)
    model = Model()
    model.saved.clear()
    callback.set_model(model)
    callback.on_train_begin()

    def tell(line, hook, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            hook(*arguments)
        print(line)
        for one in model.saved:
            print("saves", one, sep="\t")
        model.saved.clear()
        for one in said.getvalue().split("\n"):
            if one:
                print("says", one, sep="\t")

    for epoch, value in enumerate(values):
        callback.on_epoch_begin(epoch)
        if options.get("save_best_only") and callback.monitor_op is None:
            callback._set_monitor_op()  # which Keras does at the end of the first epoch
        for batch in range(4):
            loss = (7 * batch + 3 * epoch) % 10 / 10
            tell(f"batch\t{batch}\t{loss}", callback.on_train_batch_end, batch, {"loss": loss})
        tell(f"epoch\t{epoch}\t{value}", callback.on_epoch_end, epoch, {"loss": 1.0, "val_loss": value})

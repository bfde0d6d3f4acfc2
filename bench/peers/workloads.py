"""The workloads that stet and its peers are timed on: what they are called, how they are compared, and what is hoped for.

Needs Python's own modules alone; what the workloads begin with is in arrays.py, what they do in models.py and networks.h.
"""
import dataclasses

CLASSES = 10
# Adam's. Keras adds epsilon before, PyTorch after the correction of the bias; so small, it does not matter.
RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-10

TRANSFORMER_HEADS, TRANSFORMER_LAYERS = 4, 2
ATTENTION_HEADS = 4
# Every length from 20 to 60 once, far from in order.
LENGTHS = [20 + step * 17 % 41 for step in range(41)]


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    model: str  # in models.py and arrays.py
    goal: float = 1.0  # the best peer's time over stet's
    steps: int = 20  # the loss after so many is compared: while it is a number of some size, as batches are soon learned by heart
    traces: int = 1  # that stet may make
    images: bool = False  # of which some peers have two layouts


WORKLOADS = [
    Workload("gelu_norm", "gelu and layer norm, 4096 x 1024", "gelu_norm", goal=1.7),
    Workload("cross_entropy", "softmax cross-entropy and gradient, 1024 x 32000", "cross_entropy", goal=5),
    Workload("cnn", "CNN, batch 64", "cnn", goal=1.4, images=True),
    Workload("transformer", "transformer, 2 layers", "transformer", goal=1.5, steps=10),
    Workload("lstm", "LSTM, lengths 20 to 60", "lstm", goal=1.5, steps=len(LENGTHS)),
    Workload("adam", "Adam, 10^7 parameters in 64 tensors", "adam", goal=1.0),
    Workload("mlp_32", "MLP, batch 32", "mlp", goal=1.6, steps=4),
    Workload("mlp_128", "MLP, batch 128", "mlp", goal=1.45, steps=6),
    Workload("mlp_1024", "MLP, batch 1024", "mlp", goal=1.15, steps=15),
    Workload("gru", "GRU, lengths 20 to 60", "gru", steps=len(LENGTHS)),
    Workload("depthwise", "depthwise CNN, batch 32", "depthwise", steps=60, images=True),
    Workload("resnet", "ResNet block with batch norm, batch 32", "resnet", images=True),
    Workload("embedding", "embedding and mean pooling, batch 128", "embedding", steps=40),
    Workload("attention_512", "attention, length 512", "attention", steps=14),
    Workload("mlp_1", "MLP, batch 1", "mlp", steps=2),
    Workload("mlp_3", "MLP, batch 3", "mlp", steps=2),
    Workload("mlp_17", "MLP, batch 17", "mlp", steps=2),
    Workload("mlp_1000", "MLP, batch 1000", "mlp", steps=15),
]
BY_NAME = {workload.name: workload for workload in WORKLOADS}

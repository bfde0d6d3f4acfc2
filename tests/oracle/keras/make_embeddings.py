"""Embedding, Masking and EinsumDense."""

from sequence_cases import SequenceCases

import numpy as np
from keras import layers

cases = SequenceCases("embeddings")
tokens = np.array([[3, 0, 5, 3], [1, 6, 0, 0]], "int32")
cases.layer("embedding", layers.Embedding(7, 3), tokens)
cases.layer("embedding_wide", layers.Embedding(7, 3), tokens.astype("int64"))
cases.layer("embedding_vector", layers.Embedding(7, 2, mask_zero=True), tokens[0])
cases.layer(
    "embedding_mask",
    layers.Embedding(7, 3, mask_zero=True),
    tokens,
    call=lambda layer, x: [layer(x), layer.compute_mask(x).astype("float32")],
)
steps = np.array([[[1, 2], [0, 0], [0, 3]], [[0, 0], [0, 0], [4, 5]]], "float32")
masking = lambda layer, x: [layer(x), layer.compute_mask(x).astype("float32")]
cases.layer("masking", layers.Masking(), steps, call=masking)
cases.layer("masking_value", layers.Masking(2.0), np.array([[[2, 2], [2, 1]], [[0, 0], [2, 2]]], "float32"), call=masking)

cases.layer("einsum_plain", layers.EinsumDense("ab,bc->ac", 4, bias_axes="c"), (2, 3))
cases.layer("einsum_sequence", layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d", activation="tanh"), (2, 3, 4))
cases.layer("einsum_ellipsis", layers.EinsumDense("...x,xy->...y", 3, bias_axes="y"), (2, 3, 4, 2))
cases.layer("einsum_heads", layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), (2, 3, 4))
cases.layer("einsum_merge", layers.EinsumDense("abcd,cde->abe", (None, 5), bias_axes="e"), (2, 3, 2, 4))
cases.layer("einsum_middle", layers.EinsumDense("abc,bd->adc", (5, 4), bias_axes="d"), (2, 3, 4))
cases.layer("einsum_back", layers.EinsumDense("ab...,bc->ac...", (5, None), bias_axes="c"), (2, 3, 4))
cases.layer("einsum_per_step", layers.EinsumDense("abc,bcd->abd", (3, 2), bias_axes="bd"), (2, 3, 4))
cases.layer("einsum_no_bias", layers.EinsumDense("ab,bc->ac", 4), (2, 3))
cases.write()

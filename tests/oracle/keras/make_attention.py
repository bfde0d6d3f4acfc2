"""MultiHeadAttention, GroupQueryAttention, Attention and AdditiveAttention."""

from sequence_cases import SequenceCases, draw

import numpy as np
from keras import layers

cases = SequenceCases("attention")
query, value, key = (2, 3, 4), (2, 5, 3), (2, 5, 6)
query_mask = np.array([[1, 1, 0], [1, 0, 0]], bool)
value_mask = np.array([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], bool)
attention_mask = draw("attention_mask", (2, 3, 5)) > -0.5
attention_mask[:, :, 0] = True
heads_mask = draw("heads_mask", (2, 2, 3, 5)) > -0.5
heads_mask[:, :, :, 0] = True


def listed(**options):
    return lambda layer, q, v, k: layer(q, v, k, **options)


def make(**options):
    return layers.MultiHeadAttention(2, 3, **options)


both = lambda layer, q, v: layer(q, v)
scores = lambda layer, q, v: layer(q, v, return_attention_scores=True)
causal = lambda layer, q, v: layer(q, v, use_causal_mask=True)
with_mask = lambda layer, q, v, m: layer(q, v, attention_mask=m)
with_mask_causal = lambda layer, q, v, m: layer(q, v, attention_mask=m, use_causal_mask=True)
with_masks = lambda layer, q, v, a, b: layer(q, v, query_mask=a, value_mask=b, return_attention_scores=True)

cases.layer("heads", make(), query, value, call=both)
cases.layer("heads_key", make(), query, value, key, call=listed())
cases.layer("heads_value_dim", make(value_dim=4), query, value, call=scores)  # the other way of JAX takes one size
cases.layer("heads_no_bias", make(use_bias=False), query, value, call=both)
cases.layer("heads_output_shape", make(output_shape=(2, 3)), query, value, call=both)
cases.layer("heads_scores", make(), query, value, call=scores)
cases.layer("heads_causal", make(), query, value, call=causal)
cases.layer("heads_window", make(sliding_window=2), query, value, call=both)
cases.layer("heads_gate", make(use_gate=True, value_dim=5), query, value, call=scores)
cases.layer("heads_mask", make(), query, value, attention_mask, call=with_mask)
cases.layer("heads_mask_by_head", make(), query, value, heads_mask, call=with_mask)
cases.layer("heads_mask_causal", make(), query, value, attention_mask, call=with_mask_causal)
with_value_mask = lambda layer, q, v, b: layer(q, v, value_mask=b, return_attention_scores=True)
cases.layer("heads_value_mask", make(), query, value, value_mask, call=with_value_mask)
two_axes = (2, 3, 2, 4), (2, 4, 2, 5)
cases.layer("heads_two_axes", make(), *two_axes, call=scores)
cases.layer("heads_axes", make(attention_axes=(1,)), *two_axes, call=scores)
cases.layer("heads_axes_last", make(attention_axes=(2,)), (2, 3, 4, 4), (2, 3, 5, 4), call=scores)


def group(**options):
    return layers.GroupQueryAttention(3, 4, 2, **options)


cases.layer("group", group(), query, value, call=both)
cases.layer("group_key", group(), query, value, key, call=listed())
cases.layer("group_scores", group(use_bias=False), query, value, call=scores)
cases.layer("group_causal", group(), query, value, call=causal)
cases.layer("group_mask", group(), query, value, attention_mask, call=with_mask)
cases.layer("group_masks", group(), query, value, query_mask, value_mask, call=with_masks)
cases.layer("group_gate", group(use_gate=True, sliding_window=3), query, value, call=both)

alike, other = (2, 3, 4), (2, 5, 4)
pair = lambda layer, q, v: layer([q, v])
pair_scores = lambda layer, q, v: layer([q, v], return_attention_scores=True)
triple = lambda layer, q, v, k: layer([q, v, k])
pair_causal = lambda layer, q, v: layer([q, v], use_causal_mask=True)
pair_masks = lambda layer, q, v, a, b: layer([q, v], mask=[a, b], return_attention_scores=True)
pair_masks_causal = lambda layer, q, v, a, b: layer([q, v], mask=[a, b], use_causal_mask=True)
for kind, options in {
    "dot": dict(),
    "dot_scale": dict(use_scale=True),
    "concat": dict(score_mode="concat"),
    "concat_scale": dict(score_mode="concat", use_scale=True),
}.items():
    cases.layer(kind, layers.Attention(**options), alike, other, call=pair_scores)
cases.layer("dot_key", layers.Attention(), alike, (2, 5, 2), other, call=triple)
cases.layer("dot_causal", layers.Attention(), alike, other, call=pair_causal)
cases.layer("dot_masks", layers.Attention(use_scale=True), alike, other, query_mask, value_mask, call=pair_masks)
nothing = np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
cases.layer("dot_nothing", layers.Attention(), alike, other, query_mask, nothing, call=pair_masks)
cases.layer("dot_masks_causal", layers.Attention(), alike, other, query_mask, value_mask, call=pair_masks_causal)
cases.layer("additive", layers.AdditiveAttention(), alike, other, call=pair_scores)
cases.layer("additive_no_scale", layers.AdditiveAttention(use_scale=False), alike, other, call=pair)
cases.layer("additive_masks", layers.AdditiveAttention(), alike, other, query_mask, value_mask, call=pair_masks)
cases.write()

// The chunks of the hand-written step, for the instruction set that the including file has chosen. See step.h.
#pragma once
#include "bench/hand/step.h"
#include "bench/hand/vector.h"

namespace {

using namespace bench::hand;
using std::int64_t;

constexpr int64_t forward_rows = 192;     // rows of one chunk: the panel of weights is read once for them
constexpr int64_t back_rows = 2 * lanes;  // rows of w2
constexpr int64_t update_rows = 96;       // rows of a weight

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Calls tile.template run<rows, vectors>() for sizes that are known at run time.
template <int rows = max_rows, int vectors = max_vectors, class Tile>
STET_INLINE void run_tile(int64_t want_rows, int64_t want_vectors, const Tile& tile) {
  if (want_rows == rows && want_vectors == vectors)
    tile.template run<rows, vectors>();
  else if constexpr (vectors > 1)
    run_tile<rows, vectors - 1>(want_rows, want_vectors, tile);
  else if constexpr (rows > 1)
    run_tile<rows - 1, max_vectors>(want_rows, want_vectors, tile);
}

/// Cuts [0, count) into as few tiles as can be, all about as high, and calls body(begin, rows).
template <class Body>
STET_INLINE void in_tiles(int64_t count, const Body& body) {
  int64_t tiles = ceil_divide(count, max_rows);
  for (int64_t tile = 0, begin = 0; tile < tiles; ++tile) {
    int64_t end = count * (tile + 1) / tiles;
    body(begin, end - begin);
    begin = end;
  }
}

/// sums += a b over `depth`. An element of a is a[row * stride + k], or a[k * stride + row] when transposed.
template <bool transposed, int rows, int vectors>
STET_INLINE void multiply(Vector (&sums)[rows][vectors], const float* a, int64_t a_stride, const float* b,
                          int64_t b_stride, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k) {
    Vector right[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) right[v] = load(b + k * b_stride + v * lanes);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      Vector left = fill(transposed ? a[k * a_stride + r] : a[r * a_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(left, right[v], sums[r][v]);
    }
  }
}

/// Calls body(row, vector) for all of a tile, unrolled: or its sums would live in memory.
template <int rows, int vectors, class Body>
STET_INLINE void for_tile(const Body& body) {
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) body(r, v);
}

// --- forward

struct ForwardTile {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride, depth;
  const float* bias;
  Matrix to;
  bool rectify;
  template <int rows, int vectors>
  void run() const {
    Vector sums[rows][vectors];
    for_tile<rows, vectors>([&](int r, int v) STET_LAMBDA { sums[r][v] = load(bias + v * lanes); });
    multiply<false>(sums, a, a_stride, b, b_stride, depth);
    for_tile<rows, vectors>([&](int r, int v) STET_LAMBDA {
      store(to.row(r) + v * lanes, rectify ? larger(sums[r][v], Vector{}) : sums[r][v]);
    });
  }
};

/// Columns of one panel of act(a w + bias), for some rows.
void forward(const Layer& layer, const float* a, int64_t a_stride, int64_t at_panel, int64_t rows, Matrix to,
             bool rectify) {
  int64_t column = at_panel * panel, width = smaller(panel, layer.width - column);
  in_tiles(rows, [&](int64_t begin, int64_t count) STET_LAMBDA {
    run_tile(count, width / lanes,
             ForwardTile{a + begin * a_stride, a_stride, layer.weights + column * layer.inputs, width, layer.inputs,
                         layer.bias + column, Matrix{to.row(begin) + column, to.stride}, rectify});
  });
}

void hidden_chunk(const Layer& layer, const State& state, const float* a, int64_t a_stride, Matrix to, int64_t chunk) {
  int64_t panels = ceil_divide(layer.width, panel);
  int64_t begin = chunk / panels * forward_rows;
  forward(layer, a + begin * a_stride, a_stride, chunk % panels, smaller(forward_rows, state.batch - begin),
          Matrix{to.row(begin), to.stride}, true);
}

/// The last layer's weights by classes: what dh2 is computed with.
void transpose_last(const State& state) {
  const Layer& last = state.layers[2];
  for (int64_t column = 0; column < last.width; column += lanes) {
    int64_t start = column / panel * panel, width = smaller(panel, last.width - start);
    for (int64_t row = 0; row < last.inputs; row += lanes)
      transpose(last.weights + start * last.inputs + row * width + column - start, width,
                state.last_transposed.row(column) + row, state.last_transposed.stride,
                [](int, Vector value) STET_LAMBDA { return value; });
  }
}

// --- head

/// Turns a row of logits into its gradient; returns the loss of the row.
double softmax_row(float* row, int64_t width, int64_t label, float scale) {
  Vector most = load(row);
  for (int64_t i = lanes; i < width; i += lanes) most = larger(most, load(row + i));
  float largest = largest_of(most), wanted = row[label];
  Vector sums = {};
  for (int64_t i = 0; i < width; i += lanes) {
    Vector value = exponential(load(row + i) - largest);
    store(row + i, value);
    sums += value;
  }
  float total = sum_of(sums), factor = scale / total;
  for (int64_t i = 0; i < width; i += lanes) store(row + i, load(row + i) * factor);
  row[label] -= scale;
  return __builtin_log(static_cast<double>(total)) + static_cast<double>(largest) - static_cast<double>(wanted);
}

struct MaskedTile {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride, depth;
  const float* mask;
  int64_t mask_stride;
  Matrix to;
  template <int rows, int vectors>
  void run() const {
    Vector sums[rows][vectors] = {};
    multiply<false>(sums, a, a_stride, b, b_stride, depth);
    for_tile<rows, vectors>([&](int r, int v) STET_LAMBDA {
      store(to.row(r) + v * lanes, where_positive(load(mask + r * mask_stride + v * lanes), sums[r][v]));
    });
  }
};

void head_chunk(const State& state, int64_t chunk) {
  const Layer& last = state.layers[2];
  int64_t begin = chunk * lanes, rows = smaller(lanes, state.batch - begin);
  Matrix dlogits{state.dlogits.row(begin), state.dlogits.stride};
  for (int64_t at = 0; at * panel < last.width; ++at)
    forward(last, state.h2.row(begin), state.h2.stride, at, rows, dlogits, false);
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row)
    loss += softmax_row(dlogits.row(row), last.width, state.labels[begin + row], 1.f / static_cast<float>(state.batch));
  state.losses[chunk] = loss;
  for (int64_t column = 0; column < last.inputs; column += panel) {
    int64_t vectors = smaller(max_vectors, (last.inputs - column) / lanes);
    in_tiles(rows, [&](int64_t at, int64_t count) STET_LAMBDA {
      run_tile(count, vectors,
               MaskedTile{dlogits.row(at), dlogits.stride, state.last_transposed.data + column,
                          state.last_transposed.stride, last.outputs, state.h2.row(begin + at) + column,
                          state.h2.stride, Matrix{state.dh2.row(begin + at) + column, state.dh2.stride}});
    });
  }
  for (int64_t column = 0; column < last.inputs; column += lanes)
    transpose(state.dh2.row(begin) + column, state.dh2.stride, state.dh2_transposed.row(column) + begin,
              state.dh2_transposed.stride, [](int, Vector value) STET_LAMBDA { return value; });
}

// --- back

struct BackTile {
  const Layer* layer;
  int64_t first_row;
  const float* b;
  int64_t b_stride;
  float* to;  // rows of one panel's width
  template <int rows, int vectors>
  void run() const {
    Vector sums[rows][vectors] = {};
    for (int64_t column = 0; column < layer->width; column += panel) {
      int64_t width = smaller(panel, layer->width - column);
      multiply<false>(sums, layer->weights + column * layer->inputs + first_row * width, width, b + column * b_stride,
                      b_stride, width);
    }
    for_tile<rows, vectors>([&](int r, int v) STET_LAMBDA { store(to + r * panel + v * lanes, sums[r][v]); });
  }
};

void back_chunk(const State& state, int64_t chunk) {
  const Layer& layer = state.layers[1];
  int64_t first = chunk * back_rows, rows = smaller(back_rows, layer.inputs - first);
  alignas(64) float block[back_rows * panel];
  int64_t padded = ceil_divide(state.batch, lanes) * lanes;
  for (int64_t sample = 0; sample < padded; sample += panel) {
    int64_t vectors = smaller(max_vectors, (padded - sample) / lanes);
    in_tiles(rows, [&](int64_t at, int64_t count) STET_LAMBDA {
      run_tile(count, vectors,
               BackTile{&layer, first + at, state.dh2_transposed.data + sample, state.dh2_transposed.stride,
                        block + at * panel});
    });
    for (int64_t row = 0; row < rows; row += lanes)
      for (int64_t v = 0; v < vectors; ++v) {
        const float* mask = state.h1.row(sample + v * lanes) + first + row;
        transpose(
            block + row * panel + v * lanes, panel, state.dh1.row(sample + v * lanes) + first + row, state.dh1.stride,
            [&](int at, Vector value) STET_LAMBDA { return where_positive(load(mask + at * state.h1.stride), value); });
      }
  }
}

// --- update

STET_INLINE void adam(const State& state, Vector gradient, float* weight, float* mean, float* square) {
  Vector m = load(mean), v = load(square);
  m = multiply_add(gradient - m, fill(1.f - state.beta1), m);
  v = multiply_add(subtract_product(v, fill(1.f), gradient * gradient), fill(1.f - state.beta2), v);
  store(mean, m);
  store(square, v);
  store(weight, load(weight) - over_root(m * state.rate, v, fill(state.epsilon)));
}

struct UpdateTile {
  const State* state;
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  float *weight, *mean, *square;  // rows of `vectors` vectors
  template <int rows, int vectors>
  void run() const {
    Vector sums[rows][vectors] = {};
    multiply<true>(sums, a, a_stride, b, b_stride, state->batch);
    // No prefetches: the tiles of a panel follow each other in memory, which the hardware sees; asked for by hand, the
    // lines came no sooner and the loop ran slower.
    for_tile<rows, vectors>([&](int r, int v) STET_LAMBDA {
      int64_t at = (r * vectors + v) * lanes;
      adam(*state, sums[r][v], weight + at, mean + at, square + at);
    });
  }
};

void update_bias(const State& state, const Layer& layer, Matrix gradient, int64_t begin, int64_t width) {
  for (int64_t column = begin; column < begin + width; column += lanes) {
    Vector sums[4] = {};
    int64_t row = 0;
    for (; row + 4 <= state.batch; row += 4)
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) sums[k] += load(gradient.row(row + k) + column);
    for (; row < state.batch; ++row) sums[0] += load(gradient.row(row) + column);
    adam(state, (sums[0] + sums[1]) + (sums[2] + sums[3]), layer.bias + column, layer.bias_mean + column,
         layer.bias_square + column);
  }
}

int64_t update_chunks(const Layer& layer) {
  return ceil_divide(layer.width, panel) * ceil_divide(layer.inputs, update_rows);
}

void update_chunk(const State& state, int64_t chunk) {
  struct Product {
    const float* a;
    int64_t a_stride;
    Matrix b;
  };
  const Product products[3] = {{state.x, state.layers[0].inputs, state.dh1},
                               {state.h1.data, state.h1.stride, state.dh2},
                               {state.h2.data, state.h2.stride, state.dlogits}};
  int at = 0;
  while (chunk >= update_chunks(state.layers[at])) chunk -= update_chunks(state.layers[at++]);
  const Layer& layer = state.layers[at];
  const Product& product = products[at];
  int64_t blocks = ceil_divide(layer.inputs, update_rows), column = chunk / blocks * panel;
  int64_t first = chunk % blocks * update_rows, width = smaller(panel, layer.width - column);
  if (first == 0) update_bias(state, layer, product.b, column, width);
  in_tiles(smaller(update_rows, layer.inputs - first), [&](int64_t begin, int64_t count) STET_LAMBDA {
    int64_t offset = column * layer.inputs + (first + begin) * width;
    run_tile(count, width / lanes,
             UpdateTile{&state, product.a + first + begin, product.a_stride, product.b.data + column, product.b.stride,
                        layer.weights + offset, layer.weights_mean + offset, layer.weights_square + offset});
  });
}

// --- the phases

int64_t chunks(const State& state, Phase phase) {
  auto hidden_chunks = [&](const Layer& layer) {
    return ceil_divide(layer.width, panel) * ceil_divide(state.batch, forward_rows);
  };
  switch (phase) {
    case hidden1:
      return hidden_chunks(state.layers[0]) + 1;
    case hidden2:
      return hidden_chunks(state.layers[1]);
    case head:
      return ceil_divide(state.batch, lanes);
    case back:
      return ceil_divide(state.layers[1].inputs, back_rows);
    default:
      return update_chunks(state.layers[0]) + update_chunks(state.layers[1]) + update_chunks(state.layers[2]);
  }
}

void run_chunk(const State& state, Phase phase, int64_t chunk) {
  switch (phase) {
    case hidden1:
      if (chunk == 0) return transpose_last(state);
      return hidden_chunk(state.layers[0], state, state.x, state.layers[0].inputs, state.h1, chunk - 1);
    case hidden2:
      return hidden_chunk(state.layers[1], state, state.h1.data, state.h1.stride, state.h2, chunk);
    case head:
      return head_chunk(state, chunk);
    case back:
      return back_chunk(state, chunk);
    default:
      return update_chunk(state, chunk);
  }
}

}  // namespace

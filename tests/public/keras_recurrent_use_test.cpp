// Recurrent layers as they are used: state that is kept, dropout, cells of one's own, models, training, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

namespace stet {
namespace {

using keras::KerasTensor;
using keras::Tensors;

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

class KerasRecurrentUse : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

TEST_F(KerasRecurrentUse, OneTraceTrainsAllLengths) {
  keras::LSTM lstm(8);
  keras::Dense head(1);
  keras::Adam adam(1e-2);
  Function step = function("step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = mean(square(head(lstm(x, {.training = true})) - y));
    std::vector<Variable> variables = lstm.trainable_variables();
    for (const Variable& variable : head.trainable_variables()) variables.push_back(variable);
    adam.apply_gradients(tape.gradient(loss, variables), variables);
    return loss;
  });
  double first = 0, last = 0;
  for (int round = 0; round < 82; ++round) {
    const std::int64_t length = 20 + round * 17 % 41;
    Tensor x = random::normal({16, length, 3});
    last = step(x, mean(x, {1, 2})[{Range{}, newaxis}] * 5).item<float>();
    if (round == 0) first = last;
  }
  EXPECT_EQ(step.trace_count(), 1) << step.explain();
  EXPECT_LT(last, first);
}

TEST_F(KerasRecurrentUse, TracedGradientsAreEagerOnes) {
  for (const keras::RecurrentLayer& layer : std::vector<keras::RecurrentLayer>{
           keras::LSTM(4, {.return_sequences = true}), keras::GRU(4), keras::GRU(4, {.reset_after = false}),
           keras::SimpleRNN(4), keras::Bidirectional(keras::LSTM(3))}) {
    layer(zeros({1, 2, 3}));
    auto gradients = [layer](Tensor x, Tensor mask) {
      GradientTape tape;
      tape.watch(x);
      Tensor y = sum(square(layer(x, {.mask = mask})));
      std::vector<GradientTape::Source> sources{x};
      for (const Variable& variable : layer.trainable_variables()) sources.emplace_back(variable);
      return tape.gradient(y, sources);
    };
    Function traced = function("traced(x, mask)", gradients);
    for (std::int64_t length : {20, 33, 60}) {
      Tensor x = random::normal({2, length, 3}), mask = random::uniform({2, length}) > 0.3;
      std::vector<Tensor> a = gradients(x, mask), b = traced(x, mask);
      for (std::size_t i = 0; i < a.size(); ++i) expect_close(b[i], a[i], 1e-4, layer.name() + std::to_string(i));
    }
    EXPECT_EQ(traced.trace_count(), 1) << layer.name();
  }
}

TEST_F(KerasRecurrentUse, StatesComeAndGo) {
  keras::LSTM lstm(3, {.return_sequences = true});
  Tensor x = random::normal({2, 6, 4});
  auto [all, h, c] = lstm.with_state(x);
  auto [first, h1, c1] = lstm.with_state(x[{Range{}, Range{0, 2}}]);
  auto [second, h2, c2] = lstm.with_state(x[{Range{}, Range{2, 6}}], {.initial_state = {h1, c1}});
  expect_close(concat({first, second}, 1), all, 1e-6, "outputs");
  expect_close(h2, h, 1e-6, "h");
  expect_close(c2, c, 1e-6, "c");
  EXPECT_EQ(lstm.call_many(Tensors{x}).size(), 1u);  // it was not told to return them
  keras::GRU gru(3);
  auto [y, state] = gru.with_state(x);
  EXPECT_EQ(numbers(y), numbers(state));
  auto [output, states] = keras::RNN(keras::LSTMCell(3)).with_state(x);
  EXPECT_EQ(states.size(), 2u);
  EXPECT_EQ(numbers(output), numbers(states[0]));
}

TEST_F(KerasRecurrentUse, StatesOfBothWays) {
  Tensor x = random::normal({2, 6, 4});
  keras::Bidirectional both(keras::LSTM(3));
  Tensors out = both.with_state(x);
  ASSERT_EQ(out.size(), 5u);
  expect_close(out[0], concat({out[1], out[3]}, -1), 0, "last outputs");
  keras::Input in({dyn, 4});
  std::vector<KerasTensor> symbolic = both.with_state(in);
  ASSERT_EQ(symbolic.size(), 5u);
  expect_close(keras::Model(in, symbolic[4])(x), out[4], 1e-6, "model");
}

TEST_F(KerasRecurrentUse, EncoderAndDecoder) {
  keras::Input source({dyn("source"), 3}), target({dyn("target"), 2});
  auto [ignored, h, c] = keras::LSTM(4, {.name = "encoder"}).with_state(source);
  KerasTensor y = keras::LSTM(4, {.return_sequences = true, .name = "decoder"})(target, {.initial_state = {h, c}});
  EXPECT_EQ(y.spec().str(), "f32[batch,target,4]");
  keras::Model model({source, target}, {keras::Dense(1)(y)}, {.name = "translate"});
  EXPECT_EQ(model.weights()[0].path, "translate/encoder/lstm_cell/kernel");
  EXPECT_EQ(model.weights()[4].path, "translate/decoder/lstm_cell/recurrent_kernel");
  Function f = function("f(a, b)", [&](Tensor a, Tensor b) { return model({a, b}); });
  for (std::int64_t length : {5, 2, 9}) {
    Tensor a = random::normal({2, length, 3}), b = random::normal({2, length + 1, 2});
    expect_close(f(a, b), model({a, b}), 1e-5, "model");
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(KerasRecurrentUse, MasksTravelThroughModels) {
  keras::Sequential model{keras::Input({dyn}, {.dtype = i64}), keras::Embedding(9, 4, {.mask_zero = true}),
                          keras::Bidirectional(keras::LSTM(3, {.return_sequences = true})), keras::GRU(5),
                          keras::Dense(1)};
  // Padding changes nothing.
  Tensor sentence = cast(tensor({{3, 1, 4}}), i64), padded = cast(tensor({{3, 1, 4, 0, 0}}), i64);
  expect_close(model(padded), model(sentence), 1e-6, "padded");
  model.compile({.optimizer = keras::Adam(1e-2), .loss = keras::losses::MeanSquaredError()});
  Tensor x = random::randint({64, 7}, 0, 9), y = mean(cast(x, f32), {1}, {.keepdims = true});
  keras::History history = model.fit(x, y, {.epochs = 10, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 2);
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasRecurrentUse, StateIsKept) {
  keras::GRU plain(3, {.return_sequences = true}), kept(3, {.return_sequences = true, .stateful = true});
  Tensor x = random::normal({2, 6, 4});
  Tensor expected = plain(x);
  kept(x);
  for (std::size_t i = 0; i < 3; ++i) kept.variables()[i].assign(plain.variables()[i].read());
  EXPECT_EQ(kept.weights().size(), 3u);  // as in Keras, the state is no weight
  Function f = function("f(x)", [&](Tensor part) { return kept(part); });
  for (bool traced : {false, true}) {
    kept.reset_state();
    Tensors parts;
    for (int i = 0; i < 3; ++i) {
      Tensor part = x[{Range{}, Range{2 * i, 2 * i + 2}}];
      parts.push_back(traced ? f(part) : kept(part));
    }
    expect_close(concat(parts, 1), expected, 1e-6, traced ? "traced" : "eager");
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(error_of([&] {
                    kept(zeros({3, 2, 4}));
                  }),
                  "GRU 'gru_1' is stateful: it was called with a batch of 2 and now with one of 3");
  EXPECT_CONTAINS(error_of([&] { plain.reset_state(); }), "reset_state: GRU 'gru' keeps no state");
  // First called inside a trace.
  keras::RecurrentLayer both = keras::Bidirectional(keras::GRU(3, {.stateful = true}));
  Function g = function("g(x)", [=](Tensor x) { return both(x); });
  Tensor begun = g(x), went_on = g(x);
  EXPECT_NE(numbers(begun), numbers(went_on));
  both.reset_state();
  EXPECT_EQ(numbers(g(x)), numbers(begun));
  expect_close(both(x), went_on, 1e-6, "eager after traced");
  EXPECT_EQ(g.trace_count(), 1);
  // In a model, whose batch is not known when it is made.
  keras::Input in({dyn, 4});
  keras::Model model(in, keras::LSTM(3, {.stateful = true})(in));
  Tensor once = model(x);
  EXPECT_NE(numbers(model(x)), numbers(once));
}

TEST_F(KerasRecurrentUse, WeightsBeginAsInKeras) {
  keras::LSTM lstm(5);
  lstm(zeros({1, 2, 3}));
  EXPECT_EQ(lstm.weights()[0].path, "lstm/lstm_cell/kernel");
  std::vector<double> bias = numbers(lstm.weights()[2].variable.read());
  for (std::size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(bias[i], i >= 5 && i < 10 ? 1 : 0);
  Tensor recurrent = lstm.weights()[1].variable.read();  // [5, 20]: orthogonal rows
  expect_close(matmul(recurrent, recurrent, {.transpose_b = true}), eye(5), 1e-5, "orthogonal");
  keras::SimpleRNN rnn(4);
  rnn(zeros({1, 2, 3}));
  EXPECT_EQ(rnn.weights()[1].path, "simple_rnn/simple_rnn_cell/recurrent_kernel");
}

TEST_F(KerasRecurrentUse, DropoutIsDrawnOnceForASequence) {
  // Ones everywhere, and a cell that adds up: what is dropped is dropped at every step.
  auto make = [](double dropout, double recurrent) {
    return keras::SimpleRNN(1, {.activation = {},
                                .use_bias = false,
                                .kernel_initializer = "ones",
                                .recurrent_initializer = "ones",
                                .dropout = dropout,
                                .recurrent_dropout = recurrent,
                                .return_sequences = true});
  };
  Tensor x = ones({4000, 3, 1});
  for (bool traced : {false, true}) {
    keras::SimpleRNN input = make(0.25, 0), state = make(0, 0.25);
    auto run = [&](const keras::SimpleRNN& layer) {
      if (!traced) return layer(x, {.training = true});
      Function f = function("f(x)", [&](Tensor x) { return layer(x, {.training = true}); });
      f(x);
      return f(x);
    };
    std::vector<double> y = numbers(run(input)), z = numbers(run(state));
    int dropped = 0, state_dropped = 0;
    for (std::size_t i = 0; i < y.size(); i += 3) {
      const double a = 1 / 0.75;
      if (y[i] == 0) {
        ++dropped;
        EXPECT_EQ(y[i + 2], 0);
      } else {
        EXPECT_NEAR(y[i + 2], 3 * a, 1e-5);
      }
      if (z[i + 1] == 1) {
        ++state_dropped;
        EXPECT_EQ(z[i + 2], 1);
      } else {
        EXPECT_NEAR(z[i + 2], 1 + a + a * a, 1e-5);
      }
    }
    EXPECT_NEAR(dropped / 4000.0, 0.25, 0.03);
    EXPECT_NEAR(state_dropped / 4000.0, 0.25, 0.03);
    for (double one : numbers(make(0.25, 0.25)(ones({2, 1, 1})))) EXPECT_EQ(one, 1);
  }
  for (const keras::RecurrentLayer& layer : std::vector<keras::RecurrentLayer>{
           keras::LSTM(3, {.dropout = 0.5, .recurrent_dropout = 0.5}), keras::LSTM(3, {.dropout = 0.5}),
           keras::GRU(3, {.dropout = 0.5, .recurrent_dropout = 0.5}),
           keras::GRU(3, {.recurrent_dropout = 0.5, .reset_after = false}),
           keras::RNN({keras::LSTMCell(3, {.dropout = 0.5}), keras::GRUCell(3, {.recurrent_dropout = 0.5})})}) {
    Tensor small = random::normal({4, 5, 3});
    EXPECT_EQ(numbers(layer(small)), numbers(layer(small)));
    EXPECT_NE(numbers(layer(small, {.training = true})), numbers(layer(small, {.training = true}))) << layer.name();
    Function f = function("f(x)", [&](Tensor x) { return layer(x, {.training = true}); });
    EXPECT_NE(numbers(f(small)), numbers(f(small))) << layer.name();
    EXPECT_EQ(f.trace_count(), 1);
  }
}

/// A cell that holds a layer, and two states.
struct Leaky : keras::CustomCell {
  keras::Dense dense{3, {.activation = tanh}};
  STET_MEMBERS(dense)
  std::vector<std::int64_t> state_size() const override { return {3, 1}; }
  keras::CellStep step(const Tensor& x, const Tensors& states, const keras::Context&) override {
    Tensor h = states[0] * 0.5f + dense(x);
    return {h, {h, states[1] + 1}};
  }
};
/// Its output has another size than its state.
struct Doubled : keras::CustomCell {
  std::vector<std::int64_t> state_size() const override { return {1}; }
  std::int64_t output_size() const override { return 2; }
  keras::CellStep step(const Tensor& x, const Tensors& states, const keras::Context&) override {
    Tensor h = states[0] + x;
    return {concat({h, h * 2}, -1), {h}};
  }
};
struct Forgetful : keras::CustomCell {
  std::vector<std::int64_t> state_size() const override { return {2, 2}; }
  keras::CellStep step(const Tensor&, const Tensors& states, const keras::Context&) override {
    return {states[0], {states[0]}};
  }
};

TEST_F(KerasRecurrentUse, CellsOfOnesOwn) {
  for (bool traced : {false, true}) {
    keras::RNN rnn(Leaky{}, {.return_sequences = true, .name = "rnn"});
    Function f = function("f(x)", [&](Tensor x) {
      auto [y, states] = rnn.with_state(x);
      return std::pair(y, states);
    });
    for (std::int64_t length : {4, 7}) {
      Tensor x = random::normal({2, length, 5});
      auto [y, states] = traced ? f(x) : rnn.with_state(x);
      EXPECT_EQ(y.shape().sizes(), (std::vector<std::int64_t>{2, length, 3}));
      EXPECT_EQ(numbers(states[1]), (std::vector<double>(2, static_cast<double>(length))));
    }
    ASSERT_EQ(rnn.weights().size(), 2u);
    EXPECT_CONTAINS(rnn.weights()[0].path, "/dense/kernel");
    EXPECT_LE(f.trace_count(), 1);
  }
  keras::RNN mixed({Leaky{}, keras::GRUCell(2)});
  EXPECT_EQ(mixed(ones({2, 3, 5})).shape().sizes(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(mixed.weights().size(), 5u);
  keras::LSTMCell cell(3);
  keras::CellStep step = cell.step(ones({2, 4}), {zeros({2, 3}), zeros({2, 3})});
  EXPECT_EQ(numbers(step.output), numbers(step.states[0]));
  keras::RNN both_ways(Leaky{});
  EXPECT_CONTAINS(error_of([&] { keras::Bidirectional{both_ways}; }),
                  "has a cell of your own, of which there is only one");
  keras::Bidirectional both(both_ways, {.backward_layer = keras::RNN(Leaky{}, {.go_backwards = true})});
  EXPECT_EQ(both(ones({2, 3, 5})).shape().sizes(), (std::vector<std::int64_t>{2, 6}));
  EXPECT_CONTAINS(error_of([] { keras::RNN(Forgetful{})(zeros({1, 2, 2})); }), "its step() gave 1 states of 2");
}

TEST_F(KerasRecurrentUse, MaskedStepsRepeatOutputsOfAnySize) {
  Tensor x = ones({1, 4, 1}), mask = tensor({{false, true, false, true}});
  keras::RNN rnn(Doubled{}, {.return_sequences = true});
  Function traced = function("traced(x, mask)", [&](Tensor x, Tensor mask) { return rnn(x, {.mask = mask}); });
  const std::vector<double> expected{0, 0, 1, 2, 1, 2, 2, 4};
  EXPECT_EQ(numbers(rnn(x, {.mask = mask})), expected);
  EXPECT_EQ(numbers(traced(x, mask)), expected);
  auto [y, states] = rnn.with_state(x, {.mask = mask});
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(numbers(states[0]), (std::vector<double>{2}));
}

TEST_F(KerasRecurrentUse, LayersAtEveryStep) {
  for (bool traced : {false, true}) {
    keras::Sequential inner{keras::Flatten(), keras::Dense(4, {.activation = relu}), keras::Dropout(0.5),
                            keras::Dense(2)};
    keras::TimeDistributed layer(inner);
    Function f = function("f(x)", [&](Tensor x) { return layer(x); });
    for (std::int64_t length : {3, 5}) {
      Tensor x = random::normal({2, length, 2, 3});
      Tensor y = traced ? f(x) : layer(x);
      for (std::int64_t i = 0; i < length; ++i) expect_close(y[{Range{}, i}], inner(x[{Range{}, i}]), 1e-6, "step");
    }
    EXPECT_EQ(layer.weights().size(), 4u);
    EXPECT_LE(f.trace_count(), 1);
  }
}

TEST_F(KerasRecurrentUse, ComputesInOtherTypes) {
  Tensor x = random::normal({2, 5, 3});
  keras::LSTM wide(4, {.dtype = f64}), mixed(4, {.dtype = "mixed_bfloat16"});
  EXPECT_EQ(wide(x).dtype(), f64);
  EXPECT_EQ(mixed(x).dtype(), bf16);
  EXPECT_EQ(mixed.weights()[0].variable.dtype(), f32);
  for (std::size_t i = 0; i < 3; ++i) mixed.variables()[i].assign(cast(wide.variables()[i].read(), f32));
  expect_close(mixed(x), wide(x), 3e-2, "bf16");
}

TEST_F(KerasRecurrentUse, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::LSTM(0); }), "LSTM: 0 units");
  EXPECT_CONTAINS(error_of([] { keras::GRUCell(-2); }), "GRUCell: -2 units");
  EXPECT_CONTAINS(error_of([] { keras::GRU(2, {.dropout = 1}); }), "GRU: a dropout of 1");
  EXPECT_CONTAINS(error_of([] { keras::SimpleRNN(2, {.recurrent_dropout = -0.1}); }), "SimpleRNN: a dropout of -0.1");
  EXPECT_CONTAINS(error_of([] { keras::RNN(std::vector<keras::RNNCell>{}); }), "StackedRNNCells: there are no cells");
  EXPECT_CONTAINS(error_of([] {
                    keras::RNN({keras::GRUCell(2, {.name = "a"}), keras::GRUCell(2, {.name = "a"})});
                  }),
                  "StackedRNNCells: two cells are called 'a'");
  EXPECT_CONTAINS(error_of([] { keras::RNN{keras::RNNCell()}; }), "RNN: the cell is undefined");
  keras::LSTM lstm(3);
  std::string rank = error_of([&] { lstm(zeros({2, 3})); });
  EXPECT_CONTAINS(rank, "LSTM 'lstm': its input f32[2,3] has 2 axes");
  EXPECT_CONTAINS(rank, "it takes [batch, steps, features]; one sample is a batch of size 1");
  lstm(zeros({2, 3, 4}));
  std::string width = error_of([&] { lstm(zeros({2, 3, 5})); });
  EXPECT_CONTAINS(width, "5 features; it was built for 4");
  EXPECT_CONTAINS(width, "in layer lstm, given f32[2,3,5]");
  EXPECT_CONTAINS(error_of([&] {
                    lstm(zeros({2, 3, 4}), {.initial_state = {zeros({2, 3})}});
                  }),
                  "LSTM 'lstm' takes a tensor and 2 states and was given 1 state");
  EXPECT_CONTAINS(error_of([] { keras::Bidirectional(keras::LSTM(2), {.merge_mode = "max"}); }),
                  "Bidirectional: there is no merge_mode 'max'");
  EXPECT_CONTAINS(error_of([] { keras::Bidirectional(keras::LSTM(2), {.backward_layer = keras::LSTM(2)}); }),
                  "Bidirectional: both layers go the same way");
  EXPECT_CONTAINS(error_of([] {
                    keras::Bidirectional(keras::LSTM(2, {.return_sequences = true}),
                                         {.backward_layer = keras::LSTM(2, {.go_backwards = true})});
                  }),
                  "Bidirectional: return_sequences, return_state or stateful of the layers differ");
  keras::Bidirectional both(keras::LSTM(2));
  keras::RecurrentLayer as_layer = both;
  EXPECT_CONTAINS(error_of([&] { keras::Bidirectional{as_layer}; }),
                  "Bidirectional around Bidirectional 'bidirectional'");
  EXPECT_CONTAINS(error_of([&] {
                    both(zeros({1, 2, 3}), {.initial_state = {zeros({1, 2})}});
                  }),
                  "takes a tensor and 4 states and was given 1 states");
  EXPECT_CONTAINS(error_of([] {
                    keras::TimeDistributed(keras::Dense(2))(zeros({2, 3}));
                  }),
                  "TimeDistributed 'time_distributed': its input f32[2,3] has 2 axes");
  EXPECT_CONTAINS(error_of([] { keras::TimeDistributed{keras::Layer()}; }), "the layer is undefined");
}

}  // namespace
}  // namespace stet

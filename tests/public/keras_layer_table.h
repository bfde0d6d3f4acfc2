// Every layer of the library, and what it is called on.
#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "keras_values.h"
#include "stet/stet.h"

namespace stet::layer_table {

using keras::Tensors;

/// A layer, and what it is called on: "f32[b,s,3]", with letters for sizes that vary; "i64[b,s]<7" has numbers below 7.
struct LayerRow {
  std::string class_name;
  std::function<keras::Layer()> make;
  std::vector<std::string> inputs;
};
inline void PrintTo(const LayerRow& row, std::ostream* out) { *out << row.class_name; }

/// A functional model with two branches.
inline keras::Model branches() {
  keras::Input x({4});
  keras::Dense shared(4);
  return keras::Model(x, keras::Add()({shared(x), keras::Dense(4)(shared(shared(x)))}));
}

inline std::vector<keras::RNNCell> two_cells() { return {keras::GRUCell(3), keras::LSTMCell(2)}; }
inline Tensor doubled(Tensor x) { return x * 2; }

inline const std::string vectors = "f32[b,4]", sequences = "f32[b,s,3]", images = "f32[b,h,w,3]",
                         volumes = "f32[b,h,w,s,2]";

/// Classes that are no layers of their own: what others have in common, and the places that models begin with.
inline const std::set<std::string> not_called = {"AttentionLayer", "RNNCell", "RecurrentLayer", "Input"};

inline std::vector<LayerRow> rows() {
#define LAYER(Class, arguments, ...)                                         \
  {                                                                          \
#Class, [] { return keras::Layer(keras::Class arguments); }, __VA_ARGS__ \
  }
  return {
      // Dense and embeddings
      LAYER(Dense, (3), {sequences}),
      LAYER(EinsumDense, ("abc,cd->abd", {dyn, 5}, {.bias_axes = "d"}), {sequences}),
      LAYER(Embedding, (7, 3, {.mask_zero = true}), {"i64[b,s]<7"}),
      LAYER(Masking, (), {sequences}),
      LAYER(Identity, (), {sequences}),
      LAYER(ActivityRegularization, ({.l1 = 0.1, .l2 = 0.2}), {sequences}),
      LAYER(Lambda, (doubled), {sequences}),
      LAYER(Sequential, ({keras::Dense(5, {.activation = relu}), keras::Dense(2)}), {sequences}),
      {"Model", [] { return keras::Layer(branches()); }, {vectors}},
      // Activations
      LAYER(Activation, ("gelu"), {sequences}),
      LAYER(ReLU, ({.max_value = 0.5, .negative_slope = 0.1}), {sequences}),
      LAYER(LeakyReLU, (), {sequences}),
      LAYER(PReLU, ({.shared_axes = {1}}), {sequences}),
      LAYER(ELU, (), {sequences}),
      LAYER(Softmax, (), {sequences}),
      // Convolutions
      LAYER(Conv1D, (4, 3, {.padding = "causal"}), {sequences}),
      LAYER(Conv2D, (4, 3, {.strides = 2, .padding = "same"}), {images}),
      LAYER(Conv3D, (2, 2), {volumes}),
      LAYER(DepthwiseConv1D, (3), {sequences}),
      LAYER(DepthwiseConv2D, (3, {.padding = "same"}), {images}),
      LAYER(SeparableConv1D, (4, 3), {sequences}),
      LAYER(SeparableConv2D, (4, 3), {images}),
      LAYER(Conv1DTranspose, (4, 3, {.strides = 2}), {sequences}),
      LAYER(Conv2DTranspose, (2, 3, {.strides = 2, .padding = "same"}), {images}),
      LAYER(Conv3DTranspose, (2, 2), {volumes}),
      // Pools
      LAYER(MaxPooling1D, (), {sequences}),
      LAYER(MaxPooling2D, (3, {.strides = 2, .padding = "same"}), {images}),
      LAYER(MaxPooling3D, (), {volumes}),
      LAYER(AveragePooling1D, (2), {sequences}),
      LAYER(AveragePooling2D, (3, {.strides = 2, .padding = "same"}), {images}),
      LAYER(AveragePooling3D, (2), {volumes}),
      LAYER(GlobalMaxPooling1D, (), {sequences}),
      LAYER(GlobalMaxPooling2D, (), {images}),
      LAYER(GlobalMaxPooling3D, (), {volumes}),
      LAYER(GlobalAveragePooling1D, (), {sequences}),
      LAYER(GlobalAveragePooling2D, (), {images}),
      LAYER(GlobalAveragePooling3D, (), {volumes}),
      LAYER(AdaptiveMaxPooling1D, (2), {sequences}),
      LAYER(AdaptiveMaxPooling2D, ({3, 2}), {images}),
      LAYER(AdaptiveMaxPooling3D, (2), {volumes}),
      LAYER(AdaptiveAveragePooling1D, (2), {sequences}),
      LAYER(AdaptiveAveragePooling2D, ({3, 2}), {images}),
      LAYER(AdaptiveAveragePooling3D, (2), {volumes}),
      // Normalisations
      LAYER(BatchNormalization, (), {sequences}),
      LAYER(LayerNormalization, (), {sequences}),
      LAYER(GroupNormalization, (2), {"f32[b,s,4]"}),
      LAYER(UnitNormalization, (), {sequences}),
      LAYER(RMSNormalization, (), {sequences}),
      LAYER(SpectralNormalization, (keras::Dense(3)), {sequences}),
      // Merging
      LAYER(Add, (), {sequences, sequences, "f32[b,1,3]"}),
      LAYER(Subtract, (), {sequences, sequences}),
      LAYER(Multiply, (), {sequences, sequences}),
      LAYER(Average, (), {sequences, sequences}),
      LAYER(Maximum, (), {sequences, sequences}),
      LAYER(Minimum, (), {sequences, sequences}),
      LAYER(Concatenate, (1), {sequences, "f32[b,t,3]"}),
      LAYER(Dot, (2, {.normalize = true}), {sequences, "f32[b,t,3]"}),
      // Shapes
      LAYER(Flatten, (), {sequences}),
      LAYER(Reshape, ({-1, 2}), {"f32[b,s,4]"}),
      LAYER(Permute, ({2, 1}), {sequences}),
      LAYER(RepeatVector, (3), {vectors}),
      LAYER(UpSampling1D, (2), {sequences}),
      LAYER(UpSampling2D, (2, {.interpolation = "bilinear"}), {images}),
      LAYER(UpSampling3D, (2), {volumes}),
      LAYER(ZeroPadding1D, (2), {sequences}),
      LAYER(ZeroPadding2D, ({{1, 0}, {2, 3}}), {images}),
      LAYER(ZeroPadding3D, (1), {volumes}),
      LAYER(Cropping1D, (1), {sequences}),
      LAYER(Cropping2D, ({{1, 0}, {2, 1}}), {images}),
      LAYER(Cropping3D, (1), {volumes}),
      // Preprocessing
      LAYER(Resizing, (5, 4), {images}),
      LAYER(CenterCrop, (4, 3), {images}),
      LAYER(Rescaling, (1 / 255.0, -0.5), {images}),
      LAYER(Normalization, (-1, {.mean = tensor({1.f, 2.f, 3.f}), .variance = tensor({1.f, 4.f, 9.f})}), {sequences}),
      LAYER(Discretization, ({.bin_boundaries = {-0.5, 0, 0.7}}), {sequences}),
      LAYER(CategoryEncoding, (7), {"i64[b,s]<7"}),
      LAYER(Hashing, (5, {.output_mode = "one_hot"}), {"i64[b,s]<7"}),
      LAYER(HashedCrossing, (5), {"i64[b,1]<7", "i64[b,1]<7"}),
      LAYER(IntegerLookup, ({.vocabulary = {1, 3, 5}}), {"i64[b,s]<7"}),
      // Noise and augmentation
      LAYER(Dropout, (0.5), {sequences}),
      LAYER(SpatialDropout1D, (0.5), {sequences}),
      LAYER(SpatialDropout2D, (0.5), {images}),
      LAYER(SpatialDropout3D, (0.5), {volumes}),
      LAYER(GaussianNoise, (0.5), {sequences}),
      LAYER(GaussianDropout, (0.5), {sequences}),
      LAYER(AlphaDropout, (0.5), {sequences}),
      LAYER(RandomFlip, (), {images}),
      LAYER(RandomContrast, (0.5), {images}),
      LAYER(RandomBrightness, (0.5), {images}),
      LAYER(RandomRotation, (0.2), {images}),
      LAYER(RandomTranslation, (0.2, 0.3), {images}),
      LAYER(RandomZoom, (0.2), {images}),
      LAYER(RandomCrop, (4, 3), {images}),
      // Sequences
      LAYER(SimpleRNN, (4, {.return_sequences = true}), {sequences}),
      LAYER(LSTM, (4), {sequences}),
      LAYER(GRU, (4, {.return_sequences = true, .go_backwards = true}), {sequences}),
      LAYER(RNN, (two_cells()), {sequences}),
      LAYER(Bidirectional, (keras::GRU(3)), {sequences}),
      LAYER(TimeDistributed, (keras::Dense(2)), {"f32[b,s,3,2]"}),
      LAYER(ConvLSTM1D, (2, 3), {"f32[b,s,6,2]"}),
      LAYER(ConvLSTM2D, (2, 2), {"f32[b,s,4,5,2]"}),
      LAYER(ConvLSTM3D, (2, 2), {"f32[b,s,3,4,3,2]"}),
      LAYER(SimpleRNNCell, (3), {vectors, "f32[b,3]"}),
      LAYER(LSTMCell, (3), {vectors, "f32[b,3]", "f32[b,3]"}),
      LAYER(GRUCell, (3), {vectors, "f32[b,3]"}),
      LAYER(StackedRNNCells, (two_cells()), {vectors, "f32[b,3]", "f32[b,2]", "f32[b,2]"}),
      // Attention
      LAYER(MultiHeadAttention, (2, 3), {"f32[b,s,4]", "f32[b,t,4]"}),
      LAYER(GroupQueryAttention, (3, 4, 2), {"f32[b,s,4]", "f32[b,t,4]"}),
      LAYER(Attention, (), {"f32[b,s,4]", "f32[b,t,4]"}),
      LAYER(AdditiveAttention, (), {"f32[b,s,4]", "f32[b,t,4]"}),
  };
#undef LAYER
}

/// What the letters stand for in round 0 to 4.
inline const std::map<char, std::vector<std::int64_t>> sizes_of = {{'b', {2, 3, 1, 5, 4}},
                                                                   {'s', {7, 9, 6, 4, 11}},
                                                                   {'t', {5, 6, 8, 7, 3}},
                                                                   {'h', {6, 9, 7, 8, 5}},
                                                                   {'w', {8, 5, 9, 6, 7}}};

struct Described {
  DType dtype = f32;
  std::vector<std::string> sizes;
  std::int64_t below = 0;
};
inline Described described(const std::string& text) {
  Described out;
  std::smatch part;
  EXPECT_TRUE(std::regex_match(text, part, std::regex(R"((f32|i64)\[([^\]]*)\](?:<(\d+))?)"))) << text;
  out.dtype = part[1] == "i64" ? i64 : f32;
  std::istringstream words(part[2]);
  for (std::string word; std::getline(words, word, ',');) out.sizes.push_back(word);
  if (part[3].matched) out.below = std::stoll(part[3]);
  return out;
}

inline Tensors given(const LayerRow& row, std::size_t round) {
  Tensors out;
  for (const std::string& text : row.inputs) {
    const Described what = described(text);
    std::vector<Dim> shape;
    for (const std::string& size : what.sizes)
      shape.push_back(std::isdigit(size[0]) ? std::stoll(size) : sizes_of.at(size[0])[round]);
    Tensor number = reshape(arange(Shape(shape).element_count()), shape) * 7 + 3 * static_cast<int>(out.size() + round);
    out.push_back(what.below ? cast(number % what.below, what.dtype) : cast(sin(cast(number, f32)), what.dtype));
  }
  return out;
}

}  // namespace stet::layer_table

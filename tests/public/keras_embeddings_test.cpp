// Embedding, Masking and EinsumDense, compared with Keras's.
#include <gtest/gtest.h>

#include "keras_sequence_cases.h"
#include "stet/stet.h"

namespace stet {
namespace {

using keras::Tensors;

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

class KerasEmbeddings : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

/// The layer, and the mask of what it gives.
LayerCall with_its_mask(const keras::Layer& layer) {
  return [layer](const Tensors& inputs) {
    Tensor y = layer(inputs);
    return Tensors{y, keras::mask_of(y)};
  };
}

TEST_F(KerasEmbeddings, AreKerass) {
  SequenceCases cases("embeddings");
  const std::vector<std::vector<int>> steps{{1}};
  for (const char* name : {"embedding", "embedding_wide"})
    cases.check(name, keras::Embedding(7, 3), {.steps = steps, .model = true});
  cases.check("embedding_vector", keras::Embedding(7, 2, {.mask_zero = true}));
  keras::Embedding masked(7, 3, {.mask_zero = true});
  cases.check("embedding_mask", masked, {.call = with_its_mask(masked), .steps = steps});
  keras::Masking masking, masking_two({.mask_value = 2});
  cases.check("masking", masking, {.call = with_its_mask(masking), .steps = steps});
  cases.check("masking_value", masking_two, {.call = with_its_mask(masking_two), .steps = steps});

  cases.check("einsum_plain", keras::EinsumDense("ab,bc->ac", 4, {.bias_axes = "c"}), {.model = true});
  cases.check("einsum_sequence", keras::EinsumDense("abc,cd->abd", {dyn, 5}, {.activation = tanh, .bias_axes = "d"}),
              {.steps = steps, .model = true});
  cases.check("einsum_ellipsis", keras::EinsumDense("...x,xy->...y", 3, {.bias_axes = "y"}),
              {.steps = {{1, 2}}, .model = true});
  cases.check("einsum_heads", keras::EinsumDense("abc,cde->abde", {dyn, 2, 3}, {.bias_axes = "de"}),
              {.steps = steps, .model = true});
  cases.check("einsum_merge", keras::EinsumDense("abcd,cde->abe", {dyn, 5}, {.bias_axes = "e"}),
              {.steps = steps, .model = true});
  cases.check("einsum_middle", keras::EinsumDense("abc,bd->adc", {5, dyn}, {.bias_axes = "d"}), {.steps = {{2}}});
  cases.check("einsum_back", keras::EinsumDense("ab...,bc->ac...", {5, dyn}, {.bias_axes = "c"}), {.steps = {{2}}});
  cases.check("einsum_per_step", keras::EinsumDense("abc,bcd->abd", {3, 2}, {.bias_axes = "bd"}));
  cases.check("einsum_no_bias", keras::EinsumDense("ab,bc->ac", 4));
  EXPECT_EQ(cases.left(), std::vector<std::string>());
  cases.report();
}

TEST_F(KerasEmbeddings, TakesNumbersOfAnyType) {
  keras::Embedding embedding(5, 2, {.dtype = "mixed_bfloat16"});
  Tensor ids = tensor({{4, 0}});
  Tensor rows = embedding(ids);
  EXPECT_EQ(rows.dtype(), bf16);
  EXPECT_EQ(embedding.weights()[0].variable.dtype(), f32);
  for (DType type : {i64, u8, f32, f64}) EXPECT_EQ(numbers(embedding(cast(ids, type))), numbers(rows));
}

TEST_F(KerasEmbeddings, KernelsAreDrawnByWhatMeetsInAResult) {
  // Of 64 inputs and 8 * 16 outputs: within the limit of a matrix [64, 128], and near it.
  keras::EinsumDense dense("abc,cde->abde", {dyn, 8, 16});
  dense(zeros({1, 2, 64}));
  const double limit = std::sqrt(6.0 / (64 + 128));
  const double largest = max(abs(dense.weights()[0].variable.read())).item<float>();
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, 0.97 * limit);
}

TEST_F(KerasEmbeddings, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::Embedding(0, 3); }), "Embedding: 0 rows of 3 values");
  keras::Embedding embedding(5, 2);
  const std::string no_row =
      "Embedding: gather: 'indices' holds index 5 at position 1, out of range: allowed are 0 to 4";
  EXPECT_CONTAINS(error_of([&] { numbers(embedding(tensor({1, 5}))); }), no_row);
  Function traced = function("traced(x)", [&](Tensor x) { return embedding(x); });
  EXPECT_CONTAINS(error_of([&] { numbers(traced(tensor({1, 5}))); }), no_row);
  EXPECT_CONTAINS(error_of([] { keras::Masking()(zeros({3})); }), "Masking 'masking': its input f32[3] has 1 axis");
  EXPECT_CONTAINS(error_of([] { keras::EinsumDense("ab->ac", 3); }), "EinsumDense: the equation 'ab->ac'");
  EXPECT_CONTAINS(error_of([] { keras::EinsumDense("ab,bc->ad", 3); }),
                  "EinsumDense: 'd' of the result of 'ab,bc->ad' is neither in the input nor in the kernel");
  EXPECT_CONTAINS(error_of([] { keras::EinsumDense("ab,bcd->ac", 3); }),
                  "EinsumDense: 'd' of the kernel of 'ab,bcd->ac' is neither in the input nor in the result");
  EXPECT_CONTAINS(error_of([] { keras::EinsumDense("ab,bc->ac", 3, {.bias_axes = "b"}); }),
                  "EinsumDense: the bias has 'b', which the result of 'ab,bc->ac' has not");
  EXPECT_CONTAINS(error_of([] {
                    keras::EinsumDense("ab,bc->ac", 3)(zeros({2, 3, 4}));
                  }),
                  "its input [2,3,4] does not fit the equation 'ab,bc->ac'");
  EXPECT_CONTAINS(error_of([] {
                    keras::EinsumDense("abc,cd->abd", {4, 5})(zeros({2, 3, 4}));
                  }),
                  "'b' of 'abc,cd->abd' is 3 in the input and 4 in output_shape");
  EXPECT_CONTAINS(error_of([] {
                    keras::EinsumDense("abc,cd->abd", {dyn, dyn})(zeros({2, 3, 4}));
                  }),
                  "nothing tells the size of 'd' of 'abc,cd->abd'");
  keras::EinsumDense dense("ab,bc->ac", 3, {.name = "dense"});
  dense(zeros({2, 4}));
  EXPECT_CONTAINS(error_of([&] {
                    dense(zeros({2, 5}));
                  }),
                  "EinsumDense 'dense': its input f32[2,5] has 5 inputs; it was built for 4");
}

}  // namespace
}  // namespace stet

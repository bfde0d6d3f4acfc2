// Layers that merge: the values, gradients and masks that Keras's have.
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasMerging : public LayerTest {};

template <class Merge>
void check_merge(LayerCases& cases, const std::string& name) {
  cases.check(name, Merge(), any_length);
  cases.check(name + "_broadcast", Merge());
  cases.check(name + "_ranks", Merge());
  cases.check(name + "_masked", Merge(), any_length);
  cases.check(name + "_half_masked", Merge(), any_length);
}

TEST_F(KerasMerging, GivesWhatKerasGives) {
  LayerCases cases("merging");
  check_merge<keras::Add>(cases, "add");
  check_merge<keras::Multiply>(cases, "multiply");
  check_merge<keras::Average>(cases, "average");
  check_merge<keras::Maximum>(cases, "maximum");
  check_merge<keras::Minimum>(cases, "minimum");
  cases.check("subtract", keras::Subtract(), any_length);
  cases.check("subtract_masked", keras::Subtract(), any_length);
  cases.check("concatenate", keras::Concatenate(), any_length);
  cases.check("concatenate_steps", keras::Concatenate(1), any_length);
  cases.check("concatenate_masked", keras::Concatenate(), any_length);
  cases.check("concatenate_steps_masked", keras::Concatenate(1), any_length);
  cases.check("concatenate_half_masked", keras::Concatenate(1), any_length);
  cases.check("dot_vectors", keras::Dot(1));
  cases.check("dot_vectors_normalized", keras::Dot(1, {.normalize = true}));
  cases.check("dot_matrices", keras::Dot({2, 1}));
  cases.check("dot_same_axis", keras::Dot(-1), any_length);
  cases.check("dot_first_axis", keras::Dot(1, {.normalize = true}), any_length);
  cases.check("dot_matrix_vector", keras::Dot({2, 1}));
  cases.check("dot_vector_matrix", keras::Dot({1, 2}));
  cases.check("dot_many_axes", keras::Dot({2, 3}), any_length);
  EXPECT_EQ(cases.left(), std::vector<std::string>{});
}

TEST_F(KerasMerging, ModelsOfTwoBranches) {
  keras::Input a({4}), b({4});
  keras::KerasTensor merged = keras::Concatenate()({keras::Dense(3)(a), keras::Add()({a, b})});
  EXPECT_EQ(merged.spec().str(), "f32[batch,7]");
  keras::Model model({a, b}, {keras::Dense(1)(merged)});
  EXPECT_EQ(model(keras::Tensors{ones({2, 4}), ones({2, 4})}).shape().sizes(), (std::vector<std::int64_t>{2, 1}));
}

TEST_F(KerasMerging, SaysWhatIsWrong) {
  const Tensor x = ones({2, 3});
  EXPECT_CONTAINS(error_of([&] { keras::Subtract()({x, x, x}); }), "Subtract takes 2 tensors and was given 3");
  EXPECT_CONTAINS(error_of([&] { keras::Dot(1)({x, x, x}); }), "Dot takes 2 tensors and was given 3");
  EXPECT_CONTAINS(error_of([&] { keras::Dot({0, 1}); }), "Dot: axes that are not one number or two from 1 on");
  EXPECT_CONTAINS(error_of([&] { keras::Dot(2)({x, x}); }), "Dot: f32[2,3] has no axis 2 beside the batch");
  EXPECT_CONTAINS(error_of([&] {
                    keras::Dot(1)({x, ones({2, 4})});
                  }),
                  "Dot: axis 1 of f32[2,3] and axis 1 of f32[2,4] have other sizes");
  EXPECT_CONTAINS(error_of([&] { keras::Concatenate(0); }), "Concatenate: axis 0 is the batch");
  const std::string add = error_of([&] { keras::Add()({x, ones({2, 4})}); });
  EXPECT_CONTAINS(add, "Add");
  EXPECT_CONTAINS(add, "in layer add, given f32[2,3], f32[2,4]");
  const std::string joined = error_of([&] { keras::Concatenate(1)({ones({2, 3, 4}), ones({2, 3, 5})}); });
  EXPECT_CONTAINS(joined, "in layer concatenate");
}

}  // namespace
}  // namespace stet

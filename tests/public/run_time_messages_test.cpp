// What a program finds out while it runs is told in the user's terms: the op and its line, the function and the call's
// line, and what to do.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

std::string here(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

TEST(RunTimeMessages, ALabelThatIsNoClassIsALabel) {
  Tensor labels = tensor({0, 5, 1}), logits = ones({3, 3});
  std::string what = "sparse_cross_entropy: label 5 of sample 1 is not one of the 3 classes\n  at ";
  std::string fix = "\n  fix: labels are class numbers: 0, 1, … up to the number of classes less one";
  std::string eager = error_of([&] { sparse_cross_entropy(labels, logits); });
  EXPECT_EQ(eager, what + here(__LINE__ - 1) + fix);

  const int op_line = __LINE__ + 1;
  Function step = function("step(y, z)", [](Tensor y, Tensor z) { return mean(sparse_cross_entropy(y, z)); });
  for (int i = 0; i < 3; ++i) {
    std::string traced = error_of([&] { step(labels, logits); });
    EXPECT_EQ(traced, what + here(op_line) + ", in 'step' called at " + here(__LINE__ - 1) + fix);
  }
  // Also when the step trains, and under a tape.
  Variable w(ones({3, 3}));
  const int loss_line = __LINE__ + 3;
  Function train = function("train(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = mean(sparse_cross_entropy(y, matmul(x, w)));
    w.assign_sub(0.1f * tape.gradient(loss, w));
    return loss;
  });
  std::string traced = error_of([&] { train(ones({3, 3}), labels); });
  EXPECT_EQ(traced, what + here(loss_line) + ", in 'train' called at " + here(__LINE__ - 1) + fix);
  GradientTape tape;
  traced = error_of([&] { step(labels, matmul(ones({3, 3}), w)); });
  EXPECT_CONTAINS(traced, what + here(op_line));
}

TEST(RunTimeMessages, LabelsOfSeveralAxesHaveAFlatPosition) {
  Tensor labels = tensor({{0, 1}, {2, -1}}), logits = ones({2, 2, 3});
  std::string what = "sparse_cross_entropy: label -1 at flat position 3 is not one of the 3 classes";
  EXPECT_CONTAINS(error_of([&] { sparse_cross_entropy(labels, logits); }), what);
  Function f = function("f(y, z)", [](Tensor y, Tensor z) { return sparse_cross_entropy(y, z); });
  EXPECT_CONTAINS(error_of([&] { f(labels, logits); }), what);
}

TEST(RunTimeMessages, PositionsAreThoseOfTheTensorNotOfItsMemory) {
  Tensor places = tensor({0, 9, 1, 9, 5, 9, 9, 9}), x = ones({4});
  Tensor odd = places[range(0, 8, 2)];  // 0 1 5 9
  std::string what = "'indices' holds index 5 at position 2, out of range: allowed are 0 to 3";
  EXPECT_CONTAINS(error_of([&] { gather(x, odd); }), what);
  EXPECT_CONTAINS(error_of([&] { take_along_axis(x, odd, 0); }), what);
  Function f = function("f(x, i)", [](Tensor v, Tensor i) { return gather(v, i[range(0, 8, 2)]); });
  EXPECT_CONTAINS(error_of([&] { f(x, places); }), what);
}

TEST(RunTimeMessages, InFitTheLossAndTheLineOfFitAreNamed) {
  keras::Sequential model{keras::Input({2}), keras::Dense(3)};
  for (bool eagerly : {false, true}) {
    model.compile({.optimizer = keras::SGD(),
                   .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .run_eagerly = eagerly});
    std::string error = error_of([&] { model.fit(ones({2, 2}), tensor({0, 3}), {.verbose = 0, .shuffle = false}); });
    std::string line = here(__LINE__ - 1);
    EXPECT_CONTAINS(error,
                    "sparse_categorical_crossentropy: label 3 of sample 1 is not one of the 3 classes\n  at " + line);
    EXPECT_CONTAINS(error, eagerly ? line : ", in 'train_step' called at " + line);
    EXPECT_EQ(error.find("stet/keras"), std::string::npos) << error;
  }
}

TEST(RunTimeMessages, AnIndexNamesItsOpAndLine) {
  Tensor x = ones({5, 3});
  std::string eager = error_of([&] { gather(x, tensor({0, 7})); });
  EXPECT_CONTAINS(eager, "gather: 'indices' holds index 7 at position 1, out of range: allowed are 0 to 4");
  EXPECT_CONTAINS(eager, "fix: positions count from 0: the last of 5 is 4");
  const int line = __LINE__ + 1;
  Function pick = function("pick(x, i)", [](Tensor x, Tensor i) { return relu(gather(x * 2, i) + 1); });
  std::string traced = error_of([&] { pick(x, tensor({0, 7})); });
  EXPECT_EQ(traced, "gather: 'indices' holds index 7 at position 1, out of range: allowed are 0 to 4\n  at " +
                        here(line) + ", in 'pick' called at " + here(__LINE__ - 2) +
                        "\n  fix: positions count from 0: the last of 5 is 4");
  EXPECT_CONTAINS(error_of([&] {
                    pick(x, tensor({0, -1}));
                  }),
                  "fix: positions count from 0; for the last element write 4, not -1");

  const int scatter_line = __LINE__ + 1;
  Function put = function("put(x, i, u)", [](Tensor x, Tensor i, Tensor u) { return scatter_add(x, i, u); });
  traced = error_of([&] { put(zeros({5, 3}), tensor({5}), ones({1, 3})); });
  EXPECT_CONTAINS(traced,
                  "scatter_add: 'indices' holds index 5 at position 0, out of range: allowed are 0 to 4\n  at " +
                      here(scatter_line) + ", in 'put' called at ");
}

TEST(RunTimeMessages, InsideABranchAndAnInlinedFunction) {
  const int line = __LINE__ + 1;
  Function inner = function("inner(x, i)", [](Tensor x, Tensor i) { return gather(x, i); });
  Function outer = function("outer(x, i)", [=](Tensor x, Tensor i) {
    if (sum(x) > 0) return inner(x, i);
    return zeros({2});
  });
  EXPECT_CONTAINS(error_of([&] {
                    outer(ones({4}), tensor({1, 4}));
                  }),
                  "gather: 'indices' holds index 4 at position 1, out of range: allowed are 0 to 3\n  at " +
                      here(line) + ", in 'outer' called at ");
}

TEST(RunTimeMessages, SizesThatDoNotFitNameTheOp) {
  const int line = __LINE__ + 1;
  Function rows = function("rows(x)", [](Tensor x) { return reshape(x, {-1, 4}); });
  rows(ones({8}));
  std::string error = error_of([&] { rows(ones({7})); });
  EXPECT_CONTAINS(error, "reshape: ");
  EXPECT_CONTAINS(error, "\n  at " + here(line) + ", in 'rows' called at " + here(__LINE__ - 2));
}

TEST(RunTimeMessages, SizesThatDependOnValuesDoSoWhenTheyAreKnown) {
  const int line = __LINE__ + 1;
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return gather(x, reshape(nonzero(x), {-1})) + y; });
  EXPECT_EQ(f(tensor({1.f, 0.f, 2.f}), ones({2})).to_vector<float>(), (std::vector<float>{2, 3}));
  std::string error = error_of([&] { f(tensor({1.f, 0.f, 2.f}), ones({3})); });
  EXPECT_CONTAINS(error, "add: ");
  EXPECT_CONTAINS(error, "\n  at " + here(line) + ", in 'f' called at " + here(__LINE__ - 2));
}

}  // namespace

// Composites that move elements, and products: NumPy's values, one trace for all sizes, gradients, errors.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "eager_and_traced.h"
#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

/// What NumPy 1.24 prints for the same call (matrix_transpose and vecdot, which it has not, in other words).
struct Case {
  const char* call;
  std::function<Tensor()> run;
  const char *shape, *text;
};

TEST(Concat, PartsOfSeveralTypesMeetInOne) {
  Tensor whole = concat({tensor({true, false}), tensor({3}), tensor({0.5f})});
  EXPECT_EQ(whole.dtype(), f32);
  EXPECT_EQ(whole.to_vector<float>(), (std::vector<float>{1, 0, 3, 0.5f}));
  EXPECT_EQ(stack({tensor({1.f}), tensor({2.})}).dtype(), f64);
  EXPECT_EQ(concat({tensor({1.f}), reshape(tensor(2.5), {1})}).dtype(), promote(f32, tensor(2.5).dtype()));
  GradientTape tape;
  Tensor x = tensor({1.f, 2.f}), y = tensor({3.});
  tape.watch(x);
  tape.watch(y);
  std::vector<Tensor> d = tape.gradient(sum(square(concat({x, y}))), {x, y});
  EXPECT_EQ(d[0].dtype(), f32);
  EXPECT_EQ(d[0].to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(d[1].to_vector<double>(), (std::vector<double>{6}));
}

TEST(Reshape, ANumberIsATensorOfOneElement) {
  EXPECT_EQ(reshape(7, {-1}).shape().str(), "[1]");
  EXPECT_EQ(reshape(2.5, {1, -1}).item<double>(), 2.5);
  EXPECT_CONTAINS(error_of([] { reshape(7, {2, -1}); }), "cannot reshape [] with 1 element to [2,-1]");
}

TEST(ShapeOps, AsNumPy) {
  const Tensor x = reshape(arange(12), {3, 4}), y = reshape(arange(24), {2, 3, 4}), v = arange(5),
               e = zeros({0, 3}, i64), s = full({}, 7, i64), one = full({1, 1}, 4, i64),
               w = tensor({3, 1, 4, 1, 5}).cast(i64);
  // clang-format off
  const std::vector<Case> cases{
      {"flip(x)", [&] { return flip(x); }, "[3,4]", "[[11 10  9  8]\n [ 7  6  5  4]\n [ 3  2  1  0]]"},
      {"flip(x, 1)", [&] { return flip(x, 1); }, "[3,4]", "[[ 3  2  1  0]\n [ 7  6  5  4]\n [11 10  9  8]]"},
      {"flip(y, {0, -1})", [&] { return flip(y, {0, -1}); }, "[2,3,4]", "[[[15 14 13 12]\n  [19 18 17 16]\n  [23 22 21 20]]\n\n [[ 3  2  1  0]\n  [ 7  6  5  4]\n  [11 10  9  8]]]"},
      {"flip(s)", [&] { return flip(s); }, "[]", "7"},
      {"flip(e)", [&] { return flip(e); }, "[0,3]", "[]"},
      {"fliplr(x)", [&] { return fliplr(x); }, "[3,4]", "[[ 3  2  1  0]\n [ 7  6  5  4]\n [11 10  9  8]]"},
      {"flipud(x)", [&] { return flipud(x); }, "[3,4]", "[[ 8  9 10 11]\n [ 4  5  6  7]\n [ 0  1  2  3]]"},
      {"flipud(v)", [&] { return flipud(v); }, "[5]", "[4 3 2 1 0]"},
      {"roll(v, 2)", [&] { return roll(v, 2); }, "[5]", "[3 4 0 1 2]"},
      {"roll(v, -1)", [&] { return roll(v, -1); }, "[5]", "[1 2 3 4 0]"},
      {"roll(v, 12)", [&] { return roll(v, 12); }, "[5]", "[3 4 0 1 2]"},
      {"roll(v, 0)", [&] { return roll(v, 0); }, "[5]", "[0 1 2 3 4]"},
      {"roll(x, 5)", [&] { return roll(x, 5); }, "[3,4]", "[[ 7  8  9 10]\n [11  0  1  2]\n [ 3  4  5  6]]"},
      {"roll(x, 1, 0)", [&] { return roll(x, 1, 0); }, "[3,4]", "[[ 8  9 10 11]\n [ 0  1  2  3]\n [ 4  5  6  7]]"},
      {"roll(x, -1, -1)", [&] { return roll(x, -1, -1); }, "[3,4]", "[[ 1  2  3  0]\n [ 5  6  7  4]\n [ 9 10 11  8]]"},
      {"roll(x, {1, -1}, {0, 1})", [&] { return roll(x, {1, -1}, {0, 1}); }, "[3,4]", "[[ 9 10 11  8]\n [ 1  2  3  0]\n [ 5  6  7  4]]"},
      {"roll(x, {1, 1}, {1, 1})", [&] { return roll(x, {1, 1}, {1, 1}); }, "[3,4]", "[[ 2  3  0  1]\n [ 6  7  4  5]\n [10 11  8  9]]"},
      {"roll(e, 1, 0)", [&] { return roll(e, 1, 0); }, "[0,3]", "[]"},
      {"roll(e, 1)", [&] { return roll(e, 1); }, "[0,3]", "[]"},
      {"roll(one, 3, 1)", [&] { return roll(one, 3, 1); }, "[1,1]", "[[4]]"},
      {"roll(s, 1)", [&] { return roll(s, 1); }, "[]", "7"},
      {"rot90(x)", [&] { return rot90(x); }, "[4,3]", "[[ 3  7 11]\n [ 2  6 10]\n [ 1  5  9]\n [ 0  4  8]]"},
      {"rot90(x, 2)", [&] { return rot90(x, 2); }, "[3,4]", "[[11 10  9  8]\n [ 7  6  5  4]\n [ 3  2  1  0]]"},
      {"rot90(x, 3)", [&] { return rot90(x, 3); }, "[4,3]", "[[ 8  4  0]\n [ 9  5  1]\n [10  6  2]\n [11  7  3]]"},
      {"rot90(x, -1)", [&] { return rot90(x, -1); }, "[4,3]", "[[ 8  4  0]\n [ 9  5  1]\n [10  6  2]\n [11  7  3]]"},
      {"rot90(x, 4)", [&] { return rot90(x, 4); }, "[3,4]", "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]"},
      {"rot90(y, 1, {1, 2})", [&] { return rot90(y, 1, {1, 2}); }, "[2,4,3]", "[[[ 3  7 11]\n  [ 2  6 10]\n  [ 1  5  9]\n  [ 0  4  8]]\n\n [[15 19 23]\n  [14 18 22]\n  [13 17 21]\n  [12 16 20]]]"},
      {"rot90(y, 1, {2, 0})", [&] { return rot90(y, 1, {2, 0}); }, "[4,3,2]", "[[[12  0]\n  [16  4]\n  [20  8]]\n\n [[13  1]\n  [17  5]\n  [21  9]]\n\n [[14  2]\n  [18  6]\n  [22 10]]\n\n [[15  3]\n  [19  7]\n  [23 11]]]"},
      {"moveaxis(y, 0, -1)", [&] { return moveaxis(y, 0, -1); }, "[3,4,2]", "[[[ 0 12]\n  [ 1 13]\n  [ 2 14]\n  [ 3 15]]\n\n [[ 4 16]\n  [ 5 17]\n  [ 6 18]\n  [ 7 19]]\n\n [[ 8 20]\n  [ 9 21]\n  [10 22]\n  [11 23]]]"},
      {"moveaxis(y, {0, 1}, {-1, -2})", [&] { return moveaxis(y, {0, 1}, {-1, -2}); }, "[4,3,2]", "[[[ 0 12]\n  [ 4 16]\n  [ 8 20]]\n\n [[ 1 13]\n  [ 5 17]\n  [ 9 21]]\n\n [[ 2 14]\n  [ 6 18]\n  [10 22]]\n\n [[ 3 15]\n  [ 7 19]\n  [11 23]]]"},
      {"moveaxis(y, {2, 0}, {0, 1})", [&] { return moveaxis(y, {2, 0}, {0, 1}); }, "[4,2,3]", "[[[ 0  4  8]\n  [12 16 20]]\n\n [[ 1  5  9]\n  [13 17 21]]\n\n [[ 2  6 10]\n  [14 18 22]]\n\n [[ 3  7 11]\n  [15 19 23]]]"},
      {"swapaxes(y, 0, 2)", [&] { return swapaxes(y, 0, 2); }, "[4,3,2]", "[[[ 0 12]\n  [ 4 16]\n  [ 8 20]]\n\n [[ 1 13]\n  [ 5 17]\n  [ 9 21]]\n\n [[ 2 14]\n  [ 6 18]\n  [10 22]]\n\n [[ 3 15]\n  [ 7 19]\n  [11 23]]]"},
      {"swapaxes(y, -1, 1)", [&] { return swapaxes(y, -1, 1); }, "[2,4,3]", "[[[ 0  4  8]\n  [ 1  5  9]\n  [ 2  6 10]\n  [ 3  7 11]]\n\n [[12 16 20]\n  [13 17 21]\n  [14 18 22]\n  [15 19 23]]]"},
      {"matrix_transpose(y)", [&] { return matrix_transpose(y); }, "[2,4,3]", "[[[ 0  4  8]\n  [ 1  5  9]\n  [ 2  6 10]\n  [ 3  7 11]]\n\n [[12 16 20]\n  [13 17 21]\n  [14 18 22]\n  [15 19 23]]]"},
      {"permute_dims(y, {1, 2, 0})", [&] { return permute_dims(y, {1, 2, 0}); }, "[3,4,2]", "[[[ 0 12]\n  [ 1 13]\n  [ 2 14]\n  [ 3 15]]\n\n [[ 4 16]\n  [ 5 17]\n  [ 6 18]\n  [ 7 19]]\n\n [[ 8 20]\n  [ 9 21]\n  [10 22]\n  [11 23]]]"},
      {"y.T()", [&] { return y.T(); }, "[4,3,2]", "[[[ 0 12]\n  [ 4 16]\n  [ 8 20]]\n\n [[ 1 13]\n  [ 5 17]\n  [ 9 21]]\n\n [[ 2 14]\n  [ 6 18]\n  [10 22]]\n\n [[ 3 15]\n  [ 7 19]\n  [11 23]]]"},
      {"ravel(x)", [&] { return ravel(x); }, "[12]", "[ 0  1  2  3  4  5  6  7  8  9 10 11]"},
      {"flatten(y)", [&] { return flatten(y); }, "[24]", "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23]"},
      {"ravel(s)", [&] { return ravel(s); }, "[1]", "[7]"},
      {"ravel(e)", [&] { return ravel(e); }, "[0]", "[]"},
      {"ravel(x.T())", [&] { return ravel(x.T()); }, "[12]", "[ 0  4  8  1  5  9  2  6 10  3  7 11]"},
      {"expand_dims(v, {0, 2})", [&] { return expand_dims(v, {0, 2}); }, "[1,5,1]", "[[[0]\n  [1]\n  [2]\n  [3]\n  [4]]]"},
      {"expand_dims(x, {-1, 0})", [&] { return expand_dims(x, {-1, 0}); }, "[1,3,4,1]", "[[[[ 0]\n   [ 1]\n   [ 2]\n   [ 3]]\n\n  [[ 4]\n   [ 5]\n   [ 6]\n   [ 7]]\n\n  [[ 8]\n   [ 9]\n   [10]\n   [11]]]]"},
      {"expand_dims(s, {0, 1})", [&] { return expand_dims(s, {0, 1}); }, "[1,1]", "[[7]]"},
      {"atleast_1d(s)", [&] { return atleast_1d(s); }, "[1]", "[7]"},
      {"atleast_2d(s)", [&] { return atleast_2d(s); }, "[1,1]", "[[7]]"},
      {"atleast_3d(s)", [&] { return atleast_3d(s); }, "[1,1,1]", "[[[7]]]"},
      {"atleast_2d(v)", [&] { return atleast_2d(v); }, "[1,5]", "[[0 1 2 3 4]]"},
      {"atleast_3d(v)", [&] { return atleast_3d(v); }, "[1,5,1]", "[[[0]\n  [1]\n  [2]\n  [3]\n  [4]]]"},
      {"atleast_3d(x)", [&] { return atleast_3d(x); }, "[3,4,1]", "[[[ 0]\n  [ 1]\n  [ 2]\n  [ 3]]\n\n [[ 4]\n  [ 5]\n  [ 6]\n  [ 7]]\n\n [[ 8]\n  [ 9]\n  [10]\n  [11]]]"},
      {"atleast_1d(x)", [&] { return atleast_1d(x); }, "[3,4]", "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]"},
      {"tile(v, 2)", [&] { return tile(v, 2); }, "[10]", "[0 1 2 3 4 0 1 2 3 4]"},
      {"tile(v, {2, 1})", [&] { return tile(v, {2, 1}); }, "[2,5]", "[[0 1 2 3 4]\n [0 1 2 3 4]]"},
      {"tile(x, {2})", [&] { return tile(x, {2}); }, "[3,8]", "[[ 0  1  2  3  0  1  2  3]\n [ 4  5  6  7  4  5  6  7]\n [ 8  9 10 11  8  9 10 11]]"},
      {"tile(x, {2, 2})", [&] { return tile(x, {2, 2}); }, "[6,8]", "[[ 0  1  2  3  0  1  2  3]\n [ 4  5  6  7  4  5  6  7]\n [ 8  9 10 11  8  9 10 11]\n [ 0  1  2  3  0  1  2  3]\n [ 4  5  6  7  4  5  6  7]\n [ 8  9 10 11  8  9 10 11]]"},
      {"tile(x, {2, 1, 2})", [&] { return tile(x, {2, 1, 2}); }, "[2,3,8]", "[[[ 0  1  2  3  0  1  2  3]\n  [ 4  5  6  7  4  5  6  7]\n  [ 8  9 10 11  8  9 10 11]]\n\n [[ 0  1  2  3  0  1  2  3]\n  [ 4  5  6  7  4  5  6  7]\n  [ 8  9 10 11  8  9 10 11]]]"},
      {"tile(s, {2, 3})", [&] { return tile(s, {2, 3}); }, "[2,3]", "[[7 7 7]\n [7 7 7]]"},
      {"tile(x, {0, 2})", [&] { return tile(x, {0, 2}); }, "[0,8]", "[]"},
      {"tile(e, {2, 2})", [&] { return tile(e, {2, 2}); }, "[0,6]", "[]"},
      {"tile(reshape(v, {1, 1, 1, 1, 5}), {2, 1, 1, 2, 1})", [&] { return tile(reshape(v, {1, 1, 1, 1, 5}), {2, 1, 1, 2, 1}); }, "[2,1,1,2,5]", "[[[[[0 1 2 3 4]\n    [0 1 2 3 4]]]]\n\n\n\n [[[[0 1 2 3 4]\n    [0 1 2 3 4]]]]]"},
      {"tile(reshape(x, {1, 1, 1, 1, 1, 1, 3, 4}), {1, 1, 1, 1, 1, 2, 1, 2})", [&] { return tile(reshape(x, {1, 1, 1, 1, 1, 1, 3, 4}), {1, 1, 1, 1, 1, 2, 1, 2}); }, "[1,1,1,1,1,2,3,8]", "[[[[[[[[ 0  1  2  3  0  1  2  3]\n       [ 4  5  6  7  4  5  6  7]\n       [ 8  9 10 11  8  9 10 11]]\n\n      [[ 0  1  2  3  0  1  2  3]\n       [ 4  5  6  7  4  5  6  7]\n       [ 8  9 10 11  8  9 10 11]]]]]]]]"},
      {"repeat(v, 2)", [&] { return repeat(v, 2); }, "[10]", "[0 0 1 1 2 2 3 3 4 4]"},
      {"repeat(x, 2)", [&] { return repeat(x, 2); }, "[24]", "[ 0  0  1  1  2  2  3  3  4  4  5  5  6  6  7  7  8  8  9  9 10 10 11 11]"},
      {"repeat(x, 2, 0)", [&] { return repeat(x, 2, 0); }, "[6,4]", "[[ 0  1  2  3]\n [ 0  1  2  3]\n [ 4  5  6  7]\n [ 4  5  6  7]\n [ 8  9 10 11]\n [ 8  9 10 11]]"},
      {"repeat(x, 3, -1)", [&] { return repeat(x, 3, -1); }, "[3,12]", "[[ 0  0  0  1  1  1  2  2  2  3  3  3]\n [ 4  4  4  5  5  5  6  6  6  7  7  7]\n [ 8  8  8  9  9  9 10 10 10 11 11 11]]"},
      {"repeat(y, 2, 1)", [&] { return repeat(y, 2, 1); }, "[2,6,4]", "[[[ 0  1  2  3]\n  [ 0  1  2  3]\n  [ 4  5  6  7]\n  [ 4  5  6  7]\n  [ 8  9 10 11]\n  [ 8  9 10 11]]\n\n [[12 13 14 15]\n  [12 13 14 15]\n  [16 17 18 19]\n  [16 17 18 19]\n  [20 21 22 23]\n  [20 21 22 23]]]"},
      {"repeat(s, 3)", [&] { return repeat(s, 3); }, "[3]", "[7 7 7]"},
      {"repeat(x, 0, 1)", [&] { return repeat(x, 0, 1); }, "[3,0]", "[]"},
      {"repeat(e, 2, 1)", [&] { return repeat(e, 2, 1); }, "[0,6]", "[]"},
      {"repeat(reshape(v, {1, 1, 1, 1, 1, 1, 5, 1}), 2, 6)", [&] { return repeat(reshape(v, {1, 1, 1, 1, 1, 1, 5, 1}), 2, 6); }, "[1,1,1,1,1,1,10,1]", "[[[[[[[[0]\n       [0]\n       [1]\n       [1]\n       [2]\n       [2]\n       [3]\n       [3]\n       [4]\n       [4]]]]]]]]"},
      {"split(x, 2, 1)[1]", [&] { return split(x, 2, 1)[1]; }, "[3,2]", "[[ 2  3]\n [ 6  7]\n [10 11]]"},
      {"split(x, 3)[2]", [&] { return split(x, 3)[2]; }, "[1,4]", "[[ 8  9 10 11]]"},
      {"split(v, std::vector<Dim>{1, 3, 1})[1]", [&] { return split(v, std::vector<Dim>{1, 3, 1})[1]; }, "[3]", "[1 2 3]"},
      {"split(v, {2, 0, 3})[2]", [&] { return split(v, {2, 0, 3})[2]; }, "[3]", "[2 3 4]"},
      {"split(v, {5})[0]", [&] { return split(v, {5})[0]; }, "[5]", "[0 1 2 3 4]"},
      {"array_split(v, 3)[0]", [&] { return array_split(v, 3)[0]; }, "[2]", "[0 1]"},
      {"array_split(v, 3)[2]", [&] { return array_split(v, 3)[2]; }, "[1]", "[4]"},
      {"array_split(v, 7)[6]", [&] { return array_split(v, 7)[6]; }, "[0]", "[]"},
      {"unstack(x)[1]", [&] { return unstack(x)[1]; }, "[4]", "[4 5 6 7]"},
      {"unstack(x, 1)[2]", [&] { return unstack(x, 1)[2]; }, "[3]", "[ 2  6 10]"},
      {"hstack({v, w})", [&] { return hstack({v, w}); }, "[10]", "[0 1 2 3 4 3 1 4 1 5]"},
      {"hstack({x, x})", [&] { return hstack({x, x}); }, "[3,8]", "[[ 0  1  2  3  0  1  2  3]\n [ 4  5  6  7  4  5  6  7]\n [ 8  9 10 11  8  9 10 11]]"},
      {"hstack({s, s})", [&] { return hstack({s, s}); }, "[2]", "[7 7]"},
      {"vstack({v, w})", [&] { return vstack({v, w}); }, "[2,5]", "[[0 1 2 3 4]\n [3 1 4 1 5]]"},
      {"vstack({x, x})", [&] { return vstack({x, x}); }, "[6,4]", "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]\n [ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]"},
      {"dstack({v, w})", [&] { return dstack({v, w}); }, "[1,5,2]", "[[[0 3]\n  [1 1]\n  [2 4]\n  [3 1]\n  [4 5]]]"},
      {"dstack({x, x})", [&] { return dstack({x, x}); }, "[3,4,2]", "[[[ 0  0]\n  [ 1  1]\n  [ 2  2]\n  [ 3  3]]\n\n [[ 4  4]\n  [ 5  5]\n  [ 6  6]\n  [ 7  7]]\n\n [[ 8  8]\n  [ 9  9]\n  [10 10]\n  [11 11]]]"},
      {"column_stack({v, w})", [&] { return column_stack({v, w}); }, "[5,2]", "[[0 3]\n [1 1]\n [2 4]\n [3 1]\n [4 5]]"},
      {"column_stack({x, x})", [&] { return column_stack({x, x}); }, "[3,8]", "[[ 0  1  2  3  0  1  2  3]\n [ 4  5  6  7  4  5  6  7]\n [ 8  9 10 11  8  9 10 11]]"},
      {"tril(x)", [&] { return tril(x); }, "[3,4]", "[[ 0  0  0  0]\n [ 4  5  0  0]\n [ 8  9 10  0]]"},
      {"tril(x, 1)", [&] { return tril(x, 1); }, "[3,4]", "[[ 0  1  0  0]\n [ 4  5  6  0]\n [ 8  9 10 11]]"},
      {"tril(x, -1)", [&] { return tril(x, -1); }, "[3,4]", "[[0 0 0 0]\n [4 0 0 0]\n [8 9 0 0]]"},
      {"triu(x)", [&] { return triu(x); }, "[3,4]", "[[ 0  1  2  3]\n [ 0  5  6  7]\n [ 0  0 10 11]]"},
      {"triu(x, 1)", [&] { return triu(x, 1); }, "[3,4]", "[[ 0  1  2  3]\n [ 0  0  6  7]\n [ 0  0  0 11]]"},
      {"triu(x, -2)", [&] { return triu(x, -2); }, "[3,4]", "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]"},
      {"triu(y)", [&] { return triu(y); }, "[2,3,4]", "[[[ 0  1  2  3]\n  [ 0  5  6  7]\n  [ 0  0 10 11]]\n\n [[12 13 14 15]\n  [ 0 17 18 19]\n  [ 0  0 22 23]]]"},
      {"tril(e)", [&] { return tril(e); }, "[0,3]", "[]"},
      {"tril(x > 3)", [&] { return tril(x > 3); }, "[3,4]", "[[False False False False]\n [ True  True False False]\n [ True  True  True False]]"},
      {"triu(x.T(), 9)", [&] { return triu(x.T(), 9); }, "[4,3]", "[[0 0 0]\n [0 0 0]\n [0 0 0]\n [0 0 0]]"},
      {"diag(v)", [&] { return diag(v); }, "[5,5]", "[[0 0 0 0 0]\n [0 1 0 0 0]\n [0 0 2 0 0]\n [0 0 0 3 0]\n [0 0 0 0 4]]"},
      {"diag(v, 1)", [&] { return diag(v, 1); }, "[6,6]", "[[0 0 0 0 0 0]\n [0 0 1 0 0 0]\n [0 0 0 2 0 0]\n [0 0 0 0 3 0]\n [0 0 0 0 0 4]\n [0 0 0 0 0 0]]"},
      {"diag(v, -2)", [&] { return diag(v, -2); }, "[7,7]", "[[0 0 0 0 0 0 0]\n [0 0 0 0 0 0 0]\n [0 0 0 0 0 0 0]\n [0 1 0 0 0 0 0]\n [0 0 2 0 0 0 0]\n [0 0 0 3 0 0 0]\n [0 0 0 0 4 0 0]]"},
      {"diag(x)", [&] { return diag(x); }, "[3]", "[ 0  5 10]"},
      {"diag(x, 2)", [&] { return diag(x, 2); }, "[2]", "[2 7]"},
      {"diag(x, -1)", [&] { return diag(x, -1); }, "[2]", "[4 9]"},
      {"diag(x, 9)", [&] { return diag(x, 9); }, "[0]", "[]"},
      {"diag(x, -9)", [&] { return diag(x, -9); }, "[0]", "[]"},
      {"diag(v > 2)", [&] { return diag(v > 2); }, "[5,5]", "[[False False False False False]\n [False False False False False]\n [False False False False False]\n [False False False  True False]\n [False False False False  True]]"},
      {"diagonal(x)", [&] { return diagonal(x); }, "[3]", "[ 0  5 10]"},
      {"diagonal(y)", [&] { return diagonal(y); }, "[4,2]", "[[ 0 16]\n [ 1 17]\n [ 2 18]\n [ 3 19]]"},
      {"diagonal(y, {.offset = 1, .axis1 = 1, .axis2 = 2})", [&] { return diagonal(y, {.offset = 1, .axis1 = 1, .axis2 = 2}); }, "[2,3]", "[[ 1  6 11]\n [13 18 23]]"},
      {"diagonal(y, {.offset = -1, .axis1 = 2, .axis2 = 0})", [&] { return diagonal(y, {.offset = -1, .axis1 = 2, .axis2 = 0}); }, "[3,2]", "[[ 1 14]\n [ 5 18]\n [ 9 22]]"},
      {"diagonal(e)", [&] { return diagonal(e); }, "[0]", "[]"},
      {"diagonal(x.T())", [&] { return diagonal(x.T()); }, "[3]", "[ 0  5 10]"},
      {"trace(x)", [&] { return trace(x); }, "[]", "15"},
      {"trace(x, {.offset = 1})", [&] { return trace(x, {.offset = 1}); }, "[]", "18"},
      {"trace(y)", [&] { return trace(y); }, "[4]", "[16 18 20 22]"},
      {"trace(e)", [&] { return trace(e); }, "[]", "0"},
      {"broadcast_arrays({v, reshape(v, {5, 1})})[1]", [&] { return broadcast_arrays({v, reshape(v, {5, 1})})[1]; }, "[5,5]", "[[0 0 0 0 0]\n [1 1 1 1 1]\n [2 2 2 2 2]\n [3 3 3 3 3]\n [4 4 4 4 4]]"},
      {"kron(v, w)", [&] { return kron(v, w); }, "[25]", "[ 0  0  0  0  0  3  1  4  1  5  6  2  8  2 10  9  3 12  3 15 12  4 16  4\n 20]"},
      {"kron(x, one)", [&] { return kron(x, one); }, "[3,4]", "[[ 0  4  8 12]\n [16 20 24 28]\n [32 36 40 44]]"},
      {"kron(eye(2, {.dtype = i64}), x)", [&] { return kron(eye(2, {.dtype = i64}), x); }, "[6,8]", "[[ 0  1  2  3  0  0  0  0]\n [ 4  5  6  7  0  0  0  0]\n [ 8  9 10 11  0  0  0  0]\n [ 0  0  0  0  0  1  2  3]\n [ 0  0  0  0  4  5  6  7]\n [ 0  0  0  0  8  9 10 11]]"},
      {"kron(w, x)", [&] { return kron(w, x); }, "[3,20]", "[[ 0  3  6  9  0  1  2  3  0  4  8 12  0  1  2  3  0  5 10 15]\n [12 15 18 21  4  5  6  7 16 20 24 28  4  5  6  7 20 25 30 35]\n [24 27 30 33  8  9 10 11 32 36 40 44  8  9 10 11 40 45 50 55]]"},
      {"kron(s, x)", [&] { return kron(s, x); }, "[3,4]", "[[ 0  7 14 21]\n [28 35 42 49]\n [56 63 70 77]]"},
      {"kron(2, x)", [&] { return kron(2, x); }, "[3,4]", "[[ 0  2  4  6]\n [ 8 10 12 14]\n [16 18 20 22]]"},
      {"kron(e, x)", [&] { return kron(e, x); }, "[0,12]", "[]"},
      {"outer(v, w)", [&] { return outer(v, w); }, "[5,5]", "[[ 0  0  0  0  0]\n [ 3  1  4  1  5]\n [ 6  2  8  2 10]\n [ 9  3 12  3 15]\n [12  4 16  4 20]]"},
      {"outer(x, v)", [&] { return outer(x, v); }, "[12,5]", "[[ 0  0  0  0  0]\n [ 0  1  2  3  4]\n [ 0  2  4  6  8]\n [ 0  3  6  9 12]\n [ 0  4  8 12 16]\n [ 0  5 10 15 20]\n [ 0  6 12 18 24]\n [ 0  7 14 21 28]\n [ 0  8 16 24 32]\n [ 0  9 18 27 36]\n [ 0 10 20 30 40]\n [ 0 11 22 33 44]]"},
      {"outer(2, v)", [&] { return outer(2, v); }, "[1,5]", "[[0 2 4 6 8]]"},
      {"outer(v, s)", [&] { return outer(v, s); }, "[5,1]", "[[ 0]\n [ 7]\n [14]\n [21]\n [28]]"},
      {"outer(s, s)", [&] { return outer(s, s); }, "[1,1]", "[[49]]"},
      {"outer(e, v)", [&] { return outer(e, v); }, "[0,5]", "[]"},
      {"inner(v, w)", [&] { return inner(v, w); }, "[]", "32"},
      {"inner(x, x)", [&] { return inner(x, x); }, "[3,3]", "[[ 14  38  62]\n [ 38 126 214]\n [ 62 214 366]]"},
      {"inner(y, x)", [&] { return inner(y, x); }, "[2,3,3]", "[[[ 14  38  62]\n  [ 38 126 214]\n  [ 62 214 366]]\n\n [[ 86 302 518]\n  [110 390 670]\n  [134 478 822]]]"},
      {"inner(2, x)", [&] { return inner(2, x); }, "[3,4]", "[[ 0  2  4  6]\n [ 8 10 12 14]\n [16 18 20 22]]"},
      {"dot(v, w)", [&] { return dot(v, w); }, "[]", "32"},
      {"dot(x, x.T())", [&] { return dot(x, x.T()); }, "[3,3]", "[[ 14  38  62]\n [ 38 126 214]\n [ 62 214 366]]"},
      {"dot(y, x.T())", [&] { return dot(y, x.T()); }, "[2,3,3]", "[[[ 14  38  62]\n  [ 38 126 214]\n  [ 62 214 366]]\n\n [[ 86 302 518]\n  [110 390 670]\n  [134 478 822]]]"},
      {"dot(x.T(), y)", [&] { return dot(x.T(), y); }, "[4,2,4]", "[[[ 80  92 104 116]\n  [224 236 248 260]]\n\n [[ 92 107 122 137]\n  [272 287 302 317]]\n\n [[104 122 140 158]\n  [320 338 356 374]]\n\n [[116 137 158 179]\n  [368 389 410 431]]]"},
      {"dot(x, arange(4))", [&] { return dot(x, arange(4)); }, "[3]", "[14 38 62]"},
      {"dot(s, x)", [&] { return dot(s, x); }, "[3,4]", "[[ 0  7 14 21]\n [28 35 42 49]\n [56 63 70 77]]"},
      {"vdot(x, x)", [&] { return vdot(x, x); }, "[]", "506"},
      {"vdot(s, s)", [&] { return vdot(s, s); }, "[]", "49"},
      {"tensordot(y, y, 3)", [&] { return tensordot(y, y, 3); }, "[]", "4324"},
      {"tensordot(y, x)", [&] { return tensordot(y, x); }, "[2]", "[ 506 1298]"},
      {"tensordot(v, w, 0)", [&] { return tensordot(v, w, 0); }, "[5,5]", "[[ 0  0  0  0  0]\n [ 3  1  4  1  5]\n [ 6  2  8  2 10]\n [ 9  3 12  3 15]\n [12  4 16  4 20]]"},
      {"tensordot(y, x, {1}, {0})", [&] { return tensordot(y, x, {1}, {0}); }, "[2,4,4]", "[[[ 80  92 104 116]\n  [ 92 107 122 137]\n  [104 122 140 158]\n  [116 137 158 179]]\n\n [[224 272 320 368]\n  [236 287 338 389]\n  [248 302 356 410]\n  [260 317 374 431]]]"},
      {"tensordot(y, y, {0, 2}, {0, 2})", [&] { return tensordot(y, y, {0, 2}, {0, 2}); }, "[3,3]", "[[ 748  988 1228]\n [ 988 1356 1724]\n [1228 1724 2220]]"},
      {"tensordot(y, x, {2, 1}, {1, 0})", [&] { return tensordot(y, x, {2, 1}, {1, 0}); }, "[2]", "[ 506 1298]"},
      {"tensordot(e, e, {0}, {0})", [&] { return tensordot(e, e, {0}, {0}); }, "[3,3]", "[[0 0 0]\n [0 0 0]\n [0 0 0]]"},
      {"vecdot(x, x)", [&] { return vecdot(x, x); }, "[3]", "[ 14 126 366]"},
      {"vecdot(y, x, -2)", [&] { return vecdot(y, x, -2); }, "[2,4]", "[[ 80 107 140 179]\n [224 287 356 431]]"},
      {"vecdot(v, w)", [&] { return vecdot(v, w); }, "[]", "32"},
      {"vecdot(e, e)", [&] { return vecdot(e, e); }, "[0]", "[]"},
      {"cross(tensor({1, 2, 3}), tensor({4, 5, 7}))", [&] { return cross(tensor({1, 2, 3}), tensor({4, 5, 7})); }, "[3]", "[-1  5 -3]"},
      {"cross(x.T(), tensor({1, 2, 3}))", [&] { return cross(x.T(), tensor({1, 2, 3})); }, "[4,3]", "[[-4  8 -4]\n [-3  6 -3]\n [-2  4 -2]\n [-1  2 -1]]"},
      {"cross(x, flip(x, 1), 0)", [&] { return cross(x, flip(x, 1), 0); }, "[3,4]", "[[-12  -4   4  12]\n [ 24   8  -8 -24]\n [-12  -4   4  12]]"},
  };
  // clang-format on
  for (const Case& one_case : cases) {
    try {
      Tensor out = one_case.run();
      EXPECT_EQ(out.shape().str(), one_case.shape) << one_case.call;
      EXPECT_EQ(to_string(out), one_case.text) << one_case.call;
    } catch (const std::exception& error) {
      ADD_FAILURE() << one_case.call << ": " << error.what();
    }
  }
}

TEST(ShapeOps, DiagonalsFarAway) {
  Tensor x = ones({3, 4});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(sum(tril(x, most)).item<int>(), 12);
  EXPECT_EQ(sum(tril(x, least)).item<int>(), 0);
  EXPECT_EQ(sum(triu(x, most)).item<int>(), 0);
  EXPECT_EQ(sum(triu(x, least)).item<int>(), 12);
  EXPECT_EQ(sum(eye(3, {.k = least})).item<int>(), 0);
  EXPECT_EQ(diag(x, most).shape().str(), "[0]");
  EXPECT_EQ(trace(x, {.offset = least}).item<int>(), 0);
  EXPECT_CONTAINS(error_of([&] { diag(x[0], most); }), "too large");
}

TEST(ShapeOps, KeepTypes) {
  Tensor half = ones({3, 3}, f16), mask = ones({3, 3}, bool_), small = ones({3, 3}, i8);
  for (const Tensor& x : {half, mask, small}) {
    for (const Tensor& out : {flip(x), roll(x, 1), rot90(x), tile(x, {2}), repeat(x, 2), tril(x), triu(x), diag(x),
                              diag(x[0]), split(x, 3)[0], hstack({x, x})})
      EXPECT_EQ(out.dtype(), x.dtype());
  }
  EXPECT_EQ(outer(half, 0.5).dtype(), f16);
  EXPECT_EQ(kron(half, 2).dtype(), f16);
  EXPECT_EQ(inner(half, half).dtype(), f16);
  EXPECT_EQ(vecdot(half, half).dtype(), f16);
  EXPECT_EQ(dot(half, ones({3})).dtype(), f32);
  // Sums of products of small integers are i32, as those of matmul are, and do not wrap.
  EXPECT_EQ(vecdot(full({3}, 100, i8), full({3}, 100, i8)).item<int>(), 30000);
  EXPECT_EQ(inner(full({3}, 100, i8), full({3}, 100, i8)).item<int>(), 30000);
  EXPECT_EQ(vecdot(mask, mask).to_vector<int>(), (std::vector<int>{3, 3, 3}));
  // A sum of halves is rounded once: 2049 is no f16, 2048 + 1 + 1 is.
  EXPECT_EQ(vecdot(tensor({2048.f, 1.f, 1.f}).cast(f16), ones({3}, f16)).item<float>(), 2050);
}

TEST(ShapeOps, AreViewsWhereTheyCanBe) {
  Tensor x = reshape(arange(24), {4, 6});
  const std::int64_t* data = x.data<std::int64_t>();
  EXPECT_EQ(split(x, 2)[1].data<std::int64_t>(), data + 12);
  EXPECT_EQ(unstack(x)[3].data<std::int64_t>(), data + 18);
  EXPECT_EQ(ravel(x).data<std::int64_t>(), data);
  EXPECT_EQ(x.T().T().data<std::int64_t>(), data);
  EXPECT_EQ(moveaxis(moveaxis(x, 0, 1), 0, 1).data<std::int64_t>(), data);
  EXPECT_EQ(atleast_3d(x).data<std::int64_t>(), data);
  EXPECT_EQ(rot90(x, 0).data<std::int64_t>(), data);
}

TEST(ShapeOps, MembersAreTheFunctions) {
  Tensor x = tensor({{1.75f, 2.f}, {3.f, 4.f}});
  EXPECT_EQ(to_string(x.T()), "[[1.75 3.  ]\n [2.   4.  ]]");
  EXPECT_EQ(to_string(x.cast(i32)), "[[1 2]\n [3 4]]");
  EXPECT_EQ(tensor(3).T().rank(), 0);
  EXPECT_CONTAINS(error_of([] { Tensor().T(); }), "shape_ops_test.cpp:");
}

TEST(ShapeOps, BroadcastShapes) {
  EXPECT_EQ(broadcast_shapes({{3, 1}, {4}, {}}).str(), "[3,4]");
  EXPECT_EQ(broadcast_shapes({}).str(), "[]");
  std::string error = error_of([] { broadcast_shapes({{3}, {4}}); });
  EXPECT_CONTAINS(error, "broadcast_shapes: sizes 3 and 4 of axis -1 do not broadcast");
  EXPECT_CONTAINS(error, "shape_ops_test.cpp:");
}

// --- traced

Tensor counted(const Shape& shape) { return reshape(arange(shape.element_count(), f32), shape) / 8; }

TEST(ShapeOps, OneTraceServesAllSizes) {
  auto moved = [] {
    return Program{[](Tensor x) {
      return std::vector<Tensor>{flip(x),
                                 flip(x, 1),
                                 fliplr(x),
                                 flipud(x),
                                 roll(x, 5),
                                 roll(x, -1, 0),
                                 roll(x, {x.dim(1), 2}, {0, 1}),
                                 rot90(x),
                                 rot90(x, 2),
                                 rot90(x, 3),
                                 moveaxis(x, 0, 1),
                                 swapaxes(x, 0, 1),
                                 matrix_transpose(x),
                                 x.T(),
                                 ravel(x),
                                 expand_dims(x, {0, -1}),
                                 atleast_3d(x)};
    }};
  };
  expect_same(moved, {counted({3, 4}), counted({5, 2}), counted({1, 1}), counted({0, 3}), counted({7, 9})});
  auto repeated = [] {
    return Program{[](Tensor x) {
      return std::vector<Tensor>{tile(x, {2, 3}),
                                 tile(x, x.shape()),
                                 tile(x, 2),
                                 tile(x, {2, 1, x.dim(0)}),
                                 repeat(x, 3),
                                 repeat(x, x.dim(1), 0),
                                 repeat(x, 2, -1),
                                 tile(expand_dims(x, {0, 1, 2, 3}), {1, 1, 1, 1, 2, 2}),
                                 broadcast_arrays({x, expand_dims(x, {0})})[0],
                                 hstack({x, x}),
                                 vstack({x, x[0]}),
                                 dstack({x, x}),
                                 column_stack({x, x})};
    }};
  };
  expect_same(repeated, {counted({3, 4}), counted({5, 2}), counted({1, 1}), counted({2, 9})});
  auto cut = [] {
    return Program{[](Tensor x) {
      std::vector<Tensor> out = split(x, 2, 1);
      for (const std::vector<Tensor>& more :
           {array_split(x, 3), split(x, {1, x.dim(0) - 1}), split(x, std::vector<Dim>{x.dim(1)}, 1)})
        out.insert(out.end(), more.begin(), more.end());
      return out;
    }};
  };
  expect_same(cut, {counted({3, 4}), counted({5, 2}), counted({1, 6}), counted({4, 0})});
}

TEST(ShapeOps, DiagonalsInOneTrace) {
  auto diagonals = [] {
    return Program{[](Tensor x) {
      return std::vector<Tensor>{tril(x),
                                 tril(x, 1),
                                 triu(x),
                                 triu(x, -1),
                                 diag(x),
                                 diag(x, 1),
                                 diag(x, -2),
                                 diagonal(x, {.offset = 1, .axis1 = 1, .axis2 = 0}),
                                 diagonal(tile(x, {2, 1, 1}), {.axis1 = 1, .axis2 = 2}),
                                 trace(x),
                                 trace(x, {.offset = -1}),
                                 diag(ravel(x)),
                                 diag(ravel(x), 2),
                                 diag(ravel(x), -1)};
    }};
  };
  expect_same(diagonals, {counted({3, 4}), counted({5, 2}), counted({1, 1}), counted({0, 3}), counted({6, 6})});
}

TEST(ShapeOps, ProductsInOneTrace) {
  auto products = [] {
    return Program{[](Tensor x) {
      Tensor row = x[0] + 1;
      return std::vector<Tensor>{kron(x, x),     kron(row, x),    outer(x, row),      outer(2, row),
                                 inner(x, row),  inner(x, x),     dot(x, x.T()),      dot(x, row),
                                 vdot(x, x),     tensordot(x, x), tensordot(x, x, 0), tensordot(x, x, {0}, {0}),
                                 vecdot(x, row), vecdot(x, x, 0)};
    }};
  };
  expect_same(products, {counted({3, 4}), counted({5, 2}), counted({1, 1}), counted({2, 7})});
  auto crossed = [] {
    return Program{[](Tensor x) { return std::vector<Tensor>{cross(x, x[0]), cross(x.T(), flip(x).T(), 0)}; }};
  };
  expect_same(crossed, {counted({4, 3}), counted({1, 3}), counted({7, 3})});
}

TEST(ShapeOps, OfSizesThatDependOnValues) {
  auto program = [] {
    return Program{[](Tensor x) {
      Tensor p = nonzero(x > 0.5f);  // [count, 1]
      Dim count = p.dim(0);
      return std::vector<Tensor>{eye(count),
                                 arange(1, count, 2),
                                 linspace(0, 1, count),
                                 full({count}, count),
                                 flip(p),
                                 roll(p, 1, 0),
                                 tile(p, {2, 2}),
                                 repeat(p, 2, 0),
                                 diag(ravel(p), 1),
                                 tril(outer(p, p)),
                                 diagonal(outer(p, p)),
                                 kron(p, p),
                                 dot(p.T(), p),
                                 vecdot(p, p, 0),
                                 tensordot(p, p),
                                 array_split(p, 2)[0],
                                 split(p, {1, count - 1})[1]};
    }};
  };
  expect_same(program, {tensor({1.f, 0.f, 2.f}), tensor({0.f, 1.f, 1.f, 1.f, 0.f}), tensor({1.f})});
  SKIP_WHEN_VERIFYING();
  Function f = function("f(x)", [](Tensor x) { return split(nonzero(x), 2)[0]; });
  EXPECT_CONTAINS(error_of([&] { f(ones({4})); }), "split cannot ask whether nonzero % 2 == 0");
}

TEST(ShapeOps, UnstackAsksForTheSize) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor total = zeros({});
    for (const Tensor& row : unstack(x)) total = total + sum(row) * 2;
    return total;
  });
  EXPECT_EQ(f(ones({2, 3})).item<float>(), 12);
  EXPECT_EQ(f(ones({2, 5})).item<float>(), 20);
  EXPECT_EQ(f.trace_count(), 1);
  on_retrace([](const RetraceEvent&) {});
  EXPECT_EQ(f(ones({4, 3})).item<float>(), 24);
  on_retrace({});
  EXPECT_EQ(f.trace_count(), 2);
}

// --- gradients

/// The gradient of a weighted sum of f(x), in f64, against central differences.
void expect_gradient(const char* what, const std::function<Tensor(Tensor)>& f, const Shape& shape) {
  Tensor x = sin(reshape(arange(shape.element_count(), f64) + 1, shape));
  auto target = [&](const Tensor& at) {
    Tensor out = f(at);
    return sum(ravel(out) * cos(arange(out.size(), f64)));
  };
  Tensor gradient;
  {
    GradientTape tape;
    tape.watch(x);
    gradient = tape.gradient(target(x), x);
  }
  ASSERT_TRUE(gradient.defined()) << what;
  std::vector<double> values = x.to_vector<double>(), found = gradient.to_vector<double>();
  ASSERT_EQ(values.size(), found.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto moved = [&](double by) {
      std::vector<double> there = values;
      there[i] += by;
      return target(tensor(there, shape)).item<double>();
    };
    EXPECT_NEAR(found[i], (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-7) << what << ", element " << i;
  }
}

TEST(ShapeOps, Gradients) {
  struct Differentiated {
    const char* what;
    std::function<Tensor(Tensor)> f;
    Shape shape = {3, 4};
  };
  const Tensor other = cos(reshape(arange(12, f64), {3, 4}));
  const std::vector<Differentiated> all{
      {"flip", [](Tensor x) { return flip(x, 1); }},
      {"roll", [](Tensor x) { return roll(x, 2, 1); }},
      {"roll of all", [](Tensor x) { return roll(x, 5); }},
      {"rot90", [](Tensor x) { return rot90(x); }},
      {"moveaxis", [](Tensor x) { return moveaxis(x, 0, 1); }},
      {"T", [](Tensor x) { return x.T(); }},
      {"cast", [](Tensor x) { return square(x).cast(f64); }},
      {"tile",
       [](Tensor x) {
         return tile(x, {2, 1, 2});
       }},
      {"repeat", [](Tensor x) { return repeat(x, 2, 0); }},
      {"split", [](Tensor x) { return split(x, 2, 1)[1]; }},
      {"array_split", [](Tensor x) { return array_split(x, 3, 1)[0]; }},
      {"unstack", [](Tensor x) { return unstack(x)[2]; }},
      {"hstack",
       [](Tensor x) {
         return hstack({x, square(x)});
       }},
      {"dstack",
       [](Tensor x) {
         return dstack({x, square(x)});
       }},
      {"tril", [](Tensor x) { return tril(x, 1); }},
      {"triu", [](Tensor x) { return triu(x); }},
      {"diag of a vector", [](Tensor x) { return diag(x, 1); }, {4}},
      {"diag below", [](Tensor x) { return diag(x, -2); }, {3}},
      {"diagonal", [](Tensor x) { return diagonal(x, {.offset = 1}); }},
      {"diagonal of others", [](Tensor x) { return diagonal(x, {.axis1 = 2, .axis2 = 0}); }, {2, 3, 4}},
      {"trace", [](Tensor x) { return trace(x); }},
      {"broadcast_arrays",
       [](Tensor x) {
         return broadcast_arrays({x, zeros({2, 1, 1})})[0];
       }},
      {"kron", [&](Tensor x) { return kron(x, other); }},
      {"kron on the right", [&](Tensor x) { return kron(other, x); }, {2}},
      {"outer", [&](Tensor x) { return outer(x, other[0]); }},
      {"inner", [&](Tensor x) { return inner(x, other); }},
      {"dot", [&](Tensor x) { return dot(other, x.T()); }},
      {"vdot", [&](Tensor x) { return vdot(x, x); }},
      {"tensordot", [&](Tensor x) { return tensordot(x, other, {0}, {0}); }},
      {"vecdot", [&](Tensor x) { return vecdot(x, other[0]); }},
      {"cross", [&](Tensor x) { return cross(x, flip(x, 1), 0); }}};
  for (const Differentiated& one : all) expect_gradient(one.what, one.f, one.shape);
}

TEST(ShapeOps, GradientsOfTracedFunctions) {
  auto program = [] {
    return Program{[](Tensor x) {
      return std::vector<Tensor>{roll(x, 1, 1) * x, tile(x, {2, 1}), repeat(square(x), 2, 1),
                                 tril(x) * x,       diagonal(x),     diag(ravel(x), 1),
                                 kron(x, x),        inner(x, x),     array_split(x, 2)[0],
                                 tensordot(x, x, 2)};
    }};
  };
  expect_same_gradients(program, {counted({3, 4}), counted({2, 2}), counted({5, 1})}, true);
}

// --- errors

TEST(ShapeOps, WrongCallsSayWhatIsWrong) {
  Tensor x = zeros({3, 4}), v = zeros({5});
  struct Wrong {
    std::function<void()> call;
    const char* text;
  };
  const std::vector<Wrong> all{{[&] { flip(x, 2); }, "flip: reverse: axis 2 is out of range for rank 2"},
                               {[&] { flip(Tensor()); }, "flip: an operand is an undefined tensor"},
                               {[&] { fliplr(v); }, "fliplr: the tensor has rank 1, not 2 or more"},
                               {[&] { flipud(tensor(1)); }, "flipud: the tensor has rank 0, not 1 or more"},
                               {[&] { roll(x, 1, 2); }, "roll: axis 2 is out of range for rank 2"},
                               {[&] {
                                  roll(x, {1, 2}, {0});
                                },
                                "roll: 2 shifts for 1 axes"},
                               {[&] { rot90(v); }, "rot90: the tensor has rank 1, not 2 or more"},
                               {[&] {
                                  rot90(x, 1, {0, 0});
                                },
                                "rot90: axis 0 is named twice"},
                               {[&] { rot90(x, 1, {0}); }, "rot90: 1 axes are named"},
                               {[&] {
                                  moveaxis(x, {0, 1}, {0});
                                },
                                "moveaxis: 2 axes for 1 places"},
                               {[&] { moveaxis(x, 3, 0); }, "moveaxis: axis 3 is out of range"},
                               {[&] { swapaxes(x, 0, 2); }, "swapaxes: axis 2 is out of range"},
                               {[&] { matrix_transpose(v); }, "matrix_transpose: the tensor has rank 1, not 2 or more"},
                               {[&] {
                                  permute_dims(x, {0, 0});
                                },
                                "permute_dims: transpose: axis 0 is named twice"},
                               {[&] {
                                  expand_dims(x, {0, 4});
                                },
                                "expand_dims: axis 4 is out of range for rank 4"},
                               {[&] {
                                  expand_dims(x, {1, 1});
                                },
                                "expand_dims: axis 1 is named twice"},
                               {[&] { repeat(x, -1, 0); }, "repeat: size -1 is negative"},
                               {[&] { repeat(x, 2, 5); }, "repeat: axis 5 is out of range"},
                               {[&] { split(v, 2); }, "split: axis 0 of size 5 has no 2 parts of one size"},
                               {[&] { split(v, 0); }, "split: 0 parts"},
                               {[&] {
                                  split(v, {2, 2});
                                },
                                "split: the sizes of the parts add up to 4, and axis 0 has 5 elements"},
                               {[&] {
                                  split(v, {-1, 6});
                                },
                                "split: size -1 is negative"},
                               {[&] { array_split(v, -1); }, "array_split: -1 parts"},
                               {[&] { unstack(tensor(1)); }, "unstack: axis 0 is out of range"},
                               {[&] { hstack({}); }, "hstack: there are no tensors to put together"},
                               {[&] {
                                  vstack({v, zeros({4})});
                                },
                                "vstack: concat: sizes of axis 1 in parts 0 and 1, 5 and 4 differ"},
                               {[&] { tril(v); }, "tril: the tensor has rank 1, not 2 or more"},
                               {[&] {
                                  diag(zeros({2, 2, 2}));
                                },
                                "diag: the tensor has rank 3, not 1 or 2"},
                               {[&] { diagonal(x, {.axis1 = 1, .axis2 = 1}); }, "diagonal: axis 1 is named twice"},
                               {[&] { trace(v); }, "trace: the tensor has rank 1, not 2 or more"},
                               {[&] { inner(x, v); }, "inner: matmul: inner sizes 4 and 5 do not agree"},
                               {[&] { dot(x, x); }, "dot: matmul: inner sizes 4 and 3 do not agree"},
                               {[&] { vdot(x, v); }, "vdot: matmul: inner sizes 12 and 5 do not agree"},
                               {[&] { tensordot(x, x, 3); }, "tensordot: 3 axes of ranks 2 and 2"},
                               {[&] {
                                  tensordot(x, x, {0, 1}, {0});
                                },
                                "tensordot: 2 axes of a for 1 of b"},
                               {[&] { vecdot(x, v); }, "vecdot: axis 1 of a has 4 elements, axis 0 of b has 5"},
                               {[&] { cross(x, x); }, "cross: axis -1 of a has 4 elements, not 3"},
                               {[&] {
                                  kron(zeros({1, 1, 1, 1, 1}), v);
                                },
                                "kron: the tensors have 5 axes"},
                               {[&] { outer(Tensor(), v); }, "outer: an operand is an undefined tensor"}};
  for (const Wrong& one : all) {
    std::string error = error_of(one.call);
    EXPECT_CONTAINS(error, one.text);
    EXPECT_CONTAINS(error, "shape_ops_test.cpp:");
  }
  EXPECT_CONTAINS(error_of([&] { vecdot(x, v); }), "with a f32[3,4], b f32[5]");
  EXPECT_CONTAINS(error_of([&] { tensordot(x, x, {0, 1}, {1, 0}); }), "axis 0 of a has 3 elements, axis 1 of b has 4");
  EXPECT_CONTAINS(error_of([&] { tile(x, {2, -1}); }), "-1");
}

TEST(ShapeOps, ChecksOfTracedCodeAreMadeInEveryCall) {
  Function f = function("f(x)", [](Tensor x) { return split(x, 2)[1]; });
  EXPECT_EQ(f(tensor({1.f, 2.f, 3.f, 4.f})).to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_CONTAINS(error_of([&] { f(ones({5})); }), "split: axis 0 of size 5 has no 2 parts of one size");
  EXPECT_EQ(f(tensor({1.f, 2.f})).to_vector<float>(), (std::vector<float>{2}));
  EXPECT_EQ(f.trace_count(), 1);
}

}  // namespace

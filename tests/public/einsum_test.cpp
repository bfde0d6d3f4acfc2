// einsum: values of NumPy, every form of equation, one trace for all sizes, gradients, errors.
#include <algorithm>
#include <map>

#include "composites.h"

namespace stet {
namespace {

class Einsum : public ::testing::Test {
 protected:
  Tensor row_of_a(int row) const { return a[row]; }
  static Tensor q() { return reshape(cast(arange(24) % 5 - 2, f64), {2, 3, 4}); }

  const Tensor a = counting({2, 3}, 1), b = counting({3, 4}, -3), s = counting({3, 3});
};

TEST_F(Einsum, OneOperand) {
  expect_values(einsum("ba", {a}), {1, 4, 2, 5, 3, 6}, {3, 2});
  expect_values(einsum("ij->", {a}), {21}, {});
  expect_values(einsum("ij->j", {a}), {5, 7, 9}, {3});
  expect_values(einsum("ii", {s}), {12}, {});
  expect_values(einsum("ii->i", {s}), {0, 4, 8}, {3});
  expect_values(einsum("iij->j", {counting({3, 3, 2})}), {24, 27}, {2});
  expect_values(einsum("iii->i", {counting({2, 2, 2})}), {0, 7}, {2});
  expect_values(einsum("->", {tensor(3.)}), {3}, {});
  expect_values(einsum("...i->...", {a}), {6, 15}, {2});
  expect_values(einsum("ij->ij", {a}), numbers_of(a), {2, 3});
}

TEST_F(Einsum, TwoOperands) {
  const Numbers product{14, 20, 26, 32, 23, 38, 53, 68};
  expect_values(einsum("ij,jk->ik", {a, b}), product, {2, 4});
  expect_values(einsum(" i j , j k -> i k ", {a, b}), product, {2, 4});
  expect_values(einsum("ij,jk", {a, b}), product, {2, 4});
  expect_values(einsum("ij,jk->ki", {a, b}), {14, 23, 20, 38, 26, 53, 32, 68}, {4, 2});
  expect_values(einsum("ji,jk->ik", {transpose(a), b}), product, {2, 4});
  expect_values(einsum("ij,kj->ik", {a, transpose(b)}), product, {2, 4});
  expect_values(einsum("i,i", {row_of_a(0), row_of_a(1)}), {32}, {});
  expect_values(einsum("i,j->ij", {row_of_a(0), row_of_a(1)}), {4, 5, 6, 8, 10, 12, 12, 15, 18}, {3, 3});
  expect_values(einsum("ij,ij->i", {a, a * 2}), {28, 154}, {2});
  expect_values(einsum("ij,ij->ij", {a, a}), {1, 4, 9, 16, 25, 36}, {2, 3});
  expect_values(einsum("ij,j->i", {a, row_of_a(0)}), {14, 32}, {2});
  expect_values(einsum("j,ij->i", {row_of_a(0), a}), {14, 32}, {2});
  expect_values(einsum("ij,k->i", {a, b[0]}), {-36, -90}, {2});
  expect_values(einsum(",ij->ij", {tensor(3.), a}), {3, 6, 9, 12, 15, 18}, {2, 3});
  const Numbers scores{4, -4, -7, -3, 8, -1, -5, 0, 10, 10, -1, -2, 0, 8, 6, -5, 2, 4};
  expect_values(einsum("bqd,bkd->bqk", {q(), q() + 1}), scores, {2, 3, 3});
  expect_values(einsum("bqd,bkd->bkq", {q(), q() + 1}),
                {4, -3, -5, -4, 8, 0, -7, -1, 10, 10, 0, -5, -1, 8, 2, -2, 6, 4}, {2, 3, 3});
  expect_values(einsum("qbd,bdk->bqk", {transpose(q(), {1, 0, 2}), transpose(q() + 1, {0, 2, 1})}), scores, {2, 3, 3});
  // Several letters are summed, in the same order or another; a letter of both stays; one operand's are summed alone.
  expect_values(einsum("ijk,jki->", {q(), transpose(q(), {1, 2, 0})}), {46}, {});
  expect_values(einsum("ijk,kjl->il", {q(), counting({4, 3, 2})}), {-44, -47, 50, 51}, {2, 2});
  expect_values(einsum("iji,jk->k", {counting({2, 3, 2}), b}), {65, 98, 131, 164}, {4});
  expect_values(einsum("aab,b->a", {counting({3, 3, 2}), tensor({1., 4.})}), {4, 44, 84}, {3});
}

TEST_F(Einsum, Ellipsis) {
  expect_values(einsum("...ij,jk->...ik", {q(), counting({4, 2})}), {4, 2, -8, -9, -10, -10, -2, -1, 16, 18, 4, 2},
                {2, 3, 2});
  expect_values(einsum("...ij,...jk->...ik", {q(), counting({2, 4, 3})}),
                {6, 4, 2, -12, -13, -14, -15, -15, -15, 9, 10, 11, 48, 50, 52, -18, -20, -22}, {2, 3, 3});
  expect_values(einsum("B...a,a...->...B", {q(), counting({4, 3})}), {6, -3, -13, 26, -15, 2}, {3, 2});
  // Axes of size 1, and axes that one operand has more.
  Tensor scale = tensor({{{1.}}, {{4.}}}), out = einsum("i...,j...->ij...", {q(), scale});
  EXPECT_EQ(out.shape().sizes(), (Sizes{2, 2, 3, 4}));
  EXPECT_EQ(numbers_of(out[{range(0, 2), 1}]), numbers_of(q() * 4));
  expect_values(einsum("...,...", {a, row_of_a(0)}), {1, 4, 9, 4, 10, 18}, {2, 3});
  expect_values(einsum("...ij,...jk->...ik", {a, b}), {14, 20, 26, 32, 23, 38, 53, 68}, {2, 4});
}

TEST_F(Einsum, ManyOperands) {
  expect_values(einsum("ij,jk,kl->il", {a, b, counting({4, 2})}), {336, 428, 696, 878}, {2, 2});
  expect_values(einsum("ij,jk,k->i", {a, b, counting({4})}), {168, 348}, {2});
  expect_values(einsum("ij,jk,ki->", {a, b, counting({4, 2})}), {1214}, {});
  expect_values(einsum("a,b,c->abc", {row_of_a(0), row_of_a(1), row_of_a(0)}),
                {4, 8, 12, 5, 10, 15, 6, 12, 18, 8, 16, 24, 10, 20, 30, 12, 24, 36, 12, 24, 36, 15, 30, 45, 18, 36, 54},
                {3, 3, 3});
  expect_values(einsum("i,i,i,i->", {row_of_a(0), row_of_a(0), row_of_a(0), row_of_a(0)}), {98}, {});
}

/// By the definition: a loop over all letters.
Numbers by_definition(const std::string& left, const std::string& right, const std::string& result, const Tensor& x,
                      const Tensor& y, const std::map<char, std::int64_t>& sizes) {
  Numbers one = numbers_of(x), two = numbers_of(y);
  auto at = [](const std::string& letters, const std::map<char, std::int64_t>& extents,
               const std::map<char, std::int64_t>& where) {
    std::int64_t flat = 0;
    for (char c : letters) flat = flat * extents.at(c) + where.at(c);
    return static_cast<std::size_t>(flat);
  };
  std::int64_t count = 1, all = 1;
  for (char c : result) count *= sizes.at(c);
  for (auto [c, size] : sizes) all *= size;
  Numbers out(static_cast<std::size_t>(count), 0);
  for (std::int64_t n = 0; n < all; ++n) {
    std::map<char, std::int64_t> where;
    std::int64_t rest = n;
    for (auto [c, size] : sizes) where[c] = rest % size, rest /= size;
    out[at(result, sizes, where)] += one[at(left, sizes, where)] * two[at(right, sizes, where)];
  }
  return out;
}

TEST_F(Einsum, EveryOrderOfLettersAgainstTheDefinition) {
  const std::map<char, std::int64_t> sizes{{'b', 2}, {'i', 3}, {'k', 4}, {'l', 2}, {'n', 5}};
  auto sizes_of = [&](const std::string& letters) {
    Sizes out;
    for (char c : letters) out.push_back(sizes.at(c));
    return out;
  };
  std::string left = "bikl", result = "bin";
  do {
    std::string right = "bkln";
    do {
      Tensor x = uneven(sizes_of(left)), y = uneven(sizes_of(right), 7);
      const std::string equation = left + "," + right + "->" + result;
      SCOPED_TRACE(equation);
      expect_values(einsum(equation, {x, y}), by_definition(left, right, result, x, y, sizes), sizes_of(result));
      std::next_permutation(result.begin(), result.end());
    } while (std::next_permutation(right.begin(), right.end()) && !::testing::Test::HasFailure());
  } while (std::next_permutation(left.begin(), left.end()) && !::testing::Test::HasFailure());
}

TEST_F(Einsum, MoreBatchLettersThanAProductHasAxes) {
  Tensor x = uneven({1, 2, 1, 2, 1, 2, 1, 3}), y = uneven({1, 2, 1, 2, 1, 2, 1, 3}, 5);
  expect_values(einsum("abcdefgk,abcdefgk->abcdefg", {x, y}), numbers_of(sum(x * y, -1)), {1, 2, 1, 2, 1, 2, 1});
  expect_values(einsum("abcdefgh,abcdefgh->abcdefgh", {x, y}), numbers_of(x * y), {1, 2, 1, 2, 1, 2, 1, 3});
  Tensor z = uneven({1, 2, 1, 2, 1, 2, 3}, 5);
  expect_values(einsum("abcdefgk,abcdefk->abcdefg", {x, z}),
                numbers_of(sum(x * reshape(z, {1, 2, 1, 2, 1, 2, 1, 3}), -1)), {1, 2, 1, 2, 1, 2, 1});
  expect_values(einsum("abcdefgk,kabcdefg->gfedcba", {x, transpose(y, {7, 0, 1, 2, 3, 4, 5, 6})}),
                numbers_of(transpose(sum(x * y, -1))), {1, 2, 1, 2, 1, 2, 1});
  Tensor seven = uneven({1, 2, 1, 2, 1, 2, 3}), eight = uneven({1, 2, 1, 2, 1, 2, 3, 2}, 5);
  expect_values(einsum("abcdefk,abcdefkn->abcdefn", {seven, eight}),
                numbers_of(sum(reshape(seven, {1, 2, 1, 2, 1, 2, 3, 1}) * eight, -2)), {1, 2, 1, 2, 1, 2, 2});
}

TEST_F(Einsum, EveryType) {
  for (DType dtype : {u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    Tensor x = cast(abs(b), dtype), out = einsum("ij,kj->ik", {x, x});
    EXPECT_EQ(out.dtype(), dtype == u8 || dtype == i8 || dtype == i16 ? i32 : dtype);
    expect_values(out, {14, 10, 34, 10, 30, 70, 34, 70, 174}, {3, 3}, 0);
  }
  Tensor big = cast(full({2}, 100), i8);
  expect_values(einsum("i,i->i", {big, big}), {10000, 10000}, {2});
  EXPECT_EQ(einsum("i,i->i", {tensor({1, 2}), tensor({1.f, 2.f})}).dtype(), f32);
}

TEST_F(Einsum, EmptyAndSizeOne) {
  expect_values(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 3})}), {0, 0, 0, 0, 0, 0}, {2, 3});
  expect_values(einsum("ij,jk->ik", {zeros({0, 2}), zeros({2, 3})}), {}, {0, 3});
  expect_values(einsum("ii->i", {zeros({0, 0})}), {}, {0});
  expect_values(einsum("ii", {zeros({0, 0})}), {0}, {});
  expect_values(einsum("ij,jk->ik", {tensor({{3.}}), tensor({{4.}})}), {12}, {1, 1});
}

TEST_F(Einsum, OneTraceForAllSizes) {
  const char* equations[] = {"bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bhqd,bhkd->bkqh",    "bhqd,bhkd->hq",
                             "bhqd,bhkd->",     "bhqd,bhkd",       "...qd,...kd->...qk", "bhqd,bhqd->bh"};
  for (const char* equation : equations) {
    SCOPED_TRACE(equation);
    const bool same = std::string(equation) == "bhqd,bhqd->bh", swapped = std::string(equation) == "bqhd,bkhd->bhqk";
    std::vector<Tensors> calls;
    for (auto [first, second, rows, others, depth] : std::vector<std::array<int, 5>>{
             {2, 3, 4, 5, 6}, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {3, 1, 0, 2, 7}, {1, 2, 17, 33, 16}}) {
      if (same) others = rows;
      Sizes left{first, second, rows, depth}, right{first, second, others, depth};
      if (swapped) left = {first, rows, second, depth}, right = {first, others, second, depth};
      calls.push_back({uneven(left), uneven(right, 11)});
    }
    expect_one_trace([equation](Tensors t) { return Tensors{einsum(equation, t)}; }, calls);
  }
  expect_one_trace(
      [](Tensors t) {
        return Tensors{einsum("ij,jk,kl,li->i", {t[0], t[1], t[2], t[3]}), einsum("iji,kj->k", {t[4], t[5]})};
      },
      {{uneven({2, 3}), uneven({3, 4}), uneven({4, 5}), uneven({5, 2}), uneven({2, 3, 2}), uneven({4, 3})},
       {uneven({1, 1}), uneven({1, 1}), uneven({1, 1}), uneven({1, 1}), uneven({1, 1, 1}), uneven({1, 1})},
       {uneven({7, 2}), uneven({2, 1}), uneven({1, 3}), uneven({3, 7}), uneven({0, 5, 0}), uneven({2, 5})}});
}

TEST_F(Einsum, Gradients) {
  auto gradient = [](const char* equation, const Tensors& at) {
    SCOPED_TRACE(equation);
    expect_gradient([&](Tensors t) { return einsum(equation, t); }, at);
  };
  gradient("bqd,bkd->bkq", {uneven({2, 2, 3}), uneven({2, 3, 3}, 4)});
  gradient("ij,jk,kl->il", {uneven({2, 3}), uneven({3, 2}, 4), uneven({2, 2}, 8)});
  gradient("iij,j->i", {uneven({2, 2, 3}), uneven({3}, 4)});
  gradient("...i,i...->...", {uneven({2, 3}), uneven({3, 2}, 4)});
  gradient("ij,ij->i", {uneven({2, 3}), uneven({2, 3}, 4)});
  gradient("i,j->ji", {uneven({2}), uneven({3}, 4)});
  gradient("ij->", {uneven({2, 3})});
  gradient("ijk,kjl->il", {uneven({2, 3, 2}), uneven({2, 3, 2}, 4)});
}

TEST_F(Einsum, Errors) {
  auto error = [](const char* equation, const Tensors& operands) {
    return error_of([&] { einsum(equation, operands); });
  };
  std::string text = error("ij,jk->ik", {a, zeros({4, 5}, f64)});
  EXPECT_CONTAINS(text, "einsum: letter 'j' of the equation 'ij,jk->ik' has size 3 in operand 0 and 4 in operand 1");
  EXPECT_CONTAINS(text, "with operand 0 f64[2,3], operand 1 f64[4,5]");
  EXPECT_CONTAINS(text, "einsum_test.cpp");
  EXPECT_CONTAINS(error("ii", {a}), "letter 'i' of the equation 'ii' has size 2 in operand 0 and 3 in operand 0");
  EXPECT_CONTAINS(error("ij,jk->ik", {a}), "the equation 'ij,jk->ik' has 2 operands, 1 are given");
  EXPECT_CONTAINS(error("ij", {}), "the equation 'ij' has 1 operands, 0 are given");
  EXPECT_CONTAINS(error("i->i", {a}), "operand 0 has rank 2, and 'i' of the equation 'i->i' names 1 axes");
  EXPECT_CONTAINS(error("ijk...", {a}),
                  "operand 0 has rank 2, and 'ijk...' of the equation 'ijk...' names 3 axes and more");
  EXPECT_CONTAINS(error("ij->iz", {a}), "letter 'z' of the result of the equation 'ij->iz' is in no operand");
  EXPECT_CONTAINS(error("ij->ii", {a}), "letter 'i' stands twice in the result of the equation 'ij->ii'");
  EXPECT_CONTAINS(error("i1->i", {a}), "'1' in 'i1' of the equation 'i1->i' is no letter");
  EXPECT_CONTAINS(error("i..->i", {a}), "'.' in 'i..' of the equation 'i..->i' is no letter");
  EXPECT_CONTAINS(error("......", {a}), "'.' in '......' of the equation '......' is no letter");
  EXPECT_CONTAINS(error("ij->i->j", {a}), "'-' in 'i->j' of the equation 'ij->i->j' is no letter");
  EXPECT_CONTAINS(error("...j->j", {a}), "the result of the equation '...j->j' has no \"...\"");
  EXPECT_CONTAINS(error("ij->ij", {a > 0}), "einsum does not take bool");
  EXPECT_CONTAINS(error("ij", {Tensor()}), "operand 0 is an undefined tensor");
  EXPECT_CONTAINS(error("...i,...i->...i", {zeros({2, 3}), zeros({4, 3})}), "einsum: ");
  EXPECT_CONTAINS(error("abcde,fghij->abcdefghij", {uneven({1, 1, 1, 1, 1}), uneven({1, 1, 1, 1, 1})}),
                  "a product in the equation 'abcde,fghij->abcdefghij' has 10 axes, more than 8");
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return einsum("ij,jk->ik", {x, y}); });
  f(a, b);
  EXPECT_CONTAINS(error_of([&] { f(a, a); }), "einsum: letter 'j' of the equation 'ij,jk->ik' has size 3");
}

}  // namespace
}  // namespace stet

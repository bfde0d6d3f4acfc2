// Running products: of matrices and of affine maps by associative_scan, in as few turns as the length has binary
// digits, against a plain loop; and a scan that says the same.
#include "algorithms.h"

namespace stet {
namespace {

/// Products x[0], x[0] x[1], x[0] x[1] x[2] … of k by k matrices.
Reals plain_products(const Reals& x, std::size_t k) {
  Reals out = x;
  for (std::size_t from = k * k; from < x.size(); from += k * k)
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < k; ++j) {
        double sum = 0;
        for (std::size_t l = 0; l < k; ++l) sum += out[from - k * k + i * k + l] * x[from + l * k + j];
        out[from + i * k + j] = sum;
      }
  return out;
}

/// Near the identity, so that products of many neither vanish nor explode; they do not commute.
Reals matrices(std::int64_t n, std::int64_t k) {
  Reals out = wave(n * k * k, 0.2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto inside = static_cast<std::int64_t>(i) % (k * k);
    out[i] = 0.1 * out[i] + (inside / k == inside % k ? 1 : 0);
  }
  return out;
}

TEST(AlgorithmsProducts, OfMatrices) {
  auto products = [](Tensor x) { return associative_scan([](Tensor a, Tensor b) { return matmul(a, b); }, x); };
  // In reverse the left operand of a combination is what came so far: what stands further on.
  auto from_the_end = [](Tensor x) {
    return associative_scan([](Tensor a, Tensor b) { return matmul(a, b); }, x, {.reverse = true});
  };
  auto turn_by_turn = [](Tensor x) {
    return scan(
               [](Tensor sofar, Tensor next) {
                 Tensor product = matmul(sofar, next);
                 return std::pair(product, product);
               },
               eye(x.dim(1), {.dtype = f64}), x)
        .second;
  };
  Function traced = function("products(x)", products), reversed = function("from_the_end(x)", from_the_end),
           slow = function("turn_by_turn(x)", turn_by_turn);
  for (std::int64_t n : {3, 1, 2, 8, 9, 100, 0})
    for (std::int64_t k : {3, 1, 5}) {
      SCOPED_TRACE(testing::Message() << n << " matrices of " << k);
      Reals values = matrices(n, k), expected = plain_products(values, static_cast<std::size_t>(k));
      Tensor x = shaped(values, {n, k, k});
      expect_close(traced(x), expected, 1e-12, "traced");
      expect_bits(traced(x), products(x), "eager");
      expect_close(slow(x), expected, 1e-12, "scan");
      expect_bits(slow(x), turn_by_turn(x), "eager scan");
      // x[n - 1] … x[i + 1] x[i].
      Tensor back = reversed(x);
      expect_bits(back, from_the_end(x), "from the end");
      if (n > 0) {
        expect_agree(back[0], traced(flip(x, {0}))[n - 1], 1e-12, "all of them");
        expect_agree(back[n - 1], x[n - 1], 1e-15, "the last");
        expect_agree(matmul(n > 1 ? back[1] : eye(k, {.dtype = f64}), x[0]), back[0], 1e-12, "one more");
      }
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(reversed.trace_count(), 1) << reversed.explain();
  EXPECT_EQ(slow.trace_count(), 1) << slow.explain();
}

TEST(AlgorithmsProducts, GradientsOfProductsOfMatrices) {
  auto slope = [](Tensor x, Tensor weights) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(sum(weights * associative_scan([](Tensor a, Tensor b) { return matmul(a, b); }, x)), x);
  };
  Function traced = function("slope(x, weights)", slope);
  for (std::int64_t n : {4, 1, 7, 0}) {
    SCOPED_TRACE(n);
    Reals values = matrices(n, 2), weights = wave(n * 4, 1);
    auto plain = [&](const Reals& x) {
      Reals all = plain_products(x, 2);
      double out = 0;
      for (std::size_t i = 0; i < all.size(); ++i) out += all[i] * weights[i];
      return out;
    };
    Reals expected = differences(plain, values);
    Tensor x = shaped(values, {n, 2, 2}), w = shaped(weights, {n, 2, 2});
    expect_close(slope(x, w), expected, 1e-9, "eager");
    expect_close(traced(x, w), expected, 1e-9, "traced");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

struct Line {  // x -> a x + b
  Tensor a, b;
  STET_FIELDS(a, b)
};

/// h = a h + b, the recurrence of state space models, for all steps at once.
TEST(AlgorithmsProducts, ALinearRecurrence) {
  auto states = [](Tensor a, Tensor b, Tensor first) {
    Line all = associative_scan(
        [](Line x, Line then) {
          return Line{then.a * x.a, then.a * x.b + then.b};
        },
        Line{a, b});
    return all.a * first + all.b;
  };
  auto slopes = [&](Tensor a, Tensor b, Tensor first) {
    GradientTape tape;
    tape.watch(a), tape.watch(b), tape.watch(first);
    Tensor h = states(a, b, first);
    std::vector<Tensor> d = tape.gradient(sum(h * h), {a, b, first});
    return std::tuple(h, d[0], d[1], d[2]);
  };
  Function traced = function("slopes(a, b, first)", slopes);
  for (std::int64_t n : {5, 1, 64, 129})
    for (std::int64_t m : {2, 1}) {
      SCOPED_TRACE(testing::Message() << n << " steps of " << m);
      const std::size_t width = static_cast<std::size_t>(m), count = static_cast<std::size_t>(n * m);
      Reals a = wave(n * m, 0.5), b = wave(n * m, 1.5), first = wave(m, 3), h(count), da(count), db(count), d(width, 0);
      for (double& v : a) v *= 0.6;
      for (std::size_t i = 0; i < count; ++i) h[i] = a[i] * (i < width ? first[i] : h[i - width]) + b[i];
      for (std::size_t i = count; i-- > 0;) {
        double& back = d[i % width];  // of what follows, by h[i]
        back += 2 * h[i];
        db[i] = back;
        da[i] = back * (i < width ? first[i] : h[i - width]);
        back *= a[i];
      }
      for (bool eager : {true, false}) {
        Tensor x = shaped(a, {n, m}), y = shaped(b, {n, m}), z = tensor(first);
        auto [got, by_a, by_b, by_first] = eager ? slopes(x, y, z) : traced(x, y, z);
        expect_close(got, h, 1e-12, "states");
        expect_close(by_a, da, 1e-11, "by a");
        expect_close(by_b, db, 1e-11, "by b");
        expect_close(by_first, d, 1e-11, "by the first state");
      }
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet

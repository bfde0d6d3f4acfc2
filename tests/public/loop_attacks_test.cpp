// Loops where features meet: host code, tapes inside and outside, forks, derivatives of every kind, counts of every
// kind, values that are handed through. What runs turn by turn eagerly and what is traced as one op gives the same
// bits (gradients: but for the order of sums), at several lengths, none and one among them, in one trace.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Tensors = std::vector<Tensor>;
using Code = std::function<Tensor(const Tensor&)>;

Tensor waves(std::int64_t n) { return sin(cast(arange(n), f64) * 0.9 + 0.2); }
const std::vector<std::int64_t> lengths = {6, 3, 1, 0};

/// Equal bits, but any NaN equals any NaN; with a tolerance, as near as sums in another order are.
void expect_same(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.dtype(), expected.dtype());
  ASSERT_EQ(got.shape().sizes(), expected.shape().sizes());
  std::vector<double> a = cast(got, f64).to_vector<double>(), b = cast(expected, f64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    EXPECT_LE(std::abs(a[i] - b[i]), tolerance * (1 + std::abs(b[i])))
        << "element " << i << " is " << a[i] << ", eagerly " << b[i];
  }
}

/// Code run eagerly and traced, from the same seed, on waves of all the lengths. `prepare` sets what it captures.
void check(
    const char* name, const Code& code, double tolerance = 0, const std::vector<std::int64_t>& sizes = lengths,
    const std::function<void()>& prepare = [] {}) {
  SCOPED_TRACE(name);
  Function f = function("f(x)", [&](Tensor x) { return code(x); });
  for (std::int64_t n : sizes) {
    SCOPED_TRACE(n);
    Tensor x = waves(n);
    prepare();
    random::seed(5);
    Tensor eager = code(x), next = random::uniform({2});
    prepare();
    random::seed(5);
    Tensor traced = f(x), then = random::uniform({2});
    expect_same(traced, eager, tolerance);
    EXPECT_EQ(then.to_vector<float>(), next.to_vector<float>()) << "what is drawn after it";
  }
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

/// The gradient of the sum of what code gives; zeros where that does not depend on x, as second ones may not.
Code gradient_of(const Code& code) {
  return [code](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    Tensor d = tape.gradient(sum(code(x)), x);
    return d.defined() ? d : zeros_like(x);
  };
}
/// Code, its gradient, and the gradient of that one, traced as a whole and as a call under tapes. What several turns
/// add to a gradient may be added in another order.
void check_orders(const char* name, const Code& code, const std::vector<std::int64_t>& sizes = lengths) {
  check(name, code, 0, sizes);
  const Code first = gradient_of(code), second = gradient_of(first);
  check((std::string(name) + ", gradient").c_str(), first, 1e-14, sizes);
  check((std::string(name) + ", second").c_str(), second, 1e-13, sizes);
  Function f = function("f(x)", [&](Tensor x) { return code(x); });
  Function d = function("d(x)", [&](Tensor x) { return first(x); });
  struct Way {
    const char* name;
    Code called;
    const Code& expected;
  };
  const Way ways[] = {{"called under a tape", gradient_of([&](const Tensor& x) { return f(x); }), first},
                      {"called under two", gradient_of(gradient_of([&](const Tensor& x) { return f(x); })), second},
                      {"a gradient called under a tape", gradient_of([&](const Tensor& x) { return d(x); }), second}};
  for (const Way& way : ways)
    for (std::int64_t n : sizes) {
      SCOPED_TRACE(std::string(name) + ", " + way.name + ", " + std::to_string(n));
      random::seed(5);
      Tensor eager = way.expected(waves(n));
      random::seed(5);
      expect_same(way.called(waves(n)), eager, 1e-13);
    }
}

std::pair<Tensor, Tensor> step(const Tensor& c, const Tensor& v) { return {sin(c) + v * c, c * v}; }
Tensor number(double value) { return full({}, value, f64); }
Tensor drawn() { return random::uniform({}, {.dtype = f64}); }

// --- what is handed through

TEST(LoopAttacks, ValuesThatAreHandedThrough) {
  check_orders("an element becomes the state", [](const Tensor& x) {
    auto [c, y] = scan([](Tensor c, Tensor v) { return std::pair(v, c); }, number(9), x);
    return concat({y * y, reshape(c, {1})}, 0);
  });
  check_orders("one value as both states and as three results", [](const Tensor& x) {
    auto [c, y] = scan(
        [](std::pair<Tensor, Tensor> c, Tensor v) {
          Tensor n = c.first + v * c.second;
          return std::pair(std::pair(n, n), std::tuple(n, n, c.first));
        },
        std::pair(number(2), number(2)), x);
    return concat({std::get<0>(y), std::get<1>(y), std::get<2>(y), reshape(c.second, {1})}, 0);
  });
  check_orders("a captured value becomes the state", [](const Tensor& x) {
    Tensor k = x * x;
    auto [a, b] = for_loop(
        3, [&](std::pair<Tensor, Tensor> s) { return std::pair(k, s.first); }, std::pair(x, x));
    return concat({a, b * a}, 0);
  });
  check_orders("states that go round", [](const Tensor& x) {
    auto [a, b, c] = for_loop(
        x.dim(0),
        [&](Tensor i, std::tuple<Tensor, Tensor, Tensor> s) {
          auto [p, q, r] = s;
          return std::tuple(q, r, p * gather(x, i));
        },
        std::tuple(sum(x), sum(x * x), number(2)));
    return a + b * 2. + c * 3.;
  });
  check_orders("a state that no turn changes", [](const Tensor& x) {
    auto [a, b] = for_loop(
        tensor(3), [](std::pair<Tensor, Tensor> s) { return std::pair(s.first, s.second * s.first); },
        std::pair(x, x + 1.));
    return a * b;
  });
  check("a state that forgets", [](const Tensor& x) {
    return for_loop(
               tensor(3), [](Tensor s) { return ones_like(s) * 4.; }, x) +
           x;
  });
  check_orders("transposed from turn to turn", [](const Tensor& x) {
    Tensor m = x * expand_dims(x + 1., 1);
    return for_loop(
        tensor(3), [](Tensor s) { return transpose(s) + reverse(s, 0); }, m);
  });
  check("nothing but a view", [](const Tensor& x) {
    return for_loop(
        tensor(3), [](Tensor s) { return transpose(s); }, x * expand_dims(x + 1., 1));
  });
  check_orders("elements of a view, the last first", [](const Tensor& x) {
    Tensor m = transpose(x * expand_dims(x + 1., 1));
    return scan([](Tensor c, Tensor r) { return std::pair(c * 0.5 + r * r, reverse(r, 0) * c); }, x, m,
                {.reverse = true})
        .second;
  });
  check("integers and truths", [](const Tensor& x) {
    auto [c, y] =
        scan([](Tensor c, Tensor v) { return std::pair(c * 3 + cast(v > 0., i64), logical_xor(c > 4, v > 0.)); },
             tensor(std::int64_t{1}), x);
    return cast(c, f64) + sum(cast(y, f64));
  });
}

TEST(LoopAttacks, LoopsThatFollowEachOther) {
  check_orders("the same loop twice", [](const Tensor& x) {
    return scan(step, number(0.5), x).first * sum(scan(step, number(0.5), x).second);
  });
  check_orders("a loop over what a loop stacked", [](const Tensor& x) {
    Tensor y = scan(step, number(0.5), x).second;
    return scan(step, sum(y), y).second;
  });
}

// --- how many turns

TEST(LoopAttacks, CountsOfEveryKind) {
  auto body = [](const Tensor& x) { return [&x](Tensor i, Tensor s) { return sin(s) * x + cast(i, f64); }; };
  for (std::int64_t k : {0, 2}) {
    SCOPED_TRACE(k);
    check_orders("a number", [&](const Tensor& x) { return for_loop(4, body(x), x, {.checkpoint_every = k}); });
    check_orders("a size", [&](const Tensor& x) { return for_loop(x.dim(0), body(x), x, {.checkpoint_every = k}); });
    check_orders("a size and more",
                 [&](const Tensor& x) { return for_loop(x.dim(0) * 2 + 1, body(x), x, {.checkpoint_every = k}); });
    check_orders("a tensor", [&](const Tensor& x) {
      return for_loop(cast(sum(abs(x)) * 2., i64), body(x), x, {.checkpoint_every = k});
    });
    check_orders("fewer than none",
                 [&](const Tensor& x) { return for_loop(tensor(-2), body(x), x * x, {.checkpoint_every = k}); });
    check("a while that never runs", [&](const Tensor& x) {
      return while_loop([](Tensor s) { return sum(s) > 1e9; }, [](Tensor s) { return s * s; }, x * x,
                        {.checkpoint_every = k});
    });
    check_orders("a while",
                 [&](const Tensor& x) {
                   return while_loop([](Tensor s) { return sum(s) < 9.; },
                                     [&](Tensor s) { return s * s + 1. + sin(x); }, x, {.checkpoint_every = k});
                 },
                 {6, 3, 1});
    check_orders("a length", [&](const Tensor& x) {
      return scan([&](Tensor c) { return std::pair(c * x, sum(c)); }, x,
                  {.length = x.dim(0) * 2, .checkpoint_every = k})
          .second;
    });
    check_orders("the last first", [&](const Tensor& x) {
      return scan(step, number(0.5), x, {.reverse = true, .checkpoint_every = k}).second;
    });
    check_orders("one for each", [&](const Tensor& x) {
      return map_fn([&](Tensor v) { return sum(sin(x * v)); }, x, {.checkpoint_every = k});
    });
  }
}

// --- derivatives

TEST(LoopAttacks, TapesInsideOutsideAndBoth) {
  Code inside = [](const Tensor& x) {
    return scan(
        [](Tensor c, Tensor v) {
          GradientTape tape;
          tape.watch(c);
          Tensor y = sin(c) * v;
          return c + tape.gradient(y, c);
        },
        number(0.5), x);
  };
  check_orders("a tape inside", inside);
  for (std::int64_t k : {0, 2}) {
    check_orders("a tape around a for_loop inside", [k](const Tensor& x) {
      return scan(
          [k](Tensor c, Tensor v) {
            GradientTape tape;
            tape.watch(c);
            Tensor y = for_loop(3, [&](Tensor s) { return sin(s) * v; }, c, {.checkpoint_every = k});
            return c + tape.gradient(y, c);
          },
          number(0.5), x, {.checkpoint_every = k});
    });
    check_orders("a tape around a while_loop inside", [k](const Tensor& x) {
      return scan(
          [k](Tensor c, Tensor v) {
            GradientTape tape;
            tape.watch(c);
            Tensor y = while_loop([](Tensor s) { return s < 4.; },
                                  [&](Tensor s) { return s * s + sin(v * s) * 0.5 + 1.; }, c, {.checkpoint_every = k});
            return sin(c + tape.gradient(y, c));
          },
          number(0.5), x, {.checkpoint_every = k});
    });
  }
  check("a persistent tape asked twice", [](const Tensor& x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    auto [a, b] = scan(step, number(0.5), x);
    Tensor d = tape.gradient(a, x), e = tape.gradient(sum(b), x), none = zeros_like(x);
    return (d.defined() ? d : none) + (e.defined() ? e : none) * 2.;
  });
  check(
      "a persistent tape asked between two loops",
      [](const Tensor& x) {
        GradientTape tape({.persistent = true});
        tape.watch(x);
        Tensor none = zeros_like(x), y = scan(step, number(0.5), x).second, d = tape.gradient(sum(y), x);
        Tensor z = for_loop(
            3, [&](Tensor s) { return sin(s) * y; }, y);
        Tensor e = tape.gradient(sum(z), x);
        return (d.defined() ? d : none) + (e.defined() ? e : none) * 2.;
      },
      1e-14);
}

TEST(LoopAttacks, OrdersAndModes) {
  check("third order",
        gradient_of(gradient_of(gradient_of([](const Tensor& x) { return scan(step, number(0.5), x).second; }))),
        1e-13);
  check("jvp of a scan", [](const Tensor& x) {
    return std::get<1>(jvp([](Tensor x) { return scan(step, number(0.5), x).second; }, x, cos(x)));
  });
  check("gradient of a jvp", gradient_of([](const Tensor& x) {
          return std::get<1>(jvp([](Tensor x) { return scan(step, number(0.5), x).second; }, x, cos(x)));
        }),
        1e-14);
  check("jvp of a while",
        [](const Tensor& x) {
          auto f = [](Tensor x) {
            return while_loop([](Tensor s) { return sum(s) < 9.; }, [&](Tensor s) { return s * s + 1. + sin(x); }, x);
          };
          return std::get<1>(jvp(f, x, cos(x)));
        },
        0, {6, 3, 1});
  check("jvp with checkpoints", [](const Tensor& x) {
    auto f = [](Tensor x) {
      return for_loop(tensor(4), [&](Tensor s) { return s * 0.5 + 1. + sin(x * s); }, x, {.checkpoint_every = 2});
    };
    return std::get<1>(jvp(f, x, cos(x)));
  });
  auto powers = [](Tensor y) {
    return for_loop(
        3, [&](Tensor s) { return sin(s) * y; }, y);
  };
  auto two = [](const Tensor& x) { return stack({sum(x), sum(x * x)}); };
  check("jacobian", [=](const Tensor& x) { return jacobian(powers)(two(x)); });
  check("jacobian forward", [=](const Tensor& x) { return jacobian(powers, {.mode = "forward"})(two(x)); });
  check(
      "hessian", [=](const Tensor& x) { return hessian([=](Tensor y) { return sum(powers(y)); })(two(x)); }, 1e-14);
  check(
      "hessian of a scan",
      [=](const Tensor& x) { return hessian([](Tensor y) { return scan(step, number(0.5), y).first; })(two(x)); },
      1e-14);
}

TEST(LoopAttacks, GradientsOfTheUsersOwn) {
  auto own = custom_gradient([](Tensor c, Tensor v) {
    Tensor e = sin(c) * v;
    return std::pair(e, [e, v](Tensor d) { return std::pair(d * e, d * v); });
  });
  check_orders("in a body", [=](const Tensor& x) {
    return scan([=](Tensor c, Tensor v) { return own(c, v) + 0.3; }, number(0.5), x);
  });
  auto looping = custom_gradient([](Tensor x) {
    Tensor y = scan([](Tensor c, Tensor v) { return std::pair(c + v, sin(c)); }, number(0.5), x).second;
    return std::pair(y, [y](Tensor d) {
      return scan([](Tensor c, std::pair<Tensor, Tensor> v) { return std::pair(c * 0.5 + v.first, c * v.second); },
                  number(0.1), std::pair(d, y), {.reverse = true})
          .second;
    });
  });
  check_orders("of loops", [=](const Tensor& x) { return looping(x * 2.); });
  check_orders("recompute in a body", [](const Tensor& x) {
    auto part = recompute([](Tensor c, Tensor v) { return sin(c) * drawn() + v * c; });
    return scan([=](Tensor c, Tensor v) { return part(c, v); }, number(0.5), x);
  });
  check_orders("recompute around a loop",
               [](const Tensor& x) { return recompute([](Tensor x) { return scan(step, number(0.5), x).first; })(x); });
  check_orders("gradients that are stopped", [](const Tensor& x) {
    return scan([](Tensor c, Tensor v) { return sin(stop_gradient(c)) * v + c * v; }, number(0.5), x);
  });
}

/// What turns draw is drawn once: a gradient that runs turns again uses the same numbers.
TEST(LoopAttacks, DrawsUnderTapes) {
  for (std::int64_t k : {0, 2}) {
    SCOPED_TRACE(k);
    check_orders("in a scan", [k](const Tensor& x) {
      return scan([](Tensor c, Tensor v) { return sin(c) * drawn() + v * c; }, number(0.5), x, {.checkpoint_every = k});
    });
    check_orders("in a loop in a loop", [k](const Tensor& x) {
      return scan(
          [k](Tensor c, Tensor v) {
            return for_loop(3, [&](Tensor c) { return sin(c) * drawn() + v * c; }, c, {.checkpoint_every = k});
          },
          number(0.5), x, {.checkpoint_every = k});
    });
    check_orders("beside a size that depends on values", [k](const Tensor& x) {
      return scan(
          [](Tensor c, Tensor v) {
            Tensor m = stack({c, v, c + v});
            return sum(boolean_mask(m, m > 0.)) * drawn() + v * c;
          },
          number(0.5), x, {.checkpoint_every = k});
    });
    check_orders("on one side", [k](const Tensor& x) {
      return scan(
          [](Tensor c, Tensor v) {
            if (v > 0.) return c * c * drawn() + v;
            return c - v;
          },
          number(0.5), x, {.checkpoint_every = k});
    });
  }
  check("in a loop and behind it", [](const Tensor& x) {
    return scan([](Tensor c, Tensor v) { return c * drawn() + v; }, number(0.5), x) + drawn();
  });
}

TEST(LoopAttacks, ForksInLoopsInForks) {
  check_orders("decided by values at every level", [](const Tensor& x) {
    return scope([&] {
      if (sum(x) > 0.5)
        return scan(
            [](Tensor c, Tensor v) {
              if (v > 0.3)
                return for_loop(
                    2,
                    [&](Tensor s) {
                      if (s > 1.) return s * v;
                      return sin(s) + v;
                    },
                    c);
              return c * 0.9 - v;
            },
            number(0.5), x);
      return sum(x) * 0.1;
    });
  });
  check_orders("another loop on each side", [](const Tensor& x) {
    return cond(
        sum(x) > 0.5, [&] { return scan(step, number(0.5), x).first; },
        [&] {
          return sum(while_loop([](Tensor s) { return sum(s) < 1.; }, [](Tensor s) { return s * s + 1.4; },
                                concat({x, tensor({0.1})}, 0)));
        });
  });
  check_orders("as many turns as a side says", [](const Tensor& x) {
    return scan(
        [](Tensor c, Tensor v) {
          Tensor n = cond(
              v > 0.3, [&] { return tensor(2); }, [&] { return tensor(0); });
          return for_loop(
              n, [&](Tensor s) { return sin(s) * v + 0.2; }, c);
        },
        number(0.5), x);
  });
}

TEST(LoopAttacks, ProductsOfMatrices) {
  auto weights = [](const Tensor& x) { return sin(x * expand_dims(x + 1., 1)); };
  auto row = [](const Tensor& x) { return expand_dims(x, 0); };
  auto near = [](const char* name, const Code& code) {
    check(name, code, 1e-13);
    check(name, gradient_of(code), 1e-13);
    check(name, gradient_of(gradient_of(code)), 1e-12);
  };
  near("of the state and of elements", [=](const Tensor& x) {
    Tensor w = weights(x);
    return scan([&](Tensor h, Tensor v) { return tanh(matmul(h, w) + matmul(row(x * v), w)); }, row(x), x);
  });
  near("on one side", [=](const Tensor& x) {
    Tensor w = weights(x);
    return scan(
        [&](Tensor h, Tensor v) {
          if (v > 0.) return tanh(matmul(h, w));
          return matmul(row(x * v), w);
        },
        row(x), x);
  });
  near("of nothing that changes inside, of what changes outside", [=](const Tensor& x) {
    Tensor w = weights(x);
    return scan(
        [&](Tensor h, Tensor v) {
          Tensor k = matmul(w, w * v);
          return for_loop(
              2, [&](Tensor h) { return tanh(matmul(h, w) + matmul(row(x * v), k)); }, h);
        },
        row(x), x);
  });
}

/// States and products large enough to be cut among threads: the same bits on one and on two.
TEST(LoopAttacks, OneThreadAndTwo) {
  Function f = function("f(x, w)", [](Tensor x, Tensor w) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    auto [h, all] = scan(
        [&](Tensor h, Tensor v) {
          Tensor next = tanh(matmul(h, w) + v);
          return std::pair(next, sum(next * v, 0));
        },
        zeros({x.dim(1), x.dim(2)}, f64), x);
    Tensors d = tape.gradient(sum(h) + sum(all), Tensors{x, w});
    return Tensors{h, all, d[0], d[1]};
  });
  const int before = thread_count();
  for (std::int64_t rows : {257, 64}) {
    Tensor x = reshape(waves(5 * rows * 130), {5, rows, 130}), w = reshape(waves(130 * 130) * 0.1, {130, 130});
    set_thread_count(1);
    Tensors one = f(x, w);
    set_thread_count(2);
    for (int repeat = 0; repeat < 3; ++repeat) {
      Tensors two = f(x, w);
      for (std::size_t i = 0; i < one.size(); ++i) {
        SCOPED_TRACE(i);
        expect_same(two[i], one[i], 0);
      }
    }
  }
  set_thread_count(before);
  EXPECT_EQ(f.trace_count(), 1);
}

// --- state

TEST(LoopAttacks, VariablesUnderTapes) {
  Variable w(number(0.3));
  for (std::int64_t k : {0, 1, 2})
    check(
        "read, written and read again",
        [&](const Tensor& x) {
          GradientTape tape;
          tape.watch(x);
          Tensor y = scan(
              [&](Tensor c, Tensor v) {
                Tensor before = w.read();
                w.assign(w * 0.5 + v);
                return sin(c) * w * before + v * w.read();
              },
              number(0.5), x, {.checkpoint_every = k});
          Tensors d = tape.gradient(y, std::vector<GradientTape::Source>{x, w});
          auto flat = [](const Tensor& t, const Tensor& like) {
            return reshape(t.defined() ? t : zeros_like(like), {-1});
          };
          return concat({flat(d[0], x), flat(d[1], w.read()), reshape(w.read(), {1}), reshape(y, {1})}, 0);
        },
        1e-15, {6, 3, 1}, [&] { w.assign(number(0.3)); });
}

// --- host code

class LoopEffects : public ::testing::Test {
 protected:
  void SetUp() override {
    on_print([this](const std::string& text) {
      std::lock_guard lock(guard_);
      printed_ += text;
    });
  }
  void TearDown() override { on_print({}); }

  /// x, of which the callback takes note.
  Tensor noted(const Tensor& x) {
    return host_call(
        [this](Tensor x) {
          std::lock_guard lock(guard_);
          printed_ += "called " + to_string(x) + "\n";
          return x * 2.;
        },
        {f64, x.shape()}, stop_gradient(x));
  }

  /// Values agree, and what was printed and called, in the order in which it was.
  void check_effects(const char* name, const Code& code, const std::vector<std::int64_t>& sizes = lengths) {
    SKIP_WHEN_VERIFYING();
    SCOPED_TRACE(name);
    Function f = function("f(x)", [&](Tensor x) { return code(x); });
    for (std::int64_t n : sizes) {
      SCOPED_TRACE(n);
      Tensor x = waves(n), eager = code(x);
      std::string expected = std::exchange(printed_, {});
      for (int repeat = 0; repeat < 2; ++repeat) {  // calls 2, 4 and 8 are audited
        expect_same(f(x), eager, 1e-14);
        EXPECT_EQ(std::exchange(printed_, {}), expected);
      }
    }
    EXPECT_EQ(f.trace_count(), 1);
  }

  std::string printed_;
  std::mutex guard_;
};

TEST_F(LoopEffects, HappenOnceInEveryTurnInOrder) {
  auto body = [this](Tensor c, Tensor v) {
    print("turn", v);
    assert_that(v < 2., "too high", v);
    Tensor k = noted(v);
    print("after", c);
    return sin(c) * k + v * v;
  };
  check_effects("scan", [&](const Tensor& x) { return scan(body, number(0.5), x); });
  check_effects("reverse", [&](const Tensor& x) { return scan(body, number(0.5), x, {.reverse = true}); });
  check_effects("map", [&](const Tensor& x) { return map_fn([&](Tensor v) { return body(v, v); }, x); }, {6, 3, 1});
  check_effects("for", [&](const Tensor& x) {
    return for_loop(
        x.dim(0), [&](Tensor i, Tensor c) { return body(c, gather(x, i)); }, number(0.5));
  });
  check_effects("while", [&](const Tensor& x) {
    auto [c, i] = while_loop(
        [&](Tensor, Tensor i) {
          print("asked", i);
          return i < x.dim(0);
        },
        [&](Tensor c, Tensor i) { return std::tuple(body(c, gather(x, i)), i + 1); },
        std::tuple(number(0.5), tensor(std::int64_t{0})));
    return c;
  });
  check_effects("a loop in a loop", [&](const Tensor& x) {
    return scan(
        [&](Tensor c, Tensor v) {
          print("outer", v);
          return for_loop(
              2, [&](Tensor i, Tensor s) { return body(s, v * cast(i + 1, f64) * 0.5); }, c);
        },
        number(0.5), x);
  });
  check_effects("on one side", [&](const Tensor& x) {
    return scan(
        [&](Tensor c, Tensor v) {
          if (v > 0.3) return body(c, v);
          print("not taken");
          return c - v;
        },
        number(0.5), x);
  });
  check_effects("the host ends it",
                [&](const Tensor& x) {
                  return while_loop(
                      [](Tensor s) {
                        return host_call([](Tensor t) { return t < 10.; }, {bool_, {}}, sum(s));
                      },
                      [](Tensor s) { return print("s", s + 1.); }, x);
                },
                {6, 3, 1});
}

TEST_F(LoopEffects, HappenOnceUnderTapes) {
  auto body = [this](Tensor c, Tensor v) {
    print("turn", v);
    assert_that(v < 2., "too high", v);
    Tensor k = noted(v);
    return sin(c) * k + v * v;
  };
  Code scanned = [&](const Tensor& x) { return scan(body, number(0.5), x); };
  check_effects("gradient", gradient_of(scanned));
  check_effects("second", gradient_of(gradient_of(scanned)));
  check_effects("while", gradient_of([&](const Tensor& x) {
                  return sum(while_loop([](Tensor s) { return sum(s) < 10.; },
                                        [&](Tensor s) { return s * 1.5 + noted(s) * x; }, abs(x)));
                }),
                {6, 3, 1});
  check_effects("printed and asserted with checkpoints", gradient_of([&](const Tensor& x) {
                  return scan(
                      [&](Tensor c, Tensor v) {
                        assert_that(v < 2., "too high", v);
                        return sin(print("state", c)) + v * v;
                      },
                      number(0.5), x, {.checkpoint_every = 2});
                }));
  check_effects("called with checkpoints for nothing", gradient_of([&](const Tensor& x) {
                  return scan(
                      [&](Tensor c, Tensor v) {
                        noted(v);
                        return sin(c) + v * v;
                      },
                      number(0.5), x, {.checkpoint_every = 2});
                }));
}

TEST_F(LoopEffects, OneSideOfATurnUnderATapeIsRefused) {
  auto code = gradient_of([&](const Tensor& x) {
    return scan(
        [&](Tensor c, Tensor v) {
          if (v > 0.) return sin(c) * noted(v);
          return c + v * c;
        },
        number(0.5), x);
  });
  Function f = function("f(x)", [&](Tensor x) { return code(x); });
  std::string text = error_of([&] { f(waves(3)); });
  EXPECT_CONTAINS(
      text,
      "host_call stands on one side of an if (tensor), or in a loop with checkpoints, which the gradient runs "
      "again");
  EXPECT_CONTAINS(text, "loop_attacks_test.cpp:");
}

// --- what did not hold once

/// Run turn by turn, a while_loop that takes no turn gives no stacks for its gradient.
TEST(LoopAttacks, AWhileThatNeverRunsUnderTapes) {
  for (std::int64_t k : {0, 2})
    check_orders("never runs", [k](const Tensor& x) {
      return while_loop([](Tensor s) { return sum(s) > 1e9; }, [](Tensor s) { return s * s; }, x * x,
                        {.checkpoint_every = k});
    });
  check_orders("never runs in some turns", [](const Tensor& x) {
    return scan(
        [](Tensor c, Tensor v) {
          return while_loop([](Tensor s) { return s < 4.; }, [&](Tensor s) { return s * s + v + 2.; }, c);
        },
        number(0.5), x);
  });
}

/// The op that finds a size is dropped from a body that uses the size and not the values.
TEST(LoopAttacks, SizesThatDependOnValuesUsedAsSizesAlone) {
  check_orders("sizes alone", [](const Tensor& x) {
    return scan(
        [](Tensor c, Tensor v) {
          Tensor m = stack({c, v, c + v});
          Dim n = boolean_mask(m, m > 0.).dim(0);
          return sin(c) * sum(ones({n}, f64)) + v * cast(tensor(n), f64);
        },
        number(0.5), x);
  });
}

TEST_F(LoopEffects, UsedByTurnsThatAGradientRunsAgain) {
  auto again = gradient_of([&](const Tensor& x) {
    return scan([&](Tensor c, Tensor v) { return sin(c) * noted(v) + v; }, number(0.5), x, {.checkpoint_every = 2});
  });
  Function f = function("f(x)", [&](Tensor x) { return again(x); });
  EXPECT_CONTAINS(error_of([&] { f(waves(3)); }), "or in a loop with checkpoints, which the gradient runs again");
  check_effects("beside a size that depends on values", gradient_of([&](const Tensor& x) {
                  return scan(
                      [&](Tensor c, Tensor v) {
                        Tensor m = stack({c, v});
                        return sum(boolean_mask(m, m > 0.)) * noted(v) + v;
                      },
                      number(0.5), x);
                }));
}
TEST_F(LoopEffects, OfWhatDoesNotChangeUnderATape) {
  check_effects("of what does not change", gradient_of([&](const Tensor& x) {
                  return for_loop(
                      2, [&](Tensor s) { return sin(s) * noted(x); }, x);
                }));
}
TEST_F(LoopEffects, InALoopInALoopUnderATape) {
  check_effects("a loop in a loop", gradient_of([&](const Tensor& x) {
                  return scan(
                      [&](Tensor c, Tensor v) {
                        return for_loop(
                            2,
                            [&](Tensor s) {
                              print("turn", s);
                              noted(s);
                              return sin(s) + v;
                            },
                            c);
                      },
                      number(0.5), x);
                }));
  auto used = gradient_of([&](const Tensor& x) {
    return scan(
        [&](Tensor c, Tensor v) {
          return for_loop(
              2, [&](Tensor s) { return sin(s) * noted(v); }, c);
        },
        number(0.5), x);
  });
  Function f = function("f(x)", [&](Tensor x) { return used(x); });
  EXPECT_CONTAINS(error_of([&] { f(waves(3)); }), "stands in a loop inside of a loop, which the gradient runs again");
}

// --- at the end of the process

struct AtExit {
  Function<Tensor(Tensor)> f = function("late(x)", [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = for_loop(
        tensor(3), [](Tensor s) { return s * s; }, x);
    return tape.gradient(y, x);
  });
  bool called = false;
  ~AtExit() {
    if (called && f(number(1.5)).item<double>() != 8 * std::pow(1.5, 7)) std::_Exit(3);
    if (called) std::_Exit(7);
  }
};
AtExit at_exit;

TEST(LoopAttacksDeathTest, AStaticsDestructorLoops) {
  EXPECT_EXIT(
      {
        at_exit.called = true;
        at_exit.f(number(1.));
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_EXIT(
      {
        at_exit.called = true;  // traced at the end
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace

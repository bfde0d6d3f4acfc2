// What programs have the host do: print, assert_that and host_call, eagerly and traced.
#include <stdexcept>
#include <thread>

#include "expect_error.h"
#include "explanations.h"
#include "stet/runtime/buffer.h"

using namespace stet;

namespace {

std::string at_line(int line) { return "host_effects_test.cpp:" + std::to_string(line); }

/// Collects what is printed.
class Effects : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    on_print([this](const std::string& text) {
      std::lock_guard lock(guard_);
      printed += text;
    });
  }
  void TearDown() override {
    on_print({});
    WithExplanations::TearDown();
  }
  /// What was printed since it was last asked for.
  std::string shown() { return std::exchange(printed, {}); }
  std::string printed;

 private:
  std::mutex guard_;
};

// --- print

TEST_F(Effects, print_writes_parts_as_streams_do) {
  Tensor x = tensor({{1.f, 2.5f}, {3.f, 4.f}});
  std::ostringstream streamed;
  streamed << "x " << x << " ends\n";
  print("x", x, "ends");
  EXPECT_EQ(shown(), streamed.str());
  print(3, 0.5f, true, x.dim(0), x.shape(), x.dtype(), std::string("text"), Tensor());
  EXPECT_EQ(shown(), "3 0.5 True 2 [2,2] f32 text undefined\n");
  Variable v(tensor({1, 2}));
  print(v);
  print("");
  EXPECT_EQ(shown(), "[1 2]\n\n");
}

TEST_F(Effects, print_gives_back_its_last_tensor) {
  Tensor x = ones({2});
  Tensor y = print("x", x, "and text");
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
  EXPECT_FALSE(print("no tensor").defined());
}

TEST_F(Effects, traced_print_happens_in_every_call_in_order) {
  Function f = function("f(x)", [](Tensor x) {
    print("first", x);
    Tensor y = x * 2;
    print("second", y, "of size", x.dim(0), x.shape());
    print("second", y, "of size", x.dim(0), x.shape());  // not the same one
    print("a text alone");
    return x + 1;  // y is needed by what is printed alone
  });
  for (int size : {2, 3, 1, 2, 2, 2, 2, 2, 2}) {
    f(ones({size}));
    Tensor x = ones({size});
    std::string second =
        "second " + to_string(x * 2) + " of size " + std::to_string(size) + " [" + std::to_string(size) + "]\n";
    EXPECT_EQ(shown(), "first " + to_string(x) + "\n" + second + second + "a text alone\n");
  }
  EXPECT_EQ(f.trace_count(), 1);
  f(zeros({0}));
  EXPECT_CONTAINS(shown(), "first []");
}

TEST_F(Effects, print_options_are_those_of_the_call) {
  Function f = function("f(x)", [](Tensor x) { return print(x); });
  f(full({2}, 1. / 3, f32));
  EXPECT_EQ(shown(), "[0.33333334 0.33333334]\n");
  PrintScope scope({.precision = 2});
  f(full({2}, 1. / 3, f32));
  EXPECT_EQ(shown(), "[0.33 0.33]\n");
}

TEST_F(Effects, print_of_every_dtype) {
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    Tensor x = cast(tensor({0, 1, 3}), dtype);
    Function f = function("f(x)", [](Tensor x) { print(x); });
    f(x);
    EXPECT_EQ(shown(), to_string(x) + "\n");
  }
}

TEST_F(Effects, print_is_silent_where_code_is_compared) {
  Function f = function("f(x)", [](Tensor x) {
    print("x", x);
    return x * 2;
  });
  f(ones({1}));
  EXPECT_EQ(shown(), "x [1.]\n");
  f.verify(ones({1}));
  EXPECT_EQ(shown(), "");
  for (int i = 0; i < 10; ++i) f(ones({1}));  // audits at 2, 4 and 8
  std::string expected;
  for (int i = 0; i < 10; ++i) expected += "x [1.]\n";
  EXPECT_EQ(shown(), expected);
}

TEST_F(Effects, print_on_a_side_happens_when_it_is_taken) {
  Function f = function("f(x)", [](Tensor x) {
    if (sum(x) > 0.f) {
      print("positive", x);
      if (sum(x) > 10.f) print("large");
    } else {
      print("not positive");
    }
    print("after");
    return x;
  });
  f(tensor({1.f}));
  EXPECT_EQ(shown(), "positive [1.]\nafter\n");
  f(tensor({-1.f}));
  EXPECT_EQ(shown(), "not positive\nafter\n");
  f(tensor({5.f, 6.f}));
  EXPECT_EQ(shown(), "positive [5. 6.]\nlarge\nafter\n");
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Effects, a_side_whose_sizes_are_found_out_runs_once) {
  int calls = 0;
  Function f = function("f(x)", [&calls](Tensor x) {
    return cond(
        sum(x) > 0.f,
        [&] {
          print("side");
          Tensor found = boolean_mask(x, x > 1.f);
          return host_call(
              [&calls](Tensor given) {
                ++calls;
                return given * 2;
              },
              {f32, found.shape()}, found);
        },
        [&] { return x; });
  });
  EXPECT_EQ(f(tensor({1.f, 2.f, 3.f})).to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_TRUE(verifying() || calls == 1) << calls;
  EXPECT_EQ(shown(), "side\n");
  calls = 0;
  EXPECT_EQ(f(tensor({5.f})).to_vector<float>(), (std::vector<float>{10}));
  EXPECT_EQ(f(tensor({-5.f})).to_vector<float>(), (std::vector<float>{-5}));
  EXPECT_TRUE(verifying() || calls == 1) << calls;
  EXPECT_EQ(shown(), "side\n");
}

TEST_F(Effects, what_was_printed_before_an_exception_stands) {
  Function f = function("f(x)", [](Tensor x) {
    print("before");
    if (sum(x) > 0.f) {
      print("then");
      throw std::runtime_error("positive");
    }
    return x;
  });
  EXPECT_THROW(f(ones({1})), std::runtime_error);
  EXPECT_EQ(shown(), "before\nthen\n");
  f(zeros({1}));
  EXPECT_EQ(shown(), "before\n");
}

TEST_F(Effects, functions_inside_print_in_their_place) {
  Function inner = function("inner(x)", [](Tensor x) {
    print("inner");
    return x;
  });
  Function outer = function("outer(x)", [inner](Tensor x) {
    print("before");
    Tensor y = inner(x);
    print("after");
    return inner(y);
  });
  outer(ones({1}));
  outer(ones({2}));
  EXPECT_EQ(shown(), "before\ninner\nafter\ninner\nbefore\ninner\nafter\ninner\n");
}

TEST_F(Effects, gradients_pass_through_what_print_gives_back) {
  auto code = [](Tensor x) {
    Tensor y = print("x", x * x);
    if (sum(x) > 0.f) {
      print("side", y);
      return sum(y * 3);
    }
    return sum(y);
  };
  Function f = function("f(x)", code);
  Function inside = function("inside(x)", [code](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(code(x), x);
  });
  Tensor x = tensor({1.f, 2.f});
  const std::string once = "x [1. 4.]\nside [1. 4.]\n";
  {
    GradientTape tape;
    tape.watch(x);
    EXPECT_EQ(tape.gradient(f(x), x).to_vector<float>(), (std::vector<float>{6, 12}));
    EXPECT_EQ(shown(), once);
  }
  {
    GradientTape tape;
    tape.watch(x);
    EXPECT_EQ(tape.gradient(code(x), x).to_vector<float>(), (std::vector<float>{6, 12}));
    EXPECT_EQ(shown(), once);
  }
  EXPECT_EQ(inside(x).to_vector<float>(), (std::vector<float>{6, 12}));
  EXPECT_EQ(shown(), once);
  {
    GradientTape outer, tape;
    outer.watch(x);
    tape.watch(x);
    Tensor d = tape.gradient(f(x), x);
    EXPECT_EQ(shown(), once);
    EXPECT_EQ(outer.gradient(d, x).to_vector<float>(), (std::vector<float>{6, 6}));
    EXPECT_EQ(shown(), "");
  }
}

TEST_F(Effects, a_listener_that_throws_ends_the_call) {
  Variable v(zeros({1}));
  Function f = function("f(x)", [v](Tensor x) {
    v.assign_add(x);
    print("x");
    return v.read();
  });
  on_print([](const std::string&) { throw std::runtime_error("full"); });
  EXPECT_THROW(f(ones({1})), std::runtime_error);
  EXPECT_EQ(v.read().item<float>({0}), 0);
  on_print({});
}

TEST_F(Effects, print_goes_to_stdout) {
  on_print({});
  ::testing::internal::CaptureStdout();
  print("to", 1);
  function("f(x)", [](Tensor x) { print("traced", x); })(ones({1}));
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "to 1\ntraced [1.]\n");
}

TEST_F(Effects, threads_print_whole_lines) {
  Function f = function("f(x)", [](Tensor x) { print("a line with", x); });
  f(ones({2}));
  shown();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) f(ones({2}));
    });
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += "a line with [1. 1.]\n";
  EXPECT_EQ(shown(), expected);
}

TEST_F(Effects, a_print_that_differs_between_runs_is_told) {
  int count = 0;
  Function f = function("f(x)", [&](Tensor x) {
    print("run", count++);
    return x;
  });
  std::string text = error_of([&] { f(ones({1})); });
  EXPECT_CONTAINS(text, "tracing 'f' twice gave two different programs");
  EXPECT_CONTAINS(text, "print");
  count = 0;
  Function more = function("more(x)", [&](Tensor x) {
    for (int i = 0; i <= count; ++i) print("one");
    ++count;
    return x;
  });
  text = error_of([&] { more(ones({1})); });
  EXPECT_CONTAINS(text, "1 effects (branches that may throw, what prints, asserts or calls the host), then print");
}

TEST_F(Effects, print_shows_the_state_of_its_moment) {
  Variable v(zeros({2}));
  Function f = function("f(x)", [v](Tensor x) {
    print("before", v);
    v.assign_add(x);
    print("between", v);
    v.assign(v * 10);
    print("after", v);
  });
  f(ones({2}));
  EXPECT_EQ(shown(), "before [0. 0.]\nbetween [1. 1.]\nafter [10. 10.]\n");
  for (int i = 0; i < 3; ++i) f(zeros({2}));
  EXPECT_CONTAINS(shown(), "before [1000. 1000.]\nbetween [1000. 1000.]\nafter [10000. 10000.]\n");
}

TEST_F(Effects, print_of_late_sizes) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor found = boolean_mask(x, x > 0.f);
    print("found", found, "of", found.dim(0));
    return found;
  });
  f(tensor({1.f, -1.f, 2.f}));
  EXPECT_EQ(shown(), "found [1. 2.] of 2\n");
  f(tensor({-1.f}));
  EXPECT_EQ(shown(), "found [] of 0\n");
}

TEST_F(Effects, eager_code_inside_of_a_trace_prints_once) {
  Function f = function("f(x)", [](Tensor x) {
    InitScope outside;
    print("made");
    return x;
  });
  for (int i = 0; i < 5; ++i) f(ones({1}));
  EXPECT_EQ(shown(), "made\n");
}

TEST_F(Effects, layers_and_datasets_print) {
  keras::Sequential model{keras::Input({2}), keras::Dense(1)};
  Function step = function("step(x)", [=](Tensor x) {
    Tensor y = model(x);
    print("rows", y.dim(0));
    return y;
  });
  step(ones({3, 2}));
  step(ones({4, 2}));
  EXPECT_EQ(shown(), "rows 3\nrows 4\n");
  auto data = data::from_tensor_slices(arange(3)).map([](Tensor x) {
    print("element", x);
    return x * 2;
  });
  for (Tensor x : data) EXPECT_EQ(x.rank(), 0);
  EXPECT_EQ(shown(), "element 0\nelement 1\nelement 2\n");
}

// --- assert_that

TEST_F(Effects, assert_that_throws_with_message_values_and_line) {
  Tensor rate = tensor({0.5f, 2.f});
  assert_that(rate > 0.f, "never");
  std::string line = at_line(__LINE__ + 1);
  std::string text = error_of([&] { assert_that(rate < 1.f, "the rate is too large", "rate", rate, "step", 3); });
  EXPECT_EQ(text.substr(0, text.find("\n  at ")),
            "assert_that: the rate is too large: 1 of 2 elements do not hold, the first at [1]\n"
            "  values: rate [0.5 2. ] step 3");
  EXPECT_CONTAINS(text, line);
  text = error_of([&] { assert_that(sum(rate) < 1.f, "too large"); });
  EXPECT_EQ(text.substr(0, text.find('\n')), "assert_that: too large");
  text = error_of([&] { assert_that(1 > 2, "of the host", "values", rate); });
  EXPECT_CONTAINS(text, "assert_that: of the host\n  values: values [0.5 2. ]");
  EXPECT_CONTAINS(error_of([&] { assert_that(rate, "no bool"); }), "assert_that: the condition is f32[2], not bool");
  EXPECT_CONTAINS(error_of([&] { assert_that(Tensor(), "undefined"); }), "assert_that: the tensor is undefined");
  assert_that(zeros({0}, bool_), "of nothing all is true");
}

TEST_F(Effects, traced_assert_throws_in_the_call) {
  Variable v(zeros({2}));
  int line = 0;
  Function f = function("f(x)", [v, &line](Tensor x) {
    v.assign_add(x);
    line = __LINE__ + 1;
    assert_that(x > 0.f, "x is positive", "x is", x, "of size", x.dim(0));
    return v.read() * 2;
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  for (int i = 0; i < 3; ++i) {
    int call = __LINE__ + 1;
    std::string text = error_of([&] { f(tensor({1.f, -1.f})); });
    EXPECT_CONTAINS(text,
                    "assert_that: x is positive: 1 of 2 elements do not hold, the first at [1]\n"
                    "  values: x is [ 1. -1.] of size 2");
    EXPECT_CONTAINS(text, at_line(line));
    EXPECT_CONTAINS(text, "in 'f' called at");
    EXPECT_CONTAINS(text, at_line(call));
  }
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{4, 4}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Effects, assertions_and_prints_keep_their_order) {
  Function f = function("f(x)", [](Tensor x) {
    print("one");
    assert_that(sum(x) < 10.f, "first");
    print("two");
    assert_that(sum(x) < 5.f, "second");
    print("three");
  });
  f(ones({1}));
  EXPECT_EQ(shown(), "one\ntwo\nthree\n");
  EXPECT_CONTAINS(error_of([&] { f(full({1}, 7, f32)); }), "second");
  EXPECT_EQ(shown(), "one\ntwo\n");
  EXPECT_CONTAINS(error_of([&] { f(full({1}, 17, f32)); }), "first");
  EXPECT_EQ(shown(), "one\n");
}

TEST_F(Effects, assertions_on_a_side_and_under_tapes) {
  Function f = function("f(x)", [](Tensor x) {
    if (sum(x) > 0.f) {
      assert_that(sum(x) < 10.f, "the sum is small");
      return sum(x * x);
    }
    return sum(x);
  });
  Tensor x = full({1}, 20, f32), y = full({1}, 2, f32);
  EXPECT_EQ(f(-x).item<float>(), -20);
  EXPECT_CONTAINS(error_of([&] { f(x); }), "assert_that: the sum is small");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  EXPECT_CONTAINS(error_of([&] { f(x); }), "assert_that: the sum is small");
  EXPECT_EQ(tape.gradient(f(y), y).item<float>({0}), 4);
}

// --- host_call

TEST_F(Effects, host_call_runs_and_gives_what_was_declared) {
  auto doubled = [](Tensor x) { return x * 2; };
  Tensor x = tensor({1.f, 2.f});
  EXPECT_EQ(host_call(doubled, {f32, x.shape()}, x).to_vector<float>(), (std::vector<float>{2, 4}));
  Function f = function("f(x)", [=](Tensor x) { return host_call(doubled, {f32, x.shape()}, x + 1) * 10; });
  for (int size : {2, 3, 0, 1}) EXPECT_EQ(f(ones({size})).to_vector<float>(), std::vector<float>(size, 40));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Effects, host_call_gives_tuples_arrays_vectors_and_nothing) {
  Function f = function("f(x)", [](Tensor x) {
    auto [low, high] = host_call([](Tensor x) { return std::tuple{min(x), max(x)}; }, {{f32, {}}, {f32, {}}}, x);
    std::pair<Tensor, Tensor> pair = host_call(
        [](Tensor x) {
          return std::pair{min(x), x};
        },
        {{f32, {}}, {f32, x.shape()}}, x);
    std::array<Tensor, 1> array = host_call([](Tensor x) { return std::array{x + 1}; }, {{f32, x.shape()}}, x);
    std::vector<Tensor> list = host_call(
        [](Tensor x, Tensor n) {
          return std::vector{x, cast(n, i64)};
        },
        {{f32, x.shape()}, {i64, {}}}, x, 7);
    host_call([] {}, {});
    return std::vector<Tensor>{low, high, pair.first, pair.second, array[0], list[0], list[1]};
  });
  std::vector<Tensor> results = f(tensor({3.f, 1.f, 2.f}));
  EXPECT_EQ(results[0].item<float>(), 1);
  EXPECT_EQ(results[1].item<float>(), 3);
  EXPECT_EQ(results[2].item<float>(), 1);
  EXPECT_EQ(results[4].to_vector<float>(), (std::vector<float>{4, 2, 3}));
  EXPECT_EQ(results[5].to_vector<float>(), (std::vector<float>{3, 1, 2}));
  EXPECT_EQ(results[6].item<std::int64_t>(), 7);
}

TEST_F(Effects, host_calls_are_not_dropped_shared_or_run_while_tracing) {
  SKIP_WHEN_VERIFYING();
  std::vector<float> seen;
  Function f = function("f(x)", [&seen](Tensor x) {
    auto note = [&seen](Tensor x) { seen.push_back(x.item<float>()); };
    host_call(note, {}, sum(x));
    host_call(note, {}, sum(x));
    host_call(note, {}, sum(x) * 2);
    return x;
  });
  f(ones({3}));
  EXPECT_EQ(seen, (std::vector<float>{3, 3, 6}));
  for (int i = 0; i < 9; ++i) f(ones({2}));  // audits do not run it
  EXPECT_EQ(seen.size(), 30u);
}

TEST_F(Effects, what_a_callback_gives_is_checked) {
  auto check = [&](auto callback, ResultSpecs specs, const std::string& expected) {
    Tensor x = ones({2});
    std::string text = error_of([&] { host_call(callback, specs, x); });
    EXPECT_CONTAINS(text, expected);
    EXPECT_CONTAINS(text, "host_effects_test.cpp:");
    Function f = function("f(x)", [=](Tensor x) { return host_call(callback, specs, x); });
    text = error_of([&] { f(x); });
    EXPECT_CONTAINS(text, expected);
    EXPECT_CONTAINS(text, "host_effects_test.cpp:");
  };
  auto same = [](Tensor x) { return x; };
  check(same, {f64, {2}}, "host_call: result 0 is f32[2], declared as f64[2]");
  check(same, {f32, {3}}, "host_call: result 0 is f32[2], declared as f32[3]");
  check(same, {f32, {}}, "host_call: result 0 is f32[2], declared as f32[]");
  check([](Tensor) { return Tensor(); }, {f32, {2}}, "host_call: result 0 is undefined, declared as f32[2]");
  check(
      [](Tensor x) {
        return std::vector{x, x};
      },
      {f32, {2}}, "host_call: the callback gave 2 tensors, declared is 1");
  check([](Tensor x) { return std::pair{x, x}; }, {f32, {2}}, "host_call: the callback gives 2 tensors, declared is 1");
  EXPECT_CONTAINS(error_of([&] { host_call(same, {f32, {2}}, Tensor()); }), "host_call: the tensor is undefined");
}

struct Own {
  int code;
};

TEST_F(Effects, exceptions_of_callbacks_pass_and_leave_all_as_before) {
  Variable v(zeros({1000}));
  bool fails = true;
  Function f = function("f(x)", [v, &fails](Tensor x) {
    v.assign_add(x);
    Tensor y = host_call(
        [&fails](Tensor x) {
          if (fails) throw Own{7};
          return x;
        },
        {f32, x.shape()}, x * 2);
    v.assign_add(y);
    return sum(v.read());
  });
  release_cached_memory();
  std::size_t before = 0;
  for (int i = 0; i < 20; ++i) {
    try {
      f(ones({1000}));
      ADD_FAILURE();
    } catch (const Own& own) {
      EXPECT_EQ(own.code, 7);
    }
    if (i == 2) before = memory_statistics().bytes_in_use;
  }
  EXPECT_EQ(memory_statistics().bytes_in_use, before);
  EXPECT_EQ(v.read().item<float>({0}), 0);
  fails = false;
  EXPECT_EQ(f(ones({1000})).item<float>(), 3000);
  fails = true;
  EXPECT_THROW(f(ones({1000})), Own);
  EXPECT_EQ(v.read().item<float>({0}), 3);
}

TEST_F(Effects, callbacks_may_keep_what_they_are_given_and_call_functions) {
  std::vector<Tensor> kept;
  Function inner = function("inner(x)", [](Tensor x) { return x * 3; });
  Function f = function("f(x)", [&kept, inner](Tensor x) {
    return host_call(
        [&kept, inner](Tensor x) {
          kept.push_back(x);
          return inner(x);
        },
        {f32, x.shape()}, x * 2);
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{6, 6}));
  f(full({2}, 5, f32));
  EXPECT_EQ(kept[0].to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST_F(Effects, a_callback_may_call_its_own_function_and_end_it) {
  SKIP_WHEN_VERIFYING();
  std::unique_ptr<Function<Tensor(Tensor)>> f;
  int depth = 0;
  bool ends = false;
  f = std::make_unique<Function<Tensor(Tensor)>>("f(x)", [&](Tensor x) {
    return host_call(
        [&](Tensor x) {
          if (ends) f.reset();
          if (++depth < 4) return (*f)(x + 1);
          return x;
        },
        {f32, x.shape()}, x);
  });
  EXPECT_EQ((*f)(zeros({1})).item<float>({0}), 3);
  for (int i = 0; i < 40; ++i) {  // functions that use the same places of the cache
    depth = 3;
    Function other = function("other(x)", [](Tensor x) { return x * 2; });
    EXPECT_EQ((*f)(other(ones({1}))).item<float>({0}), 2);
  }
  depth = 3;
  ends = true;
  EXPECT_EQ((*f)(ones({1})).item<float>({0}), 1);
}

TEST_F(Effects, a_variable_that_the_call_holds_is_refused) {
  SKIP_WHEN_VERIFYING();
  Variable w(ones({2}), {.name = "w"}), free(ones({2}));
  int what = 0, line = 0;
  Function uses = function("uses(x)", [w](Tensor x) { return x * w; });
  uses(ones({2}));
  Function f = function("f(x)", [&, w, free, uses](Tensor x) {
    w.assign_add(x);
    return host_call(
        [&, w, free, uses](Tensor x) {
          line = __LINE__ + 1;
          if (what == 0) return w.read();
          if (what == 1) return w.assign(x);
          if (what == 2) return w.assign_add(x);
          if (what == 3) return uses(x);
          free.assign_add(x);
          return free.read();
        },
        {f32, {2}}, x);
  });
  const char* names[] = {"read", "assign", "assign_add", "uses"};
  for (what = 0; what < 4; ++what) {
    for (int again = 0; again < 3; ++again) {
      std::string text = error_of([&] { f(ones({2})); });
      EXPECT_CONTAINS(text,
                      std::string(names[what]) +
                          ": the Variable 'w' of f32[2] is used inside of host_call, and held by the call of 'f'");
      EXPECT_CONTAINS(text, at_line(line + what));
      EXPECT_CONTAINS(text, "pass its value to host_call as an argument");
    }
  }
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST_F(Effects, host_call_has_no_gradient) {
  auto code = [](Tensor x) {
    return std::pair{sum(x * x), host_call([](Tensor x) { return x; }, {f32, x.shape()}, x)};
  };
  Function f = function("f(x)", code);
  Tensor x = ones({2});
  for (bool traced : {false, true}) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    auto [loss, other] = traced ? f(x) : code(x);
    EXPECT_EQ(tape.gradient(loss, x).to_vector<float>(), (std::vector<float>{2, 2}));
    int line = __LINE__ + 1;
    std::string text = error_of([&] { tape.gradient(sum(other), x); });
    EXPECT_CONTAINS(text, "gradient: host_call has no gradient; it is called at ");
    EXPECT_CONTAINS(text, at_line(line));
    EXPECT_CONTAINS(text,
                    "pass stop_gradient(x) where its result is to count as a constant, or wrap it in custom_gradient");
  }
}

TEST_F(Effects, tapes_do_not_see_what_a_callback_does) {
  Variable w(full({2}, 3, f32));
  Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  // Nothing that the tape follows goes in, so the result counts as a constant.
  Tensor y = host_call([w] { return w * 2; }, {f32, {2}});
  std::vector<Tensor> d = tape.gradient(sum(x * y), {x, w});
  EXPECT_EQ(d[0].to_vector<float>(), (std::vector<float>{6, 6}));
  EXPECT_FALSE(d[1].defined());
}

TEST_F(Effects, a_host_call_on_a_side_runs_once) {
  SKIP_WHEN_VERIFYING();
  int calls = 0;
  auto twice = [&calls](Tensor y) {
    ++calls;
    return y * 2;
  };
  auto code = [twice](Tensor x, Tensor y) {
    return cond(
        sum(x) > 0.f,
        [&] {
          return sum(x * host_call(twice, {f32, y.shape()}, y));
        },
        [&] { return sum(x); });
  };
  Tensor x = ones({2}), y = ones({2});
  // The gradient of a branch runs the side that was taken again.
  Function inside = function("inside(x, y)", [code](Tensor x, Tensor y) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(code(x, y), x);
  });
  std::string text = error_of([&] { inside(x, y); });
  EXPECT_CONTAINS(
      text,
      "gradient: host_call stands on one side of an if (tensor), or in a loop with checkpoints, which the gradient "
      "runs again");
  EXPECT_CONTAINS(text, "call host_call before the decision");
  // What the result does not need is not run again, nor what is computed from it.
  Function aside = function("aside(x, y)", [twice](Tensor x, Tensor y) {
    GradientTape tape;
    tape.watch(x);
    Tensor loss = cond(
        sum(x) > 0.f,
        [&] {
          auto [a, b] = host_call(
              [twice](Tensor y) {
                return std::pair{twice(y), y};
              },
              {{f32, y.shape()}, {f32, y.shape()}}, y);
          print("a", a, "b", b * 2);
          return sum(x * x);
        },
        [&] { return sum(x); });
    return tape.gradient(loss, x);
  });
  EXPECT_EQ(aside(x, y).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(shown(), "a [2. 2.] b [2. 2.]\n");
  // Where the function is called under a tape its ops run one by one.
  Function f = function("f(x, y)", code);
  for (bool traced : {false, true}) {
    calls = 0;
    GradientTape tape;
    tape.watch(x);
    Tensor loss = traced ? f(x, y) : code(x, y);
    EXPECT_EQ(tape.gradient(loss, x).to_vector<float>(), (std::vector<float>{2, 2}));
    EXPECT_EQ(calls, 1);
  }
  // A decision of the function itself makes paths, not a branch inside of the tape.
  Function path = function("path(x, y)", [twice](Tensor x, Tensor y) {
    GradientTape tape;
    tape.watch(x);
    Tensor loss;
    if (sum(x) > 0.f)
      loss = sum(x * host_call(twice, {f32, y.shape()}, y));
    else
      loss = sum(x);
    return tape.gradient(loss, x);
  });
  calls = 0;
  EXPECT_EQ(path(x, y).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(path(-x, y).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(calls, 1);
}

TEST_F(Effects, effects_survive_every_kind_of_use) {
  SKIP_WHEN_VERIFYING();
  int calls = 0;
  auto body = [&calls](Tensor x) {
    Tensor y = host_call(
        [&calls](Tensor x) {
          ++calls;
          return x + 1;
        },
        {f32, x.shape()}, x);
    print("sum", sum(y));
    assert_that(y > 0.f, "positive");
    return y;
  };
  Function f = function("f(x)", body);
  std::vector<std::thread> threads;
  f(ones({4}));
  calls = 0;
  shown();
  Function twice = function("twice(x)", [f](Tensor x) { return f(f(x)); });
  EXPECT_EQ(twice(ones({3})).to_vector<float>(), (std::vector<float>{3, 3, 3}));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(shown(), "sum 6.0\nsum 9.0\n");
  Function once = function("once(x)", body, {.max_traces = 1, .on_limit = OnLimit::eager});
  once(ones({1}));
  once(ones({1, 1}));  // eagerly
  EXPECT_EQ(shown(), "sum 2.0\nsum 2.0\n");
}

}  // namespace

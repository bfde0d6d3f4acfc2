// Exported functions: what is loaded does what was traced, bit for bit, and says what is wrong where it cannot.
#include <atomic>
#include <map>
#include <thread>

#include "exported_files.h"
#include "stet/base/version.h"

using namespace stet;

namespace {

struct Scores {
  Tensor logits, probabilities;
  STET_FIELDS(logits, probabilities)
};

Tensor sample(std::initializer_list<Dim> sizes, std::int64_t seed = 1) {
  return random::stateless_normal(Shape(sizes), {seed, 7});
}

TEST(Export, OneTraceForAllBatchSizes) {
  Folder folder;
  Variable w(sample({5, 3}), {.name = "w"}), b(sample({3}, 2), {.name = "b"});
  Function serve = function("serve(x)", [=](Tensor x) { return softmax(matmul(x, w) + b); });
  export_function(folder / "f.stet", serve, {f32, {dyn("batch"), 5}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  NoRetrace none;
  for (int batch = 0; batch < 27; ++batch) {
    Tensor x = sample({batch, 5}, batch);
    std::vector<Tensor> given = loaded({x});
    ASSERT_EQ(given.size(), 1u);
    EXPECT_SAME_BITS(given[0], serve(x));
  }
  EXPECT_EQ(loaded.trace_count(), 1);
  EXPECT_EQ(loaded.name(), "serve");
  ASSERT_EQ(loaded.inputs().size(), 1u);
  EXPECT_EQ(loaded.inputs()[0].name, "x");
  EXPECT_EQ(loaded.inputs()[0].str(), "f32[batch,5]");
  ASSERT_EQ(loaded.outputs().size(), 1u);
  EXPECT_EQ(loaded.outputs()[0].name, "output");
  EXPECT_EQ(loaded.outputs()[0].str(), "f32[batch,3]");
}

TEST(Export, NamesOfArgumentsAndResults) {
  Folder folder;
  Function f = function("f(x, scale)", [](Tensor x, std::map<std::string, Tensor> scale) {
    Tensor logits = x * scale.at("by");
    return Scores{logits, softmax(logits)};
  });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}}, {{"by", sample({4})}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded.inputs()[0].name, "x");
  EXPECT_EQ(loaded.inputs()[1].name, "scale.by");
  EXPECT_EQ(loaded.inputs()[1].str(), "f32[4]");
  EXPECT_EQ(loaded.outputs()[0].name, "logits");
  EXPECT_EQ(loaded.outputs()[1].name, "probabilities");
  Tensor x = sample({2, 4}, 3), by = sample({4}, 5);
  std::map<std::string, Tensor> given = loaded.call({{"scale.by", by}, {"x", x}});
  Scores expected = f(x, {{"by", by}});
  EXPECT_SAME_BITS(given.at("logits"), expected.logits);
  EXPECT_SAME_BITS(given.at("probabilities"), expected.probabilities);
}

TEST(Export, TuplesNumbersAndSizesAreOutputs) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return std::tuple(x + 1, x.dim(0), 0.5f, 7); });
  export_function(folder / "f.stet", f, {f32, {dyn("n")}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::vector<Tensor> given = loaded({sample({6})});
  ASSERT_EQ(given.size(), 4u);
  EXPECT_EQ(loaded.outputs()[0].name, "output_0");
  EXPECT_EQ(loaded.outputs()[3].name, "output_3");
  EXPECT_EQ(given[1].item<std::int64_t>(), 6);
  EXPECT_EQ(given[2].item<float>(), 0.5f);
  EXPECT_EQ(given[3].item<std::int64_t>(), 7);
}

TEST(Export, OtherArgumentsArePartOfIt) {
  Folder folder;
  Function f = function("f(x, times, flag)", [](Tensor x, int times, bool flag) {
    for (int i = 0; i < times; ++i) x = x * 2;
    return flag ? x : -x;
  });
  export_function(folder / "f.stet", f, {f32, {dyn}}, 3, false);
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded.inputs().size(), 1u);
  EXPECT_SAME_BITS(loaded({sample({5})})[0], f(sample({5}), 3, false));
}

TEST(Export, ASignatureSaysWhatItTakes) {
  Folder folder;
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x + y; },
                        {.signature = {{f32, {dyn("n")}}, {f32, {dyn("n")}}}});
  export_function(folder / "f.stet", f);
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded.inputs()[1].str(), "f32[n]");
  EXPECT_SAME_BITS(loaded({sample({5}), sample({5})})[0], f(sample({5}), sample({5})));
  Function without = function("g(x)", [](Tensor x) { return x; });
  std::string error = error_of([&] { export_function(folder / "g.stet", without); });
  EXPECT_CONTAINS(error, "export_function: 'g' has no signature that says what its 1 argument is");
  EXPECT_CONTAINS(error, "say it here: export_function(path, f, {dtype, {sizes}}, …)");
}

TEST(Export, NoArgumentsAtAll) {
  Folder folder;
  Variable v(tensor({1.f, 2.f}), {.name = "v"});
  Function f = function("f()", [=] { return v.assign_add(1); });
  export_function(folder / "f.stet", f);
  ExportedFunction loaded = load_function(folder / "f.stet");
  loaded({});
  EXPECT_EQ(loaded({})[0].to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{1, 2}));
}

// --- state

TEST(Export, VariablesAreReadAndAssigned) {
  Folder folder;
  Variable w(tensor({1.f, 2.f}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return x * w; });
  export_function(folder / "f.stet", f, {f32, {2}});
  w.assign(tensor({9.f, 9.f}));
  ExportedFunction one = load_function(folder / "f.stet"), two = load_function(folder / "f.stet"), copy = one;
  ASSERT_EQ(one.variables().size(), 1u);
  EXPECT_EQ(one.variables()[0].name(), "w");
  EXPECT_TRUE(one.variables()[0].trainable());
  EXPECT_EQ(one.variable("w").read().to_vector<float>(), (std::vector<float>{1, 2}));
  one.variable("w").assign(tensor({3.f, 4.f}));
  EXPECT_EQ(copy({ones({2})})[0].to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(two({ones({2})})[0].to_vector<float>(), (std::vector<float>{1, 2}));
  std::string error = error_of([&] { one.variable("v"); });
  EXPECT_CONTAINS(error, "variable: 'f' has no Variable 'v'");
  EXPECT_CONTAINS(error, "it has w");
}

TEST(Export, FunctionsOfOneFileShareVariables) {
  Folder folder;
  Variable w(zeros({3, 1}), {.name = "w"}), b(zeros({1}), {.name = "b"});
  Function train_step = function("train_step(x, y)", [=](Tensor x, Tensor y) {
    GradientTape tape;
    Tensor loss = mean(square(matmul(x, w) + b - y));
    std::vector<Tensor> d = tape.gradient(loss, {w, b});
    w.assign_sub(0.1f * d[0]);
    b.assign_sub(0.1f * d[1]);
    return loss;
  });
  Function serve = function("serve(x)", [=](Tensor x) { return matmul(x, w) + b; });
  Exporter exporter;
  exporter.add("train", train_step, {f32, {dyn("n"), 3}}, {f32, {dyn("n"), 1}}).add("serve", serve, {f32, {dyn, 3}});
  exporter.write(folder / "f.stet");
  ExportedFile file = load_exported(folder / "f.stet");
  EXPECT_EQ(file.functions(), (std::vector<std::string>{"train", "serve"}));
  EXPECT_EQ(file.variables().size(), 2u);
  ExportedFunction train = file.function("train"), answer = file.function("serve");
  for (int step = 0; step < 20; ++step) {
    Tensor x = sample({7 + step % 4, 3}, step), y = sample({7 + step % 4, 1}, -step - 1);
    EXPECT_SAME_BITS(train({x, y})[0], train_step(x, y));
    EXPECT_SAME_BITS(answer({x})[0], serve(x));
  }
  EXPECT_SAME_BITS(file.variables()[0].read(), w.read());
  EXPECT_EQ(train.trace_count(), 1);
  EXPECT_SAME_BITS(load_function(folder / "f.stet", {.function = "serve"})({ones({1, 3})})[0], zeros({1, 1}));
  std::string error = error_of([&] { load_function(folder / "f.stet"); });
  EXPECT_CONTAINS(error, "has 2 functions: train, serve");
  EXPECT_CONTAINS(error, "say which one: {.function = \"train\"}");
  error = error_of([&] { file.function("other"); });
  EXPECT_CONTAINS(error, "has no function 'other'");
  EXPECT_CONTAINS(error, "it has train, serve");
  error = error_of([&] { exporter.add("serve", serve, {f32, {dyn, 3}}); });
  EXPECT_CONTAINS(error, "export_function: there are two functions 'serve' for one file");
}

TEST(Export, VariablesWithoutNamesAndWithTheSame) {
  Folder folder;
  Variable a(tensor({1.f})), b(tensor({2.f}), {.trainable = false, .name = "w"}), c(tensor({3.f}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return x * a + b * c + a; });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  ASSERT_EQ(loaded.variables().size(), 3u);
  EXPECT_EQ(loaded.variables()[0].name(), "variable");
  EXPECT_EQ(loaded.variables()[1].name(), "w");
  EXPECT_FALSE(loaded.variables()[1].trainable());
  EXPECT_EQ(loaded.variables()[2].name(), "w_1");
  EXPECT_SAME_BITS(loaded({sample({4})})[0], f(sample({4})));
}

TEST(Export, ACallThatThrowsHasChangedNothing) {
  Folder folder;
  Variable count(tensor(std::int64_t{0}), {.name = "count"});
  Function f = function("f(x, at)", [=](Tensor x, Tensor at) {
    count.assign_add(std::int64_t{1});
    return gather(x, at);
  });
  export_function(folder / "f.stet", f, {f32, {dyn}}, {i64, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  loaded({sample({4}), tensor({std::int64_t{3}})});
  std::string error = error_of([&] { loaded({sample({4}), tensor({std::int64_t{4}})}); });
  EXPECT_CONTAINS(error, "gather: 'indices' holds index 4 at position 0, out of range: allowed are 0 to 3");
  EXPECT_CONTAINS(error, "at export_test.cpp:193, in 'f' called at ");
  EXPECT_EQ(loaded.variable("count").read().item<std::int64_t>(), 1);
}

// --- what a function can be made of

/// Exported with its sizes open, and called with others.
template <class F>
void expect_same_of_one(const char* what, F body, TensorSpec spec, const std::vector<Tensor>& calls) {
  SCOPED_TRACE(what);
  Folder folder;
  Function f = function("f(x)", body);
  export_function(folder / "f.stet", f, spec);
  ExportedFunction loaded = load_function(folder / "f.stet");
  for (const Tensor& x : calls) {
    std::vector<Tensor> given = loaded({x});
    Tensor expected = f(x);
    ASSERT_EQ(given.size(), 1u);
    EXPECT_SAME_BITS(given[0], expected);
  }
  EXPECT_EQ(loaded.trace_count(), 1);
}

std::vector<Tensor> vectors() { return {sample({5}), sample({1}, 2), sample({40}, 3) * 10, zeros({0})}; }
std::vector<Tensor> matrices() { return {sample({5, 4}), sample({1, 4}, 2), sample({33, 4}, 3), zeros({0, 4})}; }

TEST(Export, Branches) {
  expect_same_of_one(
      "if", [](Tensor x) { return sum(x) > 0 ? x * 2 : x - 1; }, {f32, {dyn}}, vectors());
  expect_same_of_one(
      "nested",
      [](Tensor x) {
        if (sum(x) > 0) {
          if (max(concat({x, zeros({1})}, 0)) > 2) return exp(x);
          return x + 1;
        }
        return -x;
      },
      {f32, {dyn}}, vectors());
}

TEST(Export, ASideThatThrows) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) {
    if (any(x < 0)) throw UserError("f: x has negative elements");
    return sqrt(x);
  });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_SAME_BITS(loaded({ones({3})})[0], ones({3}));
  EXPECT_EQ(error_of([&] { loaded({-ones({3})}); }), "f: x has negative elements");
}

TEST(Export, Loops) {
  expect_same_of_one(
      "while",
      [](Tensor x) { return while_loop([](Tensor s) { return sum(abs(s)) > 1; }, [](Tensor s) { return s / 2; }, x); },
      {f32, {dyn}}, vectors());
  expect_same_of_one(
      "for",
      [](Tensor x) {
        return for_loop(
            5, [](Tensor, Tensor s) { return sin(s) + 1; }, x);
      },
      {f32, {dyn}}, vectors());
  expect_same_of_one(
      "scan",
      [](Tensor x) {
        auto [last, all] = scan([](Tensor s, Tensor row) { return std::pair(s + row, s * row); }, zeros({4}), x);
        return concat({expand_dims(last, 0), all}, 0);
      },
      {f32, {dyn, 4}}, matrices());
}

TEST(Export, GradientsInside) {
  expect_same_of_one(
      "tape",
      [](Tensor x) {
        GradientTape tape;
        tape.watch(x);
        Tensor y = sum(tanh(x) * x);
        return tape.gradient(y, x);
      },
      {f32, {dyn}}, vectors());
  expect_same_of_one("gradient of a scan",
                     [](Tensor x) {
                       GradientTape tape;
                       tape.watch(x);
                       auto [last, all] =
                           scan([](Tensor s, Tensor row) { return std::pair(tanh(s + row), s * row); }, zeros({4}), x);
                       return tape.gradient(sum(last) + sum(all * all), x);
                     },
                     {f32, {dyn, 4}}, {sample({5, 4}), sample({1, 4}, 2), sample({33, 4}, 3)});
}

TEST(Export, SizesInAttributes) {
  expect_same_of_one(
      "reshape",
      [](Tensor x) {
        return reshape(x, {x.dim(0) * 2, 2}) + 1;
      },
      {f32, {dyn, 4}}, matrices());
  expect_same_of_one(
      "halves", [](Tensor x) { return x[{range(0, (x.dim(0) + 1) / 2)}] * 3; }, {f32, {dyn, 4}}, matrices());
  expect_same_of_one(
      "size as a value", [](Tensor x) { return x / tensor(x.dim(0)); }, {f32, {dyn}}, vectors());
  expect_same_of_one(
      "late", [](Tensor x) { return nonzero(x > 0); }, {f32, {dyn}}, vectors());
  expect_same_of_one(
      "pad",
      [](Tensor x) {
        return pad(x, {{1, x.dim(0) % 3}, {0, 2}});
      },
      {f32, {dyn, 4}}, matrices());
}

TEST(Export, OpsOfAllKinds) {
  auto one = [](const char* what, auto body) { expect_same_of_one(what, body, {f32, {dyn, 4}}, matrices()); };
  one("sort", [](Tensor x) { return sort(x, 0); });
  one("cumsum", [](Tensor x) { return cumsum(x, 0); });
  one("argmax", [](Tensor x) { return argmax(x, 1); });
  one("top_k", [](Tensor x) { return top_k(x, 2).values; });
  one("one_hot", [](Tensor x) { return one_hot(argmax(x, 1), 4); });
  one("take_along_axis", [](Tensor x) { return take_along_axis(x, expand_dims(argmax(x, 1), 1), 1); });
  one("conv", [](Tensor x) { return conv1d(expand_dims(x, 0), ones({3, 4, 2}), {.padding = "same"}); });
  one("einsum", [](Tensor x) { return einsum("ij,kj->ik", {x, x}); });
  one("qr", [](Tensor x) { return linalg::svd(x).s; });
  one("where", [](Tensor x) { return where(x > 0, x, exp(x)); });
  one("erfinv", [](Tensor x) { return erfinv(tanh(x)) + lgamma(abs(x) + 1); });
  one("scatter", [](Tensor x) { return scatter_add(zeros({4, 4}), argmax(x, 1), x); });
  one("f16", [](Tensor x) { return cast(cast(x, f16) * 3, bf16); });
  one("i8", [](Tensor x) { return cast(x * 10, i8) / 3 + cast(x, u8); });
  one("reverse", [](Tensor x) { return flip(transpose(x)); });
  one("softmax", [](Tensor x) { return log_softmax(x) + logsumexp(x, 1, {.keepdims = true}); });
}

TEST(Export, NestedFunctionsAreInlined) {
  Function square_of = function("square_of(x)", [](Tensor x) { return x * x; });
  expect_same_of_one(
      "nested", [=](Tensor x) { return square_of(square_of(x)) + 1; }, {f32, {dyn}}, vectors());
}

TEST(Export, ExportedInsideOfExported) {
  Folder folder;
  Variable w(sample({4, 4}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return tanh(matmul(x, w)); });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  Function twice = function("twice(x)", [=](Tensor x) { return loaded({loaded({x})[0]})[0]; });
  export_function(folder / "g.stet", twice, {f32, {dyn, 4}});
  ExportedFunction again = load_function(folder / "g.stet");
  for (const Tensor& x : matrices()) {
    EXPECT_SAME_BITS(again({x})[0], f(f(x)));
    EXPECT_SAME_BITS(twice(x), f(f(x)));
  }
  EXPECT_EQ(twice.trace_count(), 1);
  EXPECT_EQ(again.variables().size(), 1u);
}

TEST(Export, ConstantsOfEveryType) {
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    SCOPED_TRACE(name(dtype));
    Folder folder;
    Tensor small = cast(tensor({1, 0, 3}), dtype), large = cast(sample({40}) * 20, dtype), none = zeros({0, 3}, dtype);
    Function f =
        function("f(x)", [=](Tensor x) { return std::tuple(where(x > 0, small, cast(0, dtype)), large, none); });
    export_function(folder / "f.stet", f, {f32, {3}});
    std::vector<Tensor> given = load_function(folder / "f.stet")({ones({3})});
    EXPECT_SAME_BITS(given[0], small);
    EXPECT_SAME_BITS(given[1], large);
    EXPECT_SAME_BITS(given[2], none);
  }
}

TEST(Export, RandomNumbersAreOfThisProcess) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return x + random::normal(x.shape()); });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_TRUE(loaded.variables().empty());
  random::seed(5);
  Tensor a = f(zeros({4})), b = f(zeros({4}));
  random::seed(5);
  EXPECT_SAME_BITS(loaded({zeros({4})})[0], a);
  EXPECT_SAME_BITS(loaded({zeros({4})})[0], b);

  random::Generator own(3);
  Function g = function("g(x)", [=](Tensor x) { return x + own.uniform(x.shape()); });
  export_function(folder / "g.stet", g, {f32, {dyn}});
  Tensor first = g(zeros({4}));
  ExportedFunction with_own = load_function(folder / "g.stet");
  EXPECT_SAME_BITS(with_own({zeros({4})})[0], first);
  EXPECT_FALSE(same_bits(with_own({zeros({4})})[0], first));
}

TEST(Export, PrintAndAssert) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) {
    print("sum is", sum(x), "of", x.dim(0));
    assert_that(x < 10, "x is small", max(x));
    return x * 2;
  });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::string printed;
  on_print([&](const std::string& line) { printed += line; });
  loaded({ones({3})});
  on_print({});
  EXPECT_EQ(printed, "sum is 3.0 of 3\n");
  on_print([](const std::string&) {});
  std::string error = error_of([&] { loaded({tensor({1.f, 12.f})}); });
  on_print({});
  EXPECT_CONTAINS(error, "assert_that: x is small: 1 of 2 elements do not hold, the first at [1]");
  EXPECT_CONTAINS(error, "values: 12.0");
}

// --- gradients

TEST(Export, TapesFollowItToInputsAndVariables) {
  Folder folder;
  Variable w(sample({4, 3}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return sum(tanh(matmul(x, w))); });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  for (const Tensor& x : matrices()) {
    GradientTape a, b;
    a.watch(x);
    Tensor y = f(x);
    std::vector<Tensor> expected = a.gradient(y, {x, w});
    b.watch(x);
    Tensor z = loaded({x})[0];
    Variable own = loaded.variable("w");
    std::vector<Tensor> given = b.gradient(z, {x, own});
    EXPECT_SAME_BITS(given[0], expected[0]);
    EXPECT_SAME_BITS(given[1], expected[1]);
  }
}

TEST(Export, GradientsInsideOfAnotherTrace) {
  Folder folder;
  Variable w(sample({4, 3}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return sum(x) > 0 ? sum(tanh(matmul(x, w))) : sum(matmul(x, w)); });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  Variable own = loaded.variable("w");
  Function step = function("step(x)", [=](Tensor x) {
    GradientTape tape;
    Tensor y = loaded({x})[0];
    return tape.gradient(y, own);
  });
  Function expected = function("expected(x)", [=](Tensor x) {
    GradientTape tape;
    Tensor y = f(x);
    return tape.gradient(y, w);
  });
  for (const Tensor& x : matrices()) EXPECT_SAME_BITS(step(x), expected(x));
}

TEST(Export, GradientsOfTheFunctionsOwn) {
  Folder folder;
  auto clipped =
      custom_gradient([](Tensor x) { return std::pair(x * 3, [](Tensor d) { return clip(d, -0.1f, 0.1f); }); });
  Function f = function("f(x)", [=](Tensor x) { return sum(clipped(x) * 2); });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  Tensor x = sample({6});
  GradientTape tape;
  tape.watch(x);
  Tensor y = loaded({x})[0];
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), std::vector<float>(6, 0.1f));
}

// --- threads

TEST(Export, EightThreads) {
  Folder folder;
  Variable w(sample({16, 8}), {.name = "w"}), calls(tensor(std::int64_t{0}), {.trainable = false, .name = "calls"});
  Function f = function("f(x)", [=](Tensor x) {
    calls.assign_add(std::int64_t{1});
    return tanh(matmul(x, w));
  });
  export_function(folder / "f.stet", f, {f32, {dyn, 16}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < 27; ++i) {
    inputs.push_back(sample({i, 16}, i));
    expected.push_back(tanh(matmul(inputs.back(), w)));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto at = static_cast<std::size_t>((i * 7 + t) % 27);
        if (!same_bits(loaded({inputs[at]})[0], expected[at])) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(loaded.variable("calls").read().item<std::int64_t>(), 800);
  EXPECT_EQ(loaded.trace_count(), 1);
}

// --- what is wrong

TEST(ExportErrors, WhatNoFileCanHold) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return host_call([](Tensor y) { return y; }, {f32, x.shape()}, x); });
  const int line = __LINE__ - 1;
  std::string error = error_of([&] { export_function(folder / "f.stet", f, {f32, {dyn}}); });
  EXPECT_CONTAINS(error, text("export_test.cpp:", line, ", which runs code of this program"));
  EXPECT_CONTAINS(error, "export_function: 'f' has a host_call at ");
  EXPECT_CONTAINS(error, "a file holds ops alone");
  EXPECT_FALSE(std::filesystem::exists(folder / "f.stet"));
  Function g = function("g(x, n)", [](Tensor x, Dim n) { return x + tensor(n); });
  error = error_of([&] { export_function(folder / "g.stet", g, {f32, {dyn}}, 3); });
  EXPECT_CONTAINS(error, "argument 1 'n' of 'g' is a size, which a file cannot take as an argument");
  Variable v(ones({2}));
  Function h = function("h(x)", [=](Tensor) { return v; });
  error = error_of([&] { export_function(folder / "h.stet", h, {f32, {dyn}}); });
  EXPECT_CONTAINS(error, "'h' gives a Variable or an object, which a file cannot give");
}

TEST(ExportErrors, SizesThatSpecsLeaveOpen) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return matmul(x, ones({5, 2})); });
  std::string error = error_of([&] { export_function(folder / "f.stet", f, {f32, {dyn, dyn}}); });
  EXPECT_CONTAINS(error, "matmul: inner sizes 60 and 5 do not agree");
  EXPECT_CONTAINS(error, "while 'f' was traced to export it: sizes that specs leave open were taken to be 60");
  Function g = function("g(x)", [](Tensor x) { return x.dim(0) > 3 ? x : x * 2; });
  error = error_of([&] { export_function(folder / "g.stet", g, {f32, {dyn}}); });
  EXPECT_NE(error, "no error");
}

TEST(ExportErrors, WrongCalls) {
  Folder folder;
  Function f = function("serve(x, y)", [](Tensor x, Tensor y) { return matmul(x, y); });
  export_function(folder / "f.stet", f, {f32, {dyn("rows"), 5}}, {f32, {5, dyn("columns")}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  auto error = [&](std::vector<Tensor> arguments) { return error_of([&] { loaded(arguments); }); };
  std::string text = error({ones({2, 6}), ones({5, 1})});
  EXPECT_CONTAINS(text, "serve: argument 0 'x' is f32[2,6], the signature promises f32[rows,5]");
  text = error({cast(ones({2, 5}), f64), ones({5, 1})});
  EXPECT_CONTAINS(text, "serve: argument 0 'x' is f64[2,5], the signature promises f32[rows,5]");
  text = error({ones({2, 5}), ones({5})});
  EXPECT_CONTAINS(text, "serve: argument 1 'y' is f32[5], the signature promises f32[5,columns]");
  text = error({ones({2, 5})});
  EXPECT_CONTAINS(text, "serve: takes 2 tensors, 1 is given");
  EXPECT_CONTAINS(text, "give 'x' f32[rows,5], 'y' f32[5,columns]");
  text = error({ones({2, 5}), Tensor()});
  EXPECT_CONTAINS(text, "serve: argument 1 'y' is undefined");
  text = error_of([&] { loaded.call({{"x", ones({2, 5})}}); });
  EXPECT_CONTAINS(text, "serve: the input 'y' is missing");
  text = error_of([&] { loaded.call({{"x", ones({2, 5})}, {"z", ones({2, 5})}}); });
  EXPECT_CONTAINS(text, "serve: there is no input 'z'");
  EXPECT_CONTAINS(text, "it takes x, y");
  EXPECT_CONTAINS(error_of([] { ExportedFunction()({}); }), "call: the ExportedFunction is undefined");
  EXPECT_CONTAINS(error_of([] { ExportedFile().functions(); }), "functions: the ExportedFile is undefined");
}

TEST(ExportErrors, FactsThatSizesBreak) {
  Folder folder;
  // Two names that the function ties, and a size that is twice another one.
  Function f = function("f(x, y, z)", [](Tensor x, Tensor y, Tensor z) { return concat({x + y, x}, 0) * z; });
  export_function(folder / "f.stet", f, {f32, {dyn("n")}}, {f32, {dyn("n")}}, {f32, {1}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded({ones({3}), ones({3}), ones({1})})[0].dim(0), 6);
  std::string error = error_of([&] { loaded({ones({3}), ones({4}), ones({1})}); });
  EXPECT_CONTAINS(error, "f: argument 1 'y' is f32[4], the signature promises f32[n], and n is 3 in argument 0 'x'");
}

/// What is asked of sizes that depend on values is told in the words of the function that asks, as without a file.
TEST(ExportErrors, SizesThatDependOnValues) {
  Folder folder;
  auto check = [&](const char* what, auto body, const std::string& expected) {
    SCOPED_TRACE(what);
    Function f = function("f(x, m, n)", body);
    export_function(folder / "f.stet", f, {f32, {dyn("n")}}, {bool_, {dyn("n")}}, {bool_, {dyn("n")}});
    ExportedFunction loaded = load_function(folder / "f.stet");
    auto first = [](int count) { return less(arange(8), count); };
    const Tensor x = arange(8.f) + 1;
    EXPECT_SAME_BITS(loaded({x, first(1), first(1)})[0], f(x, first(1), first(1)));
    auto line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
    EXPECT_EQ(line(error_of([&] { f(x, first(0), first(3)); })), expected);
    EXPECT_EQ(line(error_of([&] { loaded({x, first(0), first(3)}); })), expected);
    // As a part of another function, too.
    Function outer = function("outer(x, m, n)", [=](Tensor x, Tensor m, Tensor n) { return loaded({x, m, n})[0]; });
    EXPECT_EQ(line(error_of([&] { outer(x, first(0), first(3)); })), expected);
    EXPECT_SAME_BITS(loaded({x, first(1), first(1)})[0], f(x, first(1), first(1)));
  };
  check(
      "similarity",
      [](Tensor x, Tensor m, Tensor n) { return cosine_similarity(boolean_mask(x, m), boolean_mask(x, n)); },
      "cosine_similarity: sizes of axis 0 of 'x' and 'y': sizes 0 and 3 do not agree");
  check(
      "squeeze", [](Tensor x, Tensor, Tensor n) { return squeeze(boolean_mask(x, n), 0) * 2; },
      "squeeze: squeezed size: sizes 3 and 1 do not agree");
  check(
      "median", [](Tensor x, Tensor m, Tensor) { return median(boolean_mask(x, m)); },
      "median: an empty axis has no quantiles");
  check(
      "add", [](Tensor x, Tensor m, Tensor n) { return boolean_mask(x, m) + boolean_mask(x, n); },
      "add: broadcast: sizes 0 and 3 do not agree");
  check(
      "on a side",
      [](Tensor x, Tensor m, Tensor n) {
        Tensor a = boolean_mask(x, m), b = boolean_mask(x, n);
        return sum(b) > 2 ? cosine_similarity(a, b) : sum(a);
      },
      "cosine_similarity: sizes of axis 0 of 'x' and 'y': sizes 0 and 3 do not agree");
}

TEST(ExportErrors, SizesOfArguments) {
  Folder folder;
  export_function(folder / "f.stet", function("f(x)", [](Tensor x) { return median(x); }), {f32, {dyn}});
  const std::string error = error_of([&] { load_function(folder / "f.stet")({zeros({0})}); });
  EXPECT_CONTAINS(error, "median: an empty axis has no quantiles");
  EXPECT_CONTAINS(error, "fix: make sure the axis has at least one element");
}

TEST(ExportErrors, FilesThatAreNone) {
  Folder folder;
  EXPECT_CONTAINS(error_of([&] { load_function(folder / "no.stet"); }), "cannot be opened: No such file or directory");
  write_bytes(folder / "short", "hello");
  EXPECT_CONTAINS(error_of([&] { load_function(folder / "short"); }), "has 5 bytes, less than the header");
  write_bytes(folder / "other", std::string(500, 'x'));
  std::string error = error_of([&] { load_function(folder / "other"); });
  EXPECT_CONTAINS(error, "is no exported function: it does not begin as one, at byte 0");
  EXPECT_CONTAINS(error, "give a file that export_function wrote");
  EXPECT_CONTAINS(error_of([&] { load_function(folder / "."); }), "is a folder");
  Function f = function("f(x)", [](Tensor x) { return x + 1; });
  EXPECT_NE(error_of([&] { export_function(folder / "none/f.stet", f, {f32, {dyn}}); }), "no error");
  EXPECT_CONTAINS(error_of([&] { Exporter().write(folder / "f.stet"); }), "there is no function to write");
}

TEST(ExportErrors, NewerFiles) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return cumsum(x, 0); });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  const std::string good = bytes_of(folder / "f.stet");
  std::string newer = good;
  newer[8] = 3;
  put_checksums_right(newer);
  write_bytes(folder / "newer", newer);
  EXPECT_EQ(error_of([&] { load_function(folder / "newer"); }), "no error");  // it says that we understand it
  newer[12] = 2;
  put_checksums_right(newer);
  write_bytes(folder / "newer", newer);
  EXPECT_CONTAINS(error_of([&] { load_function(folder / "newer"); }),
                  "in version 3 of the format, which readers of version 2 understand; this is stet");
  std::string unknown = good;
  unknown.replace(unknown.find("cumsum"), 6, "cumsom");
  put_checksums_right(unknown);
  write_bytes(folder / "unknown", unknown);
  std::string error = error_of([&] { load_function(folder / "unknown"); });
  EXPECT_CONTAINS(error, "there is no op 'cumsom' here: the file was written by stet");
  EXPECT_CONTAINS(error, "load it with the version that wrote it, or a newer one");
}

TEST(ExportErrors, Limits) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return sum(x) > 0 ? x + 1 : x * 2; });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  auto error = [&](ExportedLimits limits) {
    return error_of([&] { load_function(folder / "f.stet", {.limits = limits}); });
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_CONTAINS(error({.max_head_bytes = 100}), "more than the limit of 100");
  EXPECT_CONTAINS(error({.max_head_bytes = 100}), "raise .limits.max_head_bytes if you trust the file");
  EXPECT_CONTAINS(error({.max_nodes = 2}), "raise .limits.max_nodes if you trust the file");
  EXPECT_CONTAINS(error({.max_depth = 0}), "raise .limits.max_depth if you trust the file");
}

TEST(ExportErrors, NotWhileTracing) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return x + 1; });
  export_function(folder / "f.stet", f, {f32, {dyn}});
  Function loads = function("loads(x)", [&](Tensor x) { return load_function(folder / "f.stet")({x})[0]; });
  EXPECT_CONTAINS(error_of([&] { loads(ones({2})); }), "load_function: 'loads' is being traced");
  Function exports = function("exports(x)", [&](Tensor x) {
    export_function(folder / "g.stet", f, {f32, {dyn}});
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { exports(ones({2})); }), "'f' cannot be exported while a function is traced");
}

TEST(Export, WhatStoodThereStaysUntilItIsComplete) {
  Folder folder;
  Function good = function("good(x)", [](Tensor x) { return x + 1; });
  Function bad = function("bad(x)", [](Tensor x) {
    return host_call([](Tensor y) { return y; }, {f32, x.shape()}, x);
  });
  export_function(folder / "f.stet", good, {f32, {dyn}});
  EXPECT_NE(error_of([&] { export_function(folder / "f.stet", bad, {f32, {dyn}}); }), "no error");
  EXPECT_EQ(load_function(folder / "f.stet").name(), "good");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / ".")) files += entry.is_regular_file();
  EXPECT_EQ(files, 1);
}

TEST(Export, Explains) {
  Folder folder;
  Variable w(sample({5, 3}), {.name = "w"});
  Function f = function("serve(x)", [=](Tensor x) { return matmul(x, w); });
  export_function(folder / "f.stet", f, {f32, {dyn("batch"), 5}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::string told = loaded.explain();
  EXPECT_CONTAINS(told, text("serve, from '", folder / "f.stet", "', written by stet ", STET_VERSION));
  EXPECT_CONTAINS(told, "  takes x f32[batch,5]\n  gives output f32[batch,3]\n  holds w f32[5,3]\n");
  EXPECT_CONTAINS(told, "serve: 1 trace\n");
  EXPECT_CONTAINS(loaded.graph(), "matmul");
}

}  // namespace

// Exported functions where functions are used: in layers, under several tapes, under vmap, at the end of the program.
#include <thread>

#include "exported_files.h"

using namespace stet;

namespace {

Tensor sample(std::initializer_list<Dim> sizes, std::int64_t seed = 1) {
  return random::stateless_normal(Shape(sizes), {seed, 7});
}

struct Frozen : keras::CustomLayer {
  ExportedFunction features;
  explicit Frozen(ExportedFunction f) : features(std::move(f)) {}
  Tensor call(const Tensor& x, const keras::Context&) override { return features({x})[0]; }
};

TEST(ExportUses, AsALayerOfAModelThatIsTrained) {
  Folder folder;
  random::seed(1);
  keras::clear_session();
  Variable w(sample({4, 6}), {.name = "w"});
  export_function(folder / "f.stet", function("features(x)", [=](Tensor x) { return tanh(matmul(x, w)); }),
                  {f32, {dyn, 4}});
  ExportedFunction features = load_function(folder / "f.stet");
  keras::Sequential model{keras::Input({4}), keras::make<Frozen>(features), keras::Dense(1)};
  model.compile({.optimizer = keras::Adam(3e-2), .loss = keras::losses::MeanSquaredError()});
  Tensor x = sample({64, 4}, 2), y = matmul(tanh(matmul(x, w)), sample({6, 1}, 3));
  keras::History history = model.fit(x, y, {.epochs = 40, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 10);
  EXPECT_SAME_BITS(features.variable("w").read(), w.read());  // it is nobody's weight
  model(x, {.training = true});                               // and eagerly, where layers inherit `training`
  EXPECT_EQ(features.trace_count(), 1);
}

/// It loads when it is called for the first time, wherever that is.
struct LoadsLate : keras::CustomLayer {
  std::string path;
  bool in_build;
  ExportedFunction features;
  LoadsLate(std::string from, bool early) : path(std::move(from)), in_build(early) {}
  void build(const Shape&) override {
    if (in_build) features = load_function(path);
  }
  Tensor call(const Tensor& x, const keras::Context&) override {
    if (!features.defined()) features = load_function(path);
    traces = features.trace_count();
    return features({x})[0];
  }
  static inline int traces = 0;
};

TEST(ExportUses, LoadedByALayer) {
  Folder folder;
  Variable w(sample({4, 6}), {.name = "w"});
  export_function(folder / "f.stet", function("features(x)", [=](Tensor x) { return tanh(matmul(x, w)); }),
                  {f32, {dyn, 4}});
  const Tensor x = sample({3, 4}), expected = load_function(folder / "f.stet")({x})[0];
  for (bool in_build : {true, false})
    for (bool training : {true, false}) {
      SCOPED_TRACE(text(in_build, training));
      keras::Layer layer = keras::make<LoadsLate>(folder / "f.stet", in_build);
      EXPECT_SAME_BITS(layer(x, {.training = training}), expected);
      EXPECT_SAME_BITS(layer(x, {.training = !training}), expected);
      EXPECT_EQ(LoadsLate::traces, 1);
    }
}

TEST(ExportUses, LoadedUnderATape) {
  Folder folder;
  Variable w(sample({4, 6}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return tanh(matmul(x, w)); });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}});
  Tensor x = sample({3, 4});
  GradientTape tape;
  tape.watch(x);
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::vector<Tensor> given = tape.gradient(sum(loaded({x})[0]), {x, loaded.variable("w")});
  GradientTape other;
  other.watch(x);
  std::vector<Tensor> expected = other.gradient(sum(f(x)), {x, w});
  EXPECT_SAME_BITS(given[0], expected[0]);
  EXPECT_SAME_BITS(given[1], expected[1]);
}

TEST(ExportUses, UnderSeveralTapesAndForwards) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return sum(exp(x) * sin(x)); });
  export_function(folder / "f.stet", f, {f64, {dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  auto of_file = [=](Tensor x) { return loaded({x})[0]; };
  auto of_code = [=](Tensor x) { return f(x); };
  Tensor x = cast(sample({5}), f64);
  EXPECT_SAME_BITS(grad(of_file)(x), grad(of_code)(x));
  EXPECT_SAME_BITS(hessian(of_file)(x), hessian(of_code)(x));
  Tensor direction = cast(sample({5}, 2), f64);
  EXPECT_SAME_BITS(jvp(of_file, std::tuple(x), std::tuple(direction)).second,
                   jvp(of_code, std::tuple(x), std::tuple(direction)).second);
}

TEST(ExportUses, ForManyExamples) {
  Folder folder;
  Variable w(sample({4, 4}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return softmax(matmul(expand_dims(x, 0), w))[0]; });
  export_function(folder / "f.stet", f, {f32, {4}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  Tensor many = vmap([=](Tensor x) { return loaded({x})[0]; })(sample({7, 4}));
  for (int i = 0; i < 7; ++i) {
    Tensor one = loaded({sample({7, 4})[i]})[0];
    EXPECT_LT(max(abs(many[i] - one)).item<float>(), 1e-6f);
  }
}

TEST(ExportUses, LoadedByManyThreadsAtOnce) {
  Folder folder;
  Variable w(sample({4, 3}), {.name = "w"});
  Function f = function("f(x)", [=](Tensor x) { return sum(x) > 0 ? matmul(x, w) : matmul(-x, w); });
  export_function(folder / "f.stet", f, {f32, {dyn, 4}});
  const Tensor x = sample({5, 4}), expected = f(x);
  std::vector<std::thread> threads;
  std::vector<int> same(8, 0);
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) same[t] += same_bits(load_function(folder / "f.stet")({x})[0], expected);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(8, 5));
}

TEST(ExportUses, WhileItsVariablesAreWritten) {
  Folder folder;
  // Two Variables that a step changes together: a file that has one of the one step and one of the next is wrong.
  Variable a(zeros({1000}), {.name = "a"}), b(zeros({1000}), {.name = "b"});
  Function step = function("step()", [=] {
    a.assign_add(1.f);
    b.assign_add(1.f);
  });
  Function difference = function("difference()", [=] { return max(abs(a - b)); });
  step();
  std::atomic<bool> stops = false;
  std::thread writer([&] {
    while (!stops) step();
  });
  for (int i = 0; i < 20; ++i) {
    export_function(folder / "f.stet", difference);
    EXPECT_EQ(load_function(folder / "f.stet")({})[0].item<float>(), 0);
  }
  stops = true;
  writer.join();
}

TEST(ExportUses, ConditionsOfSizesAreTestedInEveryCall) {
  Folder folder;
  Function f = function("pairs(x)", [](Tensor x) { return reshape(x, {x.dim(0) / 2, 2}); });
  export_function(folder / "f.stet", f, {f32, {dyn("n")}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded({sample({8})})[0].dim(0), 4);
  const std::string given = error_of([&] { loaded({sample({7})}); });
  EXPECT_CONTAINS(given, "pairs: these sizes do not fit: (f32[7]); reshape at export_uses_test.cpp:");
  EXPECT_CONTAINS(given, " needs n == 2*(n // 2)");
  // Of an op that no result needs, too.
  Function g = function("g(x)", [](Tensor x) {
    reshape(x, {x.dim(0) / 3, 3});
    return x + 1;
  });
  export_function(folder / "g.stet", g, {f32, {dyn("n")}});
  ExportedFunction other = load_function(folder / "g.stet");
  EXPECT_SAME_BITS(other({sample({6})})[0], g(sample({6})));
  EXPECT_EQ(error_of([&] { other({sample({7})}); }) == "no error", error_of([&] { g(sample({7})); }) == "no error");
}

TEST(ExportUses, FilesMayGoWhenTheyAreLoaded) {
  Folder folder;
  Tensor c = sample({100});
  export_function(folder / "f.stet", function("f(x)", [=](Tensor x) { return x * c; }), {f32, {100}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  std::filesystem::remove(folder / "f.stet");
  EXPECT_SAME_BITS(loaded({ones({100})})[0], c);
}

TEST(ExportUses, SpecsMayBeTensors) {
  Folder folder;
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x * 2 + y; });
  export_function(folder / "f.stet", f, sample({3, 4}), 0.5f);
  ExportedFunction loaded = load_function(folder / "f.stet");
  EXPECT_EQ(loaded.inputs()[0].str(), "f32[3,4]");
  EXPECT_EQ(loaded.inputs()[1].str(), "f32[]");
  EXPECT_SAME_BITS(loaded({sample({3, 4}), 0.25f})[0], f(sample({3, 4}), 0.25f));
}

TEST(ExportUses, ViewsAreTaken) {
  Folder folder;
  Function f = function("f(x)", [](Tensor x) { return cumsum(x, 0) * 2; });
  export_function(folder / "f.stet", f, {f32, {dyn, dyn}});
  ExportedFunction loaded = load_function(folder / "f.stet");
  Tensor x = sample({6, 9});
  for (const Tensor& view : {transpose(x), x[{range(1, 5)}], x[{Range{}, range(2, 7)}], broadcast_to(x[0], {4, 9})})
    EXPECT_SAME_BITS(loaded({view})[0], f(view));
}

// Destroyed after main, when other statics may be gone.
ExportedFunction at_the_end;
TEST(ExportUses, MayOutliveMain) {
  Folder folder;
  Variable w(sample({3}), {.name = "w"});
  export_function(folder / "f.stet", function("f(x)", [=](Tensor x) { return x * w; }), {f32, {3}});
  at_the_end = load_function(folder / "f.stet");
  EXPECT_SAME_BITS(at_the_end({ones({3})})[0], w.read());
}

}  // namespace

// Host code that is not a function of its arguments: coins, counters, clocks, captures that change. Each is told, by
// the comparison of a trace's two runs or by an audit, within 1024 calls and whatever a seed says; and what only looks
// like it is not accused.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>

#include "eager_and_traced.h"

namespace stet {
namespace {

// --- the one place that knows how stet tells

constexpr int last_audit = 1024;

/// Calls `call(1)`, `call(2)`, … up to the last audit, and says what stet told: a TraceError of the comparison, or the
/// report of an audit. Empty: nothing was told.
std::string what_is_told(const std::function<void(int)>& call) {
  std::string told;
  on_stale([&](const StaleEvent& event) { told += event.explanation; });
  try {
    for (int n = 1; n <= last_audit && told.empty(); ++n) call(n);
  } catch (const Error& error) {  // with STET_VERIFY=1, that traced and eager differ
    told = error.what();
  }
  on_stale({});
  return told;
}

#define EXPECT_TOLD(...) EXPECT_NE(what_is_told(__VA_ARGS__), "")
#define EXPECT_NOT_TOLD(...) EXPECT_EQ(what_is_told(__VA_ARGS__), "")

const Tensor three = tensor({1.f, 2.f, 3.f});

// --- coins, counters and clocks: every run is another

TEST(StaleHost, ACoinBetweenTwoGraphs) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 coin(seed);
    Function f = function("coin(x)", [&](Tensor x) { return coin() % 2 ? reverse(x, 0) : x; });
    EXPECT_TOLD([&](int) { f(three); }) << "seed " << seed;
  }
}

TEST(StaleHost, ARareCoin) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    std::mt19937 coin(seed);
    Function f = function("rare(x)", [&](Tensor x) { return coin() % 4 == 0 ? x + 1 : x; });
    EXPECT_TOLD([&](int) { f(three); }) << "seed " << seed;
  }
}

TEST(StaleHost, ACoinAsANumber) {
  std::mt19937 coin(3);
  Function f = function("number(x)", [&](Tensor x) { return x * static_cast<float>(coin() % 1000); });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, ACoinAsASize) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 coin(seed);
    Function f = function("size(x)", [&](Tensor x) { return x[0] + zeros({1 + static_cast<int>(coin() % 2)}); });
    EXPECT_TOLD([&](int) { f(three); }) << "seed " << seed;
  }
}

TEST(StaleHost, AWarmUpByACounter) {
  int step = 0;
  Function f = function("warm(x)", [&](Tensor x) { return step++ < 3 ? x * 0.1f : x; });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, ALongWarmUpByACounterOutside) {
  int step = 0;
  Function f = function("warm(x)", [&](Tensor x) { return step < 200 ? x * 0.1f : x; });
  EXPECT_TOLD([&](int) {
    f(three);
    ++step;
  });
}

TEST(StaleHost, AStaticLocalCounter) {
  Function f = function("counted(x)", [](Tensor x) {
    static int calls = 0;
    return ++calls > 8 ? x * 2 : x;
  });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, AClock) {
  Function f = function("clock(x)", [](Tensor x) {
    return x + static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count() % 1000003);
  });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, ACounterInTheResult) {
  int n = 0;
  Function f = function("tuple(x)", [&](Tensor x) { return std::tuple{x, ++n}; });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, AFloatInTheResult) {
  float rate = 1;
  Function f = function("rate(x)", [&](Tensor x) { return std::tuple{x, rate}; });
  EXPECT_TOLD([&](int) {
    f(three);
    rate *= 0.99f;
  });
}

TEST(StaleHost, ACounterInAScalar) {
  float n = 0;
  Function f = function("scalar(x)", [&](Tensor x) { return x * Scalar(++n); });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, ACounterInATensorOfHostValues) {
  for (int size : {4, 40}) {
    float n = 0;
    Function f = function(
        "table(x)", [&](Tensor x) { return sum(x) + tensor(std::vector<float>(static_cast<std::size_t>(size), ++n)); });
    EXPECT_TOLD([&](int) { f(three); }) << size;
  }
}

// --- captures that change between calls

TEST(StaleHost, ACapturedFloat) {
  float rate = 0.1f;
  Function f = function("f(x)", [&](Tensor x) { return x * rate; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 5) rate = 0.2f;
  });
}

TEST(StaleHost, ACapturedFloatLate) {
  float rate = 0.1f;
  Function f = function("f(x)", [&](Tensor x) { return x * rate; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 600) rate = 0.2f;
  });
}

TEST(StaleHost, ACapturedBool) {
  bool training = true;
  Function f = function("f(x)", [&](Tensor x) { return training ? x * 2 : x; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 1) training = false;
  });
}

enum class Mode { fast, exact };
TEST(StaleHost, ACapturedEnum) {
  Mode mode = Mode::fast;
  Function f = function("f(x)", [&](Tensor x) { return mode == Mode::fast ? tanh(x) : x / (1 + abs(x)); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 3) mode = Mode::exact;
  });
}

struct Configuration {
  float scale = 1;
  int layers = 1;
};
TEST(StaleHost, ACapturedStruct) {
  Configuration configuration;
  Function f = function("f(x)", [&](Tensor x) {
    for (int i = 0; i < configuration.layers; ++i) x = tanh(x * configuration.scale);
    return x;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 7) configuration.layers = 2;
  });
}

TEST(StaleHost, ASharedConfigurationCapturedByValue) {
  auto configuration = std::make_shared<Configuration>();
  Function f = function("f(x)", [=](Tensor x) { return x * configuration->scale; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 100) configuration->scale = 3;
  });
}

TEST(StaleHost, ACapturedVector) {
  std::vector<float> weights{1, 2};
  Function f = function("f(x)", [&](Tensor x) {
    Tensor out = x * 0;
    for (float w : weights) out = out + x * w;
    return out;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 2) weights.push_back(3);
  });
}

TEST(StaleHost, ACapturedString) {
  std::string activation = "relu";
  Function f = function("f(x)", [&](Tensor x) { return activation == "relu" ? relu(x) : sigmoid(x); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) activation = "sigmoid";
  });
}

TEST(StaleHost, ACapturedOptional) {
  std::optional<float> clip;
  Function f = function("f(x)", [&](Tensor x) { return clip ? minimum(x, *clip) : x; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) clip = 2.f;
  });
}

TEST(StaleHost, ACapturedMap) {
  std::unordered_map<std::string, float> rates{{"bias", 0.5f}};
  Function f = function("f(x)", [&](Tensor x) { return x * (rates.contains("kernel") ? rates["kernel"] : 1.f); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) rates["kernel"] = 2;
  });
}

TEST(StaleHost, ACapturedTensorReplaced) {
  for (int size : {3, 40}) {
    Tensor mask = ones({size});
    Function f = function("f(x)", [&](Tensor x) { return x * mask; });
    EXPECT_TOLD([&](int n) {
      f(ones({size}));
      if (n == 9) mask = full({size}, 0.5);
    }) << size;
  }
}

TEST(StaleHost, ACapturedVariableReplaced) {
  Variable v(ones({3}));
  Function f = function("f(x)", [&](Tensor x) { return x * v; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) v = Variable(zeros({3}));
  });
}

TEST(StaleHost, AListOfVariablesThatGrew) {
  std::vector<Variable> variables{Variable(ones({3}))};
  Function f = function("f(x)", [&](Tensor x) {
    for (const Variable& v : variables) x = x * v;
    return x;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) variables.emplace_back(full({3}, 2));
  });
}

TEST(StaleHost, ALayerReplaced) {
  keras::Layer layer = keras::Dense(2);
  Function f = function("f(x)", [&](Tensor x) { return layer(x); });
  Tensor x = ones({2, 3});
  EXPECT_TOLD([&](int n) {
    f(x);
    if (n == 9) {
      layer = keras::Dense(2);
      layer(x);
    }
  });
}

TEST(StaleHost, ALayerReplacedByOneThatIsNotBuilt) {
  keras::Layer layer = keras::Dense(2);
  Function f = function("f(x)", [&](Tensor x) { return layer(x); });
  Tensor x = ones({2, 3});
  EXPECT_TOLD([&](int n) {
    f(x);
    if (n == 9) layer = keras::Dense(2);
  });
}

TEST(StaleHost, ALayerAddedToAModel) {
  keras::Sequential model{keras::Input({3}), keras::Dense(2)};
  Function f = function("f(x)", [=](Tensor x) { return model(x); });
  Tensor x = ones({2, 3});
  EXPECT_TOLD([&](int n) {
    f(x);
    if (n == 9) model.add(keras::Dense(2));
  });
}

struct Gate : keras::CustomLayer {
  bool open = true;
  Tensor call(const Tensor& x, const keras::Context&) override { return open ? x : x * 0; }
};
TEST(StaleHost, AMemberOfALayer) {
  auto gate = keras::make<Gate>();
  Function f = function("f(x)", [=](Tensor x) { return gate(x); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) gate->open = false;
  });
}

bool global_flag = false;
TEST(StaleHost, AGlobalFlag) {
  global_flag = false;
  Function f = function("f(x)", [](Tensor x) { return global_flag ? -x : x; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) global_flag = true;
  });
}

thread_local int per_thread = 0;
TEST(StaleHost, AThreadLocal) {
  per_thread = 1;
  Function f = function("f(x)", [](Tensor x) { return x * per_thread; });
  EXPECT_TOLD([&](int n) {
    if (n == 1) return void(f(three));
    std::thread([&] {
      per_thread = 2;
      f(three);
    }).join();
  });
}

TEST(StaleHost, AnEnvironmentVariable) {
  ::unsetenv("STALE_HOST_TEST");
  Function f = function("f(x)", [](Tensor x) { return std::getenv("STALE_HOST_TEST") ? -x : x; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) ::setenv("STALE_HOST_TEST", "1", 1);
  });
  ::unsetenv("STALE_HOST_TEST");
}

TEST(StaleHost, TheContentOfAFile) {
  std::string path = ::testing::TempDir() + "stale_host_test.txt";
  std::ofstream(path) << 2.f;
  Function f = function("f(x)", [=](Tensor x) {
    float scale = 0;
    std::ifstream(path) >> scale;
    return x * scale;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) std::ofstream(path) << 3.f;
  });
}

TEST(StaleHost, AnOrderOfAddresses) {
  // The order of two objects in memory decides; between calls they change places.
  std::vector<std::unique_ptr<float>> parts;
  parts.push_back(std::make_unique<float>(2.f));
  parts.push_back(std::make_unique<float>(3.f));
  Function f = function("f(x)", [&](Tensor x) {
    std::set<float*> ordered;
    for (auto& part : parts) ordered.insert(part.get());
    for (float* part : ordered) x = (x + 1) * *part;
    return x;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) std::swap(*parts[0], *parts[1]);
  });
}

TEST(StaleHost, AStdFunctionReplaced) {
  std::function<Tensor(Tensor)> activation = [](Tensor x) { return relu(x); };
  Function f = function("f(x)", [&](Tensor x) { return activation(x); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) activation = [](Tensor x) { return tanh(x); };
  });
}

TEST(StaleHost, AnInnerFunctionReplaced) {
  Function inner = function("inner(x)", [](Tensor x) { return relu(x); });
  Function f = function("f(x)", [&](Tensor x) { return inner(x); });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) inner = function("inner(x)", [](Tensor x) { return tanh(x); });
  });
}

TEST(StaleHost, AValueReadInAnInitScope) {
  Variable v(full({}, 2));
  Function f = function("f(x)", [&](Tensor x) {
    float now = 0;
    {
      InitScope outside;
      now = v.read().item<float>();
    }
    return x * now;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) v.assign(full({}, 5));
  });
}

TEST(StaleHost, TheSeedSetInside) {
  Function f = function("f(x)", [](Tensor x) {
    random::seed(4);
    return x + random::uniform({3});
  });
  EXPECT_TOLD([&](int) { f(three); });
}

// --- host state and branches

TEST(StaleHost, WrittenOnOneSideOfACond) {
  Function f = function("f(x)", [](Tensor x) {
    int k = 0;
    Tensor y = cond(
        sum(x) > 0.f,
        [&] {
          k = 1;
          return x + 1;
        },
        [&] {
          k = 2;
          return x - 1;
        });
    return y * k;
  });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, WrittenOnOneSideOfAnIfInAScope) {
  Function f = function("f(x)", [](Tensor x) {
    std::vector<float> seen;
    scope([&] {
      seen.clear();
      if (sum(x) > 0.f) seen.push_back(2);
    });
    for (float s : seen) x = x * s;
    return x;
  });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, AddedToOnOneSideOfAnIfInAScope) {
  Function f = function("f(x)", [](Tensor x) {
    std::vector<float> seen;
    scope([&] {
      if (sum(x) > 0.f) seen.push_back(2);
    });
    for (float s : seen) x = x * s;
    return x;
  });
  EXPECT_TOLD([&](int) { f(three); });
}

struct Counting : keras::CustomLayer {
  int low = 0;
  Tensor call(const Tensor& x, const keras::Context&) override {
    if (sum(x) < 0.f) ++low;
    return x * (1 + low);
  }
};
TEST(StaleHost, AMemberWrittenOnOneSide) {
  auto layer = keras::make<Counting>();
  Function f = function("f(x)", [=](Tensor x) { return layer(x); });
  EXPECT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, ACoinOnOneSide) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 coin(seed);
    Function f = function("f(x)", [&](Tensor x) {
      if (sum(x) > 0.f) return coin() % 2 ? x + 1 : x;
      return -x;
    });
    EXPECT_TOLD([&](int) { f(three); }) << "seed " << seed;
  }
}

TEST(StaleHost, ADifferentNumberOfDraws) {
  int n = 0;
  Function f = function("f(x)", [&](Tensor x) {
    for (int i = 0; i < n; ++i) random::uniform({1});
    return x + random::uniform({3});
  });
  EXPECT_TOLD([&](int call) {
    f(three);
    if (call == 9) n = 1;
  });
}

TEST(StaleHost, AnEffectThatComesLate) {
  Variable v(zeros({3}));
  bool write = false;
  Function f = function("f(x)", [&](Tensor x) {
    if (write) v.assign(x);
    return x * 2;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) write = true;
  });
}

TEST(StaleHost, AnErrorThatComesLate) {
  bool broken = false;
  Function f = function("f(x)", [&](Tensor x) {
    if (broken) throw std::runtime_error("host code is broken");
    return x * 2;
  });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) broken = true;
  });
}

TEST(StaleHost, InTheSecondTraceOnly) {
  int k = 0;
  Function f = function("f(x)", [&](Tensor x) { return x.rank() == 2 ? x * static_cast<float>(++k) : x; });
  f(three);
  EXPECT_TOLD([&](int) { f(ones({2, 2})); });
}

TEST(StaleHost, TheTypeOfAConstant) {
  bool wide = false;
  Function f = function("f(x)", [&](Tensor x) { return wide ? cast(x, f64) : x; });
  EXPECT_TOLD([&](int n) {
    f(three);
    if (n == 9) wide = true;
  });
}

// --- what is not stale

TEST(StaleHost, ALogOfRunsIsNotAccused) {
  std::vector<std::string> log;
  Function f = function("f(x)", [&](Tensor x) {
    log.push_back("run " + std::to_string(log.size()));
    if (sum(x) > 0.f) return x * 2;
    return x;
  });
  EXPECT_NOT_TOLD([&](int n) { f(n % 2 ? three : -three); });
}

TEST(StaleHost, ACaptureThatKeepsItsValueIsNotAccused) {
  Tensor table = cast(arange(40), f32), small = ones({3});
  float rate = 0.5f;
  Function f = function("f(x)", [&](Tensor x) { return sum(x * small) * rate + table; });
  EXPECT_NOT_TOLD([&](int n) {
    f(three);
    if (n == 9) {  // equal values in other memory
      table = cast(arange(40), f32);
      small = ones({3});
      rate = 0.25f + 0.25f;
    }
  });
}

TEST(StaleHost, ALazilyFilledTableIsNotAccused) {
  std::map<int, Tensor> cache;
  Function f = function("f(x)", [&](Tensor x) {
    if (!cache.contains(1)) {
      InitScope outside;
      cache[1] = full({3}, 2);
    }
    return x * cache[1];
  });
  EXPECT_NOT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, StateAndDrawsAreNotAccused) {
  Variable v(zeros({3}));
  keras::Dropout drop(0.5);
  Function f = function("f(x)", [=](Tensor x) {
    v.assign_add(random::uniform({3}));
    if (sum(v) > 100.f) v.assign(zeros({3}));
    return drop(x + v, {.training = true});
  });
  EXPECT_NOT_TOLD([&](int) { f(three); });
}

TEST(StaleHost, SizesThatChangeAreNotAccused) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor y = x[Range{.begin = 1}];
    if (sum(y) > 10.f) return concat({y, y});
    return reshape(x, {x.dim(0)}) / x.dim(0);
  });
  EXPECT_NOT_TOLD([&](int n) { f(cast(arange(2 + n % 7), f32)); });
}

TEST(StaleHost, ASizeOfOneIsNotAccused) {
  Function f = function("f(x, k)", [](Tensor x, Tensor k) { return x * k; });
  EXPECT_NOT_TOLD([&](int n) { f(ones({n == 1 ? 6 : 1}), ones({1})); });
}

TEST(StaleHost, AModelInTrainingIsNotAccused) {
  keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = relu}), keras::Dropout(0.2),
                          keras::Dense(1)};
  keras::Adam optimizer(1e-3);
  Function f = function("step(x)", [=](Tensor x) {
    GradientTape tape;
    Tensor loss = mean(square(model(x, {.training = true})));
    auto variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
    return loss;
  });
  EXPECT_NOT_TOLD([&](int n) { f(ones({1 + n % 5, 3})); });
}

TEST(StaleHost, AWarmUpByACounterInMap) {
  int step = 0;
  auto dataset = data::from_tensor_slices(ones({40, 3})).map([&](Tensor x) { return step++ < 3 ? x * 0.1f : x; });
  EXPECT_TOLD([&](int) {
    for (Tensor x : dataset) (void)x;
  });
}

struct Masked : keras::CustomModel {
  Tensor mask = ones({2});
  Tensor call(const Tensor& x, const keras::Context&) override { return x * mask; }
};

TEST(StaleHost, ATensorMemberOfAModel) {
  auto model = keras::make<Masked>();
  EXPECT_TOLD([&](int n) {
    model.predict(ones({1, 2}));
    if (n == 9) model->mask = zeros({2});
  });
}

}  // namespace
}  // namespace stet

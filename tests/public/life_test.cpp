// Functions and tensors at the edges of their lives: moved from, destroyed inside of themselves, used while a thread or
// the process ends, made by a library that is closed.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stet/stet.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

TEST(Life, AMovedFromFunctionSaysSo) {
  Function f = function("f(x)", [](Tensor x) { return x + 1; });
  Function g = std::move(f);
  EXPECT_EQ(g(tensor({1.f})).item<float>({0}), 2.f);
  auto expect = [](const std::string& error, const std::string& operation) {
    EXPECT_CONTAINS(error, operation + ": this Function was moved from and holds nothing");
    EXPECT_CONTAINS(error, "fix: use the one that it was moved to, or copy it instead: copies share");
  };
  std::string of_call = error_of([&] { f(tensor({1.f})); });
  expect(of_call, "call");
  EXPECT_CONTAINS(of_call, "at ");
  EXPECT_CONTAINS(of_call, "life_test.cpp:");
  expect(error_of([&] { f.trace_count(); }), "trace_count");
  expect(error_of([&] { f.explain(); }), "explain");
  expect(error_of([&] { f.graph(); }), "graph");
  expect(error_of([&] { f.clear(); }), "clear");
}

TEST(Life, AFunctionMayBeDestroyedInsideItsOwnTrace) {
  auto holder = std::make_shared<std::optional<Function<Tensor(Tensor)>>>();
  holder->emplace(function("f(x)", [holder](Tensor x) {
    Tensor y = x * 2;
    holder->reset();
    return y + 1;
  }));
  EXPECT_EQ((**holder)(tensor({1.f, 2.f})).to_vector<float>(), (Floats{3, 5}));
  EXPECT_FALSE(holder->has_value());
}

// --- the end of threads and of the process

/// Uses everything that may be used in a destructor; ends the process with 3 if a result is wrong.
struct LastWords {
  Tensor tensor = ones({3});
  Variable variable = Variable(ones({3}));
  Function<Tensor(Tensor)> function = stet::function("last(x)", [](Tensor x) { return x * 2 + 1; });
  ~LastWords() {
    bool right = (tensor + tensor).item<float>({2}) == 2;
    right &= tanh(tensor * 0).item<float>({0}) == 0;  // may need a compilation
    right &= matmul(ones({40, 40}), ones({40, 40})).item<float>({1, 1}) == 40;
    variable.assign_add(tensor);
    right &= function(variable.read()).item<float>({0}) == 5;
    right &= function(ones({2}, i32)).item<int>({0}) == 3;  // another trace
    {
      GradientTape tape;
      Tensor y = sum(square(variable));
      right &= tape.gradient(y, variable).item<float>({0}) == 4;
    }
    Function<Tensor(Tensor)> fresh = stet::function("fresh(x)", [](Tensor x) { return exp(x * 0); });
    right &= fresh(tensor).item<float>({1}) == 1;
    keras::Dense layer(2);
    right &= layer(ones({1, 2})).rank() == 2;
    if (!right) _exit(3);
  }
};

class AtTheEnd : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { GTEST_FLAG_SET(death_test_style, "fast"); }
};

TEST_F(AtTheEnd, OfTheProcessAStaticThatIsOlderThanAllElse) {
  EXPECT_EXIT(
      {
        setenv("STET_CACHE_DIR", "", 1);  // so that code is compiled
        on_retrace([](const RetraceEvent&) {});
        static struct Late {
          std::optional<LastWords> words;
        } late;  // before the library is used: it ends after all that is made from here on
        late.words.emplace();
        late.words->function(ones({3}));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

/// Convolutions and products of sizes that were never seen, which other libraries compute: they end with the process.
struct LastImages {
  std::int64_t size;
  ~LastImages() {
    bool right = true;
    auto use = [&](Tensor x, Tensor w, auto convolve, float sum_of_one) {
      GradientTape tape;
      tape.watch(x);
      tape.watch(w);
      Tensor y = convolve(x, w);
      right &= y.item<float>({0, 3, 3, 0}) == sum_of_one;
      std::vector<Tensor> d = tape.gradient(sum(y), {x, w});
      right &= sum(d[0]).item<double>() > 0 && sum(d[1]).item<double>() > 0;
    };
    auto plain = [](Tensor x, Tensor w) { return conv2d(x, w, {.padding = "same"}); };
    auto depthwise = [](Tensor x, Tensor w) { return depthwise_conv2d(x, w, {.padding = "same"}); };
    use(ones({3, size, size, 16}), ones({3, 3, 16, 16}), plain, 144);
    use(ones({5, size, size, 1}), ones({3, 3, 1, 16}), plain, 9);
    use(ones({2, size, size, 16}), ones({3, 3, 16, 1}), depthwise, 9);
    Tensor tall = ones({64 * size, 512});
    right &= matmul(transpose(tall), tall).item<float>({7, 9}) == static_cast<float>(64 * size);
    if (!right) _exit(3);
  }
};

TEST_F(AtTheEnd, OfTheProcessWhatOtherLibrariesCompute) {
  auto end = [](bool used_before) {
    static std::optional<LastImages> last;
    static std::optional<LastImages> last_but_one;
    if (used_before) conv2d(ones({1, 6, 6, 16}), ones({3, 3, 16, 16}));
    last.emplace(11);
    last_but_one.emplace(12);
    std::exit(0);
  };
  for (bool used_before : {false, true}) EXPECT_EXIT(end(used_before), ::testing::ExitedWithCode(0), "");
}

TEST_F(AtTheEnd, OfTheProcessAThreadLocalOfTheMainThread) {
  EXPECT_EXIT(
      {
        on_retrace([](const RetraceEvent&) {});
        thread_local std::optional<LastWords> words;
        words.emplace();
        (ones({2}) + 1).to_vector<float>();
        words->function(ones({3}));
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(AtTheEnd, OfAThread) {
  on_retrace([](const RetraceEvent&) {});
  for (int round = 0; round < 3; ++round)
    std::thread([] {
      thread_local std::optional<LastWords> words;
      words.emplace();
      words->function(ones({3}));
      (words->tensor + 1).to_vector<float>();
    }).join();
  on_retrace({});
}

// --- a library that is closed

TEST(Life, AFunctionOfAClosedLibraryCanBeExplained) {
  // It lies beside this program.
  const std::filesystem::path plugin =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libstet_test_plugin.so";
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto* make = reinterpret_cast<FunctionBase* (*)()>(dlsym(library, "traced_in_plugin"));
  ASSERT_TRUE(make);
  // Never destroyed: the callable's code is gone.
  static FunctionBase* const function = make();
  std::string before = function->explain();
  dlclose(library);
  ASSERT_FALSE(dlopen(plugin.c_str(), RTLD_NOW | RTLD_NOLOAD)) << "it is still loaded";
  EXPECT_EQ(function->explain(), before);
  EXPECT_CONTAINS(before, "fact x_0 == 3, for host code at ");
  EXPECT_CONTAINS(before, "plugin.cpp:");
  EXPECT_CONTAINS(function->graph(), "%");
}

}  // namespace
}  // namespace stet

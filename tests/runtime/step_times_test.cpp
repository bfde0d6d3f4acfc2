#include "stet/runtime/step_times.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "stet/stet.h"

namespace stet {
namespace {

/// Lines of a report that have a text in them.
std::vector<std::string> lines_with(const std::string& report, const std::string& wanted) {
  std::vector<std::string> out;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);)
    if (line.find(wanted) != std::string::npos) out.push_back(line);
  return out;
}

/// The numbers of a step's line: share, calls, total, each, least, KB, GB/s, GF/s.
std::vector<double> numbers_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<double> out;
  for (std::string word; words >> word && out.size() < 8;) {
    char* end = nullptr;
    double value = std::strtod(word.c_str(), &end);
    if (end == word.c_str()) break;
    out.push_back(value);
  }
  return out;
}

struct StepTimesTest : testing::Test {
  StepTimesTest() { step_times::begin(); }
  ~StepTimesTest() override { step_times::end(); }
};

TEST_F(StepTimesTest, CountsCallsBytesAndArithmetic) {
  Function product = function("product(x, w)", [](Tensor x, Tensor w) { return relu(matmul(x, w)); });
  Tensor x = ones({64, 32}), w = ones({32, 48});
  for (int call = 0; call < 3; ++call) product(x, w);
  std::vector<std::string> lines = lines_with(step_times::report(), "gemm f32 NN m=64 n=48 k=32, then");
  ASSERT_EQ(lines.size(), 1u) << step_times::report();
  std::vector<double> numbers = numbers_of(lines[0]);
  ASSERT_EQ(numbers.size(), 8u) << lines[0];
  EXPECT_EQ(numbers[1], 3) << "calls";
  EXPECT_NEAR(numbers[5], (64 * 32 + 32 * 48 + 64 * 48) * 4e-3, 0.1) << "KB a call";
  // 2 m n k operations and the epilogue's, in the time that is said.
  EXPECT_GE(numbers[7] * numbers[2] * 1e3, 0.9 * 3 * 2 * 64 * 48 * 32);
  EXPECT_LE(numbers[4], numbers[3] * 1.01) << "the least is not more than the mean";
  EXPECT_EQ(lines_with(step_times::report(), "3 runs").size(), 1u) << step_times::report();
}

TEST_F(StepTimesTest, CallsOfAllSizesAddUp) {
  Function twice = function("twice(x)", [](Tensor x) { return sin(x) * 2; });
  twice(ones({1000}));
  twice(ones({3000}));
  std::vector<std::string> lines = lines_with(step_times::report(), "sin(");
  ASSERT_EQ(lines.size(), 1u) << step_times::report();
  EXPECT_EQ(numbers_of(lines[0])[1], 2);
  EXPECT_NEAR(numbers_of(lines[0])[5], (1000 + 3000) * 8e-3 / 2, 0.1);
}

TEST_F(StepTimesTest, StepsOfALoopStandBelowIt) {
  Function sums = function("sums(rows, w)", [](Tensor rows, Tensor w) {
    return scan([w](Tensor state, Tensor row) { return tanh(matmul(state, w) + row); }, zeros({4, 8}), rows);
  });
  sums(ones({5, 4, 8}), ones({8, 8}));
  sums(ones({7, 4, 8}), ones({8, 8}));
  std::string report = step_times::report();
  std::vector<std::string> products = lines_with(report, "gemm");
  ASSERT_EQ(products.size(), 1u) << report;
  EXPECT_EQ(numbers_of(products[0])[1], 12) << "5 turns and 7";
  std::vector<std::string> loops = lines_with(report, "turns");
  ASSERT_EQ(loops.size(), 1u) << report;
  EXPECT_EQ(numbers_of(loops[0])[1], 2);
  EXPECT_GT(products[0].find("gemm"), loops[0].find("turns") - 20) << "indented";
  EXPECT_LT(report.find(loops[0]), report.find(products[0]));
}

TEST_F(StepTimesTest, ProgramsWithSizesThatTheyFindThemselves) {
  Function positive = function("positive(x)", [](Tensor x) { return sum(exp(boolean_mask(x, x > 0))); });
  EXPECT_FLOAT_EQ(positive(tensor({-1.f, 0.f, 1.f})).item<float>(), std::exp(1.f));
  EXPECT_FALSE(lines_with(step_times::report(), "positions").empty()) << step_times::report();
}

TEST_F(StepTimesTest, ForgetsAndEnds) {
  Function once = function("once(x)", [](Tensor x) { return cos(x); });
  once(ones({4}));
  step_times::forget();
  EXPECT_EQ(step_times::report(), "no step was timed\n");
  once(ones({4}));
  EXPECT_EQ(numbers_of(lines_with(step_times::report(), "cos(").at(0))[1], 1);
  step_times::end();
  EXPECT_EQ(step_times::report(), "no step was timed\n");
  once(ones({4}));  // still wrapped: its record is nobody's now
  once(ones({5}));
  EXPECT_EQ(step_times::report(), "no step was timed\n");
}

TEST_F(StepTimesTest, AStepThatThrowsDoesNotCount) {
  Function pick = function("pick(x, i)", [](Tensor x, Tensor i) { return gather(x, i); });
  Tensor x = tensor({1.f, 2.f});
  EXPECT_EQ(pick(x, tensor({1})).item<float>({0}), 2);
  EXPECT_THROW(pick(x, tensor({2})), UserError);
  std::string report = step_times::report();
  EXPECT_EQ(lines_with(report, "1 runs").size(), lines_with(report, " runs").size()) << report;
}

TEST_F(StepTimesTest, ThreadsCountEachCall) {
  Function half = function("half(x)", [](Tensor x) { return exp(x) / 2; });
  half(ones({8}));
  step_times::forget();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int call = 0; call < 50; ++call) half(ones({8 + call % 3}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers_of(lines_with(step_times::report(), "exp(").at(0))[1], 200) << step_times::report();
}

TEST(StepTimesDeathTest, ReportsAtTheEndOfAProcessThatAsks) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // The environment is read once, so it takes a process of its own that has run nothing yet.
  setenv("STET_STEP_TIMES", "1", 1);
  EXPECT_EXIT(
      {
        Function root = function("root(x)", [](Tensor x) { return sqrt(x); });
        root(ones({4}));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "what steps took \\(STET_STEP_TIMES\\)[^$]*sqrt\\(");
  unsetenv("STET_STEP_TIMES");
}

}  // namespace
}  // namespace stet

// Files that earlier versions wrote are loaded, and give what they gave.
//
// tests/oracle/exported/v1.stet was written by version 0.1.0, by the test WritesTheFile below:
//   STET_WRITE_EXPORTED=1 stet_public_tests --gtest_filter='*WritesTheFile'
// The numbers are NumPy's: x = [[1, 2], [3, -4], [-5, 6]], w = [[0.5, -1], [2, 0.25]], table = [10, 20, …, 200].
//   y = np.maximum(x @ w + 1, 0); picked = table[np.argmax(y, 1)]; turns = np.cumsum(x, 0); doubled = x * 2
#include <cstdlib>

#include "exported_files.h"

using namespace stet;

namespace {

/// Tests run in the root of the sources.
std::string folder_of_files() { return "tests/oracle/exported"; }

const Tensor given = tensor({{1.f, 2.f}, {3.f, -4.f}, {-5.f, 6.f}});

TEST(ExportVersions, OneIsUnderstood) {
  ExportedFile file = load_exported(folder_of_files() + "/v1.stet");
  EXPECT_EQ(file.written_by(), "0.1.0");
  EXPECT_EQ(file.functions(), (std::vector<std::string>{"serve", "count"}));
  ExportedFunction serve = file.function("serve");
  EXPECT_EQ(serve.inputs()[0].str(), "f32[batch,2]");
  std::map<std::string, Tensor> out = serve.call({{"x", given}});
  EXPECT_EQ(out.at("y").to_vector<float>(), (std::vector<float>{5.5f, 0.5f, 0, 0, 10.5f, 7.5f}));
  EXPECT_EQ(out.at("picked").to_vector<float>(), (std::vector<float>{10, 10, 10}));
  EXPECT_EQ(out.at("turns").to_vector<float>(), (std::vector<float>{1, 2, 4, -2, -1, 4}));
  EXPECT_EQ(out.at("doubled").to_vector<float>(), (std::vector<float>{2, 4, 6, -8, -10, 12}));
  ExportedFunction count = file.function("count");
  count({});
  EXPECT_EQ(count({})[0].item<std::int64_t>(), 42);
}

TEST(ExportVersions, WritesTheFile) {
  if (!std::getenv("STET_WRITE_EXPORTED")) GTEST_SKIP() << "the file is there";
  Variable w(tensor({{0.5f, -1.f}, {2.f, 0.25f}}), {.name = "w"});
  Variable calls(tensor(std::int64_t{40}), {.trainable = false, .name = "calls"});
  Tensor table = cast(arange(1, 21), f32) * 10;
  Function serve = function("serve(x)", [=](Tensor x) {
    Tensor y = relu(matmul(x, w) + 1);
    auto [last, turns] = scan([](Tensor s, Tensor row) { return std::pair(s + row, s + row); }, zeros({2}), x);
    Tensor doubled = x.dim(0) * 2 == x.dim(0) + x.dim(0) ? x * 2 : x;
    if (sum(y) < 0) doubled = -doubled;
    return std::map<std::string, Tensor>{
        {"y", y}, {"picked", gather(table, argmax(y, 1))}, {"turns", turns}, {"doubled", doubled}};
  });
  Function count = function("count()", [=] { return calls.assign_add(std::int64_t{1}); });
  Exporter exporter;
  exporter.add("serve", serve, {f32, {dyn("batch"), 2}}).add("count", count);
  exporter.write(folder_of_files() + "/v1.stet");
}

}  // namespace

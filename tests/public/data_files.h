// What tests of file formats share: a folder of their own, files made by others, mutations.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "expect_error.h"
#include "stet/runtime/buffer.h"
#include "stet/stet.h"

namespace data_files {

/// A folder that is gone after the test.
class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string name = std::filesystem::temp_directory_path() / "stet_files_XXXXXX";
    folder = mkdtemp(name.data());
  }
  ~FilesTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string path(const std::string& name) const { return folder + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string folder;
};

/// tests/oracle/readers/make_readers.py made them.
inline std::string stored(const std::string& name) { return "tests/oracle/readers/files/" + name; }

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string text_of(const stet::Tensor& bytes) {
  std::vector<std::uint8_t> list = bytes.to_vector<std::uint8_t>();
  return {list.begin(), list.end()};
}

/// The same dtype, shape and elements (bit for bit; NaN is what NaN is).
inline void expect_same(const stet::Tensor& a, const stet::Tensor& b, const std::string& what = "") {
  ASSERT_EQ(stet::type_text(a), stet::type_text(b)) << what;
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]))
        << what << " element " << i << ": " << x[i] << " " << y[i];
}

/// How many mutations a test tries: STET_MUTATIONS times as many as are quick.
inline int mutations(int quick) {
  const char* times = std::getenv("STET_MUTATIONS");
  return times ? quick * std::max(1, std::atoi(times)) : quick;
}

/// Something else than it was: a few bytes set, cut, doubled, inserted.
inline std::string mutated(std::string bytes, std::mt19937& draw) {
  static constexpr unsigned char interesting[] = {0, 1, 0x7F, 0x80, 0xFF, '"', ',', '\n', '\r', '{', '\''};
  for (unsigned times = 1 + draw() % 4; times > 0; --times) {
    if (bytes.empty()) return bytes;
    const std::size_t at = draw() % bytes.size();
    switch (draw() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(interesting[draw() % sizeof interesting]);
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(draw() % bytes.size(), draw() % 40));
        break;
      case 4:
        bytes.erase(at, draw() % 8);
        break;
      default:
        for (std::size_t i = at; i < std::min(bytes.size(), at + 4); ++i)
          bytes[i] = static_cast<char>(draw() % 2 ? 0xFF : 0x7F);
    }
  }
  return bytes;
}

}  // namespace data_files

using namespace data_files;

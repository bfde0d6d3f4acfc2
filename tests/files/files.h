// What tests of files share: a folder that goes away, whole files, bytes and errors as text.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/error.h"
#include "stet/files/file.h"
#include "stet/files/source.h"

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace stet::files {

/// The text of the UserError that `f` throws, or "no error". Any other exception fails the test.
template <class F>
std::string user_error_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}
template <class F>
std::string internal_error_of(F f) {
  try {
    f();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stet_files_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_whole(const std::string& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

inline Bytes bytes_from(std::string_view text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
inline std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// What readers in tests say they are: the line is none, so that it does not stand in expected texts.
inline Reading test_reading(std::string path = "test.file") { return {"load", std::move(path), Where{}}; }
inline Source in_memory(std::string_view text, std::string path = "test.file") {
  return Source(bytes_from(text), test_reading(std::move(path)));
}
/// A file that is stored with the tests. Tests run in the root of the sources.
inline std::string stored(std::string_view name) { return "tests/oracle/files/" + std::string(name); }

/// Overwrites an integer.
template <class T>
void poke(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <class T>
T peek(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace stet::files

// What tests of exported functions share: files of their own, and how two results are compared.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "expect_error.h"
#include "stet/stet.h"

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stet_export_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The same dtype, sizes and bits.
inline bool same_bits(const stet::Tensor& a, const stet::Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape().sizes() != b.shape().sizes()) return false;
  if (a.dtype() == stet::i64) return a.to_vector<std::int64_t>() == b.to_vector<std::int64_t>();
  // All other types are exact in f64.
  const std::vector<double> x = stet::cast(a, stet::f64).to_vector<double>(),
                            y = stet::cast(b, stet::f64).to_vector<double>();
  return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}
#define EXPECT_SAME_BITS(a, b) EXPECT_TRUE(same_bits(a, b)) << (a) << "\n" << (b)

/// CRC-32C, bit by bit.
inline std::uint32_t plain_crc32c(const char* from, std::size_t count) {
  std::uint32_t sum = ~0u;
  for (std::size_t i = 0; i < count; ++i) {
    sum ^= static_cast<unsigned char>(from[i]);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) ? 0x82f63b78u : 0);
  }
  return ~sum;
}

/// Checksums of head and header put right, so that what was changed is looked at.
inline void put_checksums_right(std::string& file) {
  if (file.size() < 128) return;
  std::uint64_t head = 0;
  std::memcpy(&head, file.data() + 16, 8);
  const std::uint64_t total = file.size();
  std::memcpy(file.data() + 24, &total, 8);
  if (head <= file.size() - 128) {
    const std::uint32_t sum = plain_crc32c(file.data() + 128, head);
    std::memcpy(file.data() + 32, &sum, 4);
  }
  const std::uint32_t sum = plain_crc32c(file.data(), 124);
  std::memcpy(file.data() + 124, &sum, 4);
}

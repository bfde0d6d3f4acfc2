// What stands behind the data of a compressed IDX file: a checksum and a length, which must be there and right.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "stet/data/idx.h"

namespace stet {
namespace {

class IdxTrailerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/stet_idx_XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/file.gz";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string header(std::uint32_t count) {
    std::string out("\0\0\x08\x01", 4);
    for (int shift : {24, 16, 8, 0}) out += static_cast<char>(count >> shift & 255);
    return out;
  }
  void write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  /// One compressed part with the header, and `zeros` bytes of 0.
  std::string compressed(const std::string& head, std::size_t zeros) {
    gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, head.data(), static_cast<unsigned>(head.size()));
    std::vector<char> block(1 << 20);
    for (; zeros > 0; zeros -= std::min(zeros, block.size()))
      gzwrite(file, block.data(), static_cast<unsigned>(std::min(zeros, block.size())));
    gzclose(file);
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string error() {
    try {
      data::read_idx(path_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string folder_, path_;
};

TEST_F(IdxTrailerTest, MayNotBeCut) {
  std::string whole = compressed(header(100), 100);
  EXPECT_EQ(error(), "no error");
  for (std::size_t cut = 1; cut <= 9; ++cut) {
    write(whole.substr(0, whole.size() - cut));
    EXPECT_NE(error().find("ends in its compressed data, at byte "), std::string::npos) << cut << ": " << error();
  }
}

TEST_F(IdxTrailerTest, MustBeThatOfTheData) {
  std::string whole = compressed(header(100), 100);
  for (std::size_t from_end : {8, 5, 4, 1}) {  // the checksum, the length
    std::string wrong = whole;
    wrong[wrong.size() - from_end] = static_cast<char>(wrong[wrong.size() - from_end] ^ 1);
    write(wrong);
    EXPECT_NE(error().find("does not decompress (incorrect "), std::string::npos) << from_end << ": " << error();
  }
}

TEST_F(IdxTrailerTest, MayBeFollowedByAnotherPart) {
  std::string first = compressed(header(100), 40), second = compressed("", 60);
  write(first + second);
  EXPECT_EQ(error(), "no error");
  EXPECT_EQ(data::read_idx(path_).shape().str(), "[100]");
}

TEST_F(IdxTrailerTest, OfAShortFileIsReadBeforeThereIsMemoryForIt) {
  compressed(header(2'000'000'000), 200'000'000);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_NE(
      error().find(
          "ends in its data, of which 1800000000 bytes are missing, at byte 200000008 of what it decompresses to"),
      std::string::npos)
      << error();
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000);  // KiB
}

}  // namespace
}  // namespace stet

#include "stet/data/idx.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <fstream>

namespace stet {
namespace {

class IdxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/stet_idx_XXXXXX";
    folder_ = mkdtemp(folder);
  }
  void TearDown() override { [[maybe_unused]] int status = system(("rm -rf " + folder_).c_str()); }

  std::string write(const std::string& bytes, bool compressed = false) {
    std::string path = folder_ + "/file";
    if (compressed) {
      gzFile file = gzopen(path.c_str(), "wb");
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
      gzclose(file);
    } else {
      std::ofstream(path, std::ios::binary) << bytes;
    }
    return path;
  }
  std::string error_of(const std::string& bytes) {
    try {
      data::read_idx(write(bytes));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string folder_;
};

const std::string two_by_three("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06", 18);

TEST_F(IdxTest, ReadsPlainAndCompressedBytes) {
  for (bool compressed : {false, true}) {
    Tensor x = data::read_idx(write(two_by_three, compressed));
    EXPECT_EQ(x.dtype(), u8);
    EXPECT_EQ(x.shape().str(), "[2,3]");
    EXPECT_EQ(x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  }
}

TEST_F(IdxTest, TurnsBigEndianWordsAround) {
  Tensor x = data::read_idx(write(std::string("\0\0\x0C\x01\0\0\0\x02\0\0\x01\x02\xFF\xFF\xFF\xFE", 16)));
  EXPECT_EQ(x.to_vector<std::int32_t>(), (std::vector<std::int32_t>{258, -2}));
  Tensor y = data::read_idx(write(std::string("\0\0\x0D\x01\0\0\0\x01\x3F\x80\0\0", 12)));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1}));
}

TEST_F(IdxTest, RefusesWhatIsNotIdx) {
  EXPECT_NE(error_of("").find("ends in its header, at byte "), std::string::npos);
  EXPECT_NE(error_of("PNG....").find("is not an IDX file"), std::string::npos);
  EXPECT_NE(error_of(std::string("\0\0\x07\x01\0\0\0\x01\x01", 9)).find("is not an IDX file"), std::string::npos);
  EXPECT_NE(error_of(std::string("\0\0\x08\xFF\0\0\0\x01\x01", 9)).find("is not an IDX file"), std::string::npos);
  EXPECT_NE(error_of(two_by_three.substr(0, 17)).find("ends in its data, of which "), std::string::npos);
  EXPECT_NE(error_of(two_by_three.substr(0, 10)).find("ends in its header, at byte "), std::string::npos);
  EXPECT_NE(error_of(two_by_three + "x").find("has more data than its header says"), std::string::npos);
  // Sizes that multiply beyond any memory, and sizes that merely lie.
  EXPECT_NE(error_of(std::string("\0\0\x08\x03\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 16)).find("too large"),
            std::string::npos);
  EXPECT_NE(error_of(std::string("\0\0\x08\x01\x7F\xFF\xFF\xFF", 8)).find("ends in its data, of which "),
            std::string::npos);
}

/// A size of zero does not make the others harmless: strides are products of them.
TEST_F(IdxTest, RefusesSizesThatAreTooLargeBehindAZero) {
  std::string bytes("\0\0\x0D\x08\0\0\0\0", 8);
  for (int i = 0; i < 7; ++i) bytes += "\xFF\xFF\xFF\xFF";
  EXPECT_NE(error_of(bytes).find("declares sizes whose product is too large, at byte 4"), std::string::npos)
      << error_of(bytes);
}

TEST_F(IdxTest, NamesAFileThatIsMissing) {
  try {
    data::read_idx(folder_ + "/nothing");
    FAIL();
  } catch (const UserError& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("/nothing': cannot be opened: No such file or directory"), std::string::npos) << text;
    EXPECT_NE(text.find("idx_test.cpp:"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace stet

// Numbers, tables and paragraphs as commands print them, and which word is near another.
#include "stet/tools/output.h"

#include <gtest/gtest.h>

#include "stet/tools/words.h"

namespace stet::tools {
namespace {

TEST(Output, BytesHaveOneDigitBehindThePoint) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(std::int64_t{5} << 40), "5.0 TiB");
  EXPECT_EQ(bytes_text(std::int64_t{1} << 60), "1048576.0 TiB");
}

TEST(Output, PrefixedNumbersHaveThreeDigits) {
  EXPECT_EQ(prefixed(0), "0.00 ");
  EXPECT_EQ(prefixed(1), "1.00 ");
  EXPECT_EQ(prefixed(9.99), "9.99 ");
  EXPECT_EQ(prefixed(9.999), "10.0 ");
  EXPECT_EQ(prefixed(99.96), "100 ");
  EXPECT_EQ(prefixed(999.4), "999 ");
  EXPECT_EQ(prefixed(999.6), "1.00 k");
  EXPECT_EQ(prefixed(33.14e9), "33.1 G");
  EXPECT_EQ(prefixed(1e30), "1000000000000000 P");
}

TEST(Output, HowLongAgo) {
  EXPECT_EQ(ago_text(-5), "just now");  // a clock that was set back
  EXPECT_EQ(ago_text(59), "just now");
  EXPECT_EQ(ago_text(60), "1 minute ago");
  EXPECT_EQ(ago_text(3599), "59 minutes ago");
  EXPECT_EQ(ago_text(3600), "1 hour ago");
  EXPECT_EQ(ago_text(47 * 3600), "47 hours ago");
  EXPECT_EQ(ago_text(48 * 3600), "2 days ago");
}

TEST(Output, ParagraphsAreBrokenAndExamplesAreNot) {
  EXPECT_EQ(wrapped("one two three\n\nfour", 8, 1), " one two\n three\n\n four\n");
  EXPECT_EQ(wrapped("words\n\n  an example that is long\nwords", 8), "words\n\n  an example that is long\nwords\n");
  EXPECT_EQ(wrapped("a-word-that-is-too-long b", 5), "a-word-that-is-too-long\nb\n");
  EXPECT_EQ(wrapped("äöü äöü", 7), "äöü äöü\n");
  EXPECT_EQ(wrapped("", 8), "");
}

TEST(Output, CellsStandBelowEachOther) {
  Table table;
  table.row({"a", "bb", "c"});
  table.row({"ää", "b"});
  table.row({});
  EXPECT_EQ(table.str(1), " a   bb  c\n ää  b\n\n");
}

TEST(Nearest, IsWhatDiffersInFewLetters) {
  const std::vector<std::string> known = {"softmax", "softplus", "relu", "relu6"};
  EXPECT_EQ(nearest("sotfmax", known), "softmax");
  EXPECT_EQ(nearest("softmaxx", known), "softmax");
  EXPECT_EQ(nearest("softp", known), "softplus");  // begun
  EXPECT_EQ(nearest("rel", known), "relu");
  EXPECT_EQ(nearest("tanh", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("relu", {}), "");
}

}  // namespace
}  // namespace stet::tools

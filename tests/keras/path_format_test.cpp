// Paths with values in them against what Python makes of them.
#include "stet/keras/path_format.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "stet/base/error.h"

namespace stet::keras {
namespace {

std::string error_of(const std::string& format, const FormatValues& values = {}) {
  try {
    return PathFormat(format, "ModelCheckpoint", {})(values);
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(PathFormat, WritesWhatPythonDoes) {
  std::ifstream file("tests/oracle/path_formats.txt");
  ASSERT_TRUE(file);
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    std::istringstream fields(line);
    std::string kind, shown, format, wanted;
    for (std::string* field : {&kind, &shown, &format, &wanted}) std::getline(fields, *field, '\t');
    FormatValues values;
    if (kind == "i")
      values["v"] = static_cast<std::int64_t>(std::strtoll(shown.c_str(), nullptr, 10));
    else
      values["v"] = std::strtod(shown.c_str(), nullptr);
    EXPECT_EQ(PathFormat(format, "test", {})(values), wanted) << line;
  }
  EXPECT_GT(count, 1000);
}

TEST(PathFormat, HasTextAndBraces) {
  EXPECT_EQ(error_of("run/{{{epoch:02d}}}-{val_loss:.2f}.keras", {{"epoch", std::int64_t{3}}, {"val_loss", 0.126}}),
            "run/{03}-0.13.keras");
  EXPECT_EQ(error_of("plain.keras"), "plain.keras");
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("{}{a}", {{"a", 1.5}}),
            "ModelCheckpoint: '{}{a}': {} names no value\n  fix: write {epoch:02d} or "
            "{val_loss:.2f}");
}

TEST(PathFormat, SaysWhatIsNone) {
  EXPECT_EQ(error_of("a{epoch"),
            "ModelCheckpoint: 'a{epoch': the { at position 1 is not closed\n  fix: write {{ for a "
            "brace in a name");
  EXPECT_EQ(error_of("a}b"),
            "ModelCheckpoint: 'a}b': a } at position 1 closes nothing\n  fix: write }} for a brace in a "
            "name");
  const std::pair<const char*, const char*> wrong[] = {{"{e:q}", "{e:q} is no format of a number"},
                                                       {"{e:2dd}", "{e:2dd} is no format of a number"},
                                                       {"{e:.d}", "{e:.d} has a point without digits"},
                                                       {"{e:.2d}", "{e:.2d} has digits behind the point of an integer"},
                                                       {"{e:999d}", "{e:999d} is wider than 200"},
                                                       {"{e:99999999999999d}", "is wider than 200"},
                                                       {"{e:.999f}", "{e:.999f} is wider than 200"},
                                                       {"{e!r}", "{e!r} names no value"},
                                                       {"{e[0]}", "{e[0]} names no value"},
                                                       {"{e.x}", "{e.x} names no value"},
                                                       {"{:2d}", "{:2d} names no value"}};
  for (const auto& [format, reason] : wrong)
    EXPECT_NE(error_of(format, {{"e", std::int64_t{1}}}).find(reason), std::string::npos) << format;
  EXPECT_EQ(error_of("{val_loss:.2f}", {{"epoch", std::int64_t{1}}, {"loss", 0.5}}),
            "ModelCheckpoint: '{val_loss:.2f}': there is no 'val_loss'\n  fix: there is epoch, loss");
  EXPECT_EQ(error_of("{loss:d}", {{"loss", 0.5}}),
            "ModelCheckpoint: '{loss:d}': 'loss' is 0.5, which is no integer\n  fix: write {loss:.2f}");
}

}  // namespace
}  // namespace stet::keras

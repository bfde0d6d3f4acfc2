// What is written around and into the page of a report. What the page does in a browser is tested by page/page_test.py.
#include "stet/report/page.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace stet::reporting {
namespace {

using files::Json;

std::string page_of(const Json& data) {
  std::ostringstream out;
  write_report_page(out, data);
  return out.str();
}

// What stands in the page between its two parts.
std::string data_in(const std::string& page) {
  const std::string_view before = report_page_before(), after = report_page_after();
  EXPECT_TRUE(page.starts_with(before) && page.ends_with(after));
  return page.substr(before.size(), page.size() - before.size() - after.size());
}

Json read_back(const Json& data) { return files::parse_json(data_in(page_of(data)), {"test", "page", {}}); }

TEST(ReportPage, IsOneFileWithAPlaceForTheData) {
  const std::string_view before = report_page_before(), after = report_page_after();
  EXPECT_TRUE(before.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(before.ends_with("<script id=\"data\" type=\"application/json\">"));
  EXPECT_TRUE(after.starts_with("</script>"));
  EXPECT_TRUE(after.ends_with("</html>\n"));
  for (const char* left_over : {"@css@", "@js@", "@data@"}) {
    EXPECT_EQ(before.find(left_over), std::string_view::npos) << left_over;
    EXPECT_EQ(after.find(left_over), std::string_view::npos) << left_over;
  }
}

TEST(ReportPage, AsksForNothing) {
  std::string page(report_page_before());
  page += report_page_after();
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  // Names of SVG's namespace are no addresses that are asked for.
  for (std::size_t at = page.find("://"); at != std::string::npos; at = page.find("://", at + 1)) {
    EXPECT_EQ(page.substr(at - 4, 28), "http://www.w3.org/2000/svg\",") << page.substr(at, 60);
  }
  for (const char* way_out : {"<link", "<img", "@import", "url(", " src=", "fetch(", "XMLHttpRequest", "WebSocket",
                              "innerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    EXPECT_EQ(page.find(way_out), std::string::npos) << way_out;
  }
}

TEST(ReportPage, StringsEndNothing) {
  const char* const strings[] = {"</script><script>alert(1)</script>",
                                 "</SCRIPT >",
                                 "<!--",
                                 "<!-- <script>",
                                 "-->",
                                 "]]>",
                                 "\"quoted\"",
                                 "\\\"",
                                 "\\",
                                 "ends with a backslash \\",
                                 "line\xe2\x80\xa8paragraph\xe2\x80\xa9",
                                 "\xe2\x82\xac and \xe2\x80\xa6",
                                 "NaN, Infinity and -Infinity",
                                 "\x01\x1f\x7f",
                                 "",
                                 "@data@"};
  Json::List list;
  for (const char* string : strings) list.emplace_back(string);
  list.emplace_back(std::string("a zero\0inside", 13));
  list.emplace_back(Json::Object{{"</script>", "<"}, {"NaN", "Infinity"}});
  const Json data(list);
  const std::string written = data_in(page_of(data));
  EXPECT_EQ(written.find('<'), std::string::npos);
  EXPECT_EQ(written.find("\xe2\x80\xa8"), std::string::npos);
  EXPECT_EQ(written.find("\xe2\x80\xa9"), std::string::npos);
  EXPECT_NE(written.find("\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\""), std::string::npos) << written;
  EXPECT_NE(written.find("line\\u2028paragraph\\u2029"), std::string::npos) << written;
  EXPECT_EQ(read_back(data), data);
}

// A string cut off in the middle of a character of UTF-8 stands at the end of what is written, and takes nothing with
// it.
TEST(ReportPage, BrokenCharactersStay) {
  EXPECT_EQ(data_in(page_of(Json("\xe2"))), "\"\xe2\"");
  EXPECT_EQ(data_in(page_of(Json("\xe2\x80"))), "\"\xe2\x80\"");
  EXPECT_EQ(data_in(page_of(Json("\xe2\x80<"))), "\"\xe2\x80\\u003c\"");
}

TEST(ReportPage, NumbersThatAreNotFiniteAreNull) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Json data(
      Json::List{nan, infinity, -infinity, -1.5, "NaN", Json::Object{{"Infinity", -infinity}}, 3, -3, true, nullptr});
  EXPECT_EQ(data_in(page_of(data)), "[null,null,null,-1.5,\"NaN\",{\"Infinity\":null},3,-3,true,null]");
  EXPECT_EQ(data_in(page_of(Json(nan))), "null");
  EXPECT_EQ(data_in(page_of(Json(-infinity))), "null");
}

TEST(ReportPage, ValuesAloneAndEmptyOnes) {
  EXPECT_EQ(data_in(page_of(Json())), "null");
  EXPECT_EQ(data_in(page_of(Json(""))), "\"\"");
  EXPECT_EQ(data_in(page_of(Json(Json::Object{}))), "{}");
  const std::string megabyte(1 << 20, '<');
  EXPECT_EQ(read_back(Json(megabyte)), Json(megabyte));
}

TEST(ReportPage, SaysWhenItCouldNotBeWritten) {
  struct Full : std::streambuf {
  } full;
  std::ostream out(&full);
  write_report_page(out, Json("x"));
  EXPECT_FALSE(out);
}

}  // namespace
}  // namespace stet::reporting

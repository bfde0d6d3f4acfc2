#include "stet/report/page.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace stet::reporting {
namespace {

// What would end a script element ("</script>") or change how it ends ("<!--"), and line ends of old JavaScript
// (U+2028 and U+2029, in UTF-8), as escapes of JSON; they stand in strings alone.
constexpr std::string_view unsafe = "<\xe2";

void write_inside_string(std::ostream& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t safe = std::min(text.find_first_of(unsafe), text.size());
    out << text.substr(0, safe);
    text.remove_prefix(safe);
    if (text.empty()) return;
    std::size_t taken = 1;
    if (text[0] == '<') {
      out << "\\u003c";
    } else if (text.starts_with("\xe2\x80\xa8") || text.starts_with("\xe2\x80\xa9")) {
      out << (text[2] == '\xa8' ? "\\u2028" : "\\u2029");
      taken = 3;
    } else {
      out << text[0];
    }
    text.remove_prefix(taken);
  }
}

// Between strings: there the only capitals are those of numbers that are not finite, and blanks say nothing.
void write_outside_strings(std::ostream& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t at = text.find_first_of(" NI");
    if (at == std::string_view::npos) break;
    if (text[at] == ' ') {
      out << text.substr(0, at);
      text.remove_prefix(at + 1);
      continue;
    }
    const bool negative = at > 0 && text[at - 1] == '-';
    out << text.substr(0, negative ? at - 1 : at) << "null";
    text.remove_prefix(at + (text[at] == 'N' ? std::string_view("NaN") : std::string_view("Infinity")).size());
  }
  out << text;
}

// The quote that ends the string which begins before `text`; there is one.
std::size_t end_of_string(std::string_view text) {
  std::size_t at = 0;
  while (text[at] != '"') {
    at = text.find_first_of("\"\\", at);
    if (text[at] == '\\') at += 2;
  }
  return at;
}

}  // namespace

void write_report_page(std::ostream& out, const files::Json& data) {
  out << report_page_before();
  const std::string whole = files::to_text(data);
  std::string_view text = whole;
  while (!text.empty()) {
    const std::size_t quote = text.find('"');
    write_outside_strings(out, text.substr(0, quote));
    if (quote == std::string_view::npos) break;
    text.remove_prefix(quote + 1);
    const std::size_t end = end_of_string(text);
    out << '"';
    write_inside_string(out, text.substr(0, end));
    out << '"';
    text.remove_prefix(end + 1);
  }
  out << report_page_after();
}

}  // namespace stet::reporting

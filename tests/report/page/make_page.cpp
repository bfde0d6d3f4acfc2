// make_page: the JSON of a report on stdin, its page on stdout.
#include <iostream>
#include <iterator>
#include <string>

#include "stet/base/error.h"
#include "stet/report/page.h"

int main() {
  std::ios::sync_with_stdio(false);
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  try {
    stet::reporting::write_report_page(std::cout, stet::files::parse_json(text, {"make_page", "stdin", {}}));
  } catch (const stet::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return std::cout.flush() ? 0 : 1;
}

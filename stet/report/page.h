// The page of a report: one HTML file that draws what it is given and needs no network. Not a public header.
#pragma once
#include <ostream>
#include <string_view>

#include "stet/files/json.h"

namespace stet::reporting {

/// The page up to its data, and from there on; made of stet/report/page/ by cmake/report_page.cmake.
std::string_view report_page_before();
std::string_view report_page_after();

/// The whole page with `data` in it. Whatever strings `data` has, they end neither the data nor the page; numbers that
/// are not finite become null, which JSON has and they are not. Whether `out` took it all is for the caller to ask.
void write_report_page(std::ostream& out, const files::Json& data);

}  // namespace stet::reporting

# The page of a report as strings of C++: stet/report/page/ put together into one file. Included, it says how it is made
# (report_page is the file); run as `cmake -DOUTPUT=file.cpp -DFOLDER=stet/report/page -P report_page.cmake`, it makes it.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(report_page ${PROJECT_BINARY_DIR}/generated/stet/report/page_text.cpp)
  file(GLOB report_page_parts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       stet/report/page/*.html stet/report/page/*.css stet/report/page/*.js)
  add_custom_command(OUTPUT ${report_page}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${report_page} -DFOLDER=${PROJECT_SOURCE_DIR}/stet/report/page
            -P ${PROJECT_SOURCE_DIR}/cmake/report_page.cmake
    DEPENDS ${report_page_parts} cmake/report_page.cmake
    COMMENT "Putting the page of reports together" VERBATIM)
  return()
endif()

cmake_policy(VERSION 3.25)
# Of rules that are as strong as each other the last one holds: what is about narrow screens and paper comes last.
set(styles colours text layout tables parts timeline graph narrow paper)
set(css "")
foreach(name IN LISTS styles)
  file(READ "${FOLDER}/${name}.css" style)
  string(APPEND css "${style}")
endforeach()
set(js "")
file(GLOB scripts "${FOLDER}/*.js")
foreach(script IN LISTS scripts)  # any order will do: all of them only declare
  file(READ "${script}" code)
  string(APPEND js "${code}")
endforeach()

file(READ "${FOLDER}/page.html" page)
string(REPLACE "@css@" "${css}" page "${page}")
string(REPLACE "@js@" "${js}" page "${page}")
string(FIND "${page}" "@data@" data_begins)
string(LENGTH "@data@" data_length)
math(EXPR data_ends "${data_begins} + ${data_length}")
string(SUBSTRING "${page}" 0 ${data_begins} before)
string(SUBSTRING "${page}" ${data_ends} -1 after)
if(data_begins EQUAL -1 OR page MATCHES "[)]stet_page\"")
  message(FATAL_ERROR "page.html has no place for the data, or a part of the page has )stet_page\" in it")
endif()
file(WRITE "${OUTPUT}" "// Made by cmake/report_page.cmake.
#include \"stet/report/page.h\"

namespace stet::reporting {
std::string_view report_page_before() { return R\"stet_page(${before})stet_page\"; }
std::string_view report_page_after() { return R\"stet_page(${after})stet_page\"; }
}  // namespace stet::reporting
")

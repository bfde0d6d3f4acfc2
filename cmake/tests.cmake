# One program with the objects linked in, for tests of what the library hides; one that sees what a user sees.
find_package(GTest REQUIRED)

function(stet_add_tests name shards)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE stet_options GTest::gtest GTest::gtest_main)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <algorithm> <cmath> <cstdint> <functional> <string> <vector>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${name} PRIVATE -fpch-preprocess)  # ccache needs it
  endif()
  # Compiling tests is most of a build, running them is not: what they measure is in the library.
  target_compile_options(${name} PRIVATE -O0)
  # Few processes rather than one per test: programs compiled for one test serve the next.
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_${shard} COMMAND ${name} --gtest_brief=1 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 1200
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*_test.cpp)
set(public_test_sources ${test_sources})
list(FILTER test_sources EXCLUDE REGEX "/tests/public/")
list(FILTER public_test_sources INCLUDE REGEX "/tests/public/")
if(test_sources)
  stet_add_tests(stet_tests 4 ${test_sources})
  target_link_libraries(stet_tests PRIVATE stet_objects)
endif()
if(public_test_sources)
  stet_add_tests(stet_public_tests 1 ${public_test_sources})
  target_link_libraries(stet_public_tests PRIVATE stet::stet)
endif()

# Once more with every trace's first call, and every audit, checked against the same code run eagerly.
if(public_test_sources)
  add_test(NAME stet_public_tests_verified COMMAND stet_public_tests --gtest_brief=1
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(stet_public_tests_verified PROPERTIES TIMEOUT 1200 ENVIRONMENT "STET_VERIFY=1")
endif()

# Below core/ sizes cannot be compared with ==: the file compiles, and with the comparison in it does not.
set(dim_comparison ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR} tests/layers/dim_comparison.cpp)
add_test(NAME dim_questions COMMAND ${dim_comparison} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME dim_comparison COMMAND ${dim_comparison} -DCOMPARE WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(dim_comparison PROPERTIES PASS_REGULAR_EXPRESSION "no match for .*operator==")

add_test(NAME layers COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/check-layers.sh ${PROJECT_SOURCE_DIR} ${STET_LAYERS})

# From an installed prefix, as a stranger uses it. A sanitizer's run time would have to be in the stranger's program.
if(NOT STET_SANITIZE)
  add_test(NAME install COMMAND sh ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR}
           ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(install PROPERTIES TIMEOUT 600)
  # The programs in README.md and docs/ do what the pages say.
  add_test(NAME docs COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/run.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}
           ${CMAKE_CXX_COMPILER})
  set_tests_properties(docs PROPERTIES TIMEOUT 600)
endif()

# Examples that check themselves, and are quick.
if(STET_EXAMPLES)
  foreach(example retracing tour)
    add_test(NAME example_${example} COMMAND example_${example})
  endforeach()
endif()

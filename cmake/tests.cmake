# One program with the objects linked in, for tests of what the library hides; one that sees what a user sees.
find_package(GTest REQUIRED)

function(stet_add_tests name shards)
  add_executable(${name} tests/main.cpp ${ARGN})
  target_link_libraries(${name} PRIVATE stet_options GTest::gtest)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <algorithm> <cmath> <cstdint> <functional> <string> <vector>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${name} PRIVATE -fpch-preprocess)  # ccache needs it
  endif()
  # Compiling tests is most of a build, running them is not: what they measure is in the library, and so is what they
  # look for undefined behaviour in.
  target_compile_options(${name} PRIVATE -O0)
  if(STET_SANITIZE MATCHES undefined)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  # Few processes rather than one per test: programs compiled for one test serve the next.
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${STET_TEST_PREFIX}${name}_${shard} COMMAND ${name} --gtest_brief=1
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${STET_TEST_PREFIX}${name}_${shard} PROPERTIES TIMEOUT 1200
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# Tests of several builds have names of their own when they run together (make ci).
set(STET_TEST_PREFIX "")
if(STET_SANITIZE)
  string(REGEX MATCH "^[^,]+" STET_TEST_PREFIX "${STET_SANITIZE}")
  string(APPEND STET_TEST_PREFIX "-")
endif()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS tests/*_test.cpp)
set(public_test_sources ${test_sources})
list(FILTER test_sources EXCLUDE REGEX "/tests/public/")
list(FILTER public_test_sources INCLUDE REGEX "/tests/public/")
if(test_sources AND STET_INTERNAL_TESTS)
  file(GLOB table_program_sources CONFIGURE_DEPENDS tests/ops/table_programs*.cpp)
  list(APPEND test_sources ${table_program_sources})
  list(REMOVE_DUPLICATES test_sources)
  set(shards 4)
  stet_add_tests(stet_tests ${shards} ${test_sources} tests/reference/reference_device.cpp
                 $<TARGET_OBJECTS:stet_tools>)
  target_link_libraries(stet_tests PRIVATE stet_objects)
  add_dependencies(stet_tests stet_command)  # tests run it
  # The shards write down which cells of the op table (row x type x aspect) they tested; after them, that no cell which
  # a row claims is missing. The table is coverage/table.txt.
  set(coverage_folder ${PROJECT_BINARY_DIR}/coverage)
  set(coverage ${STET_TEST_PREFIX}table_coverage)
  add_test(NAME ${coverage}_begins COMMAND ${CMAKE_COMMAND} -E rm -rf ${coverage_folder})
  set_tests_properties(${coverage}_begins PROPERTIES FIXTURES_SETUP ${coverage}_folder)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set_tests_properties(${STET_TEST_PREFIX}stet_tests_${shard} PROPERTIES
                         FIXTURES_REQUIRED ${coverage}_folder FIXTURES_SETUP ${coverage}_written)
    set_property(TEST ${STET_TEST_PREFIX}stet_tests_${shard} APPEND PROPERTY
                 ENVIRONMENT "STET_COVERAGE_FOLDER=${coverage_folder}")
  endforeach()
  add_test(NAME ${coverage} COMMAND stet_tests --gtest_brief=1 --gtest_also_run_disabled_tests
           --gtest_filter=Coverage.DISABLED_EveryClaimedCellWasTested WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${coverage} PROPERTIES FIXTURES_REQUIRED ${coverage}_written
                       ENVIRONMENT "STET_COVERAGE_FOLDER=${coverage_folder}")
endif()
# Of the public tests the thread sanitizer has those that start threads or train: the others would only tell it again
# that the kernels' threads do as they should.
if(STET_SANITIZE STREQUAL thread)
  foreach(source IN LISTS public_test_sources)
    file(STRINGS ${source} threads LIMIT_COUNT 1
         REGEX "std::(thread|jthread|async)|num_parallel_calls|prefetch|[.]fit[(]")
    if(NOT threads)
      list(REMOVE_ITEM public_test_sources ${source})
    endif()
  endforeach()
endif()
if(public_test_sources)
  stet_add_tests(stet_public_tests 2 ${public_test_sources})
  target_precompile_headers(stet_public_tests PRIVATE <stet/stet.h>)
  target_link_libraries(stet_public_tests PRIVATE stet::stet ZLIB::ZLIB)  # zlib: files for readers to refuse
  # A library for tests to open and close. Without unique symbols, which would keep it loaded.
  add_library(stet_test_plugin MODULE tests/plugin/plugin.cpp)
  target_link_libraries(stet_test_plugin PRIVATE stet::stet stet_options)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(stet_test_plugin PRIVATE -fno-gnu-unique)
  endif()
  add_dependencies(stet_public_tests stet_test_plugin)
  # Once more with every trace's first call, and every audit, checked against the same code run eagerly.
  if(NOT STET_SANITIZE)
    add_test(NAME stet_public_tests_verified COMMAND stet_public_tests --gtest_brief=1
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(stet_public_tests_verified PROPERTIES TIMEOUT 1200 ENVIRONMENT "STET_VERIFY=1")
  endif()
endif()

# Random programs over the public interface, for 20 seconds; a program of its own, so that it can run for longer elsewhere.
file(GLOB random_program_sources CONFIGURE_DEPENDS tests/random/*.cpp)
add_executable(stet_random_programs ${random_program_sources})
target_link_libraries(stet_random_programs PRIVATE stet_options stet::stet)
add_test(NAME ${STET_TEST_PREFIX}random_programs COMMAND stet_random_programs)
set_tests_properties(${STET_TEST_PREFIX}random_programs PROPERTIES TIMEOUT 600)

# Readers of files against files that were changed at random: some thousands of every format, or what some seconds give.
# It can run for longer elsewhere (--count, --seed).
if(STET_INTERNAL_TESTS)
  file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*.cpp)
  add_executable(stet_fuzz_files ${fuzz_sources})
  target_link_libraries(stet_fuzz_files PRIVATE stet_options stet_objects)
  set(fuzz_count 20000)
  if(STET_SANITIZE)
    set(fuzz_count 5000)
  endif()
  add_test(NAME ${STET_TEST_PREFIX}fuzz_files COMMAND stet_fuzz_files --count ${fuzz_count} --seconds 20
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${STET_TEST_PREFIX}fuzz_files PROPERTIES TIMEOUT 600)
endif()

# What no sanitizer changes.
if(NOT STET_SANITIZE)
  # Below core/ sizes cannot be compared with ==: the file compiles, and with the comparison in it does not.
  set(dim_comparison ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR} tests/layers/dim_comparison.cpp)
  add_test(NAME dim_questions COMMAND ${dim_comparison} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME dim_comparison COMMAND ${dim_comparison} -DCOMPARE WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(dim_comparison PROPERTIES PASS_REGULAR_EXPRESSION "no match for .*operator==")

  # What answers about sizes without a record is out of a user's reach.
  add_test(NAME size_questions COMMAND sh ${PROJECT_SOURCE_DIR}/tests/layers/size_questions.sh ${CMAKE_CXX_COMPILER}
           ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  set_tests_properties(size_questions PROPERTIES TIMEOUT 600)

  # Programs that must compile, and some that must not.
  add_test(NAME compile COMMAND sh ${PROJECT_SOURCE_DIR}/tests/compile/run.sh ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER}
           ${PROJECT_BINARY_DIR}/generated)

  add_test(NAME layers COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/check-layers.sh ${PROJECT_SOURCE_DIR} ${STET_LAYERS})

  # From an installed prefix, as a stranger uses it. A sanitizer's run time would have to be in the stranger's program.
  add_test(NAME install COMMAND sh ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR}
           ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(install PROPERTIES TIMEOUT 600)
  # The programs in README.md and docs/ do what the pages say.
  add_test(NAME docs COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/run.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}
           ${CMAKE_CXX_COMPILER})
  set_tests_properties(docs PROPERTIES TIMEOUT 600)
  add_test(NAME docs_names COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/names.sh ${PROJECT_SOURCE_DIR}
           ${PROJECT_BINARY_DIR}/generated)
  add_test(NAME docs_links COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/links.sh ${PROJECT_SOURCE_DIR})
  add_test(NAME docs_reports COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/reports.sh ${PROJECT_SOURCE_DIR})
  # Which runs of peers count, and what becomes of them in docs/benchmarks.md.
  add_test(NAME bench_peers COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/bench/peers_test.py)
  # The page of a report, in a browser where there is one.
  if(STET_INTERNAL_TESTS)
    add_executable(stet_make_page tests/report/page/make_page.cpp)
    target_link_libraries(stet_make_page PRIVATE stet_options stet_objects)
    add_test(NAME report_page COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/report/page/page_test.py $<TARGET_FILE:stet_make_page>
             $<$<BOOL:${STET_EXAMPLES}>:$<TARGET_FILE:stet_command>> $<$<BOOL:${STET_EXAMPLES}>:$<TARGET_FILE:example_find_the_retrace>>
             COMMAND_EXPAND_LISTS)
    set_tests_properties(report_page PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
  endif()
  # Every public function of ops has an example.
  add_test(NAME docs_examples COMMAND sh ${PROJECT_SOURCE_DIR}/tests/docs/examples.sh ${PROJECT_SOURCE_DIR}
           ${PROJECT_BINARY_DIR}/generated)
  # What `make docs` makes is what the pages have.
  add_test(NAME docs_fresh COMMAND sh ${PROJECT_SOURCE_DIR}/docs/generate.sh ${PROJECT_BINARY_DIR} --check)
endif()

# Every example: it ends well, and prints what the text beside it says (examples/name.txt).
if(STET_EXAMPLES)
  if(NOT STET_SANITIZE)
    add_test(NAME examples_comparison COMMAND sh ${PROJECT_SOURCE_DIR}/tests/examples/comparison.sh)
  endif()
  # Half a minute of processor time and more with sanitizers and checked kernels; others train on less.
  set(slow_examples fashion_mnist)
  foreach(example IN LISTS STET_EXAMPLE_NAMES)
    if(STET_SANITIZE AND example IN_LIST slow_examples)
      continue()
    endif()
    string(REPLACE "/" "_" target "example_${example}")
    set(arguments "")
    if(example STREQUAL fashion_mnist)
      set(arguments --epochs 1)
    elseif(example MATCHES "^serve/")
      set(arguments ${PROJECT_BINARY_DIR}/examples/serve/spirals.stet)
    endif()
    add_test(NAME ${STET_TEST_PREFIX}${target} COMMAND sh ${PROJECT_SOURCE_DIR}/tests/examples/run.sh
             $<TARGET_FILE:${target}> ${PROJECT_SOURCE_DIR}/examples/${example}.txt ${arguments})
    set_tests_properties(${STET_TEST_PREFIX}${target} PROPERTIES TIMEOUT 300)
    # One program exports what the other one loads.
    if(example STREQUAL serve/train)
      set_tests_properties(${STET_TEST_PREFIX}${target} PROPERTIES FIXTURES_SETUP ${STET_TEST_PREFIX}exported)
    elseif(example STREQUAL serve/serve)
      set_tests_properties(${STET_TEST_PREFIX}${target} PROPERTIES FIXTURES_REQUIRED ${STET_TEST_PREFIX}exported)
    endif()
  endforeach()
endif()

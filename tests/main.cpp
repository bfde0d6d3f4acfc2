// Every test program's main: graphs are verified after every pass.
#include <gtest/gtest.h>

#include <cstdio>

#include "stet/compiler/verified_passes.h"
#include "tests/sampling.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  stet::set_verified_passes(true);
  std::printf("tests: %s\n", stet::what_tests_visit().c_str());
  std::fflush(stdout);
  return RUN_ALL_TESTS();
}

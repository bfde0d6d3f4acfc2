// Every test program's main: graphs are verified after every pass.
#include <gtest/gtest.h>

#include "stet/compiler/verified_passes.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  stet::set_verified_passes(true);
  return RUN_ALL_TESTS();
}

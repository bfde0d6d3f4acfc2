// What public tests ask of errors: the text.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "stet/stet.h"

/// The text of the error that `f` throws, or "no error".
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const stet::Error& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

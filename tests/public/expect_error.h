// What public tests ask of errors, their text, and of runs of host code.
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

/// 1 in a run of host code that makes a trace or is compared with one; 0 in audits and eager runs.
inline int tracing_run() {
  stet::Tracing now = stet::tracing();
  return now && !now.audit;
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

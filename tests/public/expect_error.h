// What public tests ask of errors, their text, and of runs of host code.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
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

/// STET_VERIFY=1: host code is run eagerly too, so a test whose host code does something else then, on purpose, has
/// nothing to say.
inline bool verifying() {
  const char* value = std::getenv("STET_VERIFY");
  return value && *value && std::string(value) != "0";
}
#define SKIP_WHEN_VERIFYING() \
  if (verifying()) GTEST_SKIP() << "its host code does something else when it runs eagerly"

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

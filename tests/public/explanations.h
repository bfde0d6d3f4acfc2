// What public tests ask of retraces: which were told.
#pragma once
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "stet/stet.h"

/// Collects explanations instead of writing them to stderr.
class WithExplanations : public ::testing::Test {
 protected:
  void SetUp() override {
    stet::on_retrace([this](const stet::RetraceEvent& event) {
      std::lock_guard lock(guard_);
      events.push_back(event);
    });
  }
  void TearDown() override { stet::on_retrace({}); }
  /// The explanation told last.
  std::string told() const { return events.empty() ? "nothing was told" : events.back().explanation; }
  std::vector<stet::RetraceEvent> events;

 private:
  std::mutex guard_;
};

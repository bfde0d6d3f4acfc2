// What readers that give tensors have in common here.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "stet/data/dataset.h"
#include "stet/runtime/buffer.h"
#include "stet/stet.h"
#include "tests/fuzz/fuzz.h"

namespace stet::fuzz {

inline std::string stored_reader_file(const std::string& name) {
  return stored_file("tests/oracle/readers/files/" + name);
}

/// Elements of tensors do not come from operator new: their memory is compared here. What is thrown instead of a
/// UserError is a failure.
template <class F>
void within_memory(std::size_t limit, F load) {
  reset_peak_memory();
  const std::size_t before = memory_statistics().peak_bytes;
  auto check = [&] {
    if (const std::size_t now = memory_statistics().peak_bytes; now > before + limit)
      throw std::runtime_error("tensors take " + std::to_string(now - before) + " bytes, more than " +
                               std::to_string(limit));
  };
  try {
    load();
  } catch (const UserError&) {
    check();
    throw;
  }
  check();
}

/// The first iteration of a process compiles what seeds are drawn with, which is not to be counted.
inline void warm_up() {
  random::seed(1);
  for (Tensor x : data::from_range(std::vector<int>{1, 2}, [](int i) { return i; })) (void)x;
}

template <class... T>
void read_through(const data::Dataset<T...>& dataset) {
  data::Iteration iteration = dataset.iterate();
  while (iteration.next()) {
  }
}

}  // namespace stet::fuzz

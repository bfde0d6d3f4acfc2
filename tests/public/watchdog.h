// What tests of hangs need: code that must end, and a failure where it does not.
#pragma once
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>

/// Runs the body on a thread of its own; false if it has not ended after so long that it never will. The thread is left
/// behind then: what the body uses must be shared, not on the caller's stack.
inline bool ends(std::function<void()> body) {
  auto promise = std::make_shared<std::promise<void>>();
  std::future<void> end = promise->get_future();
  std::thread([promise, body = std::move(body)] {
    try {
      body();
      promise->set_value();
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (end.wait_for(std::chrono::minutes(3)) != std::future_status::ready) return false;
  end.get();
  return true;
}

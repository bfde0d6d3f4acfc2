// Tests of what happens when there is no more memory.
#pragma once
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <fstream>
#include <string>

#include "expect_error.h"
#include "forks.h"
#include "stet/runtime/buffer.h"

#if defined(__SANITIZE_ADDRESS__)
#define SKIP_WITHOUT_LIMITS() GTEST_SKIP() << "the sanitizer wants more memory than a limit leaves"
#else
#define SKIP_WITHOUT_LIMITS() SKIP_WITHOUT_FORK()
#endif

/// The text of the error that `f` throws in a process that may take so many bytes more than it has, or "no error".
template <class F>
std::string error_with_memory(std::size_t bytes, F f) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  // What was freed and kept would be memory that no limit counts.
  stet::release_cached_memory();
  ::malloc_trim(0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ::setrlimit(RLIMIT_AS, &limit);
    std::string error;
    try {
      error = error_of(f);
    } catch (const std::exception& other) {
      error = std::string("another error: ") + other.what();
    }
    // Less than a pipe holds.
    error.resize(std::min<std::size_t>(error.size(), 4000));
    _exit(::write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string error;
  char room[4096];
  for (ssize_t got; (got = ::read(ends[0], room, sizeof room)) > 0;) error.append(room, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? error : "the process ended otherwise";
}

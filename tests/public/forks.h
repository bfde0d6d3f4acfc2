#pragma once

#include <gtest/gtest.h>

/// For tests whose children of fork() go on in the library, rather than exec(): skips them, visibly, where that is
/// forbidden.
#if defined(__SANITIZE_THREAD__)
#define SKIP_WITHOUT_FORK() GTEST_SKIP() << "the thread sanitizer does not support fork() beside threads"
#else
#define SKIP_WITHOUT_FORK() static_cast<void>(0)
#endif

/// For those where other threads take and free memory at the moment of fork(), too: a child finds the locks of the C
/// library's allocator free, but those of the address sanitizer's of gcc 12 as the other threads held them.
#if defined(__SANITIZE_ADDRESS__)
#define SKIP_WITHOUT_FORK_BESIDE_WORK() GTEST_SKIP() << "the address sanitizer's allocator may stay locked in a child"
#else
#define SKIP_WITHOUT_FORK_BESIDE_WORK() SKIP_WITHOUT_FORK()
#endif

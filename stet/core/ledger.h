// The ledger: what tracing has cost this process, function by function; and traces.lock, a file that says what a
// program may trace.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet {

/// What the functions of one name, made at one line, have traced.
struct LedgerLine {
  std::string function = {};
  std::string made_at = {};       // "train.cpp:57"; empty where it is not known
  int functions = 0;              // that were traced
  int traces = 0;                 // forgotten ones included
  std::uint64_t calls = 0;        // that traces have served
  double first_milliseconds = 0;  // to trace and compile, of the first trace of each function
  double lost_milliseconds = 0;   // of all others
  std::string cause = {};         // of the retraces that took longest; empty without any
};
/// Of this process up to now, the most time lost first. STET_LEDGER=1 in the environment writes ledger_text() to stderr
/// at the end of the process.
STET_API std::vector<LedgerLine> ledger();
/// The same as a table, with a sum.
STET_API std::string ledger_text();
/// What a program says on stderr when it ends and these are its ledger: one paragraph if retraces took more than a
/// twentieth of the seconds that it ran, and half a second; nothing otherwise.
STET_API std::string ledger_warning(const std::vector<LedgerLine>& lines, double run_seconds);

/// Writes down what this process has traced: by function its traces, for which arguments and on which facts. What the
/// file says of functions that were not traced stays. STET_TRACES_LOCK=update in the environment does it at the end of
/// the process, to the file that STET_TRACES_LOCK_FILE names, or traces.lock. UserError if the file cannot be written.
STET_API void write_traces_lock(const std::string& path = "traces.lock", Where where = Where::here());
/// What this process has traced that the file does not allow, in words: a function, a trace, or more of one kind;
/// nothing if it keeps to the file. Less is fine. STET_TRACES_LOCK=check in the environment asks at the end of the
/// process, writes the answer to stderr, and lets the process end with status 1 if there is one. UserError if the file
/// cannot be read.
STET_API std::vector<std::string> check_traces_lock(const std::string& path = "traces.lock",
                                                    Where where = Where::here());

}  // namespace stet

// From LLVM IR to a function that can be called, with the objects kept on disk.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "stet/cpu/llvm_builder.h"
#include "stet/cpu/object_cache.h"
#include "stet/cpu/object_loader.h"

namespace stet::cpu {

/// A function to be had: `key` says everything that its machine code depends on besides CPU, LLVM and the emitter's
/// build (those are added); `emit` writes one externally visible function called `entry_name` into the module.
struct CodeRequest {
  std::string key;
  std::function<void(LlvmBuilder&)> emit;
};
inline constexpr const char* entry_name = "stet_entry";

/// The functions, one per request: from memory, from the cache on disk, or compiled (several at once on several
/// threads). Code is unloaded when nobody holds it; the latest stays a while longer. Thread-safe; the same key is
/// compiled once.
std::vector<Code> shared_code(std::span<const CodeRequest> requests);
Code shared_code(const CodeRequest& request);
/// The same as plain addresses, loaded for the life of the process: for tests and benches.
std::vector<void*> load_code(std::span<const CodeRequest> requests);
void* load_code(const CodeRequest& request);

struct CodeStatistics {
  std::uint64_t compiled = 0;       // by LLVM
  std::uint64_t loaded = 0;         // from disk
  std::uint64_t reused = 0;         // from memory
  double compile_milliseconds = 0;  // sum over threads
  double load_milliseconds = 0;
  std::uint64_t rejected_files = 0;  // bad cache files deleted and rebuilt
  std::uint64_t in_memory = 0;       // functions loaded now
};
CodeStatistics code_statistics();

/// Where objects are kept: $STET_CACHE_DIR, else $XDG_CACHE_HOME/stet, else $HOME/.cache/stet; empty when switched off
/// (STET_CACHE_DIR="" or a folder that is not ours alone). The setter is for
/// tests, and for who looks whether the compiler works.
std::string cache_folder();
void set_cache_folder(std::string folder);
/// Forgets what is in memory (code that is held stays callable): the next request goes to disk or to LLVM. For tests
/// and benches.
void forget_loaded_code();

/// The CPU that code is generated for, as LLVM names it ("znver4"), and its features ("+avx2,-avx512f,…").
struct CodeTarget {
  std::string name, features;
};
const CodeTarget& code_target();
/// The name of this build of the emitter: files of other builds are of no use to it, and the other way round.
const char* code_build();
/// Of a file's key: the build of the emitter that its code is of; empty if it has none.
std::string_view build_of_key(std::string_view key);
/// Looks whether every file of a cache could be loaded.
VerifiedFiles verify_cache(const ObjectCache& cache);

/// LLVM IR and assembly of a request, as text, for docs and debugging.
std::string ir_text(const CodeRequest& request);
std::string assembly_text(const CodeRequest& request);

}  // namespace stet::cpu

// Machine code from LLVM, kept in memory and on disk.
//
// The code generator runs without IR passes at level Default. Objects are loaded by stet/cpu/object_loader
// and not by ORC: in a fresh process, LLJIT's creation and link of a cached elementwise kernel take 0.9 ms, ours 0.05,
// and the whole first use 1.1 and 0.25 ms (0.15 to 0.2 of either is finding out the CPU's features). A cached object
// thus needs no target and no code generator, and code keeps no link graph alive.
#include "stet/cpu/jit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/cpu/object_cache.h"
#include "stet/cpu/object_loader.h"
#include "stet/runtime/recording.h"

#if __has_include("stet/cpu/emitter_build.h")
#include "stet/cpu/emitter_build.h"
#endif
#ifndef STET_EMITTER_BUILD
#define STET_EMITTER_BUILD "dev"
#endif

namespace stet::cpu {
namespace {

std::string taken(char* llvm_text) {
  std::string out = llvm_text ? llvm_text : "";
  LLVMDisposeMessage(llvm_text);
  return out;
}

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

constexpr std::string_view emitter_line = "\nemitter ";

/// What the code depends on besides its own key.
const std::string& key_suffix() {
  static const std::string* const suffix = [] {
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    return new std::string(text(emitter_line, STET_EMITTER_BUILD, "\nllvm ", major, ".", minor, ".", patch, "\ncpu ",
                                code_target().name, "\nfeatures ", code_target().features));
  }();
  return *suffix;
}

/// LLVM's code generator for this CPU. One is used by one thread at a time.
class CodeGenerator {
 public:
  CodeGenerator() {
    static const bool initialized = !LLVMInitializeNativeTarget() && !LLVMInitializeNativeAsmPrinter();
    if (!initialized) throw InternalError("this LLVM cannot generate code for this machine");
    std::string triple = taken(LLVMGetDefaultTargetTriple());
    LLVMTargetRef target = nullptr;
    char* problem = nullptr;
    if (LLVMGetTargetFromTriple(triple.c_str(), &target, &problem))
      throw InternalError(text("LLVM has no target ", triple, ": ", taken(problem)));
    // Position-independent, so that everything is relative and the loader may put it anywhere.
    machine_ =
        LLVMCreateTargetMachine(target, triple.c_str(), code_target().name.c_str(), code_target().features.c_str(),
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
    if (!machine_) throw InternalError(text("LLVM makes no target machine for ", triple));
    triple_ = std::move(triple);
  }
  ~CodeGenerator() { LLVMDisposeTargetMachine(machine_); }
  CodeGenerator(const CodeGenerator&) = delete;
  CodeGenerator& operator=(const CodeGenerator&) = delete;

  /// Emits the request's IR into the builder's module and verifies it.
  void build(const CodeRequest& request, LlvmBuilder& builder) const {
    LLVMSetTarget(builder.module(), triple_.c_str());
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_);
    LLVMSetModuleDataLayout(builder.module(), layout);
    LLVMDisposeTargetData(layout);
    request.emit(builder);
    char* problem = nullptr;
    bool broken = LLVMVerifyModule(builder.module(), LLVMReturnStatusAction, &problem);
    std::string reason = taken(problem);
    if (broken) throw InternalError(text("bad LLVM IR for '", request.key, "': ", reason, "\n", builder.str()));
  }

  /// An object file or assembly text.
  std::string generate(const CodeRequest& request, LLVMCodeGenFileType kind) const {
    LlvmBuilder builder("stet");
    build(request, builder);
    std::string errors;  // LLVM's own handling of an error would end the process
    LLVMContextSetDiagnosticHandler(
        builder.context(),
        [](LLVMDiagnosticInfoRef diagnostic, void* context) {
          if (LLVMGetDiagInfoSeverity(diagnostic) == LLVMDSError)
            *static_cast<std::string*>(context) += taken(LLVMGetDiagInfoDescription(diagnostic));
        },
        &errors);
    char* problem = nullptr;
    LLVMMemoryBufferRef buffer = nullptr;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine_, builder.module(), kind, &problem, &buffer))
      errors += taken(problem);
    if (!errors.empty()) throw InternalError(text("no code for '", request.key, "': ", errors, "\n", builder.str()));
    std::string out(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return out;
  }

 private:
  LLVMTargetMachineRef machine_ = nullptr;
  std::string triple_;
};

/// Generators wait here between uses; making one costs more than a small kernel's IR.
class Generators {
 public:
  template <class Use>
  auto with_one(const Use& use) {
    std::unique_ptr<CodeGenerator> generator = take();
    auto result = use(*generator);  // if it throws, the generator goes with it
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(generator));
    return result;
  }

 private:
  std::unique_ptr<CodeGenerator> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<CodeGenerator> generator = std::move(idle_.back());
        idle_.pop_back();
        return generator;
      }
    }
    return std::make_unique<CodeGenerator>();
  }
  Lock mutex_;
  std::vector<std::unique_ptr<CodeGenerator>> idle_;
};

/// All code of the process, by key.
class CodeStore {
 public:
  static CodeStore& instance() {
    static CodeStore* const store = [] {
      auto* const made = new CodeStore;  // never destroyed: see thread_end.h
      recording::watch("kernels compiled", [] { return instance().statistics().compiled; });
      recording::watch("kernels from the object cache", [] { return instance().statistics().loaded; });
      recording::watch("files of the object cache rejected", [] { return instance().statistics().rejected_files; });
      return made;
    }();
    return *store;
  }

  std::vector<Code> load(std::span<const CodeRequest> requests);

  CodeStatistics statistics() {
    std::lock_guard lock(mutex_);
    CodeStatistics now = statistics_;
    now.in_memory = code_.size();
    return now;
  }
  std::shared_ptr<const ObjectCache> cache() {
    std::lock_guard lock(mutex_);
    if (!cache_) cache_ = std::make_shared<const ObjectCache>(default_cache_folder());
    return cache_;
  }
  void set_cache(const std::string& folder) {
    auto fresh = std::make_shared<const ObjectCache>(folder);
    std::lock_guard lock(mutex_);
    cache_ = std::move(fresh);
  }
  void forget() {
    std::deque<Code> latest;  // unloaded without the lock
    std::lock_guard lock(mutex_);
    latest.swap(latest_);
    std::erase_if(code_, [](const auto& entry) { return !entry.second.being_made(); });
  }
  /// For the life of the process.
  void keep(std::span<const Code> code) {
    std::lock_guard lock(mutex_);
    kept_.insert(kept_.end(), code.begin(), code.end());
  }
  Generators& generators() { return generators_; }

 private:
  struct Task {
    std::size_t number;  // of the request
    const CodeRequest* request;
    Code code;
  };
  struct Slot {
    std::weak_ptr<void> code;
    bool claimed = false;  // someone makes it
    std::uint64_t generation = 0;
    /// A thread that a fork() left behind does not finish.
    bool being_made() const { return claimed && generation == fork_generation(); }
  };
  /// Tasks that this caller alone works on; at the end, however it comes, others see what became of them.
  struct Claims {
    CodeStore& store;
    std::vector<Task> tasks;
    ~Claims() { store.publish(tasks); }
  };

  /// Claims what nobody has and nobody makes; what is there goes to `code`.
  void claim(std::span<const CodeRequest> requests, std::span<Code> code, std::vector<Task>& tasks);
  /// Waits while others make what is missing. Whether nothing is.
  bool wait_for_others(std::span<const CodeRequest> requests, std::span<const Code> code);
  bool load_from_disk(const ObjectCache& cache, Task& task);
  void compile(const ObjectCache& cache, Task& task);
  void compile_all(const ObjectCache& cache, std::span<Task*> tasks);
  void publish(std::span<const Task> tasks);
  /// What was loaded, so that its key goes when it is unloaded.
  Code registered(Code loaded, const std::string& key);
  void unloaded(const std::string& key);

  static constexpr std::size_t most_latest = 64;
  Lock mutex_;
  std::atomic<std::uint32_t> news_{0};  // counts what was published
  std::unordered_map<std::string, Slot> code_;
  std::deque<Code> latest_;  // so that functions made and dropped in turns do not load their code every time
  std::vector<Code> kept_;
  std::shared_ptr<const ObjectCache> cache_;
  CodeStatistics statistics_;
  Generators generators_;
};

std::vector<Code> CodeStore::load(std::span<const CodeRequest> requests) {
  std::vector<Code> code(requests.size());
  do {
    Claims claims{*this, {}};
    claim(requests, code, claims.tasks);
    if (claims.tasks.empty()) continue;
    std::shared_ptr<const ObjectCache> cache = this->cache();
    std::vector<Task*> misses;
    for (Task& task : claims.tasks)
      if (!load_from_disk(*cache, task)) misses.push_back(&task);
    compile_all(*cache, misses);
    for (const Task& task : claims.tasks) code[task.number] = task.code;
  } while (!wait_for_others(requests, code));
  return code;
}

void CodeStore::claim(std::span<const CodeRequest> requests, std::span<Code> code, std::vector<Task>& tasks) {
  tasks.reserve(requests.size());
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (code[i]) continue;
    Slot& slot = code_[requests[i].key];
    if (slot.being_made()) continue;
    if (Code loaded = slot.code.lock()) {
      code[i] = std::move(loaded);
      ++statistics_.reused;
      continue;
    }
    slot.claimed = true;
    slot.generation = fork_generation();
    tasks.push_back({i, &requests[i], {}});
  }
}

bool CodeStore::wait_for_others(std::span<const CodeRequest> requests, std::span<const Code> code) {
  bool complete = true;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (code[i]) continue;
    complete = false;
    for (;;) {
      std::uint32_t seen = news_.load();
      {
        std::lock_guard lock(mutex_);
        auto at = code_.find(requests[i].key);
        if (at == code_.end() || !at->second.being_made()) break;  // made, or its maker failed and it is ours to claim
      }
      news_.wait(seen);
    }
  }
  return complete;
}

Code CodeStore::registered(Code loaded, const std::string& key) {
  void* address = loaded.get();
  return Code(address, [this, key, loaded = std::move(loaded)](void*) mutable {
    loaded.reset();
    unloaded(key);
  });
}

void CodeStore::unloaded(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto at = code_.find(key);
  if (at != code_.end() && !at->second.being_made() && at->second.code.expired()) code_.erase(at);
}

bool CodeStore::load_from_disk(const ObjectCache& cache, Task& task) {
  Stopwatch watch;
  bool rejected = false;
  const std::string key = task.request->key + key_suffix();
  std::optional<std::vector<char>> object = cache.find(key, rejected);
  if (object) {
    try {
      task.code = registered(load_object(*object, entry_name), task.request->key);
    } catch (const UnusableObject&) {
      // Written by a compiler gone wrong, or forged: as bad as a damaged file.
      rejected = true;
      cache.remove(key);
    }
  }
  std::lock_guard lock(mutex_);
  statistics_.rejected_files += rejected;
  if (!task.code) return false;
  ++statistics_.loaded;
  statistics_.load_milliseconds += watch.milliseconds();
  return true;
}

void CodeStore::compile(const ObjectCache& cache, Task& task) {
  ForkSafeSection section;  // LLVM has locks of its own
  recording::Span span(recording::Kind::compile, [&] {
    const std::string& key = task.request->key;
    return std::string_view(key).substr(0, key.find('\n'));
  });
  Stopwatch watch;
  std::string object = generators_.with_one(
      [&](const CodeGenerator& generator) { return generator.generate(*task.request, LLVMObjectFile); });
  try {
    task.code = registered(load_object(object, entry_name), task.request->key);
  } catch (const UnusableObject& problem) {
    throw InternalError(text("code for '", task.request->key, "' cannot be loaded: ", problem.what()));
  }
  double milliseconds = watch.milliseconds();
  cache.store(task.request->key + key_suffix(), object);
  std::lock_guard lock(mutex_);
  ++statistics_.compiled;
  statistics_.compile_milliseconds += milliseconds;
}

void CodeStore::compile_all(const ObjectCache& cache, std::span<Task*> tasks) {
  std::atomic<std::size_t> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const bool inside = ForkSafeSection::open();
  auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        compile(cache, *tasks[i]);
      } catch (...) {
        std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  std::size_t workers = std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), tasks.size());
  try {
    while (threads.size() + 1 < workers)
      threads.emplace_back([&] {
        WorksInsideSection section(inside);
        work();
      });
  } catch (const std::system_error&) {
    // Fewer threads than wished for: this one does the rest.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

void CodeStore::publish(std::span<const Task> tasks) {
  if (tasks.empty()) return;
  std::deque<Code> passed;  // unloaded without the lock
  {
    std::lock_guard lock(mutex_);
    for (const Task& task : tasks) {
      if (!task.code) {
        code_.erase(task.request->key);
        continue;
      }
      code_[task.request->key] = {.code = task.code};
      latest_.push_back(task.code);
    }
    for (; latest_.size() > most_latest; latest_.pop_front()) passed.push_back(std::move(latest_.front()));
  }
  ++news_;
  news_.notify_all();
}

}  // namespace

std::vector<Code> shared_code(std::span<const CodeRequest> requests) { return CodeStore::instance().load(requests); }
Code shared_code(const CodeRequest& request) { return shared_code(std::span(&request, 1)).front(); }

std::vector<void*> load_code(std::span<const CodeRequest> requests) {
  std::vector<Code> code = shared_code(requests);
  CodeStore::instance().keep(code);
  std::vector<void*> addresses;
  for (const Code& one : code) addresses.push_back(one.get());
  return addresses;
}
void* load_code(const CodeRequest& request) { return load_code(std::span(&request, 1)).front(); }

CodeStatistics code_statistics() { return CodeStore::instance().statistics(); }
std::string cache_folder() { return CodeStore::instance().cache()->folder(); }
void set_cache_folder(std::string folder) { CodeStore::instance().set_cache(folder); }
void forget_loaded_code() { CodeStore::instance().forget(); }

const CodeTarget& code_target() {
  static const CodeTarget* const target =  // never destroyed: see thread_end.h
      new CodeTarget{taken(LLVMGetHostCPUName()), taken(LLVMGetHostCPUFeatures())};
  return *target;
}
const char* code_build() { return STET_EMITTER_BUILD; }

std::string_view build_of_key(std::string_view key) {
  std::size_t line = key.rfind(emitter_line);
  if (line == key.npos) return {};
  key.remove_prefix(line + emitter_line.size());
  return key.substr(0, key.find('\n'));
}

VerifiedFiles verify_cache(const ObjectCache& cache) {
  return cache.verify([](std::string_view key, std::string_view object) -> std::string {
    if (key.starts_with(figures_key)) return {};
    try {
      load_object(object, entry_name);
      return {};
    } catch (const UnusableObject& problem) {
      return text("its code cannot be loaded: ", problem.what());
    }
  });
}

std::string ir_text(const CodeRequest& request) {
  return CodeStore::instance().generators().with_one([&](const CodeGenerator& generator) {
    LlvmBuilder builder("stet");
    generator.build(request, builder);
    return builder.str();
  });
}

std::string assembly_text(const CodeRequest& request) {
  return CodeStore::instance().generators().with_one(
      [&](const CodeGenerator& generator) { return generator.generate(request, LLVMAssemblyFile); });
}

}  // namespace stet::cpu

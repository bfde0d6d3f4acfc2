// Puts a relocatable x86-64 ELF object, as LLVM emits it, into executable memory.
//
// Why not ORC: a cached object needs nothing of LLVM to be run, so the first use of a kernel in a process with a warm
// disk cache need not set LLVM up (figures in jit.cpp). What generated objects use is small: read-only sections,
// relative relocations, no unwinding, no thread-local data; anything else is refused.
#pragma once
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace stet::cpu {

/// Why an object cannot be loaded: the object is damaged, or uses something that generated code must not.
class UnusableObject : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Loaded code: the address of a function, which can be called as long as anyone holds it.
using Code = std::shared_ptr<void>;

/// The function `symbol`, a global one of the object. Reads within `object` only, whatever its bytes are. Throws
/// UnusableObject; an undefined symbol is named in its text.
Code load_object(std::span<const char> object, const std::string& symbol);

}  // namespace stet::cpu

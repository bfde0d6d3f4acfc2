#include "stet/ir/host_code.h"

#include <typeinfo>

namespace stet::attribute {

// By the kind of code alone: what is equal must have one hash, and only same_as() knows what is.
std::size_t hash(const HostCodePointer& code) { return code ? typeid(*code).hash_code() : 0; }

bool equal(const HostCodePointer& a, const HostCodePointer& b) { return a == b || (a && b && a->same_as(*b)); }

std::string str(const HostCodePointer& code) { return code ? code->str() : "none"; }

}  // namespace stet::attribute

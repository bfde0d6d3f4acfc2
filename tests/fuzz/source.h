// A changed file as the readers in stet/files/ take it.
#pragma once
#include <cstring>

#include "stet/files/source.h"
#include "tests/fuzz/fuzz.h"

namespace stet::fuzz {

inline files::Source source_of(const FuzzFile& file) {
  files::Bytes bytes(file.bytes().size());
  if (!bytes.empty()) std::memcpy(bytes.data(), file.bytes().data(), bytes.size());
  return files::Source(std::move(bytes), {"load", file.name(), Where{}});
}

}  // namespace stet::fuzz

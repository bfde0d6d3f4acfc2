// WAV files: sound as numbers.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet::data {

struct Wav {
  Tensor samples = {};           // f32[samples, channels], integers scaled to -1 … 1
  std::int64_t sample_rate = 0;  // samples a second
};
/// A file of integers of 8, 16, 24 or 32 bits or of floating numbers of 32 or 64. Compressed ones, and what is damaged
/// or not WAV, are a UserError.
STET_API Wav read_wav(const std::string& path, Where where = Where::here());

struct WriteWavOptions {
  int bits = 16;          // 8, 16, 24 or 32; of floating numbers 32
  bool floating = false;  // numbers as they are, with 32 bits
};
/// `samples` is [samples, channels], or [samples] of one channel, floating. As integers, what is below -1 or above 1 is
/// cut. Overwrites a file of that name, at once and completely.
STET_API void write_wav(const std::string& path, const Tensor& samples, std::int64_t sample_rate,
                        WriteWavOptions options = {}, Where where = Where::here());

}  // namespace stet::data

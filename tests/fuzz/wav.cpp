#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

const FuzzFormat format({
    .name = "wav",
    .seeds =
        [] {
          std::vector<std::string> seeds;
          for (const char* name : {"pcm8", "pcm16", "pcm24", "pcm32", "float32", "float64"})
            seeds.push_back(stored_reader_file(std::string(name) + ".wav"));
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 16) + 8 * file.bytes().size(), [&] { data::read_wav(file.path()); });
        },
});

}  // namespace
}  // namespace stet::fuzz

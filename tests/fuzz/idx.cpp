#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

const std::string plain("\0\0\x0C\x02\0\0\0\x02\0\0\0\x03\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6", 36);

const FuzzFormat format({
    .name = "idx",
    .seeds =
        [] {
          return std::vector<std::string>{plain, std::string("\0\0\x08\x01\0\0\0\x03\1\2\3", 11),
                                          stored_reader_file("idx.gz")};
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 20) + 1100 * file.bytes().size(), [&] { data::read_idx(file.path()); });
        },
});

}  // namespace
}  // namespace stet::fuzz

#include "tests/fuzz/tensors.h"

namespace stet::fuzz {
namespace {

const FuzzFormat format({
    .name = "csv",
    .seeds =
        [] {
          warm_up();
          return std::vector<std::string>{stored_reader_file("wild.csv"), "a,b\n1,x\n,\"y\"\n2.5,x\n", "a;b\r\n1;2\r\n",
                                          stored_reader_file("csv.gz")};
        },
    .load =
        [](const FuzzFile& file) {
          within_memory((1 << 20) + 10'000 * file.bytes().size(), [&] {
            data::Table table = data::read_csv(file.path());
            for (const std::string& name : table.names())
              if (table.is_number(name))
                table.numbers(name);
              else
                table.strings(name);
            // Words among the features, and labels that are missing, are refused: that is not what is looked for here.
            if (table.names().empty() || table.names()[0].empty()) return;
            try {
              read_through(data::csv(file.path(), {.label = table.names()[0]}));
            } catch (const UserError& error) {
              if (std::string(error.what()).find(file.name()) == std::string::npos) throw;
            }
          });
        },
    // A column takes some hundred bytes, and a compressed file makes thousand of one.
    .memory = std::size_t{64} << 20,
    .memory_per_byte = 50'000,
});

}  // namespace
}  // namespace stet::fuzz

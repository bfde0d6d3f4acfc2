#include "stet/data/records.h"

#include <cstring>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"

namespace stet::data {

Tensor byte_tensor(std::string_view bytes, const files::Reading& reading) {
  Buffer buffer = memory_for_file(reading, bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  const auto size = static_cast<std::int64_t>(bytes.size());
  return dense_tensor(DType::u8, {&size, 1}, std::move(buffer));
}

StagePointer records_of(const char* call, std::vector<std::string> paths,
                        std::function<std::unique_ptr<RecordReader>(const std::string& path)> open, Where where) {
  if (paths.empty()) throw UserError(error_text(text(call, ": no file is named"), where, "give one path or more"));
  for (const std::string& path : paths) files::Input look(path, call, where);
  struct Shared {
    std::vector<std::string> paths;
    std::function<std::unique_ptr<RecordReader>(const std::string&)> open;
  };
  auto shared = std::make_shared<const Shared>(Shared{std::move(paths), std::move(open)});
  return source::walked(
      -1,
      [shared]() -> std::function<bool(Tensors&)> {
        struct State {
          std::size_t file = 0;
          std::unique_ptr<RecordReader> reader = nullptr;
        };
        return [shared, state = std::make_shared<State>()](Tensors& out) {
          for (; state->file < shared->paths.size(); ++state->file) {
            if (!state->reader) state->reader = shared->open(shared->paths[state->file]);
            Tensor record;
            if (state->reader->next(record)) {
              out.push_back(std::move(record));
              return true;
            }
            state->reader.reset();
          }
          return false;
        };
      },
      where, call);
}

}  // namespace stet::data

#include "stet/files/json.h"

#include "tests/fuzz/fuzz.h"

namespace stet::fuzz {
namespace {

const FuzzFormat format({
    .name = "json",
    .seeds =
        [] {
          return std::vector<std::string>{
              R"({"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": [{"units": 64, "rate": 0.5e-3,
                 "shape": [null, 28, 28, 1], "trainable": true, "seed": -9223372036854775808, "on": false}]}})",
              R"(["größe \"\\\/\b\f\n\r\t\u00e9\ud83d\ude00", NaN, Infinity, -Infinity, 1e308, -0.0, 123456789012345678901234567890])",
              R"([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]])",
              R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"format":"pt"}})"};
        },
    .load =
        [](const FuzzFile& file) {
          files::Reading reading{"load", file.name(), Where{}};
          files::Json value = files::parse_json(file.bytes(), reading);
          // What was read is written, and reads back as the same text.
          std::string text = files::to_text(value);
          if (files::to_text(files::parse_json(text, reading)) != text ||
              files::to_text(files::parse_json(files::to_text(value, true), reading)) != text)
            throw InternalError("JSON does not come back: " + text);
        },
});

}  // namespace
}  // namespace stet::fuzz

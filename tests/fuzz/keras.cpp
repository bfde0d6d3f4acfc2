// Models of Keras's: the bytes of a .keras file changed at random, and values of its config.json changed for others,
// so that what stands there is read by those who believe it.
#include <zlib.h>

#include <cstring>

#include "stet/files/json.h"
#include "stet/files/zip.h"
#include "stet/keras/names.h"
#include "stet/keras/saving.h"
#include "tests/fuzz/fuzz.h"

namespace stet::fuzz {
namespace {

using files::Json;

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Entries as Keras stores them, with the right checksums.
std::string zipped(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out, directory;
  for (const auto& [name, contents] : entries) {
    std::string head;  // what both headers have
    put<std::uint16_t>(head, 20);
    put<std::uint16_t>(head, 0);
    put<std::uint16_t>(head, 0);
    put<std::uint32_t>(head, 0x00210000);  // 1980-01-01
    put(head, static_cast<std::uint32_t>(
                  crc32_z(0, reinterpret_cast<const unsigned char*>(contents.data()), contents.size())));
    put(head, static_cast<std::uint32_t>(contents.size()));
    put(head, static_cast<std::uint32_t>(contents.size()));
    put(head, static_cast<std::uint16_t>(name.size()));
    put<std::uint16_t>(head, 0);
    put<std::uint32_t>(directory, 0x02014b50);
    put<std::uint16_t>(directory, 20);
    directory += head;
    directory.append(10, '\0');  // no comment, disk 0, no attributes
    put(directory, static_cast<std::uint32_t>(out.size()));
    directory += name;
    put<std::uint32_t>(out, 0x04034b50);
    out += head + name + contents;
  }
  const std::size_t at = out.size();
  out += directory;
  put<std::uint32_t>(out, 0x06054b50);
  put<std::uint32_t>(out, 0);
  put(out, static_cast<std::uint16_t>(entries.size()));
  put(out, static_cast<std::uint16_t>(entries.size()));
  put(out, static_cast<std::uint32_t>(directory.size()));
  put(out, static_cast<std::uint32_t>(at));
  put<std::uint16_t>(out, 0);
  return out;
}

/// All values of a configuration, with itself.
void list_values(Json& value, std::vector<Json*>& out) {
  out.push_back(&value);
  if (Json::List* list = value.if_list())
    for (Json& one : *list) list_values(one, out);
  if (Json::Object* object = value.if_object())
    for (auto& [name, one] : *object) list_values(one, out);
}

Json another_value(const std::vector<Json*>& values, Random& random) {
  static const std::int64_t integers[] = {0, 1, -1, 2, 3, 7, 64, 65536, 1'000'000'000'000, INT64_MAX, INT64_MIN, -2};
  static const char* const strings[] = {"",     "relu", "same",  "Dense",  "LSTM",    "float16", "int64",
                                        "adam", "mse",  "dense", "Lambda", "../../x", "sum",     "Functional"};
  switch (random.below(9)) {
    case 0:
      return nullptr;
    case 1:
      return random.one_in(2);
    case 2:
    case 3:
      return integers[random.below(std::size(integers))];
    case 4:
      return random.one_in(2) ? 1e300 : -0.5;
    case 5:
      return strings[random.below(std::size(strings))];
    case 6:
      return random.one_in(2) ? Json(Json::List()) : Json(Json::Object());
    default:
      return *values[random.below(values.size())];  // what stands elsewhere in the file
  }
}

void change(Json& config, Random& random) {
  for (std::size_t times = 1 + random.below(3); times > 0; --times) {
    std::vector<Json*> values;
    list_values(config, values);
    Json* at = values[random.below(values.size())];
    Json::Object* object = at->if_object();
    Json::List* list = at->if_list();
    if (list && !list->empty() && random.one_in(3)) {
      const Json copy = (*list)[random.below(list->size())];
      if (random.one_in(2))
        list->push_back(copy);
      else
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(random.below(list->size())));
    } else if (object && !object->empty() && random.one_in(3)) {
      object->erase(object->begin() + static_cast<std::ptrdiff_t>(random.below(object->size())));
    } else {
      const Json other = another_value(values, random);
      if (files::to_text(other).size() < 20'000) *at = other;
    }
  }
}

/// Of a file that can still be read as an archive, an archive with right checksums; of every second one the config is
/// changed too.
void mend(std::string& bytes, Random& random) {
  std::vector<std::pair<std::string, std::string>> entries;
  const char* const names[] = {"metadata.json", "config.json", "model.weights.h5",
                               "assets/layers/integer_lookup/vocabulary.txt"};
  // Local headers, as far as they are whole.
  for (std::size_t at = 0; at + 30 <= bytes.size() && std::memcmp(bytes.data() + at, "PK\x03\x04", 4) == 0;) {
    std::uint32_t size;
    std::uint16_t name_size, extra;
    std::memcpy(&size, bytes.data() + at + 18, 4);
    std::memcpy(&name_size, bytes.data() + at + 26, 2);
    std::memcpy(&extra, bytes.data() + at + 28, 2);
    const std::size_t data = at + 30 + name_size + extra;
    if (data > bytes.size() || size > bytes.size() - data || entries.size() == std::size(names)) break;
    entries.emplace_back(names[entries.size()], bytes.substr(data, size));
    at = data + size;
  }
  if (entries.size() < 3) return;
  if (random.one_in(2)) {
    try {
      const files::Reading reading{"fuzz", "config.json", Where{}};
      Json config = files::parse_json(entries[1].second, reading);
      change(config, random);
      entries[1].second = files::to_text(config);
    } catch (const UserError&) {
      // It was changed in a way that is no JSON.
    }
  }
  bytes = zipped(entries);
}

const FuzzFormat format({
    .name = "keras",
    .ending = ".keras",
    .seeds =
        [] {
          std::vector<std::string> seeds;
          for (const char* name :
               {"sequential_mlp", "sequential_cnn", "branches", "models_inside", "translator", "trained_adam",
                "trained_outputs", "bidirectional", "integer_lookup_adapted", "rnn_of_cells", "operations"})
            seeds.push_back(stored_file(std::string("tests/oracle/keras/models/") + name + ".keras"));
          return seeds;
        },
    .load =
        [](const FuzzFile& file) {
          keras::clear_session();
          keras::load_model(file.path());
        },
    .mend = mend,
    .memory = std::size_t{256} << 20,  // what tracing the layers takes
});

}  // namespace
}  // namespace stet::fuzz

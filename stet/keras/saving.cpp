#include "stet/keras/saving.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/file.h"
#include "stet/files/json.h"
#include "stet/files/zip.h"
#include "stet/keras/compile_config.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model_config.h"
#include "stet/keras/state_tree.h"
#include "stet/keras/training.h"
#include "stet/keras/weights_file.h"

namespace stet::keras {
namespace {

using files::Json;

constexpr const char* keras_version = "3.15.1";  // whose format it is
constexpr const char* weights_name = "model.weights.h5";
constexpr const char *h5_ending = ".weights.h5", *safetensors_ending = ".safetensors", *keras_ending = ".keras";

void check_overwrite(const std::string& path, const SaveOptions& options, const char* call, Where where) {
  if (options.overwrite || !std::filesystem::exists(path)) return;
  throw UserError(error_text(text(call, ": '", path, "' is there already"), where,
                             "give another name, or leave out .overwrite = false"));
}

/// Without its weights there is nothing to save.
void require_built(const CustomModel& model, const char* call, Where where) {
  if (model.state().called.load(std::memory_order_acquire)) return;
  throw UserError(error_text(text(call, ": ", model.description(), " is not built: it has no weights yet"), where,
                             "call it on a batch, or start it with keras::Input({…})"));
}

/// How it was compiled; with an undefined optimizer, not at all.
CompileOptions compiled_options(const CustomModel& model) {
  std::lock_guard lock(model.training().guard);
  return model.training().compiled ? model.training().options : CompileOptions{.optimizer = {}};
}

// --- limits of what is loaded

void check_size(const files::Input& file, const LoadLimits& limits) {
  if (file.size() > limits.file_bytes)
    file.reading().fail(text("it has ", file.size(), " bytes, and at most ", limits.file_bytes, " are allowed"),
                        "raise .limits.file_bytes if you trust it");
}

/// How many layers run in one call of what the entry describes; beyond `most`, some number above it. Models inside of
/// models may be called more than once on every level: a short file may ask for very many.
std::int64_t layers_in(const Json& entry, std::int64_t most, const LayerFactories& own) {
  std::int64_t out = 1;
  const Json* config = entry.find("config");
  // Layers of users' own classes hold others by any name.
  auto is_layer = [&](const Json& value) {
    const Json* name = value.find("class_name");
    const Json* registered = value.find("registered_name");
    return (name && name->if_string() &&
            (Registry<Layer>::entries().contains(*name->if_string()) || own.contains(*name->if_string()))) ||
           (registered && registered->if_string() && own.contains(*registered->if_string()));
  };
  const Json::Object* members = config ? config->if_object() : nullptr;
  for (std::size_t i = 0; members && i < members->size(); ++i) {
    const Json& member = (*members)[i].second;
    if (is_layer(member)) out = std::min(most + 1, out + layers_in(member, most, own));
    if (const Json::List* list = list_of(member))
      for (const Json& one : *list)
        if (is_layer(one)) out = std::min(most + 1, out + layers_in(one, most, own));
  }
  const Json* calls = entry.find("inbound_nodes");
  const Json::List* nodes = calls ? list_of(*calls) : nullptr;
  const auto count = static_cast<std::int64_t>(nodes ? nodes->size() : 1);
  return count > 1 && out > most / count ? most + 1 : out * std::max<std::int64_t>(count, 1);
}

// --- vocabularies, which Keras puts into files of their own

/// One token a line.
Json tokens_of(std::string_view text, const files::Reading& reading) {
  Json out = Json::List();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    if (line.ends_with('\r')) line.pop_back();
    std::size_t used = 0;
    std::int64_t number = 0;
    try {
      number = std::stoll(line, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != line.size()) reading.fail("a token is no integer", at);
    out.push_back(number);
    at = end + 1;
  }
  return out;
}

void add_vocabularies(Json& entry, const std::string& path, const files::ZipReader& zip) {
  const Json* class_name = entry.find("class_name");
  if (!entry.find("config") || !entry.find("config")->if_object() || !class_name || !class_name->if_string()) return;
  Json& config = entry["config"];
  if (*class_name->if_string() == "IntegerLookup") {
    const std::string name = text("assets/", path, "/vocabulary.txt");
    const files::ZipEntry* asset = zip.find(name);
    const Json* given = config.find("vocabulary");
    if (!asset || (given && !given->is_null())) return;
    const files::Bytes bytes = zip.read(*asset);
    config["vocabulary"] =
        tokens_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, zip.reading().inside(name));
    return;
  }
  if (!config.find("layers") || !config["layers"].if_list()) return;
  ContainerNames names;
  for (Json& layer : *config["layers"].if_list()) {
    const Json* inner = layer.find("class_name");
    if (!inner || !inner->if_string()) continue;
    const std::string list = path.empty() ? "layers" : path + "/layers";
    add_vocabularies(layer, text(list, "/", names.next(*inner->if_string())), zip);
  }
}

// --- weights by names

/// The weights of the model by their paths; UserError if two have the same.
std::map<std::string, Weight, std::less<>> named_weights(CustomModel& model, const files::Reading& file) {
  std::map<std::string, Weight, std::less<>> out;
  for (Weight& weight : weights_by_path(model)) {
    std::string path = weight.path;
    if (!out.emplace(path, std::move(weight)).second)
      file.fail(text("two weights of ", model.description(), " are called '", path, "'"),
                "give the layers different names");
  }
  return out;
}

void write_named(const std::string& path, CustomModel& model, Where where) {
  named_weights(model, {"save_weights", path, where});
  std::vector<files::SafetensorsPart> parts;
  for (const Weight& weight : weights_by_path(model)) {
    const Tensor value = weight.variable.read(where).contiguous(where);
    parts.push_back({weight.path, value.dtype(), value.shape().sizes(),
                     [value, where](const files::Sink& sink) { sink(bytes_of(value, where)); }});
  }
  files::Output output(path, "save_weights", where);
  files::write_safetensors(output, std::move(parts));
  output.commit();
}

WeightsToLoad::Stored stored(const files::SafetensorsReader& from, const files::SafetensorsEntry& entry) {
  return {entry.name, entry.dtype, text(entry.dtype), entry.sizes,
          [&from, &entry](std::span<std::byte> to) { from.read(entry, to); }};
}

void read_named(const files::SafetensorsReader& from, CustomModel& model, const LoadWeightsOptions& options) {
  const std::map<std::string, Weight, std::less<>> own = named_weights(model, from.reading());
  WeightsToLoad all(from.reading(), model.description());
  std::set<std::string, std::less<>> used;
  if (options.names.names.empty()) {
    for (const auto& [path, weight] : own) {
      if (const files::SafetensorsEntry* entry = from.find(path))
        all.add(weight, stored(from, *entry), options.names.layout);
      else
        all.add_missing(weight, path);
      used.insert(path);
    }
    for (const files::SafetensorsEntry& entry : from.tensors())
      if (!used.contains(entry.name)) all.add_unexpected(stored(from, entry));
  } else {
    for (const WeightName& name : options.names.names) {
      auto weight = own.find(name.weight);
      if (weight == own.end())
        from.reading().fail(text("the name map gives '", name.file, "' to '", name.weight, "', and ",
                                 model.description(), " has no such weight"),
                            "names are those of weights() without the model's: \"dense/kernel\"");
      if (!used.insert(name.weight).second)
        from.reading().fail(text("the name map names '", name.weight, "' twice"), "name each weight once");
      if (const files::SafetensorsEntry* entry = from.find(name.file))
        all.add(weight->second, stored(from, *entry), options.names.layout);
      else
        all.add_missing(weight->second, name.file);
    }
  }
  all.check(options.skip_mismatch);
  all.commit();
}

/// The weights inside of a .keras file.
files::Source weights_of(const files::ZipReader& zip) {
  const files::ZipEntry* entry = zip.find(weights_name);
  if (!entry)
    zip.reading().fail(text("it has no ", weights_name),
                       zip.find("model.weights.npz") || zip.find("model.weights.json")
                           ? "its weights are in another form: save it with Keras again, as model.save(\"m.keras\")"
                           : "it is no file that model.save(\"m.keras\") writes");
  return zip.open(*entry);
}

}  // namespace

// --- saving

void Model::save(const std::string& path, SaveOptions options, Where where) const {
  CustomModel& model = model_body("save", where);
  if (!path.ends_with(keras_ending))
    throw UserError(error_text(text("save: '", path, "' does not end in .keras"), where,
                               "models are saved as \"m.keras\"; weights alone by save_weights(\"m.weights.h5\")"));
  require_built(model, "save", where);
  check_overwrite(path, options, "save", where);
  Fields::Place place{.call = "save", .where = where};
  Json config;
  {
    const SharedLayers shared(model);
    config = to_config(*this, place);
  }
  const CompileOptions compiled = options.include_optimizer ? compiled_options(model) : CompileOptions{.optimizer = {}};
  config["compile_config"] = Json::Object();
  if (compiled.optimizer.defined()) {
    try {
      place.path = {"compile_config"};
      config["compile_config"] = compile_to_config(compiled, place);
    } catch (const UserError& error) {
      throw UserError(text(error.what(), "; {.include_optimizer = false} saves the model without how it is trained"));
    }
  }
  Json metadata;
  metadata["keras_version"] = keras_version;

  files::Hdf5Writer weights;
  write_weights(weights, model, compiled.optimizer, where);
  files::Output output(path, "save", where);
  files::ZipWriter zip(output);
  zip.add("metadata.json", files::to_text(metadata));
  zip.add("config.json", files::to_text(config));
  zip.begin(weights_name, weights.size());
  weights.write([&](std::span<const std::byte> part) { zip.write(part); });
  zip.end();
  zip.finish();
  output.commit();
}

void Model::save_weights(const std::string& path, SaveOptions options, Where where) const {
  CustomModel& model = model_body("save_weights", where);
  require_built(model, "save_weights", where);
  check_overwrite(path, options, "save_weights", where);
  if (path.ends_with(safetensors_ending)) return write_named(path, model, where);
  if (!path.ends_with(h5_ending))
    throw UserError(error_text(text("save_weights: '", path, "' ends in neither .weights.h5 nor .safetensors"), where,
                               "\"m.weights.h5\" is Keras's form, \"m.safetensors\" that of most others"));
  files::Hdf5Writer weights;
  write_weights(weights, model, options.include_optimizer ? compiled_options(model).optimizer : Optimizer(), where);
  files::Output output(path, "save_weights", where);
  weights.write([&](std::span<const std::byte> part) { output.write(part); });
  output.commit();
}

// --- loading

void Model::load_weights(const std::string& path, LoadWeightsOptions options, Where where) const {
  CustomModel& model = model_body("load_weights", where);
  const bool named = path.ends_with(safetensors_ending), zipped = path.ends_with(keras_ending);
  if (!named && !zipped && !path.ends_with(h5_ending))
    throw UserError(
        error_text(text("load_weights: '", path, "' ends in neither .weights.h5, .keras nor .safetensors"), where,
                   path.ends_with(".h5") ? "it is of Keras 2: load it there, and save it as \"m.weights.h5\""
                                         : "files are known by their endings"));
  require_built(model, "load_weights", where);
  if (!named && !options.names.names.empty())
    throw UserError(error_text("load_weights: names are given for a file that is not .safetensors", where,
                               "Keras's files have their own order, which fits models made alike"));
  const files::Input file(path, "load_weights", where);
  check_size(file, options.limits);
  if (named) return read_named(files::SafetensorsReader(file), model, options);
  const Optimizer optimizer = compiled_options(model).optimizer;
  if (!zipped) return read_weights(files::Hdf5Reader(file), model, optimizer, options.skip_mismatch, where);
  const files::ZipReader zip(file);
  read_weights(files::Hdf5Reader(weights_of(zip)), model, optimizer, options.skip_mismatch, where);
}

Model load_model(const std::string& path, LoadOptions options, Where where) {
  if (!path.ends_with(keras_ending))
    throw UserError(error_text(text("load_model: '", path, "' does not end in .keras"), where,
                               path.ends_with(".h5") ? "it is of Keras 2: load it there, and save it as \"m.keras\""
                                                     : "models are saved by model.save(\"m.keras\")"));
  const files::Input file(path, "load_model", where);
  check_size(file, options.limits);
  const files::ZipReader zip(file);
  const files::ZipEntry* entry = zip.find("config.json");
  if (!entry) file.reading().fail("it has no config.json", "it is no file that model.save(\"m.keras\") writes");
  const files::Reading reading = file.reading().inside("config.json");
  if (entry->size > options.limits.config_bytes)
    reading.fail(text("it has ", entry->size, " bytes, and at most ", options.limits.config_bytes, " are allowed"),
                 "raise .limits.config_bytes if you trust the file");
  const files::Bytes bytes = zip.read(*entry);
  Json config = files::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, reading, 0,
                                  {.depth = options.limits.depth});
  if (layers_in(config, options.limits.layers, options.custom_layers) > options.limits.layers)
    reading.fail(text("it has more than ", options.limits.layers, " layers, counted as often as they are called"),
                 "raise .limits.layers if you trust the file");
  const files::Hdf5Reader weights(weights_of(zip));
  add_vocabularies(config, "", zip);

  Fields::Place place{
      .reading = &reading, .call = "load_model", .where = where, .custom_layers = &options.custom_layers};
  Layer layer;
  {
    const WeightsOfFile coming(elements_in(weights.root()));
    SharedLayers shared;
    layer = layer_from_config(config, place);
    if (auto* own = dynamic_cast<CustomModel*>(layer.body().get()); own && !is_model_of_layers(*own))
      build_as_saved(*own, config, place);
  }
  if (!dynamic_cast<CustomModel*>(layer.body().get()))
    reading.fail(text("it is a ", dynamic_cast<const CustomLayer&>(*layer.body()).class_name(), ", no model"),
                 "models are saved by model.save(\"m.keras\")");
  Model model = Model::from_body(layer.body());
  auto& body = static_cast<CustomModel&>(*model.body());
  if (!body.state().called.load(std::memory_order_acquire)) {
    if (weights_in(weights.root()) == 0) return model;  // saved before it had some
    reading.fail(text(body.description(),
                      " cannot be built from what the file says of its input, so its weights have "
                      "no place"),
                 is_model_of_layers(body) ? "save it with an Input in front"
                                          : "call it on a batch in its factory, which makes its weights");
  }

  const Json* compiled = config.find("compile_config");
  const bool compiles = options.compile && compiled && compiled->if_object() && !compiled->if_object()->empty();
  if (compiles) {
    const CompileOptions how = compile_from_config(*compiled, body.names().outputs, place);
    place.path = {"compile_config"};
    made_of(place, [&] {
      model.compile(how, where);
      return true;
    });
  }
  read_weights(weights, body, compiles ? model.optimizer(where) : Optimizer(), false, where);
  return model;
}

}  // namespace stet::keras

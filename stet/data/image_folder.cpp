#include "stet/data/image_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/image_codec.h"
#include "stet/data/image_resize.h"
#include "stet/data/stream.h"
#include "stet/files/file.h"
#include "stet/files/utf8.h"
#include "stet/ops/ops.h"

namespace stet::data {
namespace {

[[noreturn]] void refuse(const char* call, const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(text(call, ": ", what), where, advice));
}

// --- one image

/// How files become elements.
struct Decoding {
  const char* call;
  ImagesOptions options;
  Where where;
};

void check(Decoding& decoding) {
  ImagesOptions& options = decoding.options;
  auto stop = [&](const std::string& what, const char* advice) { refuse(decoding.call, what, decoding.where, advice); };
  int channels = options.color_mode == "grayscale" ? 1
                 : options.color_mode == "rgb"     ? 3
                 : options.color_mode == "rgba"    ? 4
                                                   : 0;
  if (!channels)
    stop(text("color_mode \"", options.color_mode, "\" is not known"), "\"rgb\", \"grayscale\" or \"rgba\"");
  options.decode.channels = channels;
  for (std::int64_t size : options.image_size)
    if (size < 1 || size > 1 << 20)
      stop(text("image_size is {", options.image_size[0], ", ", options.image_size[1], "}"),
           "height and width, from 1 to 1048576");
  if (options.interpolation != "bilinear" && options.interpolation != "nearest" && options.interpolation != "bicubic")
    stop(text("interpolation \"", options.interpolation, "\" is not known"),
         "\"bilinear\", \"nearest\" or \"bicubic\"");
  if (options.dtype != DType::f32 && options.dtype != DType::u8)
    stop(text("dtype is ", options.dtype), "f32 (0 to 255, not rounded) or u8; cast it in map for others");
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio)
    stop("crop_to_aspect_ratio and pad_to_aspect_ratio are both given", "take one of them");
  if (options.decode.bits != 8) stop(text("decode.bits is ", options.decode.bits), "images of a dataset have 8 bits");
}

/// The middle of an image in the proportions of `size`, as Keras's smart_resize cuts it.
ImagePart cropped(ImagePart image, const std::array<std::int64_t, 2>& size) {
  const double target_height = static_cast<double>(size[0]), target_width = static_cast<double>(size[1]);
  const auto height = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(image.width) * target_height / target_width), 1, image.height);
  const auto width = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(image.height) * target_width / target_height), 1, image.width);
  image.first += (image.height - height) / 2 * image.row_bytes + (image.width - width) / 2 * image.channels;
  image.height = height;
  image.width = width;
  return image;
}

Buffer memory(const Decoding& decoding, const std::string& path, std::int64_t bytes) {
  return memory_for_file({decoding.call, path, decoding.where}, static_cast<std::uint64_t>(bytes));
}

/// A part of a decoded image, at another size.
Tensor resized(const Decoding& decoding, const std::string& path, const Tensor& decoded, const ImagePart& part,
               std::int64_t height, std::int64_t width) {
  const ImagesOptions& options = decoding.options;
  const TensorNode& node = *decoded.node();
  const std::int64_t channels = part.channels;
  const std::int64_t sizes[] = {height, width, channels}, count = height * width * channels;
  const bool same = part.height == height && part.width == width;
  if (same && options.dtype == DType::u8 && node.sizes[0] == height && node.sizes[1] == width) return decoded;

  if ((options.interpolation == "nearest" && !(same && options.dtype == DType::f32)) ||
      (same && options.dtype == DType::u8)) {
    Buffer pixels = memory(decoding, path, count);
    auto* at = reinterpret_cast<std::uint8_t*>(pixels.data());
    resize_nearest(part, at, height, width);
    if (options.dtype == DType::u8) return dense_tensor(DType::u8, sizes, std::move(pixels));
    Buffer buffer = memory(decoding, path, count * 4);
    std::transform(at, at + count, reinterpret_cast<float*>(buffer.data()),
                   [](std::uint8_t value) { return static_cast<float>(value); });
    return dense_tensor(DType::f32, sizes, std::move(buffer));
  }
  Tensor result;
  if (options.interpolation == "bicubic" && !same) {
    Buffer pixels = memory(decoding, path, part.height * part.width * channels);
    for (std::int64_t y = 0; y < part.height; ++y)
      std::memcpy(pixels.data() + y * part.width * channels, part.first + y * part.row_bytes,
                  static_cast<std::size_t>(part.width * channels));
    const std::int64_t one[] = {1, part.height, part.width, channels};
    result = reshape(resize(dense_tensor(DType::u8, one, std::move(pixels)), height, width, {.method = "bicubic"}),
                     {height, width, channels});
    if (options.dtype == DType::f32) return result;
    return cast(clip(round(result), 0.f, 255.f), DType::u8);
  }
  Buffer buffer = memory(decoding, path, count * 4);
  auto* numbers = reinterpret_cast<float*>(buffer.data());
  if (same)
    for (std::int64_t y = 0; y < height; ++y)
      std::copy_n(part.first + y * part.row_bytes, width * channels, numbers + y * width * channels);
  else
    resize_bilinear(part, numbers, height, width);
  if (options.dtype == DType::f32) return dense_tensor(DType::f32, sizes, std::move(buffer));
  Buffer pixels = memory(decoding, path, count);
  std::transform(numbers, numbers + count, reinterpret_cast<std::uint8_t*>(pixels.data()),
                 [](float value) { return static_cast<std::uint8_t>(std::nearbyint(value)); });
  return dense_tensor(DType::u8, sizes, std::move(pixels));
}

/// The image as large as it fits into the size, in the middle of black: TensorFlow's resize_with_pad.
Tensor resized_with_pad(const Decoding& decoding, const std::string& path, const Tensor& decoded,
                        const ImagePart& part) {
  const std::int64_t height = decoding.options.image_size[0], width = decoding.options.image_size[1];
  // In f32, as in TensorFlow.
  const auto wanted_height = static_cast<float>(height), wanted_width = static_cast<float>(width);
  const float ratio =
      std::max(static_cast<float>(part.width) / wanted_width, static_cast<float>(part.height) / wanted_height);
  const float fitting_height = static_cast<float>(part.height) / ratio,
              fitting_width = static_cast<float>(part.width) / ratio;
  auto whole = [](float size, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(size)), 1, most);
  };
  const std::int64_t inner_height = whole(fitting_height, height), inner_width = whole(fitting_width, width);
  auto before = [](float wanted, float fitting, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor((wanted - fitting) / 2)), 0, most);
  };
  const std::int64_t above = before(wanted_height, fitting_height, height - inner_height);
  const std::int64_t beside = before(wanted_width, fitting_width, width - inner_width);
  Tensor inner = resized(decoding, path, decoded, part, inner_height, inner_width);
  if (inner_height == height && inner_width == width) return inner;
  const std::int64_t pixel = part.channels * size_of(decoding.options.dtype);
  Buffer buffer = memory(decoding, path, height * width * pixel);
  std::memset(buffer.data(), 0, static_cast<std::size_t>(height * width * pixel));
  Tensor dense = inner.contiguous(decoding.where);
  for (std::int64_t y = 0; y < inner_height; ++y)
    std::memcpy(buffer.data() + ((above + y) * width + beside) * pixel, dense.node()->data + y * inner_width * pixel,
                static_cast<std::size_t>(inner_width * pixel));
  const std::int64_t sizes[] = {height, width, part.channels};
  return dense_tensor(decoding.options.dtype, sizes, std::move(buffer));
}

Tensor load(const Decoding& decoding, const std::string& path) {
  const ImagesOptions& options = decoding.options;
  Tensor decoded = read_image_file(path, options.decode, decoding.call, decoding.where);
  const TensorNode& node = *decoded.node();
  ImagePart part{reinterpret_cast<const std::uint8_t*>(node.data), node.sizes[1] * node.sizes[2], node.sizes[0],
                 node.sizes[1], node.sizes[2]};
  if (options.pad_to_aspect_ratio) return resized_with_pad(decoding, path, decoded, part);
  if (options.crop_to_aspect_ratio) part = cropped(part, options.image_size);
  return resized(decoding, path, decoded, part, options.image_size[0], options.image_size[1]);
}

// --- the files of a folder

enum class EntryKind : std::uint8_t { folder, image, foreign_image, other };

EntryKind kind_by_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  std::string end = dot == std::string::npos ? "" : name.substr(dot + 1);
  for (char& c : end) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (end == "png" || end == "jpg" || end == "jpeg") return EntryKind::image;
  if (end == "bmp" || end == "gif" || end == "webp") return EntryKind::foreign_image;
  return EntryKind::other;
}

struct Entry {
  std::string name;
  bool folder;
  bool linked = false;  // a folder
};

/// Sorted; those whose names begin with a dot only where they are files, as Keras has it.
std::vector<Entry> entries_of(const std::string& path, Where where) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder)
    refuse("image_folder", text("'", files::shown_name(path), "': cannot be opened: ", files::system_error_text(errno)),
           where, "give the path of a folder");
  std::vector<Entry> out;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat about;
    const std::string full = path + "/" + name;
    if (::lstat(full.c_str(), &about) != 0) continue;
    const bool link = S_ISLNK(about.st_mode);
    if (link && ::stat(full.c_str(), &about) != 0) continue;
    const bool is_folder = S_ISDIR(about.st_mode);
    if (is_folder || S_ISREG(about.st_mode)) out.push_back({name, is_folder, link && is_folder});
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return out;
}

/// The folder and all in it, to any depth. Links to folders in it are not followed, as Keras has it: they may lead in
/// circles.
void add_folders(const std::string& path, std::vector<std::string>& out, int depth, Where where) {
  if (depth > 64)
    refuse("image_folder", text("'", files::shown_name(path), "': folders are nested deeper than 64"), where,
           "flatten them");
  out.push_back(path);
  for (const Entry& entry : entries_of(path, where))
    if (entry.folder && !entry.linked) add_folders(path + "/" + entry.name, out, depth + 1, where);
}

/// The images under a folder, in the order that Keras has them: by the path of their folder, then by name.
void collect(const std::string& path, std::vector<std::string>& out, Where where) {
  std::vector<std::string> folders;
  add_folders(path, folders, 0, where);
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders)
    for (const Entry& entry : entries_of(folder, where)) {
      if (entry.folder) continue;
      const std::string full = folder + "/" + entry.name;
      const EntryKind kind = kind_by_name(entry.name);
      if (kind == EntryKind::foreign_image)
        refuse("image_folder", text("'", files::shown_name(full), "': is neither a PNG nor a JPEG by its name"), where,
               "convert it, or put it elsewhere");
      if (kind == EntryKind::image) out.push_back(full);
    }
}

/// NumPy's RandomState(seed).shuffle, as Keras calls it.
template <class T>
void shuffle_as_numpy(std::vector<T>& list, std::uint32_t seed) {
  std::mt19937 draw(seed);
  auto up_to = [&](std::uint32_t most) {
    std::uint32_t mask = most;
    for (int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    std::uint32_t value;
    while ((value = static_cast<std::uint32_t>(draw()) & mask) > most) {
    }
    return value;
  };
  for (std::size_t i = list.size(); i-- > 1;) std::swap(list[i], list[up_to(static_cast<std::uint32_t>(i))]);
}

struct Labeled {
  std::string path;
  std::int64_t label;
};

struct Listing {
  std::vector<Labeled> files;
  std::vector<std::string> class_names;
};

Listing list_folder(std::string path, const ImageFolderOptions& options, Where where) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  auto stop = [&](const std::string& what, const std::string& advice) { refuse("image_folder", what, where, advice); };
  Listing listing;
  std::vector<std::string> paths;
  if (options.labels.how == "list") {
    collect(path, paths, where);
    if (paths.size() != options.labels.list.size())
      stop(text("labels has ", options.labels.list.size(), " numbers, '", path, "' ", paths.size(), " images"),
           "one number for each file, in the order of their paths");
    std::set<std::int64_t> classes(options.labels.list.begin(), options.labels.list.end());
    if (!options.class_names.empty() && options.class_names.size() < classes.size())
      stop(text("class_names has ", options.class_names.size(), " names, labels ", classes.size(), " classes"),
           "name all of them, or none");
    for (std::size_t i = 0; i < paths.size(); ++i) listing.files.push_back({paths[i], options.labels.list[i]});
    if (!classes.empty() && *classes.begin() < 0)
      stop(text("label ", *classes.begin(), " is negative"), "classes are 0, 1, …");
    listing.class_names = options.class_names;
    if (listing.class_names.empty())
      for (std::int64_t label = 0; !classes.empty() && label <= std::min<std::int64_t>(*classes.rbegin(), 1 << 20);
           ++label)
        listing.class_names.push_back(text(label));
    if (!classes.empty() && *classes.rbegin() >= std::ssize(listing.class_names))
      stop(text("label ", *classes.rbegin(), " is not one of ", listing.class_names.size(), " classes"),
           "classes are 0, 1, …");
  } else {
    // A class may be a link to a folder elsewhere.
    std::vector<std::string> folders;
    for (const Entry& entry : entries_of(path, where))
      if (entry.folder && entry.name[0] != '.') folders.push_back(entry.name);
    if (folders.empty())
      stop(text("'", path, "': has no folders in it, which would be the classes"),
           "one folder for each class; or give .labels as a list");
    listing.class_names = folders;
    if (!options.class_names.empty()) {
      if (std::set<std::string>(options.class_names.begin(), options.class_names.end()) !=
              std::set<std::string>(folders.begin(), folders.end()) ||
          options.class_names.size() != folders.size())
        stop(text("class_names are '", joined(options.class_names, "', '"), "', the folders '", joined(folders, "', '"),
                  "'"),
             "name all folders, in the order that the classes are to have");
      listing.class_names = options.class_names;
    }
    for (std::size_t label = 0; label < listing.class_names.size(); ++label) {
      paths.clear();
      collect(path + "/" + listing.class_names[label], paths, where);
      for (std::string& file : paths) listing.files.push_back({std::move(file), static_cast<std::int64_t>(label)});
    }
  }
  if (listing.files.empty()) stop(text("'", path, "': has no images in it"), ".png, .jpg and .jpeg are read");
  return listing;
}

/// Puts a part aside for validation.
void split(std::vector<Labeled>& files, const ImageFolderOptions& options, Where where) {
  auto stop = [&](const std::string& what, const char* advice) { refuse("image_folder", what, where, advice); };
  if (!(options.validation_split >= 0 && options.validation_split < 1))
    stop(text("validation_split is ", options.validation_split), "the part of the images, from 0 to less than 1");
  if (options.validation_split == 0) {
    if (!options.subset.empty()) stop("subset is given without validation_split", "say how many in .validation_split");
    return;
  }
  if (options.subset != "training" && options.subset != "validation")
    stop(text("subset is \"", options.subset, "\", with a validation_split"), "\"training\" or \"validation\"");
  if (options.shuffle && !options.seed)
    stop("validation_split and shuffle are given without a seed",
         "give one, so that both subsets are cut from the same order");
  // Keras takes the last ones, of an order that depends on the seed.
  if (options.shuffle) {
    if (files.size() > UINT32_MAX) stop("there are too many files", "split them into folders");
    shuffle_as_numpy(files, static_cast<std::uint32_t>(*options.seed));
  }
  const auto aside = static_cast<std::ptrdiff_t>(options.validation_split * static_cast<double>(files.size()));
  if (options.subset == "training")
    files.resize(files.size() - static_cast<std::size_t>(aside));
  else
    files.erase(files.begin(), files.end() - aside);
  if (files.empty())
    stop(text("validation_split ", options.validation_split, " leaves no images for ", options.subset),
         "take another part");
}

enum class LabelMode : std::uint8_t { integer, categorical, binary };

Tensor label_tensor(std::int64_t label, LabelMode mode, std::size_t classes) {
  if (mode == LabelMode::integer) return tensor(label);
  if (mode == LabelMode::binary) return tensor(static_cast<float>(label));
  std::vector<float> ones(classes);
  ones[static_cast<std::size_t>(label)] = 1;
  return tensor(ones);
}

}  // namespace

ImageFolder image_folder(const std::string& path, ImageFolderOptions options, Where where) {
  auto stop = [&](const std::string& what, const char* advice) { refuse("image_folder", what, where, advice); };
  Decoding decoding{"image_folder",
                    {options.color_mode, options.image_size, options.interpolation, options.crop_to_aspect_ratio,
                     options.pad_to_aspect_ratio, options.dtype, options.decode},
                    where};
  check(decoding);
  if (options.labels.how != "inferred" && options.labels.how != "list")
    stop(text("labels is \"", options.labels.how, "\""),
         "\"inferred\", or a list of numbers; images(files(…)) has no labels");
  if (options.label_mode != "int" && options.label_mode != "categorical" && options.label_mode != "binary")
    stop(text("label_mode \"", options.label_mode, "\" is not known"), "\"int\", \"categorical\" or \"binary\"");
  const LabelMode mode = options.label_mode == "int"           ? LabelMode::integer
                         : options.label_mode == "categorical" ? LabelMode::categorical
                                                               : LabelMode::binary;
  Listing listing = list_folder(path, options, where);
  if (mode == LabelMode::binary && listing.class_names.size() != 2)
    stop(text("label_mode \"binary\" is for two classes, '", path, "' has ", listing.class_names.size()),
         "take \"int\" or \"categorical\"");
  split(listing.files, options, where);
  std::vector<std::string> paths;
  for (const Labeled& file : listing.files) paths.push_back(file.path);
  const auto count = static_cast<std::int64_t>(listing.files.size());
  const std::size_t classes = listing.class_names.size();
  auto element = [decoding, mode, classes,
                  files = std::make_shared<const std::vector<Labeled>>(std::move(listing.files))](std::int64_t position,
                                                                                                  Tensors& out) {
    const Labeled& file = (*files)[static_cast<std::size_t>(position)];
    out.push_back(load(decoding, file.path));
    out.push_back(label_tensor(file.label, mode, classes));
  };
  ImageFolder folder(source::indexed(count, std::move(element), where, "image_folder"), listing.class_names,
                     std::move(paths));
  return options.shuffle ? folder.in_random_order(options.seed, where) : folder;
}

ImageFolder ImageFolder::in_random_order(std::optional<std::uint64_t> seed, Where where) const {
  const auto count = static_cast<std::int64_t>(file_paths_.size());
  return ImageFolder(shuffled(count, {.seed = seed}, where), class_names(), file_paths_);
}

Dataset<Tensor> images(const Paths& paths, ImagesOptions options, Where where) {
  Decoding decoding{"images", std::move(options), where};
  check(decoding);
  auto list = std::make_shared<const std::vector<std::string>>(paths.list);
  return Dataset<Tensor>(source::indexed(
      static_cast<std::int64_t>(list->size()),
      [decoding, list](std::int64_t position, Tensors& out) {
        out.push_back(load(decoding, (*list)[static_cast<std::size_t>(position)]));
      },
      where, "images"));
}

}  // namespace stet::data

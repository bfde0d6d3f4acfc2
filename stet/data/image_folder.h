// A folder of images, one folder in it for each class: Keras's image_dataset_from_directory.
//
//   auto train = data::image_folder("photos", {.image_size = {64, 64}, .validation_split = 0.2, .subset = "training",
//   .seed = 1}); model.fit(train.batch(32).prefetch(2));
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/data/image.h"
#include "stet/data/labeled.h"
#include "stet/data/paths.h"

namespace stet::data {

/// "inferred", from the names of the folders, or the numbers of the files in the order of their paths.
struct FolderLabels {
  FolderLabels(const char* how) : how(how) {}
  FolderLabels(std::string how) : how(std::move(how)) {}
  FolderLabels(std::vector<std::int64_t> list) : how("list"), list(std::move(list)) {}
  std::string how;
  std::vector<std::int64_t> list = {};
};

struct ImageFolderOptions {
  FolderLabels labels = "inferred";
  /// "int": a number, i64[]. "categorical": f32[classes] with a 1. "binary": f32[], 0 or 1, of two classes.
  std::string label_mode = "int";
  std::vector<std::string> class_names = {};            // the order of the classes; none: sorted
  std::string color_mode = "rgb";                       // or "grayscale", "rgba"
  std::array<std::int64_t, 2> image_size = {256, 256};  // height, width
  bool shuffle = true;                                  // another order in each pass; else by class and path
  std::optional<std::uint64_t> seed = {};               // of the order, and of what is put aside for validation
  double validation_split = 0;                          // this part is put aside, and
  std::string subset = {};                              // "training" or "validation" says which one is asked for
  std::string interpolation = "bilinear";               // or "nearest", "bicubic"
  bool crop_to_aspect_ratio = false;                    // cut to the shape of image_size, instead of being squeezed
  bool pad_to_aspect_ratio = false;                     // put on black, instead
  DType dtype = DType::f32;                             // 0 to 255, not rounded; or u8, rounded
  ImageOptions decode = {};                             // its channels come from color_mode
};

/// Images (of dtype [height, width, channels], label). An image is read, decoded and resized when it is needed, by
/// whatever thread needs it. Files other than .png, .jpg and .jpeg are left out; what cannot be decoded is a UserError
/// in the place of its element. The classes are known, and the files listed, at once. With the same seed below 2^32 and
/// the same files, what is put aside for validation is what Keras puts aside.
class STET_API ImageFolder : public LabeledDataset {
 public:
  ImageFolder(StagePointer stage, std::vector<std::string> class_names, std::vector<std::string> file_paths)
      : LabeledDataset(std::move(stage), std::move(class_names)), file_paths_(std::move(file_paths)) {}
  /// Of its elements, in the order without shuffle.
  const std::vector<std::string>& file_paths() const { return file_paths_; }

 private:
  friend STET_API ImageFolder image_folder(const std::string& path, ImageFolderOptions options, Where where);
  ImageFolder in_random_order(std::optional<std::uint64_t> seed, Where where) const;
  std::vector<std::string> file_paths_;
};
STET_API ImageFolder image_folder(const std::string& path, ImageFolderOptions options = {},
                                  Where where = Where::here());

struct ImagesOptions {
  std::string color_mode = "rgb";
  std::array<std::int64_t, 2> image_size = {256, 256};
  std::string interpolation = "bilinear";
  bool crop_to_aspect_ratio = false;
  bool pad_to_aspect_ratio = false;
  DType dtype = DType::f32;
  ImageOptions decode = {};
};
/// The same without labels: these files, in this order.
STET_API Dataset<Tensor> images(const Paths& paths, ImagesOptions options = {}, Where where = Where::here());

}  // namespace stet::data

// Report: a page about a training, written when it has ended.
#pragma once
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/callback.h"

namespace stet::keras {

/// Records fit(), evaluate() or predict() as stet::Profile does, and saves it when that ends: a page for ".html", a
/// trace for Perfetto for ".json", the recording for ".stet-profile". A training that an exception ends is not saved.
/// UserError for other endings, and for a file that cannot be written.
class STET_API Report : public Callback {
 public:
  explicit Report(std::string path = "report.html", Where where = Where::here());
};

}  // namespace stet::keras

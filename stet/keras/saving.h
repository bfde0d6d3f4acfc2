// Models in files of Keras's own format: model.save("m.keras") writes one that Keras loads, load_model reads one that
// Keras, or stet, has written.
#pragma once
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/model.h"
#include "stet/keras/saving_options.h"

namespace stet::keras {

/// The model of a .keras file, with its weights: of layers that stet has, or that .custom_layers makes. A file is data:
/// it names classes of a closed list and of these, and nothing in it is run. Whatever is wrong with it is a UserError
/// that says where.
STET_API Model load_model(const std::string& path, LoadOptions options = {}, Where where = Where::here());

}  // namespace stet::keras

// What layers that learn a table with adapt() share. Not a public header.
#pragma once
#include <functional>

#include "stet/base/where.h"
#include "stet/data/dataset.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// Reads a dataset once; UserError if it does not end.
void for_each_batch(const data::Dataset<Tensor>& batches, const std::function<void(const Tensor&)>& use, Where where);

}  // namespace stet::keras

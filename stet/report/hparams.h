// The messages of TensorBoard's table of trials. Not a public header.
#pragma once
#include <string>

#include "stet/report/summary_writer.h"

namespace stet::reporting {

/// Contents for the plugin "hparams": what a trial may have, what this one has, and that it has ended.
std::string hparams_experiment(const HParams& values, const HParamsOptions& options);
std::string hparams_start(const HParams& values, const HParamsOptions& options);
std::string hparams_end();

}  // namespace stet::reporting

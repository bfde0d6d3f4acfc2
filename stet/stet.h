// The whole of stet.
#pragma once
#include "stet/base/dim.h"
#include "stet/base/dtype.h"
#include "stet/base/error.h"
#include "stet/base/shape.h"
#include "stet/core/dim_host.h"
#include "stet/core/in.h"
#include "stet/core/tape.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/data/idx.h"
#include "stet/ops/ops.h"
#include "stet/runtime/parallel.h"

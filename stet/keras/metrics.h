// All metrics.
#pragma once
#include "stet/keras/metric.h"
#include "stet/keras/metrics_accuracy.h"
#include "stet/keras/metrics_confusion.h"
#include "stet/keras/metrics_f_score.h"
#include "stet/keras/metrics_iou.h"
#include "stet/keras/metrics_probabilistic.h"
#include "stet/keras/metrics_reduction.h"
#include "stet/keras/metrics_regression.h"

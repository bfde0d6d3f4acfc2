// All losses. Functions give one number per sample; Loss objects reduce them.
#pragma once
#include "stet/keras/loss.h"
#include "stet/keras/losses_hinge.h"
#include "stet/keras/losses_probabilistic.h"
#include "stet/keras/losses_regression.h"
#include "stet/keras/losses_similarity.h"

// SPDX-License-Identifier: Apache-2.0
// The attributes of the detection heads, read: for records and kernels.
#pragma once

#include "ops/op.h"
#include "semantics/detections.h"

namespace anymps {

// Of multiclass_nms or matrix_nms; boxes [images, count, 4], scores [images, classes, count],
// dense.
Detector detector_of(const Attrs& attrs, const Shape& boxes, const Shape& scores,
                     const float* box_data, const float* score_data);
// The detections of an image, as the op makes them.
std::vector<Detection> detect(const Attrs& attrs, const Detector& detector, int64_t image);
YoloRule yolo_rule(const Attrs& attrs);

}  // namespace anymps

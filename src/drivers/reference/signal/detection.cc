// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression.
#include "drivers/reference/dense.h"
#include "semantics/box_selection.h"

namespace anymps {

namespace {

std::vector<float> floats(const View& view) {
  const std::vector<double> values = read_dense<double>(view);
  return {values.begin(), values.end()};
}

}  // namespace

REFERENCE(non_max_suppression) {
  const std::vector<float> boxes = floats(args.in[0]), scores = floats(args.in[1]);
  const View& y = args.out[0];
  BoxSelection selection{boxes.data(), scores.data(), args.in[0].extent(0), args.in[1].extent(1),
                         args.in[0].extent(1)};
  selection.centres = args.attrs.b("center_point_box");
  const auto given = [&](size_t i) { return args.has(i) && args.in[i].count() > 0; };
  if (given(2)) selection.most = load_int(args.in[2], 0);
  if (given(3)) selection.iou_threshold = static_cast<float>(load_double(args.in[3], 0));
  selection.has_score_threshold = given(4);
  if (given(4)) selection.score_threshold = static_cast<float>(load_double(args.in[4], 0));
  const auto selected = selection.run();
  require(std::ssize(selected) == y.extent(0),
          "[non_max_suppression] {} boxes are kept, but the output has room for {}",
          selected.size(), y.extent(0));
  for (size_t i = 0; i < selected.size(); ++i)
    for (size_t k = 0; k < 3; ++k)
      y.at<int64_t>({static_cast<int64_t>(i), static_cast<int64_t>(k)}) = selected[i][k];
}

REFERENCE(suppress_boxes) {
  const View& y = args.out[0];
  const int64_t batches = y.extent(0), count = y.extent(1), classes = y.extent(2);
  const std::vector<float> corners = floats(args.in[0]), scores = floats(args.in[1]);
  const auto iou = static_cast<float>(args.attrs.f("iou_threshold"));
  const auto least = static_cast<float>(args.attrs.f("score_threshold"));
  const bool per_class = args.attrs.b("per_class");
  const std::string& mode = args.attrs.s("coordinates");
  const bool centres = mode.starts_with("centers"), width_first = mode.ends_with("width_first");
  for (int64_t n = 0; n < batches; ++n) {
    struct Candidate {
      int64_t box, column, category;
      float score;
    };
    std::vector<Candidate> candidates, kept;
    std::vector<Box> boxes;
    for (int64_t i = 0; i < count; ++i) {
      const float* b = corners.data() + (n * count + i) * 4;
      boxes.push_back(!centres
                          ? (width_first ? Box::corners(std::array{b[1], b[0], b[3], b[2]}.data())
                                         : Box::corners(b))
                      : width_first ? Box::centre(b[1], b[0], b[3], b[2])
                                    : Box::centre(b[0], b[1], b[2], b[3]));
      for (int64_t c = 0; c < classes; ++c) {
        const int64_t category =
            args.has(2) ? load_int(args.in[2], args.in[2].offset(std::array{n, i})) : c;
        const float score = scores[(n * count + i) * classes + c];
        y.at<float>({n, i, c}) = 0;
        if (score > least) candidates.push_back({i, c, category, score});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    for (const Candidate& candidate : candidates) {
      const bool lost = std::any_of(kept.begin(), kept.end(), [&](const Candidate& better) {
        if (better.box == candidate.box) return !per_class;
        return (!per_class || better.category == candidate.category) &&
               overlap(boxes[candidate.box], boxes[better.box], iou);
      });
      if (lost) continue;
      kept.push_back(candidate);
      y.at<float>({n, candidate.box, candidate.column}) = candidate.score;
    }
  }
}

}  // namespace anymps

// SPDX-License-Identifier: Apache-2.0
#include "graph/drawing.h"

#include <algorithm>

#include "base/error.h"

namespace anymps {

namespace {

constexpr double kGapX = 22, kGapY = 48, kBend = 10;  // between boxes, layers; room for a bend
constexpr int kOrderSweeps = 10, kPlaceSweeps = 16;
// Lines that pass by many layers may be as many as the square of the boxes. Nobody can look at a
// picture of more pieces than this, and placing them would use up all memory before all patience.
constexpr size_t kMostVertices = 200'000;

// A box, or a place where a net passes through a layer.
struct Vertex {
  size_t layer = 0;
  double width = 0, x = 0, order = 0;
  bool bend = false;
  std::vector<size_t> up, down;
};

class Placement {
 public:
  explicit Placement(Drawing& drawing) : drawing_(drawing), boxes_(drawing.boxes.size()) {}

  void run() {
    choose_layers();
    check_size();
    add_bends();
    order_layers();
    place_across();
    place_down();
    write();
  }

 private:
  struct Link {
    size_t net, from, to;
  };

  void choose_layers() {
    vertices_.resize(boxes_);
    for (size_t i = 0; i < boxes_; ++i) vertices_[i].width = drawing_.boxes[i].width;
    std::vector<std::vector<size_t>> targets(boxes_);
    std::vector<bool> source(boxes_, true);
    for (const Drawing::Net& net : drawing_.nets)
      for (size_t to : net.to) {
        targets[net.from].push_back(to);
        source[to] = false;
      }
    for (size_t i = 0; i < boxes_; ++i)
      for (size_t to : targets[i])
        vertices_[to].layer = std::max(vertices_[to].layer, vertices_[i].layer + 1);
    // What nothing feeds stands right above its first user.
    for (size_t i = 0; i < boxes_; ++i) {
      if (!source[i] || targets[i].empty()) continue;
      size_t first = vertices_[targets[i][0]].layer;
      for (size_t to : targets[i]) first = std::min(first, vertices_[to].layer);
      vertices_[i].layer = first - 1;
    }
  }

  void check_size() const {
    size_t count = boxes_;
    for (const Drawing::Net& net : drawing_.nets) {
      size_t last = vertices_[net.from].layer + 1;
      for (size_t to : net.to) last = std::max(last, vertices_[to].layer);
      count += last - vertices_[net.from].layer - 1;
    }
    if (count > kMostVertices)
      fail(
          Code::kUnsupported,
          "[print] a picture of {} pieces is too large, {} are the most: text and json have no end",
          count, kMostVertices);
  }

  void add_bends() {
    for (size_t n = 0; n < drawing_.nets.size(); ++n) {
      const Drawing::Net& net = drawing_.nets[n];
      std::vector<size_t> targets = net.to;
      std::sort(targets.begin(), targets.end(), [&](size_t a, size_t b) {
        return std::pair(vertices_[a].layer, a) < std::pair(vertices_[b].layer, b);
      });
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      size_t at = net.from;
      for (size_t to : targets) {
        while (vertices_[at].layer + 1 < vertices_[to].layer) {
          Vertex bend;
          bend.layer = vertices_[at].layer + 1;
          bend.width = kBend;
          bend.bend = true;
          vertices_.push_back(bend);
          link(n, at, vertices_.size() - 1);
          at = vertices_.size() - 1;
        }
        link(n, at, to);
      }
    }
    size_t layers = 0;
    for (const Vertex& vertex : vertices_) layers = std::max(layers, vertex.layer + 1);
    layers_.resize(layers);
    for (size_t i = 0; i < vertices_.size(); ++i) layers_[vertices_[i].layer].push_back(i);
  }

  void link(size_t net, size_t from, size_t to) {
    links_.push_back({net, from, to});
    vertices_[from].down.push_back(to);
    vertices_[to].up.push_back(from);
  }

  // Neighbours' mean; the vertex's own value when it has none. Bends count for little where it is
  // about places: the boxes stand in line, and what skips them goes round.
  double mean(const std::vector<size_t>& neighbours, double Vertex::*field, double own,
              double bend_weight = 1) const {
    double sum = 0, weight = 0;
    for (size_t i : neighbours) {
      const double share = vertices_[i].bend ? bend_weight : 1;
      sum += share * vertices_[i].*field;
      weight += share;
    }
    return weight > 0 ? sum / weight : own;
  }

  void order_layers() {
    auto number = [&](std::vector<size_t>& layer) {
      for (size_t i = 0; i < layer.size(); ++i) vertices_[layer[i]].order = static_cast<double>(i);
    };
    for (auto& layer : layers_) number(layer);
    std::vector<double> wish(vertices_.size());
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t n = 0; n < layers_.size(); ++n) {
        auto& layer = layers_[down ? n : layers_.size() - 1 - n];
        for (size_t i : layer)
          wish[i] =
              mean(down ? vertices_[i].up : vertices_[i].down, &Vertex::order, vertices_[i].order);
        std::stable_sort(layer.begin(), layer.end(),
                         [&](size_t a, size_t b) { return wish[a] < wish[b]; });
        number(layer);
      }
    }
  }

  // Puts a layer's vertices as near to their wishes as their order and widths allow: neighbours
  // that would overlap move as one block to the mean of their wishes.
  void settle(const std::vector<size_t>& layer, const std::vector<double>& wish) {
    struct Block {
      double sum, weight;
      size_t first;
      double at() const { return sum / weight; }
    };
    std::vector<double> shift(layer.size(), 0);  // of each vertex, in a row packed tightly
    for (size_t i = 1; i < layer.size(); ++i)
      shift[i] =
          shift[i - 1] + kGapX + (vertices_[layer[i - 1]].width + vertices_[layer[i]].width) / 2;
    std::vector<Block> blocks;
    for (size_t i = 0; i < layer.size(); ++i) {
      const double weight = vertices_[layer[i]].bend ? 1 : 4;
      blocks.push_back({(wish[layer[i]] - shift[i]) * weight, weight, i});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].at() > blocks.back().at()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().sum += last.sum;
        blocks.back().weight += last.weight;
      }
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      const size_t end = b + 1 < blocks.size() ? blocks[b + 1].first : layer.size();
      for (size_t i = blocks[b].first; i < end; ++i)
        vertices_[layer[i]].x = blocks[b].at() + shift[i];
    }
  }

  void place_across() {
    std::vector<double> wish(vertices_.size(), 0);
    for (const auto& layer : layers_) settle(layer, wish);
    for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t n = 0; n < layers_.size(); ++n) {
        const auto& layer = layers_[down ? n : layers_.size() - 1 - n];
        for (size_t i : layer) {
          const Vertex& vertex = vertices_[i];
          const auto& near = down ? vertex.up : vertex.down;
          wish[i] = mean(near.empty() ? (down ? vertex.down : vertex.up) : near, &Vertex::x,
                         vertex.x, 0.1);
        }
        settle(layer, wish);
      }
    }
    if (vertices_.empty()) return;
    double left = vertices_[0].x, right = left;
    for (const Vertex& vertex : vertices_) {
      left = std::min(left, vertex.x - vertex.width / 2);
      right = std::max(right, vertex.x + vertex.width / 2);
    }
    for (Vertex& vertex : vertices_) vertex.x -= left;
    drawing_.width = right - left;
  }

  void place_down() {
    double y = 0;
    for (const auto& layer : layers_) {
      double height = 0;
      for (size_t i : layer)
        if (i < boxes_) height = std::max(height, drawing_.boxes[i].height);
      tops_.push_back(y);
      bottoms_.push_back(y + height);
      y += height + kGapY;
    }
    drawing_.height = layers_.empty() ? 0 : y - kGapY;
  }

  void write() {
    for (size_t i = 0; i < boxes_; ++i) {
      drawing_.boxes[i].x = vertices_[i].x;
      drawing_.boxes[i].y = tops_[vertices_[i].layer];
    }
    drawing_.segments.clear();
    for (const Link& link : links_) {
      const Vertex &from = vertices_[link.from], &to = vertices_[link.to];
      const double start =
          from.bend ? bottoms_[from.layer] : tops_[from.layer] + drawing_.boxes[link.from].height;
      // A bend's piece runs on to the bottom of its layer, beside the boxes there.
      drawing_.segments.push_back(
          {link.net, from.x, start, to.x, tops_[to.layer], !from.bend, !to.bend});
      if (to.bend)
        drawing_.segments.push_back(
            {link.net, to.x, tops_[to.layer], to.x, bottoms_[to.layer], false, false});
    }
  }

  Drawing& drawing_;
  size_t boxes_;
  std::vector<Vertex> vertices_;
  std::vector<std::vector<size_t>> layers_;
  std::vector<Link> links_;
  std::vector<double> tops_, bottoms_;
};

}  // namespace

void Drawing::place() { Placement(*this).run(); }

}  // namespace anymps

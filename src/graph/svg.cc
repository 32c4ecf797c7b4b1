// SPDX-License-Identifier: Apache-2.0
// The picture of a graph: what the boxes say, their colours, and the SVG itself. Where things go
// is computed in graph/drawing.cc.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "graph/drawing.h"
#include "graph/printer.h"

namespace anymps {

namespace {

constexpr double kMargin = 24, kLegend = 34;
constexpr size_t kNameChars = 34, kDetailChars = 44, kLabelChars = 40;

struct Card {
  std::string title, name, tip, colour;
  std::vector<std::string> details;
  bool round = false;  // an input or an output of the graph

  double height() const {
    return 24 + (name.empty() ? 0 : 13) + 12 * static_cast<double>(details.size());
  }
  double width() const {
    double widest = 8.0 * static_cast<double>(title.size());
    widest = std::max(widest, 5.8 * static_cast<double>(name.size()));
    for (const std::string& detail : details)
      widest = std::max(widest, 5.2 * static_cast<double>(detail.size()));
    return std::clamp(widest + 20, 70.0, 260.0);
  }
};

// By the file of the op's record: a family has too many kinds of ops for one colour.
std::string colour_of(const std::string& file) {
  static const std::map<std::string, std::string> kColours = {{"convolution", "#a8c7f0"},
                                                              {"matmul", "#c5b3ec"},
                                                              {"attention", "#e8b3dc"},
                                                              {"activation", "#f7c59f"},
                                                              {"normalization", "#b5dfb0"},
                                                              {"pooling", "#9fdcdc"},
                                                              {"arithmetic", "#f5e29a"},
                                                              {"reduction", "#8fd3bd"},
                                                              {"shape", "#d9dce1"},
                                                              {"slice", "#cfd6de"},
                                                              {"join", "#c3ccd8"},
                                                              {"gather", "#d8cfc0"},
                                                              {"creation", "#e6e0d4"},
                                                              {"comparison", "#f0d0b0"},
                                                              {"logic", "#e8c8b8"},
                                                              {"cast", "#ececdc"},
                                                              {"resize", "#b0e0f0"},
                                                              {"recurrent", "#f0b0b0"},
                                                              {"fused_elementwise", "#f2d675"}};
  if (auto it = kColours.find(file); it != kColours.end()) return it->second;
  unsigned hue = 0;
  for (char c : file) hue = (hue * 31 + static_cast<unsigned char>(c)) % 360;
  return fmt::format("hsl({}, 55%, 82%)", hue);
}

std::string type_text(const ValueType& type) {
  std::string text = type.dtype == DType::kF32 ? "" : std::string(name(type.dtype)) + " ";
  if (!type.ranked) return text + "?";
  if (type.shape.empty()) return text + "scalar";
  for (size_t i = 0; i < type.shape.size(); ++i)
    text += (i ? "×" : "") + shortened(type.shape[i].str(), 16);
  return shortened(text, kLabelChars);
}

Card card_of(const Node& node) {
  Card card;
  card.title = node.op->name;
  card.name = node.name == node.op->name ? "" : shortened(node.name, kNameChars);
  card.colour = colour_of(node.op->file);
  card.tip = to_text(node);
  std::string attrs;
  for (const NamedAttr& attr : node.attrs.named()) {
    const AttrSpec& spec = node.op->attrs[node.op->attr_index(attr.name)];
    attrs += (attrs.empty() ? "" : " ") + attr.name + "=" +
             (spec.kind == AttrKind::kFloat ? fmt::format("{:.4g}", std::get<double>(attr.value))
                                            : attr_text(*node.op, attr));
  }
  if (!attrs.empty()) card.details.push_back(shortened(attrs, kDetailChars));
  std::string constants;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* value = node.inputs[i];
    if (!value || !value->is_constant()) continue;
    const InputSpec& spec = node.op->inputs[std::min(i, node.op->inputs.size() - 1)];
    constants += (constants.empty() ? "" : ", ") + spec.name + " " + type_text(value->type);
  }
  if (!constants.empty()) card.details.push_back(shortened(constants, kDetailChars));
  return card;
}

Card end_card(const char* title, const Value& value) {
  Card card;
  card.title = title;
  card.name = shortened(value.name, kNameChars);
  card.tip = fmt::format("%{}: {}", value.name, to_string(value.type));
  card.colour = "#ffffff";
  card.round = true;
  return card;
}

std::string text_line(double x, double y, const char* css, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, css,
                     xml_text(text));
}

void draw(const Card& card, const Drawing::Box& box, std::string& svg) {
  svg += fmt::format("<g><title>{}</title>\n", xml_text(card.tip));
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{}\" fill=\"{}\" "
      "stroke=\"#5b6470\"/>\n",
      box.x - box.width / 2, box.y, box.width, box.height, card.round ? 12 : 4, card.colour);
  double y = box.y + 16;
  svg += text_line(box.x, y, "op", card.title);
  if (!card.name.empty()) svg += text_line(box.x, y += 13, "name", card.name);
  for (const std::string& detail : card.details) svg += text_line(box.x, y += 12, "detail", detail);
  svg += "</g>\n";
}

// The files of the ops that occur, each with its colour; returns its width.
double draw_legend(const Graph& graph, std::string& svg) {
  std::set<std::string> files;
  for (const auto& node : graph.nodes()) files.insert(node->op->file);
  double x = kMargin;
  for (const std::string& file : files) {
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"14\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\" "
        "stroke=\"#5b6470\"/>\n",
        x, colour_of(file));
    svg += text_line(x + 17, 24, "legend", file);
    x += 34 + 6.2 * static_cast<double>(file.size());
  }
  return x;
}

}  // namespace

std::string to_svg(const Graph& graph) {
  Drawing drawing;
  std::vector<Card> cards;
  std::unordered_map<const Value*, size_t> nets;
  std::vector<const Value*> values;
  auto add_card = [&](Card card) {
    drawing.boxes.push_back({card.width(), card.height()});
    cards.push_back(std::move(card));
    return cards.size() - 1;
  };
  auto start = [&](const Value* value, size_t box) {
    nets[value] = drawing.nets.size();
    drawing.nets.push_back({box, {}});
    values.push_back(value);
  };
  auto reach = [&](const Value* value, size_t box) {
    if (!value || value->is_constant()) return;
    drawing.nets[nets.at(value)].to.push_back(box);
  };
  for (const Value* value : graph.inputs()) start(value, add_card(end_card("input", *value)));
  for (const auto& node : graph.nodes()) {
    const size_t box = add_card(card_of(*node));
    for (const Value* value : node->inputs) reach(value, box);
    for (const Value* value : node->outputs) start(value, box);
  }
  for (const Value* value : graph.outputs()) reach(value, add_card(end_card("output", *value)));
  drawing.place();

  std::string body, labels;
  const double legend = draw_legend(graph, body);
  body += fmt::format("<g transform=\"translate({}, {})\">\n", kMargin, kMargin + kLegend);
  std::vector<bool> labelled(values.size(), false);
  for (const Drawing::Segment& piece : drawing.segments) {
    const double middle = (piece.y0 + piece.y1) / 2;
    body += fmt::format(
        "<path d=\"M{0:.1f},{1:.1f} C{0:.1f},{2:.1f} {3:.1f},{2:.1f} {3:.1f},{4:.1f}\"{5}/>\n",
        piece.x0, piece.y0, middle, piece.x1, piece.y1,
        piece.last ? " marker-end=\"url(#arrow)\"" : "");
    if (!piece.first || labelled[piece.net]) continue;
    labelled[piece.net] = true;
    // The values of a node with several outputs are written one below the other.
    const double row = static_cast<double>(values[piece.net]->index);
    labels += text_line(piece.x0 + 6, piece.y0 + 13 + 11 * std::min(row, 2.0), "shape",
                        type_text(values[piece.net]->type));
  }
  for (size_t i = 0; i < cards.size(); ++i) draw(cards[i], drawing.boxes[i], body);
  body += labels + "</g>\n";

  const double width = std::max(drawing.width + 2 * kMargin + 60, legend + kMargin);
  const double height = drawing.height + 2 * kMargin + kLegend;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n",
             width, height, xml_text(graph.name.empty() ? "graph" : graph.name)) +
         "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
         "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" style=\"fill:#7a8594;"
         "stroke:none\"/></marker></defs>\n"
         "<style>text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;text-anchor:middle;"
         "fill:#1c2430}.op{font-size:13px;font-weight:bold}.name{font-size:10px;fill:#3d4754}"
         ".detail{font-size:9px;fill:#55606e}.shape{font-size:9.5px;fill:#2f5d8a;"
         "text-anchor:start;paint-order:stroke;stroke:#fff;stroke-width:3px}"
         ".legend{font-size:11px;text-anchor:start}path{fill:none;stroke:#7a8594;"
         "stroke-width:1.3}</style>\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
         body + "</svg>\n";
}

}  // namespace anymps

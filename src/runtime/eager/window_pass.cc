// SPDX-License-Identifier: Apache-2.0
// A window of calls as one pass: its program is made once for each structure of calls, kept like
// the kernels of single calls, and found by the window's key.
#include <algorithm>

#include "ops/elementwise/program_builder.h"
#include "runtime/eager/request.h"
#include "runtime/eager/temporaries.h"
#include "runtime/eager/use.h"
#include "runtime/eager/window.h"

namespace anymps {

namespace {

const Op& fused() {
  static const Op& op = get_op("fused_elementwise");
  return op;
}

// The inputs of the program are the places that are read, then the parameters; its outputs are the
// places that are stored.
void write_program(const CallWindow& window, ElementwiseProgramBuilder& program) {
  const std::span<const CallWindow::Place> places = window.places();
  std::vector<ProgramArg> values(places.size());  // of each place, as the calls go on
  size_t inputs = 0;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].read) values[i] = ProgramArg::input(inputs++);
  for (const CallWindow::Call& call : window.calls()) {
    const KernelRequest& request = call.entry->call.request;
    if (fills(*request.op)) {
      const size_t last = request.op->inputs.size() - 1;
      const char* name = request.op->inputs[last].name.c_str();
      const ProgramArg value =
          request.has(last) ? values[call.inputs[last]]
                            : ProgramArg::immediate(request.attrs.f(name), request.out().dtype);
      values[call.output] = program.call(get_op("identity"), {value});
      continue;
    }
    std::vector<ProgramArg> args;
    for (size_t i = 0; i < request.inputs.size(); ++i)
      args.push_back(request.has(i) ? values[call.inputs[i]] : ProgramArg::absent());
    const std::vector<std::string> none;
    const auto& parameters = call.entry->fixed ? none : request.parameters;
    const NamedAttrs named = request.attrs.named();
    std::vector<ProgramAttr> attrs;
    for (const NamedAttr& attr : named)
      if (std::find(parameters.begin(), parameters.end(), attr.name) == parameters.end())
        attrs.emplace_back(attr);
    for (size_t i = 0; i < parameters.size(); ++i)
      attrs.emplace_back(parameters[i], ProgramArg::parameter(inputs, call.parameters + i));
    values[call.output] = program.call(*request.op, args, attrs);
  }
  for (size_t i = 0; i < places.size(); ++i)
    if (CallWindow::stored(places[i])) program.output(values[i]);
}

// Where the pass writes over what it reads.
bool takes_place(const CallWindow& window, const Kernel& kernel) {
  size_t input = 0, output = 0;
  for (const CallWindow::Place& place : window.places()) {
    if (place.read && CallWindow::stored(place) && !kernel.in_place(input, output)) return false;
    input += place.read;
    output += CallWindow::stored(place);
  }
  return true;
}

}  // namespace

std::shared_ptr<EagerEntry> Eager::prepare(const CallWindow& window, Queue& queue) {
  ElementwiseProgramBuilder program;
  std::vector<TensorView> inputs, outputs;
  for (const CallWindow::Place& place : window.places()) {
    const TensorView view = view_of(*place.desc, place.data);
    if (place.read) inputs.push_back(view);
    if (CallWindow::stored(place)) outputs.push_back(view);
  }
  const TensorDesc numbers(DType::kF64, Shape{std::ssize(window.parameters())});
  if (!window.parameters().empty()) inputs.push_back(view_of(numbers, nullptr));
  try {
    write_program(window, program);
    const Shape& shape = window.calls()[0].entry->written[0].shape;
    EagerAttr attrs[] = {{"program", AttrKind::kInts}, {"shape", AttrKind::kInts}};
    attrs[0].ints = program.words();
    attrs[1].ints = shape;
    const EagerKey none{};
    auto entry = prepare({fused(), none, nullptr, attrs, inputs, outputs, queue}, false, nullptr);
    const KernelChoice& choice = *entry->call.choice;
    entry->apart = choice.is_fallback || entry->copies || !takes_place(window, *choice.kernel);
    return entry;
  } catch (const Error&) {  // what no program holds
    auto entry = std::make_shared<EagerEntry>(PreparedCall(device_, fused(), Attrs(), ""));
    entry->apart = true;
    return entry;
  }
}

Eager::Joined Eager::join(CallWindow& window, const BoundOp& op, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs, Queue& queue,
                          std::span<const double> parameters) {
  const auto add = [&](const std::shared_ptr<EagerEntry>& entry) {
    const ByteRange& reach = entry->output_reach[0];
    if (reach.begin == reach.end) return Joined::kYes;  // no elements, nothing to do
    if (window.add(entry, op, inputs, outputs[0], parameters)) return Joined::kYes;
    return window.empty() ? Joined::kNever : Joined::kNotNow;
  };
  if (const auto* entry = window.expected(op, inputs, outputs);
      entry && parameters.size() == op.parameters.size())
    return add(*entry);
  Use use;
  look_up(use, {op.op, op.key, &op, {}, inputs, outputs, queue, parameters});
  for (size_t i = 0; i < outputs.size(); ++i) check_output(*use, i, outputs[i]);
  return use->joins ? add(use.shared()) : Joined::kNever;
}

void Eager::run(CallWindow& window, Queue& queue) {
  window.drop_unseen();
  if (!window.stores()) return;
  if (window.size() == 1) return run_apart(window, queue);
  const EagerKey& key = window.finish_key();
  Use use;
  find(use, key);
  if (!use) {
    auto made = prepare(window, queue);
    made->key = key;
    use.hold(entries_.insert(key, std::move(made)));
  }
  if (use->apart) return run_apart(window, queue);
  SmallVector<void*, CallWindow::kMostPlaces + 1> in, out;
  for (const CallWindow::Place& place : window.places()) {
    if (place.read) in.push_back(place.data);
    if (CallWindow::stored(place)) out.push_back(place.data);
  }
  in.push_back(const_cast<double*>(window.parameters().data()));
  Temporaries temporaries(device_.allocator());
  const size_t scratch = use->call.choice->kernel->scratch_bytes();
  run_kernel(*use, {in.data(), out.data(), scratch ? temporaries.take(scratch) : nullptr, &queue,
                    nullptr, nullptr});
}

void Eager::run_apart(const CallWindow& window, Queue& queue) {
  const std::span<const CallWindow::Place> places = window.places();
  Temporaries temporaries(device_.allocator());
  std::vector<TensorView> views;
  for (const CallWindow::Place& place : places) views.push_back(view_of(*place.desc, place.data));
  std::vector<bool> moved(places.size(), false);
  for (const CallWindow::Call& call : window.calls()) {
    const KernelRequest& request = call.entry->call.request;
    SmallVector<TensorView, CallWindow::kMostInputs> inputs;
    for (size_t i = 0; i < request.inputs.size(); ++i)
      inputs.push_back(request.has(i) ? views[call.inputs[i]] : TensorView());
    // What nobody can see is written elsewhere: its memory may be somebody else's by now.
    const size_t to = call.output;
    if (places[to].dropped && !moved[to]) {
      views[to] = temporaries.like(*places[to].desc);
      moved[to] = true;
    }
    const size_t numbers = call.entry->fixed ? 0 : request.parameters.size();
    run(*call.entry, {*request.op,
                      call.entry->key,
                      nullptr,
                      {},
                      inputs,
                      {&views[to], 1},
                      queue,
                      window.parameters().subspan(call.parameters, numbers)});
  }
}

}  // namespace anymps

// SPDX-License-Identifier: Apache-2.0
#include "kernels/op.h"

#include <ATen/ops/_linalg_check_errors.h>
#include "engine.h"
#include "kernels/call.h"
#include "kernels/fallback.h"
#include "kernels/given_results.h"
#include "table/rows.h"

namespace anymps::aten {

namespace {

using torch::jit::Stack;

// A backend that nobody has: it has the kernels that PyTorch makes for all backends.
constexpr c10::DispatchKey kOfAllBackends = c10::DispatchKey::VE;

// While PyTorch's own code makes results, whose types and memory it knows.
thread_local bool results_are_made = false;

class MakingResults {
 public:
  MakingResults() : before_(std::exchange(results_are_made, true)) {}
  ~MakingResults() { results_are_made = before_; }
  MakingResults(const MakingResults&) = delete;
  MakingResults& operator=(const MakingResults&) = delete;

 private:
  const bool before_;
};

bool define_once() {
  static const bool done = [] {
    lowering::define(definitions());
    return true;
  }();
  return done;
}

using Given = c10::ArrayRef<c10::IValue>;

// A call for each place of the lists: results are written to their tensors.
void run_each(const RowOp::Ready& op, Given arguments) {
  Stack at_place(arguments.begin(), arguments.end());
  const size_t places = arguments[op.signature.lists.front()].toListRef().size();
  for (size_t place = 0; place < places; ++place) {
    for (const size_t i : op.signature.lists) {
      const Given list = arguments[i].toListRef();
      at_place[i] = list.empty() ? c10::IValue() : list.at(place);
    }
    Call(op.signature, op.kernel, at_place).run();
  }
}

// ANYMPS_CHECK has found a number that is wrong: of which op?
[[noreturn]] void raise(const lowering::EngineError& error, const RowOp& row) {
  if (error.status == AMPS_MISMATCH)
    aten::raise({error.status, "[" + row.name() + "] " + error.what()});
  aten::raise(error);
}

void check_info(const RowOp::Ready& op, const std::string& op_name, Given arguments) {
  if (!arguments[op.signature.check_errors].toBool()) return;
  std::string name = op_name.substr(0, op_name.find('.'));
  name.replace(name.find('_'), 1, ".");
  at::_linalg_check_errors(arguments[op.signature.info].toTensor(), name,
                           arguments[0].toTensor().dim() == 2);
}

}  // namespace

RowOp::Ready::Ready(const c10::FunctionSchema& schema, const TableRow& table_row,
                    const std::string& name)
    : defined(define_once()),
      signature(schema, table_row),
      row{name.c_str(), signature.arguments.c_str(), table_row.body},
      kernel(row) {}

void Op::operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  std::optional<GivenResults> given;
  try {
    if (row_->refused())
      throw lowering::EngineError(AMPS_UNSUPPORTED,
                                  "[" + row_->name() + "] has no kernel on a Mac");
    const RowOp::Ready& op = row_->ready(handle.schema());
    const Given arguments = torch::jit::last(*stack, op.signature.slots.size());
    if (op.signature.each) {
      run_each(op, arguments);
      return torch::jit::drop(*stack, op.signature.slots.size());
    }
    if (op.signature.takes_out && !results_are_made)
      given.emplace(handle, op.signature, row_->structured(), arguments);
    Call call(op.signature, op.kernel, arguments);
    call.run(given ? &*given : nullptr);
    if (op.signature.checked) check_info(op, row_->name(), arguments);
    call.replace_arguments(*stack);
  } catch (const lowering::EngineError& error) {
    if (given) given->ask_pytorch();
    if (unsupported(error) && fallback_enabled()) return fall_back(handle, stack);
    raise(error, *row_);
  }
}

// An error comes again with the stack, where there may be another way.
bool Op::run_at_once(const c10::OperatorHandle& handle, Given arguments, at::Tensor& made) {
  if (row_->refused()) return false;
  try {
    const RowOp::Ready& op = row_->ready(handle.schema());
    if (op.signature.each || op.signature.checked || op.signature.state || op.signature.flag)
      return false;
    Call call(op.signature, op.kernel, arguments);
    call.run();
    made = call.take_made();
    return true;
  } catch (const lowering::EngineError&) {
    return false;
  }
}

const Signature& DerivedOp::signature(const c10::OperatorHandle& handle) {
  return signature_.get(handle.schema(), out_->row());
}

void DerivedOp::operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  try {
    const Signature& of_it = signature(handle);
    const lowering::Kernel& kernel = out_->ready(out_handle_.schema()).kernel;
    Call call(of_it, kernel, torch::jit::last(*stack, of_it.slots.size()));
    if (!out_->refused() && call.run_as_before()) return call.replace_arguments(*stack);
  } catch (const lowering::EngineError& error) {
    raise(error, *out_);
  }
  call_and_remember(handle, stack);
}

bool DerivedOp::run_at_once(const c10::OperatorHandle& handle, Given arguments, at::Tensor& made) {
  try {
    Call call(signature(handle), out_->ready(out_handle_.schema()).kernel, arguments);
    if (out_->refused() || !call.run_as_before()) return false;
    made = call.take_made();
    return true;
  } catch (const lowering::EngineError& error) {
    raise(error, *out_);
  }
}

void DerivedOp::call_and_remember(const c10::OperatorHandle& handle, Stack* stack) {
  const Signature& of_it = signature(handle);
  const c10::ArrayRef<c10::IValue> given = torch::jit::last(*stack, of_it.slots.size());
  Stack arguments(given.begin(), given.end());
  {
    const MakingResults making;
    handle.redispatchBoxed(c10::DispatchKeySet(kOfAllBackends), stack);
  }
  const c10::ArrayRef<c10::IValue> results = torch::jit::last(*stack, of_it.returns);
  const RowOp::Ready& out = out_->ready(out_handle_.schema());
  Stack with_results = arguments;
  with_results.insert(with_results.end(), results.begin(), results.end());
  try {
    const Call made(out.signature, out.kernel, with_results);
    Call(of_it, out.kernel, arguments).remember(made, results);
  } catch (const std::exception&) {
    // It was computed; another call will be computed in the same way.
  }
}

}  // namespace anymps::aten

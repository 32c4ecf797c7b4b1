#pragma once
namespace amps { template <typename D> class OpMethods {}; }

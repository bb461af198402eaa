// Prints the counters of a profiled computation.

#ifndef TFCOMPILE_HLO_PROFILE_PRINTER_H_
#define TFCOMPILE_HLO_PROFILE_PRINTER_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tfcompile/program_shape.h"

namespace xla {
inline namespace tfcompile_v1 {

namespace profile_internal {

// Formats a number with two decimal places and a unit.
inline ::std::string Number(double value, const char* unit) {
  char text[64];
  ::std::snprintf(text, sizeof(text), "%.2f%s", value, unit);
  return text;
}

// Formats a rate with a metric prefix and a unit, such as 1.50G.
inline ::std::string Rate(double per_second, const char* unit) {
  const char* prefixes[] = {"", "K", "M", "G", "T", "P"};
  int prefix = 0;
  for (; prefix < 5 && per_second >= 1000; ++prefix) per_second /= 1000;
  return Number(per_second, prefixes[prefix]) + unit;
}

inline ::std::string Bytes(double bytes, const char* per) {
  const char* prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int prefix = 0;
  for (; prefix < 4 && bytes >= 1024; ++prefix) bytes /= 1024;
  return Number(bytes, prefixes[prefix]) + per;
}

inline void Line(::std::string* out, const HloInstructionInfo& info, ::std::int64_t cycles, const ::std::string& share,
                 double clock_rate_ghz, ::std::int64_t runs_flops, ::std::int64_t runs_transcendentals,
                 ::std::int64_t runs_bytes) {
  const double seconds = static_cast<double>(cycles) / (clock_rate_ghz * 1e9);
  const bool took_time = cycles > 0;
  const ::std::string flops = took_time && runs_flops > 0 ? Rate(static_cast<double>(runs_flops) / seconds, "FLOP/s") : "";
  const ::std::string transcendentals =
      took_time && runs_transcendentals > 0 ? Rate(static_cast<double>(runs_transcendentals) / seconds, "TROP/s") : "";
  const ::std::string bytes = took_time ? Bytes(static_cast<double>(runs_bytes) / seconds, "/s") : "";
  const ::std::string per_cycle =
      took_time ? Bytes(static_cast<double>(runs_bytes) / static_cast<double>(cycles), "/cycle") : "";
  char text[256];
  ::std::snprintf(text, sizeof(text), "%15lld cycles (%s) :: %12.1f usec :: %18s :: %18s :: %14s :: %16s :: ",
                  static_cast<long long>(cycles), share.c_str(), seconds * 1e6, flops.c_str(), transcendentals.c_str(),
                  bytes.c_str(), per_cycle.c_str());
  *out += text;
  *out += info.long_name;
  *out += "\n";
}

}  // namespace profile_internal

// Returns the counters as a table: a line for the whole computation, then one line per instruction,
// longest first. Counters are sums over `runs` runs. `clock_rate_ghz` is the rate of the counters'
// clock: on x86-64 the nominal rate, on AArch64 and RISC-V the rate of the timer.
inline ::std::string PrintHloProfile(const HloProfilePrinterData& data, const ::std::int64_t* counters,
                                     double clock_rate_ghz, ::std::int64_t runs = 1) {
  ::std::vector<::std::int64_t> order;
  HloInstructionInfo total = data.instruction_info(0);
  total.flops = total.transcendentals = total.bytes_accessed = 0;
  for (::std::int64_t k = 1; k < data.profile_counters_size(); ++k) {
    order.push_back(k);
    if (counters[k] == 0) continue;
    total.flops += data.instruction_info(k).flops;
    total.transcendentals += data.instruction_info(k).transcendentals;
    total.bytes_accessed += data.instruction_info(k).bytes_accessed;
  }
  ::std::stable_sort(order.begin(), order.end(),
                     [counters](::std::int64_t a, ::std::int64_t b) { return counters[a] > counters[b]; });
  char head[96];
  ::std::snprintf(head, sizeof(head), "Execution profile for computation: (%.3g us @ f_nom)\n",
                  static_cast<double>(counters[0]) / (clock_rate_ghz * 1e3));
  ::std::string out = head;
  const double whole = counters[0] > 0 ? static_cast<double>(counters[0]) : 1;
  const auto line = [&](const HloInstructionInfo& info, ::std::int64_t cycles, const ::std::string& share) {
    profile_internal::Line(&out, info, cycles, share, clock_rate_ghz, info.flops * runs, info.transcendentals * runs,
                           info.bytes_accessed * runs);
  };
  line(total, counters[0], "100.% 100\xce\xa3");
  ::std::int64_t sum = 0;
  for (const ::std::int64_t k : order) {
    sum += counters[k];
    char share[32];
    ::std::snprintf(share, sizeof(share), "%5.2f%% %2.0f\xce\xa3", 100 * static_cast<double>(counters[k]) / whole,
                    100 * static_cast<double>(sum) / whole);
    line(data.instruction_info(k), counters[k], share);
  }
  return out;
}

}  // namespace tfcompile_v1
}  // namespace xla

#endif  // TFCOMPILE_HLO_PROFILE_PRINTER_H_

// Constants in files: set for one object and for all, replaced between runs and while other threads
// run.

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "far.h"
#include "scale.h"

namespace {

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::vector<unsigned char> Slurp(const char* path) {
  std::FILE* const file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  std::vector<unsigned char> bytes(4096);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

void Nothing() {
  Scale scale;
  CHECK(!scale.Run() && Contains(scale.error_msg(), "LoadConstants"));
  CHECK(scale.constants() == nullptr);
}

void OneObject() {
  Scale scale;
  scale.arg_x(3) = 2;
  CHECK(scale.LoadConstants("first.weights") && scale.error_msg().empty());
  CHECK(scale.Run() && scale.result_y(3) == 8);
  CHECK(scale.LoadConstants("second.weights") && scale.Run() && scale.result_y(3) == 80);
  // A file that does not fit changes nothing.
  for (const auto& invalid : {std::make_pair("missing.weights", "cannot load constants from 'missing.weights': "),
                            std::make_pair("other_layout.weights", "'other_layout.weights': the constants are for other code"),
                            std::make_pair("other_version.weights", "version"), std::make_pair("cut.weights", "truncated"),
                            std::make_pair("empty.weights", "empty"), std::make_pair(".", "not a regular file"),
                            std::make_pair("scale.h", "TFCCONST")}) {
    CHECK(!scale.LoadConstants(invalid.first));
    CHECK(Contains(scale.error_msg(), invalid.second));
    CHECK(scale.Run() && scale.result_y(3) == 80 && scale.error_msg().empty());
  }
  // The object uses the file, not its name.
  CHECK(std::rename("first.weights", "renamed.weights") == 0);
  CHECK(scale.LoadConstants("renamed.weights") && std::rename("renamed.weights", "first.weights") == 0);
  CHECK(scale.Run() && scale.result_y(3) == 8);
  // Another object has no constants yet.
  Scale other;
  CHECK(!other.Run());
  other = std::move(scale);
  CHECK(other.Run() && other.result_y(3) == 8);
}

void Memory() {
  Scale scale;
  scale.arg_x(3) = 2;
  const std::vector<unsigned char> file = Slurp("first.weights");
  // Any alignment is accepted.
  std::vector<unsigned char> room(file.size() + 65);
  for (std::size_t offset = 0; offset < 65; offset += 13) {
    for (std::size_t i = 0; i < file.size(); ++i) room[offset + i] = file[i];
    CHECK(scale.SetConstants(room.data() + offset, file.size()) && scale.Run() && scale.result_y(3) == 8);
  }
  CHECK(!scale.SetConstants(file.data(), file.size() - 1) && Contains(scale.error_msg(), "truncated"));
  CHECK(!scale.SetConstants(nullptr, 0) && !scale.error_msg().empty());
  CHECK(!scale.SetConstants(nullptr) && !scale.error_msg().empty());
  CHECK(scale.Run() && scale.error_msg().empty());
}

void Shared() {
  std::string error;
  const auto constants = tfcompile::Constants::Load("second.weights", &error);
  CHECK(constants != nullptr && constants->size() == 128);
  Scale one, two;
  CHECK(one.SetConstants(constants) && two.SetConstants(constants));
  CHECK(one.constants().get() == two.constants().get() && constants.use_count() == 3);
  one.arg_x(0) = two.arg_x(1) = 1;
  CHECK(one.Run() && two.Run() && one.result_y(0) == 10 && two.result_y(1) == 20);
}

void Defaults() {
  Scale before, own;
  before.arg_x(3) = own.arg_x(3) = 2;
  CHECK(own.LoadConstants("second.weights"));
  std::string error;
  CHECK(!Scale::LoadDefaultConstants("cut.weights", &error) && Contains(error, "truncated"));
  CHECK(!Scale::LoadDefaultConstants("missing.weights"));
  CHECK(!before.Run());
  CHECK(Scale::LoadDefaultConstants("first.weights", &error));
  CHECK(before.Run() && before.result_y(3) == 8);
  CHECK(own.Run() && own.result_y(3) == 80);
  own.UseDefaultConstants();
  CHECK(own.Run() && own.result_y(3) == 8);
  const std::vector<unsigned char> file = Slurp("second.weights");
  CHECK(Scale::SetDefaultConstants(file.data(), file.size()));
  Scale after;
  after.arg_x(3) = 2;
  CHECK(before.Run() && before.result_y(3) == 80 && after.Run() && after.result_y(3) == 80);
  const auto shared = tfcompile::Constants::Load("first.weights", &error);
  CHECK(Scale::SetDefaultConstants(shared) && !Scale::SetDefaultConstants(nullptr));
  CHECK(before.Run() && before.result_y(3) == 8 && before.constants() == shared);
}

// Each run uses one of the files entirely.
void SwapsWhileOthersRun() {
  CHECK(Scale::LoadDefaultConstants("first.weights"));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      Scale scale;
      for (int i = 0; i < 4; ++i) scale.arg_x_data()[i] = 1;
      while (!stop) {
        CHECK(scale.Run());
        const float factor = scale.result_y(0);
        CHECK(factor == 1 || factor == 10);
        for (int i = 0; i < 4; ++i) CHECK(scale.result_y_data()[i] == factor * static_cast<float>(i + 1));
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    CHECK(Scale::LoadDefaultConstants(round % 2 == 0 ? "second.weights" : "first.weights"));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

void FarAway() {
  Far far_away;
  far_away.arg0() = 1;
  CHECK(far_away.Run() && far_away.result0() == 1.25f);
}

}  // namespace

int main() {
  Nothing();
  OneObject();
  Memory();
  Shared();
  Defaults();
  SwapsWhileOthersRun();
  FarAway();
  return 0;
}

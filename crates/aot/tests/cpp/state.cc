// Saves variables to files and loads them into every kind of class. Also tests damaged files and
// files of other models.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "add.h"
#include "check.h"
#include "state_freestanding.h"
#include "tfcompile/state.h"
#include "train.h"

namespace {

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string Slurp(const char* path) {
  std::FILE* const file = std::fopen(path, "rb");
  CHECK(file != nullptr);
  std::string bytes(1 << 16, '\0');
  bytes.resize(std::fread(&bytes[0], 1, bytes.size(), file));
  std::fclose(file);
  return bytes;
}

void Spit(const char* path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path, "wb");
  CHECK(file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
}

unsigned char* Bytes(State& state, std::size_t variable) {
  return static_cast<unsigned char*>(state.arg_data(State::Variables()[variable].argument));
}

void FillWith(State& state, unsigned seed) {
  for (std::size_t i = 0; i < State::kNumVariables; ++i) {
    const bool is_bool = State::Variables()[i].type[0] == 'b';
    for (std::size_t k = 0; k < State::Variables()[i].size; ++k) {
      seed = seed * 1103515245u + 12345u;
      Bytes(state, i)[k] = static_cast<unsigned char>(is_bool ? (seed >> 16) & 1u : seed >> 16);
    }
  }
}

bool Equal(State& a, State& b) {
  for (std::size_t i = 0; i < State::kNumVariables; ++i) {
    if (std::memcmp(Bytes(a, i), Bytes(b, i), State::Variables()[i].size) != 0) return false;
  }
  return true;
}

State one, two, before;

// The drop-in class: training continues from the saved state.
void Training() {
  std::string error;
  ns::Train train, other;
  train.arg_step_size() = 0.5f;
  for (std::size_t i = 0; i < 3; ++i) train.var_layer_kernel_2(i) = static_cast<float>(i);
  float rates[3] = {1, 2, 3};
  train.set_var_layer_kernel_data(rates);
  CHECK(train.Run() && train.Run());
  CHECK(tfcompile::SaveVariables(train, "train.npz", &error) && error.empty());
  CHECK(tfcompile::LoadVariables(other, "train.npz", &error) && error.empty());
  other.arg_step_size() = 0.5f;
  CHECK(train.Run() && other.Run());
  for (std::size_t i = 0; i < 3; ++i) CHECK(train.var_layer_kernel_2(i) == other.var_layer_kernel_2(i));
  CHECK(train.var_layer_kernel_3() == other.var_layer_kernel_3() && other.var_layer_kernel(2) == 3);
  // A variable without memory can be neither saved nor loaded.
  ns::Train unset(ns::Train::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  CHECK(!tfcompile::SaveVariables(unset, "unset.npz", &error) && Contains(error, "'layer/kernel' has no memory"));
  CHECK(!tfcompile::LoadVariables(unset, "train.npz", &error) && Contains(error, "'layer/kernel': the variable has no memory"));
}

void Table() {
  const tfcompile::VariableInfo* const variables = ns::Train::Variables();
  CHECK(ns::Train::kNumVariables == 3);
  CHECK(std::string(variables[0].name) == "layer/kernel" && std::string(variables[0].type) == "f4");
  CHECK(variables[0].rank == 1 && variables[0].dims[0] == 3 && variables[0].size == 12 && variables[0].argument == 1);
  CHECK(!variables[0].readonly && variables[1].readonly);
  CHECK(std::string(variables[1].name) == "other" && std::string(variables[1].config_name) == "layer_kernel");
}

void AllTypes() {
  std::string error;
  FillWith(one, 1);
  FillWith(two, 2);
  CHECK(!Equal(one, two));
  CHECK(tfcompile::SaveVariables(one, "state.npz", &error));
  CHECK(tfcompile::SaveVariables(one, "again.npz", nullptr) && Slurp("state.npz") == Slurp("again.npz"));
  CHECK(tfcompile::LoadVariables(two, "state.npz", &error) && error.empty());
  CHECK(Equal(one, two));
}

// Tests that a changed byte or a truncation is an error or has no effect, and that an error changes
// nothing.
void Damage() {
  std::string error;
  const std::string good = Slurp("state.npz");
  FillWith(before, 3);
  for (std::size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    Spit("damaged.npz", bad);
    FillWith(two, 3);
    if (tfcompile::LoadVariables(two, "damaged.npz", &error)) {
      CHECK(Equal(one, two));
    } else {
      CHECK(Contains(error, "'damaged.npz'") && Equal(two, before));
    }
    if (at % 5 != 0) continue;
    Spit("damaged.npz", good.substr(0, at));
    CHECK(!tfcompile::LoadVariables(two, "damaged.npz", &error));
  }
}

// Loads a file written by tests/data/make_numpy.py.
void OfNumpy() {
  std::string error;
  ns::Train train;
  CHECK(tfcompile::LoadVariables(train, "numpy.npz", &error) && error.empty());
  CHECK(train.var_layer_kernel_2(0) == 1.5f && train.var_layer_kernel_2(1) == -2 && train.var_layer_kernel_2(2) == 3e-9f);
  CHECK(train.var_layer_kernel(1) == 5 && train.var_layer_kernel_3() == 7);
  CHECK(!tfcompile::LoadVariables(train, "numpy_compressed.npz", &error) && Contains(error, "numpy.savez"));
}

void Wrong() {
  std::string error;
  ns::Train train;
  train.var_layer_kernel_2(0) = 7;
  CHECK(!tfcompile::LoadVariables(train, "missing.npz", &error) && Contains(error, "'missing.npz': it cannot be opened"));
  CHECK(!tfcompile::LoadVariables(train, "state.npz", &error));
  CHECK(Contains(error, "it has no value for 'layer/kernel', 'other', 'layer:kernel'"));
  CHECK(tfcompile::LoadVariables(train, "state.npz", nullptr, tfcompile::Missing::kIsKept));
  CHECK(train.var_layer_kernel_2(0) == 7);
  CHECK(!tfcompile::SaveVariables(train, "no/such/folder.npz", &error) && Contains(error, "it cannot be opened"));
  CHECK(!tfcompile::LoadVariables(train, "state.cc", nullptr));
  // A class without variables has nothing to save.
  AddComp add;
  CHECK(tfcompile::SaveVariables(add, "none.npz", &error) && tfcompile::LoadVariables(add, "none.npz", &error));
  CHECK(!tfcompile::LoadVariables(train, "none.npz", &error));
  // Tests a different shape and a different type.
  std::string bytes = Slurp("train.npz");
  std::string other = bytes;
  other.replace(other.find("(3,)"), 4, "(4,)");
  Spit("other.npz", other);
  CHECK(!tfcompile::LoadVariables(train, "other.npz", &error) && Contains(error, "it has shape (4,), but the variable has (3,)"));
  other = bytes;
  other.replace(other.find("<f4"), 3, ">f4");
  Spit("other.npz", other);
  CHECK(!tfcompile::LoadVariables(train, "other.npz", &error) && Contains(error, "it has type '>f4', but the variable has '<f4'"));
}

}  // namespace

int main() {
  Training();
  Table();
  AllTypes();
  Damage();
  OfNumpy();
  Wrong();
  return 0;
}

// Runs a compiled network on images.
//
//   classify IMAGES PROBABILITIES
//
// Both files are arrays of 32-bit floats: images of the size of the network's only argument, and
// its only result for each of them.

#include <cstdio>
#include <fstream>
#include <memory>

#include "network.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: classify IMAGES PROBABILITIES"), 2;
  std::ifstream images(argv[1], std::ios::binary);
  std::ofstream probabilities(argv[2], std::ios::binary);
  const auto network = std::make_unique<Network>();
  const std::streamsize image = network->arg_size(0), result = network->result_size(0);
  while (images.read(static_cast<char*>(network->arg_data(0)), image)) {
    if (!network->Run()) return std::puts(network->error_msg().c_str()), 1;
    probabilities.write(static_cast<const char*>(network->result_data(0)), result);
  }
  return images.gcount() != 0 || !probabilities.flush();
}

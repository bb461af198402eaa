// Generates words with a decoder, one after another, always the most likely one.
//
//   main CONSTANTS COUNT [--threads N] [--one-by-one] [--scores FILE] WORD...
//
// Reads the prompt WORD... with prefill(), a chunk at a time, and generates COUNT words with
// decode(). --one-by-one reads the prompt with decode(), too. --scores writes the scores of each
// generated word as 32-bit floats. The last line has the words per second.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "decoder.h"
#include "tfcompile/thread_pool.h"

namespace {

// Words that have been read, and the scores of the next one.
struct Text {
  int position = 0;
  const float* scores = nullptr;
};

bool Fails(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  return true;
}

// Positions in the cache, whose sizes are [heads, positions, elements].
int Positions(Decoder& decoder) {
  return static_cast<int>(decoder.decode().Variables()[0].dims[1]);
}

bool Read(Decoder& decoder, Text& text, const std::int32_t* words, int count) {
  const int chunk = decoder.prefill().arg_tokens_count();
  while (count > 0) {
    const int now = std::min(chunk, count);
    // Positions after the last word are written, too, and overwritten before they are read.
    if (text.position + chunk > Positions(decoder)) return !Fails("prefill", "the prompt is longer than the cache");
    std::fill(decoder.prefill().arg_tokens_data(), decoder.prefill().arg_tokens_data() + chunk, 0);
    std::copy(words, words + now, decoder.prefill().arg_tokens_data());
    decoder.prefill().arg_position() = text.position;
    decoder.prefill().arg_count() = now;
    if (!decoder.prefill().Run()) return !Fails("prefill", decoder.prefill().error_msg());
    text.position += now;
    text.scores = decoder.prefill().result_scores_data();
    words += now;
    count -= now;
  }
  return true;
}

bool ReadOne(Decoder& decoder, Text& text, std::int32_t word) {
  if (text.position >= Positions(decoder)) return !Fails("decode", "the cache is full");
  decoder.decode().arg_tokens() = word;
  decoder.decode().arg_position() = text.position;
  if (!decoder.decode().Run()) return !Fails("decode", decoder.decode().error_msg());
  ++text.position;
  text.scores = decoder.decode().result_scores_data();
  return true;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Fails("usage", "main CONSTANTS COUNT [--threads N] [--one-by-one] [--scores FILE] WORD...");
  std::string error, scores_file;
  const int count = std::atoi(argv[2]);
  int threads = 1;
  bool one_by_one = false;
  std::vector<std::int32_t> words;
  for (int i = 3; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--threads") && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (!std::strcmp(argv[i], "--scores") && i + 1 < argc) {
      scores_file = argv[++i];
    } else if (!std::strcmp(argv[i], "--one-by-one")) {
      one_by_one = true;
    } else {
      words.push_back(std::atoi(argv[i]));
    }
  }
  if (words.empty()) return Fails("usage", "give at least one word");
  if (!Decoder::LoadDefaultConstants(argv[1], &error)) return Fails("constants", error);
  const auto decoder = std::make_unique<Decoder>();
  tfcompile::ThreadPool pool(threads);
  decoder->prefill().set_thread_pool(&pool);
  decoder->decode().set_thread_pool(&pool);

  Text text;
  const double start = Seconds();
  if (one_by_one) {
    for (const std::int32_t word : words) {
      if (!ReadOne(*decoder, text, word)) return 1;
    }
  } else if (!Read(*decoder, text, words.data(), static_cast<int>(words.size()))) {
    return 1;
  }
  const double read = Seconds();
  std::ofstream scores(scores_file, std::ios::binary);
  const int vocabulary = decoder->decode().result_scores_count();
  for (int i = 0; i < count; ++i) {
    if (!scores_file.empty()) {
      scores.write(reinterpret_cast<const char*>(text.scores), static_cast<std::streamsize>(vocabulary * sizeof(float)));
    }
    const auto word = static_cast<std::int32_t>(std::max_element(text.scores, text.scores + vocabulary) - text.scores);
    std::printf("%d%c", word, i + 1 < count ? ' ' : '\n');
    if (!ReadOne(*decoder, text, word)) return 1;
  }
  const double end = Seconds();
  std::printf("read %.1f words/s, generated %.2f words/s\n", static_cast<double>(words.size()) / (read - start),
              count / (end - read));
}

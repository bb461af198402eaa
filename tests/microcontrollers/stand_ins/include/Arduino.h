// Stand-in for the header that Arduino includes in sketches.
#pragma once
extern "C" {
void write_text(const char* text);
void write_double(double value);
void setup(void);
void loop(void);
}
struct Output {
  void begin(long) {}
  void print(const char* text) { write_text(text); }
  void println(const char* text) { write_text(text), write_text("\n"); }
  void println(double value) { write_double(value), write_text("\n"); }
};
static Output Serial;

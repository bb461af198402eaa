/* What the layers give, in C99 and C++ and without any library. */

#ifndef EXPECT_H_
#define EXPECT_H_

/* x[i][k], which makes some sums negative. */
static inline float layer_input(int i, int k) { return (float)(i == 0 ? k - 2 : 3 - 2 * k); }

/* y[i][j] of layer.pbtxt; of layer_trained_again.pbtxt if `again`. */
static inline float layer_output(int again, int i, int j) {
  const float bias = again ? (j == 0 ? -5.0f : j == 1 ? 4.0f : 100.0f) : (j == 0 ? 1.0f : j == 1 ? -2.0f : 3.0f);
  float sum = bias;
  int k;
  for (k = 0; k < 4; ++k) sum += layer_input(i, k) * (float)(again ? 20 - (3 * k + j) : 3 * k + j + 1);
  return sum > 0 ? sum : 0;
}

#endif /* EXPECT_H_ */

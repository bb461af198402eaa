// Effects of a failed assertion in the graph: none, a failed run with a message, or the end of the
// process.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "aborting.h"
#include "check.h"
#include "ignored.h"
#include "reported.h"

template <typename Class>
bool Run(Class& computation, float first) {
  for (int i = 0; i < 3; ++i) computation.arg_x_data()[i] = first + static_cast<float>(i);
  return computation.Run();
}

int main() {
  const std::string message =
      "assertion failed: [x must be positive] [float[3]] [0] (node 'check/Assert')";

  Ignored ignored;
  CHECK(Run(ignored, -1));

  Reported reported;
  CHECK(Run(reported, 1) && reported.error_msg().empty() && reported.result_root_data()[0] == 1);
  CHECK(!Run(reported, -1));
  CHECK(reported.error_msg() == message);
  CHECK(Run(reported, 4) && reported.error_msg().empty() && reported.result_root_data()[0] == 2);

  Aborting aborting;
  CHECK(Run(aborting, 1));
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    Run(aborting, -1);
    _exit(0);
  }
  close(ends[1]);
  std::string printed;
  char buffer[256];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) printed.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  CHECK(printed == message + "\n");
  return 0;
}

// One of two files of one program that include stair.hpp; run.sh compiles them in several modes.
#include <stair.hpp>
#include <stair.hpp>

const char* missing_model();

int main() {
  const auto index = stair::index::try_open("/nonexistent/file");
  if (index || index.error().code() != stair::errc::not_found) return 1;
  return std::string_view(missing_model()) == "NOT_FOUND" ? 0 : 1;
}

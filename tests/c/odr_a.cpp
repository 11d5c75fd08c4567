// One of two files of one program that include stair.hpp; run.sh compiles this one as C++17, and the
// other one in several modes.
#include <stair.hpp>
#include <stair.hpp>

const char* missing_model();
bool throws();
void throw_error();
bool catches(void (*thrower)());
bool cancelled(const stair::cancel_token& token, const stair::retrieve_options& options);

namespace {

void open_missing() { stair::index::open("/nonexistent/file"); }

// Whether an error that the other file throws is caught here as what it is.
bool caught_from_there() {
  try {
    throw_error();
  } catch (const stair::error& error) {
    const std::exception& base = error;
    return error.code() == stair::errc::not_found && dynamic_cast<const stair::error*>(&base);
  }
  return !throws();
}

// The vtable here has its type, whatever the other file was compiled without.
bool has_a_type() {
  const stair::error error(stair::errc::io, "");
  const std::exception& base = error;
  return dynamic_cast<const stair::error*>(&base) != nullptr;
}

}  // namespace

int main() {
  const auto index = stair::index::try_open("/nonexistent/file");
  if (index || index.error().code() != stair::errc::not_found) return 1;
  if (std::string_view(missing_model()) != "NOT_FOUND") return 2;
  if (!caught_from_there()) return 3;
  if (throws() && !catches(open_missing)) return 4;
  if (!has_a_type()) return 5;
  const stair::cancel_source source;
  source.cancel();
  stair::retrieve_options options;
  options.k = 7;
  return cancelled(source.token(), options) ? 0 : 6;
}

// The other one.
#include <stair.hpp>

const char* missing_model() {
  const auto model = stair::model::try_open("/nonexistent/file");
  return model ? "" : model.error().name();
}

// Plain classes are the same in both files.
bool cancelled(const stair::cancel_token& token, const stair::retrieve_options& options) {
  return token.cancelled() && options.k == 7;
}

#ifdef STAIR_NO_EXCEPTIONS

bool throws() { return false; }
void throw_error() {}
bool catches(void (*)()) { return false; }

#else

bool throws() { return true; }
void throw_error() { stair::model::open("/nonexistent/file"); }

// Whether an error that the other file throws is caught here.
bool catches(void (*thrower)()) {
  try {
    thrower();
  } catch (const stair::error& error) {
    return error.code() == stair::errc::not_found;
  }
  return false;
}

#endif

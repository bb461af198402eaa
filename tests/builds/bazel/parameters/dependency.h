// Reaches whoever uses `saved`, through its deps.
constexpr bool kDependency = true;

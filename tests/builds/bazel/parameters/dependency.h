// Available to targets that depend on `saved`, through its deps.
constexpr bool kDependency = true;

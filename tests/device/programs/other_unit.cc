// Creates, runs, and destroys objects of units.cc.

#include "layer.h"

ns::Layer Made();
bool Runs(ns::Layer layer);

ns::Layer Made() {
  ns::Layer layer;
  tfcompile_device_synchronize(layer.device(), nullptr);
  return layer;
}

bool Runs(ns::Layer layer) { return layer.Run() && layer.RunAsync() && layer.Synchronize(); }

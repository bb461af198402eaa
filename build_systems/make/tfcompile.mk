# Compiled graphs in a makefile, for GNU Make 3.81 and newer:
#
#   include $(shell pkg-config --variable=makefile tfcompile)
#   $(eval $(call tf_library,NAME,MODEL,CLASS,FLAGS))
#
# gives rules for $(TFCOMPILE_OUT)/NAME.o, NAME.h, and the C programs NAME_test.c and NAME_benchmark.c. FLAGS are those of
# `tfcompile build`. Programs are compiled with $(TFCOMPILE_CFLAGS) and linked with $(TFCOMPILE_LIBS).

TFCOMPILE_PREFIX := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))../..)
TFCOMPILE ?= $(TFCOMPILE_PREFIX)/bin/tfcompile
TFCOMPILE_OUT ?= tfcompile_out
TFCOMPILE_CFLAGS := -I$(TFCOMPILE_OUT) -I$(TFCOMPILE_PREFIX)/include
TFCOMPILE_LIBS := -pthread

# The other files are written with the object and keep their timestamps if unchanged. The empty
# recipe makes Make check again.
define tf_library
$(TFCOMPILE_OUT)/$(1).o: $(TFCOMPILE)
	$(TFCOMPILE) build $(2) --name=$(1) --class=$(3) --output=$(TFCOMPILE_OUT) --emit=obj,header,test,benchmark \
	  --no-runtime-headers --keep-unchanged --quiet --depfile=$(TFCOMPILE_OUT)/$(1).d $(4)
$(TFCOMPILE_OUT)/$(1).h $(TFCOMPILE_OUT)/$(1)_test.c $(TFCOMPILE_OUT)/$(1)_benchmark.c: $(TFCOMPILE_OUT)/$(1).o ;
-include $(TFCOMPILE_OUT)/$(1).d
endef

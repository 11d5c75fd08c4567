# make demo      build everything and answer some questions about the handbook
# make test      the whole suite, with all bindings
# make bench     the library's figures, each beside its goal
# make peers     other ways to the same answer, measured beside this one (docs/peers.md)
# make eval      how good the systems are, on the test questions
# make train     trains the handbook's adapter anew
# make install   PREFIX=/usr/local DESTDIR=
# make cuda      the library with the NVIDIA backend, on a machine without a GPU too

TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILD := $(TARGET)/release
STAIR := $(BUILD)/stair
MODEL := models/smollm2-135m-instruct-q8_0.gguf
HANDBOOK := models/handbook-q8_0.gguf
INDEX := $(TARGET)/handbook.stair
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: demo test bench peers eval train install build model handbook setup cuda clean

demo: handbook
	@packaging/demo.sh $(STAIR) $(HANDBOOK) $(INDEX)

test:
	@packaging/setup.sh test
	@$(MAKE) --no-print-directory model
	@tests/run.sh $(BUILD) $(MODEL) $(VERSION)

bench: model
	GOMP_SPINCOUNT=$${GOMP_SPINCOUNT:-1000} cargo bench --bench figures -- $(MODEL)

# PEERS_N=3 make peers is a try; the whole takes an hour on two cores and wants a quiet machine.
peers: handbook
	@benches/peers/run.sh $(STAIR) $(MODEL) $(HANDBOOK) $(INDEX) $(TARGET)

eval: handbook
	@packaging/eval.sh $(STAIR) $(MODEL) $(HANDBOOK) $(INDEX) $(TARGET)/eval

train: model
	@training/handbook.sh $(STAIR) $(MODEL) $(TARGET)/training

# llama-cpp-sys-2 leaves links here that lead nowhere, and fails on them when it is built again.
build: setup
	@if [ -d $(BUILD) ]; then find $(BUILD) -maxdepth 2 -name 'lib*.so' -xtype l -delete; fi
	@cargo build --release

model: build
	@packaging/model.sh $(STAIR) $(MODEL)

handbook: model
	@packaging/handbook.sh $(STAIR) $(MODEL) $(HANDBOOK) $(INDEX)

setup:
	@packaging/setup.sh

# What is built is installed as it is: under sudo there is no cargo, and nothing should be built by root.
install: $(if $(wildcard $(BUILD)/libstair.so),,build)
	packaging/install.sh $(BUILD) "$(DESTDIR)" "$(PREFIX)" $(VERSION)

cuda: setup
	packaging/cuda/build.sh

clean:
	cargo clean

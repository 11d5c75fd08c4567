module libstair/examples/go

go 1.24

require libstair/bindings/go v0.0.0

replace libstair/bindings/go => ../../bindings/go

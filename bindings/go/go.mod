module libstair/bindings/go

go 1.24

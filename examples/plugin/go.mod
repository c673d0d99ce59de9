module example.com/berth-quietracks

go 1.26.0

require github.com/berth-project/berth v0.0.0

replace github.com/berth-project/berth => ../..

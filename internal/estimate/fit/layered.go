package fit

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// fitLayers is FewestDevicesWith for models that are divided layer by layer, on up to most
// devices with this much memory for the model.
func fitLayers(m *estimate.Model, serving estimate.Serving, most int, memory cluster.Bytes) (Fit, error) {
	if serving.Tensor > 1 || serving.Pipeline > 1 {
		return Fit{}, fmt.Errorf("model %s is divided layer by layer, not by tensor or pipeline parallelism; leave their sizes out", m.Name)
	}
	f, err := divideLayers(m, serving, most, memory)
	if err != nil {
		return Fit{}, err
	}
	// The largest context is searched for the devices that were found, or for all devices if
	// the model does not fit.
	high := 0
	if a := m.Architecture; a != nil {
		high = a.MaxContext
	}
	for low := 0; low < high; {
		mid := low + (high-low+1)/2
		try := serving
		try.Context = mid
		g, err := divideLayers(m, try, f.Devices, memory)
		if err != nil {
			return Fit{}, err
		}
		if g.Fits {
			low = mid
		} else {
			high = mid - 1
		}
		f.Context = low
	}
	return f, nil
}

// divideLayers divides the layers over the fewest devices that hold them.
func divideLayers(m *estimate.Model, serving estimate.Serving, most int, memory cluster.Bytes) (Fit, error) {
	need, err := m.Layered.Need(serving)
	if err != nil {
		return Fit{}, err
	}
	if whole := need.Whole.Total(); whole <= memory {
		return Fit{Fits: true, Devices: 1, Tensor: 1, Pipeline: 1, Layers: need.Layers, Use: need.Whole, Usable: memory}, nil
	}
	f := Fit{Devices: max(1, most), Tensor: 1, Pipeline: 1, Usable: memory}
	layers := need.Divisible(need.Divided)
	for n := 2; n <= min(most, need.Layers) && !f.Fits; n++ {
		if layers.Held(n, memory) == layers.Total {
			f.Fits, f.Devices = true, n
		}
	}
	free := memory
	if !f.Fits {
		free = layers.Fixed + layers.All()
	}
	var held cluster.Bytes
	f.Layers, held = fullest(layers, f.Devices, free)
	// held includes the cache of the layers. The size of the cache alone is taken from Whole.
	cache := cluster.Bytes(cluster.MulDivUp(int64(need.Whole.KVCache), int64(f.Layers), int64(max(1, need.Layers))))
	f.Use = estimate.Breakdown{KVCache: min(cache, held), Overhead: need.Divided.Each}
	f.Use.Weights = held - f.Use.KVCache
	return f, nil
}

// fullest returns how many layers are on the device that needs most, and the memory that
// they take, if the layers are divided over this many devices with this much memory each.
func fullest(l cluster.Layers, devices int, memory cluster.Bytes) (int, cluster.Bytes) {
	layers, held, end := 0, cluster.Bytes(0), 0
	for _, n := range l.Divide(min(devices, l.Total), memory) {
		if bytes := l.First(end+n) - l.First(end); bytes > held {
			layers, held = n, bytes
		}
		end += n
	}
	return layers, held
}

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
	room := int64(0)
	if need.Bytes > 0 && memory > need.Fixed {
		room = int64((memory - need.Fixed) / need.Bytes)
	}
	for n := 2; n <= most; n++ {
		if each := (need.Layers + n - 1) / n; int64(each) <= room {
			f.Fits, f.Devices = true, n
			break
		}
	}
	f.Layers = (need.Layers + f.Devices - 1) / f.Devices
	// need.Bytes includes the cache of a layer. The size of the cache alone is taken from Whole.
	share := func(part cluster.Bytes) cluster.Bytes {
		return cluster.Bytes(cluster.MulDivUp(int64(part), int64(f.Layers), int64(max(1, need.Layers))))
	}
	f.Use = estimate.Breakdown{KVCache: share(need.Whole.KVCache), Overhead: need.Fixed}
	f.Use.Weights = max(0, cluster.Bytes(f.Layers)*need.Bytes-f.Use.KVCache)
	return f, nil
}

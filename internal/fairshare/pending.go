package fairshare

import "github.com/berth-project/berth/cluster"

// requestSums holds what pending tasks request, by queue. What a task takes of a device is
// known only when it has one. Until then, the most that a device of its kind would give is
// used.
type requestSums struct {
	view   cluster.View
	asks   map[string]map[string]int64
	shapes map[*cluster.Shape]cluster.DeviceEstimate
}

func pendingRequests(s cluster.View) map[string]map[string]int64 {
	r := requestSums{s, map[string]map[string]int64{}, map[*cluster.Shape]cluster.DeviceEstimate{}}
	for _, j := range s.Pending() {
		asks := r.asks[j.Queue]
		if asks == nil {
			asks = map[string]int64{}
			r.asks[j.Queue] = asks
		}
		for _, t := range j.Tasks() {
			if t.Status != cluster.Pending {
				continue
			}
			for _, a := range t.Shape.Resources {
				asks[a.Name] = Add(asks[a.Name], a.Value)
			}
			if d := r.devices(t.Shape); d.Value > 0 {
				asks[d.Name] = Add(asks[d.Name], d.Value)
				if d.Product != "" {
					asks[d.Product] = Add(asks[d.Product], d.Value)
				}
				if v := ofGPU(d, s.Queue(j.Queue)); v > 0 {
					asks[cluster.DefaultDeviceResource] = Add(asks[cluster.DefaultDeviceResource], v)
				}
			}
		}
	}
	return r.asks
}

func (r *requestSums) devices(s *cluster.Shape) cluster.DeviceEstimate {
	a, known := r.shapes[s]
	if !known {
		a = r.view.DeviceEstimate(s)
		r.shapes[s] = a
	}
	return a
}

package convert

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
)

// makeModelStatus sets the group that was chosen for the model and the replicas that
// exist.
func makeModelStatus(s *model.Spec, o *v1alpha1.ModelStatus, r reporter) {
	if g := o.Group; g != nil {
		at := path{"status", "group"}
		checkRange(g.Count, 1, maxDevices, at.Add("count"), r)
		checkRange(g.NodesPerReplica, 1, model.MaxNodesPerReplica, at.Add("nodesPerReplica"), r)
		key := cluster.GroupKey{Product: g.Product, Count: g.Count, Resource: g.Resource, Memory: int64(checkMemory(g.Memory, at.Add("memory"), r)) >> 20}
		if key.Resource == "" {
			key.Resource = cluster.DefaultDeviceResource
		}
		if g.Sharing != nil {
			checkEnum(g.Sharing.Strategy, sharingStrategies, at.Add("sharing", "strategy"), r)
			key.Strategy, key.Replicas = g.Sharing.Strategy, g.Sharing.Replicas
		}
		if s.Place.WholeNodes { // otherwise the group is ignored: it was chosen when the model still took whole nodes
			s.Group, s.NodesPerReplica = &key, g.NodesPerReplica
		}
	}
	seen := map[int]int{}
	for i, x := range o.Replicas {
		at := path{"status", "replicas", i}
		checkRange(x.Replica, 0, maxReplicas, at.Add("replica"), r)
		if k, twice := seen[x.Replica]; twice {
			r.errorf(at.Add("replica"), "replica %d is already replicas[%d]", x.Replica, k)
		}
		seen[x.Replica] = i
		checkEnum(x.State, modelStates, at.Add("state"), r)
		checkTime(x.Created, at.Add("created"), r)
		if x.OffloadedLayers < 0 || x.OffloadedLayers > x.TotalLayers {
			r.errorf(at.Add("offloadedLayers"), "want from 0 to the %d of totalLayers, have %d", x.TotalLayers, x.OffloadedLayers)
		}
		rep := model.Replica{
			Number: x.Replica, Created: s.Created, Health: cluster.Health(x.State),
			Offload: cluster.Offload{Layers: x.OffloadedLayers, Total: x.TotalLayers},
		}
		if x.Created != nil {
			rep.Created = Nanoseconds(x.Created)
		}
		checkTime(x.TornSince, at.Add("tornSince"), r)
		checkTime(x.Evicted, at.Add("evicted"), r)
		rep.BelowMinimumSince, rep.Evicted = Nanoseconds(x.TornSince), Nanoseconds(x.Evicted)
		for k, p := range x.Placements {
			checkPlacement(&x.Placements[k], at.Add("placements", k), r)
			if rep.Tasks == nil {
				rep.Tasks = map[string]int{}
			}
			rep.Tasks[p.Task] = -1 // the number of devices is not known; an empty list means no devices
			if p.Devices != nil {
				rep.Tasks[p.Task] = len(p.Devices)
			}
		}
		s.Existing = append(s.Existing, rep)
	}
}

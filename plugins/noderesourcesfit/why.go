package noderesourcesfit

import (
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// checkReasons holds the cure and the reasons of one check.
type checkReasons struct {
	cure     engine.Cure
	resource engine.Reason
	lack     [cluster.LackMemory]engine.Reason // by Lack; devices handles LackNothing, LackKind and LackMemory itself
}

// ifEmpty is for the check of the empty node, whose rejections are permanent. asIs is for the
// check of the node as it is. In an empty node every device that is large enough can take the
// task, so that the reasons of ifEmpty for LackWholeNode and LackShare are not expected to occur.
var (
	ifEmpty = checkReasons{cureOtherNode, ResourceTooSmall, [...]engine.Reason{
		cluster.LackDevices: TooFewDevices, cluster.LackLinked: TooFewLinkedDevices, cluster.LackWholeNode: NodeInUse, cluster.LackShare: GPUMemoryTooSmall, cluster.LackBytes: GPUMemoryTooSmall}}
	asIs = checkReasons{cureWaitOrEvict, InsufficientResource, [...]engine.Reason{
		cluster.LackDevices: InsufficientDevices, cluster.LackLinked: LinkedDevicesInUse, cluster.LackWholeNode: NodeInUse, cluster.LackShare: InsufficientDeviceShare, cluster.LackBytes: GPUMemoryInUse}}
)

// units are the units of shortages.
var units = [...]engine.Unit{
	cluster.LackKind: engine.Count, cluster.LackDevices: engine.Count, cluster.LackLinked: engine.Count, cluster.LackWholeNode: engine.Count,
	cluster.LackShare: engine.Devices, cluster.LackBytes: engine.Bytes,
}

// why returns what the node is short of: resources first, then devices.
func why(s *cluster.Shape, n *cluster.Node, as *checkReasons) *engine.Rejection {
	if name, want, have := lackOf(s, n); name != "" {
		return as.resources(name, want, have)
	}
	return as.devices(s.Short(n))
}

// lackOf returns the first resource other than devices of which the node has too little, with what
// the shape requests and what is free. The name is empty if the node has enough.
func lackOf(s *cluster.Shape, n *cluster.Node) (name string, want, have int64) {
	for i := range s.Resources {
		a, free := &s.Resources[i], int64(0)
		if l := n.Ledger(a.Name); l != nil {
			free = l.Free()
		}
		if free < a.Value {
			return a.Name, a.Value, free
		}
	}
	return "", 0, 0
}

func (as *checkReasons) resources(name string, want, have int64) *engine.Rejection {
	return &engine.Rejection{Reason: as.resource, Cure: as.cure, Subject: name,
		Want: engine.AmountOf(name, want), Have: engine.AmountOf(name, max(0, have))}
}

// devices returns the rejection for a shortage of devices, and nil if there is none.
func (as *checkReasons) devices(short cluster.Shortage) *engine.Rejection {
	switch short.Lack {
	case cluster.LackNothing:
		return nil
	case cluster.LackMemory:
		return as.resources(cluster.Memory, short.Want, short.Have)
	}
	unit := units[short.Lack]
	r := &engine.Rejection{Reason: as.lack[short.Lack], Cure: as.cure,
		Want: engine.Quantity{Value: short.Want, Unit: unit}, Have: engine.Quantity{Value: max(0, short.Have), Unit: unit}}
	if short.Lack == cluster.LackKind {
		r.Reason, r.Cure = TooFewDevices, cureOtherNode
	}
	switch {
	case short.WantBytes > 0:
		r.Subject, r.WantBytes, r.HaveBytes = meeting(&short), int64(short.WantBytes), int64(short.HaveBytes)
	case short.Devices > 1 && short.Lack != cluster.LackShare:
		r.Subject = together(&short)
	}
	return r
}

// meeting returns how many devices meet a share, and of which device the amounts are.
func meeting(short *cluster.Shortage) string {
	switch {
	case short.Of == 1:
		return "its device has"
	case short.Meet == 0 && short.Devices <= 1:
		return fmt.Sprintf("none of %d devices meets the share, the best has", short.Of)
	}
	verb := "meet"
	if short.Meet == 1 {
		verb = "meets"
	}
	return fmt.Sprintf("%d of %d devices %s the share, and %d must; the next has", short.Meet, short.Of, verb, short.Devices)
}

// together returns which devices the figures of the shortage are about.
func together(short *cluster.Shortage) string {
	switch {
	case short.Meet == 0:
		return fmt.Sprintf("%d devices together", short.Devices)
	case short.Meet == short.Devices:
		return fmt.Sprintf("%d of %d devices meet the share, together", short.Meet, short.Of)
	}
	return fmt.Sprintf("%d of %d devices meet the share, %d together", short.Meet, short.Of, short.Devices)
}

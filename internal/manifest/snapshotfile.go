package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
)

// snapshotFile is a snapshot that was read.
type snapshotFile struct {
	*Snapshot
	name          string
	configuration *Configuration // nil if there is none
}

func parseSnapshot(name string, data []byte) (*Bundle, Errors) {
	fail := func(message string) (*Bundle, Errors) {
		return &Bundle{unread: 1}, Errors{{File: name, Message: message}}
	}
	if len(data) > maxSnapshotSize {
		return fail(snapshotTooLarge)
	}
	s, err := currentFormat.read(data)
	if err != nil {
		return fail(err.Error())
	}
	f := &snapshotFile{Snapshot: s, name: name}
	if s.Configuration != nil {
		var errs Errors
		if f.configuration, errs = f.readConfiguration(); len(errs) > 0 {
			return &Bundle{unread: 1}, errs
		}
	}
	return &Bundle{snapshots: []*snapshotFile{f}}, nil
}

// readConfiguration reads the configuration like a file of its own.
func (f *snapshotFile) readConfiguration() (*Configuration, Errors) {
	data, err := json.Marshal(f.Configuration)
	if err != nil {
		return nil, Errors{{File: f.name, Path: "configuration", Message: err.Error()}}
	}
	b, errs := parse(f.name, data)
	for i := range errs {
		errs[i].Column, errs[i].Path = 0, "configuration."+errs[i].Path
	}
	if b.Configuration() == nil && len(errs) == 0 {
		errs = Errors{{File: f.name, Path: "configuration", Message: "this is not a SchedulerConfiguration"}}
	}
	return b.Configuration(), errs
}

// state makes a State of the snapshot.
func (f *snapshotFile) state() (*cluster.State, error) {
	fail := func(format string, args ...any) (*cluster.State, error) {
		return nil, Errors{{File: f.name, Message: fmt.Sprintf(format, args...)}}
	}
	tasks, devices := 0, 0
	for i := range f.State.Jobs {
		for _, a := range f.State.Jobs[i].Job.Alternatives {
			tasks += len(a.Tasks)
		}
	}
	for i := range f.State.Nodes {
		devices += len(f.State.Nodes[i].Node.Devices)
	}
	switch {
	case tasks > convert.MaxTasks:
		return fail("the snapshot has %d tasks; the most is %d", tasks, convert.MaxTasks)
	case devices > maxDevicesInAll:
		return fail("the snapshot has %d devices; the most is %d", devices, maxDevicesInAll)
	}
	s, err := f.State.State()
	if err != nil {
		return fail("the snapshot makes no State: %v", err)
	}
	return s, nil
}

// snapshot returns the snapshot that was read, nil if there is none.
func (b *Bundle) snapshot() *snapshotFile {
	if len(b.snapshots) == 0 {
		return nil
	}
	return b.snapshots[0]
}

// IsSnapshot reports whether the bundle is a snapshot. Such a bundle has neither objects
// nor plans of models.
func (b *Bundle) IsSnapshot() bool { return len(b.snapshots) > 0 }

// Parameters returns the parameters that plugins had published when the snapshot was made.
func (b *Bundle) Parameters() map[string]uint64 {
	if f := b.snapshot(); f != nil {
		return f.Parameters
	}
	return nil
}

// NodeRequests returns what models with an instance type request of a provisioner, as of
// the last call of State.
func (b *Bundle) NodeRequests() []model.NodeRequest {
	if f := b.snapshot(); f != nil {
		return f.NodeRequests
	}
	return model.NodeRequests(b.plans)
}

// checkAlone reports objects that were read beside a snapshot. Only a configuration is
// allowed, which replaces that of the snapshot.
func (b *Bundle) checkAlone(errs *Errors) {
	if f := b.snapshot(); f != nil && b.count()-len(b.configurations) > 1 {
		*errs = append(*errs, Error{File: f.name, Message: "a snapshot is the whole input: nothing but a SchedulerConfiguration is read beside it; name it alone"})
	}
}
